"""The tables of a card, for its page and its Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vieval_plugin.audit.effects import effects_table
from vieval_plugin.card.card import Card, CardAudit
from vieval_plugin.card.placing import PlacedJudge
from vieval_plugin.card.sentences import UNDECIDED, outcome
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.report.tables import failures_of, leaderboard_table, pairs_table
from vieval_plugin.report.words import breakdown_words, short_number, task_type
from vieval_plugin.run.verdict_lines import flat
from vieval_plugin.stats.decisions import SIGNIFICANCE_LEVEL
from vieval_plugin.text.wording import plural

_EMPTY: tuple[object, ...] = (None, "", [], ())


def _board_tables(judge: PlacedJudge) -> list[Table]:
    own_pairs = judge.pairs_of_judge
    tables = [leaderboard_table(own_pairs)]
    if own_pairs.comparison.pairs:
        tables.append(pairs_table(own_pairs))
    page_words = judge.benchmark.page_words
    return [replace(table, title=page_words(table.title)) for table in tables]


def tables_of(judge: PlacedJudge) -> list[Table]:
    """Tables of a judge: its place among published judges, its pairs with them, and its
    numbers by task type or part.
    """
    tables = _board_tables(judge)
    by_value = judge.values_by_statistic(judge.run.label)
    if not by_value:
        return tables
    units = breakdown_words(judge.breakdown)
    header = (
        units,
        f"{judge.run.label} [95%]",
        "n",
        "better than",
        "worse than",
        "marks",
    )
    rows = []
    for value, estimate in by_value.items():
        sides: dict[str, list[str]] = {"better": [], "worse": [], "": []}
        for rival, pairs in judge.by_part.items():
            pair = pairs.get(value)
            if pair:
                described_rival = f"{rival} ({short_number(pair.result.difference)})"
                sides[outcome(pair)].append(described_rival)
        mark = ""
        if value in judge.useless:
            mark = "not shown to be better than a constant answer"
        coverage = str(estimate.coverage) if estimate.defined else estimate.reason
        rows.append(
            (
                task_type(value),
                short_number(estimate),
                estimate.sample_count,
                *map(", ".join, (sides["better"], sides["worse"])),
                "; ".join(
                    filter(
                        None,
                        (coverage, mark),
                    )
                ),
            )
        )
    title = (
        f"{judge.board.aspect} by {units} (better and worse: p at most "
        f"{SIGNIFICANCE_LEVEL}, Holm-adjusted over the rows for each judge)"
    )
    return [*tables, Table("parts", title, header, tuple(rows))]


def tables_of_all(card: Card, judges: Sequence[PlacedJudge]) -> list[Table]:
    """Tables on how judges answer, what fools them, what their verdicts cost, and how
    the card was made.
    """
    audit_tables = map(_audit_table, card.audits)
    return [
        _answers_table(card, judges),
        *audit_tables,
        _cost_table(card),
        _origin_table(card),
    ]


def _answers_table(card: Card, judges: Sequence[PlacedJudge]) -> Table:
    header = (
        *("judge", "benchmark", "ties", "sub-scores 0, 5 or 10", "same in both orders"),
        *("same when asked again", "differs by"),
    )
    repeats = {
        (r.judge, r.benchmark): tuple(short_number(row.estimate) for row in r.numbers)
        for r in card.repeats
    }
    rows = []
    for entry, judge in zip(card.entries, judges, strict=True):
        shares = (
            "" if share is None else f"{share:.1%}"
            for share in (entry.ties, entry.round_numbers)
        )
        repeat_cells = repeats.get((entry.judge, entry.benchmark), ("", ""))
        consistency = short_number(judge.consistency) if judge.consistency else ""
        rows.append((entry.judge, entry.title, *shares, consistency, *repeat_cells))
    return Table(
        "answers",
        "How the judge answers",
        header,
        tuple(rows),
    )


def _audit_table(audit: CardAudit) -> Table:
    """Table of the effects that fool a judge or are undecided; other effects are only
    counted.
    """
    odd = [row for row in audit.effects if row.finding != "as expected"]
    expected_count = len(audit.effects) - len(odd)
    are = "is" if expected_count == 1 else "are"
    fine = (
        f"{expected_count} of {len(audit.effects)} effects {are} as "
        f"expected and {are} not listed"
    )
    title = (
        f"{audit.judge}: audit on {plural(audit.samples, 'sample')} of "
        f"{audit.benchmark} with changed images; {fine}"
    )
    return effects_table(sorted(odd, key=lambda row: row.finding == UNDECIDED), title)


def _cost_table(card: Card) -> Table:
    header = (
        "judge",
        "benchmark",
        "sample",
        "failed",
        "answers",
        "tokens",
        "seconds of calls",
    )
    rows = []
    for entry in card.entries:
        available = f" of {entry.available}" if entry.available else ""
        sample = (
            f"{entry.samples}{available} {entry.unit}, in {entry.cells} combinations "
            "of task type and image model"
        )
        totals = (
            "not known" if count is None else f"{count:,.0f}"
            for count in (entry.cost.tokens, entry.seconds)
        )
        failures = failures_of(entry.cost)
        answers = f"{entry.cost.answers:,}"
        rows.append((entry.judge, entry.title, sample, failures, answers, *totals))
    further = [
        (repeats.judge, repeats.benchmark, "repeats", repeats.calls)
        for repeats in card.repeats
    ]
    further += [
        (audit.judge, audit.benchmark, "audit", audit.calls) for audit in card.audits
    ]
    rows += [(*names, "", f"{calls:,}", "", "") for *names, calls in further]
    entry_answers = sum(entry.cost.answers for entry in card.entries)
    total = entry_answers + sum(calls for *_, calls in further)
    title = (
        f"Failures and cost: {total:,} answers in total "
        "(from calls, from the cache, "
        "or shared between identical questions)"
    )
    return Table("cost", title, header, tuple(rows))


def _origin_table(card: Card) -> Table:
    """Table of the exact model, prompt packs, options, seed, date and versions."""
    rows = [
        ("model", card.model),
        ("made from", card.made_from),
        ("date", str(card.date)),
        ("seed", str(card.seed)),
    ]
    for entry in card.entries:
        judge = " ".join(filter(None, (entry.judge, entry.setting)))
        if entry.pack:
            pack = f"{judge}, wording {entry.pack} ({entry.pack_hash})"
        else:
            pack = judge
        rows.append((f"judge on {entry.title}", pack))
    settings = {f"options of {entry.judge}": entry.options for entry in card.entries}
    settings |= {"statistics": card.statistics, "versions": card.versions}
    rows += [
        (
            name,
            ", ".join(
                f"{key} {value}" for key, value in flat(values) if value not in _EMPTY
            ),
        )
        for name, values in settings.items()
    ]
    return Table("origin", "How it was made", ("", ""), tuple(rows))
