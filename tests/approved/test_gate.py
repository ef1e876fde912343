"""`vieval rank --margin`: each outcome of a gate."""

import pytest

from tests.approved.conftest import transcript as run
from tests.builders import (
    a_contest_file,
    a_provenance,
    a_verdict,
    a_verdict_file,
    some_scores,
)
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.refusals import ECHO

GATE = "vieval rank v.jsonl --margin {}"
FULL = some_scores(100)
REFERENCE = some_scores(200)
BETTER = some_scores(200, 0.62, seed=1)
UNREAD = [*some_scores(75, 0.7), *[None] * 25]
NO_IMAGES = [Status.NO_IMAGE] * 20
KNOWN = a_provenance(model="gpt-4o-2024-05-13", pack="viescore/authors-0shot")
FILLED = [a_verdict(0.7, findings=(ECHO,)), *some_scores(12)[1:]]


def in_groups(size):
    return {"fields": [{"group": f"template {n // size}"} for n in range(200)]}


#: Scores of the build and of its reference, and what else holds for the file of verdicts.
CASES = {
    "passed": (BETTER, REFERENCE),
    "worse": (some_scores(mean=0.45, seed=1), some_scores()),
    "undecided": (some_scores(12, 0.58, seed=1), some_scores(12)),
    "fails_more_often": ([*some_scores(80, 0.7), *NO_IMAGES], FULL),
    "lost_verdicts": ([*some_scores(95, 0.7), *[Status.API_ERROR] * 5], FULL),
    "margin_of_zero": (FULL, FULL),
    "perhaps_worse": (some_scores(100, 0.56, seed=1), FULL),
    "baseline_cannot_be_read": (some_scores(100, 0.4), UNREAD),
    "new_build_cannot_be_read": (UNREAD, FULL),
    "blind_judge": ([0.8] * 100, [0.8] * 100),
    "track_record": (BETTER, REFERENCE, {"source": KNOWN}),
    "groups": (BETTER, REFERENCE, in_groups(2)),
    "few_groups": (some_scores(200, 0.6, seed=1), REFERENCE, in_groups(10)),
    "one_word_differs": (BETTER, REFERENCE, {"fields": {"prompt": "a red cube"}}),
    "large_falls": ([*some_scores(95), *[0.0] * 5], FULL),
    "better_on_too_few_prompts": (some_scores(12, 0.75, seed=1), some_scores(12)),
    # each fails where the other does not, which McNemar's test does not tell apart
    "better_but_for_failures": (
        [*some_scores(31, 0.7), *NO_IMAGES[:9]],
        [*NO_IMAGES[:4], *some_scores(36)],
    ),
    "worse_by_failures_alone": (
        [*some_scores(35, 0.7), *NO_IMAGES[:5]],
        some_scores(40, 0.7),
    ),
    # one reply of twelve on each generator repeats the request
    "filled_in_scores": (FILLED, FILLED),
}
MARGINS = {"margin_of_zero": 0, "worse_by_failures_alone": 0.002}


@pytest.mark.parametrize("name", CASES)
def test_scores(approve, name):
    aurora, borealis, *more = CASES[name]
    about = more[0] if more else {}
    a_verdict_file(aurora=aurora, borealis=borealis, **about)
    approve(GATE.format(MARGINS.get(name, 0.05)))


CONTESTS = {
    "decided": ["second"] * 40 + ["first"] * 20,
    "contradictory": ["second"] * 60 + ["tie"] * 20 + ["first"] * 20,
}


@pytest.mark.parametrize("name", CONTESTS)
def test_contests(approve, name):
    a_contest_file(votes=CONTESTS[name])
    approve(GATE.format(0.05))


def test_flags_of_a_gate_without_a_margin(approve):
    a_verdict_file(aurora=some_scores(), borealis=some_scores())
    flags = ("--history h.jsonl", "--no-control", "--margin 0.5", "--plan")
    approve(*(f"vieval rank v.jsonl {flag}" for flag in flags))


def test_history(approve):
    """Twenty-eight nights, then nights that lose a little: the alarm stays."""
    commands = []
    for night in range(34):
        scores = some_scores(100, 0.66 if night < 28 else 0.61, seed=night + 1)
        a_verdict_file(f"{night}.jsonl", aurora=scores, borealis=FULL)
        commands.append(f"vieval rank {night}.jsonl --margin 0.1 --history h.jsonl")
    for command in commands[:33]:
        run(command)
    approve(commands[33], commands[33], commands[0])
