"""Statistics of benchmarks that compare scores with labels, preferences or human scores of their
own kind.

Each works on the observations that have a score and is given with a 95% interval by a cluster
bootstrap: all pairs of an example, and all images of a prompt, are resampled together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.common_items import JudgedItem, PairedTestSpec
from vieval_plugin.meta_evaluation.estimates import Computed, computed_correlation
from vieval_plugin.meta_evaluation.findings import Role
from vieval_plugin.meta_evaluation.observations import Observation, apply_failure_policy
from vieval_plugin.meta_evaluation.statistics import Statistic
from vieval_plugin.stats import binary, pairwise
from vieval_plugin.stats.agreement import leave_one_out_points
from vieval_plugin.stats.correlation import Coefficient, Floats
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import mean

#: The aspect that such benchmarks rate: how well an image fits its text.
ASPECT = "SC"

#: Statistics of ratings from 0 (no) to 1 (yes), by name.
BINARY = ("auroc", "majority_agreement")

#: The positions of a pair of which people prefer one.
FIRST_AND_SECOND = ((0,), (1,))

#: The positions of two images with two texts: the image's number, the text's.
IMAGES_AND_TEXTS = ((0, 0), (0, 1), (1, 0), (1, 1))

#: Observations by example (their group) and place in it.
Examples: TypeAlias = Mapping[str, Mapping[tuple[int, ...], Observation]]


@dataclass(frozen=True)
class LabelRows:
    """The samples of a part with a score of the aspect `judged`, sorted by uid; people rated the
    aspect `rated`.
    """

    scored: tuple[Observation, ...]
    rated: str
    judged: str

    @classmethod
    def from_observations(
        cls,
        observations: Sequence[Observation],
        rated: str,
        judged: str,
        options: StatisticsOptions,
    ) -> LabelRows:
        """Return those of a part's observations, failed verdicts filled.

        >>> from vieval_plugin.judges.protocol import Status
        >>> seen = Observation("model", "1", {"SC": (1.0,), "PQ": (0.0,)}, {"SC": 0.5, "PQ": 0.25}, Status.OK)
        >>> rows = LabelRows.from_observations([seen], "PQ", "PQ", StatisticsOptions())
        >>> rows.scores.tolist(), rows.ratings.tolist()
        ([0.25], [0.0])
        """
        imputed = apply_failure_policy(observations, (judged,), options)
        scored = [
            observation for observation in imputed if judged in observation.scores
        ]
        scored.sort(key=lambda observation: (observation.uid, observation.image_model))
        return cls(tuple(scored), rated, judged)

    def having_tag(self, tag: str) -> LabelRows:
        """Return those that carry a tag."""
        scored = tuple(
            observation for observation in self.scored if tag in observation.tags
        )
        return LabelRows(scored, self.rated, self.judged)

    @property
    def scores(self) -> Floats:
        """The judge's scores, in [0, 1]."""
        return np.array(
            [observation.scores[self.judged] for observation in self.scored],
            dtype=float,
        )

    @property
    def ratings(self) -> Floats:
        """The mean ratings on the benchmark's own scale, rounded so that equal means are equal."""
        means = [
            np.mean(observation.ratings[self.rated]) for observation in self.scored
        ]
        return np.round(np.array(means, dtype=float), 9)

    @property
    def clusters(self) -> list[str]:
        """The cluster of each sample."""
        return [observation.group for observation in self.scored]

    def examples(self, positions: Sequence[tuple[int, ...]]) -> Examples:
        """Return the examples that have all of these positions."""
        examples: dict[str, dict[tuple[int, ...], Observation]] = defaultdict(dict)
        for observation in self.scored:
            examples[observation.group][observation.place] = observation
        return {
            name: by_position
            for name, by_position in examples.items()
            if set(positions) <= set(by_position)
        }

    def scores_at(self, examples: Examples, position: tuple[int, ...]) -> Floats:
        """Return the scores at a position of each example."""
        return np.array(
            [
                by_position[position].scores[self.judged]
                for by_position in examples.values()
            ],
            dtype=float,
        )


def _correlation(coefficient: Coefficient, rows: LabelRows) -> Computed:
    return computed_correlation(rows.scores, rows.ratings, rows.clusters, coefficient)


def _items(rows: LabelRows, values: Floats) -> dict[str, JudgedItem]:
    """Samples by name, each with a value and its mean rating."""
    ratings = rows.ratings.tolist()
    items = {}
    for observation, value, rating in zip(
        rows.scored, values.tolist(), ratings, strict=True
    ):
        name = f"{observation.uid}/{observation.image_model}"
        items[name] = JudgedItem(observation.group, value, rating)
    return items


def _rated_items(rows: LabelRows) -> dict[str, JudgedItem]:
    return _items(rows, rows.scores)


def _pairwise(rows: LabelRows) -> Computed:
    """The interval keeps the epsilon that was calibrated on all pairs."""
    judged = rows.scores
    rated = rows.ratings
    calibration = pairwise.calibrated(judged, rated)
    return Computed(
        value=calibration.accuracy,
        resample=lambda counts: pairwise.resampled_accuracy(
            judged, rated, calibration.epsilon, counts
        ),
        clusters=rows.clusters,
        reason="too few samples",
    )


