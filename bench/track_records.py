"""Track records of published judges on two generators: how often people agree where a judge says that one is better.

A judge says so where `vieval rank` of these two does: p of the paired test on their common prompts is at most .05. People
agree where their mean difference has the same sign, and tell two generators apart where the sign-flip test of their
ratings has p of at most .05. Pairs are of generators of one task type. Intervals are exact, as if pairs were independent.
The table is `vieval_plugin/results/published/track_records.csv`.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import numpy as np

from bench.common import conditions, table
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.meta_evaluation.leaderboards import leaderboard
from vieval_plugin.records import Run
from vieval_plugin.results.published import judges
from vieval_plugin.stats.agreement import annotator_mean
from vieval_plugin.stats.generator_pairs import sign_flip_p
from vieval_plugin.stats.options import StatisticsOptions

BENCHMARK = "imagenhub"
LEVEL = 0.05


def people_differences(run: Run, part: str, aspect: str) -> dict[tuple[str, str], np.ndarray]:
    """People's differences on common prompts of each two generators of a part."""
    ratings: dict[str, dict[str, float]] = {}
    for record in chain(*run.records[part]):
        mean = float(annotator_mean([[rating] for rating in record.ratings[aspect]])[0])
        ratings.setdefault(record.id.image_model, {})[record.id.uid] = mean
    return {
        (first, second): np.array(
            [ratings[first][p] - ratings[second][p] for p in ratings[first] if p in ratings[second]]
        )
        for first, second in combinations(ratings, 2)
    }


def track_records(run: Run) -> dict[str, Counter[str]]:
    """Counts of pairs by aspect."""
    counts: dict[str, Counter[str]] = {}
    options = StatisticsOptions(draws=10)
    for part, records in run.records.items():
        of_part = replace(run, records={part: records})
        findings = OfGenerators().findings(BENCHMARK, (part,), [of_part], options)
        ranked = [statistic for statistic in findings.ranked if not statistic.breakdown]
        boards = [leaderboard(s, findings, BENCHMARK, [of_part], options, intervals=False) for s in ranked]
        for board in boards:
            people = people_differences(run, part, board.aspect)
            for pair in board.comparison.all_pairs:
                key = (pair.first, pair.second)
                differences = people[key] if key in people else -people[pair.second, pair.first]
                says = pair.result.p <= LEVEL
                agreed = bool(pair.result.difference.value * differences.mean() > 0)
                one_sided = sign_flip_p(differences)
                told_apart = bool(2 * min(one_sided, 1 - one_sided) <= LEVEL)
                found = ("better", "agreed" * agreed) if says else ("equal", "told_apart" * told_apart)
                counts.setdefault(board.aspect, Counter()).update(filter(None, found))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder with imagenhub/human_ratings and viescore_logs")
    parser.add_argument("--out", type=Path, help="write the table as CSV")
    options = parser.parse_args()
    print(conditions())
    benchmark = benchmark_registry.benchmark(BENCHMARK)
    samples = [sample for part in benchmark.parts for sample in benchmark.load(options.data, part)]
    header = ["benchmark", "judge", "setting", "name", "aspect", "better", "agreed", "equal", "told_apart"]
    rows = []
    for judge in judges.present(BENCHMARK, options.data):
        for aspect, found in track_records(judges.run_of(judge, options.data, samples)).items():
            rows.append(
                [BENCHMARK, judge.judge, judge.setting, judge.name, aspect, *(str(found[n]) for n in header[5:])]
            )
    table(header, rows)
    if options.out:
        with options.out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    main()
