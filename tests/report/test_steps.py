"""Generators that are the steps of a training: their order, and the set that holds the best."""

import re

import numpy as np
import pandas
import pytest

from bench.which_checkpoint import simulate
from vieval_plugin.api.ranking import rank

OPTIONS = {"statistics": {"draws": 50}}


def ranked(means, prompts=40, noise=0.05, name="step_{}", **arguments):
    rng = np.random.default_rng(0)
    spread = noise * rng.normal(size=(len(means), prompts))
    scores = np.array(means)[:, None] + spread - spread.mean(axis=1, keepdims=True)
    rows = [
        {"uid": f"p{prompt}", "generator": name.format(300 * (number + 1)), "O": score}
        for number, row in enumerate(scores.tolist())
        for prompt, score in enumerate(row)
    ]
    return rank(pandas.DataFrame(rows), options=OPTIONS, **arguments)


BEST = "scores rates step_{} best, but cannot tell it apart from"


@pytest.mark.parametrize(
    ("means", "title"),
    [
        ([0.3, 0.7], "scores rates step_600's images better than step_300's."),
        ([0.5, 0.5], "scores cannot tell step_300 and step_600 apart."),
        ([0.5] * 4, "scores cannot tell the four generators apart."),
        ([0.3, 0.5, 0.7, 0.5], "scores rates step_900's images the best of the four."),
        ([0.3, 0.69, 0.71, 0.69, 0.4], f"{BEST.format(900)} step_600 and step_1200."),
        (
            [0.3, *[0.7] * 4, 0.71, 0.7],
            f"{BEST.format(1800)} step_600 to step_1500 and step_2100.",
        ),
    ],
)
def test_the_title_names_the_best_step_or_the_set_that_holds_it(means, title):
    assert ranked(means).answer == title


def test_fifty_steps_are_still_told_apart():
    peak = [0.3 + 0.01 * min(n, 60 - n) for n in range(50)]
    ranking = ranked(peak, prompts=60, noise=0.03)
    steps = "step_9000, step_9600 and step_9900"
    assert ranking.answer == f"{BEST.format(9300)} {steps}."
    assert ranking.lines[1].startswith("The last step is worse. Mean O of step_9300")


@pytest.mark.parametrize(("last", "is_worse"), [(0.5, True), (0.7, False)])
def test_a_training_gets_worse_only_if_its_last_step_is_below_the_best(last, is_worse):
    evidence = ranked([0.3, 0.7, 0.72, last]).lines[1]
    assert ("The last step is worse." in evidence) == is_worse


def test_other_names_keep_their_sentences():
    answer = ranked([0.3, 0.69, 0.71, 0.69, 0.4], name="flux{}").answer
    assert answer.startswith("scores gives flux900 the highest O, but")


def test_the_chart_has_the_steps_in_their_order(tmp_path):
    page = tmp_path / "page.html"
    ranked([0.3, 0.69, 0.71, 0.4], html=page)
    text = page.read_text()
    assert re.search(r'<div class="forest".*?</div>\s*</div>\s*<', text, re.S)
    names = re.findall(r'class="name">([^<]*)', text)
    assert names[:4] == ["step_300", "step_600", "step_900", "step_1200"]


def test_the_best_step_is_rarely_left_out():
    missing, sizes = simulate(steps=5, prompts=60, trials=40, seed=0)
    assert missing <= 2
    assert np.median(sizes) <= 5
