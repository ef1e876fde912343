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
from types import SimpleNamespace
from typing import ClassVar

import pytest
from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts
from lmms_eval.api.model import lmms

from tests import tiny_model
from tests.backends import fake_engine
from tests.fake_server import FakeServer, Fault
from tests.in_process import demo, label_of, naming_images, own_images, served
from tests.playing import scripted
from tests.refusals import refusal, refuses
from vieval_plugin.hosts.lmms_eval import answering, register
from vieval_plugin.hosts.lmms_eval.answering import JudgeRequest
from vieval_plugin.hosts.lmms_eval.task import REQUEST_TYPE
from vieval_plugin.judges.protocol import Image, Likelihood, Message, Verdict
from vieval_plugin.results.documents import read_response

register()  # what the entry point does when lmms-eval loads its models

GOOD = json.dumps({"score": [3, 4], "reasoning": "seen"})


# ---------------------------------------------------------------- running the host


SERVED = ("openai", "openai --force_simple", "async_openai", "vieval_openai")


@pytest.mark.parametrize("model", SERVED)
def test_every_sample_is_judged_by_its_own_images(evaluate, model):
    name, *flags = model.split()
    with FakeServer(reply=naming_images, latency=0.02) as server:
        run = evaluate(*served(name, server), *flags)
    assert run.statuses == {"ok": 6}
    for sample, [verdict] in run.verdicts.items():
        found = {label_of(step): step["reason"] for step in verdict["trace"]}
        assert (found, verdict["scores"]["SC"]) == (own_images(sample), 0.3)
    counted = [row["token_counts"][0] for row in run.rows]
    total = run.document["efficiency"]["overall"]
    for kind, fewest in (("input_tokens", 700), ("output_tokens", 20)):
        assert all(tokens[kind] > fewest for tokens in counted)
        assert total[f"total_{kind}"] == sum(tokens[kind] for tokens in counted)


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

    given = ("--gen_kwargs", "max_new_tokens=77,temperature=0.5")
    with FakeServer(reply=reply) as server:
        for more, expected in (((), (1024, 0)), (given, (77, 0.5))):
            evaluate(*served(model, server), *more, limit=2)
            assert asked[-4:] == [expected] * 4


@pytest.mark.parametrize("model", ["openai", "vieval_openai"])
def test_repeats_are_verdicts_of_their_own(evaluate, model, tmp_path):
    turns = Counter()

    def reply(request):
        question = json.dumps(request["messages"])
        turns[question] += 1
        return json.dumps({"score": [turns[question], 9], "reasoning": "fine"})

    arguments = ("--repeats", 3, "--gen_kwargs", "temperature=1")
    kept = {"store": tmp_path / "replies.sqlite"}
    with FakeServer(reply=reply) as server:
        run = evaluate(*served(model, server), *arguments, **kept)
        again = evaluate(*served(model, server), *arguments, **kept)
    for verdicts in run.verdicts.values():
        scores = sorted(verdict["scores"]["SC"] for verdict in verdicts)
        assert scores == [0.1, 0.2, 0.3]
    # they differ within samples and not between them
    assert -1 <= run.metrics["SC_consistency,none"] < 0.5
    assert again.verdicts == run.verdicts
    assert "SC_consistency,none" not in evaluate("--model", "dummy").metrics


@pytest.mark.parametrize("model", ["openai", "vieval_openai"])
def test_the_hosts_response_cache_keeps_no_failures(evaluate, model, tmp_path):
    tries = {"retries": 0} if model == "vieval_openai" else {"max_retries": 1}

    def judged(server):
        kept = {"store": tmp_path / "replies.sqlite"}
        cached = ("--use_cache", tmp_path / "cache")
        return evaluate(*served(model, server, **tries), *cached, **kept)

    fails = lambda number, request: Fault("content_filter") if number != 1 else None
    with FakeServer(faults=fails) as server:
        failed = judged(server)
    assert failed.metrics["status_ok_share,none"] == 0
    scored = [{*verdict["scores"]} for [verdict] in failed.verdicts.values()]
    assert not any({"SC", "PQ"} <= aspects for aspects in scored)
    with FakeServer(server.port, reply=naming_images) as server:
        fresh = judged(server)
        calls = server.stats()["requests"]
        third = judged(server)
        assert server.stats()["requests"] == calls
    assert fresh.statuses == {"ok": 6}
    assert third.verdicts == fresh.verdicts


# ---------------------------------------------------------------- failures


