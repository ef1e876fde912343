"""Generators ranked by one judge's scores of their images, each two compared on the prompts that both have.

The tests are those by which judges are compared: a generator stands in a judge's place, a prompt in that of a sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import CommonSamplesStatistic, Comparison, compare_systems
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.generator_means import (
    BREAKDOWNS,
    GeneratorImages,
    best_of,
    breakdown_values,
    generators_of,
    mean_of,
    mean_over_prompts,
    named_with_part,
    scores_by_prompt,
)
from vieval_plugin.meta_evaluation.observations import Observation, apply_failure_policy
from vieval_plugin.records import JudgeName, Run
from vieval_plugin.stats.comparison import MeanDifference
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

ALL = "all"
MEAN = "mean over prompts"

OfImages: TypeAlias = Callable[[Sequence[float]], float | None]
"""The score of a prompt from those of its images; None where there are too few."""


@dataclass(frozen=True)
class RankedGenerator:
    """A generator in a ranking.

    `mean` is over all `scored` prompts of which it has a score. `ranks` are the best and the worst that the tests leave
    it, None where it cannot be ranked, and `reason` says why. `prompts`, `images` and `statuses` are its own.
    """

    generator: str
    mean: Estimate
    ranks: tuple[int, int] | None
    reason: str
    scored: int
    prompts: int
    images: int
    statuses: tuple[tuple[Status, int], ...]


@dataclass(frozen=True)
class GeneratorRanking:
    """Generators ranked by one aspect, over all prompts or those of one value of a breakdown (part, kind, category, tag).

    `statistic` is the mean over prompts of what a prompt's images have: their mean, or the best of so many.
    """

    benchmark: str
    judge: JudgeName
    aspect: str
    statistic: str
    breakdown: str
    breakdown_value: str
    generators: tuple[RankedGenerator, ...]
    comparison: Comparison


def rank_generators(run: Run, options: StatisticsOptions) -> list[GeneratorRanking]:
    """Rankings of a run's generators: by aspect, over all prompts and by part, kind, category and tag.

    Where prompts have several images, there is a second ranking by the best of so many as every generator has. Where
    all images have one value of a breakdown, that breakdown has no rankings of its own.

    Args:
        run: one judge's, of samples; contests are left out.
        options: what a failed verdict is, how many draws (of the bootstrap and of the tests), the seed.

    Returns:
        None for a run without samples. p-values are adjusted over the pairs of one ranking.
    """
    judged = [named_with_part(generator) for generator in generators_of(run, options)]
    aspects = dict.fromkeys(aspect for generator in judged for aspect in generator.aspects)
    breakdowns = [("", ALL), *((breakdown, value) for breakdown in BREAKDOWNS for value in _values(judged, breakdown))]
    return [
        ranking
        for breakdown, value in breakdowns
        for images_by_model in [_images_by_model(judged, breakdown, value)]
        for aspect in aspects
        for statistic, of_images in _statistics(images_by_model, aspect)
        for ranking in [_ranked(run, aspect, statistic, breakdown, value, images_by_model, of_images, options)]
    ]


def _values(judged: Sequence[GeneratorImages], breakdown: str) -> list[str]:
    """The values of a breakdown; none where one value says it all, as a part may that is also the kind."""
    values = breakdown_values(judged, breakdown)
    if breakdown == "kind" and values == breakdown_values(judged, "part"):
        return []
    return values if len(values) > 1 or breakdown in ("category", "tag") else []


def _images_by_model(
    judged: Sequence[GeneratorImages], breakdown: str, value: str
) -> Mapping[str, Sequence[Observation]]:
    images_by_model = {
        generator.image_model: generator.with_value(breakdown, value) if breakdown else generator.all
        for generator in judged
    }
    return {model: images for model, images in images_by_model.items() if images}


def _statistics(images_by_model: Mapping[str, Sequence[Observation]], aspect: str) -> list[tuple[str, OfImages]]:
    """Ways to count several images of a prompt: their mean, and the best of so many as every generator has of one."""
    sizes = [max(map(len, scores_by_prompt(images, aspect).values()), default=0) for images in images_by_model.values()]
    number = min(filter(None, sizes), default=1)
    best = [(f"mean over prompts of the best of {number} images", partial(_best, number=number))]
    return [(MEAN, mean_of), *(best if number > 1 else [])]


def _best(scores: Sequence[float], number: int) -> float | None:
    return best_of(scores, number) if len(scores) >= number else None


def _ranked(
    run: Run,
    aspect: str,
    statistic: str,
    breakdown: str,
    breakdown_value: str,
    images_by_model: Mapping[str, Sequence[Observation]],
    of_images: OfImages,
    options: StatisticsOptions,
) -> GeneratorRanking:
    scores = {model: _by_prompt(images, aspect, of_images) for model, images in images_by_model.items()}
    items = {
        model: {prompt: JudgedItem(prompt, value) for prompt, value in prompt_scores.items()}
        for model, prompt_scores in scores.items()
    }
    compared = replace(
        compared_means(breakdown_value, aspect, statistic, items, "prompts", "generators"),
        with_failures=partial(penalised_pair, list(images_by_model.values()), aspect, of_images),
    )
    comparison = compare_systems(compared, run.benchmark, options)
    bootstrap = Bootstrap.for_part(f"{run.benchmark}/{breakdown_value}", options)
    ranked = tuple(
        RankedGenerator(
            label,
            bootstrap.estimate(mean_over_prompts(scores[label])),
            standing.ranks,
            standing.system.undefined or standing.system.unranked,
            len(scores[label]),
            len({image.group for image in images_by_model[label]}),
            len(images_by_model[label]),
            tuple(Counter(image.status for image in images_by_model[label]).items()),
        )
        for standing in comparison.standings
        for label in [standing.system.label]
    )
    return GeneratorRanking(run.benchmark, run.name, aspect, statistic, breakdown, breakdown_value, ranked, comparison)


def penalised_pair(
    images: Sequence[Sequence[Observation]], aspect: str, of_images: OfImages, first: int, second: int
) -> CommonSamplesStatistic:
    """Two generators, by index, on the prompts of which the second has a score, the first one's failures as the lowest."""
    if all(aspect in image.scores for image in images[first]):
        return CommonSamplesStatistic(0, reason="no failures")
    everything = apply_failure_policy([*images[first], *images[second]], (aspect,), StatisticsOptions("worst"))
    penalised = _by_prompt(everything[: len(images[first])], aspect, of_images)
    scores = _by_prompt(images[second], aspect, of_images)
    prompts = sorted(penalised.keys() & scores.keys())
    values = [[side[prompt] for prompt in prompts] for side in (penalised, scores)]
    return CommonSamplesStatistic(len(prompts), MeanDifference(values[0], values[1], prompts))


def _by_prompt(images: Sequence[Observation], aspect: str, of_images: OfImages) -> dict[str, float]:
    prompt_scores = {prompt: of_images(scores) for prompt, scores in sorted(scores_by_prompt(images, aspect).items())}
    return {prompt: value for prompt, value in prompt_scores.items() if value is not None}
