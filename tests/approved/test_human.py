"""`vieval rank --human`: the order by what people say, where the judge likes the third generator
too much.
"""

import numpy as np
import pytest

from tests.builders import a_label_file, a_provenance, a_verdict_file
from vieval_plugin.judges.protocol import Status

RANK = "vieval rank v.jsonl --human labels.csv"
ALL = ("third", "mine", "theirs")


@pytest.fixture
def rated(approve):
    """Writes verdicts on 120 prompts of three generators, and the labels of the first so many
    prompts of some.
    """
    rng = np.random.default_rng(4)
    prompts = rng.normal(0, 0.05, 120)
    people = {
        name: np.clip(level + prompts + rng.normal(0, 0.05, 120), 0, 1).round(3)
        for name, level in {"third": 0.35, "mine": 0.75, "theirs": 0.55}.items()
    }

    def write(
        number, generators=ALL, *, aspect="O", noise=0.0, fewer=None, failed=0, **fields
    ):
        liked = {
            name: values + 0.5 * (name == "third") for name, values in people.items()
        }
        judged = {
            name: np.clip(values + rng.normal(0, 0.05, 120), 0, 1)
            for name, values in liked.items()
        }
        scores = {
            name: [Status.NO_IMAGE] * (failed if name == "mine" else 0) for name in ALL
        }
        a_verdict_file(
            generators={
                name: [*scores[name], *judged[name][len(scores[name]) :]]
                for name in ALL
            },
            **fields,
        )
        labels = [
            {
                "uid": f"p{n:03}",
                "generator": name,
                "aspect": aspect,
                "value": people[name][n] + noise * rng.uniform(-1, 1),
            }
            for name in generators
            for n in range((fewer or {}).get(name, number))
        ]
        a_label_file(labels=labels)

    return write


def test_order_of_people(approve, rated):
    rated(60)
    approve("vieval rank v.jsonl", f"{RANK} --tables t", "cat t/rank.md")


def test_groups(approve, rated):
    rated(
        60,
        ("mine", "theirs"),
        fields=[{"group": f"template {number // 10}"} for number in range(120)],
    )
    approve(RANK)


def test_gate(approve, rated):
    rated(60)
    approve("vieval rank v.jsonl --margin 0.1", f"{RANK} --margin 0.1")


@pytest.mark.parametrize("number", [3, 12])
def test_few_labels(approve, rated, number):
    rated(number)
    approve(RANK, f"{RANK} --margin 0.02")


def test_generator_without_labels(approve, rated):
    rated(12, ("mine", "third"))
    approve(RANK)


@pytest.mark.parametrize(
    "fewer",
    [{"third": 0}, {"third": 1}, {"third": 4}, {"mine": 7}],
    ids=["0 of third", "1 of third", "4 of third", "7 of mine"],
)
def test_few_labels_of_one_generator(approve, rated, fewer):
    rated(60 if "mine" in fewer else 25, fewer=fewer)
    approve(RANK)


def test_another_aspect(approve, rated):
    rated(60, aspect="PQ", source=a_provenance(aspects=("SC",)))
    approve(RANK)


def test_failures_of_the_better_one(approve, rated):
    rated(110, ("mine", "theirs"), failed=60)
    approve(RANK)


def test_labels_that_are_noise(approve, rated):
    rated(110, ("mine", "theirs"), noise=3.0)
    a_label_file(
        labels=[
            {"uid": f"p{n:03}", "generator": g, "aspect": "O", "value": n * 7 % 10 / 10}
            for n in range(110)
            for g in ALL[1:]
        ]
    )
    approve(RANK)


def test_votes_instead_of_ratings(approve, rated):
    rated(1)
    a_label_file("labels.csv", [{"generator": "", "aspect": "vote", "value": "first"}])
    approve(RANK)


ROWS = (
    {"uid": "other"}, {"value": 1.5}, {"value": "nan"}, {"aspect": "beauty"}, {"draw": -1}, {"rater": ""},
    {"generator": "", "aspect": "vote", "value": "left"}, {"value": ""},
)  # fmt: skip


def test_labels_refused(approve):
    a_verdict_file(aurora=[0.5] * 4)
    for number, row in enumerate(ROWS):
        a_label_file(f"{number}.csv", [{"value": 1, **row}])
    a_label_file("twice.csv", [{"value": 1}, {"value": 0, "draw": 0}])
    a_label_file("one.csv", [{"value": 1}])
    a_label_file("other.csv", [{"value": 0}])
    a_label_file("none.csv")
    names = [
        *(f"{number}.csv" for number in range(len(ROWS))),
        "twice.csv",
        "one.csv other.csv",
        "none.csv",
        "absent.csv",
    ]
    approve(*(f"vieval rank v.jsonl --human {name}" for name in names))
