"""Labels of people: `vieval rank --human`, `calibrate`, `report` of two judges, on verdicts with a
known truth.

People rate aurora .6, borealis .55 and cirrus .45; the judge likes cirrus .15 too much.
"""

from pathlib import Path

import numpy as np
import pytest

from tests.builders import (
    a_label_file,
    a_provenance,
    a_sample,
    a_verdict,
    a_verdict_file,
    some_scores,
)
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.meta_evaluation.label_plan import LabelPlan, plan_text
from vieval_plugin.run.verdict_lines import write_verdicts

PEOPLE = {"aurora": 0.6, "borealis": 0.55, "cirrus": 0.45}
LIKING = {"aurora": 0.0, "borealis": 0.0, "cirrus": 0.15}


def people(count, names=tuple(PEOPLE)):
    """What people say of the prompts of each generator."""
    return {
        name: some_scores(count, PEOPLE[name], noise=0.15, seed=10 + n)
        for n, name in enumerate(names)
    }


def group_name(number, size):
    return f"template {number // size}"


def judged(count, names=tuple(PEOPLE), group_size=0):
    """Verdicts of a judge that follows people but for its liking, and what people say;
    `group_size` prompts are a group.
    """
    ratings = people(count, names)
    rng = np.random.default_rng(3)
    scores = {
        name: np.clip(np.array(values) + LIKING[name] + rng.normal(0, 0.1, count), 0, 1)
        .round(4)
        .tolist()
        for name, values in ratings.items()
    }
    groups = (
        [{"group": group_name(n, group_size)} for n in range(count)]
        if group_size
        else None
    )
    a_verdict_file(generators=scores, fields=groups)
    return ratings


def labels(ratings, prompts, **fields):
    """Rows of labels of these prompts, all generators of a prompt together."""
    return [
        {
            "uid": f"p{n:03}",
            "generator": name,
            "aspect": "O",
            "value": round(values[n], 3),
            **fields,
        }
        for n in prompts
        for name, values in ratings.items()
    ]


def a_plan(count, names=tuple(PEOPLE), group_size=0):
    prompts = [(n, name) for n in range(count) for name in names]
    images = tuple(SampleId("own", "tig", name, f"p{n:03}") for n, name in prompts)
    groups = tuple(group_name(n, group_size) for n, _ in prompts) if group_size else ()
    with open("label.plan.json", "w", encoding="utf-8") as file:
        file.write(plan_text(LabelPlan(0, images, groups)))


#: Name of the file, planned prompts, prompts of a group (0 without groups), and rated prompts.
PLANNED = [
    ("no_look_yet", 240, 0, range(40)),
    ("first_look", 240, 0, range(60)),
    ("between_looks", 240, 0, range(150)),
    ("all_looks", 240, 0, range(240)),
    ("a_prompt_is_missing", 240, 0, [n for n in range(130) if n != 70]),
    ("small_plan_begun", 100, 0, range(40)),
    ("small_plan_done", 100, 0, range(100)),
    ("groups_too_few_for_quarters", 240, 3, range(130)),
    ("groups_before_their_first_look", 420, 2, range(105)),
    ("groups_after_their_first_look", 420, 2, range(115)),
]


@pytest.mark.parametrize(
    ("name", "planned", "group_size", "rated"),
    PLANNED,
    ids=[name for name, *_ in PLANNED],
)
def test_plan(approve, name, planned, group_size, rated):
    ratings = judged(planned, group_size=group_size)
    a_plan(planned, group_size=group_size)
    a_label_file(labels=labels(ratings, rated))
    approve("vieval rank v.jsonl --human label.plan.json labels.csv")


#: Generators and labels without a plan.
UNPLANNED = [
    ("without_labels", tuple(PEOPLE), range(0)),
    ("six_prompts", tuple(PEOPLE), range(6)),
    ("fifty_prompts", tuple(PEOPLE), range(50)),
    ("two_generators", ("aurora", "borealis"), range(60)),
    ("equal_generators", ("aurora", "borealis"), range(120)),
]


