"""Statistics that systems are ranked by, each with the sentences that state its outcomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

#: The score of a prompt from those of its images; None where there are too few.
PromptScore: TypeAlias = Callable[[Sequence[float]], float | None]


def mean_of(values: Sequence[float]) -> float:
    """The mean of the scores of one prompt's images.

    >>> mean_of([0.5, 1.0])
    0.75
    """
    return math.fsum(values) / len(values)


class Outcome(StrEnum):
    """Outcome of a leaderboard, by its name in files."""

    CONTRADICTION = "contradiction"
    NO_NUMBER = "no_number"
    CONSTANT_JUDGE = "constant_judge"
    ALONE_ABOVE_CONSTANT = "alone_above_constant"
    ALONE_NOT_ABOVE_CONSTANT = "alone_not_above_constant"
    ALONE_UNTESTED = "alone_untested"
    ALONE_SAME_ANSWER = "alone_same_answer"
    ALONE_GENERATOR = "alone_generator"
    ONLY_ONE = "only_one"
    NOT_COMPARED = "not_compared"
    FEW_RATINGS = "few_ratings"
    LEADS_SO_FAR = "leads_so_far"
    BEFORE_A_LOOK = "before_a_look"
    SELECTED_LABELS = "selected_labels"
    BEST = "best"
    BETTER = "better"
    BETTER_WITHOUT_FAILURES = "better_without_failures"
    EQUAL_TWO = "equal_two"
    EQUAL = "equal"
    EQUAL_RANKED = "equal_ranked"
    FIRST_OF_EQUALS = "first_of_equals"
    BEST_STEPS = "best_steps"
    FIRST_BUT_BEATEN = "first_but_beaten"
    BETTER_ON_COMMON = "better_on_common"
    NONE_BETTER = "none_better"

    @property
    def shows_no_difference(self) -> bool:
        """True where all that are ranked cannot be told apart."""
        return self in (Outcome.EQUAL_TWO, Outcome.EQUAL, Outcome.EQUAL_RANKED)


#: The usual sentence of each outcome, without numbers.
USUAL: Mapping[Outcome, str] = {
    Outcome.CONTRADICTION: "{judge} contradicts itself too often to rank the {entrants}.",
    Outcome.CONSTANT_JUDGE: (
        "{judge} gives every image the same score, so it cannot compare them."
    ),
    Outcome.NO_NUMBER: "No {entrant} has enough scores on {benchmark}.",
    Outcome.ALONE_ABOVE_CONSTANT: (
        "{first} agrees with {against} better than a constant answer would."
    ),
    Outcome.ALONE_NOT_ABOVE_CONSTANT: (
        "{first} is not shown to be better than a constant answer on {benchmark}."
    ),
    Outcome.ALONE_UNTESTED: (
        "Only {first} judged {benchmark}, so it cannot be compared."
    ),
    Outcome.ALONE_SAME_ANSWER: "{first} almost always gives the same answer on {benchmark}.",
    Outcome.ALONE_GENERATOR: (
        "Only {first_images} were judged, so they cannot be compared."
    ),
    Outcome.ONLY_ONE: "Only {first} has enough scores on {benchmark}.",
    Outcome.NOT_COMPARED: "The {entrants} cannot be compared on {benchmark}.",
    Outcome.FEW_RATINGS: "Too few images are rated to tell which of {names} is {comparative}.",
    Outcome.LEADS_SO_FAR: "{first} leads so far.",
    Outcome.BEFORE_A_LOOK: "It is too early to tell which of {names} is {comparative}.",
    Outcome.SELECTED_LABELS: (
        "The labels are not a random sample of the images, so they cannot show which of {names} "
        "is {comparative}."
    ),
    Outcome.BEST: "{scope}{first_possessive} images are the best of the {count}.",
    Outcome.BETTER: "{first_possessive} images are better than {second_possessive}.",
    Outcome.BETTER_WITHOUT_FAILURES: (
        "{first_possessive} lead over {second} disappears if its failures count as the lowest score."
    ),
    Outcome.EQUAL_TWO: "{first} and {second} cannot be told apart.",
    Outcome.EQUAL: "The {count} {entrants} cannot be told apart.",
    Outcome.EQUAL_RANKED: "The {count} ranked {entrants} cannot be told apart.",
    Outcome.FIRST_OF_EQUALS: "{scope}{first} comes first, but cannot be told apart from {equal}.",
    Outcome.BEST_STEPS: "{scope}{first} is best, but cannot be told apart from {equal}.",
    Outcome.FIRST_BUT_BEATEN: (
        "{scope}{first} comes first, but {better} is better on the {unit} they have in common."
    ),
    Outcome.BETTER_ON_COMMON: "{pairs} on the {unit} they have in common.",
    Outcome.NONE_BETTER: "No {entrant} is shown to be better than another.",
}


@dataclass(frozen=True)
class Measure:
    """Quantity by which systems are ranked.

    Another package brings one for generators under the entry point group `vieval.measures`, as
    `MEASURES`: its `score_images` is averaged over prompts, and with `leads` it is what generators
    are ranked and gated by, in the place of the mean.

    >>> Measure("mean over prompts", "Mean").subject("O")
    'Mean O'
    """

    #: Name of the statistic in files.
    name: str
    #: Noun that begins a sentence, before the aspect where there is one.
    noun: str
    #: Sentences on outcomes that are not the usual ones.
    phrases: Mapping[Outcome, str] = field(default_factory=dict)
    #: Score of a prompt from those of its images.
    score_images: PromptScore = mean_of
    #: Value of equals, of shares of contests; None of scores of images.
    even: float | None = None
    #: True where annotators' ratings correct the judge's scores.
    uses_ratings: bool = False
    #: True for the mean of all scores: ratings can correct it, and track records are of it.
    is_plain_mean: bool = False
    #: True where generators are ranked by it, unless another package's leads too.
    leads: bool = False

    @property
    def counts_contests(self) -> bool:
        """True for shares of contests."""
        return self.even is not None

    def subject(self, aspect: str) -> str:
        """The noun with its aspect, as a sentence begins."""
        if self.counts_contests:
            return self.noun
        return f"{self.noun} {aspect}"

    def sentence(self, outcome: Outcome, words: Mapping[str, str]) -> str:
        """The sentence on an outcome.

        Args:
            outcome: what a leaderboard shows.
            words: names that fill it.
        """
        return (self.phrases.get(outcome) or USUAL[outcome]).format(**words)


#: Measure of judges, by their agreement with annotators.
AGREEMENT = Measure(
    "agreement",
    "Agreement",
    {
        Outcome.BEST: "{scope}{first} agrees best with {against}.",
        Outcome.FIRST_OF_EQUALS: (
            "{scope}{first} agrees most with {against}, but cannot be told apart from {equal}."
        ),
        Outcome.FIRST_BUT_BEATEN: (
            "{scope}{first} agrees most with {against}, but {better} is better on the {unit} they "
            "have in common."
        ),
    },
)
#: Sentences on what is a judge's opinion alone.
OPINION: Mapping[Outcome, str] = {
    Outcome.BEST: "{scope}{judge} rates {first_possessive} images the best of the {count}.",
    Outcome.BETTER: "{judge} rates {first_possessive} images better than {second_possessive}.",
    Outcome.BETTER_WITHOUT_FAILURES: (
        "{judge} rates {first} above {second} only if {first_possessive} failures are left out."
    ),
    Outcome.EQUAL_TWO: "{judge} cannot tell {first} and {second} apart.",
    Outcome.EQUAL: "{judge} cannot tell the {count} {entrants} apart.",
    Outcome.EQUAL_RANKED: "{judge} cannot tell the {count} ranked {entrants} apart.",
    Outcome.FIRST_OF_EQUALS: (
        "{scope}{judge} gives {first} the highest {statistic}, but cannot tell it apart from "
        "{equal}."
    ),
    Outcome.BEST_STEPS: (
        "{scope}{judge} rates {first} best, but cannot tell it apart from {equal}."
    ),
    Outcome.FIRST_BUT_BEATEN: (
        "{scope}{judge} gives {first} the highest {statistic}, but {better} is better on the "
        "{unit} they have in common."
    ),
}
#: Sentences on what a judge measures: more of it need not be better.
MEASURED: Mapping[Outcome, str] = {
    Outcome.BEST: "{scope}{judge} finds {first_possessive} images the {most} of the {count}.",
    Outcome.BEST_STEPS: (
        "{scope}{judge} finds {first_possessive} images {most}, but cannot tell {first} apart from "
        "{equal}."
    ),
    Outcome.BETTER: (
        "{judge} finds {first_possessive} images {more} than {second_possessive}."
    ),
}
