"""An audit in lines for a terminal, as a table, and as JSON values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from vieval_plugin.audit.audit import ORDER, Audit, AuditPlan
from vieval_plugin.audit.effects import LEAST, Effect
from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.tables import Table, with_interval
from vieval_plugin.text.tables import text_table

_MEANS = ("change", "aspect", "n", "failed", "before", "after")


def plan_lines(judge: str, plan: AuditPlan, seed: int, store: bool) -> list[str]:
    """What is going to be asked."""
    least = "at least " if plan.at_least else ""
    stored = f"; {plan.stored} more are answered by the store" if store else ""
    calls = f"{least}{plan.to_ask} calls{stored}" if plan.to_ask or plan.stored else "no call of a model"
    return [f"audit of {judge}: {plan.samples} unchanged and {plan.changed} changed (seed {seed}), {calls}"]


def lines(found: Audit) -> list[str]:
    """The table, and what was flagged."""
    header = (*_MEANS, "difference [95%]", "p (Holm)", "ought to be", "finding")
    rows = [header, *(_shown(one) for one in found.effects)]
    flagged = [f"flagged: {_told(one)}" for one in found.effects if one.flagged]
    told = ["", f"{found.judge}:", *text_table(rows), "", *(flagged or ["nothing flagged"])]
    if found.inconsistent:
        share = with_interval(*found.inconsistent)
        told.append(f"order: {share} of the contests have different answers in the two orders")
    elif any(one.change == ORDER for one in found.effects):
        told.append("order: no contest has answers in two orders, so nothing is known of it")
    if found.unscored:
        told.append(f"no score even unchanged: {found.unscored}")
    return [*told, ""]


def protocol(draws: int, seed: int) -> str:
    """How the numbers came about, in a paragraph."""
    return (
        f"Differences are changed less unchanged, of samples that have both scores. Intervals: 95%, {draws} bootstrap draws "
        f"of groups. p: paired permutation test, {draws} draws, adjusted by Holm over the judge's rows. What ought to be the "
        f"same, or not higher, is flagged where adjusted p <= {LEVEL} and the difference is above {LEAST}; what ought to be lower, "
        f"where its interval rules out a fall of {LEAST}. Seed {seed}."
    )


def table(audits: Sequence[Audit]) -> Table:
    """The effects of all judges, a row each."""
    header = ("judge", *_MEANS, "difference", "ci_low", "ci_high", "p", "p_holm", "ought_to_be", "finding")
    rows = [
        (
            one.judge,
            each.change,
            each.aspect,
            str(each.n),
            str(each.failed),
            *map(_cell, _numbers(each)),
            each.expected,
            each.finding,
        )
        for one in audits
        for each in one.effects
    ]
    return Table("audit", "", header, tuple(rows))


def document(audits: Sequence[Audit], draws: int, seed: int) -> dict[str, object]:
    """All of it as JSON values; None for what is undefined."""
    return {"seed": seed, "draws": draws, "least": LEAST, "level": LEVEL, "judges": [_document(one) for one in audits]}


def _document(found: Audit) -> dict[str, object]:
    effects = [{**{k: _json(v) for k, v in asdict(one).items()}, "finding": one.finding} for one in found.effects]
    inconsistent = dict(zip(("share", "low", "high"), found.inconsistent, strict=True)) if found.inconsistent else None
    return {"judge": found.judge, "unscored": found.unscored, "inconsistent": inconsistent, "effects": effects}


def _told(one: Effect) -> str:
    if one.change == ORDER:
        place = "first" if one.difference > 0 else "second"
        return f"{ORDER}: what is shown {place} is preferred, by {abs(one.difference):.2f}"
    verb = one.finding.partition(": ")[2]
    return f"{one.change}: {one.aspect} {verb} ({one.difference:+.2f})"


def _shown(one: Effect) -> tuple[str, ...]:
    difference = with_interval(one.difference, one.low, one.high, digits=3)
    numbers = (_short(one.before), _short(one.after), difference, _short(one.adjusted))
    return (one.change, one.aspect, str(one.n), str(one.failed), *numbers, one.expected, one.finding)


def _numbers(one: Effect) -> tuple[float, ...]:
    return one.before, one.after, one.difference, one.low, one.high, one.p, one.adjusted


def _short(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _cell(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.6g}"


def _json(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value