def _auroc(rows: LabelRows) -> Computed:
    judged = rows.scores
    rated = rows.ratings
    if not np.isin(rated, (0, 1)).all():
        return Computed(
            value=math.nan,
            resample=lambda counts: np.full(len(counts), math.nan),
            clusters=rows.clusters,
            reason="auroc requires ratings of 0 or 1",
        )
    return Computed(
        value=binary.auroc(rated, judged),
        resample=lambda counts: binary.resampled_auroc(rated, judged, counts),
        clusters=rows.clusters,
        reason="all labels have the same class",
    )


def _is_right(shares: Floats) -> Floats:
    """1 where most say that an image is right, a half where as many say so as not."""
    return (1 + np.sign(shares - 0.5)) / 2


def _agreement_points(rows: LabelRows) -> Floats:
    judged_right = rows.scores >= 0.5
    return 1 - np.abs(judged_right - _is_right(rows.ratings))


def _agreement(rows: LabelRows) -> Computed:
    points = _agreement_points(rows)
    return Computed(
        value=mean(points),
        resample=lambda counts: binary.resampled_mean(points, counts),
        clusters=rows.clusters,
        reason="too few samples",
    )


def _agreement_items(rows: LabelRows) -> dict[str, JudgedItem]:
    return _items(rows, _agreement_points(rows))


def _agreement_references(rows: LabelRows) -> dict[Role, Estimate]:
    """Agreement of one annotator with most of the others, and that of the better constant."""
    share = mean(_is_right(rows.ratings))
    majority = max(share, 1 - share)
    references: dict[Role, Estimate] = {"baseline": Estimate(majority)}
    points = [
        point
        for observation in rows.scored
        for point in leave_one_out_points(observation.ratings[rows.rated])
    ]
    if points:
        references["ceiling"] = Estimate(mean(points), n=len(points))
    return references


def _preference_points(rows: LabelRows) -> tuple[list[str], Floats]:
    """Pairs by name, and whether the judge scores that one higher which people prefer (1, 0, or
    0.5 for a tie).
    """
    examples = rows.examples(FIRST_AND_SECOND)
    first, second = (
        rows.scores_at(examples, position) for position in FIRST_AND_SECOND
    )
    preferred = [
        by_position[FIRST_AND_SECOND[0]].ratings[rows.rated][0]
        for by_position in examples.values()
    ]
    return list(examples), binary.preference_points(preferred, first, second)


def _compositional_points(
    share_index: int, rows: LabelRows
) -> tuple[list[str], Floats]:
    """Examples by name, and whether the judge is right by text, by image, or by both."""
    examples = rows.examples(IMAGES_AND_TEXTS)
    columns = [rows.scores_at(examples, position) for position in IMAGES_AND_TEXTS]
    scores = np.array(columns).T
    points = binary.right_points(scores.reshape(-1, 2, 2))
    return list(examples), points[share_index]


def _share_statistic(
    name: str,
    points_of: Callable[[LabelRows], tuple[list[str], Floats]],
    constant: float,
    what: str = "example",
) -> Statistic:
    """The mean of points of complete examples."""

    def compute(rows: LabelRows) -> Computed:
        names, points = points_of(rows)
        return Computed(
            value=mean(points),
            resample=lambda counts: binary.resampled_mean(points, counts),
            clusters=names,
            reason=f"no complete {what}",
        )

    def items(rows: LabelRows) -> dict[str, JudgedItem]:
        return {
            example: JudgedItem(example, float(point))
            for example, point in zip(*points_of(rows), strict=True)
        }

    return Statistic(
        name, compute, constant=constant, paired=PairedTestSpec(items, unit="examples")
    )


def _correlation_statistic(coefficient: Coefficient) -> Statistic:
    test = None
    if coefficient != "kendall":  # which has no paired test here
        test = PairedTestSpec(_rated_items, coefficient)
    return Statistic(
        coefficient,
        partial(_correlation, coefficient),
        ends=(-1.0, 1.0),
        constant=0.0,
        paired=test,
    )


#: The statistics by name: each turns scored observations, sorted by uid, into a value that can be
#: resampled.
STATISTICS: Mapping[str, Statistic] = MappingProxyType(
    {
        statistic.name: statistic
        for statistic in (
            _correlation_statistic("pearson"),
            _correlation_statistic("spearman"),
            _correlation_statistic("kendall"),
            Statistic("pairwise_accuracy", _pairwise),
            Statistic("auroc", _auroc, constant=0.5),
            Statistic(
                "majority_agreement",
                _agreement,
                references=_agreement_references,
                paired=PairedTestSpec(_agreement_items),
            ),
            _share_statistic("preference_accuracy", _preference_points, 0.5, "pair"),
            # Source of the means of constant baselines: Thrush et al., Winoground (2022)
            *(
                _share_statistic(
                    f"{by}_score", partial(_compositional_points, index), constant
                )
                for index, (by, constant) in enumerate(
                    {"text": 1 / 4, "image": 1 / 4, "group": 1 / 6}.items()
                )
            ),
        )
    }
)
