"""Labels, preferences and compositional scores against their definitions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stats.draws import draws_of
from tests.tables import table
from vieval_plugin.stats import binary
from vieval_plugin.stats.votes import mean

levels = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
scores = levels | st.sampled_from([-math.inf, math.inf])
labelled = st.lists(st.tuples(st.sampled_from([0, 1]), scores), min_size=1, max_size=25)


@given(labelled)
def test_auroc_is_the_share_of_pairs_won(rows):
    ones, zeros = (
        [score for label, score in rows if label == wanted] for wanted in (1, 0)
    )
    pairs = itertools.product(ones, zeros)
    won = [(one > zero) + (one == zero) / 2 for one, zero in pairs]
    found = binary.auroc(*zip(*rows, strict=True))
    assert found == pytest.approx(np.mean(won) if won else math.nan, nan_ok=True)
    assert not won or 0 <= found <= 1


@given(labelled, st.integers(0, 5))
def test_resampled_auroc_equals_repeating_the_items(rows, seed):
    labels, scores = map(np.array, zip(*rows, strict=True))
    counts = draws_of(len(rows), seed)
    slow = [binary.auroc(np.repeat(labels, c), np.repeat(scores, c)) for c in counts]
    np.testing.assert_array_equal(binary.resampled_auroc(labels, scores, counts), slow)


@pytest.mark.parametrize(*table("preference_points.jsonl"))
def test_points_of_a_preference_pair(label, first, second, points):
    assert binary.preference_points([label], [first], [second]) == points


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (binary.auroc, ([0, 2], [1, 2]), "0 or 1"),
        (binary.auroc, ([0, 1], [1, math.nan]), "leave out items"),
        (binary.auroc, ([0, 1], [1, 2, 3]), "same length"),
        (binary.preference_points, ([0.3], [1], [2]), "a tie"),
        (binary.preference_points, ([1], [math.nan], [2]), "leave out items"),
        (binary.right_points, (np.zeros((3, 2)),), "2 images, 2 texts"),
    ],
)
def test_bad_labels_and_scores_are_refused(function, arguments, said):
    with pytest.raises(ValueError, match=said):
        function(*arguments)


@pytest.mark.parametrize(
    ("scores", "text_image_group"),
    [
        ([[0.9, 0.1], [0.2, 0.8]], [1, 1, 1]),
        ([[0.9, 0.8], [0.3, 0.4]], [1, 0, 0]),
        ([[0.9, 0.3], [0.8, 0.4]], [0, 1, 0]),
        ([[0.5, 0.5], [0.5, 0.5]], [0, 0, 0]),
        ([[0.9, 0.9], [0.2, 0.8]], [0, 0, 0]),
        ([[0.9, math.nan], [0.2, 0.8]], [math.nan] * 3),
    ],
)
def test_text_and_image_score_differ_in_what_is_compared(scores, text_image_group):
    found = np.concatenate(binary.right_points([scores]))
    np.testing.assert_array_equal(found, text_image_group)


@given(st.lists(levels | st.just(math.nan), min_size=1, max_size=25), st.integers(0, 5))
def test_resampled_mean_equals_repeating_the_items(values, seed):
    counts = draws_of(len(values), seed)
    slow = [mean(np.repeat(values, c)) for c in counts]
    np.testing.assert_array_equal(binary.resampled_mean(values, counts), slow)
