"""Generators ranked by what people would say: a judge's means corrected by some ratings, and
tests of their differences.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, compress

import numpy as np

from vieval_plugin.meta_evaluation.comparison import (
    CommonSamplesStatistic,
    ComparedStatistic,
    System,
    SystemPair,
)
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.findings import (
    ALL,
    Findings,
    Leaderboard,
    Number,
    RankedStatistic,
)
from vieval_plugin.meta_evaluation.generator_means import (
    GeneratorImages,
    clusters_of,
    generators_of,
    mean_over_prompts,
    score_prompts,
)
from vieval_plugin.meta_evaluation.label_plan import Look
from vieval_plugin.meta_evaluation.leaderboards import leaderboard
from vieval_plugin.meta_evaluation.measures import Measure, Outcome
from vieval_plugin.meta_evaluation.observations import Observation, mean_rating
from vieval_plugin.records import Run
from vieval_plugin.stats.bootstrap import factorize
from vieval_plugin.stats.comparison import PairedComparison
from vieval_plugin.stats.decisions import (
    LEAST_FOR_A_TEST,
    LEAST_RATED,
    SIGNIFICANCE_LEVEL,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.prediction_powered import (
    PredictionPoweredMean,
    bounded_interval,
    common_weight,
    prediction_powered_difference,
    prediction_powered_mean,
)
from vieval_plugin.stats.ranking import holm
from vieval_plugin.stats.shrinkage import OrderLabels, order_values

CORRECTED = Measure(
    "mean over prompts, corrected by people's ratings",
    "Corrected mean",
    {Outcome.ONLY_ONE: "Only {first} has enough ratings on {benchmark}."},
    uses_ratings=True,
    leads=True,
)


@dataclass(frozen=True)
class GeneratorEstimates:
    """A generator's mean by one aspect: the judge's own, people's alone, and the judge's corrected
    by people's.

    `rated` is how many of its `images` with a score people rated, of `rated_units` prompts or
    groups of them; `unrated_kinds` are kinds of which they rated none. `selection` is the judge's
    mean of the rated images less that of the others, and `selection_p` its p: 1 where there are no
    others.
    """

    generator: str
    raw: Estimate
    human: PredictionPoweredMean
    corrected: PredictionPoweredMean
    rated: int
    rated_units: int
    images: int
    unrated_kinds: tuple[str, ...]
    selection: Estimate
    selection_p: float
    #: Number of rated images that the judge gave no score.
    unscored: int = 0

    @property
    def decides(self) -> bool:
        """True where people rated `LEAST_RATED` prompts, or groups of them, or all images."""
        return self.rated_units >= LEAST_RATED or self.rated == self.images


@dataclass(frozen=True)
class CorrectedRanking:
    """Generators ranked by what people would say; `estimates` say what each is made of.

    They are in the order of `order_values`. `by_ratings` are the differences of the ranking's pairs
    by people's ratings alone. A pair of which too few prompts are rated to decide has no adjusted
    p, and none has before the first look at a plan's labels or where labels are `selected`.
    """

    ranking: Leaderboard
    estimates: tuple[GeneratorEstimates, ...]
    by_ratings: Mapping[tuple[str, str], Estimate]
    #: Generators whose rated images the judge scores otherwise than the others: no random part, by
    #: Holm's test.
    selected: tuple[GeneratorEstimates, ...] = ()
    #: State of the plan that the labels are of; None without one.
    look: Look | None = None

    def ratings_difference(self, pair: SystemPair) -> Estimate:
        """The difference of a pair by people's ratings alone, the first less the second."""
        negated = self.by_ratings.get((pair.second, pair.first))
        if negated:
            return negated.negated
        return self.by_ratings[pair.first, pair.second]

    @property
    def judge_order(self) -> tuple[str, ...]:
        """The ranked generators in the order of the judge's own means."""
        raw = {estimate.generator: estimate.raw.value for estimate in self.estimates}
        return tuple(sorted(self.order, key=lambda generator: -raw[generator]))

    @property
    def order(self) -> tuple[str, ...]:
        """The ranked generators in their order."""
        return tuple(system.label for system in self.ranking.comparison.ranked)

    @property
    def short_of_ratings(self) -> tuple[GeneratorEstimates, ...]:
        """Generators of which people rated fewer than `LEAST_RATED` prompts, where images of
        others are left.
        """
        return tuple(
            estimate
            for estimate in self.estimates
            if estimate.rated and not estimate.decides
        )

    @property
    def decides_nothing(self) -> bool:
        """True where no pair is decided by these labels, whatever its difference."""
        is_before_a_look = self.look is not None and not self.look.decides
        is_short = self.short_of_ratings or self.selected or is_before_a_look
        if not is_short:
            return False
        return all(math.isnan(pair.adjusted) for pair in self.ranking.comparison.pairs)

    @property
    def decided(self) -> bool:
        """True where one generator is significantly better than each other."""
        if len(self.order) < 2:
            return False
        first, *rivals = self.order
        return all(self.ranking.comparison.beats(first, rival) for rival in rivals)


