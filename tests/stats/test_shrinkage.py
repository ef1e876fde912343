"""Orders by shrunken corrections: never far below the judge's own, and people's where labels are many."""

import numpy as np
import pytest

from bench.labels_needed import recorded_tasks, right_pairs
from vieval_plugin.stats.prediction_powered import prediction_powered_mean
from vieval_plugin.stats.shrinkage import shrunken_means


def test_at_50_labels_of_a_task_the_order_is_better_than_by_the_judge_or_by_labels(shared_data):
    """GPT-4o and GPT-4v on ImagenHub: the judge alone, labels alone, corrected, and as generators are ranked."""
    pairs, runs = 57, 20
    for judge, least in (("GPT-4o zero-shot", 0.87), ("GPT-4v zero-shot", 0.87)):
        right = {
            number: np.mean(
                [
                    sum(right_pairs(task, number, np.random.default_rng([seed, number]), True) for task in tasks)
                    for seed in range(runs)
                ],
                axis=0,
            )
            / pairs
            for tasks in [recorded_tasks(shared_data, judge)]
            for number in (20, 50, 200)
        }
        for alone, *_, ranked in right.values():
            assert ranked >= alone - 0.01 - 0.5 / pairs  # the one pair of two generators is ordered as it was
        assert right[50][-1] >= least
        assert right[50][-1] >= right[50][1:3].max()
        assert right[200][-1] >= right[200][1] - 0.02


def test_a_common_gap_changes_no_order_and_sure_corrections_are_kept():
    rng = np.random.default_rng(0)
    prompts = rng.normal(0, 0.1, 400)
    quality, judged = np.array([0.7, 0.5, 0.3]), np.array([0.5, 0.6, 0.4])
    labels = [prediction_powered_mean(level + prompts, [0.0] * 400) for level in quality]
    assert shrunken_means(judged, labels) == pytest.approx(quality + prompts.mean(), abs=1e-6)
    few = [prediction_powered_mean(level + rng.normal(0, 0.5, 6), [0.0] * 6) for level in judged - 0.2]
    shrunken = shrunken_means(judged, few)
    assert np.argsort(shrunken).tolist() == np.argsort(judged).tolist()
    assert shrunken.mean() == pytest.approx(np.mean([mean.mean.value for mean in few]))
