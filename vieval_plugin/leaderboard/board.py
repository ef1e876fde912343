"""A leaderboard as data: judges, leaderboards by choice, and printed numbers with the
recomputed ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vieval_plugin.leaderboard.printed import PrintedNumber
from vieval_plugin.meta_evaluation.findings import ALL, Leaderboard, Number
from vieval_plugin.results.published.judges import PublishedJudge
from vieval_plugin.stats.estimate import Estimate


@dataclass(frozen=True, eq=False)
class View:
    """A leaderboard for one choice of aspect, failure policy, setting or part."""

    choice: Mapping[str, str]
    #: The judges.
    board: Leaderboard
    #: Metrics and random answers.
    baselines: tuple[Number, ...]
    #: Sentences on it, the answer first.
    lines: tuple[str, ...]
    #: How often each judge orders two image models as people do (soft pairwise accuracy).
    generators: Mapping[str, Estimate]
    #: True if all choices but the first are the default; its rows have details.
    is_default: bool

    @property
    def part(self) -> str:
        """Part of the benchmark, or `all`."""
        return self.choice.get("part", ALL)

    @property
    def numbers(self) -> list[Number]:
        """Numbers of the judges, then of the references, best first."""
        all_references = (*self.baselines, *self.board.references)
        references = [number for number in all_references if number.estimate.defined]
        references.sort(key=lambda number: -number.estimate.value)
        return [*self.board.numbers, *references]


@dataclass(frozen=True, eq=False)
class BenchmarkBoard:
    """The leaderboard of a benchmark."""

    benchmark: str
    #: Its name in sentences.
    title: str
    #: Leaderboards by choice, the default first.
    views: tuple[View, ...]
    #: Judges with verdicts, by their titles.
    judges: Mapping[str, PublishedJudge]
    #: Titles of submitted judges.
    submitted: frozenset[str]
    #: Published judges without available logs.
    absent: tuple[PublishedJudge, ...]
    printed: tuple[PrintedNumber, ...]
    printed_source: str
    #: Parts without available logs of any judge.
    missing_parts: tuple[str, ...] = ()

    @property
    def errata(self) -> list[PrintedNumber]:
        """Printed numbers that the published logs do not reproduce."""
        return [number for number in self.printed if number.reason]

    def printed_of(self, view: View, label: str) -> list[PrintedNumber]:
        """Printed averages of a judge for a leaderboard, by part if no average over all
        parts was printed.

        Printed votes are four-way.
        """
        if view.choice.get("ties", "four_way") != "four_way":
            return []
        has_aspects = any(number.aspect for number in self.printed)
        average = (label, view.board.aspect if has_aspects else "", "")
        averages = [
            n for n in self.printed if (n.label, n.aspect, n.image_model) == average
        ]
        part_averages = [number for number in averages if number.task == view.part]
        return part_averages or [number for number in averages if view.part == ALL]
