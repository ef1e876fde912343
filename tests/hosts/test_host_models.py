"""Every model of lmms-eval as a judge's backbone, and our own beside it."""

import hashlib
import importlib.util
import itertools
import json
import math
import re
import sys
import types
from collections import Counter
from dataclasses import replace
from shlex import split
from types import SimpleNamespace

import pytest

from tests.refusals import refusal

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")
pytest.importorskip("aiohttp", reason="the fake server needs aiohttp")

from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts
from lmms_eval.api.model import lmms

from tests import tiny_model
from tests.fake_server import FakeServer, Fault
from tests.in_process import demo, label_of, naming_images, own_images, served
from tests.playing import scripted
from vieval_plugin.hosts.lmms_eval import answering, register
from vieval_plugin.hosts.lmms_eval.answering import JudgeRequest
from vieval_plugin.hosts.lmms_eval.task import REQUEST_TYPE
from vieval_plugin.judges.protocol import Image, Likelihood, Message, Verdict
from vieval_plugin.results.documents import read_response

register()  # what the entry point does when lmms-eval loads its models

GOOD = json.dumps({"score": [3, 4], "reasoning": "seen"})


# ---------------------------------------------------------------- running the host


SERVED = [
    ("openai",),
    ("openai", "--force_simple"),
    ("async_openai",),
    ("vieval_openai",),
]


@pytest.mark.parametrize("model", SERVED, ids=" ".join)
def test_every_sample_is_judged_by_its_own_images(evaluate, model):
    name, *flags = model
    with FakeServer(reply=naming_images, latency=0.02) as server:
        run = evaluate(*served(name, server), *flags)
    assert run.statuses == {"ok": 6}
    for sample, [verdict] in run.verdicts.items():
        found = {label_of(step): step["reason"] for step in verdict["trace"]}
        assert found == own_images(sample)
        assert verdict["scores"]["SC"] == 0.3
    counted = [row["token_counts"][0] for row in run.rows]
    assert all(
        tokens["input_tokens"] > 700 and tokens["output_tokens"] > 20
        for tokens in counted
    )
    total = run.document["efficiency"]["overall"]
    found = total["total_input_tokens"]
    assert found == (sum(tokens["input_tokens"] for tokens in counted))
    found = total["total_output_tokens"]
    assert found == (sum(tokens["output_tokens"] for tokens in counted))


def test_a_limit_takes_samples_by_uid_across_image_models(evaluate):
    run = evaluate("--model", "dummy")
    found = list(run.verdicts)
    assert found == [f"demo_{m}demo_{i:02}.png" for i in range(2) for m in "abc"]
    assert run.statuses == {"parse_failure": 6}
    assert run.metrics["SC_count,none"] == 0


@pytest.mark.parametrize("model", ["openai", "async_openai", "vieval_openai"])
def test_generation_arguments_reach_the_model(evaluate, model):
    asked = []

    def reply(request):
        asked.append((request["max_tokens"], request["temperature"]))
        return GOOD

    with FakeServer(reply=reply) as server:
        evaluate(*served(model, server), limit=2)
        plain, asked[:] = set(asked[-4:]), []
        evaluate(
            *served(model, server),
            "--gen_kwargs",
            "max_new_tokens=77,temperature=0.5",
            limit=2,
        )
    assert plain == {(1024, 0)}
    assert set(asked[-4:]) == {(77, 0.5)}


@pytest.mark.parametrize("model", ["openai", "vieval_openai"])
def test_repeats_are_verdicts_of_their_own(evaluate, model, tmp_path):
    replies = tmp_path / "replies.sqlite"
    turns = Counter()

    def reply(request):
        question = json.dumps(request["messages"])
        turns[question] += 1
        document = {"score": [turns[question], 9], "reasoning": str(turns[question])}
        return json.dumps(document)

    arguments = ("--repeats", 3, "--gen_kwargs", "temperature=1")
    with FakeServer(reply=reply) as server:
        run = evaluate(*served(model, server), *arguments, store=replies)
        again = evaluate(*served(model, server), *arguments, store=replies)
    for verdicts in run.verdicts.values():
        assert sorted(verdict["scores"]["SC"] for verdict in verdicts) == [
            0.1,
            0.2,
            0.3,
        ]
    assert (
        -1 <= run.metrics["SC_consistency,none"] < 0.5
    )  # they differ within samples and not between them
    assert again.verdicts == run.verdicts
    assert "SC_consistency,none" not in evaluate("--model", "dummy").metrics


