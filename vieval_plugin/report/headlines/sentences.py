"""Sentences about a leaderboard: the answer first, then what limits it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from vieval_plugin.meta_evaluation.comparison import LEAST_FOR_A_TEST, SystemPair
from vieval_plugin.meta_evaluation.tables import p_sentence
from vieval_plugin.records import YOUR_IMAGES
from vieval_plugin.report.headlines.costs import statuses_text
from vieval_plugin.report.headlines.leaderboards import Leaderboard, LeaderboardRow
from vieval_plugin.report.headlines.words import (
    breakdown_words,
    reason_words,
    short_decimal,
    short_number,
    statistic_words,
    task_type,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.wording import enumeration

_MOST_NAMED = 3
"""Number of rows that a sentence names; of more it says how many there are."""
_NAMED_WORSE = 5
"""Number of rows that a sentence without ranks names as worse than another."""
_NOTABLE = 0.05
"""Difference from which the lowest and the highest of a breakdown are named."""


def sentences(board: Leaderboard, with_subject: bool = True) -> list[str]:
    """Return a leaderboard in words, the answer first; it says on what benchmark and by which statistic.

    Args:
        board: with one row or more.
        with_subject: whether the first says whose scores of which images these are, where rows are generators.
    """
    scores_of = f" on {board.against}" if board.headline.judge and with_subject else ""
    rows = [row for row in board.rows if row.estimate.defined]
    if not rows:
        return [_without_numbers(board, scores_of)]
    first, *following = _sentences(board, rows)
    if first.startswith(YOUR_IMAGES.capitalize()):
        scores_of = scores_of.removeprefix(f" on {YOUR_IMAGES}")
    return [f"{first.removesuffix('.')}{scores_of}.", *following]


def sentence_by_another_aspect(board: Leaderboard, lacking_judges: Sequence[str], aspect: str) -> str:
    """The answer of a leaderboard whose aspect some judges rate who lack that of the first leaderboard.

    Args:
        board: with one row or more.
        lacking_judges: labels of these judges, one or more.
        aspect: what they lack.
    """
    have = "has" if len(lacking_judges) == 1 else "have"
    return f"By {board.headline.aspect}, as {_named_or_counted(lacking_judges, _NAMED_WORSE)} {have} no {aspect}: {sentences(board)[0]}"


def _sentences(board: Leaderboard, rows: Sequence[LeaderboardRow]) -> list[str]:
    alike = rows[0].one_answer
    text = [f"{_own_number(board, rows[0])}, but {alike}."] if alike else []
    text += [] if alike and len(rows) == 1 else [_answer(board, rows)]
    partial = [row for row in rows[:1] if str(row.estimate.coverage) and not row.unranked and len(rows) > 1]
    text += [f"The number of {row.label} is on {row.estimate.coverage}." for row in partial]
    text += _too_few(board)
    text += _unranked_sentences(board, rows)
    text += _beside_references(board, rows)
    text += _breakdown_sentences(board, rows[0])
    warned = [(row.label, row.cost.warning if row is rows[0] else row.warning) for row in rows]
    text += [f"{label}: {warning}." for label, warning in warned if warning]
    reasons = [(row.label, row.cost.warning or row.estimate.reason) for row in board.rows if not row.estimate.defined]
    return [*text, *(f"{label} has no {_statistic(board)}: {reason}." for label, reason in reasons if reason)]


def _too_few(board: Leaderboard) -> list[str]:
    """Sentence where no two have enough in common for a test to find a difference."""
    comparison = board.comparison
    if comparison is None or max((pair.n for pair in comparison.pairs), default=LEAST_FOR_A_TEST) >= LEAST_FOR_A_TEST:
        return []
    return [few_sentence(comparison.compared.unit)]


def few_sentence(unit: str) -> str:
    """Sentence on fewer samples than a test needs.

    >>> few_sentence("prompts")
    'Fewer than 6 prompts can show no difference.'
    """
    return f"Fewer than {LEAST_FOR_A_TEST} {unit} can show no difference."


def _without_numbers(board: Leaderboard, scores_of: str) -> str:
    """Sentence where no row has a number: why, if verdicts failed."""
    failed, verdicts = sum(row.cost.failed for row in board.rows), sum(row.cost.verdicts for row in board.rows)
    statuses = sum((Counter(dict(row.cost.statuses)) for row in board.rows), Counter[str]())
    kinds = statuses_text(statuses.most_common())
    why = f": {failed} of {verdicts} verdicts have no score ({kinds})" if failed else ""
    return f"No {board.headline.entrant} has a {_statistic(board)}{_compared(board)}{scores_of}{why}."


def _statistic(board: Leaderboard) -> str:
    return statistic_words(board.headline.statistic or board.headline.title)


def _compared(board: Leaderboard) -> str:
    """Words after a statistic that say with whose ratings it compares; empty where rows are generators."""
    return "" if board.headline.judge else f" with {board.against}"


def _own_number(board: Leaderboard, row: LeaderboardRow) -> str:
    rests_on = str(row.estimate.coverage)
    statistic, value = _statistic(board), short_number(row.estimate)
    if statistic.startswith("accuracy") and not board.headline.judge:
        number = f"{row.label} agrees with {board.against} at {statistic} {value}"
    else:
        subject = f"{YOUR_IMAGES.capitalize()} have" if row.label == YOUR_IMAGES else f"{row.label} has"
        number = f"{subject} {statistic} {value}{_compared(board)}"
    return f"{number}, on {rests_on}" if rests_on else number


def _answer(board: Leaderboard, rows: Sequence[LeaderboardRow]) -> str:
    ranked = board.ranked
    if len(rows) == 1 or board.comparison is None:
        return _range_sentence(board, rows)
    if board.comparison.reason:
        return f"{_range_sentence(board, rows)} Without ranks: {board.comparison.reason}."
    if not ranked:
        return _pairwise_sentence(board)
    first = ranked[0]
    labels = [row.label for row in ranked[1:]]
    worse = [label for label in labels if board.comparison.beats(first.label, label)]
    equal = [label for label in labels if label not in worse]
    scope = f"Of the {len(ranked)} ranked, " if len(ranked) < len(rows) else ""
    if not equal:
        pair = board.comparison.pair_of(first.label, labels[0])
        nearest_label = f"{labels[0]} " if len(labels) > 1 else ""
        nearest = f" ({nearest_label}by {_difference_text(pair)})" if pair else ""
        best = "is best" if board.headline.judge else "agrees best"
        return (
            f"{scope}{first.label} {best}{_compared(board)}: {_statistic(board)} {short_number(first.estimate)}, "
            f"significantly better than {_named_or_counted(worse)}{nearest}."
        )
    if not any(pair.significant for pair in board.comparison.pairs):
        return " ".join([_equal_sentence(board, ranked), *_ahead_without_failures(board)])
    return " ".join([_highest_sentence(board, scope, worse, equal), *_ahead_without_failures(board)])


def _ahead_without_failures(board: Leaderboard) -> list[str]:
    """Sentences on differences that are significant only while the better one's failures are left out."""
    doubtful = [pair.better_first() for pair in board.comparison.pairs if pair.doubtful] if board.comparison else []
    return [
        f"{pair.first} is ahead of {pair.second} only while its failures are left out (by {_difference_text(pair)}), and "
        "not with these as the lowest score."
        for pair in doubtful[:_MOST_NAMED]
    ]


