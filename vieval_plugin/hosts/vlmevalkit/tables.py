"""The numbers of a judged dataset as the host shows and keeps them: one row per part,
and one over all.
"""

from __future__ import annotations

from collections.abc import Sequence

from pandas import DataFrame

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.tasks import Task
from vieval_plugin.config import Config
from vieval_plugin.hosts.task_data import rating_of
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.metrics import (
    REMARKS,
    UNDEFINED,
    higher_is_better,
    names,
    value,
)
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.statistics import Summary, combine, summary_of
from vieval_plugin.records import Record
from vieval_plugin.text.yaml_json import JsonObject

OVERALL = "Overall"
_DECIMALS = 4
_NO_HEADLINE = ("_share", "_paper", "_consistency", "_share_value")


def rows_of(
    tasks: Sequence[Task], records: Sequence[Record], options: Config
) -> list[JsonObject]:
    """A row of numbers a part that has verdicts, and one over all; every number is of Python's own
    types.

    `split` names the part; `status_*` count verdicts by how they came out.
    """
    benchmark = benchmark_registry.benchmark(tasks[0].benchmark)
    rating = rating_of(judge_registry.judge(tasks[0].judge), options)
    statistics = options.statistics.options()
    summaries = {}
    for task in tasks:
        part = task.part
        observations = tuple(
            observe([record]) for record in records if record.id.part == part
        )
        if observations:
            summaries[part] = summary_of(
                benchmark.report,
                observations,
                rating,
                benchmark.name,
                part,
                statistics,
            )
    if summaries:
        first, *others = summaries.values()
        summaries[OVERALL] = combine((first, *others)) if others else first
    metric_names = names(benchmark.report, rating)
    return [_row(part, summary, metric_names) for part, summary in summaries.items()]


def _row(part: str, summary: Summary, metric_names: Sequence[str]) -> JsonObject:
    row: JsonObject = {"split": part}
    for name in metric_names:
        if not name.startswith("status_") and name != REMARKS:
            number = value(summary, name)
            row[name] = float(number) if isinstance(number, float) else number
    row |= {f"status_{status}": summary.statuses.get(status, 0) for status in Status}
    return {**row, REMARKS: value(summary, REMARKS)}


def short(table: DataFrame) -> DataFrame:
    """The rows of `rows_of` as the host prints them: rounded, without statuses that no
    verdict has, and with the reason for each missing number.
    """
    never = [
        name
        for name in table.columns
        if name.startswith("status_") and not table[name].any()
    ]
    printed = table.drop(columns=[REMARKS, *never]).round(_DECIMALS)
    reasons = table[REMARKS].str.partition(UNDEFINED)[2].str.partition("; ")[0]
    return printed.assign(undefined=reasons) if reasons.any() else printed


def headline(metrics: JsonObject) -> JsonObject:
    """The numbers over all by which the host's summary calls a run: those of which more is better.

    `metrics` are the host's, a name `split=PART|NUMBER` each.
    """
    numbers = {}
    for name, number in metrics.items():
        split, _, what = name.partition("|")
        if split != f"split={OVERALL}" or what.endswith(_NO_HEADLINE):
            continue
        if higher_is_better(what) and isinstance(number, (int, float)):
            numbers[name] = number
    return numbers
