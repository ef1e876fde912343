"""The report of benchmarks in which people rated the outputs of several image models: agreement by image model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.image_model_agreement import agreement_by_image_model
from vieval_plugin.meta_evaluation.image_model_cells import numbers_by_image_model
from vieval_plugin.meta_evaluation.image_model_comparison import compared_by_image_model
from vieval_plugin.meta_evaluation.image_model_headline import image_model_headlines
from vieval_plugin.meta_evaluation.image_model_tables import agreement_document, image_model_tables
from vieval_plugin.meta_evaluation.observations import Observation, Summary
from vieval_plugin.meta_evaluation.reports import Rating
from vieval_plugin.meta_evaluation.same_samples import same_samples_tables
from vieval_plugin.meta_evaluation.tables import Tables
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

PAPER = (
    "Tables that are called by a number have the shape of that table in Ku et al., VIEScore: Towards Explainable Metrics for "
    "Conditional Image Synthesis Evaluation (ACL 2024), or of its like for image metrics, so that both can be laid side by "
    "side; the numbers are computed here, from these runs."
)

_NUMBERS = ("fisher", "ci_low", "ci_high", "paper", "count")


@dataclass(frozen=True)
class ByImageModel:
    """Agreement with human ratings, averaged over image models, by aspect.

    `added_last` gives, by part, the place of the rater whose O a published computation adds last, from 0 (see
    `stats.agreement.rater_mean`). `rated` is what people rated: a judge may have one score that is compared with all of
    it.
    """

    added_last: Mapping[str, int] = field(default_factory=dict)
    rated: tuple[str, ...] = ("SC", "PQ", "O")

    def names(self, rating: Rating) -> tuple[str, ...]:
        """`<aspect>_<what>` for each aspect that the judge rates; with repeated verdicts, their consistency too.

        >>> ByImageModel().names(Rating(("SC",)))
        ('SC_fisher', 'SC_ci_low', 'SC_ci_high', 'SC_paper', 'SC_count')
        """
        numbers = (*_NUMBERS, *(["consistency"] if rating.repeats > 1 else []))
        return tuple(f"{aspect}_{number}" for aspect in self._aspects(rating) for number in numbers)

    def shown(self, rating: Rating) -> tuple[str, ...]:
        """The corrected average of each aspect.

        >>> ByImageModel().shown(Rating(("SC", "PQ")))
        ('SC_fisher', 'PQ_fisher')
        """
        return tuple(f"{aspect}_fisher" for aspect in self._aspects(rating))

    def _aspects(self, rating: Rating) -> tuple[str, ...]:
        return self.rated if rating.against_all else rating.aspects

    def summarise(
        self,
        observations: tuple[Observation, ...],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> Summary:
        """A part's agreement by aspect; see `agreement_by_image_model`."""
        last, rated = self.added_last.get(part), self.rated if rating.against_all else ()
        return agreement_by_image_model(observations, rating.aspects, f"{benchmark}/{part}", last, options, rated)

    def tables(self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
        """The tables of the VIEScore paper, and the judges of SC side by side.

        What runs hold of a part that is not among `parts` comes last.
        """
        all_parts = dict.fromkeys((*parts, *(part for run in runs for part in run.records)))
        numbers = numbers_by_image_model(benchmark, tuple(all_parts), runs, self.added_last, options, self.rated)
        tables = [
            *image_model_tables(numbers),
            *same_samples_tables(benchmark, tuple(all_parts), runs, self.added_last, options),
        ]
        document = {"agreement": agreement_document(numbers.agreement)}
        headlines = image_model_headlines(numbers, runs, options, self.rated)
        return Tables(tuple(tables), numbers.cells, document, numbers.reasons, headlines, PAPER)

    def compared(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Sequence[ComparedStatistic]:
        """Each aspect, over all parts and image models; see `compared_by_image_model`."""
        return compared_by_image_model(parts, runs, options, self.rated)
