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


CEILING = Number(
    "human ceiling: each annotator against the others",
    Estimate(0.8, 0.75, 0.85, n=100),
    ALL,
    "votes",
    "accuracy",
    "ceiling",
)


CONSTANT = Number(
    "best constant: always first",
    Estimate(0.4, n=100),
    ALL,
    "votes",
    "accuracy",
    "baseline",
)


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
    """A leaderboard of judges that are right on so many of the items; `partial` judges have a
    third of the items.
    """
    own = {}
    for number, (label, accuracy) in enumerate(accuracies.items()):
        right = np.random.default_rng(number).permutation(items) < accuracy * items
        held = range(items // 3 if label in partial else items)
        own[label] = {f"i{n}": JudgedItem(f"i{n}", float(right[n])) for n in held}
    numbers = []
    for label, answers in own.items():
        value = float(np.mean([item.value for item in answers.values()]))
        estimate = Estimate(
            value, value - width, value + width, n=len(answers), coverage=coverage
        )
        numbers.append(Number(label, estimate, ALL, "votes", "accuracy"))
    constant = np.arange(items) < 0.4 * items
    fixed = (
        [{f"i{n}": float(constant[n]) for n in range(items)}]
        if CONSTANT in references
        else []
    )
    statistic = RankedStatistic(
        *(ALL, "votes", "accuracy", "accuracy", "", "", (0, 1)),
        lambda _: compared_means(
            "all", "votes", "accuracy", own, "pairs", constants=fixed
        ),
        tuple(references),
    )
    return leaderboard(
        statistic, Findings(tuple(numbers)), "b", runs, OPTIONS, against=against
    )


def voting(label, votes):
    """A run of a judge with these votes, each in the forward and in the reverse order."""
    records = []
    for number, (forward, reverse) in enumerate(votes):
        verdict = Verdict(
            {}, Status.OK, choice=Choice({"forward": forward, "reverse": reverse})
        )
        source = a_provenance("pairwise", label, (), settings=())
        records.append(
            [Record(SampleId("b", "p", "", str(number)), verdict, source, {})]
        )
    return Run(label, "b", "pairwise", (), {"p": records})
