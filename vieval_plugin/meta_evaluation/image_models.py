"""The report of benchmarks in which people rated the outputs of several image models: agreement by image model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.image_model_agreement import (
    Agreement,
    ImageModelRows,
    agreement_of,
    agreement_statistics,
    consistency,
    human_agreement,
    image_model_rows,
    paper_over_parts,
)
from vieval_plugin.meta_evaluation.image_model_cells import ALL_PARTS, BY_MODEL, HUMAN, Numbers, numbers_by_image_model
from vieval_plugin.meta_evaluation.image_model_comparison import compared_by_image_model, image_model_headlines
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.statistics import Rating, Statistic, observed
from vieval_plugin.meta_evaluation.tables import Key, Table, Tables, number, with_interval
from vieval_plugin.records import Run
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.wording import nan_to_none

ASPECT = "SC"


def same_samples_tables(
    benchmark: str,
    parts: Sequence[str],
    runs: Sequence[Run],
    added_last: Mapping[str, int],
    options: StatisticsOptions,
) -> list[Table]:
    """SC by part and over all parts, published averaging; no table unless a judge of SC alone stands beside another.

    Args:
        benchmark: its name, part of the seed.
        parts: its parts in order; those that not all judges of SC were run on are left out.
        runs: one a judge, labels all different.
        added_last: by part, the index of the annotator whose O the published code adds last, from 0.
        options: how many draws, and the seed; failed verdicts are in no such table.
    """
    rating = [run for run in runs if ASPECT in run.aspects and not run.against_all]
    if len(rating) < 2 or all(run.aspects != (ASPECT,) for run in rating):
        return []
    parts = [part for part in parts if all(part in run.records for run in rating)]
    by_label: dict[str, list[Estimate]] = {HUMAN: [], **{run.label: [] for run in rating}}
    for part in parts:
        by_run = {run.label: observations for run, observations in observed(rating, part)}
        common = set.intersection(*({_sample_key(o) for o in rows if ASPECT in o.scores} for rows in by_run.values()))
        common_rows = {label: [o for o in rows if _sample_key(o) in common] for label, rows in by_run.items()}
        name, last = f"{benchmark}/{part}", added_last.get(part)
        for label, rows in common_rows.items():
            of_judge = image_model_rows(rows, Rating((ASPECT,)), name, last, (), options)
            by_label[label].append(agreement_of(of_judge, ASPECT).paper)
        rated = next(iter(common_rows.values()))
        if rated and len(rated[0].ratings.get(ASPECT, ())) > 1:
            by_label[HUMAN].append(human_agreement(rated, (ASPECT,), name, options)[ASPECT].paper)
    lines = [
        (label, *map(number, papers), number(paper_over_parts(papers))) for label, papers in by_label.items() if papers
    ]
    counts = (str(paper.n) for paper in by_label[rating[0].label])
    title = "SC on the samples that all of these judges scored: Spearman, the published averaging"
    header = ("judge", *parts, ALL_PARTS)
    return [Table("sc_same_samples", title, header, (*lines, ("n", *counts, "")))] if parts else []


def _sample_key(observation: Observation) -> tuple[str, str]:
    return observation.image_model, observation.uid


ORDER = ("SC", "PQ", "O")


def image_model_tables(numbers: Numbers) -> list[Table]:
    """Tables of a benchmark that have a row.

    Args:
        numbers: what `numbers_by_image_model` found.
    """
    aspects = _aspects(numbers)
    everywhere = (ALL_PARTS,)
    corrected, published = "Spearman, Fisher average [95% interval]", "the published averaging"
    tables = [
        _averages(numbers, aspects, everywhere, "corrected_all", f"Over all tasks: {corrected}"),
        _averages(numbers, aspects, numbers.parts, "corrected_tasks", f"By task: {corrected}"),
        _paper(numbers, aspects, "T1", everywhere, "table_1", f"Table 1. Over all tasks, {published}"),
        _paper(numbers, aspects, "T2/3", numbers.parts, "table_2_3", f"Tables 2 and 3. By task, {published}"),
        _left_out(numbers),
        _rankings(numbers),
        *(_by_image_model(numbers, aspects, table) for table in _tables_by_model(numbers)),
        _humans(numbers, aspects),
        _alpha(numbers, aspects),
        _statuses(numbers),
    ]
    return [table for table in tables if table.rows]


def agreement_document(agreement: Mapping[tuple[str, str, str], Agreement]) -> list[dict[str, object]]:
    """Every agreement once more for programs, as JSON values; an undefined number is null, with its reason.

    Args:
        agreement: by (judge, part or `all`, aspect).
    """
    return [
        {
            "judge": judge,
            "task": part,
            "aspect": aspect,
            "fisher": nan_to_none(corrected.value),
            "ci_low": nan_to_none(corrected.low),
            "ci_high": nan_to_none(corrected.high),
            "paper": nan_to_none(paper.value),
            "count": corrected.n,
            "undefined": list(corrected.reasons),
            "counted_as_0": list(corrected.zeros),
            "rests_on": str(corrected.coverage),
        }
        for (judge, part, aspect), (corrected, paper) in agreement.items()
    ]


def _aspects(numbers: Numbers) -> tuple[str, ...]:
    rated_aspects = {aspect for _, _, aspect in numbers.agreement}
    return (*(a for a in ORDER if a in rated_aspects), *sorted(rated_aspects - set(ORDER)))


def _averages(numbers: Numbers, aspects: Sequence[str], parts: Sequence[str], name: str, title: str) -> Table:
    rows = []
    for part in parts:
        for label in numbers.labels:
            agreements = [numbers.agreement.get((label, part, aspect)) for aspect in aspects]
            if any(agreements):
                n = max(a.corrected.n for a in agreements if a)
                intervals = ("" if a is None else with_interval(a.corrected, digits=3) for a in agreements)
                rows.append((part, label, str(n), *intervals))
    return Table(name, title, ("task", "judge", "n", *aspects), tuple(rows))


def _cell_text(numbers: Numbers, key: Key, digits: int = 4) -> str:
    return number(numbers.cells.get(key), digits, numbers.reasons.get(key, ""))


def _left_out(numbers: Numbers) -> Table:
    """Image models without a value, and those that count as 0 because all scores are the same."""
    aspects: dict[tuple[str, str, str, str], list[str]] = {}
    for (label, part, aspect), agreement in numbers.agreement.items():
        zero_reasons = [f"{reason}, which counts as 0" for reason in agreement.corrected.zeros]
        for reason in (*agreement.corrected.reasons, *zero_reasons) if part != ALL_PARTS else ():
            model, _, why = reason.partition(": ")
            aspects.setdefault((part, label, why, model), []).append(aspect)
    models: dict[tuple[str, str, str, str], list[str]] = {}
    for (part, label, why, model), aspect_names in aspects.items():
        models.setdefault((part, label, ", ".join(aspect_names), why), []).append(model)
    rows = tuple(
        (part, label, aspects_text, ", ".join(model_names), why)
        for (part, label, aspects_text, why), model_names in models.items()
    )
    header = ("task", "judge", "aspects", "image models", "why")
    return Table("left_out", "Image models without a value in the averages, or with 0", header, rows)


def _paper(numbers: Numbers, aspects: Sequence[str], table: str, parts: Sequence[str], name: str, title: str) -> Table:
    rows = []
    for part in parts:
        for label in numbers.labels:
            keys = [Key(table, part, "", label, "spearman", aspect) for aspect in aspects]
            if any(key in numbers.cells for key in keys):
                rows.append((part, label, *(_cell_text(numbers, key) for key in keys)))
    return Table(name, title, ("task", "judge", *aspects), tuple(rows))


def _rankings(numbers: Numbers) -> Table:
    rows = []
    for (label, part), ranking in sorted(numbers.rankings.items(), key=lambda item: numbers.parts.index(item[0][1])):
        ranked = [
            " ".join(f"{model}:{rank:g}" for model, rank in _by_rank(side)) for side in (ranking.human, ranking.judge)
        ]
        footrule, rho = (Key("T5", part, "", label, statistic, "O") for statistic in ("footrule", "rho"))
        rows.append((part, label, *ranked, f"{numbers.cells[footrule]:g}", _cell_text(numbers, rho, 2)))
    header = ("task", "judge", "rank by humans", "rank by judge", "footrule", "rho")
    return Table(
        "table_5", "Table 5. Ranking image models by the judge's mean score, of humans by mean O", header, tuple(rows)
    )


def _by_rank(side: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(side.items(), key=lambda item: (item[1], item[0]))


def _part_models(numbers: Numbers, table: str) -> list[tuple[str, str]]:
    """The parts and image models of a table's cells, in the order of rows."""
    part_models = {(k.task, k.image_model) for k in numbers.cells if k.table == table}
    return sorted(part_models, key=lambda part_model: (numbers.parts.index(part_model[0]), part_model[1]))


