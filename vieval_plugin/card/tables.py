"""The tables of a card, for its page and its Markdown."""

from __future__ import annotations

import json

from vieval_plugin.card.card import Card, CardAudit, CardEntry, Difference, PublishedPlace
from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.tables import Table, p_text
from vieval_plugin.report.tables import rank_text
from vieval_plugin.report.words import breakdown_words, reason_words, task_type
from vieval_plugin.text.wording import plural

_EXPECTED = "as expected"


def place_table(card: Card, entry: CardEntry) -> Table:
    """The card's judge among published judges, then baselines and the human ceiling."""
    own = PublishedPlace(card.model, entry.number, entry.ranks, entry.unranked, None, {}, {})
    judges = sorted((own, *entry.published), key=lambda judge: (judge.number.value is None, -(judge.number.value or 0)))
    judges += [PublishedPlace(label, number, None, "", None, {}, {}) for label, number in entry.references.items()]
    rows = []
    for judge in judges:
        ahead, notes = judge.difference, filter(None, (judge.number.rests_on, reason_words(judge.unranked)))
        difference, p = (_signed(ahead), ahead.p) if ahead else ("", None)
        cells = rank_text(judge.ranks), judge.label, judge.number.short, str(judge.number.n or ""), difference
        rows.append((*cells, "" if p is None else p_text(p), "; ".join(notes)))
    header = ("rank", "judge", f"{entry.aspect} [95%]", "n", f"{card.model} is ahead by [95%]", "p (Holm)", "notes")
    among = "among the published judges on the same samples" if entry.published else "alone"
    title = f"{entry.statistic.replace('kinds', 'task types')}: {entry.judge} {among}"
    return Table("place", title, header, tuple(rows))


def words_table(card: Card, entry: CardEntry) -> Table | None:
    """The number by task type or part, and how far it is ahead of each published judge; None where there is one only."""
    if not entry.words:
        return None
    units = breakdown_words(entry.heading)
    published = [judge for judge in entry.published if judge.differences]
    rows = []
    for area, number in entry.words.items():
        low = ", not shown to be better than the same answer for everything" if area in entry.useless else ""
        text = " ".join(filter(None, (number.short, number.rests_on)))
        differences = (judge.differences.get(area) for judge in published)
        ahead = (" ".join(filter(None, (_signed(d), d.outcome))) if d else "" for d in differences)
        rows.append((task_type(area), f"{text}{low}", str(number.n), *ahead))
    header = (units, f"{card.model} [95%]", "n", *(f"ahead of {judge.label}" for judge in published))
    title = (
        f"{entry.aspect} by {units}; better and worse where p, adjusted over the rows of a column, is at most {LEVEL}"
    )
    return Table("words", title, header, tuple(rows))


def tables_of_all(card: Card) -> list[Table]:
    """The ways in which judges answer, what fools them, what their verdicts took, and how the card was made."""
    return [_answers_table(card), *map(_audit_table, card.audits), _spent_table(card), _origin_table(card)]


def _answers_table(card: Card) -> Table:
    header = (
        *("judge", "benchmark", "ties", "sub-scores 0, 5 or 10", "same in both orders"),
        *("same when asked again", "differs by"),
    )
    repeats = {(r.judge, r.benchmark): (r.same.short, r.spread.short) for r in card.repeats}
    rows = []
    for entry in card.entries:
        answers = entry.answers
        shares = ("" if s is None else f"{s:.1%}" for s in (answers.ties, answers.round_numbers))
        consistent = "" if answers.consistent is None else answers.consistent.short
        again = repeats.get((entry.judge, entry.benchmark), ("", ""))
        rows.append((entry.judge, entry.title, *shares, consistent, *again))
    return Table("answers", "How the judge answers", header, tuple(rows))


def _audit_table(audit: CardAudit) -> Table:
    """Effects that fool a judge or that its samples do not decide; the others are counted."""
    header = ("change to the image", "aspect", "n", "mean score moves by [95%]", "finding")
    odd = sorted((row for row in audit.rows if row.finding != _EXPECTED), key=lambda row: row not in audit.flagged)
    rows = tuple((row.change, row.aspect, str(row.difference.n), row.difference.short, row.finding) for row in odd)
    fine = f"{len(audit.rows) - len(odd)} of {len(audit.rows)} effects are as they ought to be and left out here"
    title = f"{audit.judge}: {plural(audit.samples, 'sample')} of {audit.benchmark} with changed images; {fine}"
    return Table("audit", title, header, rows)


def _spent_table(card: Card) -> Table:
    header = ("judge", "benchmark", "sample", "verdicts", "failed", "answers", "tokens", "seconds of calls")
    rows = []
    for entry in card.entries:
        spent = entry.spent
        of_available = f" of {entry.available}" if entry.available else ""
        sample = f"{entry.samples}{of_available} {entry.unit} in {entry.cells} cells"
        failed = ", ".join(f"{n} {status}" for status, n in spent.failed.items()) or "0"
        took = ("not known" if count is None else f"{count:,.0f}" for count in (spent.tokens, spent.seconds))
        rows.append((entry.judge, entry.title, sample, str(spent.verdicts), failed, f"{spent.calls:,}", *took))
    further = [(repeats.judge, repeats.benchmark, "repeats", repeats.calls) for repeats in card.repeats]
    further += [(audit.judge, audit.benchmark, "audit", audit.calls) for audit in card.audits]
    rows += [(judge, benchmark, what, "", "", f"{calls:,}", "", "") for judge, benchmark, what, calls in further]
    total = sum(entry.spent.calls for entry in card.entries) + sum(calls for *_, calls in further)
    title = f"Failures and cost: {total:,} answers in all, each from a call, from the store or the same as another"
    return Table("spent", title, header, tuple(rows))


def _origin_table(card: Card) -> Table:
    """The exact model, wording, options, seed, date and versions."""
    rows = [("model", card.model), ("made from", card.made_from), ("date", card.date), ("seed", str(card.seed))]
    for entry in card.entries:
        judge = " ".join(filter(None, (entry.judge, entry.setting)))
        pack = f"{judge}, wording {entry.pack} ({entry.pack_hash})" if entry.pack else judge
        rows.append((f"judge on {entry.title}", pack))
    options = {json.dumps(entry.options, sort_keys=True): entry.judge for entry in card.entries}
    rows += [(f"options of {judge}", text) for text, judge in options.items()]
    for name, values in (("statistics", card.statistics), ("versions", card.versions)):
        rows.append((name, ", ".join(f"{key} {value}" for key, value in values.items())))
    return Table("origin", "How it was made", ("", ""), tuple(rows))


def _signed(difference: Difference) -> str:
    number = difference.number
    return f"+{number.short}" if number.value is not None and number.value > 0 else number.short