def test_a_failing_server_and_a_spent_budget_are_api_errors_without_scores(evaluate):
    def reasons(run):
        assert run.statuses == {"api_error": 2}
        verdicts = [verdict for [verdict] in run.verdicts.values()]
        return [step["reason"] for verdict in verdicts for step in verdict["trace"]]

    with FakeServer(faults=lambda *_: Fault("500")) as server:
        failed = evaluate(*served("openai", server, max_retries=1), limit=2)
    assert "LMMS_EVAL_REQUEST_FAILED" in reasons(failed)[0]
    assert not any(verdict["scores"] for [verdict] in failed.verdicts.values())
    with FakeServer(reply=lambda _: GOOD) as server:
        one_at_a_time = served("openai", server, num_concurrent=1)
        spent = evaluate(*one_at_a_time, "--max_tokens", 10, limit=2)
        assert server.stats()["requests"] == 1
    exceeded = "LMMS_EVAL_BUDGET_EXCEEDED"
    assert sum(exceeded in reason for reason in reasons(spent)) == 3


@pytest.mark.parametrize("model", ["openai", "async_openai"])
def test_a_message_without_content_is_no_answer(evaluate, model):
    with FakeServer(faults=lambda *_: Fault("null_content")) as server:
        run = evaluate(*served(model, server, max_retries=1), limit=1)
    assert run.statuses == {"api_error": 1}


@pytest.mark.parametrize("model", ["dummy", "vieval_openai"])
def test_the_first_missing_image_is_named(evaluate, ratings_folder, model):
    given = {"tasks": "imagenhub_viescore_cig", "limit": 4, "data": ratings_folder}
    with FakeServer() as server:
        named = served(model, server) if model != "dummy" else ("--model", model)
        line = refusal(evaluate, *named, **given)
        assert server.stats()["requests"] == 0
    missing = "sample_2.jpg: no such image (and 5 more); run `vieval prepare imagenhub`"
    assert missing in line


def test_vllm_that_is_not_installed_is_one_line(evaluate):
    if importlib.util.find_spec("vllm"):
        pytest.skip("vllm is installed here")
    given = ("--model", "vieval_vllm", "--model_args", "model=anything")
    advice = "^vieval: vllm is not installed .* pip install .vllm>="
    refuses(advice, evaluate, *given)


@pytest.fixture
def stub_vllm(monkeypatch):
    """In place of vLLM (tests/test_vllm.py has it): notes what it is given, answers at once."""
    engine = SimpleNamespace(arguments={}, parameters=[])
    answer = SimpleNamespace(text=GOOD, token_ids=[1] * 5, finish_reason="stop")
    output = SimpleNamespace(prompt_token_ids=[1] * 7, outputs=[answer])

    class LLM(fake_engine.LLM):
        def __init__(self, **arguments):
            engine.arguments = arguments

        def chat(self, conversations, parameters, **_):
            engine.parameters += parameters
            return [output] * len(conversations)

    fake_engine.put_in(monkeypatch)
    monkeypatch.setattr(sys.modules["vllm"], "LLM", LLM)
    return engine


def test_vllm_in_process_gets_its_arguments(evaluate, stub_vllm, tmp_path):
    plain = "model=some/name,dtype=float32,max_pixels=4096"

    def run(top_p, model=plain):
        stub_vllm.parameters.clear()
        generation = f"temperature=0.5,top_p={top_p},max_new_tokens=99"
        arguments = ("--model", "vieval_vllm", "--model_args", model)
        arguments += ("--gen_kwargs", generation)
        return evaluate(*arguments, limit=2, store=tmp_path / "replies.sqlite")

    first = run(0.9)
    assert first.statuses == {"ok": 2}
    found = [row["token_counts"] for row in first.rows]
    assert found == [[{"input_tokens": 14, "output_tokens": 10}]] * 2
    stub_vllm.arguments.pop("max_logprobs", None)
    assert stub_vllm.arguments == {"model": "some/name", "dtype": "float32"}
    assert len(stub_vllm.parameters) == 4
    for one in stub_vllm.parameters:
        assert (one["temperature"], one["top_p"], one["max_tokens"]) == (0.5, 0.9, 99)
        assert one["structured_outputs"]["json"]["required"] == ["score", "reasoning"]
    again = run(0.9)
    assert (again.verdicts, stub_vllm.parameters) == (first.verdicts, [])
    # other sampling or other weights, other answers
    for other in ((0.8, plain), (0.8, f"{plain},revision=v2")):
        run(*other)
        assert len(stub_vllm.parameters) == 4


