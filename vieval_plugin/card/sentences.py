"""A card in sentences: where the model stands, what it is good for and what not, and what limits that."""

from __future__ import annotations

from collections.abc import Sequence

from vieval_plugin.card.card import Card, CardEntry, Difference, Placed
from vieval_plugin.meta_evaluation.tables import p_text
from vieval_plugin.report.headlines.costs import WARNED
from vieval_plugin.report.headlines.words import heading_words, task_type

_NAMED = 6
"""Judges that a sentence names; of more it says how many there are."""


def title(card: Card) -> str:
    """The first sentence: the place among published judges, on the first benchmark that has such."""
    placed = [entry for entry in card.entries if entry.published]
    return _place(card.model, (placed or list(card.entries))[0])


def places(card: Card) -> list[str]:
    """A sentence a further entry, as `title` has it for the first."""
    first = title(card)
    return [text for entry in card.entries if (text := _place(card.model, entry)) != first]


def sentence(card: Card) -> str:
    """The one sentence: on what the model is of use as a judge, on what not, and on what nothing is known."""
    useful: list[tuple[float, str]] = []
    useless: list[str] = []
    unknown: list[str] = []
    for entry in card.entries:
        for word, number in entry.words.items() or (("", entry.number),):
            area = _area(card, entry, word)
            low = word in entry.useless if word else not entry.above_constant
            if number.value is None:
                unknown.append(area)
            elif low:
                useless.append(f"{area} ({number.value:.2f})")
            else:
                useful.append((number.value, f"{area} ({number.value:.2f})"))
    good = [text for _, text in sorted(useful, reverse=True)]
    above = "agrees with people more than an answer that never looks"
    if not good and not useless:
        return f"Nothing is known of {card.model} as a judge: no verdict has a score."
    if not good:
        text = f"{card.model} is not shown to be of use as a judge: on none of {_listed(useless, 'and')} is it shown that it {above}"
    elif not useless:
        text = f"{card.model} is of use as a judge on {_listed(good, 'and')}: it {above} on each of these"
    else:
        text = (
            f"{card.model} is of use as a judge on {_listed(good, 'and')}, where it {above}, and not shown to be so on "
            f"{_listed(useless, 'and')}"
        )
    text += f"; of {_listed(unknown, 'and')} nothing is known" if unknown else ""
    return f"{text}{_failures(card)}."


def beside(entry: CardEntry, judge: Placed) -> str:
    """A sentence on where the card's judge is better and worse than a published one, by task type or part."""
    if not judge.differences:
        return ""
    by_outcome: dict[str, list[str]] = {"better": [], "worse": [], "": []}
    for word, difference in judge.differences.items():
        by_outcome[difference.outcome].append(task_type(word))
    said = [f"{name} on {_listed(words, 'and')}" for name, words in by_outcome.items() if name and words]
    level = len(by_outcome[""])
    units = heading_words(entry.heading) or "part"
    rest = f"neither is shown on {'the other ' if said else ''}{level} {units}{'s' * (level > 1)}" if level else ""
    return f"Beside {judge.label}, by {units}: {'; '.join([*said, *filter(None, [rest])])}."


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
            lines.append(f"{name}: {consistent} of the contests have the same answer in both orders.")
    lines += [
        f"{of.judge}: asked {of.repeats} times, two answers to a sample are the same in {of.same.value:.0%} of the pairs."
        for of in card.repeats
        if of.same.value is not None
    ]
    for audit in card.audits:
        flagged = list(dict.fromkeys(row.change for row in audit.flagged))
        found = f"is fooled by {_listed(flagged, 'and')}" if flagged else "was fooled by nothing that was tried"
        lines.append(f"{audit.judge}: {found} ({audit.samples} samples).")
    return lines


def _place(model: str, entry: CardEntry) -> str:
    number = f"{entry.aspect} {entry.number}"
    if entry.number.value is None:
        return f"{model} has no number on {entry.title}: {entry.number.note}."
    if not entry.published:
        return f"{model} agrees with people on {entry.title} by {number}; no published judge stands beside it."
    relations = "; ".join(_relations(entry.published))
    if entry.ranks is None:
        why = f" ({entry.unranked})" if entry.unranked else ""
        return f"{model} has no rank among the published judges on {entry.title}{why}, with {number}: {relations}."
    best, worst = entry.ranks
    place = f"{best}" if best == worst else f"{best} to {worst}"
    return f"{model} is number {place} of {entry.ranked} ranked judges on {entry.title}, with {number}: {relations}."


def _relations(published: Sequence[Placed]) -> list[str]:
    by_outcome: dict[str, list[str]] = {"better": [], "worse": [], "": [], "untested": []}
    for judge in published:
        outcome = judge.difference.outcome if judge.difference else "untested"
        by_outcome[outcome].append(f"{judge.label}{_by(judge.difference) if outcome == 'worse' else ''}")
    words = {
        "worse": "worse than",
        "better": "better than",
        "": "not shown to differ from",
        "untested": "not compared with",
    }
    return [f"{words[name]} {_listed(by_outcome[name], 'and')}" for name in words if by_outcome[name]]


def _by(difference: Difference | None) -> str:
    if difference is None or difference.number.value is None:
        return ""
    p = p_text(difference.p if difference.p is not None else float("nan"))
    return f" (by {-difference.number.value:.3f}, p {p if p.startswith('<') else f'= {p}'})"


def _area(card: Card, entry: CardEntry, word: str) -> str:
    """A task type or part in words, with the benchmark where there are several, and the judge where there are several of it."""
    named = task_type(word) if word else ""
    several = len({other.benchmark for other in card.entries}) > 1
    judges = {other.judge for other in card.entries if other.benchmark == entry.benchmark}
    of = f"{named} of {entry.title}" if named and several else named or entry.title
    return f"{of} by {entry.judge}" if len(judges) > 1 else of


def _failures(card: Card) -> str:
    failed = sum(sum(entry.spent.failed.values()) for entry in card.entries)
    verdicts = sum(entry.spent.verdicts for entry in card.entries)
    return f"; {failed} of {verdicts} verdicts have no score" if failed > WARNED * verdicts else ""


def _listed(names: Sequence[str], last: str) -> str:
    if len(names) > _NAMED and not any("(" in name for name in names):
        return f"{len(names)} judges"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
