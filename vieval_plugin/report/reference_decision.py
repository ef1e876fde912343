"""The decision of a gate on one reference: a finding, the numbers behind it, and how many prompts
would decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.meta_evaluation.gate import GateEvidence
from vieval_plugin.meta_evaluation.tables import p_sentence
from vieval_plugin.meta_evaluation.win_rates import PositionBias
from vieval_plugin.report.words import capitalised, share_of_level, short_decimal
from vieval_plugin.stats.decisions import (
    LARGE_FALL,
    LEAST_FOR_A_TEST,
    LEAST_RATED,
    MOST_FILLED,
    MOST_UNJUDGED,
    MOST_UNREAD,
    ONE_SIDED_LEVEL,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.non_inferiority import Decision, more_failures_p
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural


class Finding(StrEnum):
    """Finding of a gate on other generators; the value is its sentence."""

    NOT_WORSE = "{judge} finds that {mine} is not worse than {references} by more than the margin."
    SAME_FILES = "{mine} is not worse than {references} by more than the margin."
    BETTER = "{judge} finds that {mine} is better than {references}."
    WORSE = (
        "{judge} finds that {mine} is worse than {references} by more than the margin."
    )
    WORSE_BY_FAILURES = (
        "{judge} finds that {mine} is worse than {references} by more than the margin if "
        "failures count as the lowest score."
    )
    PERHAPS_WORSE = (
        "{judge} finds that {mine} is worse than {references}, but perhaps by less than the "
        "margin."
    )
    FAILS = "{mine} fails more often than {references}, as judged by {judge}."
    UNDECIDED = "{judge} cannot tell whether {mine} is worse than {references} by more than the margin."
    INSUFFICIENT = (
        "The verdicts from {judge} are not sufficient to tell whether {mine} is worse than "
        "{references}."
    )
    UNREAD = (
        "Too many replies from {judge} could not be read, so {mine} cannot be compared with "
        "{references}."
    )
    FILLED = (
        "{judge} likely fills in scores without judging, so {mine} cannot be compared with "
        "{references}."
    )

    @property
    def unreadable(self) -> bool:
        """True where the judge cannot be read, or fills in its scores."""
        return self in (Finding.UNREAD, Finding.FILLED)


_DOUBTS = {
    Finding.UNREAD: "too many replies could not be read",
    Finding.FILLED: "the judge likely fills in scores without judging",
    Finding.PERHAPS_WORSE: "worse, but perhaps by less than the margin",
    Finding.UNDECIDED: "the interval includes the margin",
    Finding.INSUFFICIENT: "the verdicts are not sufficient",
}
_READABLE = "Use a model that answers in the judge's format, or a server that enforces JSON schemas."


@dataclass(frozen=True)
class ReferenceDecision:
    """The decision on one other generator."""

    decision: Decision
    finding: Finding
    #: The numbers behind it, in words.
    evidence: str
    next: str = ""
    #: Objection to the finding.
    objection: str = ""

    @property
    def doubt(self) -> str:
        """The reason why the data cannot tell, in a few words; empty where they can."""
        if self.decision != "undecided":
            return ""
        return self.objection or _DOUBTS[self.finding]

    def title(self, **names: str) -> str:
        """The sentence of the finding, with the objection to it."""
        return objected(self.finding.format(**names), self.objection)


def objected(title: str, objection: str) -> str:
    """A title with the objection to it, if any."""
    if not objection:
        return title
    return f"{title.removesuffix('.')}, but {objection}."


SAME_FILES = ReferenceDecision(
    "not_worse",
    Finding.SAME_FILES,
    "All their images are identical files, so the difference is 0.",
)


@dataclass(frozen=True)
class ReferenceComparison:
    """A generator beside one reference, as a gate compares them."""

    ranking: Leaderboard
    evidence: GateEvidence
    #: Largest fall of the mean that passes.
    margin: float
    #: The judge's position bias, where contests decide.
    bias: PositionBias | None

    @property
    def generators(self) -> tuple[str, str]:
        """The generator in question and the reference."""
        return self.evidence.challenger, self.evidence.reference

    @property
    def pair(self) -> SystemPair | None:
        """Both in the ranking; None where it does not compare them."""
        return self.ranking.comparison.pair_of(*self.generators)

    @property
    def difference(self) -> Estimate:
        """The difference with the interval that the ranking prints; a judge that contradicts
        itself leaves none.
        """
        pair = self.pair
        if not pair:
            return Estimate(self.evidence.scored.value)
        if pair.first != self.evidence.challenger:
            pair = pair.turned
        return pair.result.difference

    @property
    def low(self) -> float:
        """The lower end of the difference's interval: that printed or Student's, whichever is
        lower.
        """
        ends = [self.evidence.scored.plain_low, self.difference.low]
        finite_ends = (end for end in ends if not math.isnan(end))
        return min(finite_ends, default=math.nan)

    @property
    def unit(self) -> str:
        """The unit of chance: groups where prompts of one template count as one."""
        if self.ranking.measure.uses_ratings:
            return self.ranking.unit
        if self.evidence.scored.n < self.evidence.compared:
            return "groups"
        return self.ranking.unit

    @property
    def level(self) -> float:
        """Two-sided level at which the ranking decides, less at a look at labels."""
        return self.ranking.comparison.compared.level

    @property
    def is_unread(self) -> bool:
        """True where too many replies on the reference could not be read."""
        unread, replies = self.evidence.unread
        return unread > MOST_UNREAD * replies


def require_comparable(comparison: ReferenceComparison) -> None:
    """Raise VievalError where verdicts do not compare two generators."""
    bias = comparison.bias
    if comparison.pair or (bias and bias.contradictory):
        return
    evidence = comparison.evidence
    if comparison.is_unread or evidence.more_failures[0] or evidence.lacks_scores:
        return
    ranking = comparison.ranking
    reasons = ranking.reasons_of(comparison.generators)
    if not reasons:
        reasons = [f"they have no {ranking.unit} in common"]
    mine, reference = comparison.generators
    text = "; ".join(reasons)
    raise VievalError(f"--margin cannot compare {mine} with {reference}: {text}")


def decide(
    comparison: ReferenceComparison,
    again: str,
    filled: Sequence[int],
) -> ReferenceDecision:
    """Decide on one reference.

    Args:
        comparison: with it.
        again: the words on how to judge again what a call or a tool failed on.
        filled: prompts of each generator whose scores are likely filled in.
    """
    evidence = comparison.evidence
    measured = _measured_sentences(comparison)
    if comparison.is_unread:
        unread, replies = evidence.unread
        counts = (
            f"{unread} of {replies} replies on {evidence.reference} could not be read"
        )
        why = f"{counts} (limit {MOST_UNREAD:.0%}). {measured}"
        return ReferenceDecision("undecided", Finding.UNREAD, why, _READABLE)
    fillers = _fillers_sentence(comparison, filled)
    if min(filled) > MOST_FILLED * evidence.items:
        why = f"{fillers} (limit {MOST_FILLED:.0%}). {measured}"
        return ReferenceDecision("undecided", Finding.FILLED, why, _READABLE)
    if any(filled):
        measured += f" {fillers}."
    reason = _undecided_reason(comparison, again)
    if reason:
        why = f"{capitalised(reason)}. {measured}"
        return ReferenceDecision("undecided", Finding.INSUFFICIENT, why)
    measured += _large_changes(comparison)
    return _decision_by_margin(comparison, measured)


def _measured_sentences(comparison: ReferenceComparison) -> str:
    """The measured difference in words, and its bounds where they differ."""
    evidence = comparison.evidence
    difference = _difference_sentence(comparison)
    measured = f"{difference} Allowed: {comparison.margin:g} lower."
    if not math.isnan(evidence.scored.low):
        share = share_of_level(comparison.level / 2)
        low_text = _bound(evidence.scored.low)
        measured += f" With one more bad prompt: {low_text} (one-sided {share} bound)."
    if any(evidence.more_failures) or evidence.lacks_scores:
        penalised = evidence.penalised
        change = _signed(penalised.value)
        if not math.isnan(penalised.low):
            change += f", {_bound(penalised.low)}"
        measured += f" With failures as the lowest score: {change}."
    return measured


def _difference_sentence(comparison: ReferenceComparison) -> str:
    """The difference of the judge's means with its interval."""
    ranking = comparison.ranking
    evidence = comparison.evidence
    count = evidence.scored.n
    if not count:
        return f"No {ranking.unit.removesuffix('s')} has scores of both generators."
    where = f"on {count} {ranking.unit}"
    if comparison.unit == "groups":
        where = f"on {evidence.compared} {ranking.unit} in {count} groups"
    measured = f"The {ranking.measure.noun.lower()}"
    opponent = "½"
    if not ranking.measure.counts_contests:
        measured += f" {ranking.aspect}"
        opponent = f"that of {evidence.reference}"
    change = change_text(comparison.difference, comparison.level)
    subject = f"{measured} of {evidence.challenger}"
    return f"{subject} is {change} than {opponent} {where}."


