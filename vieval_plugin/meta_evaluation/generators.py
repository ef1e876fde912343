"""The report of benchmarks on which generators are judged: nobody rated these images, and means are over prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic, SystemPair, compare_systems
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.generator_means import (
    BREAKDOWNS,
    GeneratorImages,
    GeneratorRows,
    breakdown_values,
    by_prompt,
    generator_statistics,
    generators_of,
    mean_of,
    mean_over_prompts,
    named_with_part,
)
from vieval_plugin.meta_evaluation.generator_ranking import penalised_pair
from vieval_plugin.meta_evaluation.headline import Headline, preferred
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.statistics import Rating, Statistic
from vieval_plugin.meta_evaluation.tables import Key, Table, Tables, p_text, with_interval
from vieval_plugin.records import Run
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

ALL = "all"


def generator_headline(
    benchmark: str,
    run: Run,
    aspects: Sequence[str],
    images_under: Callable[[StatisticsOptions], Mapping[str, Sequence[Observation]]],
    options: StatisticsOptions,
) -> Headline:
    """The headline of a judge: O where it rates that, else SC, else what it rates.

    Args:
        benchmark: its name, which joins the seed.
        run: the judge's.
        aspects: what it rates; not none.
        images_under: gives those of each generator under a failure policy, groups named with their part.
        options: what failed verdicts are, how many draws, the seed.
    """
    images = images_under(options)
    aspect = preferred(aspects)[0]
    bootstrap = Bootstrap.for_part(f"{benchmark}/{ALL}", options)

    def means(by_model: Mapping[str, Sequence[Observation]]) -> dict[str, Estimate]:
        return {
            model: bootstrap.estimate(mean_over_prompts(by_prompt(rows, aspect))) for model, rows in by_model.items()
        }

    breakdowns: Mapping[str, Callable[[Observation], Sequence[str]]] = {
        "kind": lambda image: (image.kind,),
        "category": lambda image: (image.category,) if image.category else (),
        "tag": lambda image: image.tags,
    }
    broken = {}
    for breakdown, values_of in breakdowns.items():
        values = dict.fromkeys(value for rows in images.values() for image in rows for value in values_of(image))
        if len(values) > 1:
            broken[breakdown] = {
                value: means({model: [i for i in rows if value in values_of(i)] for model, rows in images.items()})
                for value in values
            }
    return Headline(
        aspect,
        f"Mean {aspect} over prompts, by {run.name}",
        "It is the judge's opinion: nobody rated these images.",
        "prompts",
        (0.0, 1.0),
        means(images),
        lambda options: compared_generator_means(aspect, images_under(options)),
        breakdowns=broken,
        entrant="generator",
        judge=run.label,
        statistic=f"mean {aspect}",
    )


def compared_generator_means(aspect: str, images: Mapping[str, Sequence[Observation]]) -> ComparedStatistic:
    """Generators compared by the mean of an aspect over prompts.

    Args:
        aspect: what the judge rates.
        images: of each generator, with its failures, groups named with their part.
    """
    items = {
        model: {prompt: JudgedItem(prompt, score) for prompt, score in by_prompt(observations, aspect).items()}
        for model, observations in images.items()
    }
    total = max((len({image.group for image in observations}) for observations in images.values()), default=0)
    compared = compared_means("all", aspect, f"mean {aspect} over prompts", items, "prompts", "generators", total=total)
    return replace(compared, with_failures=partial(penalised_pair, list(images.values()), aspect, mean_of))


def generator_tables(benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
    """The tables of a benchmark on which generators are judged.

    Args:
        benchmark: its name, which joins the seed.
        parts: its parts in order.
        runs: one a judge; each may hold several generators.
        options: what a failed verdict is, how many draws, the seed.
    """
    judged = [named_with_part(images) for run in runs for images in generators_of(run, options)]
    tables: list[Table] = []
    cells: dict[Key, float] = {}
    aspects = tuple(dict.fromkeys(aspect for generator in judged for aspect in generator.aspects))
    tables.append(_means(benchmark, judged, aspects, options, cells))
    for breakdown in BREAKDOWNS:
        table = _broken_down(benchmark, breakdown, judged, aspects, options, cells)
        if table.rows and len({row[0] for row in table.rows}) > (1 if breakdown in ("part", "kind") else 0):
            tables.append(table)
    if differences := _differences(benchmark, judged, options):
        tables.append(differences)
    return Tables(tuple(tables), cells, headlines=_headlines(benchmark, judged, runs, options))


def _headlines(
    benchmark: str, judged: Sequence[GeneratorImages], runs: Sequence[Run], options: StatisticsOptions
) -> tuple[Headline, ...]:
    headlines = []
    for run in runs:
        aspects = next((generator.aspects for generator in judged if generator.judge == run.label), ())
        if aspects:
            headlines.append(generator_headline(benchmark, run, aspects, partial(_images_of, [run]), options))
    return tuple(headlines)


def _images_of(runs: Sequence[Run], options: StatisticsOptions) -> dict[str, Sequence[Observation]]:
    generators = (named_with_part(images) for run in runs for images in generators_of(run, options))
    return {generator.image_model: generator.all for generator in generators}


def _means(
    benchmark: str,
    judged: Sequence[GeneratorImages],
    aspects: Sequence[str],
    options: StatisticsOptions,
    cells: dict[Key, float],
) -> Table:
    rows = []
    for generator in judged:
        images = generator.all
        several_images = max(Counter(image.group for image in images).values()) > 1
        numbers = [_cell(benchmark, "generators", ALL, generator, images, a, options, cells) for a in aspects]
        best = [_best(images, a, benchmark, options) if several_images else "" for a in aspects]
        statuses = Counter(image.status for image in images)
        failed = [f"{status} {n}" for status, n in statuses.items() if not status.usable and status != Status.NO_IMAGE]
        no_image_text = f"{statuses[Status.NO_IMAGE]} ({statuses[Status.NO_IMAGE] / len(images):.1%})"
        prompts = len({image.group for image in images})
        rows.append(
            (
                generator.image_model,
                generator.judge,
                str(prompts),
                str(len(images)),
                *numbers,
                *best,
                no_image_text,
                ", ".join(failed),
            )
        )
    header = (
        *("image model", "judge", "prompts", "images"),
        *aspects,
        *(f"{aspect}, best image" for aspect in aspects),
        *("no image", "failed"),
    )
    return Table("generators", "Generators: means over prompts with 95% intervals", header, tuple(rows))


def _broken_down(
    benchmark: str,
    breakdown: str,
    judged: Sequence[GeneratorImages],
    aspects: Sequence[str],
    options: StatisticsOptions,
    cells: dict[Key, float],
) -> Table:
    rows = []
    for generator in judged:
        for value in breakdown_values([generator], breakdown):
            images = generator.with_value(breakdown, value)
            table = f"generators_by_{breakdown}"
            numbers = [_cell(benchmark, table, value, generator, images, a, options, cells) for a in aspects]
            rows.append((value, generator.image_model, generator.judge, str(len({i.group for i in images})), *numbers))
    header = (breakdown, "image model", "judge", "prompts", *aspects)
    return Table(f"generators_by_{breakdown}", f"By {breakdown}", header, tuple(rows))


def _cell(
    benchmark: str,
    table: str,
    task: str,
    generator: GeneratorImages,
    images: Sequence[Observation],
    aspect: str,
    options: StatisticsOptions,
    cells: dict[Key, float],
) -> str:
    if aspect not in generator.aspects:
        return ""
    bootstrap = Bootstrap.for_part(f"{benchmark}/{task}", options)
    mean = bootstrap.estimate(mean_over_prompts(by_prompt(images, aspect)))
    if mean.defined:
        cells[Key(table, task, generator.image_model, generator.judge, "mean", aspect)] = mean.value
    return with_interval(mean)


def _best(images: Sequence[Observation], aspect: str, benchmark: str, options: StatisticsOptions) -> str:
    bootstrap = Bootstrap.for_part(f"{benchmark}/{ALL}", options)
    return with_interval(bootstrap.estimate(mean_over_prompts(by_prompt(images, aspect, max))))


def _differences(benchmark: str, judged: Sequence[GeneratorImages], options: StatisticsOptions) -> Table | None:
    """Generators of a judge two by two, by aspect, on the prompts of which both have a score."""
    rows = []
    for judge in dict.fromkeys(generator.judge for generator in judged):
        generators = [generator for generator in judged if generator.judge == judge]
        for aspect in generators[0].aspects if len(generators) > 1 else ():
            compared = compared_generator_means(
                aspect, {generator.image_model: generator.all for generator in generators}
            )
            rows += [
                (
                    *(pair.first, pair.second, judge, aspect, str(pair.n)),
                    with_interval(pair.result.difference),
                    p_text(pair.result.p),
                    p_text(pair.adjusted),
                )
                for pair in map(SystemPair.better_first, compare_systems(compared, benchmark, options).all_pairs)
            ]
    if not rows:
        return None
    header = ("better", "worse", "judge", "aspect", "prompts", "difference [95%]", "p", "p (Holm)")
    return Table("differences", "Differences of generators, tested on the prompts that both have", header, tuple(rows))


@dataclass(frozen=True)
class OfGenerators:
    """Scores of a generator's images by a judge: means over prompts with intervals, and what they cost."""

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """Means of all scores and, where a prompt has several images, of the best ones; counts; costs.

        >>> [statistic.metric for statistic in OfGenerators().statistics(Rating(("PQ",)))[:2]]
        ['PQ_mean_value', 'scored_count']
        """
        return generator_statistics(
            (*rating.aspects, *rating.dimensions), aspects=rating.aspects, best=rating.repeats > 1
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
        return GeneratorRows.from_images(observations, (*rating.aspects, *rating.dimensions), options)

    def tables(self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
        """Generators side by side, by part, kind, category and tag; and which of them the judge tells apart."""
        return generator_tables(benchmark, parts, runs, options)

    def compared(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Sequence[ComparedStatistic]:
        """Nothing: nobody rated these images, so that no judge is better on them."""
        return ()
