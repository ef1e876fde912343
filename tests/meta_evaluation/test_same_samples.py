"""Judges of SC side by side, on the samples that all of them scored."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from tests.runs import run_of
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=20)
ASPECTS = ("SC", "PQ", "O")
RNG = np.random.default_rng(0)
HUMAN = RNG.choice([0.0, 0.5, 1.0], size=(3, 40))


def run(label, aspects, scores):
    rows = []
    for number, score in enumerate(scores):
        rated = {
            "SC": tuple(HUMAN[:, number]),
            "PQ": (1.0, 0.5, 0.0),
            "O": (0.0, 0.5, 1.0),
        }
        scores = {} if score is None else dict.fromkeys(aspects, score)
        rows.append(("tie", "editor", f"u{number}", scores, rated))
    return run_of(label, rows, aspects, benchmark="imagenhub", judge=label)


def table(*runs):
    made = ByImageModel().findings("imagenhub", ("tig", "tie"), runs, OPTIONS)
    return [one for one in made.tables if one.name == "sc_same_samples"]


def test_only_samples_that_all_judges_scored_count():
    first = [None if n < 5 else float(v) for n, v in enumerate(RNG.random(40))]
    second = [None if n > 35 else float(v) for n, v in enumerate(RNG.random(40))]
    judges = run("cigeval", ("SC",), first), run("viescore", ASPECTS, second)
    [made] = table(*judges)
    assert made.header == ("judge", "n", "tie", "all")
    rows = {row[0]: row[1:] for row in made.rows}
    common = slice(5, 36)
    assert {row[0] for row in rows.values()} == {"31"}
    for label, scores in (("cigeval", first), ("viescore", second)):
        expected = spearmanr(scores[common], HUMAN[:, common].mean(axis=0)).statistic
        # one image model: the published averaging is the tanh of its correlation
        found = float(rows[label][1])
        assert found == pytest.approx(np.tanh(round(expected, 4)), abs=6e-5)
    people = HUMAN[:, common]
    of_raters = [
        spearmanr(people[i], np.delete(people, i, 0).mean(axis=0).round(9)).statistic
        for i in range(3)
    ]
    expected = np.tanh(round(np.tanh(np.mean(of_raters)), 4))
    assert float(rows["human"][1]) == pytest.approx(expected, abs=6e-5)
    # judges of three aspects alone need no such table, and one judge none
    assert table(run("a", ASPECTS, [0.5] * 40), run("b", ASPECTS, [0.5] * 40)) == []
    assert table(judges[0]) == []
