"""Statistics of benchmarks that compare scores with labels, preferences or human scores of their own kind.

Each works on the observations that have a score and is given with a 95% interval by a cluster bootstrap: all pairs of
an example, and all images of a prompt, are drawn together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_correlations, compared_means
from vieval_plugin.meta_evaluation.comparison import CommonSamples, ComparedStatistic, System
from vieval_plugin.meta_evaluation.estimates import Computed, correlated, estimated
from vieval_plugin.meta_evaluation.observations import Observation, Summary, fill, observe
from vieval_plugin.records import Run
from vieval_plugin.stats import binary, compositional, pairwise
from vieval_plugin.stats.correlation import Coefficient, Floats
from vieval_plugin.stats.options import StatisticsOptions

ASPECT = "SC"
"""The aspect that such benchmarks rate: how well an image fits its text."""

FIRST_AND_SECOND = ((0,), (1,))
"""The places of a pair of which people prefer one."""

IMAGES_AND_TEXTS = ((0, 0), (0, 1), (1, 0), (1, 1))
"""The places of two images with two texts: the image's number, the text's."""

Compute: TypeAlias = Callable[[Sequence[Observation]], Computed]


@lru_cache(maxsize=16)
def label_statistics(
    observations: tuple[Observation, ...], statistics: tuple[str, ...], name: str, options: StatisticsOptions
) -> Summary:
    """A part's statistics by name, with 95% intervals. Cached, because a host asks once for every metric.

    Args:
        observations: the part's samples, in any order.
        statistics: names among `STATISTICS`.
        name: that of the part (`benchmark/part`); it joins the seed, so that parts are resampled independently.
        options: what failed verdicts are, how many draws, the seed.

    Returns:
        An `Estimate` a statistic: correlations in [-1, 1], all others in [0, 1]; NaN with a reason where undefined.

    Raises:
        KeyError: for a statistic that is not known.
        ValueError: for labels that a statistic does not take, such as another than 0 and 1 for `auroc`.

    >>> from vieval_plugin.judges.protocol import Status
    >>> judged = [(0.1, 0.0), (0.4, 0.0), (0.35, 1.0), (0.8, 1.0)]
    >>> rows = tuple(
    ...     Observation("model", str(n), (("SC", (label,)),), (("SC", score),), Status.OK)
    ...     for n, (score, label) in enumerate(judged)
    ... )
    >>> label_statistics(rows, ("auroc",), "mine/all", StatisticsOptions(draws=10)).estimates["auroc"].value
    0.75
    """
    scored = scored_observations(observations, options)
    return Summary(
        {},
        Counter(o.status for o in observations),
        options,
        {statistic: estimated(STATISTICS[statistic](scored), name, options) for statistic in statistics},
        scored=len(scored),
        exact=sum(o.exact for o in scored),
    )


def label_statistics_by_tag(
    observations: Sequence[Observation], statistics: tuple[str, ...], name: str, options: StatisticsOptions
) -> dict[str, Summary]:
    """The same statistics for each skill tag, over the observations that carry it.

    Args:
        observations: as for `label_statistics`; one may carry several tags, or none.
        statistics: as for `label_statistics`.
        name: that of the part; the tag joins it.
        options: as for `label_statistics`.

    Returns:
        Summaries by tag in alphabetical order; empty where there are no tags.

    >>> from vieval_plugin.judges.protocol import Status
    >>> row = Observation("model", "1", (("SC", (1.0,)),), (("SC", 0.5),), Status.OK, tags=("color", "counting"))
    >>> found = label_statistics_by_tag([row], ("auroc",), "mine/all", StatisticsOptions(draws=10))
    >>> {tag: summary.scored for tag, summary in found.items()}
    {'color': 1, 'counting': 1}
    """
    tagged: dict[str, list[Observation]] = defaultdict(list)
    for observation in observations:
        for tag in observation.tags:
            tagged[tag].append(observation)
    return {tag: label_statistics(tuple(tagged[tag]), statistics, f"{name}/{tag}", options) for tag in sorted(tagged)}


def of_aspect(observations: Sequence[Observation], rated: str, scored: str) -> tuple[Observation, ...]:
    """Observations with the ratings of one aspect and the scores of one, by the name that the statistics know.

    Args:
        observations: in any order.
        rated: the aspect that people rated.
        scored: the aspect whose scores are compared with it.

    >>> from vieval_plugin.judges.protocol import Status
    >>> one = Observation("model", "1", (("SC", (1.0,)), ("PQ", (0.0,))), (("SC", 0.5), ("PQ", 0.25)), Status.OK)
    >>> [(o.ratings, o.scores) for o in of_aspect([one], "PQ", "PQ")]
    [((('SC', (0.0,)),), (('SC', 0.25),))]
    """

    def only(scores: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
        return tuple((ASPECT, value) for aspect, value in scores if aspect == scored)

    return tuple(
        replace(
            o,
            ratings=tuple((ASPECT, values) for aspect, values in o.ratings if aspect == rated),
            scores=only(o.scores),
            repeats=tuple(map(only, o.repeats)),
            recorded=only(o.recorded),
        )
        for o in observations
    )


def compared_aspect(rated: str, aspects: Sequence[str], against_all: bool) -> str:
    """The aspect whose scores are compared with what people rated: the same, or a judge's only one.

    >>> compared_aspect("PQ", ("SC", "PQ"), False), compared_aspect("PQ", ("SC",), True)
    ('PQ', 'SC')
    """
    return aspects[0] if against_all and aspects else rated


def scored_observations(observations: Sequence[Observation], options: StatisticsOptions) -> list[Observation]:
    """Observations with a score under the failure policy, sorted by uid."""
    scored = [o for o in fill(observations, (ASPECT,), options) if dict(o.scores).get(ASPECT) is not None]
    return sorted(scored, key=lambda o: (o.uid, o.image_model))


def scores_and_ratings(observations: Sequence[Observation]) -> tuple[Floats, Floats]:
    """The judge's scores and the mean ratings, rounded so that equal means are equal."""
    judged = np.array([dict(o.scores)[ASPECT] for o in observations], dtype=float)
    rated = np.array([np.mean(dict(o.ratings)[ASPECT]) for o in observations], dtype=float)
    return judged, np.round(rated, 9)


