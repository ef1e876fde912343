"""Means of a generator's scores over prompts, with intervals: of its images, and of the best
image of each prompt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from vieval_plugin.meta_evaluation.estimates import Computed, computed_mean
from vieval_plugin.meta_evaluation.measures import PromptScore, mean_of
from vieval_plugin.meta_evaluation.observations import (
    Observation,
    apply_failure_policy,
    observe,
)
from vieval_plugin.meta_evaluation.statistics import SCORED, Statistic
from vieval_plugin.records import YOUR_IMAGES, Run
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.options import StatisticsOptions

#: Breakdown values of an image, from its part and what is seen of it.
BreakdownValues = Callable[[str, Observation], Iterable[str]]

#: The breakdowns of generators' means.
BREAKDOWNS: Mapping[str, BreakdownValues] = {
    "part": lambda part, image: [part],
    "kind": lambda part, image: [image.kind],
    "category": lambda part, image: filter(None, [image.category]),
    "tag": lambda part, image: image.tags,
}


@dataclass(frozen=True)
class GeneratorImages:
    """The images of one generator that one judge saw, failures imputed, all parts together, each
    with its part.

    Groups are named with their part: two parts may have a prompt of one uid.
    """

    image_model: str
    aspects: tuple[str, ...]
    images: tuple[tuple[str, Observation], ...]

    @property
    def all(self) -> list[Observation]:
        """The images without their parts."""
        return [image for _, image in self.images]

    def having_value(self, breakdown: str, value: str) -> list[Observation]:
        """The images that have a value of one of `BREAKDOWNS`."""
        return [
            image
            for part, image in self.images
            if value in BREAKDOWNS[breakdown](part, image)
        ]


def generators_of(run: Run, options: StatisticsOptions) -> list[GeneratorImages]:
    """The generators of a run in the order in which they come; contests, which several are in, are
    left out.

    Images that name no generator are those of `YOUR_IMAGES`.

    Args:
        run: one judge's.
        options: what a failed verdict is.
    """
    images_by_model: dict[str, list[tuple[str, Observation]]] = {}
    scores: dict[str, None] = dict.fromkeys(run.aspects)
    for part, samples in run.records.items():
        for record in chain(*samples):
            if record.votes is not None:
                continue
            image = observe([record])
            image = replace(
                image, group=f"{part}/{image.group}", cluster=f"{part}/{image.cluster}"
            )
            model = record.id.image_model or YOUR_IMAGES
            images_by_model.setdefault(model, []).append((part, image))
            scores |= dict.fromkeys(record.verdict.scores)
    generators = []
    for model, images in images_by_model.items():
        images.sort(key=_part_and_image_key)
        parts = [part for part, _ in images]
        observations = [image for _, image in images]
        scored_images = apply_failure_policy(observations, tuple(scores), options)
        with_parts = tuple(zip(parts, scored_images, strict=True))
        generators.append(GeneratorImages(model, tuple(scores), with_parts))
    return generators


def _part_and_image_key(
    part_and_image: tuple[str, Observation],
) -> tuple[str, str, str, int]:
    part, image = part_and_image
    return part, image.group, image.uid, image.draw


def breakdown_values(judged: Sequence[GeneratorImages], breakdown: str) -> list[str]:
    """The values of one of `BREAKDOWNS` that an image of any generator has, in the order in
    which they come.
    """
    values_of = BREAKDOWNS[breakdown]
    values: dict[str, None] = {}
    for generator in judged:
        for part, image in generator.images:
            values |= dict.fromkeys(values_of(part, image))
    return list(values)


#: Costs of an image, each a mean over the images of which it is known.
COSTS = ("generation_seconds", "generation_tokens", "judging_tokens")


@dataclass(frozen=True)
class GeneratorRows:
    """A part's images in a fixed order: as they were judged, and with failed verdicts imputed."""

    judged: Sequence[Observation]
    imputed: Sequence[Observation]

    @property
    def scored(self) -> list[Observation]:
        """The images with a score."""
        return [image for image in self.imputed if image.scores]


