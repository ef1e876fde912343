"""A card in sentences: where the model stands, what it is good for and what not, and what limits that."""

from __future__ import annotations

from collections.abc import Sequence

from vieval_plugin.card.card import UNDECIDED, Card, CardAudit, CardEntry, CardNumber, PublishedPlace
from vieval_plugin.meta_evaluation.costs import WARNED
from vieval_plugin.report.tables import rank_text
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
    differences = {judge.label: judge.difference for judge in entry.published if judge.difference}
    tested = {label: ahead for label, ahead in differences.items() if ahead.number.value is not None}
    if not tested:
        return f"{model} agrees with people on {entry.title} better than the same answer for every image does."
    by_distance = sorted(tested, key=lambda label: abs(tested[label].number.estimate.value))
    nearest = by_distance[0]
    estimate = tested[nearest].number.estimate
    if estimate.low >= -_EQUAL and estimate.high <= _EQUAL:
        return f"{model} judges images about as well as {nearest}."
    outcomes = []
    for outcome in ("better", "worse"):
        if labels := [label for label in by_distance if tested[label].outcome == outcome]:
            outcomes.append(f"{outcome} than {enumeration(labels[:_NEAREST])}")
    if not outcomes:
        return f"{model} and {nearest} cannot be told apart."
    return f"{model} judges images {' and '.join(outcomes)}."


def sentence(card: Card) -> str:
    """The one sentence: on what the model is of use as a judge, on what not, and on what nothing is known.

    Drawn images are named last and count for none of these.
    """
    rated = [entry for entry in card.entries if not entry.synthetic]
    synthetic = list(dict.fromkeys(entry.title for entry in card.entries if entry.synthetic))
    note = f"; the drawn images of {enumeration(synthetic)} say nothing of real ones" if synthetic else ""
    text = _use(card, rated) if rated else f"Nothing is known of {card.model} as a judge of real images"
    failed = sum(sum(entry.spent.failed.values()) for entry in card.entries)
    verdicts = sum(entry.spent.verdicts for entry in card.entries)
    failures = f"; {failed} of {verdicts} verdicts have no score" if failed > WARNED * verdicts else ""
    return f"{text}{note}{failures}."


def _use(card: Card, entries: Sequence[CardEntry]) -> str:
    areas = [_areas_by_use(card, entry) for entry in entries]
    useful, useless, unknown = (
        enumeration(names) if (names := [name for of_entry in areas for name in of_entry[use]]) else ""
        for use in ("useful", "useless", "unknown")
    )
    claim = "agrees with people better than the same answer for every image"
    if not useful and not useless:
        return f"Nothing is known of {card.model} as a judge: no verdict has a score on enough samples"
    text = f"{card.model} is of use as a judge on {useful}, where it {claim}"
    if not useful:
        text = f"{card.model} is not shown to be of use as a judge on {useless}, that is, no test shows that it {claim}"
    elif useless:
        text += f", and is not shown to be so on {useless}"
    return f"{text}; of {unknown} too little is known" if unknown else text


def _areas_by_use(card: Card, entry: CardEntry) -> dict[str, list[str]]:
    """The task types or parts of an entry in words, the best first, by what is shown of them; all of one kind together."""
    judges = {other.judge for other in card.entries if other.benchmark == entry.benchmark}
    subject = f"{entry.title} by {entry.judge}" if len(judges) > 1 else entry.title
    suffix = f" of {subject}" if len(card.entries) > 1 else ""
    by_use: dict[str, dict[str, CardNumber]] = {"useful": {}, "useless": {}, "unknown": {}}
    for area, number in sorted((entry.words or {"": entry.number}).items(), key=lambda item: -(item[1].value or 0.0)):
        low = area in entry.useless if area else not entry.above_constant
        by_use["unknown" if number.value is None else "useless" if low else "useful"][area] = number
    areas: dict[str, list[str]] = {}
    for use, numbers in by_use.items():
        values = [number.value for number in numbers.values() if number.value is not None]
        areas[use] = [
            f"{f'{task_type(area)}{suffix}' if area else subject}{'' if number.value is None else f' ({short_decimal(number.value)})'}"
            for area, number in numbers.items()
        ]
        if len(numbers) == len(entry.words) > 2:
            span = f" ({short_decimal(min(values))} to {short_decimal(max(values))})" if values else ""
            areas[use] = [f"all {len(numbers)} {breakdown_words(entry.heading)}s of {subject}{span}"]
    return areas