def _groups(observations: Sequence[Observation]) -> list[str]:
    return [o.group for o in observations]


def _correlation(coefficient: Coefficient) -> Compute:
    return lambda observations: correlated(*scores_and_ratings(observations), _groups(observations), coefficient)


def _pairwise(observations: Sequence[Observation]) -> Computed:
    """The interval keeps the epsilon that was calibrated on all pairs."""
    judged, rated = scores_and_ratings(observations)
    calibration = pairwise.calibrated(judged, rated)
    return Computed(
        calibration.accuracy,
        lambda counts: pairwise.resampled_accuracy(judged, rated, calibration.epsilon, counts),
        _groups(observations),
        "too few samples",
    )


def _auroc(observations: Sequence[Observation]) -> Computed:
    judged, rated = scores_and_ratings(observations)
    return Computed(
        binary.auroc(rated, judged),
        lambda counts: binary.resampled_auroc(rated, judged, counts),
        _groups(observations),
        "labels of one class only",
    )


def examples_of(
    observations: Sequence[Observation], places: Sequence[tuple[int, ...]]
) -> dict[str, dict[tuple[int, ...], Observation]]:
    """Observations by example (their group) and place in it, of those examples that have all places."""
    examples: dict[str, dict[tuple[int, ...], Observation]] = defaultdict(dict)
    for observation in observations:
        examples[observation.group][observation.place] = observation
    return {example: by_place for example, by_place in examples.items() if set(places) <= set(by_place)}


def _preference(observations: Sequence[Observation]) -> Computed:
    places = FIRST_AND_SECOND
    examples = examples_of(observations, places)
    first, second = (np.array([dict(e[p].scores)[ASPECT] for e in examples.values()], dtype=float) for p in places)
    # the first one's rating is 1 where people prefer it, 0 where they prefer the second, 0.5 for a tie
    preferred = np.array([dict(e[places[0]].ratings)[ASPECT][0] for e in examples.values()], dtype=float)
    return Computed(
        binary.preference_accuracy(preferred, first, second),
        lambda counts: binary.resampled_preference_accuracy(preferred, first, second, counts),
        list(examples),
        "no complete pair",
    )


def _compositional(statistic_index: int) -> Compute:
    def compute(observations: Sequence[Observation]) -> Computed:
        examples = examples_of(observations, IMAGES_AND_TEXTS)
        scores = np.array(
            [[dict(e[p].scores)[ASPECT] for p in IMAGES_AND_TEXTS] for e in examples.values()], dtype=float
        )
        table = scores.reshape(-1, 2, 2)
        return Computed(
            float(compositional.shares(table)[statistic_index]),
            lambda counts: compositional.resampled_shares(table, counts)[statistic_index],
            list(examples),
            "no complete example",
        )

    return compute