def generator_statistics(
    scores: Sequence[str], aspects: Sequence[str], best: bool
) -> tuple[Statistic, ...]:
    """A generator's means on a part.

    Args:
        scores: those that the judge gives.
        aspects: those of them that are aspects.
        best: whether a prompt has several images, of which the best counts as well.

    Returns:
        `<score>_mean` over prompts of the mean of a prompt's images, `<score>_best` of the best of
        them, all in [0, 1], the mean of each of `COSTS`, and its place, which is not known of the
        images alone. Prompts of which no image has the score are in no mean.

    >>> from vieval_plugin.judges.protocol import Status
    >>> images = [("1", 0, 0.25), ("1", 1, 0.75), ("2", 0, 1.0)]
    >>> seen = [Observation("m", uid, {}, {"PQ": v}, Status.OK, draw=n) for uid, n, v in images]
    >>> [statistic.compute(GeneratorRows(seen, seen)).value for statistic in generator_statistics(("PQ",), (), True)[:3]]
    [0.75, 0.875, 3.0]
    """
    ways: dict[str, PromptScore] = {"mean": mean_of}
    if best:
        ways["best"] = max
    statistics = []
    for way, score_images in ways.items():
        for score in scores:
            statistic = Statistic(
                f"{score}_{way}",
                partial(_score_over_prompts, score, score_images),
                primary=way == "mean" and score in aspects,
                aspect=score,
            )
            statistics.append(statistic)
    costs = (Statistic(cost, partial(_cost, cost), interval=False) for cost in COSTS)
    return (*statistics, SCORED, *costs)


def _score_over_prompts(
    score: str, score_images: PromptScore, rows: GeneratorRows
) -> Computed:
    scores = score_prompts(rows.imputed, score, score_images)
    return mean_over_prompts(scores, clusters_of(rows.imputed))


def _cost(cost: str, rows: GeneratorRows) -> Computed:
    known = [image for image in rows.judged if cost in image.cost]
    costs = [image.cost[cost] for image in known]
    clusters = [image.cluster for image in known]
    return computed_mean(costs, clusters, "")


def best_of(scores: Sequence[float], number: int) -> float:
    """Expected score of the best of so many of a prompt's images, over all ways to choose them.

    So generators of which more images were made have no advantage.

    Args:
        scores: one an image, not fewer than `number`.
        number: how many images count, from 1.

    Source: the expectation of the largest of a sample without replacement; Chen et al. 2021,
    Evaluating Large Language Models Trained on Code (pass@k), is the same for right and wrong.

    >>> best_of([0.0, 1.0, 0.5], 2).__round__(3), best_of([0.2, 0.4], 1).__round__(3)
    (0.833, 0.3)
    """
    ways = math.comb(len(scores), number)
    terms = []
    for position, score in enumerate(sorted(scores)):
        chance = math.comb(position, number - 1) / ways
        terms.append(chance * score)
    return math.fsum(terms)


def score_prompts(
    observations: Sequence[Observation],
    aspect: str,
    score_images: PromptScore = mean_of,
) -> dict[str, float]:
    """The score of each prompt from those of its images that have one, in the order of prompts.

    Args:
        observations: one an image, failures already imputed.
        aspect: the score.
        score_images: what several images of a prompt count as, such as their mean or the best.

    >>> from vieval_plugin.judges.protocol import Status
    >>> score_prompts([Observation("m", "1", {}, {"PQ": 0.5}, Status.OK)], "PQ")
    {'1': 0.5}
    """
    prompt_scores = {}
    for prompt, scores in sorted(scores_by_prompt(observations, aspect).items()):
        score = score_images(scores)
        if score is not None:
            prompt_scores[prompt] = score
    return prompt_scores


def scores_by_prompt(
    observations: Sequence[Observation], aspect: str
) -> dict[str, list[float]]:
    """The scores of each prompt's images, of those that have one.

    Args:
        observations, aspect: as for `score_prompts`.
    """
    return grouped(
        (image.group, image.scores[aspect])
        for image in observations
        if aspect in image.scores
    )


def clusters_of(observations: Iterable[Observation]) -> dict[str, str]:
    """The cluster of each prompt, such as its template."""
    return {image.group: image.cluster for image in observations}


def mean_over_prompts(
    scores: Mapping[str, float], clusters: Mapping[str, str]
) -> Computed:
    """The mean of what prompts have, for a bootstrap over their clusters.

    Args:
        scores: that of each prompt; `score_prompts` gives them.
        clusters: that of each prompt; `clusters_of` gives them.

    >>> mean_over_prompts({"1": 0.5, "2": 1.0}, {"1": "a cat", "2": "a cat"}).value
    0.75
    """
    prompt_clusters = [clusters[prompt] for prompt in scores]
    return computed_mean(list(scores.values()), prompt_clusters, "no image has a score")