def _bound(low: float) -> str:
    """The lower bound of a change in words.

    >>> _bound(-0.1), _bound(0.1)
    ('at most 0.100 lower', 'at least 0.100 higher')
    """
    reach = "at most" if low < 0 else "at least"
    return f"{reach} {_signed(low)}"


def _signed(change: float) -> str:
    """A change in words.

    >>> _signed(-0.1), _signed(0.1)
    ('0.100 lower', '0.100 higher')
    """
    direction = "lower" if change < 0 else "higher"
    return f"{short_decimal(abs(change), 3)} {direction}"


def change_text(change: Estimate, level: float = 2 * ONE_SIDED_LEVEL) -> str:
    """A change in words, with its interval at a two-sided level where it has one.

    >>> change_text(Estimate(-0.1)), change_text(Estimate(-0.1, -0.2, 0.05))
    ('0.100 lower', '0.100 lower (95% interval 0.200 lower to 0.050 higher)')
    """
    text = _signed(change.value)
    if not change.has_interval:
        return text
    low = _signed(change.low)
    high = _signed(change.high)
    share = share_of_level(level)
    return f"{text} ({share} interval {low} to {high})"


def _fillers_sentence(comparison: ReferenceComparison, filled: Sequence[int]) -> str:
    total = f"{comparison.evidence.items} {comparison.ranking.unit}"
    texts = []
    for name, number in zip(comparison.generators, filled, strict=True):
        texts.append(f"{number} of {total} of {name}")
    counts = " and ".join(texts)
    return f"Scores were likely filled in without judging for {counts}"


