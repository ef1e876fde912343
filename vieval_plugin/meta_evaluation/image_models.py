"""The report of benchmarks in which people rated the outputs of several image models: agreement
by image model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from typing import TypeAlias, get_args

import numpy as np

from vieval_plugin.meta_evaluation.common_items import (
    Items,
    JudgedItem,
    compared_correlations,
)
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.estimates import bias_corrected
from vieval_plugin.meta_evaluation.findings import (
    ALL,
    CONSTANT_LABEL,
    Findings,
    Layout,
    Number,
    RankedStatistic,
    Role,
    layouts,
    preferred,
)
from vieval_plugin.meta_evaluation.human_ceiling import compared_with_annotators
from vieval_plugin.meta_evaluation.image_model_agreement import (
    Agreement,
    ImageModelRows,
    agreement,
    agreement_over_parts,
    agreement_statistics,
    consistency,
    filled_observations,
    generator_pairs,
    human_agreement,
    missing_value_reason,
    rating_columns,
    undefined_reason,
)
from vieval_plugin.meta_evaluation.measures import mean_of
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.meta_evaluation.statistics import Rating, Report, Statistic, parts_of
from vieval_plugin.meta_evaluation.tables import Key, Table
from vieval_plugin.records import Run
from vieval_plugin.stats.agreement import krippendorff_alpha, leave_one_out
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.correlation import (
    Coefficient,
    Floats,
    correlation,
    paper_mean,
    undefined,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.generator_pairs import PairAgreement, accuracy_over_pairs
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import footrule, ranks

#: The system under which tables show human raters.
HUMAN = "human"
#: The table of correlations by image model, for judges whose description names no other.
BY_MODEL = "T6"
#: How often a judge orders two image models as people do, by their means and by the p of both
#: orders.
HARD = "pairwise_accuracy_of_generators"
SOFT = "soft_pairwise_accuracy_of_generators"
#: Spearman's correlation averaged over image models by Fisher's z, and as the published code
#: averages it.
FISHER = "spearman"
PUBLISHED = "spearman_published"
_BY_MODEL = "spearman_by_image_model"
_IMAGE_MODEL = "image_model"
SC = "SC"
_CEILING_LABEL = "human ceiling: each rater against the others"

#: How many image models a part has, and the agreement on each two of them.
_GeneratorPairs: TypeAlias = tuple[int, list[PairAgreement]]

PAPER = (
    "Numbered tables follow the layout of the same tables in Ku et al., VIEScore: "
    "Towards Explainable Metrics for Conditional Image Synthesis Evaluation (ACL "
    "2024), or of their counterparts for image metrics, so that you can compare them "
    "side by side. The numbers are computed from these runs."
)
_WHY = (
    "Shown for the overall score, or for the aspect that most of these judges rate. "
    "It compares the order of images, so the judge's scale does not matter."
)


@dataclass(frozen=True)
class ByImageModel(Report):
    """Agreement with human ratings, averaged over image models, by aspect.

    `added_last` gives, by part, the index of the annotator whose O a published computation adds
    last, from 0 (see `stats.agreement.annotator_mean`). `rated` is what people rated: a judge may
    have one score that is compared with all of it.
    """

    added_last: Mapping[str, int] = field(default_factory=dict)
    rated: tuple[str, ...] = ("SC", "PQ", "O")

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """Agreement on each aspect that the judge rates; with repeated verdicts, their consistency
        too.

        >>> [name for statistic in ByImageModel().statistics(Rating(("SC",))) for name in statistic.metrics]
        ['SC_fisher', 'SC_ci_low', 'SC_ci_high', 'SC_paper', 'SC_count']
        """
        aspects = rating.aspects
        if rating.against_all:
            aspects = self.rated
        comparable = [aspect for aspect in aspects if aspect in self.rated] or aspects
        statistics = []
        for aspect in aspects:
            aspect_statistics = [*agreement_statistics(aspect)]
            if rating.repeats > 1:
                aspect_statistics.append(consistency(aspect))
            for statistic in aspect_statistics:
                is_primary = statistic.primary and aspect in comparable
                statistics.append(replace(statistic, primary=is_primary))
        return tuple(statistics)

    def rows(
        self,
        observations: Sequence[Observation],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> ImageModelRows:
        """The samples on the aspects that the judge is compared on."""
        rated = self.rated
        if not rating.against_all:
            rated = ()
        imputed, aspects = filled_observations(
            observations, rating.aspects, rated, options
        )
        return ImageModelRows(
            judged=observations,
            imputed=imputed,
            aspects=aspects,
            name=f"{benchmark}/{part}",
            added_last=self.added_last.get(part),
            options=options,
        )

    def findings(
        self,
        benchmark: str,
        parts: Sequence[str],
        runs: Sequence[Run],
        options: StatisticsOptions,
    ) -> Findings:
        """The numbers of the VIEScore paper's tables; parts that are not among `parts` come
        last.
        """
        parts = parts_of(parts, runs)
        numbers = list(_human_numbers(benchmark, parts, runs, options))
        for run in runs:
            numbers += self._judge_numbers(benchmark, parts, run, options)
        by_model = {
            number.key.table
            for number in numbers
            if number.key and number.statistic.startswith(_BY_MODEL)
        }
        tables = sorted(
            by_model, key=lambda table: (table != BY_MODEL, len(table), table)
        )
        by_model_layouts = map(_model_table_layout, tables)
        common = [
            layout for name, layout in _layouts().items() if name != "sc_same_samples"
        ]
        left_out = _left_out(numbers, parts)
        same_samples = self._same_samples(benchmark, parts, runs, options)
        return Findings(
            numbers=tuple(numbers),
            ranked=self._ranked(parts, runs, numbers, options),
            layouts=(*common, *by_model_layouts),
            texts=(left_out, same_samples),
            paper=PAPER,
        )

    def _judge_numbers(
        self, benchmark: str, parts: Sequence[str], run: Run, options: StatisticsOptions
    ) -> Iterator[Number]:
        by_aspect: dict[str, list[Agreement]] = {}
        pairs_by_generator: dict[str, dict[str, _GeneratorPairs]] = {}
        rating = Rating.from_run(run)
        for part, observations in _observed_parts(run, parts):
            rows = self.rows(observations, rating, benchmark, part, options)
            for aspect in rows.aspects:
                agreed = agreement(rows, aspect)
                by_aspect.setdefault(aspect, []).append(agreed)
                pairs = generator_pairs(rows.imputed, aspect)
                pairs_by_generator.setdefault(aspect, {})[part] = pairs
                if part != ALL:  # else its numbers are the total's
                    yield from _agreement(run.label, part, aspect, agreed)
                yield from _model_numbers(run, rows, aspect, part)
            if "O" in rows.aspects:
                yield from _rankings(run.label, part, rows)
        for aspect, part_agreements in by_aspect.items():
            agreed = agreement_over_parts(part_agreements)
            yield from _agreement(run.label, ALL, aspect, agreed)
            pairs_by_part = pairs_by_generator[aspect]
            yield from _pair_accuracies(
                run.label, benchmark, aspect, pairs_by_part, options
            )

    def _ranked(
        self,
        parts: Sequence[str],
        runs: Sequence[Run],
        numbers: Sequence[Number],
        options: StatisticsOptions,
    ) -> tuple[RankedStatistic, ...]:
        """One an aspect that any judge rates, the default first: what half of the judges rate or
        more, O before SC.
        """
        averages = [
            number
            for number in numbers
            if (number.part, number.statistic) == (ALL, FISHER)
        ]
        overall = [number for number in averages if number.role == "judge"]
        aspects = [number.aspect for number in overall]
        with_samples = {number.aspect for number in overall if number.estimate.n}
        ceilings = _ceilings(averages)

        @cache
        def rated(options: StatisticsOptions) -> Mapping[str, Mapping[str, Items]]:
            return {
                run.label: rated_items(run, parts, self.rated, options) for run in runs
            }

        @cache
        def compared(
            aspect: str, part: str, options: StatisticsOptions
        ) -> ComparedStatistic:
            return compared_on(aspect, _restricted_items(rated(options), aspect, part))

        @cache
        def ceiling(aspect: str, label: str) -> Estimate | None:
            [run] = [run for run in runs if run.label == label]
            return compared_with_annotators(run, aspect, self.rated, options)

        ranked = []
        for aspect in preferred(list(dict.fromkeys(aspects))):
            references = _references(aspect, ceilings)
            ranked.append(_ranked_statistic(aspect, references, compared, ceiling))

        def place(statistic: RankedStatistic) -> tuple[bool, bool]:
            # what fewer than half of the judges rate comes later, and what nobody rated last: there
            # is no number to look at
            is_unrated = statistic.aspect not in with_samples
            is_rare = 2 * aspects.count(statistic.aspect) < len(runs)
            return is_unrated, is_rare

        return tuple(sorted(ranked, key=place))

    def _same_samples(
        self,
        benchmark: str,
        parts: Sequence[str],
        runs: Sequence[Run],
        options: StatisticsOptions,
    ) -> Table:
        """SC on the samples that all judges of it scored, published averaging; without rows
        unless one rates SC alone.
        """
        judges = [run for run in runs if SC in run.aspects and not run.against_all]
        parts = [part for part in parts if all(part in run.records for run in judges)]
        layout = _layouts()["sc_same_samples"]
        if len(judges) < 2 or all(run.aspects != (SC,) for run in judges):
            return layout.table(())
        scored = []
        for run in judges:
            samples = chain.from_iterable(run.records[part] for part in parts)
            scored.append(
                {rows[0].id for rows in samples if SC in observe(rows).scores}
            )
        common = set.intersection(*scored)
        restricted = []
        for run in judges:
            records = {}
            for part in parts:
                part_samples = run.records[part]
                records[part] = [rows for rows in part_samples if rows[0].id in common]
            restricted.append(replace(run, aspects=(SC,), records=records))
        numbers = list(_human_numbers(benchmark, parts, restricted[:1], options))
        for run in restricted:
            numbers += self._judge_numbers(benchmark, parts, run, options)
        return layout.table(numbers)


def _observed_parts(
    run: Run, parts: Iterable[str]
) -> Iterator[tuple[str, list[Observation]]]:
    """The observations of each of these parts that a run has."""
    for part in parts:
        if part in run.records:
            yield part, [observe(judged) for judged in run.records[part]]


def _model_numbers(
    run: Run, rows: ImageModelRows, aspect: str, part: str
) -> Iterator[Number]:
    table = run.table or BY_MODEL
    for model, columns in rows.columns[aspect].items():
        human = columns.human(rows.added_last)
        judged = columns.judge
        reason = undefined_reason(human, judged)
        value = correlation(human, judged)
        estimate = Estimate(value, n=len(judged), reasons=(reason,))
        yield Number(
            run.label,
            estimate,
            part,
            aspect,
            f"{_BY_MODEL}_{table}",
            breakdown=_IMAGE_MODEL,
            value=model,
            key=Key(
                table=table,
                task=part,
                image_model=model,
                judge=run.label,
                statistic="spearman",
                aspect=aspect,
            ),
        )


def _pair_accuracies(
    label: str,
    benchmark: str,
    aspect: str,
    pairs_by_part: Mapping[str, _GeneratorPairs],
    options: StatisticsOptions,
) -> Iterator[Number]:
    """Accuracy of a judge on pairs of generators, over all parts and in each."""
    pairs_by_name = {ALL: [*pairs_by_part.values()]}
    for part, part_pairs in pairs_by_part.items():
        pairs_by_name.setdefault(part, [part_pairs])
    for name, pairs in pairs_by_name.items():
        seed = (options.seed, *f"{benchmark}/{name}".encode())
        accuracies = accuracy_over_pairs(pairs, options.draws, seed)
        for statistic, accuracy in zip((HARD, SOFT), accuracies, strict=True):
            yield Number(label, accuracy, name, aspect, statistic)


def _ranked_statistic(
    aspect: str,
    references: tuple[Number, ...],
    compared: Callable[[str, str, StatisticsOptions], ComparedStatistic],
    ceiling: Callable[[str, str], Estimate | None],
) -> RankedStatistic:
    title = (
        f"Spearman's correlation with the ratings on {aspect}, averaged over image models and "
        "task types (Fisher)"
    )
    return RankedStatistic(
        part=ALL,
        aspect=aspect,
        statistic=FISHER,
        measured="Spearman",
        title=title,
        why=_WHY,
        ends=(-1.0, 1.0),
        compared=partial(compared, aspect, ALL),
        references=references,
        ceiling=partial(ceiling, aspect),
        statistic_in_part=partial(compared, aspect),
        parts="kind",
    )


def _restricted_items(
    ratings: Mapping[str, Mapping[str, Items]], aspect: str, part: str
) -> dict[str, Items]:
    """Items of an aspect and a part by judge, of the judges that have any."""
    items = {}
    for label, judge_ratings in ratings.items():
        judge_items: Items = judge_ratings.get(aspect, {})
        if part != ALL:
            judge_items = {
                name: item for name, item in judge_items.items() if item.part == part
            }
        if judge_items:
            items[label] = judge_items
    return items


def _ceilings(averages: Sequence[Number]) -> dict[str, Number]:
    ceilings = (number for number in averages if number.role == "ceiling")
    return {
        number.aspect: replace(number, system=_CEILING_LABEL) for number in ceilings
    }


def _references(aspect: str, ceilings: Mapping[str, Number]) -> tuple[Number, ...]:
    constant = Number(
        system=CONSTANT_LABEL,
        estimate=Estimate(0.0),
        part=ALL,
        aspect=aspect,
        statistic=FISHER,
        role="baseline",
    )
    if aspect in ceilings:
        return (ceilings[aspect], constant)
    return (constant,)


def rated_items(
    run: Run, parts: Sequence[str], rated: tuple[str, ...], options: StatisticsOptions
) -> dict[str, dict[str, JudgedItem]]:
    """Samples that people rated, by aspect that a judge rates; without the judge's score where it
    lacks any aspect.

    Args:
        run: the judge's.
        parts: all parts of the benchmark, in order.
        rated: the aspects that people rated.
        options: what failed verdicts are.
    """
    by_aspect: dict[str, dict[str, JudgedItem]] = {}
    if not run.against_all:
        rated = ()
    for part, samples in _observed_parts(run, parts_of(parts, [run])):
        imputed, aspects = filled_observations(samples, run.aspects, rated, options)
        for observation in imputed:
            is_complete = set(aspects) <= observation.scores.keys()
            cell = (observation.uid, observation.image_model)
            name = f"{part}/{observation.image_model}/{observation.uid}"
            for aspect in aspects:
                ratings = observation.ratings.get(aspect, ())
                if not ratings or any(map(math.isnan, ratings)):
                    continue
                # as `annotator_mean` rounds, so that equal means are equal
                human = round(mean_of(ratings), 9)
                score = math.nan
                if is_complete:
                    score = observation.scores[aspect]
                item = JudgedItem(
                    group=observation.group,
                    value=score,
                    human=human,
                    part=part,
                    cell=cell,
                )
                by_aspect.setdefault(aspect, {})[name] = item
    return by_aspect


def compared_on(aspect: str, items: Mapping[str, Items]) -> ComparedStatistic:
    """Judges compared on one aspect, on the image models of which both scored enough samples on
    which annotators vary.
    """
    parts = sorted(
        {item.part for label_items in items.values() for item in label_items.values()}
    )
    over_parts = ""
    if len(parts) > 1:
        over_parts = f" and parts ({', '.join(parts)})"
    title = (
        "Spearman's correlation with the ratings, "
        f"Fisher's average over image models{over_parts}"
    )
    part = ALL
    if len(parts) == 1:
        part = parts[0]
    return compared_correlations(
        part, aspect, title, items, why_no_value=missing_value_reason
    )


def _rankings(label: str, part: str, rows: ImageModelRows) -> Iterator[Number]:
    """Ranks of image models by mean O, of the judge over what it judged and of humans over all
    rated; their distance.
    """
    models = []
    judged = []
    human = []
    rated = rating_columns(rows.imputed, "O")
    for model, column in rows.columns["O"].items():
        if len(column.judge):
            human_means = rated[model].human(rows.added_last)
            models.append(model)
            judged.append(column.judge.mean())
            human.append(human_means.mean())
    by_judge = ranks(judged)
    by_humans = ranks(human)
    ranks_by_source = {"rank_by_humans": by_humans, "rank_by_judge": by_judge}
    for statistic, model_ranks in ranks_by_source.items():
        for model, rank in zip(models, model_ranks, strict=True):
            yield Number(
                label,
                Estimate(rank),
                part,
                "O",
                statistic,
                breakdown=_IMAGE_MODEL,
                value=model,
            )
    # rank 1 is the best, and the statistics rank by scores
    judge = -np.array(by_judge)
    humans = -np.array(by_humans)
    why = "all image models have the same rank"
    if len(judge) < 2:
        why = undefined(judge, humans)
    distances = {"footrule": footrule(judge, humans), "rho": correlation(judge, humans)}
    for name, distance in distances.items():
        yield Number(
            label,
            Estimate(distance, reasons=(why,)),
            part,
            "O",
            name,
            key=Key(
                table="T5",
                task=part,
                image_model="",
                judge=label,
                statistic=name,
                aspect="O",
            ),
        )


def _agreement(
    label: str, part: str, aspect: str, agreed: Agreement, role: Role = "judge"
) -> Iterator[Number]:
    """Numbers of both averages, the published one with its cell in the paper."""
    corrected, paper = agreed
    yield Number(
        system=label,
        estimate=corrected,
        part=part,
        aspect=aspect,
        statistic=FISHER,
        role=role,
    )
    table = "T2/3"
    if part == ALL:
        table = "T1"
    key = Key(
        table=table,
        task=part,
        image_model="",
        judge=label,
        statistic="spearman",
        aspect=aspect,
    )
    yield Number(
        system=label,
        estimate=paper,
        part=part,
        aspect=aspect,
        statistic=PUBLISHED,
        role=role,
        key=key,
    )


def _human_numbers(
    benchmark: str,
    parts: Sequence[str],
    runs: Sequence[Run],
    options: StatisticsOptions,
) -> Iterator[Number]:
    """Raters among themselves, on each rated sample once, whichever runs hold it; nothing where
    there is one rater.
    """
    by_aspect: dict[str, list[Agreement]] = {}
    for part in parts:
        records = {
            rows[0].id: rows for run in runs for rows in run.records.get(part, [])
        }
        observed = [
            observation
            for observation in map(observe, records.values())
            if observation.ratings
        ]
        if not observed:
            continue
        ratings = observed[0].ratings
        if min(map(len, ratings.values())) < 2:
            continue
        agreements = human_agreement(
            observed, tuple(ratings), f"{benchmark}/{part}", options
        )
        for aspect, agreed in agreements.items():
            by_aspect.setdefault(aspect, []).append(agreed)
            if part != ALL:
                yield from _agreement(HUMAN, part, aspect, agreed, "ceiling")
            by_model = {
                model: columns.ratings
                for model, columns in rating_columns(observed, aspect).items()
            }
            yield from _rater_numbers(by_model, part, aspect)
    for aspect, part_pairs in by_aspect.items():
        corrected, paper = agreement_over_parts(part_pairs)
        agreed = bias_corrected(corrected), paper
        yield from _agreement(HUMAN, ALL, aspect, agreed, "ceiling")


def _rater_numbers(
    by_model: dict[str, Floats], part: str, aspect: str
) -> Iterator[Number]:
    all_ratings = np.concatenate(list(by_model.values()), axis=1)
    alpha = krippendorff_alpha(all_ratings)
    yield Number(
        system=HUMAN,
        estimate=Estimate(alpha, reasons=("all ratings are equal",)),
        part=part,
        aspect=aspect,
        statistic="krippendorff",
        role="ceiling",
    )
    for model, values in by_model.items():
        for coefficient in get_args(Coefficient):
            correlations = leave_one_out(values, coefficient)
            mean = paper_mean(correlations, rounded=False)
            yield Number(
                system=HUMAN,
                estimate=Estimate(mean, reasons=(_NO_RATER,)),
                part=part,
                aspect=aspect,
                statistic=f"{coefficient}_of_raters",
                role="ceiling",
                breakdown=_IMAGE_MODEL,
                value=model,
                key=Key(
                    table="T7",
                    task=part,
                    image_model=model,
                    judge=HUMAN,
                    statistic=coefficient,
                    aspect=aspect,
                ),
            )


_NO_RATER = "no rater's correlation with the others is defined"


def _left_out(numbers: Sequence[Number], parts: Sequence[str]) -> Table:
    """Image models without a value, and those that count as 0 because all scores are the same."""
    averages = [
        number
        for number in numbers
        if number.statistic == FISHER and number.part in parts
    ]
    aspects = grouped(
        ((number.part, number.system, why, model), number.aspect)
        for number in averages
        for model, why in _left_out_models(number.estimate)
    )
    models = grouped(
        ((part, label, ", ".join(names), why), model)
        for (part, label, why, model), names in aspects.items()
    )
    rows = [(*cells[:3], ", ".join(names), cells[3]) for cells, names in models.items()]
    header = ("task", "judge", "aspects", "image models", "why")
    return Table(
        name="left_out",
        title="Image models excluded from the averages, or counted as 0",
        header=header,
        rows=tuple(rows),
    )


def _left_out_models(estimate: Estimate) -> Iterator[tuple[str, str]]:
    zeros = [f"{reason}, which counts as 0" for reason in estimate.zeros]
    for reason in (*estimate.reasons, *zeros):
        model, _, why = reason.partition(": ")
        yield model, why


@cache
def _layouts() -> Mapping[str, Layout]:
    return {layout.name: layout for layout in layouts("image_models")}


def _model_table_layout(table: str) -> Layout:
    """The layout of correlations by image model, under the table's number in the paper that
    prints the judge's.
    """
    numbers = table.removeprefix("T").split("/")
    noun = "Table"
    if len(numbers) > 1:
        noun = "Tables"
    title = f"{noun} {' and '.join(numbers)}. Spearman by image model"
    statistics = (f"{_BY_MODEL}_{table}",)
    return Layout(
        f"table_{'_'.join(numbers)}",
        title,
        statistics,
        {"task": "part", "image model": "value", "judge": "system"},
        breakdown=_IMAGE_MODEL,
    )
