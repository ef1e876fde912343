"""Calibration on recorded scores: acceptance, and held-out predictions."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from bench.labels_needed import (
    JUDGES,
    RecordedTask,
    calibrated_kinds,
    draw_labels,
    recorded_tasks,
)
from vieval_plugin.stats.calibration import (
    Improvement,
    Labels,
    held_out,
    improvement,
    isotonic_fit,
    refused_kinds,
    tied_share,
)
from vieval_plugin.stats.estimate import Estimate

RUNS = 20


@pytest.fixture(scope="module")
def tasks(shared_data):
    return {name: recorded_tasks(shared_data, name) for name in JUDGES}


def acceptances(tasks, labels, make=lambda task, rng: task):
    """Runs in which a calibration of so many labels a task is accepted."""
    wins = 0
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        drawn = [draw_labels(make(task, rng), labels, rng) for task in tasks]
        wins += calibrated_kinds(drawn, seed) is not None
    return wins


def test_gpt_4o_is_accepted_and_noise_is_not(tasks):
    def noise(task, rng):
        return RecordedTask(task.kind, rng.uniform(size=len(task.ratings)), *task[2:])

    def calibrated(task, rng):
        fit = isotonic_fit(task.scores, task.ratings)
        return RecordedTask(task.kind, np.interp(task.scores, *fit), *task[2:])

    gpt_4o, llava = tasks["GPT-4o zero-shot"], tasks["LLaVA zero-shot"]
    most = binom.ppf(0.999, RUNS, 0.05)
    assert acceptances(gpt_4o, 50) >= binom.ppf(0.001, RUNS, 0.8)
    assert acceptances(llava, 50) <= most
    for make in (noise, calibrated):
        assert acceptances(gpt_4o, 50, make) <= most
        assert acceptances([gpt_4o[0]], 200, make) <= most


def test_a_held_out_label_is_in_no_prediction_of_its_prompt_or_generator(tasks):
    rng = np.random.default_rng(3)
    labels = draw_labels(tasks["GPT-4o zero-shot"][0], 60, rng)
    for by_generator in (False, True):
        before = held_out(labels, 5, by_generator)
        for number in (0, 17, 42):
            others = labels.ratings.copy()
            same = np.array(labels.prompts) == labels.prompts[number]
            if by_generator:
                same |= np.array(labels.generators) == labels.generators[number]
            others[same] = 1 - others[same]
            after = held_out(labels._replace(ratings=others), 5, by_generator)
            for earlier, later in zip(before, after, strict=True):
                assert later[number] == earlier[number]
        assert not np.isnan(before).any()


def test_the_constant_is_that_of_the_task_type_so_that_knowing_the_task_is_no_gain():
    """Two task types whose ratings differ, and a judge that says nothing within each."""
    rng = np.random.default_rng(0)
    kinds = ["tig"] * 100 + ["tie"] * 100
    ratings = np.where(np.array(kinds) == "tig", 0.8, 0.2) + rng.normal(0, 0.05, 200)
    prompts = [str(n) for n in range(200)]
    labels = Labels(rng.uniform(size=200), ratings, kinds, prompts, ["one"] * 200)
    better = improvement(labels, held_out(labels, 0), 500, 0)
    assert better.over_raw.high < 0
    assert not better.accepted


def test_a_fit_is_the_best_increasing_one_and_a_generator_alone_cannot_be_left_out():
    rng = np.random.default_rng(1)
    scores, ratings = rng.integers(0, 11, 80) / 10, rng.uniform(size=80)
    knots = isotonic_fit(scores, ratings)
    assert (np.diff(knots[0]) > 0).all()
    assert (np.diff(knots[1]) >= 0).all()
    error = ((np.interp(scores, *knots) - ratings) ** 2).sum()
    tenths = np.arange(11) / 10
    for _ in range(200):
        moved = np.interp(tenths, *knots) + rng.normal(0, 0.05, 11)
        other = np.sort(np.clip(moved, 0, 1))
        found = ((np.interp(scores, tenths, other) - ratings) ** 2).sum()
        assert found >= error - 1e-12
    prompts = [str(n) for n in range(80)]
    alone = Labels(scores, ratings, ["tig"] * 80, prompts, ["one"] * 80)
    assert np.isnan(held_out(alone, 0, by_generator=True)).all()
    assert alone._replace(kinds=["tig"] * 51 + ["tie"] * 29).large_kinds == ["tig"]


def test_a_task_type_of_noise_is_refused_by_its_own_labels():
    """Two task types that a judge knows, one of noise, and one with few labels."""
    refused = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        kinds = ["tig"] * 100 + ["tie"] * 100 + ["cig"] * 60 + ["mie"] * 10
        people = rng.uniform(size=len(kinds))
        noise = rng.uniform(size=len(kinds))
        scores = np.where(np.array(kinds) == "cig", noise, people**3)
        prompts = [f"{kind}{n}" for n, kind in enumerate(kinds)]
        labels = Labels(scores, people, kinds, prompts, ["one"] * len(kinds))
        predicted = held_out(labels, seed)
        assert improvement(labels, predicted, 200, seed).accepted
        refused += refused_kinds(labels, predicted, 200, seed)
    assert {*refused} == {"cig"}
    assert len(refused) >= 18


def test_the_named_number_of_labels_mostly_does(tasks):
    task = tasks["GPT-4o zero-shot"][0]

    def drawn(number, seed):
        return draw_labels(task, number, np.random.default_rng(seed))

    few = [drawn(50, seed) for seed in range(30)]
    refused = [better for better in map(compared, few) if not better.accepted]
    needed = [better.labels_needed(50) for better in refused]
    known = [number for number in needed if number]
    assert len(known) >= len(refused) / 2
    enough = [calibrated_kinds([drawn(n, n)], 0) is not None for n in known]
    assert np.mean(enough) >= 0.5
    random = np.random.default_rng(0).uniform(size=50)
    noise = [compared(labels._replace(scores=random)) for labels in few]
    assert sum(better.labels_needed(50) is not None for better in noise) <= 8


def compared(labels):
    return improvement(labels, held_out(labels, 0), 300, 0)


@pytest.mark.parametrize(
    ("over_constant", "apparent", "needed"),
    [
        (Estimate(-0.02, -0.03, -0.01), (-0.02, -0.02), 50),
        (Estimate(-0.01, -0.03, 0.01), (-0.02, -0.01), 410),
        (Estimate(-0.01, -0.03, 0.01), (-0.02, -0.03), 150),
        (Estimate(0.01, -0.01, 0.03), (-0.02, -0.005), None),
    ],
)
def test_labels_needed_grow_with_the_interval(over_constant, apparent, needed):
    surely = Estimate(-0.02, -0.03, -0.01)
    assert Improvement(surely, over_constant, apparent).labels_needed(50) == needed
    assert math.isnan(tied_share([0.1, 0.1], ["a", "b"]))
