"""How many labels, and of what: calibration and the order of generators on ImagenHub's ratings with recorded judges.

Labels are images drawn at random (`--labels-on images`) or the same random prompts of all
generators of a task, as `vieval label` draws them. Errors are on images of a fifth of the prompts,
of which none has a label. An order is right for a pair of generators that people's means over all
images have in that order; a tie counts half.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from bench.common import (
    IMAGENHUB_FOLDER,
    conditions,
    mean_rating,
    recorded_samples,
    script_parser,
    table,
)
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.stats.calibration import (
    Labels,
    held_out,
    improvement,
    isotonic_fit,
    refused_kinds,
    tied_share,
)
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.shrinkage import OrderLabels, order_values

JUDGES = {
    "GPT-4o zero-shot": ("results_gpt4o_0shot", "0shot"),
    "GPT-4o one-shot": ("results_gpt4o_1shot", "1shot"),
    "GPT-4v zero-shot": ("results_gpt4v_0shot", "0shot"),
    "GPT-4v one-shot": ("results_gpt4v_1shot", "1shot"),
    "LLaVA zero-shot": ("results_llava_0shot", "0shot"),
}
FEWEST_IMAGES = 100  # of a task that a judge scored: LLaVA scored 16 of one
WAYS = ("judge alone", "labels alone", "as ranked")


class RecordedTask(NamedTuple):
    """The images of a task that a judge scored: O by the judge and by people, prompts and
    generators by number.
    """

    kind: str
    scores: Floats
    ratings: Floats
    prompts: np.ndarray
    generators: np.ndarray


class Rated(NamedTuple):
    """An image with the score of a judge and people's mean rating."""

    score: float
    rating: float
    prompt: str
    generator: str


def recorded_task(kind: str, rows: Sequence[Rated]) -> RecordedTask:
    """The rated images of a task, with numbers for prompts and generators."""
    scores, ratings, prompts, generators = zip(*rows, strict=True)
    return RecordedTask(
        kind,
        np.array(scores),
        np.array(ratings),
        np.unique(prompts, return_inverse=True)[1],
        np.unique(generators, return_inverse=True)[1],
    )


def recorded_tasks(data: Path, judge: str) -> list[RecordedTask]:
    """The tasks of a recorded judge."""
    logs, setting = JUDGES[judge]
    parts = defaultdict(list)
    for sample, verdict, _ in recorded_samples(data, logs, setting):
        if "O" in verdict.scores:
            row = Rated(
                verdict.scores["O"],
                mean_rating(sample.ratings["O"]),
                sample.id.uid,
                sample.id.image_model,
            )
            parts[sample.id.part].append(row)
    return [
        recorded_task(part, rows)
        for part, rows in parts.items()
        if len(rows) >= FEWEST_IMAGES
    ]


def imagenhub_ratings(data: Path) -> dict[tuple[str, str], float]:
    """People's mean rating by image model and uid."""
    benchmark = benchmark_registry.benchmark("imagenhub")
    ratings = {}
    for part in benchmark.parts:
        for sample in benchmark.load(data, part):
            key = (sample.id.image_model, sample.id.uid)
            ratings[key] = mean_rating(sample.ratings["O"])
    return ratings


Metrics = dict[tuple[str, str], list[Rated]]


"""Rated images by metric and task."""


def image_metrics(data: Path) -> Metrics:
    """The metrics that the authors of VIEScore recorded on ImagenHub."""
    ratings = imagenhub_ratings(data)
    rows = defaultdict(list)
    logs = data / "viescore_logs" / "results_autometrics"
    for path in sorted(logs.glob("*/*.json")):
        model = path.stem
        task = path.parent.name
        for uid, values in json.loads(path.read_text()).items():
            if (model, uid) not in ratings:
                continue
            for name, value in values.items():
                score = 1 - value if name == "LPIPS" else value
                row = Rated(score, ratings[model, uid], uid, model)
                rows[name, task].append(row)
    return rows


