"""A card in sentences: where the model stands, what it is good for and what not, and what limits that."""

from __future__ import annotations

from collections.abc import Sequence

from vieval_plugin.card.card import UNDECIDED, Card, CardAudit, CardEntry, CardNumber, Difference, PublishedPlace
from vieval_plugin.meta_evaluation.costs import WARNED
from vieval_plugin.meta_evaluation.tables import p_sentence
from vieval_plugin.report.words import ASPECTS, breakdown_words, number_word, reason_words, short_decimal, task_type
from vieval_plugin.text.wording import enumeration, plural

_EQUAL = 0.05
"""The difference within which two judges judge about as well."""
_NEAREST = 2
"""Judges that the title names on each side."""
_MOST_NAMED = 4
"""Judges that a sentence names; of more it says how many there are."""


def title(card: Card) -> str:
    """The first sentence, without numbers: how well the model judges, on the first benchmark with published judges."""
    placed = [entry for entry in card.entries if entry.published]
    return _title(card.model, (placed or list(card.entries))[0])


def evidence(card: Card) -> list[str]:
    """The numbers behind the title: a sentence an entry, that of the title first."""
    ordered = sorted(card.entries, key=lambda entry: not entry.published)
    return list(dict.fromkeys(_place_sentence(card.model, entry) for entry in ordered))


def _title(model: str, entry: CardEntry) -> str:
    if entry.number.value is None:
        return f"{model} has no score on {entry.title}."
    if entry.synthetic:
        return f"{model} was measured on drawn images alone, which say nothing of real ones."
    if not entry.above_constant:
        return f"{model} is no better than giving every image the same score."
    tested = [judge for judge in entry.published if judge.difference and judge.difference.number.value is not None]
    if not tested:
        return f"{model} agrees with people on {entry.title} better than the same answer for every image does."
    nearest = min(tested, key=_distance)
    if nearest.difference and _is_within(nearest.difference.number, _EQUAL):
        return f"{model} judges images about as well as {nearest.label}."
    better, worse = (
        [
            judge.label
            for judge in sorted(tested, key=_distance)
            if judge.difference and judge.difference.outcome == side
        ]
        for side in ("better", "worse")
    )
    outcomes = [
        f"{side} than {enumeration(labels[:_NEAREST])}"
        for side, labels in (("better", better), ("worse", worse))
        if labels
    ]
    if not outcomes:
        return f"{model} and {nearest.label} cannot be told apart."
    return f"{model} judges images {' and '.join(outcomes)}."


def _distance(judge: PublishedPlace) -> float:
    return abs(judge.difference.number.value or 0.0) if judge.difference else 0.0


def _is_within(number: CardNumber, margin: float) -> bool:
    return number.low is not None and number.high is not None and -margin <= number.low and number.high <= margin


def sentence(card: Card) -> str:
    """The one sentence: on what the model is of use as a judge, on what not, and on what nothing is known.

    Drawn images are named last and count for none of these.
    """
    rated = [entry for entry in card.entries if not entry.synthetic]
    synthetic = list(dict.fromkeys(entry.title for entry in card.entries if entry.synthetic))
    note = f"; the drawn images of {enumeration(synthetic)} say nothing of real ones" if synthetic else ""
    text = _use(card, rated) if rated else f"Nothing is known of {card.model} as a judge of real images"
    return f"{text}{note}{_failures(card)}."


def _use(card: Card, entries: Sequence[CardEntry]) -> str:
    by_use: dict[str, list[str]] = {"useful": [], "useless": [], "unknown": []}
    for entry in entries:
        for use, areas in _areas_by_use(card, entry).items():
            by_use[use] += areas
    useful, useless, unknown = (enumeration(areas) if areas else "" for areas in by_use.values())
    claim = "agrees with people better than the same answer for every image"
    if not useful and not useless:
        return f"Nothing is known of {card.model} as a judge: no verdict has a score on enough samples"
    if not useful:
        text = f"{card.model} is not shown to be of use as a judge on {useless}, that is, no test shows that it {claim}"
    elif not useless:
        text = f"{card.model} is of use as a judge on {useful}, where it {claim}"
    else:
        text = (
            f"{card.model} is of use as a judge on {useful}, where it {claim}, and is not shown to be so on {useless}"
        )
    return f"{text}; of {unknown} too little is known" if unknown else text


