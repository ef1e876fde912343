"""Tables of benchmarks with named annotators: the shape of T2I-Eval's Table 1, overall and a dimension each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vieval_plugin.annotators import (
    ANNOTATORS,
    KINDS,
    MEAN,
    WHOLE,
    Comparison,
    Mean,
    among_themselves,
    comparisons,
    summarise,
)
from vieval_plugin.data.t2i_eval_bench import DIMENSIONS
from vieval_plugin.judges import t2i_eval
from vieval_plugin.meta_evaluation import Estimate, Observation, Options, observe
from vieval_plugin.report.cells import Key
from vieval_plugin.report.load import Run
from vieval_plugin.report.tables import Table

WITH_ALL, WITH_OTHERS = "annotators, with the mean of all", "annotators, with the mean of the others"
GRADES = 5.0
_SYMBOLS = {"spearman": "rho", "kendall": "tau"}


@dataclass(frozen=True)
class Row:
    """A judge, or the annotators themselves: `counts` of the scored samples a dimension, `failed` of all (None: humans)."""

    label: str
    estimates: Mapping[Comparison, Estimate]
    counts: Mapping[str, int]
    failed: int | None


def tables(benchmark: str, runs: list[Run], options: Options) -> tuple[list[Table], dict[Key, float]]:
    """Table 1 and its like for each dimension, all intervals, and the numbers as cells (table `statistics`)."""
    made: list[Table] = []
    cells: dict[Key, float] = {}
    for task in dict.fromkeys(task for run in runs for task in run.records):
        rows = _rows(f"{benchmark}/{task}", [run for run in runs if task in run.records], task, options)
        for dimension in (WHOLE, *DIMENSIONS):
            shown = [row for row in rows if row.counts.get(dimension)]
            if any(row.failed is not None for row in shown):
                made.append(_like_table_1(dimension, shown))
        made.append(_intervals(rows))
        made += _qualities(f"{benchmark}/{task}", [run for run in runs if task in run.records], task, options)
        for row in rows:
            cells |= {
                Key("statistics", task, "", row.label, str(c), c.dimension): e.value for c, e in row.estimates.items()
            }
    return made, cells


def _rows(name: str, runs: Sequence[Run], task: str, options: Options) -> list[Row]:
    judges, rated = [], dict[str, Observation]()
    for run in runs:
        observed = tuple(observe(records) for records in run.records[task])
        rated |= {o.uid: o for o in observed}
        scored = {aspect for o in observed for aspect, _ in o.scores}
        dimensions = [WHOLE, *(d for d in DIMENSIONS if d in scored)]
        wanted = comparisons(dimensions)
        summary = summarise(observed, run.aspects, wanted, name, options)
        counts = {d: sum(d in dict(o.scores) for o in observed) for d in dimensions}
        found = {one: summary.estimates[str(one)] for one in wanted}
        judges.append(Row(run.label, found, counts | {WHOLE: summary.scored}, summary.total - summary.scored))
    return [*(_humans(list(rated.values()), others, name, options) for others in (False, True)), *judges]


def _humans(rated: Sequence[Observation], others: bool, name: str, options: Options) -> Row:
    """How far annotators agree among themselves, over all rated samples."""
    found = {
        one: among_themselves(rated, one, others, name, options)
        for one in comparisons((WHOLE, *DIMENSIONS), [a for a in ANNOTATORS if a != MEAN])
    }
    counts = dict.fromkeys((WHOLE, *DIMENSIONS), len(rated))
    return Row(WITH_OTHERS if others else WITH_ALL, found, counts, None)


def _like_table_1(dimension: str, rows: Sequence[Row]) -> Table:
    against = [(annotator, kind) for annotator in ANNOTATORS for kind in KINDS]
    header = ("judge", "n", "failed", *(f"manual {annotator} {_SYMBOLS[kind]}" for annotator, kind in against))
    lines = tuple(
        (
            row.label,
            str(row.counts[dimension]),
            "" if row.failed is None else str(row.failed),
            *(_number(row.estimates.get(Comparison(dimension, annotator, kind))) for annotator, kind in against),
        )
        for row in rows
    )
    title = "Table 1. Overall score" if dimension == WHOLE else f"{dimension.capitalize()} score"
    return Table("table_1" if dimension == WHOLE else dimension, f"{title}, with each annotator", header, lines)


def _intervals(rows: Sequence[Row]) -> Table:
    lines = []
    for row in rows:
        for one in row.estimates:
            if one.kind == KINDS[0]:
                both = [row.estimates[Comparison(one.dimension, one.annotator, kind)] for kind in KINDS]
                lines.append((row.label, one.dimension, f"manual {one.annotator}", *map(_with_interval, both)))
    header = ("judge", "score", "with", *(_SYMBOLS[kind] for kind in KINDS))
    return Table("intervals", "With 95% intervals", header, tuple(lines))


def _qualities(name: str, runs: Sequence[Run], task: str, options: Options) -> list[Table]:
    """How good the judges' explanations were found, 0 to 5; no table where none was graded."""
    wanted = [Mean(score) for score in t2i_eval.QUALITIES]
    rows = []
    for run in runs:
        observed = tuple(observe(records) for records in run.records[task])
        found = summarise(observed, run.aspects, tuple(wanted), name, options).estimates
        graded = [sum(one.score in dict(o.scores) for o in observed) for one in wanted]
        if any(graded):
            cells = [_with_interval(_times(found[str(one)], GRADES)) for one in wanted]
            rows.append((run.label, *(cell for pair in zip(map(str, graded), cells, strict=True) for cell in pair)))
    header = ("judge", "n", "overall explanation", "n", "questions' explanations")
    return (
        [Table("explanations", "Explanations graded against the annotators', 0 to 5", header, tuple(rows))]
        if rows
        else []
    )


def _times(found: Estimate, scale: float) -> Estimate:
    return replace(found, value=found.value * scale, low=found.low * scale, high=found.high * scale)


def _number(found: Estimate | None) -> str:
    if found is None:
        return ""
    return "undefined" if found.value != found.value else f"{found.value:.4f}"


def _with_interval(found: Estimate) -> str:
    if found.value != found.value:
        return f"undefined ({found.reason})"
    return f"{found.value:.4f} [{found.low:.4f}, {found.high:.4f}]"
