"""Orders by few labels: the judge's without any, people's with many."""

import numpy as np
import pytest

from bench.labels_needed import recorded_tasks, right_pairs
from vieval_plugin.stats.shrinkage import OrderLabels, order_values

#: Judge, labels of a task, and the least share of pairs in people's order (by the judge alone .877,
#: .772 and .593).
RECORDED = [
    ("GPT-4o zero-shot", 20, 0.84),
    ("GPT-4o zero-shot", 50, 0.875),
    ("GPT-4v zero-shot", 20, 0.79),
    ("GPT-4v zero-shot", 50, 0.865),
    ("LLaVA zero-shot", 20, 0.71),
    ("LLaVA zero-shot", 50, 0.84),
]


@pytest.mark.parametrize(("judge", "number", "least"), RECORDED)
def test_few_labels_order_pairs_of_recorded_judges(shared_data, judge, number, least):
    tasks = recorded_tasks(shared_data, judge)
    runs = []
    for seed in range(20):
        drawn = [np.random.default_rng([seed, number]) for _ in tasks]
        rights = zip(tasks, drawn, strict=True)
        runs.append(sum(right_pairs(task, number, rng, True) for task, rng in rights))
    counts = [len(np.unique(task.generators)) for task in tasks]
    pairs = sum(n * (n - 1) // 2 for n in counts)
    assert np.mean(runs, axis=0)[-1] / pairs >= least


def labels(ratings, scores, prompts=None):
    """Labels of each generator's images, of the same prompts where none are named."""
    sizes = [len(of_generator) for of_generator in ratings]
    generators = np.repeat(np.arange(len(ratings)), sizes)
    each = np.concatenate([np.arange(size) for size in sizes])
    numbers = each if prompts is None else np.asarray(prompts)
    given = np.concatenate(scores), np.concatenate(ratings)
    return OrderLabels(*given, generators, numbers)


def test_a_common_gap_changes_no_order_and_sure_labels_are_kept():
    rng = np.random.default_rng(0)
    judged, people = np.array([0.5, 0.6, 0.4]), np.array([0.7, 0.5, 0.3])
    prompts = rng.normal(0, 0.1, 400)
    scores = [level + rng.normal(0, 0.1, 400) for level in judged]
    ratings = [level + prompts + rng.normal(0, 0.1, 400) for level in people]
    many = labels(ratings, scores)
    assert order_values(judged, many) == pytest.approx(people - people.mean(), abs=0.02)
    lower = labels([score - 0.2 for score in scores], scores)
    found = np.argsort(order_values(judged, lower)).tolist()
    assert found == np.argsort(judged).tolist()


@pytest.mark.parametrize("sizes", [(0, 0, 0), (1, 1, 1), (9, 1, 0)])
def test_generators_with_fewer_than_two_labels_go_by_the_judge(sizes):
    rng = np.random.default_rng(1)
    judged = np.array([0.3, 0.6, 0.5])
    ratings = [np.full(size, 0.5) for size in sizes]
    scores = [rng.uniform(size=size) for size in sizes]
    values = order_values(judged, labels(ratings, scores))
    assert np.argsort(values).tolist() == [0, 2, 1]


def test_labels_of_different_prompts_have_errors():
    """Each prompt has one label, so no difference between prompts cancels."""
    rng = np.random.default_rng(2)
    ratings = [rng.uniform(size=4), rng.uniform(size=4)]
    apart = labels(ratings, [np.full(4, 0.6), np.full(4, 0.4)], prompts=range(8))
    judged = np.array([0.6, 0.4])
    means = np.array([of_generator.mean() for of_generator in ratings])
    difference = np.diff(order_values(judged, apart))[0]
    ends = sorted([-0.6 * 0.2, np.diff(means)[0]])
    assert ends[0] <= difference <= ends[1]
