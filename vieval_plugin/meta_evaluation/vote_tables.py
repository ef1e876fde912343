"""Tables and headlines of contests: accuracy in percent, the two orders, and the authors' reading."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.headline import Breakdown, Headline, preferred
from vieval_plugin.meta_evaluation.statistics import parts_of
from vieval_plugin.meta_evaluation.tables import Key, Table, Tables, in_percent
from vieval_plugin.meta_evaluation.vote_answers import TIE_HANDLINGS, VOTES
from vieval_plugin.meta_evaluation.vote_breakdowns import breakdowns
from vieval_plugin.meta_evaluation.vote_ratings import beside_ratings
from vieval_plugin.meta_evaluation.vote_statistics import (
    Entrant,
    JudgedPart,
    Share,
    accuracies,
    all_pairs_right_shares,
    bounds,
    entrants_of,
    has_paper,
    order_shares,
    paper_scheme_shares,
)
from vieval_plugin.records import Run
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import VoteScheme, ceiling_points

ALL_PARTS = "all"


@dataclass(frozen=True)
class _Point:
    """A pair of candidates: 1 where an entrant is right, else 0, and what the pair is counted under."""

    part: str
    group: str
    tags: tuple[str, ...]
    value: float


_Points: TypeAlias = Mapping[str, _Point]


def vote_headlines(
    benchmark: str, judged: Sequence[JudgedPart], tie_handling: VoteScheme, options: StatisticsOptions
) -> tuple[Headline, ...]:
    """The headline of a benchmark of votes: accuracy with one tie handling.

    A judge that scores is taken by O, where it has none by SC.

    Args:
        benchmark: its name, which joins the seed.
        judged: its parts, with all that stand in its tables.
        tie_handling: the ties that count.
        options: how many draws, the seed.
    """
    bootstrap = Bootstrap.for_part(f"{benchmark}/{ALL_PARTS}", options)
    pooled = {label: _pooled(judged, label, subject, tie_handling) for label, subject in _subjects(judged).items()}
    judges = {label: points for label, points in pooled.items() if points}
    if not judges:
        return ()
    fixed_answers = _constants(judged, tie_handling)
    constants = {label: _accuracy_of(points, bootstrap) for label, points in fixed_answers.items()}
    best = max(constants, key=lambda label: constants[label].value, default=None)
    broken = {
        "part": _broken(pooled, lambda point: (point.part,), bootstrap),
        "category": _broken(pooled, lambda point: point.tags, bootstrap),
    }
    headline = Headline(
        VOTES,
        f"Share of pairs in which the judge says what people say (accuracy, {_tie_handling_text(tie_handling)})",
        f"It is the question that people were asked, counted {_tie_handling_text(tie_handling)}; a missing answer is wrong, and a judge "
        "that is not above the best fixed answer is no judge.",
        "pairs",
        (0.0, 1.0),
        {label: _accuracy_of(points, bootstrap) for label, points in judges.items()},
        lambda _: _compared(judges, tie_handling, list(fixed_answers.values())),
        _human_ceiling(judged, tie_handling, bootstrap) | ({best: constants[best]} if best else {}),
        {name: breakdown for name, breakdown in broken.items() if len(breakdown) > 1},
        statistic="accuracy",
    )
    return (headline,)


def _subjects(judged: Sequence[JudgedPart]) -> dict[str, str]:
    """The source of each judge's votes: its own, or its score of one aspect."""
    subjects_by_judge: dict[str, list[str]] = {}
    for entrant in (entrant for of_part in judged for entrant in of_part.entrants if not entrant.constant):
        subjects_by_judge.setdefault(entrant.label, []).append(entrant.subject)
    return {label: preferred(subjects)[0] for label, subjects in subjects_by_judge.items()}


