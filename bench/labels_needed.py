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
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from bench.common import conditions, table
from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.results import replay
from vieval_plugin.stats.agreement import annotator_mean
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


def recorded_tasks(data: Path, judge: str) -> list[RecordedTask]:
    """The tasks of a recorded judge."""
    logs, setting = JUDGES[judge]
    benchmark = benchmark_registry.benchmark("imagenhub")
    recording = replay.load(data / "viescore_logs" / logs, "viescore")
    tasks = []
    for part in benchmark.parts:
        rows = []
        for sample in benchmark.load(data, part):
            verdict, _ = replay.replayed(
                recording, sample.id, 0, "viescore", setting, "judge", config.Config()
            )
            if "O" in verdict.scores:
                people = float(
                    annotator_mean([[rating] for rating in sample.ratings["O"]])[0]
                )
                rows.append(
                    (verdict.scores["O"], people, sample.id.uid, sample.id.image_model)
                )
        if len(rows) >= FEWEST_IMAGES:
            scores, ratings, prompts, generators = zip(*rows, strict=True)
            numbers = (
                np.unique(names, return_inverse=True)[1]
                for names in (prompts, generators)
            )
            tasks.append(
                RecordedTask(part, np.array(scores), np.array(ratings), *numbers)
            )
    return tasks


