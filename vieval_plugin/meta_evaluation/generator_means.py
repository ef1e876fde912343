"""Means of a generator's scores over prompts, with intervals: of its images, and of the best image of each prompt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.estimates import Computed, estimated
from vieval_plugin.meta_evaluation.observations import Estimate, Observation, Summary, fill, observe
from vieval_plugin.records import Run
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.options import StatisticsOptions

Words = Callable[[str, Observation], Iterable[str]]
"""Breakdown values of an image, from its part and what is seen of it."""

HEADINGS: Mapping[str, Words] = {
    "part": lambda part, image: [part],
    "kind": lambda part, image: [image.kind],
    "category": lambda part, image: filter(None, [image.category]),
    "tag": lambda part, image: image.tags,
}
"""The breakdowns of generators' means."""


@dataclass(frozen=True)
class GeneratorImages:
    """The images of one generator that one judge saw, failures filled, all parts together, each with its part."""

    judge: str
    image_model: str
    aspects: tuple[str, ...]
    images: tuple[tuple[str, Observation], ...]

    @property
    def all(self) -> list[Observation]:
        """The images without their parts."""
        return [image for _, image in self.images]

    def with_word(self, heading: str, word: str) -> list[Observation]:
        """The images that stand under a word of one of `HEADINGS`."""
        return [image for part, image in self.images if word in HEADINGS[heading](part, image)]


def generators_of(run: Run, options: StatisticsOptions) -> list[GeneratorImages]:
    """The generators of a run in the order in which they come; contests, which several are in, are left out.

    Args:
        run: one judge's.
        options: what a failed verdict is.
    """
    images_by_model: dict[str, list[tuple[str, Observation]]] = {}
    scores: dict[str, None] = dict.fromkeys(run.aspects)
    for part, samples in run.records.items():
        for record in (record for records in samples for record in records if record.votes is None):
            images_by_model.setdefault(record.id.image_model, []).append((part, observe([record])))
            scores |= dict.fromkeys(record.verdict.scores)
    generators = []
    for model, images in images_by_model.items():
        ordered = sorted(
            images,
            key=lambda part_and_image: (
                part_and_image[0],
                part_and_image[1].group,
                part_and_image[1].uid,
                part_and_image[1].draw,
            ),
        )
        scored_images = fill([image for _, image in ordered], tuple(scores), options)
        places = [part for part, _ in ordered]
        generators.append(
            GeneratorImages(run.label, model, tuple(scores), tuple(zip(places, scored_images, strict=True)))
        )
    return generators


def named_with_part(side: GeneratorImages) -> GeneratorImages:
    """The same, groups named with their part: two parts may have a prompt of one uid."""
    return replace(
        side, images=tuple((part, replace(image, group=f"{part}/{image.group}")) for part, image in side.images)
    )


def words_under(judged: Sequence[GeneratorImages], heading: str) -> list[str]:
    """The words of one of `HEADINGS` that an image of any generator stands under, in the order in which they come."""
    return list(
        dict.fromkeys(word for side in judged for part, image in side.images for word in HEADINGS[heading](part, image))
    )


COSTS = ("generation_seconds", "generation_tokens", "judging_tokens")
"""Costs of an image, each a mean over the images of which it is known."""


PLACES = ("place", "place_among")
"""The place of a generator among published image models, and how many those and it are."""

Published: TypeAlias = tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
"""The score of each published image model on each prompt, hashable."""


def with_place(summary: Summary, score_by_uid: Mapping[str, float], published: Published) -> Summary:
    """A summary with the generator's place, by means over the prompts of which all have a score.

    Args:
        summary: that of the generator.
        score_by_uid: its score on each prompt.
        published: those of the others; empty where there are none, and then there is no place.

    >>> half = Summary({}, {}, StatisticsOptions())
    >>> others = (("SD", (("1", 0.9), ("2", 0.1))), ("SDXL", (("1", 0.7), ("2", 0.9))))
    >>> found = with_place(half, {"1": 0.5, "2": 0.6}, others).estimates
    >>> found["place"].value, found["place_among"].value
    (2.0, 3.0)
    """
    scores, draws = [dict(model) for _, model in published], summary.options.draws
    common = [uid for uid in score_by_uid if all(uid in model for model in scores)]
    if not scores or not common:
        reason = "no recorded verdicts of the same judge" if not scores else "no prompt has all scores"
        return replace(summary, estimates={**summary.estimates, **dict.fromkeys(PLACES, _undefined(reason, draws))})
    mean = math.fsum(score_by_uid[uid] for uid in common)
    better = sum(math.fsum(model[uid] for uid in common) > mean for model in scores)
    estimates = {"place": _known(1.0 + better, draws), "place_among": _known(1.0 + len(scores), draws)}
    return replace(summary, estimates={**summary.estimates, **estimates})


def _known(value: float, draws: int) -> Estimate:
    return Estimate(value, math.nan, math.nan, np.full(draws, np.nan))


def _undefined(reason: str, draws: int) -> Estimate:
    return Estimate(math.nan, math.nan, math.nan, np.full(draws, np.nan), reason)


