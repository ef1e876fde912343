"""ADIEE through lmms-eval, on drawn edits whose truth is known and on a tiny model."""

import math

import pytest

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
    run0, page = tmp_path / "run0", tmp_path / "page.html"
    with FakeServer(reply=truthful) as server:
        run = evaluate(*served("vieval_openai", server), tasks=TIE, limit=48)
    # for some the judge drew other words to answer with
    assert set(run.statuses) <= {"ok", "repaired"}
    assert run.statuses.total() == 48
    assert run.metrics["O_fisher,none"] > 0.98
    again = evaluate(*in_process.replay(run0, "", "")[:4], tasks=TIE, limit=48)
    assert again.metrics == run.metrics
    vieval(f"show {run0} demo_a/demo_00.png --html {page}")
    assert page.read_text().count("<img") == 2


def expected_of(folder, sample):
    """A sample's expected score from the model's logits, without anything of VIEval's."""
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
        given = {"images": [decode(image) for image in images], "text": before + answer}
        inputs = processor(**given, return_tensors="pt")
        assert inputs.input_ids[0, -len(target) :].tolist() == target
        with torch.no_grad():
            logits = model(**inputs).logits[0, -len(target) - 1 : -1]
        rows = enumerate(torch.log_softmax(logits, -1))
        logged = sum(row[target[place]].item() for place, row in rows)
        return len(target), math.exp(logged)

    weights = [0.0] * 11
    for space in ("", " "):
        found = [chance(f"{space}{number}") for number in range(11)]
        assert found[10][0] == found[1][0] + 1  # a ten has a token more than a one
        for number, (_, value) in enumerate(found):
            weights[number] += value - (found[10][1] if number == 1 else 0.0)
    mean = sum(number * weight for number, weight in enumerate(weights)) / sum(weights)
    return mean / 10


def test_expected_is_the_mean_over_logits_and_replays(evaluate, tiny, tmp_path):
    model = f"--model vieval_transformers --model_args model={tiny} --batch_size 4"
    run = evaluate(*model.split(), tasks=TIE, judges={"adiee": {"mode": "expected"}})
    assert run.statuses == {"ok": 6}
    scores = {name: several[0]["scores"]["O"] for name, several in run.verdicts.items()}
    assert len(set(scores.values())) == 6
    for name in list(scores)[:2]:
        assert scores[name] == pytest.approx(expected_of(tiny, demo()[name]), abs=1e-5)
    again = evaluate(*in_process.replay(tmp_path / "run0", "", "")[:4], tasks=TIE)
    assert again.metrics == run.metrics


@pytest.fixture(scope="module")
def served_tiny():
    """The arguments of a real vLLM, and the folder of its weights."""
    model = served_by_vllm()
    given = f"model={model['id']},base_url={VLLM_URL}"
    return ("--model", "vieval_openai", "--model_args", given), model["root"]


@pytest.mark.vllm
def test_a_real_vllm_tells_what_transformers_does(evaluate, served_tiny):
    arguments, folder = served_tiny
    judged = {"tasks": TIE, "judges": {"adiee": {"mode": "expected"}}}
    run = evaluate(*arguments, **judged)
    assert run.statuses == {"ok": 6}
    here = f"--model vieval_transformers --model_args model={folder}"
    here = evaluate(*here.split(), **judged)
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
    for [one] in run.verdicts.values():
        assert ("O" in one["scores"]) == (one["status"] != "parse_failure")
    assert len(set(run.answers("O").values())) > 3
