"""`vieval rank --human`: the order by people, where the judge likes `third` too much."""

import numpy as np
import pytest

from tests.builders import a_label_file, a_provenance, a_verdict_file
from vieval_plugin.judges.protocol import Status

RANK = "vieval rank v.jsonl --human labels.csv"
ALL = ("third", "mine", "theirs")
BEST = ("mine", "theirs")
LEVELS = {"third": 0.35, "mine": 0.75, "theirs": 0.55}


def rated(number, generators=ALL, *, aspect="O", fewer=None, failed=0, **fields):
    """Write verdicts on 120 prompts, and labels of the first so many."""
    rng = np.random.default_rng(4)
    prompts = rng.normal(0, 0.05, 120)
    people = {}
    for name, level in LEVELS.items():
        people[name] = np.clip(level + prompts + rng.normal(0, 0.05, 120), 0, 1).round(
            3
        )
    scores = {}
    for name in ALL:
        liked = people[name] + 0.5 * (name == "third")
        judged = np.clip(liked + rng.normal(0, 0.05, 120), 0, 1)
        failures = [Status.NO_IMAGE] * (failed if name == "mine" else 0)
        scores[name] = [*failures, *judged[len(failures) :]]
    a_verdict_file(generators=scores, **fields)
    counts = dict.fromkeys(generators, number) | (fewer or {})
    a_label_file(
        labels=[
            {"uid": f"p{n:03}", "generator": g, "aspect": aspect, "value": people[g][n]}
            for g in generators
            for n in range(counts[g])
        ]
    )


#: Labelled prompts of each generator, what else holds for them, and commands other than `RANK`.
CASES = {
    "order_of_people": (60, {}, "vieval rank v.jsonl", f"{RANK} --tables t", "cat t/rank.md"),
    "groups": (60, {"generators": BEST, "fields": [{"group": f"template {n // 10}"} for n in range(120)]}),
    "gate": (60, {}, "vieval rank v.jsonl --margin 0.1", f"{RANK} --margin 0.1"),
    "3_labels": (3, {}, RANK, f"{RANK} --margin 0.02"),
    "12_labels": (12, {}, RANK, f"{RANK} --margin 0.02"),
    "generator_without_labels": (12, {"generators": ("mine", "third")}),
    "0_of_third": (25, {"fewer": {"third": 0}}),
    "1_of_third": (25, {"fewer": {"third": 1}}),
    "4_of_third": (25, {"fewer": {"third": 4}}),
    "7_of_mine": (60, {"fewer": {"mine": 7}}),
    "another_aspect": (60, {"aspect": "PQ", "source": a_provenance(aspects=("SC",))}),
    "failures_of_the_better_one": (110, {"generators": BEST, "failed": 60}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_labels(approve, name):
    number, about, *commands = CASES[name]
    rated(number, **about)
    approve(*(commands or [RANK]))


def test_labels_that_are_noise(approve):
    rated(1)
    noise = [
        {"uid": f"p{n:03}", "generator": g, "aspect": "O", "value": n * 7 % 10 / 10}
        for n in range(110)
        for g in BEST
    ]
    a_label_file(labels=noise)
    approve(RANK)


def test_votes_instead_of_ratings(approve):
    rated(1)
    a_label_file(labels=[{"generator": "", "aspect": "vote", "value": "first"}])
    approve(RANK)


ROWS = (
    {"uid": "other"}, {"value": 1.5}, {"value": "nan"}, {"aspect": "beauty"}, {"draw": -1}, {"rater": ""},
    {"generator": "", "aspect": "vote", "value": "left"}, {"value": ""},
)  # fmt: skip


def test_labels_refused(approve):
    a_verdict_file(aurora=[0.5] * 4)
    files = {f"{number}.csv": [{"value": 1, **row}] for number, row in enumerate(ROWS)}
    files["twice.csv"] = [{"value": 1}, {"value": 0, "draw": 0}]
    files |= {"one.csv": [{"value": 1}], "other.csv": [{"value": 0}], "none.csv": []}
    for name, rows in files.items():
        a_label_file(name, rows)
    own = [f"{number}.csv" for number in range(len(ROWS))]
    names = (*own, "twice.csv", "one.csv other.csv", "none.csv", "absent.csv")
    approve(*(f"vieval rank v.jsonl --human {name}" for name in names))