def _equal_sentence(board: Leaderboard, ranked: Sequence[LeaderboardRow]) -> str:
    """Sentence where no ranked system is significantly better than another."""
    first, last = ranked[0], ranked[-1]
    number, lowest = short_number(first.estimate), short_number(last.estimate)
    entrants = f"The {len(ranked)} {_entrants(board)}"
    subject = f"{first.label} and {last.label}" if len(ranked) == 2 else entrants
    measured = f"by their {_statistic(board)}{_compared(board)}"
    if len(ranked) == 2:
        return f"{subject} cannot be told apart {measured}: {number} against {lowest}."
    return f"{subject} cannot be told apart {measured}: from {lowest} ({last.label}) to {number} ({first.label})."


def _highest_sentence(board: Leaderboard, scope: str, worse: Sequence[str], equal: Sequence[str]) -> str:
    """Sentence where the first is better than some at most, and others are better than others."""
    assert board.comparison is not None
    first = board.ranked[0]
    tied = [row.label for row in board.ranked if row.estimate.value == first.estimate.value]
    verb = "have" if len(tied) > 1 else "has"
    highest = (
        f"{scope}{enumeration(tied)} {verb} the highest {_statistic(board)}{_compared(board)}, "
        f"{short_number(first.estimate)}{f'; {first.label}' if len(tied) > 1 else ', but'}"
    )
    better = f"; it is better than {_named_or_counted(worse)}" if worse else ""
    answer = f"{highest} is not significantly better than {_named_or_counted(equal)}{better}."
    return " ".join([answer, *_better_on_common(board, equal, first.label)])


def _entrants(board: Leaderboard) -> str:
    assert board.comparison is not None
    return board.comparison.compared.entrants


def _range_sentence(board: Leaderboard, rows: Sequence[LeaderboardRow]) -> str:
    """The range of numbers, of the systems that cover the benchmark where any does."""
    covering = sorted([row for row in rows if not row.unranked] or rows, key=lambda row: row.estimate.value)
    lowest, highest = covering[0], covering[-1]
    if len(covering) == 1:
        return f"{_own_number(board, highest)}."
    return (
        f"The {_statistic(board)}{_compared(board)} is from {short_decimal(lowest.estimate.value)} ({lowest.label}) to "
        f"{short_number(highest.estimate)} ({highest.label})."
    )


