"""A card in sentences: where the model stands, what it is good for and what not, and what limits
that.

What a report says of the same verdicts, `report.answer` says here as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from vieval_plugin.card.card import Card, CardAudit, CardRepeats
from vieval_plugin.card.placing import PlacedJudge
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
from vieval_plugin.stats.decisions import EQUAL_JUDGES
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.wording import enumeration, plural

#: Beginnings of an audit's findings: of what ought not to be, and of what the samples do not show.
FLAGGED, UNDECIDED = "FLAGGED", "undecided"
#: Judges that the title names on each side, and published judges beside which the first screen has
#: parts.
_NEAREST = 2
#: Judges that a sentence names; of more it says how many there are.
_MOST_NAMED = 4


def answers(judges: Sequence[PlacedJudge]) -> list[str]:
    """The first sentences of a card: its title, the numbers behind it, where the best others are
    better and worse, its use.
    """
    in_order = sorted(judges, key=lambda judge: not judge.published)
    title = _title(in_order[0])
    texts = [title]
    for judge in in_order:
        texts += (
            [_place(judge)]
            if judge.published
            else [line for line in _only_judge_sentence(judge) if line != title]
        )
        texts += [
            text
            for rival in judge.published[:_NEAREST]
            if (text := _rival_sentence(judge, rival.system))
        ]
        texts += filter(None, [_use(judge)])
    return list(dict.fromkeys(texts))


def outcome(pair: SystemPair) -> str:
    """`better` or `worse`, as the first of a pair is; empty where no test shows either."""
    if not pair.significant or not pair.result.difference.value:
        return ""
    return "better" if pair.result.difference.value > 0 else "worse"


def _title(judge: PlacedJudge) -> str:
    """The first sentence, without numbers: how well the model judges."""
    model = judge.run.label
    if not judge.number.estimate.defined:
        return f"{model} has no score on {judge.title}."
    if judge.benchmark.synthetic:
        return f"{model} was measured on drawn images alone, which say nothing of real ones."
    if model in judge.board.not_above_constant:
        return f"{model} is no better than giving every image the same score."
    pairs = [
        pair for number in judge.published if (pair := judge.pair_with(number.system))
    ]
    pairs.sort(key=lambda pair: abs(pair.result.difference.value))
    if not pairs:
        return answer(judge.alone).title
    nearest = pairs[0].result.difference
    if nearest.low >= -EQUAL_JUDGES and nearest.high <= EQUAL_JUDGES:
        return f"{model} judges images about as well as {pairs[0].second}."
    sides = []
    for side in ("better", "worse"):
        if labels := [pair.second for pair in pairs if outcome(pair) == side]:
            sides.append(f"{side} than {enumeration(labels[:_NEAREST])}")
    if not sides:
        return f"{model} and {pairs[0].second} cannot be told apart."
    return f"{model} judges images {' and '.join(sides)}."


def _only_judge_sentence(judge: PlacedJudge) -> list[str]:
    board_answer = answer(judge.alone)
    return (
        [board_answer.title, board_answer.evidence]
        if judge.number.estimate.defined
        else [board_answer.evidence]
    )


def _place(judge: PlacedJudge) -> str:
    """The number and the rank among the published judges, and which of them are better and
    worse.
    """
    number, board = judge.number, judge.board
    if not number.estimate.defined:
        return answer(judge.alone).evidence
    ranked = (
        [
            published_judge
            for published_judge in judge.published
            if published_judge.ranks
        ]
        if number.ranks
        else judge.published
    )
    relations = (
        f": {'; '.join(_relations(judge, [n.system for n in ranked]))}"
        if ranked
        else ""
    )
    value_text = (
        f"with {statistic_words(board.measured)} {sentence_number(number.estimate)}"
    )
    if number.ranks is None:
        why = f" ({reason_words(number.unranked)})" if number.unranked else ""
        return (
            f"{number.system} has no rank among the published judges on {judge.title}{why}, "
            f"{value_text}{relations}."
        )
    rank = rank_text(number.ranks).replace("-", " to ")
    return (
        f"{number.system} is number {rank} of {len(board.ranked)} ranked judges on "
        f"{judge.title}, {value_text}{relations}."
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
        by = (
            f" (by {short_decimal(difference.value)}, {p_sentence(pair.adjusted)})"
            if pair and difference
            else ""
        )
        by_outcome[side].append(f"{rival}{by}")
    texts = []
    for side, names in by_outcome.items():
        if len(names) > _MOST_NAMED + 1:  # the first of many
            names[_MOST_NAMED:] = [f"{len(names) - _MOST_NAMED} others"]
        texts += [f"{verbs[side]} {enumeration(names)}"] if names else []
    return texts


def _rival_sentence(judge: PlacedJudge, rival: str) -> str:
    """Where the judge is better and worse than a published one, by task type or part; empty
    where there is one only.
    """
    by_outcome: dict[str, list[str]] = {"better": [], "worse": [], "": []}
    for part, pair in judge.by_part.get(rival, {}).items():
        size = short_decimal(abs(pair.result.difference.value))
        numbers = f" (by {size}, {p_sentence(pair.adjusted)})" if outcome(pair) else ""
        by_outcome[outcome(pair)].append(f"{task_type(part)}{numbers}")
    texts = [
        f"{side} on {enumeration(parts)}"
        for side, parts in by_outcome.items()
        if side and parts
    ]
    units = breakdown_words(judge.breakdown)
    if level := len(by_outcome[""]):
        remaining = (
            f"the other {plural(level, units) if level > 1 else units}"
            if texts
            else f"any {units}"
        )
        texts.append(f"no difference is shown on {remaining}")
    return f"Beside {rival}, by {units}: {'; '.join(texts)}." if texts else ""


def _use(judge: PlacedJudge) -> str:
    """The parts on which it is shown to be better than the same answer for every image, and
    those of which little is known.
    """
    by_value = judge.values_by_statistic(judge.run.label)
    numbers = {
        value: estimate for value, estimate in by_value.items() if estimate.defined
    }
    if len(by_value) < 2 or not numbers or judge.benchmark.synthetic:
        return ""
    order = sorted(numbers, key=lambda value: -numbers[value].value)
    useful = [value for value in order if value not in judge.useless]
    units, claim = (
        breakdown_words(judge.breakdown),
        "agrees with people better than the same answer for every image",
    )
    model, where = judge.run.label, f"of {judge.title}"
    if not useful:
        return f"No test shows that {model} {claim} on any {units} {where}."
    if len(useful) == len(by_value):
        return f"{model} {claim} on all {number_word(len(useful))} {units}s {where}."
    texts = [f"{model} {claim} on {_areas(useful, numbers)} {where}"]
    if useless := [value for value in order if value in judge.useless]:
        texts.append(f"no test shows that on {_areas(useless, numbers)}")
    unknown = [task_type(value) for value in by_value if value not in numbers]
    texts += [f"of {enumeration(unknown)} too little is known"] if unknown else []
    return f"{'; '.join(texts)}."


def _areas(values: Sequence[str], numbers: Mapping[str, Estimate]) -> str:
    return enumeration(
        [
            f"{task_type(value)} ({short_decimal(numbers[value].value)})"
            for value in values
        ]
    )


def limits(judges: Sequence[PlacedJudge], card: Card) -> list[str]:
    """Sentences on what limits the numbers: one answer, the ceiling, disagreement with itself,
    what the judge is fooled by.
    """
    lines = []
    for judge in judges:
        name = f"{judge.run.judge} on {judge.title}"
        estimate = judge.number.estimate
        alone = answer(judge.alone).limits if estimate.defined else ()
        lines += [f"{name}: {line}" if len(judges) > 1 else line for line in alone]
        if not estimate.low <= estimate.value <= estimate.high and not math.isnan(
            estimate.low
        ):
            lines.append(
                f"{name}: no interval is shown, because on so few samples it leaves out the "
                "number itself."
            )
        if judge.consistency and judge.consistency.defined:
            lines.append(
                f"{name}: {judge.consistency.value:.0%} of the contests have the same answer in "
                "both orders."
            )
    lines += [f"{repeats.judge}: {repeats_text(repeats)}." for repeats in card.repeats]
    return [*lines, *(f"{audit.judge}: {audit_text(audit)}." for audit in card.audits)]


def repeats_text(repeats: CardRepeats) -> str:
    """What repeats show, in words without a full stop."""
    agreement = repeats.numbers[0].estimate
    times = f"asked {number_word(repeats.repeats)} times"
    if not agreement.defined:
        return f"{times}, it never gave an answer"
    if agreement.value == 1:
        return f"{times}, it gave the same answer every time"
    return (
        f"{times}, two of its answers were the same in {agreement.value:.0%} of pairs"
    )


def audit_text(audit: CardAudit) -> str:
    """What an audit shows, in words without a full stop."""
    flagged = fooled_by(audit)
    undecided = [row for row in audit.effects if row.finding == UNDECIDED]
    finding = "nothing is shown to fool it"
    if flagged:
        finding = f"it is fooled by {enumeration(flagged)}"
    elif len(undecided) == len(audit.effects) or any(
        row.estimate.low > 0 or row.estimate.high < 0 for row in undecided
    ):
        finding = "it is not decided what fools it"
    samples = plural(audit.samples, "sample")
    if not undecided:
        return f"{finding} on {samples}"
    return (
        f"{finding}; {len(undecided)} of {len(audit.effects)} effects are undecided on "
        f"{samples} (--audit N for more)"
    )


def fooled_by(audit: CardAudit) -> list[str]:
    """Changes that fool a judge."""
    return list(
        dict.fromkeys(
            row.change for row in audit.effects if row.finding.startswith(FLAGGED)
        )
    )