@pytest.mark.parametrize("model", ["openai", "vieval_openai"])
def test_the_hosts_response_cache_keeps_no_failures(evaluate, model, tmp_path):
    replies = tmp_path / "replies.sqlite"
    cached = ("--use_cache", tmp_path / "cache")
    tries = {"retries": 0} if model == "vieval_openai" else {"max_retries": 1}
    fails = lambda number, request: Fault("content_filter") if number != 1 else None
    with FakeServer(faults=fails) as server:
        port = server.port
        failed = evaluate(*served(model, server, **tries), *cached, store=replies)
    assert failed.metrics["status_ok_share,none"] == 0
    assert all(
        "SC" not in v["scores"] or "PQ" not in v["scores"]
        for [v] in failed.verdicts.values()
    )
    with FakeServer(port, reply=naming_images) as server:
        fresh = evaluate(*served(model, server, **tries), *cached, store=replies)
        calls = server.stats()["requests"]
        third = evaluate(*served(model, server, **tries), *cached, store=replies)
        assert server.stats()["requests"] == calls
    assert fresh.statuses == {"ok": 6}
    assert third.verdicts == fresh.verdicts


# ---------------------------------------------------------------- failures


def test_a_failing_server_and_a_spent_budget_are_api_errors_without_scores(evaluate):
    with FakeServer(faults=lambda *_: Fault("500")) as server:
        failed = evaluate(*served("openai", server, max_retries=1), limit=2)
    assert failed.statuses == {"api_error": 2}
    assert all(not verdict["scores"] for [verdict] in failed.verdicts.values())
    found = next(iter(failed.verdicts.values()))[0]["trace"][0]["reason"]
    assert "LMMS_EVAL_REQUEST_FAILED" in found
    with FakeServer(reply=lambda _: GOOD) as server:
        spent = evaluate(
            *served("openai", server, num_concurrent=1), "--max_tokens", 10, limit=2
        )
        assert server.stats()["requests"] == 1
    assert spent.statuses == {"api_error": 2}
    found = sum(
        "LMMS_EVAL_BUDGET_EXCEEDED" in s["reason"]
        for [v] in spent.verdicts.values()
        for s in v["trace"]
    )
    assert found == 3


@pytest.mark.parametrize("model", ["openai", "async_openai"])
def test_a_message_without_content_is_no_answer(evaluate, model):
    with FakeServer(faults=lambda *_: Fault("null_content")) as server:
        run = evaluate(*served(model, server, max_retries=1), limit=1)
    assert run.statuses == {"api_error": 1}


@pytest.mark.parametrize("model", ["dummy", "vieval_openai"])
def test_the_first_missing_image_is_named(evaluate, ratings_folder, model):
    with FakeServer() as server:
        arguments = (
            served(model, server) if model == "vieval_openai" else ("--model", model)
        )
        with pytest.raises(SystemExit) as end:
            evaluate(
                *arguments, tasks="imagenhub_viescore_cig", limit=4, data=ratings_folder
            )
        assert server.stats()["requests"] == 0
    message = str(end.value)
    assert message.startswith("vieval: ")
    assert "\n" not in message
    assert (
        "sample_2.jpg: no such image (and 5 more); run `vieval prepare imagenhub`"
        in message
    )


def test_vllm_that_is_not_installed_is_one_line(evaluate):
    if importlib.util.find_spec("vllm"):
        pytest.skip("vllm is installed here")
    with pytest.raises(
        SystemExit, match="vieval: vllm is not installed .* pip install .vllm>="
    ):
        evaluate("--model", "vieval_vllm", "--model_args", "model=anything")