# ---------------------------------------------------------------- a real model in process


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    pytest.importorskip("qwen_vl_utils", reason="qwen-vl-utils is not installed")
    return tiny_model.build(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("flags", [(), ("--force_simple",)], ids=["chat", "simple"])
def test_a_model_in_process_answers_alike(evaluate, tiny, monkeypatch, flags):
    """At batch size 4 each sample is shown its own images: random weights tell them apart."""
    from transformers import Qwen2_5_VLForConditionalGeneration as Qwen

    if not importlib.util.find_spec("decord"):  # imported by the host, used for videos
        monkeypatch.setitem(sys.modules, "decord", types.ModuleType("decord"))
    load = Qwen.from_pretrained
    # in the host's bfloat16 rounding, and with it a token, differs with the size of a batch
    precise = {"torch_dtype": "float32"}
    exact = lambda folder, **options: load(folder, **{**options, **precise})
    monkeypatch.setattr(Qwen, "from_pretrained", exact)
    model = f"pretrained={tiny},device_map=cpu,min_pixels=3136,max_pixels=12544"

    def run(size):
        arguments = f"--model qwen2_5_vl --device cpu --batch_size {size} --gen_kwargs"
        arguments += f" max_new_tokens=12 --model_args {model}"
        return evaluate(*arguments.split(), *flags, limit=4, judges={"reminders": 0})

    alone, batched = run(1), run(4)
    assert batched.verdicts == alone.verdicts
    assert len(set(batched.answers("PQ").values())) > 2  # one question, four images
    # simple models tell none
    counted = [row["token_counts"][0] for row in batched.rows]
    assert counted == [{} if flags else {"output_tokens": 2 * 12}] * 4


# ---------------------------------------------------------------- the host's interface, driven
# directly


class Recording(lmms):
    """Like half of the host's models: a whole batch goes by its first request's functions."""

    def __init__(self, simple, answer=lambda images, text: GOOD, size=4):
        super().__init__()
        self.is_simple, self.answer, self.size = simple, answer, size
        self.asked, self.batches = [], 0

    def generate_until(self, requests):
        answers = []
        for start in range(0, len(requests), self.size):
            chunk = [request.args for request in requests[start : start + self.size]]
            look = chunk[0][2 if self.is_simple else 1]
            _, _, _, _, task, split = chunk[0]
            for text, *_, doc_id, _, _ in chunk:
                seen = look(self.task_dict[task][split][doc_id])
                if not self.is_simple:
                    parts = [part for message in seen for part in message["content"]]
                    text = " ".join(p["text"] for p in parts if p["type"] == "text")
                    seen = [part["url"] for part in parts if part["type"] == "image"]
                images = list(map(digest, seen))
                self.asked.append((images, text))
                answers.append(self.answer(images, text))
            self.batches += 1
        return answers

    loglikelihood = generate_until_multi_round = generate_until


def digest(picture):
    content = repr(picture.size).encode() + picture.tobytes()
    return hashlib.sha256(content).hexdigest()[:12]


def instances(samples, judge="viescore"):
    generation = {"until": [], "temperature": 0}
    asked = []
    for place, sample in enumerate(samples):
        request = JudgeRequest(sample, judge, "0shot", generation)
        arguments = ("", {}, request, place, "t", "s")
        metadata = {"task": "t", "doc_id": place, "repeats": 1}
        asked.append(Instance(REQUEST_TYPE, arguments, 0, metadata))
    return asked


def judged(model, asked):
    return [read_response(result.text)[1] for result in model.vieval_judge(asked)]


@pytest.fixture
def few():
    return list(demo().values())[:6]


kinds = pytest.mark.parametrize("simple", [False, True], ids=["chat", "simple"])


@kinds
def test_each_sample_of_a_batch_sees_its_own_images(few, simple):
    seen = lambda images: {"score": [1, 2], "reasoning": " ".join(images)}
    model = Recording(simple, answer=lambda images, _: json.dumps(seen(images)))
    for sample, verdict in zip(few, judged(model, instances(few)), strict=True):
        expected = own_images(sample.id.image_model + sample.id.uid)
        assert {step.label: step.reason for step in verdict.trace} == expected
    assert model.batches == 3
    assert not model.task_dict


FAILED = ["[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error code: 500", "", " \n"]
FAILED += ["[LMMS_EVAL_BUDGET_EXCEEDED]", GenerationResult("", TokenCounts())]
FAILED += [GenerationResult(None, TokenCounts())]


@pytest.mark.parametrize("text", FAILED, ids=range(len(FAILED)))
def test_what_a_host_writes_in_place_of_an_answer_is_an_api_error(few, text):
    model = Recording(True, answer=lambda *_: text)
    [verdict] = judged(model, instances(few[:1]))
    assert (verdict.status, verdict.scores) == ("api_error", {})
    # nobody reminds a server that is down of the format
    assert len(model.asked) == 2


def test_failures_with_a_number_in_each_are_counted_in_a_few_lines(few, capsys):
    numbers = itertools.count()
    failed = "[LMMS_EVAL_REQUEST_FAILED after 1 retries]"
    answer = lambda *_: f"{failed} request {next(numbers)}"
    judged(Recording(True, answer), instances(few))
    [line] = re.findall(".*FAILED CALLS.*", capsys.readouterr().err)
    assert line.count("request ") == 5
    assert "other reasons 7" in line


@kinds
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
    assert (len(model.asked), model.batches) == (18, 3 + 2)


def test_an_image_that_cannot_be_read_costs_its_own_sample_only(few):
    broken = Image(few[1].images["output"].source[:2000])
    few[1] = replace(few[1], images={**few[1].images, "output": broken})
    statuses = [str(v.status) for v in judged(Recording(False), instances(few))]
    assert statuses == ["ok", "no_image", *["ok"] * 4]


def test_a_host_that_raises_ends_the_run_with_one_line(few, capsys):
    def answer(*_):
        raise MemoryError("out of\nmemory")

    failed = "Recording failed .MemoryError: out of memory.; earlier answers are kept"
    refuses(failed, judged, Recording(True, answer), instances(few))
    assert "Traceback" in capsys.readouterr().err


class Llava(Recording):
    """Named as a model whose loglikelihood is known: it answers mean cross-entropies."""

    conv_template = "vicuna_v1"
    losses: ClassVar = {"Yes": 0.5, "No": 2.0}

    def __init__(self):
        super().__init__(True)
        self.told = []

    def loglikelihood(self, requests):
        for request in requests:
            text, continuation, visuals, row, task, split = request.args
            assert visuals(self.task_dict[task][split][row])
            self.told.append((text, continuation))
        asked = self.told[-len(requests) :]
        return [(self.losses[continuation], False) for _, continuation in asked]


def asks_a_likelihood(monkeypatch, definition):
    heard = []

    def asking(sample):
        question = (Message("user", (sample.images["output"], "Is it?")),)
        replies = yield [Likelihood(question, ("Yes", "No"), ("yes",), definition)]
        heard.extend(replies)
        return Verdict({}, "ok", "", ())

    monkeypatch.setattr(answering, "prepare", lambda *_: scripted(asking))
    return heard


def test_the_known_loglikelihood_is_a_loss_and_becomes_a_probability(few, monkeypatch):
    heard = asks_a_likelihood(monkeypatch, "sequence_mean")
    model = Llava()
    judged(model, instances(few[:2]))
    assert [reply.low for reply in heard] == [reply.high for reply in heard]
    assert heard[0].low == pytest.approx((math.exp(-0.5), math.exp(-2.0)))
    assert model.told == [("Is it?", "Yes"), ("Is it?", "No")] * 2


REFUSED = [
    ("first_token", None, "Recording does not support probabilities here; .* vieval_"),
    ("first_token", "vicuna_v1", "supports only sequence_mean"),
    ("sequence_mean", "llava_llama_3", "other tokens; use conv_template=vicuna_v1"),
]


@pytest.mark.parametrize(("definition", "template", "said"), REFUSED)
def test_other_likelihoods_are_refused(few, monkeypatch, definition, template, said):
    asks_a_likelihood(monkeypatch, definition)
    model = Llava() if template else Recording(True)
    model.conv_template = template
    refuses(said, judged, model, instances(few[:1]))
    assert not getattr(model, "told", ())


def test_padding_is_answered_without_a_call(few):
    model, asked = Recording(True), instances([few[0], few[0]])
    asked[1].metadata["__padding_only__"] = True
    first, second = model.vieval_judge(asked)
    assert (read_response(first.text)[1].status, second.text) == ("ok", "")
    assert len(model.asked) == 2


def test_ranks_that_generate_in_lockstep_are_refused(few):
    model = Recording(True)
    model._world_size = 2
    model.accelerator = SimpleNamespace(distributed_type="DistributedType.FSDP")
    sharded = "judging with a model sharded across processes .* not supported"
    refuses(sharded, judged, model, instances(few))