@pytest.mark.parametrize(
    ("name", "names", "rated"), UNPLANNED, ids=[name for name, *_ in UNPLANNED]
)
def test_without_a_plan(approve, name, names, rated):
    ratings = judged(120, names)
    if name == "equal_generators":
        ratings["borealis"] = list(np.roll(ratings["aurora"], 1))
    a_label_file(labels=labels(ratings, rated))
    approve("vieval rank v.jsonl" + " --human labels.csv" * bool(len(rated)))


def test_labels_of_the_images_that_the_judge_likes(approve):
    ratings = judged(120)
    liked = np.argsort(ratings["aurora"])[60:]
    a_label_file(labels=labels(ratings, sorted(liked.tolist())))
    approve(
        "vieval rank v.jsonl --human labels.csv",
        "vieval rank v.jsonl --human labels.csv --margin 0.3",
    )


def test_labels_of_one_generator_alone(approve):
    ratings = judged(120)
    a_label_file(labels=labels({"cirrus": ratings["cirrus"]}, range(60)))
    approve("vieval rank v.jsonl --human labels.csv")


def test_gate_at_a_look(approve):
    ratings = judged(240, ("borealis", "aurora"))
    a_plan(240, ("borealis", "aurora"))
    a_label_file(labels=labels(ratings, range(130)))
    approve("vieval rank v.jsonl --human label.plan.json labels.csv --margin 0.2")


def test_an_annotator_with_one_value(approve):
    ratings = judged(120)
    a_label_file(
        labels=[
            *labels(ratings, range(60)),
            *labels(ratings, range(60), rater="bea", value=0.5),
        ]
    )
    approve("vieval rank v.jsonl --human labels.csv")


def a_judge_of_types(follows):
    """Verdicts on 60 prompts of two generators of each task type, whose judge follows people or
    not, and labels.
    """
    rng = np.random.default_rng(0)
    samples, verdicts, rows = [], [], []
    for kind, (prompts, is_followed) in follows.items():
        for n in range(prompts):
            for name in ("aurora", "borealis"):
                rating = float(rng.uniform())
                score = rating**3 if is_followed else float(rng.uniform())
                samples.append(a_sample(f"p{n:03}", name, kind=kind))
                verdicts.append(a_verdict(score))
                rows.append(
                    {
                        "part": kind,
                        "uid": f"p{n:03}",
                        "generator": name,
                        "aspect": "O",
                        "value": round(rating, 3),
                    }
                )
    write_verdicts(Path("v.jsonl"), samples, verdicts, a_provenance())
    a_label_file(labels=rows)


#: Prompts of each task type, and whether the judge follows people.
TYPES = [
    ("all_types", {"tig": (60, True), "tie": (60, True)}),
    ("a_type_of_noise", {"tig": (60, True), "tie": (60, True), "cig": (30, False)}),
    ("a_type_with_few_labels", {"tig": (60, True), "cig": (8, True)}),
    ("noise", {"tig": (40, False), "tie": (40, False)}),
    ("few_labels", {"tig": (8, True)}),
]


@pytest.mark.parametrize(("name", "follows"), TYPES, ids=[name for name, _ in TYPES])
def test_calibrate(approve, name, follows):
    a_judge_of_types(follows)
    approve("vieval calibrate v.jsonl --human labels.csv --out cal.json")


def test_two_judges(approve):
    ratings = people(80)
    rng = np.random.default_rng(4)
    for number, noise in ((1, 0.1), (2, 0.3)):
        scores = {
            name: np.clip(np.array(v) + rng.normal(0, noise, 80), 0, 1)
            .round(1)
            .tolist()
            for name, v in ratings.items()
        }
        a_verdict_file(
            f"{number}.jsonl", scores, source=a_provenance(model=f"judge-{number}")
        )
    coarse = {
        name: [round(value, 1) for value in values] for name, values in ratings.items()
    }
    a_label_file(labels=labels(coarse, range(80)))
    approve("vieval rank 1.jsonl 2.jsonl --human labels.csv")
