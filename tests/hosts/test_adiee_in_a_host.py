"""ADIEE through lmms-eval's command line, on drawn edits whose truth is known and on a tiny
model.
"""

import math
from shlex import split

import pytest

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")
pytest.importorskip("aiohttp", reason="the fake server needs aiohttp")

from tests import in_process, tiny_model
from tests.extras import VLLM_URL, served_by_vllm
from tests.fake_server import FakeServer
from tests.in_process import demo, rated, served, shown
from tests.playing import first_asks, prepared
from vieval_plugin.images import decode

TIE = "vieval_demo_adiee_tie"


def truthful(request):
    """What those who drew the last image know of it, in the words asked for."""
    if not (images := shown(request)):
        return "yes"
    return f"I rate this edit {round(10 * rated()[images[-1]]['O'][0])}"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    return tiny_model.build(tmp_path_factory.mktemp("tiny"))


def test_a_model_that_knows_the_truth_agrees_and_replays(evaluate, tmp_path, vieval):
    run0 = tmp_path / "run0"
    with FakeServer(reply=truthful) as server:
        run = evaluate(*served("vieval_openai", server), tasks=TIE, limit=48)
    assert set(run.statuses) <= {
        "ok",
        "repaired",
    }  # for some the judge drew other words to answer with
    assert sum(run.statuses.values()) == 48
    assert run.metrics["O_fisher,none"] > 0.98
    again = evaluate(*in_process.replay(run0, "", "")[:4], tasks=TIE, limit=48)
    assert again.metrics == run.metrics
    page = tmp_path / "page.html"
    vieval(f"show {run0} demo_a/demo_00.png --html {page}")
    assert page.read_text().count("<img") == 2


def expected_of(folder, sample):
    """The expected score of a sample from the model's logits, one answer at a time, without
    anything of VIEval's.
    """
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(folder)
    model = AutoModelForImageTextToText.from_pretrained(folder)
    [ask] = first_asks(prepared("adiee", mode="expected").program(sample))
    *images, text = ask.messages[0].parts
    pads = "<|vision_start|><|image_pad|><|vision_end|>" * 2
    before = f"<|im_start|>user\n{pads}{text}<|im_end|>\n<|im_start|>assistant\n"

    def chance(answer):
        target = processor.tokenizer(answer, add_special_tokens=False).input_ids
        inputs = processor(
            images=[decode(image) for image in images],
            text=before + answer,
            return_tensors="pt",
        )
        assert inputs.input_ids[0, -len(target) :].tolist() == target
        with torch.no_grad():
            logits = model(**inputs).logits[0, -len(target) - 1 : -1]
        logged = torch.log_softmax(logits, -1)
        return len(target), math.exp(
            sum(logged[place, token].item() for place, token in enumerate(target))
        )

    weights = [0.0] * 11
    for space in ("", " "):
        found = [chance(f"{space}{number}") for number in range(11)]
        assert found[10][0] == found[1][0] + 1  # a ten has a token more than a one
        for number, (_, value) in enumerate(found):
            weights[number] += value - (found[10][1] if number == 1 else 0.0)
    return (
        sum(number * weight for number, weight in enumerate(weights))
        / sum(weights)
        / 10
    )


def test_expected_is_the_mean_over_logits_and_replays(evaluate, tiny, tmp_path, vieval):
    arguments = (
        *split(f"--model vieval_transformers --model_args model={tiny} --batch_size 4"),
    )
    run = evaluate(*arguments, tasks=TIE, judges={"adiee": {"mode": "expected"}})
    assert run.statuses == {"ok": 6}
    scores = {name: several[0]["scores"]["O"] for name, several in run.verdicts.items()}
    assert len(set(scores.values())) == 6
    for name in list(scores)[:2]:
        assert scores[name] == pytest.approx(expected_of(tiny, demo()[name]), abs=1e-5)
    again = evaluate(*in_process.replay(tmp_path / "run0", "", "")[:4], tasks=TIE)
    assert again.metrics == run.metrics
    vieval(f"show {tmp_path}/run0 demo_a/demo_00.png --html {tmp_path}/page.html")


@pytest.fixture(scope="module")
def served_tiny():
    """The arguments of a real vLLM, and the folder of its weights."""
    model = served_by_vllm()
    return (
        *split("--model vieval_openai --model_args"),
        f"model={model['id']},base_url={VLLM_URL}",
    ), model["root"]


@pytest.mark.vllm
def test_a_real_vllm_tells_what_transformers_does(evaluate, served_tiny):
    (arguments, folder), expected = served_tiny, {"adiee": {"mode": "expected"}}
    run = evaluate(*arguments, tasks=TIE, judges=expected)
    assert run.statuses == {"ok": 6}
    here = evaluate(
        *split(f"--model vieval_transformers --model_args model={folder}"),
        tasks=TIE,
        judges=expected,
    )
    for name, [verdict] in run.verdicts.items():
        [same] = here.verdicts[name]
        low, high = verdict["bounds"]["O"]
        print(name, low, same["scores"]["O"], high)
        assert low - 1e-3 <= same["scores"]["O"] <= high + 1e-3
        assert high - low < 0.02


@pytest.mark.vllm
def test_a_real_vllm_is_asked_in_words(evaluate, served_tiny):
    run = evaluate(*served_tiny[0], "--gen_kwargs", "max_new_tokens=16", tasks=TIE)
    assert set(run.statuses) <= {"ok", "repaired", "parse_failure"}
    assert all(
        ("O" in one["scores"]) == (one["status"] != "parse_failure")
        for [one] in run.verdicts.values()
    )
    assert len(set(run.answers("O").values())) > 3
