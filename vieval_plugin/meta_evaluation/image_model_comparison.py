"""Judges compared by their agreement with human ratings, averaged over image models: on what `image_model_agreement` has.

The judges' averages are over the same samples and the same image models, those of all parts that all were run on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vieval_plugin.meta_evaluation.image_model_agreement import compare
from vieval_plugin.meta_evaluation.image_model_cells import ALL_PARTS
from vieval_plugin.meta_evaluation.judge_comparison import ComparedJudge, ComparedStatistic, common
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.meta_evaluation.tables import because
from vieval_plugin.records import Run
from vieval_plugin.stats.agreement import rater_mean
from vieval_plugin.stats.correlation import Floats, undefined
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.paired_correlations import CorrelationDifference


class Cell(NamedTuple):
    """Which sample, and so where in a table: the first two name a row, part and image model a column."""

    part: str
    uid: str
    image_model: str


@dataclass(frozen=True, eq=False)
class PairedTable:
    """What is correlated, tables of shape (rows, image models), NaN where there is no sample that all judges scored.

    `people` are the mean ratings, `judges` the scores of each; `groups` names a row's, `parts` a column's.
    """

    people: Floats
    judges: tuple[Floats, ...]
    groups: tuple[tuple[str, str], ...]
    parts: tuple[str, ...]

    def pair(self, first: int, second: int) -> CorrelationDifference:
        """The paired statistic of two judges, by their places."""
        return CorrelationDifference(self.judges[first], self.judges[second], self.people, self.groups, self.parts)


def compared_by_image_model(
    parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions, rated: tuple[str, ...]
) -> list[ComparedStatistic]:
    """An entry an aspect that any of the judges rates, in the order of `rated`.

    A sample counts for a judge if it scored every aspect that it rates, and for the comparison if it counts for all
    judges. An image model counts if, on these, the correlation of every judge is defined that has any.

    Args:
        parts: all parts of the benchmark, in order.
        runs: one a judge.
        options: what failed verdicts are.
        rated: what people rated.
    """
    scored = [scored_cells(run, parts, rated, options) for run in runs]
    aspects = dict.fromkeys([*rated, *(aspect for of_run in scored for aspect in of_run)])
    rating = {aspect: [place for place, of_run in enumerate(scored) if aspect in of_run] for aspect in aspects}
    return [
        compared_on(aspect, [runs[place].label for place in places], [scored[place][aspect] for place in places])
        for aspect, places in rating.items()
        if places
    ]


def scored_cells(
    run: Run, parts: Sequence[str], rated: tuple[str, ...], options: StatisticsOptions
) -> dict[str, dict[Cell, Observation]]:
    """By aspect that the judge rates, the samples that count for it.

    Args:
        run: the judge's.
        parts, rated, options: as for `compared_by_image_model`.
    """
    found: dict[str, dict[Cell, Observation]] = {}
    for part in (part for part in dict.fromkeys((*parts, *run.records)) if part in run.records):
        observed = [observe(judged) for judged in run.records[part]]
        filled, aspects = compare(observed, run.aspects, rated if run.against_all else (), options)
        complete = [o for o in filled if set(aspects) <= {name for name, _ in o.scores}]
        for aspect in aspects:
            known = [o for o in complete if aspect in dict(o.ratings) and not np.isnan(dict(o.ratings)[aspect]).any()]
            found.setdefault(aspect, {}).update({Cell(part, o.uid, o.image_model): o for o in known})
    return found


def compared_on(aspect: str, labels: Sequence[str], scored: Sequence[Mapping[Cell, Observation]]) -> ComparedStatistic:
    """Judges compared on one aspect.

    Args:
        aspect: which, that all of them rate.
        labels: theirs.
        scored: the samples that count for each, as `scored_cells` has them.
    """
    cells = sorted(common(scored))
    columns = sorted({(cell.part, cell.image_model) for cell in cells})
    table = _table(aspect, cells, columns, scored)
    lacking = [_undefined(table.people, *judge) for judge in zip(table.judges, labels, strict=True)]
    judges = tuple(
        ComparedJudge(label, len(of_judge), "no sample with a score" if not of_judge else _everywhere(reasons))
        for label, of_judge, reasons in zip(labels, scored, lacking, strict=True)
    )
    left_out = {
        column: f"{'/'.join(columns[column])}: {reason}"
        for judge, reasons in zip(judges, lacking, strict=True)
        for column, reason in enumerate(reasons)
        if reason and not judge.reason
    }
    kept = [column for column in range(len(columns)) if column not in left_out]
    parts = tuple(columns[column][0] for column in kept)
    used = PairedTable(table.people[:, kept], tuple(one[:, kept] for one in table.judges), table.groups, parts)
    named = list(dict.fromkeys(parts))
    said = because([*left_out.values()])
    nothing = f"no image model is left for which every judge's correlation is defined ({said})"
    return ComparedStatistic(
        named[0] if len(named) == 1 else ALL_PARTS,
        aspect,
        f"Spearman's correlation with people, Fisher's average over image models{_over(named)}",
        judges,
        int((~np.isnan(used.people)).sum()),
        used.pair,
        why=nothing if columns and not kept else "",
        notes=(f"left out of all averages, because {said}",) if left_out and kept else (),
    )


def _over(parts: Sequence[str]) -> str:
    return f" and parts ({', '.join(parts)})" if len(parts) > 1 else ""


def _undefined(people: Floats, scores: Floats, label: str) -> list[str]:
    """Why a judge's correlation is undefined, for each image model; empty where it is defined."""
    given = ~np.isnan(people)
    why = [undefined(people[has, column], scores[has, column]) for column, has in enumerate(given.T)]
    return [one.replace("the first variable", "the human mean").replace("the second variable", label) for one in why]


def _everywhere(reasons: Sequence[str]) -> str:
    return f"undefined for every image model ({reasons[0]})" if reasons and all(reasons) else ""


def _table(
    aspect: str,
    cells: Sequence[Cell],
    columns: Sequence[tuple[str, str]],
    scored: Sequence[Mapping[Cell, Observation]],
) -> PairedTable:
    rated = next((of_judge for of_judge in scored if of_judge), {})
    groups = {(cell.part, cell.uid): (cell.part, rated[cell].group) for cell in cells}
    row_of, column_of = {row: n for n, row in enumerate(groups)}, {column: n for n, column in enumerate(columns)}
    where = (
        [row_of[cell.part, cell.uid] for cell in cells],
        [column_of[cell.part, cell.image_model] for cell in cells],
    )

    def filled(values: Sequence[float]) -> Floats:
        made = np.full((len(groups), len(columns)), np.nan)
        made[where] = values or np.nan
        return made

    return PairedTable(
        filled([float(rater_mean([[rating] for rating in dict(rated[cell].ratings)[aspect]])[0]) for cell in cells]),
        tuple(filled([dict(of_judge[cell].scores)[aspect] for cell in cells if of_judge]) for of_judge in scored),
        tuple(groups.values()),
        tuple(part for part, _ in columns),
    )