def _undecided_reason(comparison: ReferenceComparison, again: str) -> str:
    """Reason why the verdicts decide nothing, whatever the difference; empty where they do."""
    evidence = comparison.evidence
    ranking = comparison.ranking
    unit = ranking.unit
    numbers = zip(comparison.generators, evidence.unjudged, strict=True)
    for generator, unjudged in numbers:
        if unjudged > MOST_UNJUDGED * evidence.items:
            have = "has" if unjudged == 1 else "have"
            return (
                f"{unjudged} of {evidence.items} {unit} of {generator} {have} "
                "no verdict, "
                "or no score because a call or tool failed. "
                f"To judge them again, run {again}"
            )
    bias = comparison.bias
    if bias is not None and bias.contradictory:
        return (
            f"the judge contradicts itself in {bias.contradicted} of {bias.contests} "
            "contests, so its answers cannot be used"
        )
    unranked = ranking.reasons_of(comparison.generators)
    if unranked and evidence.penalised.decision(0) != "worse":
        return unranked[0]
    if evidence.scored.n < LEAST_FOR_A_TEST and not _fails_more_often(evidence):
        return f"at least {LEAST_FOR_A_TEST} {unit} are needed"
    reason = ranking.comparison.compared.undecided_reason
    if reason:
        return reason
    if ranking.measure.uses_ratings and not _ratings_decide(comparison):
        return (
            f"at least {LEAST_RATED} {unit} of each generator, "
            "or all images, are needed"
        )
    return ""


