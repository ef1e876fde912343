"""A judge's scores against people's ratings, by kind: the points of the charts, and how many judges have one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from vieval_plugin.meta_evaluation.headline import Headline
from vieval_plugin.records import Record, Run
from vieval_plugin.report.headlines.leaderboards import Leaderboard
from vieval_plugin.report.page.charts import Point, scatter

MOST_JUDGES = 6


@dataclass(frozen=True)
class ScatterRow:
    """The charts of one judge, one a kind."""

    judge: str
    charts: tuple[Markup, ...]


def scatter_rows(board: Leaderboard, runs: Sequence[Run]) -> list[ScatterRow]:
    """The judges of a board, the best first, at most `MOST_JUDGES`; none where people gave no ratings.

    Args:
        board: of a headline on an aspect that people rated.
        runs: one a judge.
    """
    headline, by_label = board.headline, {run.label: run for run in runs}
    judges = [row.number.label for row in board.rows if row.number.label in by_label][:MOST_JUDGES]
    held = {label: _points(by_label[label], headline.aspect) for label in judges}
    rated = [point.people for points in held.values() for several in points.values() for point in several]
    if not rated:
        return []
    ends = (min(0.0, *rated), max(1.0, *rated))
    kinds = list(dict.fromkeys(kind for points in held.values() for kind in points))
    rows = []
    for label, points in held.items():
        charts = [
            scatter(
                several,
                ends,
                f"{kind} · {len(several)}{_number(headline, label, kind)}",
                f"{label} against people on {kind}",
                kinds.index(kind),
            )
            for kind, several in points.items()
        ]
        rows.append(ScatterRow(label, tuple(charts)))
    return [row for row in rows if row.charts]


def _points(run: Run, aspect: str) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for part, judged in run.records.items():
        for record in (together[0] for together in judged):
            point = _point(record, aspect, run.against_all)
            if point:
                found.setdefault(record.kind or part, []).append(point)
    return found


def _point(record: Record, aspect: str, against_all: bool) -> Point | None:
    """What people and the judge said of the aspect; of a whole (`overall`), by whichever name either has it."""
    people = record.ratings.get(aspect, record.ratings.get("O", ()) if aspect == "overall" else ())
    given = [value for value in people if not math.isnan(value)]
    scores = record.verdict.scores
    held = [scores[name] for name in (aspect, *(("O", "SC") if aspect == "overall" else ())) if name in scores]
    held += list(scores.values()) if against_all else []
    return Point(math.fsum(given) / len(given), held[0]) if given and held else None


def _number(headline: Headline, label: str, kind: str) -> str:
    found = [one for one in headline.breakdowns.get("kind", {}).get(kind, ()) if one.label == label]
    return f" · {found[0].value:.2f}" if found and not math.isnan(found[0].value) else ""