def rank_corrected(
    run: Run, options: StatisticsOptions, look: Look | None = None
) -> list[CorrectedRanking]:
    """Rankings of a run's generators by what people would say, one for each aspect that people
    rated.

    An image's rating is the mean over its raters. Only images that the judge scored count. Kinds
    are strata: of each there may be another share rated, as a labelling page chooses them. Two
    generators are compared on the prompts that both have a score of.

    An aspect that people rated on another scale than [0, 1] is left out.

    Args:
        run: one judge's, with people's ratings in its records.
        options: what a failed verdict is, how many draws, the seed.
        look: state of the plan that the ratings are of, and no others; None where it is not known
            how they were chosen.

    Returns:
        Means in [0, 1], with intervals of 95%; differences with those of the look's level; p
        adjusted by Holm over the pairs of one ranking.
    """
    judged = generators_of(run, options)
    aspects = dict.fromkeys(
        aspect for generator in judged for aspect in generator.aspects
    )
    rankings = []
    for aspect in aspects:
        if not _is_on_judge_scale(judged, aspect):
            continue
        estimates = [
            _estimated(run, generator, aspect, options) for generator in judged
        ]
        if any(estimate.rated for estimate in estimates):
            rankings.append(_ranked(run, aspect, judged, estimates, options, look))
    return rankings


def _estimated(
    run: Run, generator: GeneratorImages, aspect: str, options: StatisticsOptions
) -> GeneratorEstimates:
    images = _scored_images(generator, aspect)
    bootstrap = Bootstrap.for_part(f"{run.benchmark}/{ALL}", options)
    rated_images = [image for image in images if _is_rated(image, aspect)]
    unscored = sum(_is_rated(image, aspect) for image in generator.all)
    unscored -= len(rated_images)
    rated_kinds = {image.kind for image in rated_images}
    rated_units = _rated_units(images, aspect)
    by_ratings, corrected, unweighted = (
        _powered(images, aspect, weight) for weight in (0.0, None, 1.0)
    )
    selection, selection_p = prediction_powered_difference(by_ratings, unweighted)
    if rated_units < LEAST_FOR_A_TEST:
        selection_p = 1.0
    by_ratings, corrected = (
        powered._replace(mean=_bound_interval(powered, rated_units))
        for powered in (by_ratings, corrected)
    )
    kinds = dict.fromkeys(image.kind for image in images)
    unrated_kinds = [kind for kind in kinds if kind not in rated_kinds]
    scores = score_prompts(images, aspect)
    raw = bootstrap.estimate(mean_over_prompts(scores, clusters_of(images)))
    return GeneratorEstimates(
        generator=generator.image_model,
        raw=raw,
        human=by_ratings,
        corrected=corrected,
        rated=len(rated_images),
        rated_units=rated_units,
        images=len(images),
        unrated_kinds=tuple(unrated_kinds),
        selection=selection,
        selection_p=selection_p,
        unscored=unscored,
    )


def _bound_interval(powered: PredictionPoweredMean, rated_units: int) -> Estimate:
    """A mean in [0, 1] with its interval, which few prompts do not have."""
    low = math.nan
    high = math.nan
    if rated_units >= LEAST_FOR_A_TEST:
        low, high = bounded_interval(powered, rated_units)
    return replace(powered.mean.clipped(0, 1), low=low, high=high)


def _powered(
    images: Sequence[Observation], aspect: str, weight: float | None
) -> PredictionPoweredMean:
    """The corrected mean of images; with a weight of 0 by people's ratings alone."""
    ratings = np.array([mean_rating(image, aspect) for image in images], dtype=float)
    scores = np.array([image.scores[aspect] for image in images], dtype=float)
    prompts = [image.cluster for image in images]
    return prediction_powered_mean(
        ratings, scores, prompts, strata=[image.kind for image in images], weight=weight
    )


