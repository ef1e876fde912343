"""Labels of people: `vieval rank --human`, `calibrate`, `report` of two judges, on verdicts with a
known truth.

People rate aurora .6, borealis .55 and cirrus .45; the judge likes cirrus .15 too much.
"""

import itertools
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
    ratings = {}
    for seed, name in enumerate(names, start=10):
        ratings[name] = some_scores(count, PEOPLE[name], noise=0.15, seed=seed)
    return ratings


def groups_of(count, size):
    """Names of groups of `size` prompts; none without a size."""
    return [f"template {n // size}" for n in range(count)] if size else []


def judged(count, names=tuple(PEOPLE), group_size=0):
    """Verdicts of a judge that follows people but for its liking, and what people say."""
    ratings = people(count, names)
    rng = np.random.default_rng(3)
    scores = {}
    for name, values in ratings.items():
        liked = np.array(values) + LIKING[name] + rng.normal(0, 0.1, count)
        scores[name] = np.clip(liked, 0, 1).round(4).tolist()
    groups = [{"group": name} for name in groups_of(count, group_size)]
    a_verdict_file(generators=scores, fields=groups or None)
    return ratings


def labels(ratings, prompts, **fields):
    """Rows of labels of these prompts, all generators of a prompt together."""
    rows = []
    for n in prompts:
        for name, values in ratings.items():
            row = {"uid": f"p{n:03}", "generator": name, "aspect": "O"}
            rows.append({**row, "value": round(values[n], 3), **fields})
    return rows


def a_plan(count, names=tuple(PEOPLE), group_size=0):
    prompts = [f"p{n:03}" for n in range(count)]
    images = tuple(SampleId("own", "tig", name, p) for p in prompts for name in names)
    by_prompt = groups_of(count, group_size)
    groups = tuple(group for group in by_prompt for _ in names)
    Path("label.plan.json").write_text(plan_text(LabelPlan(0, images, groups)))


#: Planned prompts, prompts of a group (0 without groups), and rated prompts.
PLANNED = {
    "no_look_yet": (240, 0, range(40)),
    "first_look": (240, 0, range(60)),
    "between_looks": (240, 0, range(150)),
    "all_looks": (240, 0, range(240)),
    "a_prompt_is_missing": (240, 0, [n for n in range(130) if n != 70]),
    "small_plan_begun": (100, 0, range(40)),
    "small_plan_done": (100, 0, range(100)),
    "groups_too_few_for_quarters": (240, 3, range(130)),
    "groups_before_their_first_look": (420, 2, range(105)),
    "groups_after_their_first_look": (420, 2, range(115)),
}


@pytest.mark.parametrize("name", PLANNED)
def test_plan(approve, name):
    planned, group_size, rated = PLANNED[name]
    ratings = judged(planned, group_size=group_size)
    a_plan(planned, group_size=group_size)
    a_label_file(labels=labels(ratings, rated))
    approve("vieval rank v.jsonl --human label.plan.json labels.csv")


#: Generators and labels without a plan.
UNPLANNED = {
    "without_labels": (tuple(PEOPLE), range(0)),
    "six_prompts": (tuple(PEOPLE), range(6)),
    "fifty_prompts": (tuple(PEOPLE), range(50)),
    "two_generators": (("aurora", "borealis"), range(60)),
    "equal_generators": (("aurora", "borealis"), range(120)),
}


@pytest.mark.parametrize("name", UNPLANNED)
def test_without_a_plan(approve, name):
    names, rated = UNPLANNED[name]
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
    alike = labels(ratings, range(60), rater="bea", value=0.5)
    a_label_file(labels=[*labels(ratings, range(60)), *alike])
    approve("vieval rank v.jsonl --human labels.csv")


#: Prompts of each task type, and whether the judge follows people.
TYPES = {
    "all_types": {"tig": (60, True), "tie": (60, True)},
    "a_type_of_noise": {"tig": (60, True), "tie": (60, True), "cig": (30, False)},
    "a_type_with_few_labels": {"tig": (60, True), "cig": (8, True)},
    "noise": {"tig": (40, False), "tie": (40, False)},
    "few_labels": {"tig": (8, True)},
}


@pytest.mark.parametrize("name", TYPES)
def test_calibrate(approve, name):
    """A judge that follows people, or does not, on prompts of two generators of each task type."""
    rng = np.random.default_rng(0)
    judged, rows = [], []
    for kind, (prompts, is_followed) in TYPES[name].items():
        for n, model in itertools.product(range(prompts), ("aurora", "borealis")):
            rating = float(rng.uniform())
            score = rating**3 if is_followed else float(rng.uniform())
            sample = a_sample(f"p{n:03}", model, kind=kind)
            judged.append((sample, a_verdict(score)))
            rows += labels({model: {n: rating}}, [n], part=kind)
    write_verdicts(Path("v.jsonl"), *zip(*judged, strict=True), a_provenance())
    a_label_file(labels=rows)
    approve("vieval calibrate v.jsonl --human labels.csv --out cal.json")


def test_two_judges(approve):
    ratings = people(80)
    rng = np.random.default_rng(4)
    for number, noise in ((1, 0.1), (2, 0.3)):
        scores = {}
        for name, values in ratings.items():
            noisy = np.array(values) + rng.normal(0, noise, 80)
            scores[name] = np.clip(noisy, 0, 1).round(1).tolist()
        source = a_provenance(model=f"judge-{number}")
        a_verdict_file(f"{number}.jsonl", scores, source=source)
    coarse = {name: [round(v, 1) for v in values] for name, values in ratings.items()}
    a_label_file(labels=labels(coarse, range(80)))
    approve("vieval rank 1.jsonl 2.jsonl --human labels.csv")