@pytest.fixture
def stub_vllm(monkeypatch):
    """In place of vLLM (tests/test_vllm.py has the real one): notes what the engine is given,
    answers at once.
    """
    engine = SimpleNamespace(arguments={}, parameters=[])

    class LLM:
        llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=lambda: None))

        def __init__(self, **arguments):
            engine.arguments = arguments

        def chat(self, conversations, parameters, **_):
            engine.parameters += parameters
            completion = SimpleNamespace(
                text=GOOD, token_ids=[1] * 5, finish_reason="stop"
            )
            return [
                SimpleNamespace(prompt_token_ids=[1] * 7, outputs=[completion])
                for _ in conversations
            ]

    parts = {
        "vllm": {"LLM": LLM, "SamplingParams": dict},
        "vllm.sampling_params": {"StructuredOutputsParams": dict},
    }
    for name, contents in parts.items():
        module = types.ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    return engine


def test_vllm_in_process_gets_its_arguments(evaluate, stub_vllm, tmp_path):
    def run(generation, model="model=some/name,dtype=float32,max_pixels=4096"):
        stub_vllm.parameters.clear()
        arguments = (
            *split("--model vieval_vllm --model_args"),
            model,
            "--gen_kwargs",
            generation,
        )
        return evaluate(*arguments, limit=2, store=tmp_path / "replies.sqlite")

    first = run("temperature=0.5,top_p=0.9,max_new_tokens=99")
    assert first.statuses == {"ok": 2}
    found = [row["token_counts"] for row in first.rows]
    assert found == ([[{"input_tokens": 14, "output_tokens": 10}]] * 2)
    assert {k: v for k, v in stub_vllm.arguments.items() if k != "max_logprobs"} == {
        "model": "some/name",
        "dtype": "float32",
    }
    assert len(stub_vllm.parameters) == 4
    for one in stub_vllm.parameters:
        assert (one["temperature"], one["top_p"], one["max_tokens"]) == (0.5, 0.9, 99)
        assert one["structured_outputs"]["json"]["required"] == ["score", "reasoning"]
    again = run("temperature=0.5,top_p=0.9,max_new_tokens=99")
    assert not stub_vllm.parameters
    assert again.verdicts == first.verdicts
    run("temperature=0.5,top_p=0.8,max_new_tokens=99")
    assert len(stub_vllm.parameters) == 4  # other sampling, other answers
    run(
        "temperature=0.5,top_p=0.8,max_new_tokens=99",
        "model=some/name,dtype=float32,max_pixels=4096,revision=v2",
    )
    assert len(stub_vllm.parameters) == 4