def _ranked(
    run: Run,
    aspect: str,
    judged: Sequence[GeneratorImages],
    estimates: Sequence[GeneratorEstimates],
    options: StatisticsOptions,
    look: Look | None,
) -> CorrectedRanking:
    ordered = _ordered(judged, estimates, aspect)
    numbers = _corrected_numbers(aspect, run, judged, estimates)
    scored = [_scored_images(generator, aspect) for generator in judged]
    level = look.level if look else SIGNIFICANCE_LEVEL
    selected = _selected(ordered, look)
    undecided_reason = _undecided_reason(selected, look)
    decides = [not undecided_reason and estimate.decides for estimate in estimates]

    @cache
    def paired(first: int, second: int) -> tuple[PairedComparison, int, Estimate]:
        return _paired(scored[first], scored[second], aspect, level)

    def pair(first: int, second: int) -> CommonSamplesStatistic:
        result, n, _ = paired(first, second)
        both_decide = decides[first] and decides[second]
        return CommonSamplesStatistic(n, result=result, decides=both_decide)

    compared = ComparedStatistic(
        part=ALL,
        aspect=aspect,
        statistic=CORRECTED.name,
        systems=tuple(map(_system, estimates)),
        pair=pair,
        unit=_unit(scored),
        entrants="generators",
        with_failures=partial(_count_failures, judged, aspect, level),
        order=tuple(estimate.generator for estimate in ordered),
        level=level,
        undecided_reason=undecided_reason,
    )
    statistic = _ranked_statistic(aspect, run, compared)
    findings = Findings(tuple(numbers))
    ranking = leaderboard(statistic, findings, run.benchmark, [run], options)
    by_ratings = _ratings_differences(ranking, paired)
    return CorrectedRanking(
        ranking=ranking,
        estimates=ordered,
        by_ratings=by_ratings,
        selected=selected,
        look=look,
    )


def _ratings_differences(
    ranking: Leaderboard,
    paired: Callable[[int, int], tuple[PairedComparison, int, Estimate]],
) -> dict[tuple[str, str], Estimate]:
    """The differences of a ranking's pairs by people's ratings alone."""
    index_of = ranking.comparison.compared.index_by_label
    differences = {}
    for tested in ranking.comparison.all_pairs:
        *_, difference = paired(index_of[tested.first], index_of[tested.second])
        differences[tested.first, tested.second] = difference
    return differences


def _system(estimate: GeneratorEstimates) -> System:
    mean = estimate.corrected.mean
    undefined = mean.reason
    if not estimate.rated:
        undefined = "its images have no ratings"
    return System(estimate.generator, estimate.rated_units, undefined, value=mean.value)


def _unit(scored: Sequence[Sequence[Observation]]) -> str:
    """Name of what is counted: prompts, or groups where prompts belong together."""
    for image in chain(*scored):
        if image.cluster != image.group:
            return "rated groups"
    return "rated prompts"


def _count_failures(
    judged: Sequence[GeneratorImages],
    aspect: str,
    level: float,
    first: int,
    second: int,
) -> CommonSamplesStatistic:
    """Two generators, by index, with the first one's failures as 0."""
    failed = _failures(judged[first], aspect)
    if not failed:
        return CommonSamplesStatistic(0)
    penalised = [*_scored_images(judged[first], aspect), *failed]
    rival = _scored_images(judged[second], aspect)
    result, n, _ = _paired(penalised, rival, aspect, level)
    return CommonSamplesStatistic(n, result=result)


def _corrected_numbers(
    aspect: str,
    run: Run,
    judged: Sequence[GeneratorImages],
    estimates: Sequence[GeneratorEstimates],
) -> list[Number]:
    numbers = []
    for generator, estimate in zip(judged, estimates, strict=True):
        scored_prompts = {image.group for image in _scored_images(generator, aspect)}
        prompts = {image.group for image in generator.all}
        statuses = Counter(image.status for image in generator.all)
        number = Number(
            system=generator.image_model,
            estimate=replace(estimate.corrected.mean, n=len(scored_prompts)),
            part=ALL,
            aspect=aspect,
            statistic=CORRECTED.name,
            role="generator",
            judge=run.name,
            total=len(prompts),
            statuses=statuses,
        )
        numbers.append(number)
    return numbers


def _undecided_reason(selected: Sequence[object], look: Look | None) -> str:
    if selected:
        return "the labels are not a random sample of the images"
    if look is None or look.decides:
        return ""
    return (
        f"people rated {look.rated} planned {look.plan.unit}s, "
        f"but the first look requires {look.plan.looks[0]}"
    )


def _ranked_statistic(
    aspect: str, run: Run, compared: ComparedStatistic
) -> RankedStatistic:
    return RankedStatistic(
        part=ALL,
        aspect=aspect,
        statistic=CORRECTED.name,
        measured=aspect,
        title=f"Mean {aspect} over prompts, by {run.name}, corrected by people's ratings",
        why="",
        ends=(0.0, 1.0),
        compared=lambda _: compared,
        is_headline=False,
        judge=run.name,
        measure=CORRECTED,
    )


