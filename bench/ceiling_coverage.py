"""Intervals of the human ceiling with few instructions: how often they hold the truth, on ImagenHub's real ratings.

All rated images with a judge's recorded scores are the population. Of each task type so many
instructions are drawn from it with replacement, each with the images of all image models, and the
product computes two numbers: how much less a judge agrees with the other annotators than an
annotator does, and the agreement of annotators. The truth is the same of the whole population. The
percentiles of the resamples stand beside the bias-corrected interval that the product shows.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bench.common import conditions, table
from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.meta_evaluation.human_ceiling import compared_with_annotators
from vieval_plugin.meta_evaluation.image_model_agreement import (
    fisher_over_parts,
    human_agreement,
)
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.records import Record, Run
from vieval_plugin.results import replay
from vieval_plugin.stats.bootstrap import bias_corrected_interval, interval
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

JUDGE = "viescore"
SETTING = "0shot"
SIZES = (10, 20, 40, 100, 160)
NUMBERS = ("judge less annotators", "annotators")


def population(data: Path, logs: str, aspect: str) -> dict[str, list[list[Record]]]:
    """Records by task type and instruction, of the instructions that the judge scored for every
    image model.
    """
    benchmark = benchmark_registry.benchmark("imagenhub")
    found = {}
    recording = replay.load(data / "viescore_logs" / logs, JUDGE)
    for part in benchmark.parts:
        by_uid: dict[str, list[Record]] = {}
        for sample in benchmark.load(data, part):
            verdict, source = replay.replayed(
                recording, sample.id, 0, JUDGE, SETTING, "judge", config.Config()
            )
            ratings = {aspect: sample.ratings[aspect]}
            by_uid.setdefault(sample.id.uid, []).append(
                Record(sample.id, verdict, source, ratings)
            )
        found[part] = [
            rows
            for rows in by_uid.values()
            if all(aspect in row.verdict.scores for row in rows)
        ]
    return found


def numbers(
    parts: Mapping[str, Sequence[Sequence[Record]]],
    aspect: str,
    options: StatisticsOptions,
) -> list[Estimate]:
    """Both numbers of these instructions, each one a cluster of its own."""
    records = {
        part: [
            (replace(row, id=replace(row.id, uid=f"{place:04}"), group=f"{place:04}"),)
            for place, rows in enumerate(of_part)
            for row in rows
        ]
        for part, of_part in parts.items()
    }
    run = Run("judge", "imagenhub", JUDGE, ("SC", "PQ", "O"), records)
    compared = compared_with_annotators(run, aspect, (aspect,), options)
    assert compared is not None
    agreements = [
        human_agreement(
            [observe(judged) for judged in of_part],
            (aspect,),
            f"imagenhub/{part}",
            options,
        )[aspect]
        for part, of_part in records.items()
    ]
    return [
        compared.difference,
        fisher_over_parts([corrected for corrected, _ in agreements]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "data",
        type=Path,
        help="a folder with imagenhub/human_ratings and viescore_logs",
    )
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
    truth = [
        estimate.value
        for estimate in numbers(parts, options.aspect, replace(statistics, draws=1))
    ]
    rows = []
    for size in options.sizes:
        rng = np.random.default_rng([options.seed, size])
        found = [
            numbers(
                {
                    part: [of[n] for n in rng.integers(0, len(of), size)]
                    for part, of in parts.items()
                },
                options.aspect,
                statistics,
            )
            for _ in tqdm(
                range(options.draws), desc=f"{size} instructions", disable=None
            )
        ]
        for name, true, estimates in zip(
            NUMBERS, truth, zip(*found, strict=True), strict=True
        ):
            rows.append([f"{size}", name, *row(true, estimates)])
    print(
        ", ".join(
            f"{name}: {true:.3f} in the population"
            for name, true in zip(NUMBERS, truth, strict=True)
        )
    )
    table(
        [
            "instructions",
            "number",
            "bias",
            "bias of resamples",
            "percentiles cover %",
            "bias-corrected cover %",
        ],
        rows,
    )


def row(true: float, estimates: Sequence[Estimate]) -> list[str]:
    """The bias of a number and of its resamples, and how many intervals of each kind hold the
    truth.
    """
    bias = np.mean([estimate.value for estimate in estimates]) - true
    bias_of_resamples = np.mean(
        [np.nanmean(estimate.resamples) - estimate.value for estimate in estimates]
    )
    intervals = [
        (interval(e.resamples), bias_corrected_interval(e.resamples, e.value))
        for e in estimates
    ]
    covered = [
        f"{100 * np.mean([low <= true <= high for low, high in of_kind]):.0f}"
        for of_kind in zip(*intervals, strict=True)
    ]
    return [f"{bias:+.3f}", f"{bias_of_resamples:+.3f}", *covered]


if __name__ == "__main__":
    main()
