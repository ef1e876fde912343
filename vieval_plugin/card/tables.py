"""The tables of a card, for its page and its Markdown."""

from __future__ import annotations

import json

from vieval_plugin.card.card import FLAGGED, Card, CardEntry, CardNumber, Difference
from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.tables import Table, p_text
from vieval_plugin.report.words import breakdown_words, reason_words, task_type
from vieval_plugin.text.wording import plural

_EXPECTED = "as expected"


def place_table(card: Card, entry: CardEntry) -> Table:
    """The card's judge among published judges, then baselines and the human ceiling."""
    model_row = (entry.number, _rank(entry.ranks), card.model, "", "", entry.unranked)
    rows = [model_row]
    for judge in entry.published:
        difference, p = ("", "") if judge.difference is None else _difference(judge.difference)
        rows.append((judge.number, _rank(judge.ranks), judge.label, difference, p, judge.unranked))
    rows.sort(key=lambda row: (row[0].value is None, -(row[0].value or 0)))
    rows += [(number, "", label, "", "", "") for label, number in entry.references.items()]
    cells = [
        (
            rank,
            name,
            number.short,
            str(number.n or ""),
            ahead,
            p,
            "; ".join(filter(None, (_on(number), reason_words(unranked)))),
        )
        for number, rank, name, ahead, p, unranked in rows
    ]
    header = ("rank", "judge", f"{entry.aspect} [95%]", "n", f"{card.model} is ahead by [95%]", "p (Holm)", "notes")
    among = "among the published judges on the same samples" if entry.published else "alone"
    title = f"{entry.statistic.replace('kinds', 'task types')}: {entry.judge} {among}"
    return Table("place", title, header, tuple(cells))


def words_table(card: Card, entry: CardEntry) -> Table | None:
    """The number by task type or part, and how far it is ahead of each published judge; None where there is one only."""
    if not entry.words:
        return None
    units = breakdown_words(entry.heading)
    published = [judge for judge in entry.published if judge.differences]
    rows = [
        (
            task_type(value),
            f"{' '.join(filter(None, (number.short, _on(number))))}{', not shown to be better than the same answer for everything' if value in entry.useless else ''}",
            str(number.n),
            *(_ahead(judge.differences.get(value)) for judge in published),
        )
        for value, number in entry.words.items()
    ]
    header = (units, f"{card.model} [95%]", "n", *(f"ahead of {judge.label}" for judge in published))
    title = (
        f"{entry.aspect} by {units}; better and worse where p, adjusted over the rows of a column, is at most {LEVEL}"
    )
    return Table("words", title, header, tuple(rows))


def answers_table(card: Card) -> Table:
    """The ways in which judges answer."""
    header = (
        "judge",
        "benchmark",
        "ties",
        "sub-scores 0, 5 or 10",
        "same in both orders",
        "same when asked again",
        "differs by",
    )
    repeats = {(r.judge, r.benchmark): r for r in card.repeats}
    rows = []
    for entry in card.entries:
        r = repeats.get((entry.judge, entry.benchmark))
        shares = (_percent(entry.answers.ties), _percent(entry.answers.round_numbers))
        consistent = "" if entry.answers.consistent is None else entry.answers.consistent.short
        rows.append(
            (entry.judge, entry.title, *shares, consistent, *((r.same.short, r.spread.short) if r else ("", "")))
        )
    return Table("answers", "How the judge answers", header, tuple(rows))


def audit_tables(card: Card) -> list[Table]:
    """Effects that fool each judge or that its samples do not decide; the others are counted."""
    header = ("change to the image", "aspect", "n", "mean score moves by [95%]", "finding")
    tables = []
    for audit in card.audits:
        odd = [row for row in audit.rows if row.finding != _EXPECTED]
        rows = [(row.change, row.aspect, str(row.difference.n), row.difference.short, row.finding) for row in odd]
        fine = f"{len(audit.rows) - len(odd)} of {len(audit.rows)} effects are as they ought to be and left out here"
        rows.sort(key=lambda row: not row[-1].startswith(FLAGGED))
        title = f"{audit.judge}: {plural(audit.samples, 'sample')} of {audit.benchmark} with changed images; {fine}"
        tables.append(Table("audit", title, header, tuple(rows)))
    return tables


def spent_table(card: Card) -> Table:
    """Failures by status, and what verdicts took."""
    header = ("judge", "benchmark", "sample", "verdicts", "failed", "answers", "tokens", "seconds of calls")
    rows = []
    for entry in card.entries:
        spent = entry.spent
        of_available = f" of {entry.available}" if entry.available else ""
        sample = f"{entry.samples}{of_available} {entry.unit} in {entry.cells} cells"
        failed = ", ".join(f"{n} {status}" for status, n in spent.failed.items()) or "0"
        tokens, seconds = (_count(value) for value in (spent.tokens, spent.seconds))
        rows.append(
            (entry.judge, entry.title, sample, str(spent.verdicts), failed, f"{spent.calls:,}", tokens, seconds)
        )
    further = [(repeats.judge, repeats.benchmark, "repeats", repeats.calls) for repeats in card.repeats]
    further += [(audit.judge, audit.benchmark, "audit", audit.calls) for audit in card.audits]
    rows += [(judge, benchmark, what, "", "", f"{calls:,}", "", "") for judge, benchmark, what, calls in further]
    total = sum(entry.spent.calls for entry in card.entries) + sum(calls for *_, calls in further)
    title = f"Failures and cost: {total:,} answers in all, each from a call, from the store or the same as another"
    return Table("spent", title, header, tuple(rows))


def origin_table(card: Card) -> Table:
    """The exact model, wording, options, seed, date and versions."""
    rows = [("model", card.model), ("made from", card.made_from), ("date", card.date), ("seed", str(card.seed))]
    for entry in card.entries:
        judge = " ".join(filter(None, (entry.judge, entry.setting)))
        pack = f"{judge}, wording {entry.pack} ({entry.pack_hash})" if entry.pack else judge
        rows.append((f"judge on {entry.title}", pack))
    options = {json.dumps(entry.options, sort_keys=True): entry.judge for entry in card.entries}
    rows += [(f"options of {judge}", text) for text, judge in options.items()]
    rows.append(("statistics", ", ".join(f"{name} {value}" for name, value in card.statistics.items())))
    rows.append(("versions", ", ".join(f"{name} {version}" for name, version in card.versions.items())))
    return Table("origin", "How it was made", ("", ""), tuple(rows))


def _on(number: CardNumber) -> str:
    return f"on {number.note}" if number.note and number.value is not None else ""


def _rank(ranks: tuple[int, int] | None) -> str:
    if ranks is None:
        return ""
    return str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]}-{ranks[1]}"


def _difference(difference: Difference) -> tuple[str, str]:
    return _signed(difference.number), "" if difference.p is None else p_text(difference.p)


def _ahead(difference: Difference | None) -> str:
    if difference is None:
        return ""
    return " ".join(filter(None, (_signed(difference.number), difference.outcome)))


def _signed(number: CardNumber) -> str:
    return f"+{number.short}" if number.value is not None and number.value > 0 else number.short


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _count(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.0f}"
