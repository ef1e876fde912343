"""A judge and the annotators are compared with the same other annotators."""

import itertools

import numpy as np
import pytest
from scipy import stats

from tests.runs import run_of
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.human_ceiling import compared_with_annotators
from vieval_plugin.meta_evaluation.image_model_agreement import human_agreement
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.report.answer import position_to
from vieval_plugin.stats.bootstrap import interval
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=300)
RNG = np.random.default_rng(4)
TRUTH = RNG.normal(size=(2, 60))
RATERS = TRUTH[:, None] + 0.7 * RNG.normal(size=(2, 3, 60))


def run(scores):
    """A judge's scores of two image models, shape (models, samples)."""
    rows = [
        (
            *("tie", f"m{m}", f"u{n:02}"),
            {"SC": scores[m][n]},
            {"SC": tuple(RATERS[m, :, n])},
        )
        for m, n in itertools.product(range(2), range(60))
    ]
    return run_of("judge", rows, ("SC",))


def by_definition(values):
    """What agrees with the other two annotators, of each image model and annotator in turn."""
    correlations = []
    for model, rater in itertools.product(range(2), range(3)):
        others = np.delete(RATERS[model], rater, axis=0).mean(axis=0)
        correlations.append(stats.spearmanr(values[model, rater], others).statistic)
    return np.tanh(np.mean(np.arctanh(correlations)))


def test_the_difference_is_its_definition():
    scores = TRUTH + 0.5 * RNG.normal(size=TRUTH.shape)
    found = compared_with_annotators(run(scores), "SC", ("SC",), OPTIONS)
    judge = by_definition(np.repeat(scores[:, None], 3, axis=1))
    assert found.value == pytest.approx(judge - by_definition(RATERS))
    assert found.low < found.value < found.high
    assert found.n == 120


@pytest.mark.parametrize(
    ("noise", "position"),
    [(0.01, "above"), (0.7, "not significantly above or below"), (5, "below")],
)
def test_a_judge_as_noisy_as_an_annotator_is_neither_above_nor_below(noise, position):
    scores = TRUTH + noise * np.random.default_rng(1).normal(size=TRUTH.shape)
    found = compared_with_annotators(run(scores), "SC", ("SC",), OPTIONS)
    assert position_to(found, Estimate(0.0)) == position


def test_one_annotator_is_no_ceiling():
    rows = [("tie", "m", f"u{n}", {"SC": n / 20}, {"SC": (0.5,)}) for n in range(20)]
    alone = run_of("judge", rows, ("SC",))
    assert compared_with_annotators(alone, "SC", ("SC",), OPTIONS) is None


def test_the_interval_of_agreement_allows_for_resamples_that_lie_above_it():
    """With few instructions, most resamples lie above the number."""
    rng = np.random.default_rng(2)
    rows = []
    for number in range(25):
        liked = rng.normal()
        for model in "abc":
            told = np.digitize(liked + 0.6 * rng.normal(size=3), [0.3, 1.5]) / 2
            ratings = {"SC": tuple(told.tolist())}
            rows.append(Observation(model, f"u{number:02}", ratings, {}, Status.OK))
    found = human_agreement(rows, ("SC",), "b/tie", OPTIONS)["SC"][0]
    low, high = interval(found.resamples)
    assert np.median(found.resamples) > found.value
    assert found.low < low
    assert found.low < found.value < found.high < high
