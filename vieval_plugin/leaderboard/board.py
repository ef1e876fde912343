"""A leaderboard as data: judges of a benchmark, tables of them by choice, and printed numbers beside recomputed ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from vieval_plugin.card.card import CardNumber
from vieval_plugin.stats.estimate import Estimate

ALL_PARTS = "all"
JUDGE, BASELINE, REFERENCE = "judge", "baseline", "reference"
"""The kinds of rows: judges, which are ranked; metrics and random answers; constants and the human ceiling."""


@dataclass(frozen=True)
class BoardRow:
    """A row of a table: a number with its 95% interval and range of ranks, each None or empty where there is none.

    `n` is how many samples the number is of, `notes` are to be read beside it. In the table that is shown first of an
    aspect, `by_value` has the number by task type or part, `generators` how often the judge orders two image models as
    people do (soft pairwise accuracy), and `failures` its verdicts without a score.
    """

    label: str
    kind: str
    rank: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    notes: tuple[str, ...] = ()
    by_value: Mapping[str, CardNumber] = field(default_factory=dict)
    generators: CardNumber | None = None
    failures: str = ""

    @property
    def estimate(self) -> Estimate:
        """Its number."""
        return CardNumber(self.value, self.low, self.high, self.n).estimate


@dataclass(frozen=True)
class BoardView:
    """A table for one choice of aspect, failure policy and so on: `choice` has the value of each by its name.

    `findings` are sentences on it, the answer first; `separated` the places in `rows` before which a line is drawn.
    `part` is the benchmark's part that it is of, or `all`, `aspect` what is rated.
    """

    choice: Mapping[str, str]
    title: str
    part: str
    aspect: str
    findings: tuple[str, ...]
    rows: tuple[BoardRow, ...]
    separated: tuple[int, ...]


@dataclass(frozen=True)
class BoardJudge:
    """A judge of a leaderboard: `source` says where its verdicts are from, `absent` that they are not here.

    `version` is the exact model, empty where nobody says it, and `date` when the verdicts were published, or made for a
    judge that was `submitted`.
    """

    label: str
    name: str
    setting: str
    version: str
    date: str
    source: str
    absent: bool = False
    submitted: bool = False


@dataclass(frozen=True)
class PrintedNumber:
    """A printed number beside the recomputed one, None where the logs are not here.

    `table` is the paper's, `task` a part or `all`, `image_model` empty in an average, `decimals` how many were printed.
    `reason` says why the two differ by more than a unit of the last of these, and is empty where they do not.
    """

    label: str
    table: str
    task: str
    image_model: str
    aspect: str
    printed: float
    decimals: int = 4
    computed: float | None = None
    reason: str = ""

    @property
    def is_erratum(self) -> bool:
        """True where the recomputed number is another."""
        return bool(self.reason)

    def differs(self, computed: float) -> bool:
        """Tell whether a number is more than a unit of the last printed digit away.

        >>> number = PrintedNumber("judge", "T1", "all", "", "O", 0.3655)
        >>> number.differs(0.36562), number.differs(0.3668)
        (False, True)
        """
        units = (round(computed, self.decimals) - self.printed) * 10**self.decimals
        return math.isnan(computed) or abs(round(units)) > 1

    def digits(self, value: float | None) -> str:
        """The printed number or the recomputed one with as many decimals as were printed; empty where there is none."""
        return "" if value is None else f"{value:.{self.decimals}f}"


@dataclass(frozen=True)
class Board:
    """The leaderboard of a benchmark; the first of `views` is shown first. `method` says how ranks came about.

    `missing_parts` are those of the benchmark of which no judge's logs are here; `leader` says who leads, in words that
    follow the benchmark's name.
    """

    benchmark: str
    title: str
    views: tuple[BoardView, ...]
    judges: tuple[BoardJudge, ...]
    printed: tuple[PrintedNumber, ...]
    printed_source: str
    method: str
    leader: str
    missing_parts: tuple[str, ...] = ()

    @property
    def errata(self) -> list[PrintedNumber]:
        """The printed numbers that the published logs do not give."""
        return [number for number in self.printed if number.is_erratum]

    @property
    def judges_without_logs(self) -> list[BoardJudge]:
        """The judges whose logs are not here."""
        return [judge for judge in self.judges if judge.absent]

    def printed_of(self, view: BoardView, label: str) -> list[PrintedNumber]:
        """The printed numbers of a judge's average that a table is about, by part where none of all parts was printed.

        Printed votes are four-way.
        """
        if view.choice.get("ties", "four_way") != "four_way":
            return []
        aspect = view.aspect if any(number.aspect for number in self.printed) else ""
        averages = [
            number
            for number in self.printed
            if (number.label, number.aspect, number.image_model) == (label, aspect, "")
        ]
        of_part = [number for number in averages if number.task == view.part]
        return of_part or [number for number in averages if view.part == ALL_PARTS]