def _tables_by_model(numbers: Numbers) -> list[str]:
    """The tables of correlations by image model: the common one, then those that print a judge's apart."""
    tables = {key.table for key in numbers.cells if key.image_model and key.judge != HUMAN}
    return sorted(tables, key=lambda table: (table != BY_MODEL, len(table), table))


def _by_image_model(numbers: Numbers, aspects: Sequence[str], table: str) -> Table:
    rows = []
    for part, model in _part_models(numbers, table):
        for label in (label for label in numbers.labels if label != HUMAN):
            keys = [Key(table, part, model, label, "spearman", aspect) for aspect in aspects]
            if any(key in numbers.cells for key in keys):
                rows.append((part, model, label, *(_cell_text(numbers, key) for key in keys)))
    numbers_of_tables = table.removeprefix("T").split("/")
    name, title = "_".join(numbers_of_tables), " and ".join(numbers_of_tables)
    plural_suffix = "s" if len(numbers_of_tables) > 1 else ""
    header = ("task", "image model", "judge", *aspects)
    return Table(f"table_{name}", f"Table{plural_suffix} {title}. Spearman by image model", header, tuple(rows))


def _humans(numbers: Numbers, aspects: Sequence[str]) -> Table:
    kinds = [(coefficient, aspect) for coefficient in ("pearson", "spearman", "kendall") for aspect in aspects]
    rows = tuple(
        (part, model, *(_cell_text(numbers, Key("T7", part, model, HUMAN, *kind)) for kind in kinds))
        for part, model in _part_models(numbers, "T7")
    )
    header = ("task", "image model", *(f"{coefficient} {aspect}" for coefficient, aspect in kinds))
    return Table("table_7", "Table 7. Human raters, leave one out, the published averaging", header, rows)


