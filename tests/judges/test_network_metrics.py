"""Judges that measure with a network: what they ask, and in which direction their numbers go."""

from dataclasses import replace

import pytest

from tests.playing import play, prepared
from vieval_plugin import Image, Sample, SampleId, Status
from vieval_plugin.judges.auto_metrics import NETWORK_METRICS, NETWORK_SPECS, verdict_of
from vieval_plugin.judges.protocol import Measure, Measurement
from vieval_plugin.judges.spec import missing_inputs_reason

METRIC = {metric.name: metric for metric in NETWORK_METRICS}
ROLES = ("output", "source", "mask", "subject", "control", "concepts")
IMAGES = {role: Image(role.encode()) for role in ROLES}
TEXTS = {"prompt": "a red toy", "instruction": "make it blue"}
TEXTS |= {"source_caption": "a red toy", "target_prompt": "a blue toy"}


def sample(kind):
    return Sample(SampleId("b", kind, "m", "u"), IMAGES, TEXTS)


def only_ask(judge, asked):
    """What a judge asks about a sample."""
    [ask] = play(prepared(judge).program(asked), [Measurement(0.5)]).asks
    return ask


@pytest.mark.parametrize("spec", NETWORK_SPECS, ids=lambda spec: spec.name)
def test_each_asks_the_scorer_of_its_name_and_is_reported_against_all(spec):
    assert spec.scored
    assert spec.against_all
    for kind in spec.needs:
        program = prepared(spec.name).program(sample(kind))
        played = play(program, [Measurement(0.5, "weights@1", ("truncated",))])
        [ask] = played.asks
        assert isinstance(ask, Measure)
        assert (ask.metric, ask.backbone) == (spec.name, spec.name)
        [step] = played.verdict.trace
        assert (step.scores, step.reason) == ((0.5,), "weights@1")


@pytest.mark.parametrize(
    ("judge", "kinds", "reference"),
    [
        ("clip_score", ["tig"], None),
        ("clip_i", ["mie", "tie", "sdig", "sdie", "mcic"], "subject"),
        ("dino", ["mie", "tie", "sdig", "sdie", "mcic"], "subject"),
        ("lpips", ["mie", "tie", "cig"], "source"),
    ],
)
def test_each_is_asked_on_the_kinds_of_the_paper(judge, kinds, reference):
    assert list(prepared(judge).spec.needs) == kinds
    ask = only_ask(judge, sample(kinds[0]))
    assert ask.images["image"] == Image(b"output")
    assert ask.images.get("reference") == (reference and Image(reference.encode()))
    assert ask.texts == ({} if reference else {"text": "a red toy"})


@pytest.mark.parametrize("judge", ["clip_i", "dino"])
def test_an_edit_is_compared_with_its_source(judge):
    shown = {role: IMAGES[role] for role in ("output", "source")}
    edit = replace(sample("tie"), images=shown)
    assert not missing_inputs_reason(prepared(judge).spec, edit)
    assert only_ask(judge, edit).images["reference"] == Image(b"source")


def test_the_direction_of_an_edit_needs_both_captions():
    ask = only_ask("clip_direction", sample("tie"))
    assert ask.texts == {"source_text": "a red toy", "output_text": "a blue toy"}
    assert ask.images["source"] == Image(b"source")
    bare = replace(sample("tie"), texts={"source_caption": "a red toy"})
    spec = prepared("clip_direction").spec
    lacking = "output_caption or target_prompt"
    assert lacking in missing_inputs_reason(spec, bare)


def test_a_sample_without_a_prompt_is_not_applicable():
    bare = replace(sample("tig"), texts={"prompt": " "})
    verdict = play(prepared("clip_score").program(bare)).verdict
    assert verdict.status is Status.NOT_APPLICABLE
    assert verdict.reason == "the sample has no prompt text"


def test_a_distance_is_turned_round_and_two_that_differ_stay_apart():
    distances = [0.0, 0.021079, 0.02108, 0.999999, 1.0, 1.176306]
    scores = [score_of("lpips", distance) for distance in distances]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)
    assert scores[-1] < 0 < scores[2]
    assert all(-1 <= score <= 1 for score in scores)


def score_of(name, value):
    return verdict_of(METRIC[name], Measurement(value)).scores["SC"]


@pytest.mark.parametrize("name", ["clip_score", "clip_i", "clip_direction", "dino"])
def test_a_similarity_keeps_its_value(name):
    for value, score in ((-0.1, -0.1), (0.25, 0.25), (1.0, 1.0), (1.0001, 1.0)):
        assert score_of(name, value) == score