def differences_sentence(entry: CardEntry, judge: PublishedPlace) -> str:
    """A sentence on where the card's judge is better and worse than a published one, by task type or part."""
    if not judge.differences:
        return ""
    by_outcome: dict[str, list[str]] = {"better": [], "worse": [], "": []}
    for area, difference in judge.differences.items():
        ahead = f" ({difference.number.short})" if difference.outcome else ""
        by_outcome[difference.outcome].append(f"{task_type(area)}{ahead}")
    texts = [f"{outcome} on {enumeration(areas)}" for outcome, areas in by_outcome.items() if outcome and areas]
    units = breakdown_words(entry.heading) or "part"
    if level := len(by_outcome[""]):
        remaining = f"the other {f'{level} {units}s' if level > 1 else units}" if texts else f"any {units}"
        texts.append(f"no difference is shown on {remaining}")
    behind = {area: ahead for area, ahead in judge.differences.items() if (ahead.number.value or 0.0) < 0}
    if behind and not by_outcome["worse"]:
        area, furthest = min(behind.items(), key=lambda item: item[1].number.estimate.value)
        texts.append(f"furthest behind on {task_type(area)} ({furthest.number.short}{furthest.significance})")
    return f"Beside {judge.label}, by {units}: {'; '.join(texts)}."


def limits(card: Card) -> list[str]:
    """Sentences on what limits the numbers: one answer, the ceiling, disagreement with itself, what the judge is fooled by."""
    lines = []
    for entry in card.entries:
        name = f"{entry.judge} on {entry.title}"
        lines += [f"{name}: {entry.answers.same}."] if entry.answers.same else []
        lines += [f"{name}: {entry.ceiling} the human ceiling."] if entry.ceiling else []
        if (consistent := entry.answers.consistent) and consistent.value is not None:
            lines.append(f"{name}: {consistent.value:.0%} of the contests have the same answer in both orders.")
    for repeats in (repeats for repeats in card.repeats if repeats.same.value is not None):
        share = f"two of its answers were the same in {repeats.same.value:.0%} of pairs"
        outcome = "it gave the same answer every time" if repeats.same.value == 1 else share
        lines.append(f"{repeats.judge}: asked {number_word(repeats.repeats)} times, {outcome}.")
    return [*lines, *(f"{audit.judge}: {fooled(audit)}." for audit in card.audits)]


def fooled(audit: CardAudit) -> str:
    """What an audit shows, in words without a full stop."""
    flagged = list(dict.fromkeys(row.change for row in audit.flagged))
    undecided = [row for row in audit.rows if row.finding == UNDECIDED]
    finding = "nothing is shown to fool it"
    if flagged:
        finding = f"it is fooled by {enumeration(flagged)}"
    elif len(undecided) == len(audit.rows) or any(row.moves for row in undecided):
        finding = "it is not decided what fools it"
    samples = plural(audit.samples, "sample")
    if not undecided:
        return f"{finding} on {samples}"
    return f"{finding}; {len(undecided)} of {len(audit.rows)} effects are undecided on {samples} (--audit N for more)"


def _place_sentence(model: str, entry: CardEntry) -> str:
    if entry.number.value is None:
        return f"{model} has no number on {entry.title}: {entry.number.note}."
    measured = "accuracy" if entry.unit == "contests" else f"{ASPECTS.get(entry.aspect, entry.aspect)} agreement"
    if not entry.published:
        coefficient, correlation, _ = entry.statistic.partition("'s correlation")
        measured += f" ({coefficient} on {entry.aspect})" if correlation else ""
        raters = f"the known defects of {entry.title} (drawn images)" if entry.synthetic else f"people on {entry.title}"
        low = "" if entry.above_constant else ", which is not shown to be better than the same answer for every image"
        people = (n for label, n in entry.references.items() if "ceiling" in label and n.value is not None)
        ceiling = next((f", beside a human ceiling of {number.short}" for number in people), "")
        text = f"{measured} {entry.number.short} with {raters}{low}{ceiling}"
        return f"{model} has {text}; no published judge stands beside it there."
    ranked = [judge for judge in entry.published if judge.ranks] if entry.ranks else entry.published
    relations = f": {'; '.join(_relations(ranked))}" if ranked else ""
    number = f"{measured} {entry.number.short}"
    if entry.ranks is None:
        why = f" ({reason_words(entry.unranked)})" if entry.unranked else ""
        return f"{model} has no rank among the published judges on {entry.title}{why}, with {number}{relations}."
    rank = rank_text(entry.ranks).replace("-", " to ")
    return f"{model} is number {rank} of {entry.ranked} ranked judges on {entry.title} ({number}){relations}."


def _relations(published: Sequence[PublishedPlace]) -> list[str]:
    verbs = {"worse": "worse than", "better": "better than", "": "not shown to differ from", None: "not compared with"}
    by_outcome: dict[str | None, list[str]] = {outcome: [] for outcome in verbs}
    for judge in published:
        ahead = judge.difference
        is_worse = ahead is not None and ahead.outcome == "worse"
        by = f" (by {short_decimal(-ahead.number.estimate.value)}{ahead.significance})" if ahead and is_worse else ""
        by_outcome[ahead.outcome if ahead else None].append(f"{judge.label}{by}")
    texts = []
    for outcome, names in by_outcome.items():
        if len(names) > _MOST_NAMED + 1:  # the first of many
            names[_MOST_NAMED:] = [f"{len(names) - _MOST_NAMED} others"]
        texts += [f"{verbs[outcome]} {enumeration(names)}"] if names else []
    return texts