def _alpha(numbers: Numbers, aspects: Sequence[str]) -> Table:
    rows = tuple(
        (part, *(number(numbers.alpha.get((part, a)), reason="all ratings are alike") for a in aspects))
        for part in numbers.parts
        if any((part, a) in numbers.alpha for a in aspects)
    )
    return Table("krippendorff", "Human raters: Krippendorff's alpha (ordinal)", ("task", *aspects), rows)


def _statuses(numbers: Numbers) -> Table:
    rows = []
    for label, counts in numbers.statuses.items():
        replies = numbers.replies[label]
        rows.append((label, "samples", *(str(counts[s]) for s in Status)))
        rows.append((label, "answers", *(str(replies[s]) for s in Status)))
    header = ("judge", "of", *map(str, Status))
    return Table("statuses", "How verdicts and the answers behind them came out", header, tuple(rows))


PAPER = (
    "Tables that are called by a number have the shape of that table in Ku et al., VIEScore: Towards Explainable Metrics for "
    "Conditional Image Synthesis Evaluation (ACL 2024), or of its like for image metrics, so that both can be laid side by "
    "side; the numbers are computed here, from these runs."
)


@dataclass(frozen=True)
class ByImageModel:
    """Agreement with human ratings, averaged over image models, by aspect.

    `added_last` gives, by part, the index of the annotator whose O a published computation adds last, from 0 (see
    `stats.agreement.annotator_mean`). `rated` is what people rated: a judge may have one score that is compared with all of
    it.
    """

    added_last: Mapping[str, int] = field(default_factory=dict)
    rated: tuple[str, ...] = ("SC", "PQ", "O")

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """Agreement on each aspect that the judge rates; with repeated verdicts, their consistency too.

        >>> [name for statistic in ByImageModel().statistics(Rating(("SC",))) for name in statistic.metrics]
        ['SC_fisher', 'SC_ci_low', 'SC_ci_high', 'SC_paper', 'SC_count']
        """
        return tuple(
            statistic
            for aspect in (self.rated if rating.against_all else rating.aspects)
            for statistic in (*agreement_statistics(aspect), *([consistency(aspect)] if rating.repeats > 1 else []))
        )

    def rows(
        self,
        observations: Sequence[Observation],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> ImageModelRows:
        """The samples on the aspects that the judge is compared on."""
        return image_model_rows(
            observations, rating, f"{benchmark}/{part}", self.added_last.get(part), self.rated, options
        )

    def tables(self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
        """The tables of the VIEScore paper, and the judges of SC side by side.

        What runs hold of a part that is not among `parts` comes last.
        """
        numbers = numbers_by_image_model(benchmark, parts, runs, self.added_last, options, self.rated)
        tables = [
            *image_model_tables(numbers),
            *same_samples_tables(benchmark, numbers.parts, runs, self.added_last, options),
        ]
        document = {"agreement": agreement_document(numbers.agreement)}
        headlines = image_model_headlines(numbers, runs, options, self.rated)
        return Tables(tuple(tables), numbers.cells, document, numbers.reasons, headlines, PAPER)

    def compared(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Sequence[ComparedStatistic]:
        """Each aspect, over all parts and image models; see `compared_by_image_model`."""
        return compared_by_image_model(parts, runs, options, self.rated)