def _pooled(judged: Sequence[JudgedPart], label: str, subject: str, tie_handling: VoteScheme) -> _Points:
    """The points of an entrant in the pairs of all parts, by their names; it has none where its answers are not such votes."""
    pooled: dict[str, _Point] = {}
    for of_part in judged:
        for entrant in of_part.entrants:
            if (entrant.label, entrant.subject) == (label, subject) and entrant.accepted:
                pooled |= _points(of_part.part, entrant, tie_handling)
    return pooled


def _points(part: str, entrant: Entrant, tie_handling: VoteScheme) -> _Points:
    pairs = entrant.answers.pairs
    return {
        f"{part}/{pairs.observations[contest].uid}/{first}/{second}": _Point(
            part, f"{part}/{group}", pairs.observations[contest].tags, value
        )
        for contest, (first, second), group, value in zip(
            pairs.contest.tolist(),
            pairs.indices.tolist(),
            pairs.groups,
            entrant.answers.points(tie_handling).tolist(),
            strict=True,
        )
        if not np.isnan(value)
    }


def _constants(judged: Sequence[JudgedPart], tie_handling: VoteScheme) -> dict[str, _Points]:
    names = dict.fromkeys((o.label, o.subject) for part in judged for o in part.entrants if o.constant and o.accepted)
    tie = "a tie" if tie_handling == "three_way" else r"both \1"  # of three-way votes any tie is right
    return {
        f"best constant: {re.sub('both_(good|bad)', tie, label)}": _pooled(judged, label, subject, tie_handling)
        for label, subject in names
    }


def _human_ceiling(judged: Sequence[JudgedPart], tie_handling: VoteScheme, bootstrap: Bootstrap) -> dict[str, Estimate]:
    """Agreement of annotators with one another, where there are several."""
    values: list[float] = []
    groups: list[str] = []
    for of_part in judged:
        pairs = max(
            (entrant.answers.pairs for entrant in of_part.entrants), key=lambda pairs: len(pairs.groups), default=None
        )
        if pairs is not None and len(annotations := pairs.annotations()) > 1:
            points = ceiling_points(annotations, tie_handling)
            points = points.reshape(-1, points.shape[-1])
            voted_twice = np.flatnonzero(~np.isnan(points).all(axis=0))
            values += np.nanmean(points[:, voted_twice], axis=0).tolist()
            groups += [f"{of_part.part}/{pairs.groups[index]}" for index in voted_twice]
    if not values:
        return {}
    return {"human ceiling: annotators with one another": bootstrap.share(np.array(values), groups)}


def _broken(
    judges: Mapping[str, _Points], values_of_point: Callable[[_Point], Sequence[str]], bootstrap: Bootstrap
) -> Breakdown:
    values = dict.fromkeys(
        value for points in judges.values() for point in points.values() for value in values_of_point(point)
    )
    return {
        value: {
            label: _accuracy_of(points_with_value, bootstrap)
            for label, points in judges.items()
            if (points_with_value := {name: point for name, point in points.items() if value in values_of_point(point)})
        }
        for value in values
    }


def _accuracy_of(points: _Points, bootstrap: Bootstrap) -> Estimate:
    values = np.array([point.value for point in points.values()], dtype=float)
    return bootstrap.share(values, [point.group for point in points.values()])


def _compared(
    points: Mapping[str, _Points], tie_handling: VoteScheme, fixed_answers: Sequence[_Points]
) -> ComparedStatistic:
    items = {
        label: {name: JudgedItem(point.group, point.value) for name, point in judge_points.items()}
        for label, judge_points in points.items()
    }
    parts = list(dict.fromkeys(point.part for judge_points in points.values() for point in judge_points.values()))
    missing_parts = {
        label: [part for part in parts if part not in {point.part for point in judge_points.values()}]
        for label, judge_points in points.items()
    }
    statistic = f"accuracy {tie_handling.replace('_', '-')}"
    constants = [{name: point.value for name, point in answer.items()} for answer in fixed_answers]
    unit = "pairs of candidates"
    return compared_means(ALL_PARTS, VOTES, statistic, items, unit, missing_parts=missing_parts, constants=constants)


_RULE = "% [95% interval]; a missing answer counts as wrong, under every policy for failures"
_NOT_ABOVE = "not shown to be above the best constant"