def _areas_by_use(card: Card, entry: CardEntry) -> dict[str, list[str]]:
    """The task types or parts of an entry in words, the best first, by what is shown of them; all of one kind together."""
    numbers = entry.words or {"": entry.number}
    numbers_by_use: dict[str, list[tuple[str, float | None]]] = {"useful": [], "useless": [], "unknown": []}
    for value, number in sorted(numbers.items(), key=lambda item: -(item[1].value or 0.0)):
        low = value in entry.useless if value else not entry.above_constant
        use = "unknown" if number.value is None else "useless" if low else "useful"
        numbers_by_use[use].append((value, number.value))
    return {use: _areas(card, entry, values) for use, values in numbers_by_use.items()}


def _areas(card: Card, entry: CardEntry, numbers: Sequence[tuple[str, float | None]]) -> list[str]:
    judges = {any_entry.judge for any_entry in card.entries if any_entry.benchmark == entry.benchmark}
    subject = f"{entry.title} by {entry.judge}" if len(judges) > 1 else entry.title
    suffix = f" of {subject}" if len(card.entries) > 1 else ""
    if len(numbers) == len(entry.words) > 2:
        values = [value for _, value in numbers if value is not None]
        span = f" ({short_decimal(min(values))} to {short_decimal(max(values))})" if values else ""
        return [f"all {len(numbers)} {breakdown_words(entry.heading)}s of {subject}{span}"]
    return [
        f"{f'{task_type(value_name)}{suffix}' if value_name else subject}{'' if value is None else f' ({short_decimal(value)})'}"
        for value_name, value in numbers
    ]


def differences_sentence(entry: CardEntry, judge: PublishedPlace) -> str:
    """A sentence on where the card's judge is better and worse than a published one, by task type or part."""
    if not judge.differences:
        return ""
    by_outcome: dict[str, list[str]] = {"better": [], "worse": [], "": []}
    for value, difference in judge.differences.items():
        ahead = f" ({difference.number.short})" if difference.outcome else ""
        by_outcome[difference.outcome].append(f"{task_type(value)}{ahead}")
    outcomes = [f"{outcome} on {enumeration(values)}" for outcome, values in by_outcome.items() if outcome and values]
    units = breakdown_words(entry.heading) or "part"
    level = len(by_outcome[""])
    remaining = f"the other {f'{level} {units}s' if level > 1 else units}" if outcomes else f"any {units}"
    level_texts = [f"no difference is shown on {remaining}"] if level else []
    furthest = [] if by_outcome["worse"] else _furthest_behind(judge)
    return f"Beside {judge.label}, by {units}: {'; '.join([*outcomes, *level_texts, *furthest])}."


def _furthest_behind(judge: PublishedPlace) -> list[str]:
    """The task type or part on which the card's judge is furthest behind, if it is behind on any."""
    rows = [(d.number.value, task_type(area), d) for area, d in judge.differences.items() if d.number.value is not None]
    lowest = sorted((row for row in rows if row[0] < 0), key=lambda row: row[0])[:1]
    return [f"furthest behind on {area} ({d.number.short}{_significance(d)})" for _, area, d in lowest]


def limits(card: Card) -> list[str]:
    """Sentences on what limits the numbers: one answer, the ceiling, disagreement with itself, what the judge is fooled by."""
    lines = []
    for entry in card.entries:
        name = f"{entry.judge} on {entry.title}"
        if entry.answers.same:
            lines.append(f"{name}: {entry.answers.same}.")
        if entry.ceiling:
            lines.append(f"{name}: {entry.ceiling} the human ceiling.")
        consistent = entry.answers.consistent
        if consistent and consistent.value is not None:
            lines.append(f"{name}: {consistent.value:.0%} of the contests have the same answer in both orders.")
    lines += [
        f"{repeats.judge}: asked {number_word(repeats.repeats)} times, {_repeated(repeats.same.value)}."
        for repeats in card.repeats
        if repeats.same.value is not None
    ]
    return [*lines, *map(_fooled, card.audits)]


def _repeated(share: float) -> str:
    return (
        "it gave the same answer every time"
        if share == 1
        else f"two of its answers were the same in {share:.0%} of pairs"
    )