def metric_tasks(data: Path) -> dict[str, list[RecordedTask]]:
    """The tasks of recorded metrics: two on ImagenHub, four on the videos of T2VScore, all from
    0 to 1, higher is better.
    """
    benchmark = benchmark_registry.benchmark("imagenhub")
    samples = [
        sample for part in benchmark.parts for sample in benchmark.load(data, part)
    ]
    ratings = {
        (sample.id.image_model, sample.id.uid): float(
            annotator_mean([[rating] for rating in sample.ratings["O"]])[0]
        )
        for sample in samples
    }
    rows: dict[tuple[str, str], list[tuple[float, float, str, str]]] = defaultdict(list)
    for path in sorted(
        (data / "viescore_logs" / "results_autometrics").glob("*/*.json")
    ):
        for uid, values in json.loads(path.read_text()).items():
            for name, value in values.items():
                if (path.stem, uid) in ratings:
                    score = 1 - value if name == "LPIPS" else value
                    rows[name, path.parent.name].append(
                        (score, ratings[path.stem, uid], uid, path.stem)
                    )
    people = json.loads(
        (data / "t2v_metrics" / "t2vscore_alignment_score.json").read_text()
    )
    with (data / "t2v_metrics" / "t2vscore_results.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rating = (people[row["video_id"]]["models"][row["model_name"]][0] - 1) / 4
            for name in list(row)[3:]:
                score = float(row[name]) / (
                    100 if name.startswith(("CLIP", "X-CLIP")) else 1
                )
                rows[name, "t2vscore"].append(
                    (score, rating, row["video_id"], row["model_name"])
                )
    tasks = defaultdict(list)
    for (name, part), of_task in rows.items():
        scores, rated, prompts, generators = zip(*of_task, strict=True)
        numbers = (
            np.unique(names, return_inverse=True)[1] for names in (prompts, generators)
        )
        tasks[name].append(
            RecordedTask(part, np.array(scores), np.array(rated), *numbers)
        )
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
    shares[rng.permutation(len(makers))[: number - shares.sum()]] += 1
    places = rng.permutation(task.prompts.max() + 1)
    by_maker = (np.flatnonzero(task.generators == maker) for maker in makers)
    chosen = (images[np.argsort(places[task.prompts[images]])] for images in by_maker)
    return np.concatenate(
        [images[:share] for images, share in zip(chosen, shares, strict=True)]
    )


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
    scores, ratings = (
        np.concatenate([getattr(part, name) for part in labels])
        for name in ("scores", "ratings")
    )
    names = (
        [name for part in labels for name in getattr(part, field)]
        for field in ("kinds", "prompts", "generators")
    )
    return Labels(scores, ratings, *names)


def calibrated_kinds(labels: Sequence[Labels], seed: int) -> set[str] | None:
    """The task types that `vieval calibrate` would calibrate by these labels; None where it
    would write nothing.
    """
    together = joined(labels)
    predicted = held_out(together, seed)
    if not improvement(together, predicted, 500, seed).accepted:
        return None
    return {*together.kinds} - refused_kinds(together, predicted, 500, seed).keys()


def errors(
    tasks: Sequence[RecordedTask],
    number: int,
    rng: np.random.Generator,
    on_prompts: bool,
) -> np.ndarray:
    """Absolute, then squared errors of raw, mean, median and calibrated, on other prompts and on other generators too.

    Fitted as `vieval calibrate` fits: by task with 30 labels of each, else on those of all.
    """
    held_back = []
    chosen = []
    for task in tasks:
        unseen = (
            rng.permutation(task.prompts.max() + 1)[task.prompts]
            < (task.prompts.max() + 1) / 5
        )
        available = np.flatnonzero(~unseen)
        others = RecordedTask(task.kind, *(column[available] for column in task[1:]))
        chosen.append(
            labels_of(task, available[drawn(others, number, rng, on_prompts)])
        )
        held_back.append(unseen)
    labels = joined(chosen)
    large = labels.large_kinds
    kinds = np.array(labels.kinds)
    makers = np.array(labels.generators)
    by_task = []
    for task, unseen in zip(tasks, held_back, strict=True):
        by_case = []
        for left_out in (None, *np.unique(task.generators)):
            same_function = (
                kinds == task.kind if task.kind in large else np.full(len(kinds), True)
            )
            train = same_function & (makers != f"{task.kind}/{left_out}")
            test = (
                unseen if left_out is None else unseen & (task.generators == left_out)
            )
            if not train.any() or not test.any():
                continue
            ratings = labels.ratings[train]
            raw = task.scores[test]
            constants = (
                np.full(len(raw), value)
                for value in (ratings.mean(), np.median(ratings))
            )
            fitted = np.interp(raw, *isotonic_fit(labels.scores[train], ratings))
            off = np.array([raw, *constants, fitted]) - task.ratings[test]
            by_case.append(np.stack([np.abs(off).mean(axis=1), (off**2).mean(axis=1)]))
        by_task.append(np.stack([by_case[0], np.mean(by_case[1:], axis=0)]))
    return np.mean(by_task, axis=0)


def print_errors(tasks: Sequence[RecordedTask], options: argparse.Namespace) -> None:
    rows = []
    for number in options.labels:
        runs = np.array(
            [
                errors(
                    tasks,
                    number,
                    np.random.default_rng([options.seed, seed, number]),
                    options.on_prompts,
                )
                for seed in tqdm(
                    range(options.runs), desc=f"errors, {number} labels", disable=None
                )
            ]
        )
        for where, of_case in zip(
            ("prompts", "generators"), runs.transpose(1, 0, 2, 3), strict=True
        ):
            for what, values in zip(
                ("absolute", "squared"), of_case.transpose(1, 2, 0), strict=True
            ):
                cells = (
                    f"{v.mean():.3f} [{np.quantile(v, 0.025):.3f}, {np.quantile(v, 0.975):.3f}]"
                    for v in values
                )
                rows.append([str(number), where, what, *cells])
    print(
        "Mean error over tasks on prompts, or generators and prompts, without labels [95% of runs]:"
    )
    table(
        ["labels a task", "left out", "error", "raw", "mean", "median", "calibrated"],
        rows,
    )


def print_by_type(tasks: Sequence[RecordedTask], options: argparse.Namespace) -> None:
    """How often a task type of noise is calibrated beside six of a judge, by all types together
    and by its own labels.
    """
    rows = []
    for number in options.labels:
        shares = np.zeros((options.runs, 3))
        for seed in range(options.runs):
            rng = np.random.default_rng([options.seed, seed, number, 7])
            changed = [noise(tasks[0], rng), *tasks[1:]]
            labels = [
                draw_labels(task, number, rng, options.on_prompts) for task in changed
            ]
            accepted = calibrated_kinds(labels, seed)
            kinds = accepted or set()
            others = len(kinds - {changed[0].kind}) / len(tasks[1:])
            shares[seed] = accepted is not None, changed[0].kind in kinds, others
        rows.append([str(number), *share_texts(shares)])
    print(f"{tasks[0].kind} scored at random, the other types by the judge:")
    table(
        [
            "labels of each",
            "all together accepted",
            "noise calibrated",
            "others calibrated",
        ],
        rows,
    )


def share_texts(shares: Floats) -> list[str]:
    """Mean shares with their standard errors, of runs in rows."""
    errors = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    return [
        f"{mean:.1%} (se {error:.1%})"
        for mean, error in zip(shares.mean(axis=0), errors, strict=True)
    ]


def noise(task: RecordedTask, rng: np.random.Generator) -> RecordedTask:
    return task._replace(scores=rng.uniform(size=len(task.scores)))


def calibrated(task: RecordedTask, _: np.random.Generator) -> RecordedTask:
    return task._replace(
        scores=np.interp(task.scores, *isotonic_fit(task.scores, task.ratings))
    )


def right_pairs(
    task: RecordedTask, number: int, rng: np.random.Generator, on_prompts: bool
) -> np.ndarray:
    """How many pairs of a task's generators each of `WAYS` has in people's order."""
    rated = np.isin(np.arange(len(task.scores)), drawn(task, number, rng, on_prompts))
    of_each = [task.generators == maker for maker in np.unique(task.generators)]
    people, judged = (
        np.array([values[own].mean() for own in of_each])
        for values in (task.ratings, task.scores)
    )
    labels = OrderLabels(
        *(
            column[rated]
            for column in (task.scores, task.ratings, task.generators, task.prompts)
        )
    )
    alone = np.array(
        [
            task.ratings[rated & own].mean() if (rated & own).any() else np.nan
            for own in of_each
        ]
    )
    ordered = order_values(judged, labels)
    pairs = np.array(list(combinations(range(len(of_each)), 2))).T
    truth = np.sign(people[pairs[0]] - people[pairs[1]])
    signs = (np.sign(way[pairs[0]] - way[pairs[1]]) for way in (judged, alone, ordered))
    return np.array([((sign == truth) + 0.5 * (sign == 0)).sum() for sign in signs])


def print_order(tasks: Sequence[RecordedTask], options: argparse.Namespace) -> None:
    rows = []
    pairs = {
        task.kind: len(np.unique(task.generators))
        * (len(np.unique(task.generators)) - 1)
        // 2
        for task in tasks
    }
    for number in options.labels:
        right = {
            task.kind: np.array(
                [
                    right_pairs(
                        task,
                        number,
                        np.random.default_rng([options.seed, seed, number]),
                        options.on_prompts,
                    )
                    for seed in range(options.runs)
                ]
            )
            for task in tqdm(tasks, desc=f"order, {number} labels", disable=None)
        }
        shares = {
            "all": sum(right.values()) / sum(pairs.values()),
            **{k: right[k] / pairs[k] for k in right},
        }
        rows += [
            [str(number), kind, *share_texts(of_kind)]
            for kind, of_kind in shares.items()
        ]
    print(f"Share of {sum(pairs.values())} pairs of generators in people's order:")
    table(["labels a task", "task", *WAYS], rows)


def print_ties(tasks: Sequence[RecordedTask]) -> None:
    rows = []
    for task in tasks:
        fitted = calibrated(task, np.random.default_rng(0)).scores
        prompts = task.prompts.tolist()
        rows.append(
            [
                task.kind,
                *(
                    f"{tied_share(values.tolist(), prompts):.1%}"
                    for values in (task.scores, fitted)
                ),
            ]
        )
    print("Pairs of images on one prompt that are tied, calibrated on all labels:")
    table(["task", "raw", "calibrated"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "data",
        type=Path,
        help="a folder with imagenhub/human_ratings and viescore_logs",
    )
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
        dest="on_prompts",
        choices=("images", "prompts"),
        default="images",
    )
    parser.add_argument(
        "--runs", type=int, default=400, help="draws of labels (default 400)"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.on_prompts = options.on_prompts == "prompts"
    print(
        f"{conditions()}; {options.runs} runs, seed {options.seed}, labels on "
        f"{'prompts' * options.on_prompts or 'images'}"
    )
    for name, tasks in metric_tasks(options.data).items() if options.metrics else ():
        print(f"\n## {name}\n")
        print_order(tasks, options)
    for judge in options.judges:
        tasks = recorded_tasks(options.data, judge)
        print(
            f"\n## {judge}: {len(tasks)} tasks, {sum(len(task.scores) for task in tasks):,} "
            "images\n"
        )
        if "errors" in options.show:
            print_errors(tasks, options)
        if "order" in options.show:
            print_order(tasks, options)
        if "types" in options.show:
            print_by_type(tasks, options)
        if "ties" in options.show:
            print_ties(tasks)


if __name__ == "__main__":
    main()
