"""Pairwise accuracy against its definition, against printed numbers, and at size."""

import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.stats.draws import draws_of
from tests.stored_results import csv_rows
from vieval_plugin.stats import bootstrap, correlation, pairwise

few = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7, 1.0])
many = st.floats(-1e6, 1e6)
items = st.lists(st.tuples(few | many, st.integers(0, 3)), min_size=2, max_size=20)
SIZES = [(16, 250_000, 16_000_000), (6, 10, 1), (5, 1, 10), (1, 30, 60)]
BOUNDS = ("_BIN_BITS", "_PAIRS_AT_ONCE", "_PAIRS_HELD")
sizes = st.sampled_from(SIZES)


def by_definition(metric, human, epsilon):
    i, j = np.triu_indices(len(metric), 1)
    apart, wanted = np.abs(metric[i] - metric[j]), np.sign(human[i] - human[j])
    said = np.where(apart <= epsilon, 0, np.sign(metric[i] - metric[j]))
    return np.mean(said == wanted)


def best_by_definition(metric, human):
    i, j = np.triu_indices(len(metric), 1)
    candidates = np.unique(np.append(np.abs(metric[i] - metric[j]), 0.0))
    values = [by_definition(metric, human, epsilon) for epsilon in candidates]
    return max(values), candidates[np.argmax(values)]


def columns(rows):
    return (np.array(column, dtype=float) for column in zip(*rows, strict=True))


@given(items, sizes)
@example([(0.5, 1), (0.5, 1)], SIZES[0])
@example([(0.1, 0), (0.4, 0), (0.2, 1)], (2, 1, 1))
def test_calibration_is_its_definition(rows, size):
    metric, human = columns(rows)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(BOUNDS, size, strict=True):
            patch.setattr(pairwise, name, value)
        found = pairwise.calibrated(metric, human)
    assert found == best_by_definition(metric, human)
    assert 0 <= found.accuracy <= 1
    assert found.accuracy == by_definition(metric, human, found.epsilon)


@pytest.mark.parametrize("bits", [6, 16])
@pytest.mark.parametrize("decimals", [1, 2, 15])
def test_calibration_of_some_quality_is_its_definition(monkeypatch, bits, decimals):
    monkeypatch.setattr(pairwise, "_BIN_BITS", bits)
    monkeypatch.setattr(pairwise, "_PAIRS_HELD", 100)
    rng = np.random.default_rng(bits)
    quality = rng.normal(size=60)
    human = np.digitize(quality, [-0.4, 1.5]).astype(float)
    metric = np.round(quality + 0.3 * rng.normal(size=60), decimals)
    found = pairwise.calibrated(metric, human)
    assert found == best_by_definition(metric, human)
    assert found.epsilon > 0


@given(items, st.sampled_from([0.0, 0.1, 0.5]), st.integers(0, 5))
def test_resampled_accuracy_equals_repeating_the_items(rows, epsilon, seed):
    metric, human = columns(rows)
    groups = [str(i // 2) for i in range(len(rows))]
    counts = bootstrap.cluster_counts(groups, resamples=5, seed=seed)
    repeated = [(np.repeat(metric, c), np.repeat(human, c)) for c in counts]
    slow = [
        by_definition(m, h, epsilon) if len(m) > 1 else math.nan for m, h in repeated
    ]
    fast = pairwise.resampled_accuracy(metric, human, epsilon, counts)
    np.testing.assert_array_equal(fast, slow)


def test_resampled_accuracy_works_in_blocks(monkeypatch):
    rng = np.random.default_rng(1)
    metric, human = rng.random(50), rng.integers(0, 3, 50)
    counts = draws_of(50, 3, draws=40)
    whole = pairwise.resampled_accuracy(metric, human, 0.1, counts)
    monkeypatch.setattr(correlation, "_CELLS_AT_ONCE", 350)
    again = pairwise.resampled_accuracy(metric, human, 0.1, counts)
    np.testing.assert_array_equal(again, whole)


@pytest.mark.parametrize(
    ("metric", "human", "expected"),
    [
        ([1, 2, 4], [3, 3, 3], (1.0, 3.0)),  # tying all is best where humans tie all
        ([1, 2, 4], [5, 6, 7], (1.0, 0.0)),
        ([2, 2, 2], [5, 6, 7], (0.0, 0.0)),
        ([0.0, 5e-324, 1e-300, 1.0, 1e300], [1, 1, 1, 1, 2], (1.0, 1.0)),
    ],
)
def test_calibration_by_hand(metric, human, expected):
    assert pairwise.calibrated(metric, human) == expected


@pytest.mark.parametrize("scores", [[], [1.0]])
def test_without_a_pair_it_is_undefined(scores):
    assert all(math.isnan(number) for number in pairwise.calibrated(scores, scores))
    counts = np.ones((2, len(scores)), dtype=int)
    assert np.isnan(pairwise.resampled_accuracy(scores, scores, 0.0, counts)).all()


COUNTS = np.ones((1, 2), dtype=int)
WIDE = np.ones((4, 3), dtype=int)


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (pairwise.calibrated, ([1, math.nan], [1, 2]), "finite"),
        (pairwise.calibrated, ([1, 2, 3], [1, 2]), "same length"),
        (pairwise.resampled_accuracy, ([1, 2], [1, math.inf], 0.0, COUNTS), "finite"),
        (pairwise.resampled_accuracy, ([1, 2], [1, 2], -0.1, COUNTS), "epsilon"),
        (pairwise.resampled_accuracy, ([1, 2], [1, 2], math.nan, COUNTS), "epsilon"),
        (pairwise.resampled_accuracy, ([1, 2], [1, 2], 0.0, WIDE), "counts must have"),
    ],
)
def test_bad_input_is_refused(function, arguments, said):
    with pytest.raises(ValueError, match=said):
        function(*arguments)


@pytest.mark.parametrize(
    ("name", "accuracy", "tau"),
    [
        ("CLIP Score", 59.9, 23.6),
        ("X-CLIP Score", 56.9, 17.5),
        ("BLIP-BLEU", 53.0, 10.4),
        ("T2VScore-A (GPT-4V)", 61.4, None),
    ],
)
def test_the_printed_numbers_of_video_metrics(shared_data, name, accuracy, tau):
    # VQAScore, Table 5a: all pairs of the 2,543 videos, also of different prompts; each has one
    # human score
    folder = shared_data / "t2v_metrics"
    text = (folder / "t2vscore_alignment_score.json").read_text(encoding="utf-8")
    rated = json.loads(text)
    rows = csv_rows(folder / "t2vscore_results.csv")
    metric = np.array([float(row[name]) for row in rows])
    people = [rated[row["video_id"]]["models"][row["model_name"]] for row in rows]
    human = np.array([np.mean(ratings) for ratings in people])
    assert len(rows) == 2543
    assert round(100 * pairwise.calibrated(metric, human).accuracy, 1) == accuracy
    if tau is not None:
        assert round(100 * correlation.correlation(metric, human, "kendall"), 1) == tau
