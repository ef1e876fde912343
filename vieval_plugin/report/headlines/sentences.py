"""Sentences about a leaderboard: the answer first, then what limits it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.tables import p_text
from vieval_plugin.report.headlines.leaderboards import Leaderboard, LeaderboardRow
from vieval_plugin.report.headlines.words import heading_words, task_type
from vieval_plugin.stats.estimate import Estimate

_NAMED = 3
"""Number of rows that a sentence names; of more it says how many there are."""
_NOTABLE = 0.05
"""Difference from which the lowest and the highest of a breakdown are named."""


def sentences(board: Leaderboard) -> list[str]:
    """Return a leaderboard in words, the answer first.

    Args:
        board: with one row or more.
    """
    rows = [row for row in board.rows if row.estimate.defined]
    if not rows:
        return [_without_numbers(board)]
    text = [f"{row.label}: {row.one_answer}." for row in rows[:1] if row.one_answer]
    text.append(_answer(board, rows))
    partial = [row for row in board.ranked[:1] if str(row.estimate.coverage) and len(rows) > 1]
    text += [f"The number of {row.label} is on {row.estimate.coverage}." for row in partial]
    text += _unranked_sentences(board, rows)
    text += _beside_references(board, rows)
    text += _breakdown_sentences(board, rows[0])
    warned = [(row.label, row.cost.warning if row is rows[0] else row.warning) for row in rows]
    text += [f"{label}: {warning}." for label, warning in warned if warning]
    return text


def _without_numbers(board: Leaderboard) -> str:
    """Sentence where no row has a number: why, if verdicts failed."""
    failed, verdicts = sum(row.cost.failed for row in board.rows), sum(row.cost.verdicts for row in board.rows)
    statuses = sum((Counter(dict(row.cost.statuses)) for row in board.rows), Counter[str]())
    kinds = ", ".join(f"{n} {status}" for status, n in statuses.most_common())
    why = f": {failed} of {verdicts} verdicts have no score ({kinds})" if failed else ""
    return f"No {board.headline.entrant} has a number here{why}."


def _answer(board: Leaderboard, rows: Sequence[LeaderboardRow]) -> str:
    ranked = board.ranked
    if len(rows) == 1 or board.comparison is None:
        return _range_sentence(board, rows)
    if board.comparison.reason:
        return f"{_range_sentence(board, rows)} Without ranks: {board.comparison.reason}."
    if len(ranked) < 2:
        return _pairwise_sentence(board, ranked)
    first = ranked[0]
    labels = [row.label for row in ranked[1:]]
    worse = [label for label in labels if board.comparison.beats(first.label, label)]
    equal = [label for label in labels if label not in worse]
    scope = f" of the {len(ranked)} ranked" if len(ranked) < len(rows) else ""
    number = _number(first.estimate)
    if not equal:
        pair = board.comparison.pair_of(first.label, labels[0])
        named = f"{labels[0]} " if len(labels) > 1 else ""
        nearest = f" ({named}by {_difference_text(pair)})" if pair else ""
        return f"{first.label} is best{scope}: {_measured(board)}{number}, significantly better than {_named_or_counted(worse)}{nearest}."
    if not any(pair.significant for pair in board.comparison.pairs):
        last, entrants = ranked[-1], board.comparison.compared.entrants
        if len(ranked) == 2:
            against = f"{number} against {_number(last.estimate)}"
            return f"{first.label} and {last.label} cannot be told apart: {_measured(board)}{against}."
        return (
            f"The {len(ranked)} {entrants} cannot be told apart: {_measured(board)}from {last.estimate.value:.3f} ({last.label}) to {number} "
            f"({first.label})."
        )
    better = f"; it is better than {_named_or_counted(worse)}" if worse else ""
    tied = [row.label for row in ranked if row.estimate.value == first.estimate.value]
    highest = (
        f"{_enumeration(tied)} have the highest number{scope}, {number}; {first.label}"
        if len(tied) > 1
        else f"{first.label} has the highest number{scope}, {number}, but"
    )
    answer = f"{highest} is not significantly better than {_named_or_counted(equal)}{better}."
    return " ".join([answer, *_better_on_common(board, equal, first.label)])


def _measured(board: Leaderboard) -> str:
    """The aspect before a number where it is a mean score, which no other word of the sentence says."""
    return f"{board.headline.aspect} " if board.headline.judge else ""


def _range_sentence(board: Leaderboard, rows: Sequence[LeaderboardRow]) -> str:
    """The range of numbers, of the systems that cover the benchmark where any does."""
    covering = sorted([row for row in rows if not row.unranked] or rows, key=lambda row: row.estimate.value)
    lowest, highest = covering[0], covering[-1]
    if len(covering) == 1:
        return f"{highest.label} has {_measured(board)}{format_estimate(highest.estimate)}."
    return (
        f"The numbers are from {lowest.estimate.value:.3f} ({lowest.label}) to {format_estimate(highest.estimate)} "
        f"({highest.label})."
    )


def _pairwise_sentence(board: Leaderboard, ranked: Sequence[LeaderboardRow]) -> str:
    """Sentence where no two systems cover the benchmark: which is better than which, on what both scored."""
    assert board.comparison is not None
    worse_than: dict[str, list[str]] = {}
    for pair in board.comparison.all_pairs:
        if pair.significant:
            ordered = pair.better_first()
            worse_than.setdefault(ordered.first, []).append(ordered.second)
    results = [f"{better} is significantly better than {_enumeration(worse)}" for better, worse in worse_than.items()]
    text = "; ".join(results) or f"No {board.headline.entrant} is significantly better than another"
    return f"{text}, on the {board.comparison.compared.unit} that both scored."


def _unranked_sentences(board: Leaderboard, rows: Sequence[LeaderboardRow]) -> list[str]:
    """Systems without a rank with the reasons, and those of them that are significantly better than the first."""
    unranked = [row for row in rows if not row.rank and row.unranked]
    tested = board.comparison is not None and not board.comparison.reason
    if not unranked or len(rows) == 1 or (not tested and len(unranked) == len(rows)):
        return []
    text = f"{'Not ranked' if tested else 'Not among these'}: "
    text += ", ".join(f"{row.label} ({row.unranked})" for row in unranked)
    better = [row.label for row in unranked] if tested and len(board.ranked) > 1 else []
    if tested and len(board.ranked) < 2:
        alone = f"Only {board.ranked[0].label}" if board.ranked else f"No {board.headline.entrant} of these"
        text += f". {alone} covers the benchmark, so there is no one order"
    return [f"{text}.", *_better_on_common(board, better, rows[0].label)]


def _better_on_common(board: Leaderboard, labels: Sequence[str], first: str) -> list[str]:
    """Sentences on systems that are significantly better than the first, whatever place they have."""
    assert board.comparison is not None or not labels
    return [
        f"{label} is significantly better than {first} on the {pair.n} {board.comparison.compared.unit} that both scored."
        for label in labels
        if board.comparison
        and board.comparison.beats(label, first)
        and (pair := board.comparison.pair_of(label, first))
    ]


def _difference_text(pair: SystemPair) -> str:
    p = p_text(pair.adjusted)
    return f"{format_estimate(pair.result.difference)}, p {p if p.startswith('<') else f'= {p}'}"


def _beside_references(board: Leaderboard, rows: Sequence[LeaderboardRow]) -> list[str]:
    """The best row beside the human ceiling, and the rows that are not above a constant baseline."""
    text = []
    for label, reference in board.headline.references.items():
        name = label.split(":")[0]
        if not reference.defined:
            continue
        if "ceiling" in name:
            text.append(_beside_ceiling(board, rows[0], name, reference))
        else:
            low = [row.label for row in rows if row.not_above_constant]
            value = f" ({reference.value:.3f})" if reference.value else ""
            text += [f"Not shown to be above the {name}{value}: {_named_or_counted(low)}."] if low else []
    return text


def _beside_ceiling(board: Leaderboard, first: LeaderboardRow, name: str, reference: Estimate) -> str:
    """The best row and the annotators, by the same samples and the same other annotators where there are ratings of each."""
    ceiling = board.headline.ceiling(first.label) if board.headline.ceiling else None
    if ceiling is None:
        return (
            f"{first.label} is {position_to_reference(first.estimate, reference)} the {name} ({reference.value:.3f})."
        )
    return (
        f"{first.label} is {ceiling.position} the {name}: with the mean of the other annotators it correlates by "
        f"{ceiling.judge:.3f}, an annotator by {ceiling.annotators:.3f} (difference "
        f"{format_estimate(ceiling.difference)})."
    )


def position_to_reference(estimate: Estimate, reference: Estimate) -> str:
    low, high = (reference.value if math.isnan(end) else end for end in (reference.low, reference.high))
    if estimate.low > high:
        return "above"
    return "below" if estimate.high < low else "not shown to be above or below"


def _breakdown_sentences(board: Leaderboard, first: LeaderboardRow) -> list[str]:
    text = []
    for heading, by_value in board.headline.breakdowns.items():
        known = [
            (estimates[first.label].value, value, estimates[first.label].n)
            for value, estimates in by_value.items()
            if first.label in estimates and estimates[first.label].defined
        ]
        if len(known) > 1 and max(known)[0] - min(known)[0] >= _NOTABLE:
            (low, lowest, n), (high, highest, m) = min(known), max(known)
            text.append(
                f"By {heading_words(heading)}, {first.label} is lowest on {task_type(lowest)} ({low:.2f}, n {n}) and highest "
                f"on {task_type(highest)} ({high:.2f}, n {m})."
            )
    return text


def format_estimate(estimate: Estimate) -> str:
    """Return an estimate with its interval in text."""
    if not estimate.defined:
        return f"undefined ({estimate.reason})" if estimate.reason else "undefined"
    rests_on = str(estimate.coverage)
    return f"{_number(estimate)}{f' on {rests_on}' if rests_on else ''}"


def _number(estimate: Estimate) -> str:
    interval = "" if math.isnan(estimate.low) else f" [{estimate.low:.3f}, {estimate.high:.3f}]"
    return f"{estimate.value:.3f}{interval}"


def _named_or_counted(labels: Sequence[str]) -> str:
    return _enumeration(labels) if len(labels) <= _NAMED else f"{len(labels)} others"


def _enumeration(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"