STATISTICS: Mapping[str, Compute] = MappingProxyType(
    {
        "pearson": _correlation("pearson"),
        "spearman": _correlation("spearman"),
        "kendall": _correlation("kendall"),
        "pairwise_accuracy": _pairwise,
        "auroc": _auroc,
        "preference_accuracy": _preference,
        "text_score": _compositional(0),
        "image_score": _compositional(1),
        "group_score": _compositional(2),
    }
)
"""The statistics by name: each turns scored observations, sorted by uid, into a value that can be resampled."""


Points: TypeAlias = Callable[[Sequence[Observation]], dict[str, JudgedItem]]


def compared_with_labels(
    parts: Sequence[str],
    runs: Sequence[Run],
    statistics: Sequence[str],
    options: StatisticsOptions,
    aspect: str = ASPECT,
) -> list[ComparedStatistic]:
    """An entry a part and statistic; parts and statistics are compared each for itself.

    Args:
        parts: all parts of the benchmark, in order.
        runs: one a judge, labels all different.
        statistics: names among `label_statistics.STATISTICS`.
        options: what failed verdicts are.
        aspect: what people rated.

    Returns:
        Those of the statistics that have a paired test; where none has, one entry a part that says so.
    """
    comparisons = []
    for part in dict.fromkeys((*parts, *(part for run in runs for part in run.records))):
        observed = {
            run.label: scored_observations(
                of_aspect(
                    [observe(judged) for judged in run.records[part]],
                    aspect,
                    compared_aspect(aspect, run.aspects, run.against_all),
                ),
                options,
            )
            for run in runs
            if part in run.records
        }
        if not observed:
            continue
        able = [
            _compared(part, aspect, statistic, observed)
            for statistic in statistics
            if statistic in (*_POINTS, *_CORRELATIONS)
        ]
        comparisons += able or [_unable(part, aspect, statistics[0], observed)]
    return comparisons


def _compared(
    part: str, aspect: str, statistic: str, observed: Mapping[str, Sequence[Observation]]
) -> ComparedStatistic:
    if coefficient := _CORRELATIONS.get(statistic):
        judged = {label: _scored(rows) for label, rows in observed.items()}
        return compared_correlations(part, aspect, coefficient, judged)
    points = _POINTS[statistic]
    judged = {label: points(rows) for label, rows in observed.items()}
    return compared_means(part, aspect, statistic.replace("_", " "), judged, "examples")


def _unable(part: str, aspect: str, statistic: str, observed: Mapping[str, Sequence[Observation]]) -> ComparedStatistic:
    judges = tuple(System(label, len(rows)) for label, rows in observed.items())
    reason = f"judges cannot be compared yet by {statistic}, which has no paired test here"
    return ComparedStatistic(
        part, aspect, statistic, judges, lambda first, second: CommonSamples(0, reason=reason), untestable=reason
    )


def _scored(observations: Sequence[Observation]) -> dict[str, JudgedItem]:
    judged, rated = scores_and_ratings(observations)
    return {
        f"{o.uid}/{o.image_model}": JudgedItem(o.group, score, people)
        for o, score, people in zip(observations, judged.tolist(), rated.tolist(), strict=True)
    }


def _preferences(observations: Sequence[Observation]) -> dict[str, JudgedItem]:
    first, second = FIRST_AND_SECOND
    return {
        name: JudgedItem(
            name,
            binary.preference_accuracy(
                [dict(example[first].ratings)[ASPECT][0]],
                [dict(example[first].scores)[ASPECT]],
                [dict(example[second].scores)[ASPECT]],
            ),
        )
        for name, example in examples_of(observations, FIRST_AND_SECOND).items()
    }


def _compositional_points(statistic_index: int) -> Points:
    def points(observations: Sequence[Observation]) -> dict[str, JudgedItem]:
        examples = examples_of(observations, IMAGES_AND_TEXTS)
        scores = [[dict(example[place].scores)[ASPECT] for place in IMAGES_AND_TEXTS] for example in examples.values()]
        right = compositional.right(np.array(scores, dtype=float).reshape(-1, 2, 2))[statistic_index]
        return {name: JudgedItem(name, float(point)) for name, point in zip(examples, right, strict=True)}

    return points


_CORRELATIONS: Mapping[str, Literal["pearson", "spearman"]] = MappingProxyType(
    {"pearson": "pearson", "spearman": "spearman"}
)
_POINTS: Mapping[str, Points] = MappingProxyType(
    {
        "preference_accuracy": _preferences,
        "text_score": _compositional_points(0),
        "image_score": _compositional_points(1),
        "group_score": _compositional_points(2),
    }
)