def _fooled(audit: CardAudit) -> str:
    flagged = list(dict.fromkeys(row.change for row in audit.flagged))
    undecided = sum(row.finding == UNDECIDED for row in audit.rows)
    if flagged:
        finding = f"it is fooled by {enumeration(flagged)}"
    elif undecided == len(audit.rows) or any(row.moves for row in audit.rows if row.finding == UNDECIDED):
        finding = "it is not decided what fools it"
    else:
        finding = "nothing is shown to fool it"
    open_text = f"; {undecided} of {len(audit.rows)} effects are undecided" if undecided else ""
    more = " (--audit N for more)" if undecided else ""
    return f"{audit.judge}: {finding}{open_text} on {plural(audit.samples, 'sample')}{more}."


def _place_sentence(model: str, entry: CardEntry) -> str:
    if entry.number.value is None:
        return f"{model} has no number on {entry.title}: {entry.number.note}."
    if not entry.published:
        return f"{model} has {_alone(entry)}; no published judge stands beside it there."
    number = f"{_measured(entry)} {entry.number.short}"
    ranked = [judge for judge in entry.published if judge.ranks] if entry.ranks else entry.published
    relations = f": {'; '.join(_relations(ranked))}" if ranked else ""
    if entry.ranks is None:
        why = f" ({reason_words(entry.unranked)})" if entry.unranked else ""
        return f"{model} has no rank among the published judges on {entry.title}{why}, with {number}{relations}."
    best, worst = entry.ranks
    rank = f"{best}" if best == worst else f"{best} to {worst}"
    return f"{model} is number {rank} of {entry.ranked} ranked judges on {entry.title} ({number}){relations}."


def _measured(entry: CardEntry) -> str:
    return "accuracy" if entry.unit == "contests" else f"{ASPECTS.get(entry.aspect, entry.aspect)} agreement"


def _alone(entry: CardEntry) -> str:
    """The number in full, with what it stands beside where no published judge does."""
    coefficient, correlation, _ = entry.statistic.partition("'s correlation")
    on_aspect = f" ({coefficient} on {entry.aspect})" if correlation else ""
    raters = f"the known defects of {entry.title} (drawn images)" if entry.synthetic else f"people on {entry.title}"
    low = "" if entry.above_constant else ", which is not shown to be better than the same answer for every image"
    people = [number for label, number in entry.references.items() if "ceiling" in label and number.value is not None]
    ceiling = f", beside a human ceiling of {people[0].short}" if people else ""
    return f"{_measured(entry)}{on_aspect} {entry.number.short} with {raters}{low}{ceiling}"


def _relations(published: Sequence[PublishedPlace]) -> list[str]:
    by_outcome: dict[str, list[str]] = {"better": [], "worse": [], "": [], "untested": []}
    for judge in published:
        outcome = judge.difference.outcome if judge.difference else "untested"
        by_outcome[outcome].append(f"{judge.label}{_by(judge.difference) if outcome == 'worse' else ''}")
    verbs = {
        "worse": "worse than",
        "better": "better than",
        "": "not shown to differ from",
        "untested": "not compared with",
    }
    return [f"{verbs[name]} {_judges(by_outcome[name])}" for name in verbs if by_outcome[name]]


def _by(difference: Difference | None) -> str:
    if difference is None or difference.number.value is None:
        return ""
    return f" (by {short_decimal(-difference.number.value)}{_significance(difference)})"


def _significance(difference: Difference) -> str:
    """The adjusted p, without which an interval that leaves out 0 would seem to contradict the finding."""
    if difference.p is None:
        return ""
    return f", {p_sentence(difference.p)}"


def _failures(card: Card) -> str:
    failed = sum(sum(entry.spent.failed.values()) for entry in card.entries)
    verdicts = sum(entry.spent.verdicts for entry in card.entries)
    return f"; {failed} of {verdicts} verdicts have no score" if failed > WARNED * verdicts else ""


def _judges(names: Sequence[str]) -> str:
    """Judges by name, the first of them where there are many."""
    first_names = list(names[:_MOST_NAMED])
    return enumeration([*first_names, f"{len(names) - _MOST_NAMED} others"] if len(names) > _MOST_NAMED + 1 else names)