def _selected(
    estimates: Sequence[GeneratorEstimates], look: Look | None
) -> tuple[GeneratorEstimates, ...]:
    """Generators whose rated images are no random part, which a plan rules out."""
    if look:
        return ()
    adjusted = holm([estimate.selection_p for estimate in estimates])
    return tuple(compress(estimates, adjusted <= SIGNIFICANCE_LEVEL))


def _ordered(
    judged: Sequence[GeneratorImages],
    estimates: Sequence[GeneratorEstimates],
    aspect: str,
) -> tuple[GeneratorEstimates, ...]:
    """Generators in their order, those without a score last."""
    scored = [
        (generator, estimate)
        for generator, estimate in zip(judged, estimates, strict=True)
        if estimate.raw.defined
    ]
    labelled = []
    numbers = []
    for number, (generator, _) in enumerate(scored):
        for image in _scored_images(generator, aspect):
            if _is_rated(image, aspect):
                labelled.append(image)
                numbers.append(number)
    _, group_codes = factorize([image.group for image in labelled])
    scores = np.array([image.scores[aspect] for image in labelled])
    ratings = np.array([mean_rating(image, aspect) for image in labelled])
    generators = np.array(numbers, dtype=np.int64)
    labels = OrderLabels(
        scores=scores,
        ratings=ratings,
        generators=generators,
        prompts=group_codes,
    )
    values = order_values([estimate.raw.value for _, estimate in scored], labels)
    value_of = {
        estimate.generator: value
        for (_, estimate), value in zip(scored, values.tolist(), strict=True)
    }

    def sort_key(estimate: GeneratorEstimates) -> tuple[float, float]:
        return -value_of.get(estimate.generator, -math.inf), -estimate.raw.value

    return tuple(sorted(estimates, key=sort_key))


def _paired(
    first: Sequence[Observation],
    second: Sequence[Observation],
    aspect: str,
    level: float,
) -> tuple[PairedComparison, int, Estimate]:
    """Two generators on the prompts that both have a score of; n is how many of these people rated,
    of each at least.

    The judge has one weight for both; last the difference by people's ratings alone. Without a test
    and an interval where rated prompts are fewer than the least of all tests of this project.
    Intervals are those of tests at `level`.
    """
    common = {image.group for image in first} & {image.group for image in second}
    sides = [
        [image for image in side if image.group in common] for side in (first, second)
    ]
    weighted_means = [partial(_powered, side, aspect) for side in sides]
    first_alone, second_alone = (mean(0.0) for mean in weighted_means)
    weight = 0.0
    if first_alone.mean.defined and second_alone.mean.defined:
        weight = common_weight(*weighted_means)
    first_mean, second_mean = (mean(weight) for mean in weighted_means)
    difference, p = prediction_powered_difference(
        first_mean, second_mean, 1 - level, fitted=weight > 0
    )
    by_ratings, _ = prediction_powered_difference(first_alone, second_alone, 1 - level)
    n = min(_rated_units(side, aspect) for side in sides)
    if n < LEAST_FOR_A_TEST:
        difference = Estimate(difference.value)
        by_ratings = Estimate(by_ratings.value)
        p = math.nan
    first_value = first_mean.mean.clipped(0, 1).value
    second_value = second_mean.mean.clipped(0, 1).value
    comparison = PairedComparison(
        first_value, second_value, difference=difference.clipped(-1, 1), p=p
    )
    return comparison, n, by_ratings.clipped(-1, 1)


def _failures(generator: GeneratorImages, aspect: str) -> list[Observation]:
    """Images without a score as people would rate failures: 0, and all of them known, so a
    stratum of their own.
    """
    return [
        replace(image, scores={aspect: 0.0}, ratings={aspect: (0.0,)}, kind="failed")
        for image in generator.all
        if aspect not in image.scores
    ]


def _rated_units(images: Sequence[Observation], aspect: str) -> int:
    """Number of prompts with a rating, or of groups where prompts belong together."""
    return len({image.cluster for image in images if _is_rated(image, aspect)})


def _scored_images(generator: GeneratorImages, aspect: str) -> list[Observation]:
    return [image for image in generator.all if aspect in image.scores]


def _is_rated(image: Observation, aspect: str) -> bool:
    return not math.isnan(mean_rating(image, aspect))


def _is_on_judge_scale(judged: Sequence[GeneratorImages], aspect: str) -> bool:
    """True where people rated as judges score: beside another scale, a judge's mean says
    nothing.
    """
    ratings = [
        value
        for generator in judged
        for image in generator.all
        for value in image.ratings.get(aspect, ())
    ]
    return all(0 <= value <= 1 or math.isnan(value) for value in ratings)