@dataclass(frozen=True)
class Line:
    """An entrant in a part with its shares by name."""

    part: str
    entrant: Entrant
    shares: Mapping[str, Estimate]

    @property
    def not_above(self) -> list[str]:
        """The tie handlings with which it is not significantly above the best constant."""
        prefix = "above_constant_"
        margins = [(name, share) for name, share in self.shares.items() if name.startswith(prefix) and share.defined]
        return [name.removeprefix(prefix) for name, share in margins if not share.low > 0 and not self.entrant.constant]


def vote_tables(
    benchmark: str,
    parts: Sequence[str],
    runs: Sequence[Run],
    scheme: str,
    options: StatisticsOptions,
    rated: bool = False,
    tie_handling: VoteScheme | None = None,
) -> Tables:
    """Tables of a benchmark of votes, and their numbers as cells, in percent, under the benchmark's own name.

    Args:
        benchmark: its name, part of the seed.
        parts: all its parts, in order.
        runs: one a judge, labels all different.
        scheme: that of its votes.
        options: how many draws, the seed.
        rated: whether people's ratings of the candidates stand beside the judges.
        tie_handling: that of the headline, the most detailed one where none is named.

    Returns:
        Tables without any row are left out. The document lists which judges are not significantly above the best
        constant answer, and in which way of counting.
    """
    judged = [
        JudgedPart(part, entrants_of(part, runs, scheme, bootstrap, options), bootstrap)
        for part in parts_of(parts, runs)
        for bootstrap in [Bootstrap.for_part(f"{benchmark}/{part}", options)]
    ]
    lines = [line for of_part in judged for line in _lines(of_part, scheme)]
    of_ratings, cells = beside_ratings(benchmark, judged, options) if rated else ([], {})
    tables = [
        *of_ratings,
        _accuracy(lines, scheme),
        _orders(lines, scheme),
        _paper(lines),
        *breakdowns(judged, scheme),
        _statuses(runs),
    ]
    reasons: dict[Key, str] = {}
    for line in lines:
        for what, share in line.shares.items():
            key = Key(benchmark, line.part, "", line.entrant.label, what, line.entrant.aspect)
            cells[key] = 100 * share.value
            reasons |= {} if share.defined else {key: share.reason}
    not_above = [
        {"task": line.part, "judge": line.entrant.label, "votes_from": line.entrant.subject, "counted": ties}
        for line in lines
        for ties in line.not_above
    ]
    headlines = vote_headlines(benchmark, judged, tie_handling or TIE_HANDLINGS[scheme][0], options)
    return Tables(
        tuple(table for table in tables if table.rows),
        cells,
        {"not_above_best_constant": not_above},
        reasons,
        headlines,
    )


def _lines(judged: JudgedPart, scheme: str) -> list[Line]:
    judges = [entrant for entrant in judged.entrants if not entrant.constant]
    voting = any(entrant.voting for entrant in judges)
    as_authors = any(has_paper(entrant.answers.pairs) for entrant in judges)
    lines = []
    for entrant in judged.entrants:
        answers, shares = entrant.answers, dict[str, Share]()
        if entrant.accepted:
            shares |= accuracies(scheme) | bounds(answers.bounds) | all_pairs_right_shares(scheme)
            shares |= order_shares(scheme) if entrant.voting and voting else {}
        if as_authors and has_paper(answers.pairs):
            shares |= paper_scheme_shares()
        estimates = {name: share(answers, judged.bootstrap) for name, share in shares.items()}
        lines.append(Line(judged.part, entrant, estimates))
    return lines


