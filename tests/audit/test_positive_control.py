"""The positive control of a gate: its prompts, exchanges and planted judges."""

import hashlib
import json
from dataclasses import replace
from shlex import split

import numpy as np
import PIL.Image
import pytest

from tests.brightness import words_of
from tests.builders import a_record, a_sample, a_verdict
from tests.fake_server import FakeServer, named, score_count
from vieval_plugin.audit.positive_control import (
    ControlPrompt,
    control_prompts,
    spoilt_images,
)
from vieval_plugin.images import digest
from vieval_plugin.judges.protocol import Image
from vieval_plugin.results.prompt_differences import prompt_forms

N = 80


@pytest.fixture
def picture(tmp_path):
    """A function that draws a picture of noise of its own."""

    def drawn(number):
        path = tmp_path / f"{number}.png"
        rng = np.random.default_rng(number)
        pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
        PIL.Image.fromarray(pixels).save(path)
        return Image(path)

    return drawn


def control_prompt(number, picture, **fields):
    described = {"prompt": f"number {number} of {number}", **fields}
    sample = a_sample(f"p{number}", images={"output": picture(number)}, **described)
    return ControlPrompt(sample, 0.8, prompt_forms(sample))


def test_images_are_exchanged_among_the_prompts_each_once(picture):
    prompts = [control_prompt(number, picture) for number in range(25)]
    spoilt = spoilt_images(prompts, "exchanged")
    assert [prompt for prompt, _ in spoilt] == prompts[:20]
    own = [prompt.sample.images["output"].source for prompt, _ in spoilt]
    exchanged = [sample.images["output"].source for _, sample in spoilt]
    assert sorted(own) == sorted(exchanged)
    assert all(before != after for before, after in zip(own, exchanged, strict=True))
    assert all(prompt.sample.texts == sample.texts for prompt, sample in spoilt)


LIKE = {
    "group": lambda number: {"group": f"g{number // 8}"},
    "one word": lambda n: {"prompt": f"photo {n // 8} of {n // 8} and {n}"},
}


@pytest.mark.parametrize("fields", LIKE.values(), ids=LIKE)
def test_images_are_not_exchanged_between_like_prompts(picture, fields):
    prompts = [control_prompt(n, picture, **fields(n)) for n in range(48)]
    spoilt = spoilt_images(prompts, "exchanged")
    assert len(spoilt) == 20
    for prompt, sample in spoilt:
        partner = int(sample.images["output"].source.stem)
        assert partner // 8 != int(prompt.sample.id.uid[1:]) // 8


def test_prompts_that_are_all_alike_cannot_be_exchanged(picture):
    alike = [f"a square {number}" for number in range(24)]
    prompts = [control_prompt(n, picture, prompt=text) for n, text in enumerate(alike)]
    assert spoilt_images(prompts, "exchanged") == []
    degraded = spoilt_images(prompts, "degraded")
    assert len(degraded) == 20
    prompt, sample = degraded[0]
    assert digest(sample.images["output"]) != digest(prompt.sample.images["output"])


def test_the_baseline_chooses_the_prompts(picture):
    records = []
    for number in range(30):
        baseline = 0.02 if number < 3 else 0.4 + number / 100
        own = None if number == 29 else 0.9 - number / 100
        images = {"output": picture(number)}
        sample = a_sample(f"p{number}", "new", images=images, prompt=str(number))
        records += [
            replace(a_record(sample, a_verdict(own)), sample=sample),
            a_record(a_sample(f"p{number}", "old"), a_verdict(baseline)),
        ]
    prompts = control_prompts(records, "O", "new", "old", 0.05)
    found = [prompt.sample.id.uid for prompt in prompts]
    assert found == [f"p{number}" for number in range(28, 2, -1)]
    assert prompts[0].score == pytest.approx(0.62)


def digest_of(body):
    return hashlib.sha256(json.dumps(body).encode())


#: Score of a planted judge by the request, and the exit code of the gate.
JUDGES = {
    "constant": (lambda body: 8, 4),
    "zeros": (lambda body: 0, 4),
    "at random": (lambda body: 7 + digest_of(body).digest()[0] % 2, 4),
    "sees a degraded image": (lambda body: 1 if "image/jpeg" in str(body) else 8, 0),
}


@pytest.mark.parametrize("judge", JUDGES)
def test_a_build_passes_by_sight_alone(judge, tmp_path, monkeypatch, vieval):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vieval.yaml").write_text("statistics: {draws: 100}")
    monkeypatch.setenv("VIEVAL_CONFIG", "vieval.yaml")
    rows = [f"p{number},scene{number} of {number} lamps" for number in range(N)]
    (tmp_path / "prompts.csv").write_text("\n".join(["uid,prompt", *rows]))
    for folder, name in enumerate(("new", "old")):
        (tmp_path / name).mkdir()
        for number in range(N):
            path = tmp_path / name / f"p{number}.png"
            PIL.Image.new("RGB", (16, 16), (number, folder, 0)).save(path)
    score, code = JUDGES[judge]

    def reply(body):
        scores = [score(body)] * score_count(words_of(body))
        return json.dumps({"score": scores, "reasoning": digest_of(body).hexdigest()})

    control = "Positive control passed: " if code == 0 else "Positive control"
    with FakeServer(reply=reply) as server:
        gate = (
            *split("rank new old --prompts prompts.csv --margin 0.1"),
            *named(server),
        )
        shown = vieval(*gate, "--out", "v.jsonl", code=code).out
        assert control in shown
        vieval(*gate, "--no-control")
        again = ("rank", "v.jsonl", "--margin", "0.1", *named(server))
        shown = vieval(*again, code=code).out
        assert control in shown
