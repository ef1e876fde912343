"""Judges of a model among published judges, with the numbers that a test chooses."""

import math
from dataclasses import replace
from datetime import date

from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.card.card import VERSION, Card, CardEntry
from vieval_plugin.card.placing import PlacedJudge
from vieval_plugin.card.sentences import answers
from vieval_plugin.meta_evaluation.comparison import (
    CommonSamplesStatistic,
    ComparedStatistic,
    Comparison,
    SystemPair,
)
from vieval_plugin.meta_evaluation.costs import Cost
from vieval_plugin.meta_evaluation.findings import ALL, Leaderboard, Number
from vieval_plugin.records import Run
from vieval_plugin.stats.comparison import PairedComparison
from vieval_plugin.stats.estimate import Estimate

MODEL = "mine"
TYPES = ("tie", "tig", "sdie")
COST = Cost(600, 0, (), 0, 1200, None, False)


def estimate(value):
    if value is None:
        return Estimate(math.nan, reasons=("no score",))
    return Estimate(value, value - 0.1, value + 0.1, n=100)


def pair(rival, difference, p):
    result = PairedComparison(0.4, 0.4 - difference.value, difference, p)
    return SystemPair(MODEL, rival, 100, result, p)


def published(label, ahead, p, parts=None):
    """A published judge, the model's lead over it and the test's p; also by part."""
    difference = estimate(ahead) if isinstance(ahead, float) else ahead
    by_part = {
        part: pair(label, estimate(value), of_part)
        for part, (value, of_part) in (parts or {}).items()
    }
    return pair(label, difference, p), by_part


def judge(
    value=0.4,
    others=(),
    parts=None,
    useless=(),
    on="imagenhub",
    below_constant=False,
    unranked="",
    references=(),
    cost=COST,
    model=MODEL,
):
    if model != MODEL:
        renamed = lambda test: replace(test, first=model)
        others = [
            (renamed(test), {part: renamed(of) for part, of in by_part.items()})
            for test, by_part in others
        ]
    place = (ALL, "O", "spearman")
    ranks = None if unranked or not others else (1, 2)
    own = Number(model, estimate(value), *place, ranks=ranks, unranked=unranked)
    of_others = [
        Number(test.second, estimate(0.4), *place, ranks=(1, 2)) for test, _ in others
    ]
    compared = ComparedStatistic(
        *(ALL, "O", "Spearman", (), lambda *_: CommonSamplesStatistic(0)),
        above_constant=lambda *_: 0.01,
    )
    by_value = {part: {model: estimate(of)} for part, of in (parts or {}).items()}
    title = ("spearman", "Spearman's correlation", "", (-1.0, 1.0))
    board = Leaderboard(
        *(*place, *title, lambda options: compared),
        benchmark="imagenhub",
        numbers=(own, *of_others),
        comparison=Comparison(compared, (), tuple(test for test, _ in others)),
        references=tuple(references),
        breakdowns={"kind": by_value} if by_value else {},
        against=f"annotators on {on}",
        costs={model: cost, **{test.second: COST for test, _ in others}},
        failures=dict(cost.statuses),
        verdicts=cost.verdicts,
        not_above_constant=frozenset([model] if below_constant else []),
    )
    run = Run(model, on, "viescore", ("O",), {}, setting="0shot")
    by_part = {test.second: of_part for test, of_part in others}
    placed = (run, benchmark(on), board, board.numbers, by_part)
    return PlacedJudge(*placed, tuple(useless))


def card(*judges, audits=(), left_out=()):
    entries = []
    made = ("viescore", "0shot", "viescore/v1", "0" * 16, {})
    sizes = ("samples", 600, 4801, 29)
    for of in judges:
        named = (of.benchmark.name, of.title)
        cost = of.board.costs[of.run.label]
        measured = ("0" * 64, (), (), cost, None, 0.2, 0.5, {})
        entries.append(CardEntry(*named, *made, *sizes, *measured))
    first = tuple(answers(judges)) if judges else ()
    model = judges[0].run.label if judges else MODEL
    parts = (tuple(entries), (), tuple(audits), tuple(left_out))
    return Card(VERSION, model, "vieval card", first, *parts, {}, 0, date(2026, 1, 1))