def _accuracy(lines: Sequence[Line], scheme: str) -> Table:
    tie_handlings = TIE_HANDLINGS[scheme]
    bounded = [ties for ties in tie_handlings if any(f"upper_bound_{ties}" in line.shares for line in lines)]
    wholes = [ties for ties in tie_handlings if any(f"all_pairs_accuracy_{ties}" in line.shares for line in lines)]
    columns = [
        *((_tie_handling_text(ties), f"accuracy_{ties}") for ties in tie_handlings),
        *((f"all pairs of a contest, {_tie_handling_text(ties)}", f"all_pairs_accuracy_{ties}") for ties in wholes),
        *((f"upper bound {_tie_handling_text(ties)}", f"upper_bound_{ties}") for ties in bounded),
    ]
    header = ("task", "judge", "votes from", "answered", "left out", *_with_counts(columns), _NOT_ABOVE)
    rows = []
    for line in lines:
        if f"accuracy_{tie_handlings[0]}" in line.shares:
            entrant = line.entrant
            answer_count_text = f"{len(entrant.answers.complete)} of {len(entrant.answers.pairs.observations)}"
            not_above = ", ".join(_tie_handling_text(ties) for ties in line.not_above if ties != "paper")
            head = (line.part, entrant.label, entrant.subject, answer_count_text, entrant.left_out)
            rows.append((*head, *_cells(line, columns), not_above))
    bound_note = "; an upper bound has thresholds that are best on the test set itself" if bounded else ""
    return Table("accuracy", f"Accuracy, {_RULE}{bound_note}", header, tuple(rows))


def _orders(lines: Sequence[Line], scheme: str) -> Table:
    columns = [
        *((f"forward {_tie_handling_text(ties)}", f"forward_accuracy_{ties}") for ties in TIE_HANDLINGS[scheme]),
        ("both orders", "both_orders_accuracy"),
        ("each order", "each_order_accuracy"),
        ("consistent", "consistent_share"),
        ("inconsistent", "inconsistent_share"),
    ]
    parts_in_both_orders = {line.part for line in lines if not line.entrant.constant and _has_two_orders(line)}
    rows = [
        (line.part, line.entrant.label, *_cells(line, columns))
        for line in lines
        if line.part in parts_in_both_orders and "both_orders_accuracy" in line.shares
    ]
    header = ("task", "judge", *_with_counts(columns))
    way = _tie_handling_text(TIE_HANDLINGS[scheme][0])
    title = f"Orders of showing, {_RULE}; both counted {way}; of each order what was not read does not count"
    return Table("orders", title, header, tuple(rows))


def _has_two_orders(line: Line) -> bool:
    """True where a judge was asked in both orders: in one order alone, the table of accuracy says it all."""
    return "both_orders_accuracy" in line.shares and not line.shares["both_orders_accuracy"].reason


def _paper(lines: Sequence[Line]) -> Table:
    columns = [("accuracy", "accuracy_paper"), ("above the best constant by", "above_constant_paper")]
    rows = [
        (line.part, line.entrant.label, *_cells(line, columns), "not above" * ("paper" in line.not_above))
        for line in lines
        if "accuracy_paper" in line.shares
    ]
    title = f"Accuracy of the forward order as the authors read answers, {_RULE}"
    return Table("paper", title, ("task", "judge", *_with_counts(columns), _NOT_ABOVE), tuple(rows))


def _statuses(runs: Sequence[Run]) -> Table:
    status_counts = [
        (part, run.label, Counter(record.verdict.status for judged in contests for record in judged))
        for run in runs
        for part, contests in run.records.items()
    ]
    rows = [
        (part, label, str(counts.total()), *(str(counts[status]) for status in Status))
        for part, label, counts in status_counts
    ]
    return Table("statuses", "Verdicts by status", ("task", "judge", "contests", *map(str, Status)), tuple(rows))


def _with_counts(columns: Sequence[tuple[str, str]]) -> list[str]:
    return [name for title, _ in columns for name in ("n", title)]


def _cells(line: Line, columns: Sequence[tuple[str, str]]) -> list[str]:
    shares = [line.shares.get(what) for _, what in columns]
    return [cell for share in shares for cell in (("", "") if share is None else (str(share.n), in_percent(share)))]


def _tie_handling_text(tie_handling: str) -> str:
    return tie_handling.replace("_", "-")
