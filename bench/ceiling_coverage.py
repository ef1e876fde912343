"""Intervals of the human ceiling with few instructions: how often they hold the truth, on ImagenHub's real ratings.

All rated images with a judge's recorded scores are the population. Of each task type so many
instructions are drawn from it with replacement, each with the images of all image models, and the
product computes two numbers: how much less a judge agrees with the other annotators than an
annotator does, and the agreement of annotators. The truth is the same of the whole population. The
percentiles of the resamples stand beside the bias-corrected interval that the product shows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bench.common import (
    IMAGENHUB_FOLDER,
    conditions,
    recorded_samples,
    script_parser,
    table,
)
from vieval_plugin.meta_evaluation.human_ceiling import compared_with_annotators
from vieval_plugin.meta_evaluation.image_model_agreement import (
    fisher_over_parts,
    human_agreement,
)
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.records import Record, Run
from vieval_plugin.stats.bootstrap import bias_corrected_interval, interval
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

Instructions = list[list[Record]]
JUDGE = "viescore"
SETTING = "0shot"
SIZES = (10, 20, 40, 100, 160)
NUMBERS = ("judge less annotators", "annotators")


def population(data: Path, logs: str, aspect: str) -> dict[str, Instructions]:
    """Records by task type and instruction, of the instructions that the judge scored for every
    image model.
    """
    parts: dict[str, dict[str, list[Record]]] = {}
    for sample, verdict, source in recorded_samples(data, logs, SETTING):
        ratings = {aspect: sample.ratings[aspect]}
        by_uid = parts.setdefault(sample.id.part, defaultdict(list))
        by_uid[sample.id.uid].append(Record(sample.id, verdict, source, ratings))
    complete = {}
    for part, by_uid in parts.items():
        complete[part] = [rows for rows in by_uid.values() if scored(rows, aspect)]
    return complete


def scored(rows: Sequence[Record], aspect: str) -> bool:
    """True where the judge scored every image model."""
    return all(aspect in row.verdict.scores for row in rows)


def clusters(instructions: Sequence[Sequence[Record]]) -> list[tuple[Record, ...]]:
    """The records of instructions, each one a cluster of its own."""
    records = []
    for place, rows in enumerate(instructions):
        name = f"{place:04}"
        for row in rows:
            identity = replace(row.id, uid=name)
            records.append((replace(row, id=identity, group=name),))
    return records


def numbers(
    parts: Mapping[str, Sequence[Sequence[Record]]],
    aspect: str,
    options: StatisticsOptions,
) -> list[Estimate]:
    """Both numbers of these instructions."""
    records = {}
    for part, instructions in parts.items():
        records[part] = clusters(instructions)
    run = Run("judge", "imagenhub", JUDGE, ("SC", "PQ", "O"), records)
    difference = compared_with_annotators(run, aspect, (aspect,), options)
    assert difference is not None
    agreements = []
    for part, of_part in records.items():
        observations = [observe(judged) for judged in of_part]
        by_aspect = human_agreement(
            observations, (aspect,), f"imagenhub/{part}", options
        )
        corrected, _ = by_aspect[aspect]
        agreements.append(corrected)
    return [difference, fisher_over_parts(agreements)]


def redrawn(
    parts: Mapping[str, Instructions], size: int, rng: np.random.Generator
) -> dict[str, Instructions]:
    """So many instructions of each task type, drawn with replacement."""
    sampled = {}
    for part, instructions in parts.items():
        indexes = rng.integers(0, len(instructions), size)
        sampled[part] = [instructions[place] for place in indexes]
    return sampled


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("data", type=Path, help=IMAGENHUB_FOLDER)
    parser.add_argument("--logs", default="results_gpt4o_0shot")
    parser.add_argument("--aspect", default="O")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument(
        "--draws", type=int, default=100, help="draws of each size (default 100)"
    )
    parser.add_argument(
        "--resamples", type=int, default=200, help="of each interval (default 200)"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{conditions()}; {options.draws} draws, seed {options.seed}")
    parts = population(options.data, options.logs, options.aspect)
    statistics = StatisticsOptions(draws=options.resamples, seed=options.seed)
    population_numbers = numbers(parts, options.aspect, replace(statistics, draws=1))
    truth = [estimate.value for estimate in population_numbers]
    rows = []
    for size in options.sizes:
        rng = np.random.default_rng([options.seed, size])
        draws = tqdm(range(options.draws), desc=f"{size} instructions", disable=None)
        samples = []
        for _ in draws:
            resampled = redrawn(parts, size, rng)
            samples.append(numbers(resampled, options.aspect, statistics))
        by_number = zip(*samples, strict=True)
        for name, true, estimates in zip(NUMBERS, truth, by_number, strict=True):
            rows.append([size, name, *row(true, estimates)])
    truth_texts = [
        f"{name}: {true:.3f} in the population"
        for name, true in zip(NUMBERS, truth, strict=True)
    ]
    print(", ".join(truth_texts))
    columns = {
        "instructions": "",
        "number": "",
        "bias": "+.3f",
        "bias of resamples": "+.3f",
        "percentiles cover %": ".0f",
        "bias-corrected cover %": ".0f",
    }
    table(columns, rows)


def row(true: float, estimates: Sequence[Estimate]) -> list[float]:
    """The bias of a number and of its resamples, and how many intervals of each kind hold the
    truth.
    """
    values = []
    biases_of_resamples = []
    percentile_hits = []
    corrected_hits = []
    for estimate in estimates:
        value = estimate.value
        resamples = estimate.resamples
        values.append(value)
        biases_of_resamples.append(np.nanmean(resamples) - value)
        low, high = interval(resamples)
        percentile_hits.append(low <= true <= high)
        low, high = bias_corrected_interval(resamples, value)
        corrected_hits.append(low <= true <= high)
    return [
        np.mean(values) - true,
        np.mean(biases_of_resamples),
        100 * np.mean(percentile_hits),
        100 * np.mean(corrected_hits),
    ]


if __name__ == "__main__":
    main()