@lru_cache(maxsize=16)
def means_of_generator(
    observations: tuple[Observation, ...],
    aspects: tuple[str, ...],
    name: str,
    options: StatisticsOptions,
    best: bool = False,
) -> Summary:
    """A generator's means on a part. Cached, because a host asks once for every metric.

    Args:
        observations: one an image, in any order.
        aspects: the scores that the judge gives.
        name: that of the part; it joins the seed.
        options: what a failed verdict is, how many draws, the seed.
        best: whether a prompt has several images, of which the best counts as well.

    Returns:
        `<aspect>_mean` over prompts of the mean of a prompt's images, `<aspect>_best` of the best of them, all in [0,
        1], and the mean of each of `COSTS`. Prompts of which no image has the score are in no mean.

    >>> from vieval_plugin.judges.protocol import Status
    >>> images = [("1", 0, 0.25), ("1", 1, 0.75), ("2", 0, 1.0)]
    >>> seen = tuple(Observation("m", uid, (), (("PQ", v),), Status.OK, draw=n) for uid, n, v in images)
    >>> found = means_of_generator(seen, ("PQ",), "b/p", StatisticsOptions(draws=50), True).estimates
    >>> found["PQ_mean"].value, found["PQ_best"].value
    (0.75, 0.875)
    """
    ordered = sorted(observations, key=lambda image: (image.group, image.uid, image.draw))
    images = fill(ordered, aspects, options)
    estimates = {f"{a}_mean": over_prompts(images, a, name, options) for a in aspects}
    if best:
        estimates |= {f"{a}_best": over_prompts(images, a, name, options, max) for a in aspects}
    estimates |= {cost: _cost(ordered, cost, name, options) for cost in COSTS}
    estimates |= dict.fromkeys(PLACES, Estimate(math.nan, math.nan, math.nan, np.full(options.draws, np.nan)))
    scored = sum(bool(image.scores) for image in images)
    exact = sum(bool(image.scores) and image.exact for image in images)
    return Summary({}, Counter(image.status for image in ordered), options, estimates, scored, exact)


def mean_of(values: Sequence[float]) -> float:
    """The mean of the scores of one prompt's images.

    >>> mean_of([0.5, 1.0])
    0.75
    """
    return math.fsum(values) / len(values)


def best_of(scores: Sequence[float], number: int) -> float:
    """Expected score of the best of so many of a prompt's images, over all ways to choose them.

    So generators of which more images were made have no advantage.

    Args:
        scores: one an image, not fewer than `number`.
        number: how many images count, from 1.

    Source: the expectation of the largest of a sample without replacement; Chen et al. 2021, Evaluating Large Language
    Models Trained on Code (pass@k), is the same for right and wrong.

    >>> best_of([0.0, 1.0, 0.5], 2).__round__(3), best_of([0.2, 0.4], 1).__round__(3)
    (0.833, 0.3)
    """
    ways = math.comb(len(scores), number)
    return math.fsum(math.comb(place, number - 1) / ways * score for place, score in enumerate(sorted(scores)))


def by_prompt(
    observations: Sequence[Observation], aspect: str, of_images: Callable[[Sequence[float]], float] = mean_of
) -> Mapping[str, float]:
    """The score of each prompt from those of its images that have one.

    Args:
        observations: one an image, failures already filled.
        aspect: the score.
        of_images: what several images of a prompt count as, such as their mean or the best.

    >>> from vieval_plugin.judges.protocol import Status
    >>> by_prompt([Observation("m", "1", (), (("PQ", 0.5),), Status.OK)], "PQ")
    {'1': 0.5}
    """
    return {prompt: of_images(values) for prompt, values in scores_by_prompt(observations, aspect).items()}


def scores_by_prompt(observations: Sequence[Observation], aspect: str) -> dict[str, list[float]]:
    """The scores of each prompt's images, of those that have one.

    Args:
        observations, aspect: as for `by_prompt`.
    """
    prompt_scores: dict[str, list[float]] = {}
    for image in observations:
        if (score := dict(image.scores).get(aspect)) is not None:
            prompt_scores.setdefault(image.group, []).append(score)
    return prompt_scores


def over_prompts(
    observations: Sequence[Observation],
    aspect: str,
    name: str,
    options: StatisticsOptions,
    of_images: Callable[[Sequence[float]], float] = mean_of,
) -> Estimate:
    """The mean of `by_prompt` over prompts, with its interval by a bootstrap over prompts.

    Args:
        observations, aspect, of_images: as for `by_prompt`, in an order of their own.
        name: what joins the seed.
        options: how many draws, the seed.

    >>> over_prompts([], "PQ", "b/p", StatisticsOptions(draws=10)).reason
    'no image has a score'
    """
    return mean_over_prompts(by_prompt(observations, aspect, of_images), name, options)


def mean_over_prompts(scores: Mapping[str, float], name: str, options: StatisticsOptions) -> Estimate:
    """The mean of what prompts have, with its interval by a bootstrap over prompts.

    Args:
        scores: that of each prompt; `by_prompt` gives them.
        name: what joins the seed.
        options: how many draws, the seed.

    >>> mean_over_prompts({"1": 0.5, "2": 1.0}, "b/p", StatisticsOptions(draws=10)).value
    0.75
    """
    return estimated(_mean(np.array(list(scores.values())), list(scores), "no image has a score"), name, options)


def _cost(observations: Sequence[Observation], cost: str, name: str, options: StatisticsOptions) -> Estimate:
    known = [(image.group, dict(image.cost)[cost]) for image in observations if cost in dict(image.cost)]
    return estimated(_mean(np.array([value for _, value in known]), [group for group, _ in known], ""), name, options)


def _mean(values: Floats, groups: Sequence[str], reason: str) -> Computed:
    if len(values) == 0:
        return Computed(math.nan, lambda counts: np.full(len(counts), np.nan), groups, reason)
    return Computed(
        math.fsum(values) / len(values),
        lambda counts: (counts @ values) / np.maximum(counts.sum(axis=1), 1),
        groups,
        "",
    )
