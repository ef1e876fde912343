"""Prediction-powered estimates of a generator's mean rating, from a judge's scores of all images and ratings of some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vieval_plugin.meta_evaluation.generator_means import over_prompts
from vieval_plugin.meta_evaluation.judged_images import GeneratorImages, generators_of, named_with_part
from vieval_plugin.meta_evaluation.observations import Estimate, Observation
from vieval_plugin.records import Run
from vieval_plugin.stats.agreement import mean_of_given
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.prediction_powered import CorrectedMean, corrected_mean


@dataclass(frozen=True)
class CorrectedGenerator:
    """A generator's mean by one aspect: the judge's own, people's alone, and the judge's corrected by people's.

    `rated` is how many of its `images` with a score people rated; `unrated_kinds` are kinds of which they rated none.
    """

    benchmark: str
    judge: str
    generator: str
    aspect: str
    raw: Estimate
    people: CorrectedMean
    corrected: CorrectedMean
    rated: int
    images: int
    unrated_kinds: tuple[str, ...] = ()


def corrected_generators(run: Run, options: StatisticsOptions) -> list[CorrectedGenerator]:
    """The means of all generators of a run that people rated some images of, by aspect.

    An image's rating is the mean over its raters. Only images that the judge scored count. Kinds are strata: of each
    there may be another share rated, as a labelling page chooses them.

    An aspect that people rated on another scale than [0, 1] is left out.

    Args:
        run: one judge's, with people's ratings in its records.
        options: what a failed verdict is, how many draws, the seed.

    Returns:
        In [0, 1] all; intervals of 95%.
    """
    judged = [named_with_part(generator) for generator in generators_of(run, options)]
    aspects = dict.fromkeys(
        aspect for generator in judged for aspect in generator.aspects if _on_our_scale(judged, aspect)
    )
    estimates = [_corrected(run, generator, aspect, options) for aspect in aspects for generator in judged]
    return [estimate for estimate in estimates if estimate.rated]


def _corrected(run: Run, generator: GeneratorImages, aspect: str, options: StatisticsOptions) -> CorrectedGenerator:
    images = [image for image in generator.all if aspect in dict(image.scores)]
    people = np.array([_rating(image, aspect) for image in images], dtype=float)
    scores = np.array([dict(image.scores)[aspect] for image in images], dtype=float)
    prompts, kinds = [image.group for image in images], [image.kind for image in images]
    rated = ~np.isnan(people)
    return CorrectedGenerator(
        run.benchmark,
        run.label,
        generator.image_model,
        aspect,
        over_prompts(images, aspect, f"{run.benchmark}/all", options),
        _without_judge(people, prompts, kinds),
        corrected_mean(people, scores, prompts, strata=kinds),
        int(rated.sum()),
        len(images),
        tuple(kind for kind in dict.fromkeys(kinds) if not any(rated[np.array(kinds) == kind])),
    )


def _on_our_scale(judged: Sequence[GeneratorImages], aspect: str) -> bool:
    """True where people rated as judges score: beside another scale, a judge's mean says nothing."""
    ratings = [
        value for generator in judged for image in generator.all for value in dict(image.ratings).get(aspect, ())
    ]
    return all(0 <= value <= 1 or math.isnan(value) for value in ratings)


def _rating(image: Observation, aspect: str) -> float:
    ratings = dict(image.ratings).get(aspect, ())
    return float(mean_of_given([[value] for value in ratings])[0]) if ratings else float("nan")


def _without_judge(people: Floats, prompts: Sequence[str], kinds: Sequence[str]) -> CorrectedMean:
    """People's ratings alone: a judge that always says the same adds nothing."""
    return corrected_mean(people, np.zeros(len(people)), prompts, strata=kinds)
