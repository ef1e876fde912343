"""A card as data: every number of it, in the form in which `card.json` keeps it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from vieval_plugin.meta_evaluation.comparison import LEVEL
from vieval_plugin.meta_evaluation.tables import p_sentence
from vieval_plugin.report.words import short_number
from vieval_plugin.stats.estimate import Estimate

VERSION = 1
"""The version of the form of `card.json`."""
CARD_MD, CARD_HTML = "card.md", "card.html"

FLAGGED = "FLAGGED"
"""The first word of a finding of what ought not to be."""
UNDECIDED = "undecided"
"""A finding of what the samples do not show."""


@dataclass(frozen=True)
class CardNumber:
    """A number with its 95% interval, on `n` samples; None where there is none, and then `note` says why.

    Of an average over less than everything, `note` says what it rests on.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    note: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"undefined ({self.note})" if self.note else "undefined"
        interval = f" [{self.low:.3f}, {self.high:.3f}]" if self.estimate.has_interval else ""
        return f"{self.value:.3f}{interval}{f' on {self.note}' if self.note else ''}"

    @property
    def estimate(self) -> Estimate:
        """The same as an estimate, without what it rests on."""
        value, low, high = (math.nan if end is None else end for end in (self.value, self.low, self.high))
        return Estimate(value, low, high, n=self.n)

    @property
    def rests_on(self) -> str:
        """What an average over less than everything rests on, in words."""
        return f"on {self.note}" if self.note and self.value is not None else ""

    @property
    def short(self) -> str:
        """The number with its interval as readers see it; why there is none where there is none."""
        return str(self) if self.value is None else short_number(self.estimate)


def number_of(estimate: Estimate) -> CardNumber:
    """An estimate as a card keeps it.

    >>> str(number_of(Estimate(0.5, 0.25, 0.75))), str(number_of(Estimate(float("nan"), reasons=("no score",))))
    ('0.500 [0.250, 0.750]', 'undefined (no score)')
    """
    value, low, high = (None if end != end else float(end) for end in (estimate.value, estimate.low, estimate.high))
    return CardNumber(value, low, high, estimate.n, str(estimate.coverage) if estimate.defined else estimate.reason)


@dataclass(frozen=True)
class Difference:
    """The card's judge less a published one, on the samples that both scored, with the adjusted p of the test."""

    number: CardNumber
    p: float | None

    @property
    def outcome(self) -> str:
        """`better`, `worse`, or empty where the test shows neither."""
        if self.p is None or self.p > LEVEL or not self.number.value:
            return ""
        return "better" if self.number.value > 0 else "worse"

    @property
    def significance(self) -> str:
        """The adjusted p after a comma, without which an interval that leaves out 0 would seem to contradict the outcome."""
        return "" if self.p is None else f", {p_sentence(self.p)}"


@dataclass(frozen=True)
class PublishedPlace:
    """A published judge on the samples of a card: its number, its range of ranks, and how far the card's judge is ahead.

    `unranked` says why it has no rank. `words` and `differences` are by task type or part.
    """

    label: str
    number: CardNumber
    ranks: tuple[int, int] | None
    unranked: str
    difference: Difference | None
    words: Mapping[str, CardNumber]
    differences: Mapping[str, Difference]


@dataclass(frozen=True)
class AnswerHabits:
    """The ways in which a judge answers, each None where it has none.

    `ties` is the share of pairs of samples, or of votes, that are level; `round_numbers` the share of sub-scores that
    are multiples of 5; `consistent` the share of contests with the same answer in both orders. `same` says that nearly
    all answers are alike.
    """

    ties: float | None
    round_numbers: float | None
    consistent: CardNumber | None
    same: str = ""


@dataclass(frozen=True)
class EntryCost:
    """Verdicts and what they took: `failed` by status; tokens and seconds of calls are None where nobody says."""

    verdicts: int
    failed: Mapping[str, int]
    calls: int
    tokens: int | None
    seconds: float | None


@dataclass(frozen=True)
class CardEntry:
    """A judge on the sample of a benchmark.

    - `synthetic` says that its images are drawings, and its ratings their known defects;
    - `samples` of `available` in `cells` cells, called `unit`; `sample_digest` is the SHA-256 of their ids in order;
    - `number` is the agreement by `statistic` on `aspect`, `statistics` all that the benchmark has, by metric;
    - `ranks` is the range of ranks among the `ranked` judges, of which this is one, `unranked` why there is none;
    - `published` are the published judges on the same samples, the best first;
    - `references` are baselines and the human ceiling, `ceiling` where the judge is to the latter, `above_constant` says
      that a test shows it to be above the same answer for every image;
    - `words` has the number by task type or part, whichever `heading` says, `useless` those of them where no test,
      adjusted over them by Holm, shows it to be above the same answer for every image;
    - `files` maps the files of verdicts, relative to the card, to their SHA-256.
    """

    benchmark: str
    title: str
    synthetic: bool
    judge: str
    setting: str
    pack: str
    pack_hash: str
    options: Mapping[str, object]
    unit: str
    samples: int
    available: int
    cells: int
    sample_digest: str
    aspect: str
    statistic: str
    number: CardNumber
    statistics: Mapping[str, CardNumber]
    ranks: tuple[int, int] | None
    ranked: int
    unranked: str
    published: tuple[PublishedPlace, ...]
    references: Mapping[str, CardNumber]
    ceiling: str
    above_constant: bool
    heading: str
    words: Mapping[str, CardNumber]
    useless: tuple[str, ...]
    answers: AnswerHabits
    spent: EntryCost
    files: Mapping[str, str]


@dataclass(frozen=True)
class SelfAgreement:
    """Repeats of a judge past the store: on `n` samples of a benchmark, the share of pairs of repeats with the same answer.

    `spread` is the mean difference of two repeats of a sample, of its mean score or preference.
    """

    judge: str
    benchmark: str
    repeats: int
    same: CardNumber
    spread: CardNumber
    files: Mapping[str, str]
    calls: int = 0


@dataclass(frozen=True)
class AuditRow:
    """An effect of a change to images, as an audit has it."""

    change: str
    aspect: str
    difference: CardNumber
    finding: str

    @property
    def moves(self) -> bool:
        """True where the interval excludes 0."""
        estimate = self.difference.estimate
        return estimate.low > 0 or estimate.high < 0


@dataclass(frozen=True)
class CardAudit:
    """A short audit of a judge, on samples of a benchmark."""

    judge: str
    benchmark: str
    samples: int
    rows: tuple[AuditRow, ...]
    calls: int = 0

    @property
    def flagged(self) -> list[AuditRow]:
        """The effects that fool it."""
        return [row for row in self.rows if row.finding.startswith(FLAGGED)]


@dataclass(frozen=True)
class Card:
    """The card of a model as a judge; `left_out` says in lines what it cannot tell, and `sentence` what it is good for."""

    card: int
    model: str
    made_from: str
    sentence: str
    entries: tuple[CardEntry, ...]
    repeats: tuple[SelfAgreement, ...]
    audits: tuple[CardAudit, ...]
    left_out: tuple[str, ...]
    statistics: Mapping[str, object]
    seed: int
    date: str
    versions: Mapping[str, str] = field(default_factory=dict)