def video_metrics(data: Path) -> Metrics:
    """The metrics of T2VScore's videos."""
    folder = data / "t2v_metrics"
    people = json.loads((folder / "t2vscore_alignment_score.json").read_text())
    rows = defaultdict(list)
    with (folder / "t2vscore_results.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            video = row["video_id"]
            model = row["model_name"]
            rating = (people[video]["models"][model][0] - 1) / 4
            for name in list(row)[3:]:
                is_percentage = name.startswith(("CLIP", "X-CLIP"))
                score = float(row[name]) / (100 if is_percentage else 1)
                rows[name, "t2vscore"].append(Rated(score, rating, video, model))
    return rows


def metric_tasks(data: Path) -> dict[str, list[RecordedTask]]:
    """The tasks of recorded metrics: two on ImagenHub, four on the videos of T2VScore, all from
    0 to 1, higher is better.
    """
    tasks = defaultdict(list)
    for metrics in (image_metrics(data), video_metrics(data)):
        for (name, part), rows in metrics.items():
            tasks[name].append(recorded_task(part, rows))
    return tasks


def drawn(
    task: RecordedTask, number: int, rng: np.random.Generator, on_prompts: bool
) -> np.ndarray:
    """The numbers of the labelled images: any, or as many of each generator, on the same prompts
    as far as may be.
    """
    number = min(number, len(task.scores))
    if not on_prompts:
        return rng.permutation(len(task.scores))[:number]
    makers = np.unique(task.generators)
    shares = np.full(len(makers), number // len(makers))
    remainder = number - shares.sum()
    shares[rng.permutation(len(makers))[:remainder]] += 1
    places = rng.permutation(task.prompts.max() + 1)
    labelled = []
    for maker, share in zip(makers, shares, strict=True):
        images = np.flatnonzero(task.generators == maker)
        order = np.argsort(places[task.prompts[images]])
        labelled.append(images[order][:share])
    return np.concatenate(labelled)


def labels_of(task: RecordedTask, images: np.ndarray) -> Labels:
    prompts = [f"{task.kind}/{prompt}" for prompt in task.prompts[images]]
    generators = [f"{task.kind}/{generator}" for generator in task.generators[images]]
    return Labels(
        task.scores[images],
        task.ratings[images],
        [task.kind] * len(images),
        prompts,
        generators,
    )


def draw_labels(
    task: RecordedTask, number: int, rng: np.random.Generator, on_prompts: bool = False
) -> Labels:
    """Labels of some images of a task."""
    return labels_of(task, drawn(task, number, rng, on_prompts))


def joined(labels: Sequence[Labels]) -> Labels:
    """The labels of several tasks as those of one file."""
    kinds = []
    prompts = []
    generators = []
    for part in labels:
        kinds += part.kinds
        prompts += part.prompts
        generators += part.generators
    scores = np.concatenate([part.scores for part in labels])
    ratings = np.concatenate([part.ratings for part in labels])
    return Labels(scores, ratings, kinds, prompts, generators)


def calibrated_kinds(labels: Sequence[Labels], seed: int) -> set[str] | None:
    """The task types that `vieval calibrate` would calibrate by these labels; None where it
    would write nothing.
    """
    together = joined(labels)
    predicted = held_out(together, seed)
    if not improvement(together, predicted, 500, seed).accepted:
        return None
    return {*together.kinds} - refused_kinds(together, predicted, 500, seed).keys()


def case_errors(train: Labels, task: RecordedTask, tested: np.ndarray) -> Floats:
    """Absolute, then squared errors on some images of raw, mean, median and calibrated."""
    raw = task.scores[tested]
    fit = isotonic_fit(train.scores, train.ratings)
    predictions = [
        raw,
        np.full(len(raw), train.ratings.mean()),
        np.full(len(raw), np.median(train.ratings)),
        np.interp(raw, *fit),
    ]
    off = np.array(predictions) - task.ratings[tested]
    return np.stack([np.abs(off).mean(axis=1), (off**2).mean(axis=1)])


def training_labels(labels: Labels, kind: str, left_out: int | None) -> Labels:
    """The labels on which a task is fitted, without those of one of its generators."""
    is_used = np.array(labels.generators) != f"{kind}/{left_out}"
    if kind in labels.large_kinds:
        is_used &= np.array(labels.kinds) == kind
    return labels.where(is_used)


def task_errors(labels: Labels, task: RecordedTask, is_unseen: np.ndarray) -> Floats:
    """Errors on other prompts, and the mean of those on other generators too."""
    cases = []
    for left_out in (None, *np.unique(task.generators)):
        tested = is_unseen
        if left_out is not None:
            tested = is_unseen & (task.generators == left_out)
        train = training_labels(labels, task.kind, left_out)
        if len(train.scores) and tested.any():
            cases.append(case_errors(train, task, tested))
    return np.stack([cases[0], np.mean(cases[1:], axis=0)])


def errors(
    tasks: Sequence[RecordedTask],
    number: int,
    rng: np.random.Generator,
    on_prompts: bool,
) -> np.ndarray:
    """Absolute, then squared errors of raw, mean, median and calibrated, on other prompts and on other generators too.

    Fitted as `vieval calibrate` fits: by task with 30 labels of each, else on those of all.
    """
    unseen = []
    labelled = []
    for task in tasks:
        prompts = task.prompts.max() + 1
        is_unseen = rng.permutation(prompts)[task.prompts] < prompts / 5
        available = np.flatnonzero(~is_unseen)
        others = RecordedTask(task.kind, *(column[available] for column in task[1:]))
        images = available[drawn(others, number, rng, on_prompts)]
        labelled.append(labels_of(task, images))
        unseen.append(is_unseen)
    labels = joined(labelled)
    by_task = []
    for task, is_unseen in zip(tasks, unseen, strict=True):
        by_task.append(task_errors(labels, task, is_unseen))
    return np.mean(by_task, axis=0)


def mean_with_range(values: Floats) -> str:
    """The mean of runs, and the range of 95% of them."""
    low = np.quantile(values, 0.025)
    high = np.quantile(values, 0.975)
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


def print_errors(tasks: Sequence[RecordedTask], options: argparse.Namespace) -> None:
    rows = []
    for number in options.labels:
        runs = []
        seeds = range(options.runs)
        for seed in tqdm(seeds, desc=f"errors, {number} labels", disable=None):
            rng = np.random.default_rng([options.seed, seed, number])
            runs.append(errors(tasks, number, rng, options.on_prompts))
        by_case = np.moveaxis(runs, 0, -1)
        for where, of_case in zip(("prompts", "generators"), by_case, strict=True):
            for what, values in zip(("absolute", "squared"), of_case, strict=True):
                cells = map(mean_with_range, values)
                rows.append([str(number), where, what, *cells])
    print(
        "Mean error over tasks on prompts, or generators and prompts, without labels "
        "[95% of runs]:"
    )
    columns = [
        "labels a task",
        "left out",
        "error",
        "raw",
        "mean",
        "median",
        "calibrated",
    ]
    table(columns, rows)


def print_by_type(tasks: Sequence[RecordedTask], options: argparse.Namespace) -> None:
    """How often a task type of noise is calibrated beside six of a judge, by all types together
    and by its own labels.
    """
    first, *others = tasks
    rows = []
    for number in options.labels:
        shares = np.zeros((options.runs, 3))
        for seed in range(options.runs):
            rng = np.random.default_rng([options.seed, seed, number, 7])
            labels = []
            for task in (noise(first, rng), *others):
                labels.append(draw_labels(task, number, rng, options.on_prompts))
            accepted = calibrated_kinds(labels, seed)
            kinds = accepted or set()
            other_kinds = kinds - {first.kind}
            shares[seed] = [
                accepted is not None,
                first.kind in kinds,
                len(other_kinds) / len(others),
            ]
        rows.append([str(number), *share_texts(shares)])
    print(f"{first.kind} scored at random, the other types by the judge:")
    columns = [
        "labels of each",
        "all together accepted",
        "noise calibrated",
        "others calibrated",
    ]
    table(columns, rows)


def share_texts(shares: Floats) -> list[str]:
    """Mean shares with their standard errors, of runs in rows."""
    means = shares.mean(axis=0)
    errors = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    cells = zip(means, errors, strict=True)
    return [f"{mean:.1%} (se {error:.1%})" for mean, error in cells]


def noise(task: RecordedTask, rng: np.random.Generator) -> RecordedTask:
    return task._replace(scores=rng.uniform(size=len(task.scores)))


def calibrated(task: RecordedTask) -> RecordedTask:
    fit = isotonic_fit(task.scores, task.ratings)
    return task._replace(scores=np.interp(task.scores, *fit))


def right_pairs(
    task: RecordedTask, number: int, rng: np.random.Generator, on_prompts: bool
) -> np.ndarray:
    """How many pairs of a task's generators each of `WAYS` has in people's order."""
    images = drawn(task, number, rng, on_prompts)
    is_rated = np.isin(np.arange(len(task.scores)), images)
    people = []
    judge = []
    labels_alone = []
    for maker in np.unique(task.generators):
        is_own = task.generators == maker
        maker_ratings = task.ratings[is_rated & is_own]
        people.append(task.ratings[is_own].mean())
        judge.append(task.scores[is_own].mean())
        labels_alone.append(maker_ratings.mean() if len(maker_ratings) else np.nan)
    labels = OrderLabels(
        task.scores[is_rated],
        task.ratings[is_rated],
        task.generators[is_rated],
        task.prompts[is_rated],
    )
    ordered = order_values(np.array(judge), labels)
    truth = pair_signs(people)
    counts = []
    for values in (judge, labels_alone, ordered):
        signs = pair_signs(values)
        points = (signs == truth) + 0.5 * (signs == 0)
        counts.append(points.sum())
    return np.array(counts)


def pair_signs(values: Sequence[float]) -> np.ndarray:
    """The sign of the difference of each two generators."""
    first, second = np.array(list(combinations(values, 2))).T
    return np.sign(first - second)


def print_order(tasks: Sequence[RecordedTask], options: argparse.Namespace) -> None:
    rows = []
    pairs = {}
    for task in tasks:
        pairs[task.kind] = math.comb(len(np.unique(task.generators)), 2)
    total = sum(pairs.values())
    for number in options.labels:
        right = {}
        for task in tqdm(tasks, desc=f"order, {number} labels", disable=None):
            runs = []
            for seed in range(options.runs):
                rng = np.random.default_rng([options.seed, seed, number])
                runs.append(right_pairs(task, number, rng, options.on_prompts))
            right[task.kind] = np.array(runs)
        shares = {"all": sum(right.values()) / total}
        for kind, counts in right.items():
            shares[kind] = counts / pairs[kind]
        for kind, of_kind in shares.items():
            rows.append([str(number), kind, *share_texts(of_kind)])
    print(f"Share of {total} pairs of generators in people's order:")
    table(["labels a task", "task", *WAYS], rows)


def print_ties(tasks: Sequence[RecordedTask]) -> None:
    rows = []
    for task in tasks:
        prompts = task.prompts.tolist()
        raw = tied_share(task.scores.tolist(), prompts)
        fitted = tied_share(calibrated(task).scores.tolist(), prompts)
        rows.append([task.kind, raw, fitted])
    print("Pairs of images on one prompt that are tied, calibrated on all labels:")
    columns = {
        "task": "",
        "raw": ".1%",
        "calibrated": ".1%",
    }
    table(columns, rows)


def print_judge(judge: str, options: argparse.Namespace) -> None:
    """Print the tables of a recorded judge."""
    tasks = recorded_tasks(options.data, judge)
    images = sum(len(task.scores) for task in tasks)
    print(f"\n## {judge}: {len(tasks)} tasks, {images:,} images\n")
    if "errors" in options.show:
        print_errors(tasks, options)
    if "order" in options.show:
        print_order(tasks, options)
    if "types" in options.show:
        print_by_type(tasks, options)
    if "ties" in options.show:
        print_ties(tasks)


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("data", type=Path, help=IMAGENHUB_FOLDER)
    parser.add_argument(
        "--show", nargs="+", default=["errors", "types", "order", "ties"]
    )
    parser.add_argument("--judges", nargs="+", choices=JUDGES, default=list(JUDGES))
    parser.add_argument(
        "--metrics", action="store_true", help="the order by recorded metrics too"
    )
    parser.add_argument(
        "--labels",
        type=int,
        nargs="+",
        default=[20, 30, 50, 100, 200],
        help="of each task",
    )
    parser.add_argument(
        "--labels-on",
        choices=("images", "prompts"),
        default="images",
    )
    parser.add_argument(
        "--runs", type=int, default=400, help="draws of labels (default 400)"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.on_prompts = options.labels_on == "prompts"
    print(
        f"{conditions()}; {options.runs} runs, seed {options.seed}, labels on "
        f"{options.labels_on}"
    )
    if options.metrics:
        for name, tasks in metric_tasks(options.data).items():
            print(f"\n## {name}\n")
            print_order(tasks, options)
    for judge in options.judges:
        print_judge(judge, options)


if __name__ == "__main__":
    main()