def _pairwise_sentence(board: Leaderboard) -> str:
    """Sentence where no two systems cover the benchmark: which is better than which, on what both scored."""
    assert board.comparison is not None
    worse_than: dict[str, list[str]] = {}
    for pair in board.comparison.all_pairs:
        if pair.significant:
            ordered = pair.better_first()
            worse_than.setdefault(ordered.first, []).append(ordered.second)
    verb = "is" if board.headline.judge else "agrees"
    by = f"by {_statistic(board)} on the {board.comparison.compared.unit} that both scored"
    if not worse_than:
        return f"No {board.headline.entrant} {verb} significantly better{_compared(board)} than another, {by}."
    results = sorted(worse_than.items(), key=lambda result: -len(result[1]))
    (better, worse), *further = results[:_MOST_NAMED]
    text = f"{better} {verb} significantly better{_compared(board)} than {_named_or_counted(worse, _NAMED_WORSE)}"
    text += "".join(f"; {label} than {_named_or_counted(worse, _NAMED_WORSE)}" for label, worse in further)
    more = f"; and {len(results) - _MOST_NAMED} more are better than others" if len(results) > _MOST_NAMED else ""
    return f"{text}{more}, {by}."


def _unranked_sentences(board: Leaderboard, rows: Sequence[LeaderboardRow]) -> list[str]:
    """Systems without a rank with the reasons, and those of them that are significantly better than the first."""
    unranked = [row for row in rows if not row.rank and row.unranked]
    tested = board.comparison is not None and not board.comparison.reason
    if not unranked or len(rows) == 1 or (not tested and len(unranked) == len(rows)):
        return []
    text = f"{'Not ranked' if tested else 'Not among these'}: "
    text += ", ".join(f"{row.label} ({reason_words(row.unranked)})" for row in unranked[:_NAMED_WORSE])
    text += f" and {len(unranked) - _NAMED_WORSE} more" if len(unranked) > _NAMED_WORSE else ""
    better = [row.label for row in unranked] if tested and board.ranked else []
    if tested and not board.ranked:
        covering = [row.label for row in rows if not row.unranked]
        alone = f"Only {covering[0]}" if covering else f"No {board.headline.entrant} of these"
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
    return f"{short_number(pair.result.difference)}, {p_sentence(pair.adjusted)}"


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
            value = f" ({short_decimal(reference.value)})" if reference.value else ""
            lower = [row.label for row in rows if position_to_reference(row.estimate, reference) == "below"]
            unsure = [label for label in low if label not in lower]
            text += [f"Below the {name}{value}: {_named_or_counted(lower)}."] if lower else []
            text += [f"Not shown to be above the {name}{value}: {_named_or_counted(unsure)}."] if unsure else []
    return text


def _beside_ceiling(board: Leaderboard, first: LeaderboardRow, name: str, reference: Estimate) -> str:
    """The best row and the annotators, by the same samples and the same other annotators where there are ratings of each."""
    ceiling = board.headline.ceiling(first.label) if board.headline.ceiling else None
    if ceiling is None:
        return (
            f"{first.label} is {position_to_reference(first.estimate, reference)} the {name} "
            f"({short_decimal(reference.value)})."
        )
    return (
        f"{first.label} is {ceiling.position} the {name}: with the mean of the other annotators it correlates by "
        f"{short_decimal(ceiling.judge)}, an annotator by {short_decimal(ceiling.annotators)} (difference "
        f"{short_number(ceiling.difference)})."
    )


def position_to_reference(estimate: Estimate, reference: Estimate) -> str:
    low, high = (reference.value if math.isnan(end) else end for end in (reference.low, reference.high))
    if estimate.low > high:
        return "above"
    return "below" if estimate.high < low else "not shown to be above or below"


def _breakdown_sentences(board: Leaderboard, first: LeaderboardRow) -> list[str]:
    text = []
    for breakdown, by_value in board.headline.breakdowns.items():
        numbers = [
            (estimates[first.label].value, value, estimates[first.label].n)
            for value, estimates in by_value.items()
            if first.label in estimates and estimates[first.label].defined
        ]
        if len(numbers) > 1 and max(numbers)[0] - min(numbers)[0] >= _NOTABLE:
            (low, lowest, n), (high, highest, m) = min(numbers), max(numbers)
            text.append(
                f"By {breakdown_words(breakdown)}, {first.label} is lowest on {task_type(lowest)} ({short_decimal(low)}, n {n}) "
                f"and highest on {task_type(highest)} ({short_decimal(high)}, n {m})."
            )
    return text


def format_estimate(estimate: Estimate) -> str:
    """Return an estimate with its interval in text."""
    if not estimate.defined:
        return f"undefined ({estimate.reason})" if estimate.reason else "undefined"
    rests_on = str(estimate.coverage)
    return f"{_number(estimate)}{f' on {rests_on}' if rests_on else ''}"


def _number(estimate: Estimate) -> str:
    interval = f" [{estimate.low:.3f}, {estimate.high:.3f}]" if estimate.has_interval else ""
    return f"{estimate.value:.3f}{interval}"


def _named_or_counted(labels: Sequence[str], most_named: int = _MOST_NAMED) -> str:
    return enumeration(labels) if len(labels) <= most_named else f"{len(labels)} others"
