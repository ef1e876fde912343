"""A leaderboard as data: judges, their leaderboards by choice, and printed numbers beside
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
    """A leaderboard for one choice of aspect, failure policy and so on."""

    choice: Mapping[str, str]
    #: The judges.
    board: Leaderboard
    #: Metrics and random answers beside them.
    baselines: tuple[Number, ...]
    #: Sentences on it, the answer first.
    lines: tuple[str, ...]
    #: How often each judge orders two image models as people do (soft pairwise accuracy).
    generators: Mapping[str, Estimate]
    #: True for the default choice of all but the first, whose rows open to more.
    is_default: bool

    @property
    def part(self) -> str:
        """The benchmark's part that it is of, or `all`."""
        return self.choice.get("part", ALL)

    @property
    def numbers(self) -> list[Number]:
        """Numbers of the judges, then of what stands beside them, the best first."""
        references = [
            number
            for number in (*self.baselines, *self.board.references)
            if number.estimate.defined
        ]
        return [
            *self.board.numbers,
            *sorted(references, key=lambda number: -number.estimate.value),
        ]


@dataclass(frozen=True, eq=False)
class BenchmarkBoard:
    """The leaderboard of a benchmark."""

    benchmark: str
    #: What sentences call it.
    title: str
    #: Leaderboards by choice, the default first.
    views: tuple[View, ...]
    #: Judges that are here, by their titles.
    judges: Mapping[str, PublishedJudge]
    #: Titles of those that somebody submitted.
    submitted: frozenset[str]
    #: Published judges whose logs are not here.
    absent: tuple[PublishedJudge, ...]
    printed: tuple[PrintedNumber, ...]
    printed_source: str
    #: Parts of which no judge's logs are here.
    missing_parts: tuple[str, ...] = ()

    @property
    def errata(self) -> list[PrintedNumber]:
        """The printed numbers that the published logs do not give."""
        return [number for number in self.printed if number.reason]

    def printed_of(self, view: View, label: str) -> list[PrintedNumber]:
        """The printed numbers of a judge's average that a leaderboard is about, by part where none
        of all parts was printed.

        Printed votes are four-way.
        """
        if view.choice.get("ties", "four_way") != "four_way":
            return []
        aspect = (
            view.board.aspect if any(number.aspect for number in self.printed) else ""
        )
        average = (label, aspect, "")
        averages = [
            n for n in self.printed if (n.label, n.aspect, n.image_model) == average
        ]
        part_averages = [number for number in averages if number.task == view.part]
        return part_averages or [number for number in averages if view.part == ALL]
