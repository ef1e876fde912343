"""A card as stored in `card.json`: the samples, the judges, and the rows of the two
long tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from vieval_plugin.audit.effects import EffectRow
from vieval_plugin.meta_evaluation.costs import Cost
from vieval_plugin.meta_evaluation.rows import NumberRow, PairRow

#: The version of the form of `card.json`.
VERSION = 1
CARD_MD = "card.md"
CARD_HTML = "card.html"


@dataclass(frozen=True)
class CardEntry:
    """A judge on the sample of a benchmark."""

    benchmark: str
    title: str
    judge: str
    setting: str
    #: Name of the prompt pack.
    pack: str
    #: Hash of the prompt pack.
    pack_hash: str
    #: Options that an answer depends on.
    options: Mapping[str, object]
    #: Name of its samples.
    unit: str
    samples: int
    #: Number of samples to choose from, 0 if unknown.
    available: int
    #: Number of parts and image models among the samples.
    cells: int
    #: SHA-256 of the samples' ids in order.
    sample_digest: str
    #: All numbers of the judge, and those of published judges, baselines and people by the same
    #: statistic.
    numbers: tuple[NumberRow, ...]
    #: Pairs of the judge with published judges.
    pairs: tuple[PairRow, ...]
    #: Outcomes and cost of the verdicts.
    cost: Cost
    #: Seconds of calls, None if unknown.
    seconds: float | None
    #: Share of pairs of samples, or of votes, that are tied; None without any.
    ties: float | None
    #: Share of sub-scores that are multiples of 5; None without any.
    round_numbers: float | None
    #: SHA-256 of the files of verdicts, by their paths from the card on.
    files: Mapping[str, str]


@dataclass(frozen=True)
class CardRepeats:
    """Repeats of a judge without the store: how often two repeats on samples of a
    benchmark give the same answer.
    """

    judge: str
    benchmark: str
    #: Number of times that each sample was judged.
    repeats: int
    #: Share of pairs of repeats with the same answer, and mean difference of two.
    numbers: tuple[NumberRow, ...]
    #: Number of answers.
    calls: int
    #: As in `CardEntry`.
    files: Mapping[str, str]


@dataclass(frozen=True)
class CardAudit:
    """A short audit of a judge, on samples of a benchmark."""

    judge: str
    benchmark: str
    samples: int
    #: Effects of the changes.
    effects: tuple[EffectRow, ...]
    #: Number of answers.
    calls: int


@dataclass(frozen=True)
class Card:
    """The card of a model as a judge."""

    #: Version of its form.
    card: int
    model: str
    #: Origin of the verdicts in a few words.
    made_from: str
    #: First sentences.
    answers: tuple[str, ...]
    #: One per judge and benchmark.
    entries: tuple[CardEntry, ...]
    #: One per judge.
    repeats: tuple[CardRepeats, ...]
    #: One per judge.
    audits: tuple[CardAudit, ...]
    #: Lines on what the card leaves out.
    left_out: tuple[str, ...]
    #: Options of the statistics.
    statistics: Mapping[str, object]
    #: Seed of the samples.
    seed: int
    #: Day on which it was made.
    date: date
    #: Versions of Python and packages.
    versions: Mapping[str, str] = field(default_factory=dict)
