"""Leaderboards of judges whose accuracy a test chooses."""

import numpy as np

from tests.builders import a_provenance
from vieval_plugin.judges.protocol import Choice, SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.findings import (
    ALL,
    Findings,
    Number,
    RankedStatistic,
)
from vieval_plugin.meta_evaluation.leaderboards import leaderboard
from vieval_plugin.records import Record, Run
from vieval_plugin.stats.estimate import Estimate, ImageModelCoverage
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=100)
HUMANS = "human ceiling: each annotator against the others"
VOTES = (ALL, "votes", "accuracy")
CEILING = Number(HUMANS, Estimate(0.8, 0.75, 0.85, n=100), *VOTES, "ceiling")
ALWAYS_FIRST = "best constant: always first"
CONSTANT = Number(ALWAYS_FIRST, Estimate(0.4, n=100), *VOTES, "baseline")
EVERYTHING = ImageModelCoverage()


def board_of(
    accuracies,
    items=200,
    partial=(),
    references=(CEILING, CONSTANT),
    coverage=EVERYTHING,
    runs=(),
    against="annotators on b",
    width=0.05,
):
    """A leaderboard of judges with these accuracies; `partial` judges have a third of the items."""
    own = {}
    for number, (label, accuracy) in enumerate(accuracies.items()):
        right = np.random.default_rng(number).permutation(items) < accuracy * items
        held = range(items // 3 if label in partial else items)
        own[label] = {f"i{n}": JudgedItem(f"i{n}", float(right[n])) for n in held}
    numbers = []
    for label, answers in own.items():
        value = float(np.mean([item.value for item in answers.values()]))
        ends = (value - width, value + width)
        estimate = Estimate(value, *ends, n=len(answers), coverage=coverage)
        numbers.append(Number(label, estimate, *VOTES))
    constant = np.arange(items) < 0.4 * items
    answers = {f"i{n}": float(constant[n]) for n in range(items)}
    fixed = [answers] if CONSTANT in references else []
    compared = ("all", "votes", "accuracy", own, "pairs")
    means = lambda _: compared_means(*compared, constants=fixed)
    described = (*VOTES, "accuracy", "", "", (0, 1))
    statistic = RankedStatistic(*described, means, tuple(references))
    findings = Findings(tuple(numbers))
    return leaderboard(statistic, findings, "b", runs, OPTIONS, against=against)


def voting(label, votes):
    """A run of a judge with these votes, each in the forward and in the reverse order."""
    records = []
    for number, (forward, reverse) in enumerate(votes):
        choice = Choice({"forward": forward, "reverse": reverse})
        verdict = Verdict({}, Status.OK, choice=choice)
        source = a_provenance("pairwise", label, (), settings=())
        identity = SampleId("b", "p", "", str(number))
        records.append([Record(identity, verdict, source, {})])
    return Run(label, "b", "pairwise", (), {"p": records})
