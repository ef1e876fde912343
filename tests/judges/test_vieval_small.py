"""vieval_small: two measurements a sample, and what became of them in the verdict."""

import pytest

from tests.playing import play
from vieval_plugin.judges.protocol import Failure, Image, Measurement, Sample, SampleId, Status
from vieval_plugin.judges.spec import NoOptions, missing_inputs_reason
from vieval_plugin.judges.vieval_small import SPEC, TRAINED_ON


def sample(kind, *roles, **texts):
    return Sample(SampleId("own", kind, "mine", "1"), {role: Image(role.encode()) for role in roles}, texts)


EDIT = sample("tie", "output", "source", instruction="add a hat")


def measured(**values):
    def answer(ask):
        return Measurement(
            values[ask.metric.removeprefix("vieval_small_")], by="small@1, trained on its own drawings only"
        )

    return answer


def judge():
    return SPEC.build(NoOptions(), None, "")


def test_consistency_sees_the_conditions_and_quality_the_output_alone():
    played = play(judge()(EDIT), answer=measured(sc=0.25, pq=1.0))
    consistency, quality = played.asks
    assert set(consistency.images) == {"output", "source"}
    assert consistency.texts == {"instruction": "add a hat", "kind": "tie"}
    assert (set(quality.images), dict(quality.texts)) == ({"output"}, {})
    assert played.verdict.scores == {"SC": 0.25, "PQ": 1.0, "O": 0.5}


def test_every_verdict_says_what_the_judge_was_trained_on():
    verdict = play(judge()(EDIT), answer=measured(sc=0.5, pq=0.5)).verdict
    assert TRAINED_ON in verdict.rationale
    assert all(TRAINED_ON in step.reason for step in verdict.trace)
    assert SPEC.setting_labels(NoOptions(), "") == (TRAINED_ON,)
    assert SPEC.training_benchmarks


@pytest.mark.parametrize("reply", [Failure(Status.TOOL_ERROR, "damaged"), Measurement(float("nan"))])
def test_what_could_not_be_measured_has_no_score_and_no_overall_one(reply):
    verdict = play(judge()(EDIT), [reply, Measurement(0.7)]).verdict
    assert (verdict.scores, verdict.status) == ({"PQ": 0.7}, Status.TOOL_ERROR)


@pytest.mark.parametrize(
    ("kind", "roles", "why"),
    [
        ("tie", ["output"], "no image source"),
        ("mie", ["output", "source"], "no image mask"),
        ("mcic", ["output", "concept_1"], "no image concept_2"),
        ("cig", ["output"], "no image control"),
        ("video", ["output"], "does not know the kind"),
    ],
)
def test_a_sample_that_lacks_something_is_not_judged(kind, roles, why):
    assert why in missing_inputs_reason(SPEC, sample(kind, *roles, instruction="x", prompt="x"))
