"""A card in sentences: the model's level, its strengths and weaknesses, and the limits
of the numbers.

Sentences on the verdicts are the same as in a report (`report.answer`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from vieval_plugin.card.card import Card, CardAudit, CardRepeats
from vieval_plugin.card.placing import PlacedJudge
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.tables import p_sentence
from vieval_plugin.report.answer import answer
from vieval_plugin.report.tables import rank_text
from vieval_plugin.report.words import (
    breakdown_words,
    number_word,
    reason_words,
    sentence_number,
    short_decimal,
    statistic_words,
    task_type,
)
from vieval_plugin.stats.decisions import (
    CLEAR_LEAD,
    EQUAL_JUDGES,
    FEW_TASK_TYPES,
    MOST_UNREAD,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.wording import enumeration, plural

#: Beginnings of an audit's findings: unexpected effects, those of changes that do not
#: lower a score, and undecided ones.
FLAGGED = "FLAGGED"
UNNOTICED = "FLAGGED: does not fall"
UNDECIDED = "undecided"
#: Changes of an audit in a sentence.
_CHANGES = {
    "source blank": "a blank source",
    "source of another": "the source of another image",
    "praise overlay": "an overlay of praise",
    "half size": "half the size",
    "border": "a border",
    "brightness": "more brightness",
    "order swapped": "the other order",
}
#: Largest number of judges that a sentence lists by name.
_MOST_NAMED = 4


class Level(StrEnum):
    """Level of a model as a judge, as the title of its card."""

    UNREAD = "{subject} cannot be measured: {unread}."
    UNSCORED = "{subject} cannot be measured: it has too few scores on {benchmark}."
    ONE_ANSWER = "{subject} cannot judge: it nearly always gives the same answer."
    WORSE = "{subject} is a poor judge: worse than {constant}."
    POOR = "{subject} is a poor judge: hardly better than {constant}."
    NOT_ABOVE = "{subject} is not shown to be better than {constant}."
    UNSHOWN = (
        "With so few samples, {subject} is not shown to be better than {constant}."
    )
    ABOVE = "{subject} agrees with {truth} better than {constant} would{where}."
    BETTER = "{subject} is better than {best}, the best published judge."
    AS_GOOD = "{subject} is as good as {best}, the best published judge."
    BELOW = "{subject} is worse than {best}, the best published judge."
    UNDECIDED = (
        "{subject} is better than {constant}, "
        "but there are too few samples to compare it with {best}, the best "
        "published judge."
    )


@dataclass(frozen=True)
class Standing:
    """Numbers that determine the level of a judge."""

    number: Estimate
    #: Share of its replies without a score, in [0, 1].
    unread: float
    #: True if nearly all of its answers are the same.
    one_answer: bool
    #: Number of the best constant answer.
    constant: float
    #: True if a test shows a higher number over all samples; by task type, if it has a number.
    above: bool
    above_by_type: tuple[bool, ...]
    #: Its difference to the best published judge on the samples that both scored, undefined
    #: without such samples; None without a published judge.
    difference: Estimate | None


def level(standing: Standing) -> Level:
    """Determine the level of a judge: whether it can be read, whether it beats one
    answer for all, and how it compares with the best published judge.

    A clear lead over all samples counts even if tests by task type have too few samples
    to show it.
    """
    number = standing.number
    difference = standing.difference
    if standing.unread >= MOST_UNREAD:
        return Level.UNREAD
    if not number.defined:
        return Level.UNSCORED
    if standing.one_answer:
        return Level.ONE_ANSWER
    if number.high < standing.constant:
        return Level.WORSE
    by_type = standing.above_by_type
    if sum(by_type) < FEW_TASK_TYPES * len(by_type) or not standing.above:
        is_clear = number.value - standing.constant > CLEAR_LEAD
        if not standing.above:
            return Level.UNSHOWN if is_clear else Level.NOT_ABOVE
        if not is_clear:
            return Level.POOR
    if difference is None:
        return Level.ABOVE
    if difference.low > 0:
        return Level.BETTER
    if difference.high < 0:
        return Level.BELOW
    if difference.low > -EQUAL_JUDGES:
        return Level.AS_GOOD
    return Level.UNDECIDED


def standing_of_judge(judge: PlacedJudge) -> Standing:
    """Numbers of a placed judge that determine its level."""
    label = judge.run.label
    board = judge.board
    best = judge.best_published
    constants = [n.estimate.value for n in board.references if n.role == "baseline"]
    by_type = judge.values_by_statistic(label)
    above_by_type = [
        value not in judge.useless
        for value, estimate in by_type.items()
        if estimate.defined
    ]
    difference = None
    if best:
        pair = judge.pair_with(best.system)
        difference = pair.result.difference if pair else Estimate(math.nan)
    return Standing(
        judge.number.estimate,
        judge.unread_share,
        label in board.same_answers,
        max(constants, default=0.0),
        label not in board.not_above_constant,
        tuple(above_by_type),
        difference=difference,
    )


def title(judge: PlacedJudge, subject: str) -> str:
    """Sentence on the level of a judge, without numbers of agreement.

    Args:
        judge: placed among the published judges.
        subject: the model, with its judge and benchmark if it has several entries.
    """
    standing = standing_of_judge(judge)
    best = judge.best_published
    above_count = sum(standing.above_by_type)
    types = len(standing.above_by_type)
    share = "all"
    if above_count != types:
        share = f"{number_word(above_count)} of"
    where = ""
    if types > 1 and above_count:
        breakdown = breakdown_words(judge.breakdown)
        where = f", on {share} {number_word(types)} {breakdown}s"
    names = {
        "subject": subject,
        "benchmark": judge.title,
        "truth": judge.benchmark.truth,
        "unread": _unread_words(judge, standing.unread),
        "constant": constant_words(judge),
        "best": best.system if best else "",
        "where": where,
    }
    return level(standing).format(**names)


def constant_words(judge: PlacedJudge) -> str:
    """Constant answer that a judge has to beat."""
    if judge.board.comparison.compared.unit == "samples":
        return "giving every image the same score"
    return "giving every pair the same answer"


def _unread_words(judge: PlacedJudge, share: float) -> str:
    """Share of replies without a score, with the most common reason."""
    reasons: dict[str, str] = {
        Status.REFUSAL: "of its replies are refusals",
        Status.API_ERROR: "of its calls failed",
    }
    reason = "of its replies cannot be read"
    for status, _ in judge.unread.most_common(1):
        reason = reasons.get(status, reason)
    return f"{share:.0%} {reason}"


def answers(judges: Sequence[PlacedJudge]) -> list[str]:
    """First sentences of a card: each judge's level, the numbers behind it, and its
    strengths.
    """
    subjects = [judge.run.label for judge in judges]
    if len(judges) > 1:
        subjects = [f"{judge.run.label} as {judge.heading}" for judge in judges]
    texts = list(map(title, judges, subjects))
    for judge, subject in zip(judges, subjects, strict=True):
        texts += filter(None, [_place(judge, subject), _use(judge, subject)])
    if any(judge.benchmark.synthetic for judge in judges):
        texts.append("Synthetic images do not show how well it judges real ones.")
    return list(dict.fromkeys(texts))


def outcome(pair: SystemPair) -> str:
    """`better` or `worse` for the first of a pair; empty if no test shows either."""
    if not pair.significant or not pair.result.difference.value:
        return ""
    if pair.result.difference.value > 0:
        return "better"
    return "worse"


def _place(judge: PlacedJudge, subject: str) -> str:
    """Number and rank among the published judges, and which of them are better and
    worse.
    """
    number = judge.number
    board = judge.board
    if not number.estimate.defined or not judge.published:
        evidence = answer(judge.alone).evidence
        if subject == judge.run.label:
            return evidence
        return f"{subject}: {evidence}"
    ranked = [
        published_judge
        for published_judge in judge.published
        if published_judge.ranks or not number.ranks
    ]
    relations = ""
    if ranked:
        rivals = [n.system for n in ranked]
        relations = f": {'; '.join(_relations(judge, rivals))}"
    value = sentence_number(number.estimate)
    evidence = f"with {statistic_words(board.measured)} {value}{relations}"
    where = ""
    if subject == judge.run.label:
        where = f" on {judge.title}"
    if number.ranks is None:
        why = ""
        if number.unranked:
            why = f" ({reason_words(number.unranked)})"
        return (
            f"{subject} has no rank among the published judges{where}{why}, {evidence}."
        )
    rank = rank_text(number.ranks).replace("-", " to ")
    return (
        f"{subject} has rank {rank} of {len(board.ranked)} ranked judges{where}, "
        f"{evidence}."
    )


def _relations(judge: PlacedJudge, rivals: Sequence[str]) -> list[str]:
    verbs = {
        "worse": "worse than",
        "better": "better than",
        "": "not shown to differ from",
        None: "not compared with",
    }
    by_outcome: dict[str | None, list[str]] = {side: [] for side in verbs}
    for rival in rivals:
        pair = judge.pair_with(rival)
        side = outcome(pair) if pair else None
        difference = pair.turned.result.difference if pair and side == "worse" else None
        by = ""
        if pair and difference:
            distance = short_decimal(difference.value)
            by = f" (by {distance}, {p_sentence(pair.adjusted)})"
        by_outcome[side].append(f"{rival}{by}")
    texts = []
    for side, names in by_outcome.items():
        if len(names) > _MOST_NAMED + 1:  # the first of many
            names[_MOST_NAMED:] = [f"{len(names) - _MOST_NAMED} others"]
        if names:
            texts.append(f"{verbs[side]} {enumeration(names)}")
    return texts


def _use(judge: PlacedJudge, subject: str) -> str:
    """Parts on which the judge is shown to be better than a constant answer, and parts
    with too few scores.
    """
    by_value = judge.values_by_statistic(judge.run.label)
    numbers = {
        value: estimate for value, estimate in by_value.items() if estimate.defined
    }
    useful = [value for value in numbers if value not in judge.useless]
    if len(by_value) < 2 or not useful:
        return ""
    constant = constant_words(judge)
    areas = _areas(useful, numbers)
    texts = [f"{subject} is better than {constant} on {areas}."]
    useless = [value for value in numbers if value in judge.useless]
    if useless:
        texts.append(f"No test shows this on {_areas(useless, numbers)}.")
    unknown = [task_type(value) for value in by_value if value not in numbers]
    texts += [f"Scores on {enumeration(unknown)} are too few."] if unknown else []
    return " ".join(texts)


def _areas(values: Sequence[str], numbers: Mapping[str, Estimate]) -> str:
    best_first = sorted(values, key=lambda value: -numbers[value].value)
    return enumeration(
        [
            f"{task_type(value)} ({short_decimal(numbers[value].value)})"
            for value in best_first
        ]
    )


def limits(judges: Sequence[PlacedJudge], card: Card) -> list[str]:
    """Sentences on the limits of the numbers: the ceiling, disagreement with itself,
    and changes that fool the judge.
    """
    lines = []
    for judge in judges:
        name = f"{judge.run.judge} on {judge.title}"
        estimate = judge.number.estimate
        # the title compares it with a constant answer
        board = replace(judge.alone, not_above_constant=frozenset())
        alone = answer(board).limits if estimate.defined else ()
        lines += [f"{name}: {line}" if len(judges) > 1 else line for line in alone]
        contains_value = estimate.low <= estimate.value <= estimate.high
        if not contains_value and not math.isnan(estimate.low):
            lines.append(
                f"{name}: no interval is shown, because with so few samples it would "
                "not contain the number itself."
            )
        if judge.consistency and judge.consistency.defined:
            share = judge.consistency.value
            lines.append(
                f"{name}: {share:.0%} of contests get the same answer in both orders."
            )
    lines += [f"{repeats.judge}: {repeats_text(repeats)}." for repeats in card.repeats]
    return [*lines, *(f"{audit.judge}: {audit_text(audit)}." for audit in card.audits)]


def repeats_text(repeats: CardRepeats) -> str:
    """Result of the repeats, in words without a full stop."""
    agreement = repeats.numbers[0].estimate
    times = f"asked {number_word(repeats.repeats)} times"
    if not agreement.defined:
        return f"{times}, it never gave an answer"
    if agreement.value == 1:
        return f"{times}, it gave the same answer every time"
    return f"{times}, it gave the same answer in {agreement.value:.0%} of pairs"


def audit_text(audit: CardAudit) -> str:
    """Result of an audit, in words without a full stop."""
    undecided = [row for row in audit.effects if row.finding == UNDECIDED]
    is_unclear = len(undecided) == len(audit.effects)
    for row in undecided:
        if row.estimate.low > 0 or row.estimate.high < 0:
            is_unclear = True
    finding = "no tested change measurably fools it"
    flagged_text = _flagged_text(audit)
    if flagged_text:
        finding = f"it {flagged_text}"
    elif is_unclear:
        finding = "it is unclear what fools it"
    samples = plural(audit.samples, "sample")
    if not undecided:
        return f"{finding} on {samples}"
    are = "is" if len(undecided) == 1 else "are"
    return (
        f"{finding}; "
        f"{len(undecided)} of {len(audit.effects)} effects {are} undecided "
        f"on {samples} "
        "(increase --audit to decide more)"
    )


def _flagged_text(audit: CardAudit) -> str:
    """Changes that a judge does not notice, and others that fool it; empty without any."""
    unnoticed = _changes_with(audit, UNNOTICED)
    fooling = [change for change in fooled_by(audit) if change not in unnoticed]
    texts = []
    if unnoticed:
        texts.append(f"does not notice {enumeration(unnoticed, 'or')}")
    if fooling:
        texts.append(f"is fooled by {enumeration(fooling)}")
    return ", and ".join(texts)


def fooled_text(audit: CardAudit) -> str:
    """Short result of an audit for a tile; "not known" if most effects are undecided."""
    flagged = fooled_by(audit)
    if flagged:
        return f"by {', '.join(flagged)}"
    undecided = [row for row in audit.effects if row.finding == UNDECIDED]
    if len(undecided) > len(audit.effects) / 2:
        return "not known"
    return "by no tested change"


def fooled_by(audit: CardAudit) -> list[str]:
    """Changes that fool a judge."""
    return _changes_with(audit, FLAGGED)


def _changes_with(audit: CardAudit, finding: str) -> list[str]:
    """Changes in words with an effect whose finding begins so."""
    effects = audit.effects
    found = (row.change for row in effects if row.finding.startswith(finding))
    return [_CHANGES.get(change, change) for change in dict.fromkeys(found)]
