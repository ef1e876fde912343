"""Which judge is best at each part of a benchmark, by how much, and whether that is more than chance: a table for newcomers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from vieval_plugin.meta_evaluation.judge_comparison import JudgeComparison, compare_judges
from vieval_plugin.meta_evaluation.observations import StatisticsOptions
from vieval_plugin.records import Run
from vieval_plugin.report import known_benchmark
from vieval_plugin.results.runs import Results
from vieval_plugin.text_table import text_table

_HEADER = ("images", "what", "best judge", "agrees", "next best", "agrees", "better by [95%]", "more than chance?")


def best_by_part(results: Results, options: StatisticsOptions) -> list[str]:
    """A line a part and aspect: the judge that agrees best, and the next.

    Args:
        results: what runs left behind.
        options: what failed verdicts and ratings not given are, how many draws, the seed.

    Returns:
        The lines of a table for a terminal for each benchmark, with how to read it.

    Raises:
        VievalError: for results that cannot be read or whose benchmark is not known.
    """
    runs = results.runs
    told: list[str] = []
    for name in dict.fromkeys(run.benchmark for run in runs):
        rows = _rows(name, [run for run in runs if run.benchmark == name], options)
        statistics = list(dict.fromkeys(row[-1] for row in rows))
        told += [f"== {name}", "", *text_table([_HEADER, *(row[:-1] for row in rows)]), ""]
        told += [f"agrees: {one}." for one in statistics]
        if known_benchmark(name).drawn:
            told += ["For people read the known defects here: the images are drawings, which nobody rated."]
        told += [""]
    tests = f"{options.draws} draws, seed {options.seed}"
    return [
        *told,
        "SC: is it what was asked for? PQ: is it a good picture? 1 is full agreement, and 0 is that of chance for correlations.",
        f"better by: with the 95% interval. more than chance: p at most .05 in a paired test, adjusted for all judges of the row ({tests}).",
    ]


def _rows(name: str, runs: Sequence[Run], options: StatisticsOptions) -> list[tuple[str, ...]]:
    report = known_benchmark(name).report
    rows = []
    for part in known_benchmark(name).parts:
        there = [replace(run, records={part: run.records[part]}) for run in runs if part in run.records]
        shown = set()
        for compared in report.compared(name, (part,), there, options) if there else []:
            if compared.aspect not in shown and compared.aspect != "O":  # of several ways to count, the first
                shown.add(compared.aspect)
                rows.append((part, compared.aspect, *_row(compare_judges(compared, name, options))))
    return rows


def _row(found: JudgeComparison) -> tuple[str, ...]:
    places = [place for place, one in enumerate(found.compared.judges) if not one.reason]
    values = {place: found.compared.pair(place, place).estimates()[0] for place in places}
    ranked = sorted((place for place in places if not math.isnan(values[place])), key=lambda place: -values[place])
    labels = [found.compared.judges[place].label for place in ranked]
    cells = [cell for place, label in zip(ranked[:2], labels, strict=False) for cell in (label, f"{values[place]:.3f}")]
    pair = next((one for one in found.pairs if {one.first, one.second} == set(labels[:2])), None)
    if pair is None:
        return (*(cells + ["none"] * 4)[:2], "no other", "", "", "", found.compared.statistic)
    way = 1 if pair.first == labels[0] else -1
    low, high = sorted((way * pair.found.low, way * pair.found.high))
    answer = f"{'yes' if pair.different else 'no'} (p {pair.adjusted:.3g})"
    return (*cells, f"{way * pair.found.difference:.3f} [{low:.3f}, {high:.3f}]", answer, found.compared.statistic)
