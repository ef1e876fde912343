"""Generators by one judge's scores of their images: means over prompts, each two compared on the
prompts that both have.

The tests are those by which judges are compared: a generator stands in a judge's place, a prompt in
that of a sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import TypeAlias

from vieval_plugin.judges.registry import load_entry_points
from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import (
    CommonSamplesStatistic,
    ComparedStatistic,
)
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.findings import (
    ALL,
    Findings,
    Number,
    RankedStatistic,
    layouts,
    preferred,
)
from vieval_plugin.meta_evaluation.generator_means import (
    BREAKDOWNS,
    GeneratorImages,
    GeneratorRows,
    best_of,
    breakdown_values,
    clusters_of,
    generator_statistics,
    generators_of,
    mean_over_prompts,
    score_prompts,
    scores_by_prompt,
)
from vieval_plugin.meta_evaluation.measures import (
    OPINION,
    Measure,
    PromptScore,
    mean_of,
)
from vieval_plugin.meta_evaluation.observations import Observation, apply_failure_policy
from vieval_plugin.meta_evaluation.statistics import Rating, Report, Statistic
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.records import Run
from vieval_plugin.stats.comparison import MeanDifference
from vieval_plugin.stats.options import StatisticsOptions

MEAN = Measure(
    name="mean over prompts",
    noun="Mean",
    phrases=OPINION,
    score_images=mean_of,
    is_plain_mean=True,
    leads=True,
)
_WHY = "This is the judge's opinion. These images have no human ratings."

#: Entry point group of the measures of other packages.
ENTRY_POINTS = "vieval.measures"

ImagesByModel: TypeAlias = Mapping[str, Sequence[Observation]]


@dataclass(frozen=True)
class OfGenerators(Report):
    """Scores of a generator's images by a judge: means over prompts with intervals, and what
    they cost.
    """

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """Means of all scores and, where a prompt has several images, of the best ones; counts;
        costs.

        >>> [statistic.metric for statistic in OfGenerators().statistics(Rating(("PQ",)))[:2]]
        ['PQ_mean_value', 'scored_count']
        """
        return generator_statistics(
            (*rating.aspects, *rating.dimensions),
            aspects=rating.aspects,
            best=rating.repeats > 1,
        )

    def rows(
        self,
        observations: Sequence[Observation],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> GeneratorRows:
        """The images in a fixed order."""
        ordered = sorted(
            observations, key=lambda image: (image.group, image.uid, image.draw)
        )
        scores = (*rating.aspects, *rating.dimensions)
        return GeneratorRows(ordered, apply_failure_policy(ordered, scores, options))

    def findings(
        self,
        benchmark: str,
        parts: Sequence[str],
        runs: Sequence[Run],
        options: StatisticsOptions,
    ) -> Findings:
        """Generators of each judge by aspect, over all prompts and by part, kind, category and tag.

        Where prompts have several images, they are ranked by the best of so many as every generator
        has, too. Where all images have one value of a breakdown, that breakdown has no numbers of
        its own. The headline of a judge is O, or else SC, or else what it rates.
        """
        rankings = [_ranked(run, options) for run in runs]
        numbers = chain.from_iterable(run_numbers for _, run_numbers in rankings)
        statistics = chain.from_iterable(run_ranked for run_ranked, _ in rankings)
        table_layouts = (*layouts("generators"), *layouts("generators_by"))
        return Findings(tuple(numbers), tuple(statistics), table_layouts)


def _ranked(
    run: Run, options: StatisticsOptions
) -> tuple[list[RankedStatistic], list[Number]]:
    judged_under = cache(partial(generators_of, run))
    judged = judged_under(options)
    judged_aspects = {aspect for generator in judged for aspect in generator.aspects}
    aspects = preferred([*judged_aspects])
    # a calibrated score is shown beside the raw one, and ranks nothing: it makes ties
    calibrated = {
        name
        for record in run.all_records
        for name in record.provenance.calibrated_scores
    }
    places = [
        (breakdown, value)
        for breakdown in BREAKDOWNS
        for value in _values(judged, breakdown)
    ]
    statistics = list[RankedStatistic]()
    numbers = list[Number]()
    headline = ("", *aspects[:1])
    for breakdown, value in [("", ""), *places]:
        images = _images_by_model(judged, breakdown, value)
        for aspect in aspects:
            for measure in _measures(images, aspect):
                title = f"{aspect}, {measure.name}, by {run.name}"
                if measure.is_plain_mean:
                    title = f"Mean {aspect} over prompts, by {run.name}"
                compared_under = partial(
                    _compared_under, judged_under, breakdown, value, aspect, measure
                )
                statistic = RankedStatistic(
                    part=ALL,
                    aspect=aspect,
                    statistic=measure.name,
                    measured=aspect,
                    title=title,
                    why=_WHY,
                    ends=(0.0, 1.0),
                    compared=cache(compared_under),
                    is_headline=measure.leads and (breakdown, aspect) == headline,
                    judge=run.name,
                    breakdown=breakdown,
                    value=value,
                    measure=measure,
                )
                if aspect not in calibrated:
                    statistics.append(statistic)
                numbers += _numbers(run, images, statistic, options)
    return statistics, numbers


def _compared_under(
    judged_under: Callable[[StatisticsOptions], Sequence[GeneratorImages]],
    breakdown: str,
    value: str,
    aspect: str,
    measure: Measure,
    options: StatisticsOptions,
) -> ComparedStatistic:
    """The comparison of generators on a value of a breakdown, under a failure policy."""
    images = _images_by_model(judged_under(options), breakdown, value)
    return _compared(images, value or ALL, aspect, measure)


def _numbers(
    run: Run,
    images: ImagesByModel,
    statistic: RankedStatistic,
    options: StatisticsOptions,
) -> Iterator[Number]:
    measure = statistic.measure
    breakdown_value = statistic.value or ALL
    bootstrap = Bootstrap.for_part(f"{run.benchmark}/{breakdown_value}", options)
    table = "generators"
    if statistic.breakdown:
        table = f"generators_by_{statistic.breakdown}"
    aspect = statistic.aspect
    for model, model_images in images.items():
        scores = score_prompts(model_images, aspect, measure.score_images)
        mean = bootstrap.estimate(mean_over_prompts(scores, clusters_of(model_images)))
        key = None
        if mean.defined and measure.is_plain_mean:
            key = Key(
                table=table,
                task=breakdown_value,
                image_model=model,
                judge=run.label,
                statistic="mean",
                aspect=aspect,
            )
        prompts = {image.group for image in model_images}
        yield Number(
            model,
            mean,
            ALL,
            aspect,
            statistic.statistic,
            role="generator",
            judge=run.name,
            breakdown=statistic.breakdown,
            value=statistic.value,
            total=len(prompts),
            statuses=Counter(image.status for image in model_images),
            key=key,
        )


def _compared(
    images: ImagesByModel,
    part: str,
    aspect: str,
    measure: Measure,
) -> ComparedStatistic:
    score_images = measure.score_images
    clusters = clusters_of(chain.from_iterable(images.values()))
    items = {}
    for model, model_images in images.items():
        scores = score_prompts(model_images, aspect, score_images)
        items[model] = {
            prompt: JudgedItem(clusters[prompt], score)
            for prompt, score in scores.items()
        }
    compared = compared_means(
        part, aspect, measure.name, items, "prompts", "generators"
    )
    penalised = partial(_penalised, list(images.values()), aspect, score_images)
    return replace(compared, with_failures=penalised)


def _values(judged: Sequence[GeneratorImages], breakdown: str) -> list[str]:
    """The values of a breakdown; none where one value says it all, as a part may that is also
    the kind.
    """
    values = breakdown_values(judged, breakdown)
    if breakdown == "kind" and values == breakdown_values(judged, "part"):
        return []
    if len(values) > 1 or breakdown in ("category", "tag"):
        return values
    return []


def _images_by_model(
    judged: Sequence[GeneratorImages], breakdown: str, value: str
) -> ImagesByModel:
    images_by_model = {}
    for generator in judged:
        images = generator.all
        if breakdown:
            images = generator.having_value(breakdown, value)
        if images:
            images_by_model[generator.image_model] = images
    return images_by_model


def _measures(images_by_model: ImagesByModel, aspect: str) -> list[Measure]:
    """Measures of generators by how several images of a prompt count: their mean, the best of so
    many as every generator has of one, and what other packages bring.
    """
    sizes = [
        max(map(len, scores_by_prompt(images, aspect).values()), default=0)
        for images in images_by_model.values()
    ]
    number = min(filter(None, sizes), default=1)
    if number == 1:
        return [MEAN, *further_measures()]
    best = Measure(
        name=f"mean over prompts of the best of {number} images",
        noun="Best-image mean",
        phrases=OPINION,
        score_images=partial(_best, number=number),
    )
    return [MEAN, best, *further_measures()]


@cache
def further_measures() -> tuple[Measure, ...]:
    """The measures of other packages."""
    return tuple(load_entry_points(ENTRY_POINTS, ("MEASURES",), Measure))


def _best(scores: Sequence[float], number: int) -> float | None:
    if len(scores) < number:
        return None
    return best_of(scores, number)


def _penalised(
    images: Sequence[Sequence[Observation]],
    aspect: str,
    score_images: PromptScore,
    first: int,
    second: int,
) -> CommonSamplesStatistic:
    """Two generators, by index, on the prompts of which the second has a score, the first one's
    failures as the lowest.
    """
    own_images = images[first]
    rival_images = images[second]
    if all(aspect in image.scores for image in own_images):
        return CommonSamplesStatistic(0)
    # both together, as the lowest of the scale depends on both
    imputed = apply_failure_policy(
        [*own_images, *rival_images], (aspect,), StatisticsOptions("worst")
    )
    penalised = score_prompts(imputed[: len(own_images)], aspect, score_images)
    scores = score_prompts(rival_images, aspect, score_images)
    prompts = sorted(penalised.keys() & scores.keys())
    clusters = clusters_of(rival_images)
    difference = MeanDifference(
        [penalised[prompt] for prompt in prompts],
        [scores[prompt] for prompt in prompts],
        [clusters[prompt] for prompt in prompts],
    )
    return CommonSamplesStatistic(len(prompts), difference)
