"""An audit in lines for a terminal, as a table, and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence

from vieval_plugin.audit.audit import ORDER, Audit, AuditPlan
from vieval_plugin.audit.effects import LEAST_EFFECT, Effect
from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.tables import Table, p_text, with_interval
from vieval_plugin.text.tables import text_table
from vieval_plugin.text.wording import decimals, nan_to_none

_NUMBERS = ("before", "after", "difference", "low", "high", "p", "adjusted")
_MEANS = ("change", "aspect", "n", "failed", "before", "after")


def plan_lines(judge: str, plan: AuditPlan, seed: int, store: bool) -> list[str]:
    """Lines on what is going to be asked."""
    at_least = "at least " if plan.at_least else ""
    stored = f"; {plan.stored} more are answered by the store" if store else ""
    calls = f"{at_least}{plan.to_ask} calls{stored}" if plan.to_ask or plan.stored else "no call of a model"
    return [f"audit of {judge}: {plan.samples} unchanged and {plan.modified} changed (seed {seed}), {calls}"]


def lines(result: Audit) -> list[str]:
    """Lines for a terminal: what was flagged first, then the table."""
    header = (*_MEANS, "difference [95%]", "p (Holm)", "ought to be", "finding")
    rows = [header, *(_effect_row(effect) for effect in result.effects)]
    flagged = [f"{result.judge}: flagged: {_flag_text(effect)}" for effect in result.effects if effect.flagged]
    answer = flagged or [f"{result.judge}: nothing flagged"]
    report = [*answer, "", *text_table(rows, "--out FOLDER has them"), ""]
    if result.left_out:
        report.append(f"left out, as they apply to no sample with a score: {', '.join(result.left_out)}")
    if result.inconsistent:
        share = with_interval(result.inconsistent)
        report.append(f"order: {share} of the contests have different answers in the two orders")
    elif any(effect.change == ORDER for effect in result.effects):
        report.append("order: no contest has answers in two orders, so nothing is known of it")
    if result.unscored:
        report.append(f"no score even unchanged: {result.unscored}")
    return [*report, ""]


def protocol(resamples: int, seed: int) -> str:
    """Describe in a paragraph how the numbers came about."""
    return (
        f"Differences are changed less unchanged, of samples that have both scores. Intervals: 95%, of differences those of the "
        f"test, of shares {resamples} bootstrap draws of groups. p: paired permutation test, {resamples} draws, adjusted by Holm over the judge's rows. What ought to be the "
        f"same, or not higher, is flagged where adjusted p <= {LEVEL} and the difference is above {LEAST_EFFECT}; what ought to be lower, "
        f"where its interval rules out a fall of {LEAST_EFFECT}. Seed {seed}."
    )


def table(audits: Sequence[Audit]) -> Table:
    """The effects of all judges, a row each."""
    header = ("judge", *_MEANS, "difference", "ci_low", "ci_high", "p", "p_holm", "ought_to_be", "finding")
    rows = [
        (
            result.judge,
            effect.change,
            effect.aspect,
            str(effect.n),
            str(effect.failed),
            *map(_cell, _numbers(effect)),
            effect.expected,
            effect.finding,
        )
        for result in audits
        for effect in result.effects
    ]
    return Table("audit", "", header, tuple(rows))


def document(audits: Sequence[Audit], resamples: int, seed: int) -> dict[str, object]:
    """Audits as JSON values; None for undefined numbers."""
    return {
        "seed": seed,
        "draws": resamples,
        "least": LEAST_EFFECT,
        "level": LEVEL,
        "judges": [_document(result) for result in audits],
    }


def _document(result: Audit) -> dict[str, object]:
    effects = [
        {
            **{name: getattr(effect, name) for name in ("change", "aspect", "expected", "n", "failed")},
            **dict(zip(_NUMBERS, map(_json, _numbers(effect)), strict=True)),
            "finding": effect.finding,
        }
        for effect in result.effects
    ]
    share = result.inconsistent
    inconsistent = {"share": share.value, "low": share.low, "high": share.high} if share else None
    return {"judge": result.judge, "unscored": result.unscored, "inconsistent": inconsistent, "effects": effects}


def _flag_text(effect: Effect) -> str:
    if effect.change == ORDER:
        position = "first" if effect.difference.value > 0 else "second"
        return f"{ORDER}: what is shown {position} is preferred, by {abs(effect.difference.value):.2f}"
    verb = effect.finding.partition(": ")[2]
    return f"{effect.change}: {effect.aspect} {verb} ({effect.difference.value:+.2f})"


def _effect_row(effect: Effect) -> tuple[str, ...]:
    difference = with_interval(effect.difference, digits=3)
    numbers = (
        decimals(effect.mean_before, ".3f", "-"),
        decimals(effect.mean_after, ".3f", "-"),
        difference,
        p_text(effect.adjusted),
    )
    return (effect.change, effect.aspect, str(effect.n), str(effect.failed), *numbers, effect.expected, effect.finding)


def _numbers(effect: Effect) -> tuple[float, ...]:
    difference = effect.difference
    means = (effect.mean_before, effect.mean_after)
    return *means, difference.value, difference.low, difference.high, effect.p, effect.adjusted


def _cell(value: float) -> str:
    return decimals(value, ".6g", "undefined")


def _json(value: object) -> object:
    return nan_to_none(value) if isinstance(value, float) else value