# ---------------------------------------------------------------- a real model in process


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    pytest.importorskip("qwen_vl_utils", reason="qwen-vl-utils is not installed")
    return tiny_model.build(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("flags", [(), ("--force_simple",)], ids=["chat", "simple"])
def test_a_model_in_process_answers_alike(evaluate, tiny, monkeypatch, flags):
    """At batch size 4 each sample is shown its own images: random weights answer each image
    differently.
    """
    import transformers

    if not importlib.util.find_spec("decord"):  # imported by the host, used for videos
        monkeypatch.setitem(sys.modules, "decord", types.ModuleType("decord"))
    load = transformers.Qwen2_5_VLForConditionalGeneration.from_pretrained
    # in the host's bfloat16 rounding differs with the size of a batch, and with it now and then a
    # token
    exact = lambda folder, **options: load(
        folder, **{**options, "torch_dtype": "float32"}
    )
    monkeypatch.setattr(
        transformers.Qwen2_5_VLForConditionalGeneration, "from_pretrained", exact
    )
    model = f"pretrained={tiny},device_map=cpu,min_pixels=3136,max_pixels=12544"

    def run(size):
        arguments = (
            *split("--model qwen2_5_vl --model_args"),
            model,
            *split(f"--device cpu --batch_size {size}"),
        )
        arguments += ("--gen_kwargs", "max_new_tokens=12", *flags)
        return evaluate(*arguments, limit=4, judges={"reminders": 0})

    alone, batched = run(1), run(4)
    assert batched.verdicts == alone.verdicts
    assert len(set(batched.answers("PQ").values())) > 2  # one question, four images
    counted = [row["token_counts"][0] for row in batched.rows]
    assert (
        counted == [{} if flags else {"output_tokens": 2 * 12}] * 4
    )  # simple models tell none


# ---------------------------------------------------------------- the host's interface, driven
# directly


class Recording(lmms):
    """A model like about half of the host's: a whole batch goes by its first request's
    functions.
    """

    def __init__(self, simple, answer=lambda images, text: GOOD, size=4):
        super().__init__()
        self.is_simple, self.answer, self.size = simple, answer, size
        self.asked, self.batches = [], 0

    def generate_until(self, requests):
        answers = []
        for start in range(0, len(requests), self.size):
            chunk = [request.args for request in requests[start : start + self.size]]
            look, *_ = (arguments[2 if self.is_simple else 1] for arguments in chunk)
            _, _, _, _, task, split = chunk[0]
            for text, *_, doc_id, _, _ in chunk:
                seen = look(self.task_dict[task][split][doc_id])
                if not self.is_simple:
                    parts = [part for message in seen for part in message["content"]]
                    text = " ".join(
                        part["text"] for part in parts if part["type"] == "text"
                    )
                    seen = [part["url"] for part in parts if part["type"] == "image"]
                images = [
                    hashlib.sha256(repr(p.size).encode() + p.tobytes()).hexdigest()[:12]
                    for p in seen
                ]
                self.asked.append((images, text))
                answers.append(self.answer(images, text))
            self.batches += 1
        return answers

    loglikelihood = generate_until_multi_round = generate_until


def instances(samples, judge="viescore"):
    return [
        Instance(
            REQUEST_TYPE,
            (
                "",
                {},
                JudgeRequest(sample, judge, "0shot", {"until": [], "temperature": 0}),
                place,
                "t",
                "s",
            ),
            0,
            {"task": "t", "doc_id": place, "repeats": 1},
        )
        for place, sample in enumerate(samples)
    ]


def judged(model, asked):
    return [read_response(result.text)[1] for result in model.vieval_judge(asked)]


@pytest.fixture
def few():
    return list(demo().values())[:6]


@pytest.mark.parametrize("simple", [False, True], ids=["chat", "simple"])
def test_each_sample_of_a_batch_sees_its_own_images(few, simple):
    model = Recording(
        simple,
        answer=lambda images, _: json.dumps(
            {"score": [1, 2], "reasoning": " ".join(images)}
        ),
    )
    for sample, verdict in zip(few, judged(model, instances(few)), strict=True):
        expected = own_images(sample.id.image_model + sample.id.uid)
        assert {step.label: step.reason for step in verdict.trace} == expected
    assert model.batches == 3
    assert not model.task_dict


FAILED = [
    "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error code: 500",
    "[LMMS_EVAL_BUDGET_EXCEEDED]",
    "",
    " \n",
    GenerationResult("", TokenCounts()),
    GenerationResult(None, TokenCounts()),
]


@pytest.mark.parametrize("text", FAILED, ids=range(len(FAILED)))
def test_what_a_host_writes_in_place_of_an_answer_is_an_api_error(few, text):
    model = Recording(True, answer=lambda *_: text)
    [verdict] = judged(model, instances(few[:1]))
    assert verdict.status == "api_error"
    assert not verdict.scores
    assert (
        len(model.asked) == 2
    )  # and nobody reminds a server that is down of the format


def test_failures_with_a_number_in_each_are_counted_in_a_few_lines(few, capsys):
    numbers = itertools.count()
    model = Recording(
        True,
        answer=lambda *_: (
            f"[LMMS_EVAL_REQUEST_FAILED after 1 retries] request {next(numbers)}"
        ),
    )
    judged(model, instances(few))
    [line] = [
        line for line in capsys.readouterr().err.splitlines() if "FAILED CALLS" in line
    ]
    assert line.count("request ") == 5
    assert "other reasons 7" in line


@pytest.mark.parametrize("simple", [False, True], ids=["chat", "simple"])
def test_an_unreadable_answer_is_asked_again_in_a_second_wave(few, simple):
    def answer(images, text):
        return "Quite good." if "Quite good." not in text and len(images) == 2 else GOOD

    model = Recording(simple, answer)
    for verdict in judged(model, instances(few)):
        assert verdict.status == "repaired"
        labels = {step.label: (str(step.status), step.answer) for step in verdict.trace}
        assert labels["SC"] == ("parse_failure", "Quite good.")
        assert labels["SC (reminder 1)"] == ("repaired", GOOD)
        assert labels["PQ"] == ("ok", GOOD)
    assert len(model.asked) == 18
    assert model.batches == 3 + 2


def test_an_image_that_cannot_be_read_costs_its_own_sample_only(few, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(few[1].images["output"].source[:2000])
    few[1] = replace(few[1], images={**few[1].images, "output": Image(broken)})
    model = Recording(False)
    statuses = [str(verdict.status) for verdict in judged(model, instances(few))]
    assert statuses == ["ok", "no_image", *["ok"] * 4]


def test_a_host_that_raises_ends_the_run_with_one_line(few, capsys):
    def answer(*_):
        raise MemoryError("out of\nmemory")

    assert re.search(
        "Recording failed .MemoryError: out of memory.; earlier answers are kept",
        refusal(judged, Recording(True, answer), instances(few)),
    )
    assert "Traceback" in capsys.readouterr().err


class Llava(Recording):
    """A host's model by the name of one whose loglikelihood is known: it answers with mean
    cross-entropies.
    """

    conv_template = "vicuna_v1"

    def __init__(self, losses):
        super().__init__(True)
        self.losses, self.told = losses, []

    def loglikelihood(self, requests):
        for request in requests:
            text, continuation, visuals, row, task, split = request.args
            self.told.append(
                (text, continuation, visuals(self.task_dict[task][split][row])[0].size)
            )
        return [
            (self.losses[continuation], False)
            for _, continuation, _ in self.told[-len(requests) :]
        ]


def asks_a_likelihood(monkeypatch, definition):
    heard = []

    def asking(sample):
        image = sample.images["output"]
        replies = yield [
            Likelihood(
                (Message("user", (image, "Is it?")),),
                ("Yes", "No"),
                ("yes",),
                definition,
            )
        ]
        heard.extend(replies)
        return Verdict({}, "ok", "", ())

    monkeypatch.setattr(answering, "prepare", lambda *_: scripted(asking))
    return heard


def test_the_known_loglikelihood_is_a_loss_and_becomes_a_probability(few, monkeypatch):
    heard = asks_a_likelihood(monkeypatch, "sequence_mean")
    model = Llava({"Yes": 0.5, "No": 2.0})
    judged(model, instances(few[:2]))
    assert [reply.low for reply in heard] == [reply.high for reply in heard]
    assert heard[0].low == pytest.approx((math.exp(-0.5), math.exp(-2.0)))
    assert [told[:2] for told in model.told] == [
        ("Is it?", "Yes"),
        ("Is it?", "No"),
    ] * 2


def test_other_models_have_no_probabilities(few, monkeypatch):
    asks_a_likelihood(monkeypatch, "first_token")
    assert re.search(
        "Recording does not support probabilities here; .* vieval_openai",
        refusal(judged, Recording(True), instances(few)),
    )


@pytest.mark.parametrize(
    ("definition", "template", "said"),
    [
        ("first_token", "vicuna_v1", "supports only sequence_mean"),
        (
            "sequence_mean",
            "llava_llama_3",
            "also scores other tokens; use conv_template=vicuna_v1",
        ),
    ],
)
def test_other_likelihoods_are_refused(few, monkeypatch, definition, template, said):
    asks_a_likelihood(monkeypatch, definition)
    model = Llava({"Yes": 0.5, "No": 2.0})
    model.conv_template = template
    assert re.search(said, refusal(judged, model, instances(few[:1])))
    assert model.told == []


def test_padding_is_answered_without_a_call(few):
    model, asked = Recording(True), instances(few[:1])
    asked += instances(few[:1])
    asked[1].metadata["__padding_only__"] = True
    first, second = model.vieval_judge(asked)
    assert second.text == ""
    assert read_response(first.text)[1].status == "ok"
    assert len(model.asked) == 2


def test_ranks_that_generate_in_lockstep_are_refused(few):
    model = Recording(True)
    model._world_size, model.accelerator = (
        2,
        SimpleNamespace(distributed_type="DistributedType.FSDP"),
    )
    assert re.search(
        "judging with a model sharded across processes .* not supported",
        refusal(judged, model, instances(few)),
    )
