"""`vieval rank --margin`: each outcome of a gate."""

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

GATE = "vieval rank v.jsonl --margin 0.05"


def test_passed(approve):
    a_verdict_file(aurora=some_scores(200, 0.62, seed=1), borealis=some_scores(200))
    approve(GATE)


def test_worse(approve):
    a_verdict_file(aurora=some_scores(mean=0.45, seed=1), borealis=some_scores())
    approve(GATE)


def test_undecided(approve):
    a_verdict_file(aurora=some_scores(12, 0.58, seed=1), borealis=some_scores(12))
    approve(GATE)


def test_fails_more_often(approve):
    a_verdict_file(
        aurora=[*some_scores(80, 0.7), *[Status.NO_IMAGE] * 20],
        borealis=some_scores(100),
    )
    approve(GATE)


def test_lost_verdicts(approve):
    a_verdict_file(
        aurora=[*some_scores(95, 0.7), *[Status.API_ERROR] * 5],
        borealis=some_scores(100),
    )
    approve(GATE)


def test_contests(approve):
    a_contest_file(votes=["second"] * 40 + ["first"] * 20)
    approve(GATE)


def test_margin_of_zero(approve):
    a_verdict_file(aurora=some_scores(100), borealis=some_scores(100))
    approve("vieval rank v.jsonl --margin 0")


def test_perhaps_worse(approve):
    a_verdict_file(aurora=some_scores(100, 0.56, seed=1), borealis=some_scores(100))
    approve(GATE)


def test_baseline_cannot_be_read(approve):
    a_verdict_file(
        aurora=some_scores(100, 0.4), borealis=[*some_scores(75, 0.7), *[None] * 25]
    )
    approve(GATE)


def test_new_build_cannot_be_read(approve):
    a_verdict_file(
        aurora=[*some_scores(75, 0.7), *[None] * 25], borealis=some_scores(100)
    )
    approve(GATE)


def test_blind_judge(approve):
    a_verdict_file(aurora=[0.8] * 100, borealis=[0.8] * 100)
    approve(GATE)


def test_track_record(approve):
    source = a_provenance(model="gpt-4o-2024-05-13", pack="viescore/authors-0shot")
    a_verdict_file(
        source=source, aurora=some_scores(200, 0.62, seed=1), borealis=some_scores(200)
    )
    approve(GATE)


def test_groups(approve):
    fields = [{"group": f"template {number // 2}"} for number in range(200)]
    a_verdict_file(
        fields=fields, aurora=some_scores(200, 0.62, seed=1), borealis=some_scores(200)
    )
    approve(GATE)


def test_few_groups(approve):
    fields = [{"group": f"template {number // 10}"} for number in range(200)]
    a_verdict_file(
        fields=fields, aurora=some_scores(200, 0.6, seed=1), borealis=some_scores(200)
    )
    approve(GATE)


def test_prompts_that_differ_in_one_word(approve):
    a_verdict_file(
        fields={"prompt": "a red cube"},
        aurora=some_scores(200, 0.62, seed=1),
        borealis=some_scores(200),
    )
    approve(GATE)


def test_large_falls(approve):
    a_verdict_file(aurora=[*some_scores(95), *[0.0] * 5], borealis=some_scores(100))
    approve(GATE)


def test_contradictory_contests(approve):
    a_contest_file(votes=["second"] * 60 + ["tie"] * 20 + ["first"] * 20)
    approve(GATE)


def test_flags_of_a_gate_without_a_margin(approve):
    a_verdict_file(aurora=some_scores(), borealis=some_scores())
    approve(
        "vieval rank v.jsonl --history h.jsonl",
        "vieval rank v.jsonl --no-control",
        "vieval rank v.jsonl --margin 0.5",
        "vieval rank v.jsonl --plan",
    )


def test_history(approve):
    """Twenty-eight nights, then nights that lose a little: the alarm stays."""
    commands = []
    for night in range(34):
        level = 0.66 if night < 28 else 0.61
        a_verdict_file(
            f"{night}.jsonl",
            aurora=some_scores(100, level, seed=night + 1),
            borealis=some_scores(100),
        )
        commands.append(f"vieval rank {night}.jsonl --margin 0.1 --history h.jsonl")
    for command in commands[:33]:
        run(command)
    approve(
        commands[33], commands[33], "vieval rank 0.jsonl --margin 0.1 --history h.jsonl"
    )


def test_better_on_too_few_prompts(approve):
    a_verdict_file(aurora=some_scores(12, 0.75, seed=1), borealis=some_scores(12))
    approve(GATE)


def test_better_but_for_failures(approve):
    """Each fails where the other does not, which McNemar's test does not tell apart."""
    a_verdict_file(
        aurora=[*some_scores(31, 0.7), *[Status.NO_IMAGE] * 9],
        borealis=[*[Status.NO_IMAGE] * 4, *some_scores(36)],
    )
    approve(GATE)


def test_worse_by_failures_alone(approve):
    a_verdict_file(
        aurora=[*some_scores(35, 0.7), *[Status.NO_IMAGE] * 5],
        borealis=some_scores(40, 0.7),
    )
    approve("vieval rank v.jsonl --margin 0.002")


def test_filled_in_scores(approve):
    """One reply of twelve on each generator repeats the request."""
    echo = a_verdict(0.7, findings=(ECHO,))
    scores = [echo, *some_scores(12)[1:]]
    a_verdict_file(aurora=scores, borealis=scores)
    approve(GATE)
