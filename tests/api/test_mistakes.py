"""Mistakes that are easily made in Python: each is a VievalError in one line, with what is
wanted.
"""

import re
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from tests.refusals import refusal
from vieval_plugin import (
    Backbone,
    Contest,
    Image,
    Judge,
    Sample,
    SampleId,
    VievalError,
    Votes,
    evaluate,
    score_matrix,
)

ID = SampleId("own", "tig", "m", "1")
OUTPUT = {"output": Image(b"x")}
SAMPLE = Sample(ID, OUTPUT, {"prompt": "x"})
PIXELS = np.zeros((2, 16, 16, 3), np.uint8)
SERVER = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
NO_STORE = {"store": {"use": False}}


@pytest.fixture(scope="module")
def judge():
    return Judge("sharpness", options=NO_STORE)


IN_SAMPLES = [
    (
        lambda: Sample(images={"output": "x.png"}),
        "Sample: missing a required argument: 'id'; it needs id: SampleId, images",
    ),
    (
        lambda: Sample(ID, {"output": "x.png"}),
        r"Sample.images\['output'\] is str 'x.png'; pass Images by role",
    ),
    (
        lambda: Sample(ID, {0: Image(b"x")}),
        "a key of Sample.images is int 0; pass Images by role",
    ),
    (lambda: Sample(ID, [Image(b"x")]), "Sample.images is list; pass Images by role"),
    (lambda: Sample("1", OUTPUT), r"Sample.id is str '1'; pass SampleId\("),
    (
        lambda: Sample(ID, OUTPUT, "a cat"),
        "Sample.texts is str 'a cat'; pass strings by name",
    ),
    (
        lambda: Sample(ID, OUTPUT, {"prompt": None}),
        r"Sample.texts\['prompt'\] is NoneType",
    ),
    (
        lambda: Sample(ID, OUTPUT, prompt="a cat"),
        "unexpected keyword argument 'prompt'; .*may have texts, ratings",
    ),
    (
        lambda: Sample(ID, OUTPUT, ratings={"SC": 0.5}),
        r"Sample.ratings\['SC'\] is float 0.5; pass a tuple of numbers for each",
    ),
    (
        lambda: Sample(ID, OUTPUT, tags="a"),
        "Sample.tags is str 'a'; pass a tuple of strings",
    ),
    (lambda: Sample(ID, OUTPUT, kind=None), "Sample.kind is NoneType; pass a string"),
    (lambda: SampleId("own", "tig", "m", 1), "SampleId.uid is int 1; pass a string"),
    (
        lambda: SampleId("own", "tig", None, "1"),
        "SampleId.image_model is NoneType; pass a string, which may be empty",
    ),
    (
        lambda: SampleId("own", "tig", "m", "1", "0"),
        "SampleId.draw is str '0'; pass a whole number",
    ),
    (lambda: Image("x.png"), "Image.source is str 'x.png'; pass a pathlib.Path"),
    (lambda: Image(PIL.Image.new("RGB", (2, 2))), "Image.source is PIL.Image.Image"),
    (lambda: Contest("1", (SAMPLE, SAMPLE)), "Contest.id is str '1'; pass SampleId"),
    (
        lambda: Contest(ID, SAMPLE),
        "Contest.candidates is vieval_plugin.judges.protocol.Sample; pass a tuple of at least 2 Samples",
    ),
    (
        lambda: Contest(ID, [OUTPUT, OUTPUT]),
        r"Contest.candidates\[0\] is dict; pass a tuple of at least 2 Samples",
    ),
    (
        lambda: Contest(ID, (SAMPLE, SAMPLE), "first"),
        r"Contest.votes is str 'first'; pass Votes\(",
    ),
    (
        lambda: Votes("two_way", "first", "first"),
        "Votes.annotators is str 'first'; pass a tuple of strings, one for each",
    ),
    (
        lambda: Votes(2),
        "Votes.scheme is int 2; pass one of four_way, three_way, two_way, ranking",
    ),
]

IN_JUDGES = [
    (
        lambda: Judge("viescore", "gpt-4o"),
        "Judge: too many positional arguments; it may have name, model=, base_url=",
    ),
    (lambda: Judge(None), r"Judge\(name\) is NoneType; pass a judge's name"),
    (lambda: Judge("viescor"), "unknown judge 'viescor'; did you mean viescore"),
    (lambda: Judge(setting="2shot"), "unknown setting '2shot' of viescore"),
    (lambda: Judge(image_format="gif"), '`image_format` must be "png" or "jpeg"'),
    (
        lambda: Judge(attempts=True),
        "`attempts` must be at least 1, got True",
    ),
    (lambda: Judge(modle="x"), "Judge has no argument 'modle'; did you mean model"),
    (lambda: Judge(model="x"), "model and base_url must be passed together"),
    (
        lambda: Judge(num_concurrent=3),
        "num_concurrent applies to a backbone; pass model and base_url too",
    ),
    (lambda: Judge(timeout=-1, **SERVER), "timeout: Input should be greater than 0"),
    (
        lambda: Judge(timeout=float("inf"), **SERVER),
        "timeout: Input should be a finite number",
    ),
    (lambda: Judge(api_key_env="sk-secret", **SERVER), "api_key_env: (?!.*secret)"),
    (
        lambda: Judge(model=Backbone(**SERVER)),
        r"Judge\(model\) is vieval_plugin.config.Backbone; pass a text",
    ),
    (
        lambda: Judge(backbone=Backbone(**SERVER)),
        "Judge has no argument 'backbone'; known arguments: model, base_url",
    ),
    (
        lambda: Judge(api_key="x", **SERVER),
        "no argument 'api_key'; did you mean api_key_env",
    ),
    (
        lambda: Judge(model="m", base_url="localhost:8000"),
        "base_url: must be an address",
    ),
    (lambda: Judge(fresh="no"), r"Judge\(fresh\) is str 'no'; pass True or False"),
    (lambda: Judge(scorer="/weights"), "viescore does not use a network"),
    (
        lambda: Judge("clip_score", scorer=Path("/weights")),
        r"Judge\(scorer\) is pathlib\.(_local\.)?PosixPath; pass a text",
    ),
    (
        lambda: Judge(options="vieval.yaml"),
        "options is str 'vieval.yaml'; pass a mapping .*or set VIEVAL_CONFIG to a file",
    ),
    (
        lambda: Backbone(model="m"),
        "Backbone: base_url: Field required; known fields: model",
    ),
    (
        lambda: Backbone("m", "http://x/v1"),
        "Backbone takes keyword arguments only; known fields: model, base_url",
    ),
    (
        lambda: Backbone(temprature=1, **SERVER),
        "Backbone: temprature: Extra inputs are not permitted; known fields:",
    ),
]