def _ratings_decide(comparison: ReferenceComparison) -> bool:
    """Return whether the ratings suffice; failures decide also where they compare nothing."""
    pair = comparison.pair
    if not pair:
        return _fails_more_often(comparison.evidence)
    return not math.isnan(pair.adjusted)


def _fails_more_often(evidence: GateEvidence) -> bool:
    """Return whether the challenger fails significantly more often than the reference."""
    return more_failures_p(*evidence.more_failures) <= ONE_SIDED_LEVEL


def _large_changes(comparison: ReferenceComparison) -> str:
    """Sentence on prompts that fell or rose far, and on contests that an answer to each side
    makes ties.
    """
    evidence = comparison.evidence
    measure = comparison.ranking.measure
    if measure.counts_contests:
        bias = comparison.bias
        if not bias or not bias.contradicted:
            return ""
        contests = plural(bias.contradicted, "contradictory contest")
        return f" {contests} counted as tied, which reduces differences."
    if not evidence.fell:
        return ""
    subject = "By the judge alone, scores" if measure.uses_ratings else "Scores"
    prompts = f"{evidence.fell} of {evidence.compared} prompts"
    return (
        f" {subject} fell by more than {LARGE_FALL:g} on {prompts} "
        f"and rose by as much on {evidence.rises}."
    )


def _decision_by_margin(
    comparison: ReferenceComparison, measured: str
) -> ReferenceDecision:
    """Decision by failures first, then by the margin."""
    evidence = comparison.evidence
    margin = comparison.margin
    scored = evidence.scored
    penalised = evidence.penalised
    if _fails_more_often(evidence):
        why = f"{_failures_sentence(comparison)} {measured}"
        return ReferenceDecision("worse", Finding.FAILS, why)
    decision = scored.decision(margin)
    penalised_decision = penalised.decision(margin)
    if decision == "worse":
        return ReferenceDecision("worse", Finding.WORSE, measured)
    if penalised_decision == "worse":
        return ReferenceDecision("worse", Finding.WORSE_BY_FAILURES, measured)
    if "undecided" not in (decision, penalised_decision):
        return ReferenceDecision("not_worse", Finding.NOT_WORSE, measured)
    needed = max(scored.items_needed(margin), penalised.items_needed(margin))
    enough = _enough(needed, comparison.unit)
    finding, objection = _undecided_finding(comparison)
    step = f"{enough} would be enough to decide, if the difference stays the same."
    return ReferenceDecision(
        "undecided",
        finding,
        measured,
        step,
        objection,
    )


def _failures_sentence(comparison: ReferenceComparison) -> str:
    """The prompts on which each of both fails alone, with the p of their difference."""
    mine, reference = comparison.generators
    more, fewer = comparison.evidence.more_failures
    p_text = p_sentence(more_failures_p(more, fewer))
    unit = comparison.ranking.unit
    failures = f"Only {mine} fails on {more} {unit}"
    return f"{failures}, only {reference} on {fewer} ({p_text})."


def _enough(needed: float, units: str) -> str:
    if not math.isfinite(needed):
        return f"No feasible number of {units}"
    digits = 1 - math.floor(math.log10(needed))
    rounded = round(needed, digits)
    return f"About {rounded:,.0f} {units}"


def _undecided_finding(comparison: ReferenceComparison) -> tuple[Finding, str]:
    """Finding from the interval where the gate cannot decide, and the objection to it."""
    scored = comparison.evidence.scored
    if max(scored.high, comparison.difference.high) < 0:
        return Finding.PERHAPS_WORSE, ""
    low = comparison.low
    least = -comparison.margin
    if not low > least:
        return Finding.UNDECIDED, ""
    finding = Finding.NOT_WORSE
    if low > 0:
        finding = Finding.BETTER
        least = 0.0
    if not comparison.evidence.penalised.plain_low > least:
        failures = "failures"
        failure_count = comparison.evidence.more_failures[0]
        if failure_count:
            failures = plural(failure_count, "failure")
        return finding, f"{failures}, counted as the lowest score, could change this"
    return finding, f"{scored.n} {comparison.unit} are too few to pass"
