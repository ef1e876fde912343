"""Pairwise accuracy of generators: by hand, by random signs, and on recorded logs."""

import itertools
import math

import numpy as np
import pytest

from vieval_plugin.benchmarks import registry
from vieval_plugin.meta_evaluation.image_model_agreement import generator_pairs
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.results.published.judges import published_judges, run_of
from vieval_plugin.stats.generator_pairs import (
    PairAgreement,
    accuracy_over_pairs,
    pair_agreement,
    sign_flip_p,
)


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.1])
def test_p_is_that_of_random_signs(shift):
    rng = np.random.default_rng(3)
    differences = rng.choice([-0.5, 0.0, 0.1, 0.7], 160) - 0.05 + shift
    flipped = rng.choice([-1.0, 1.0], (40_000, 160)) @ differences
    total = differences.sum()
    expected = (flipped > total).mean() / 2 + (flipped >= total).mean() / 2
    assert sign_flip_p(differences) == pytest.approx(expected, abs=0.01)


def test_soft_agreement_forgives_what_nobody_can_tell_and_hard_does_not():
    rng = np.random.default_rng(0)
    level = rng.normal(0, 1, 100)
    level -= level.mean() - 1e-3
    clear = np.full(100, 0.5)
    same = pair_agreement(0, 1, clear, clear)
    opposite = pair_agreement(0, 1, clear, -clear)
    unsure = pair_agreement(0, 1, level, -level)
    assert (same.hard, opposite.hard, unsure.hard) == (1, 0, 0)
    assert (round(same.soft, 6), round(opposite.soft, 6)) == (1, 0)
    assert unsure.soft > 0.98
    assert pair_agreement(0, 1, [0.0, 0.0], clear).hard == 0.5


TRIPLE = [PairAgreement(i, j, 1.0, 1.0) for i, j in itertools.combinations(range(3), 2)]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([(3, TRIPLE)], "needs 4 generators, got 3"),
        ([(3, TRIPLE)] * 3, "needs 10 pairs, got 9"),
        ([(5, [])], "no sample has scores of two generators"),
    ],
)
def test_too_few_generators_or_pairs_have_no_value_and_say_why(parts, reason):
    for accuracy in accuracy_over_pairs(parts, 50, 0):
        assert (math.isnan(accuracy.value), accuracy.reason) == (True, reason)
    assert accuracy_over_pairs([(3, TRIPLE)] * 4, 50, 0)[0].value == 1


def test_the_interval_is_that_of_generators_and_not_of_pairs():
    """One of ten generators is misjudged against all others: its pairs come and go together."""
    pairs = [
        PairAgreement(i, j, float(i > 0), float(i > 0))
        for i, j in itertools.combinations(range(10), 2)
    ]
    hard, _ = accuracy_over_pairs([(10, pairs)], 2000, 0)
    assert hard.value == pytest.approx(36 / 45)
    as_if_independent = 2 * 1.96 * math.sqrt(0.8 * 0.2 / 45)
    assert hard.high == 1
    assert hard.high - hard.low > 1.3 * as_if_independent


def test_gpt_4o_orders_image_models_of_imagenhub_nearly_as_people_do(shared_data):
    """On O, with failures left out of a judge's differences."""
    known = registry.benchmark("imagenhub")
    parts = known.parts
    judged = [sample for part in parts for sample in known.load(shared_data, part)]
    judges = {judge.title: judge for judge in published_judges("imagenhub")}
    run = run_of(judges["GPT-4o zero-shot"], shared_data, judged)
    observed = [list(map(observe, rows)) for rows in run.records.values()]
    parts = [generator_pairs(rows, "O") for rows in observed]
    hard, soft = accuracy_over_pairs(parts, 200, 0)
    assert (hard.n, round(hard.value, 3), round(soft.value, 3)) == (57, 0.877, 0.864)
    assert hard.low < hard.value < hard.high