IN_CALLS = [
    (
        lambda judge: judge.score(PIXELS),
        "Judge.score: missing a required argument: 'prompts'",
    ),
    (
        lambda judge: judge.score(PIXELS, "x", "PQ"),
        "Judge.score: too many positional arguments; .*may have aspect=",
    ),
    (
        lambda judge: judge.score([PIXELS[0], "x.png"], "x"),
        r"images\[1\]: no such file: x.png",
    ),
    (
        lambda judge: judge.compare(PIXELS[:1], ["x.png"], "x"),
        r"images b\[0\]: no such file: x.png",
    ),
    (
        lambda judge: judge.score(PIXELS[0], ["x"]),
        "prompts is list; pass one string for one image, or a list of images",
    ),
    (
        lambda judge: judge.score(PIXELS, "x", aspect=3),
        "unknown aspect 3; the judge rates PQ",
    ),
    (lambda judge: judge(PIXELS), "sample 0: numpy.ndarray is not a sample; pass"),
    (
        lambda judge: judge([SAMPLE]).preferences(),
        "these verdicts are on single samples; use `scores`",
    ),
    (
        lambda judge: judge([SAMPLE]).preferences("Q"),
        "unknown aspect 'Q'; the judge rates PQ",
    ),
]

IN_FUNCTIONS = [
    (
        lambda: evaluate(SAMPLE),
        "samples is vieval_plugin.judges.protocol.Sample; pass a list of Sample or Contest",
    ),
    (
        lambda: evaluate([{"images": OUTPUT}]),
        r"samples\[0\] is dict; pass a list of Sample or Contest",
    ),
    (
        lambda: evaluate([SAMPLE], "viescore"),
        "evaluate: too many positional arguments; .*may have judge=",
    ),
    (
        lambda: evaluate([SAMPLE], judge=Judge("sharpness")),
        "judge is vieval_plugin.api.judge.Judge; pass the name",
    ),
    (
        lambda: evaluate([SAMPLE], backbone="gpt-4o"),
        r"backbone is str 'gpt-4o'; pass Backbone\(model=..., base_url=...\)",
    ),
    (
        lambda: evaluate([SAMPLE], options="x.yaml"),
        "options is str 'x.yaml'; pass a mapping",
    ),
    (
        lambda: evaluate([SAMPLE], options={"stor": 1}),
        "unknown option stor; did you mean store",
    ),
    (
        lambda: evaluate([SAMPLE], progress=True),
        r"progress is bool True; pass a Progress",
    ),
    (
        lambda: score_matrix("x.png", ["x"]),
        "images is str 'x.png'; pass a list of Image",
    ),
    (
        lambda: score_matrix([Image(b"x")], "a cat"),
        "texts is str 'a cat'; pass a list of strings",
    ),
    (
        lambda: score_matrix([Image(b"x")], ["x"], judge="sharpness"),
        "requires a judge that rates SC, but sharpness rates PQ",
    ),
    (
        lambda: score_matrix([Image(b"x")], ["x"], judge="pairwise"),
        "pairwise rates no single image",
    ),
]


@pytest.mark.parametrize(("call", "message"), [*IN_SAMPLES, *IN_JUDGES, *IN_FUNCTIONS])
def test_a_mistake_is_one_line(call, message):
    assert re.search(message, refusal(call))


@pytest.mark.parametrize(("call", "message"), IN_CALLS)
def test_a_mistake_in_a_call_is_one_line(judge, call, message):
    assert re.search(message, refusal(call, judge))


def test_a_password_in_an_address_is_not_repeated():
    with pytest.raises(VievalError, match="pass a pathlib.Path") as raised:
        Image("https://me:secret-word@example.org/a.png")
    assert "secret-word" not in str(raised.value)


def test_errors_of_the_users_own_code_stay_what_they_are(judge):
    def broken():
        yield PIXELS[0]
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        judge.score(broken(), "x")


def test_lists_serve_where_tuples_are_kept():
    contest = Contest(
        ID, [SAMPLE, SAMPLE], Votes("two_way", "first", ["first"]), tags=("a",)
    )
    assert contest.candidates == (SAMPLE, SAMPLE)
    assert contest.votes.annotators == ("first",)
    assert Sample(ID, OUTPUT, tags=["a"]).tags == ("a",)


def test_options_of_evaluate_may_be_a_mapping():
    [verdict] = evaluate([SAMPLE], judge="sharpness", options=NO_STORE)
    assert "not an image" in verdict.reason
