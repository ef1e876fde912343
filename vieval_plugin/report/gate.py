"""The gate of `vieval rank --margin`: a decision on the first generator, and a sentence for each other one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vieval_plugin.meta_evaluation.comparison import LEAST_FOR_A_TEST
from vieval_plugin.meta_evaluation.corrected_ranking import CORRECTED, LEAST_RATED
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.meta_evaluation.gate import LARGE_FALL, GateEvidence, PromptFall, gate_evidence
from vieval_plugin.meta_evaluation.tables import p_sentence
from vieval_plugin.meta_evaluation.win_rates import PositionBias
from vieval_plugin.records import Run
from vieval_plugin.report.answer import Answer, why_not
from vieval_plugin.stats.non_inferiority import LEVEL, Decision, MeanOfDifferences, fewest_items, more_failures_p
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import ExitCode, VievalError
from vieval_plugin.text.wording import enumeration

MOST_UNJUDGED = 0.01
"""Share of a generator's prompts up to which what could be judged again counts as failures, and decides."""
MOST_FALLS = 10
"""Prompts that are named of those on which the score fell."""


EXIT_CODES = {"not_worse": ExitCode.FINE, "worse": ExitCode.WORSE, "undecided": ExitCode.UNDECIDED}
"""Exit code of each decision."""
SAME_FILES = "All their pictures are the very same files, so the difference is 0."
NO_OTHER = "--margin compares {} with another generator, and there is none"
_NOT_WORSE = "{mine} is not worse than {references} by more than the margin."
_WORSE = "{mine} is worse than {references} by more than the margin."
_FAILS = "{mine} fails more often than {references}."
_UNDECIDED = "It cannot be told whether {mine} is worse than {references} by more than the margin."


@dataclass(frozen=True)
class Gate:
    """Decision on the first generator of a ranking against all others."""

    #: The generator in question.
    challenger: str
    #: The decision.
    decision: Decision
    #: The decision in words.
    answer: Answer
    #: Prompts on which its score fell most, the largest fall first.
    falls: tuple[PromptFall, ...] = ()


def gate(
    run: Run,
    ranking: Leaderboard,
    margin: float,
    options: StatisticsOptions,
    bias: PositionBias | None = None,
    again: str = "",
) -> Gate:
    """Decide that the generator which comes first in the input is not worse than each other one by more than a margin.

    It is not worse if it is not worse than any, and worse if it is worse than one: such a test of all needs no adjusted
    level (Berger 1982, Multiparameter hypothesis testing and acceptance sampling). It is not worse than another only if
    that holds where both have a score and with failures as the lowest score, and if it does not fail more often.

    Args:
        run: the verdicts that the ranking is of.
        ranking: with the generators in the order of the input.
        margin: in the unit of the difference.
        options: those of the ranking.
        bias: the judge's position bias, where win rates decide.
        again: the words on how to judge again what a call or a tool failed on.

    Raises:
        VievalError: there is no other generator, or no prompt that both have a score of and none on which the first
            fails alone.
    """
    mine, *references = [system.label for system in ranking.comparison.compared.systems]
    if not references:
        raise VievalError(f"{NO_OTHER.format(mine)}; rank verdicts on its images with these")
    decided, falls = dict[str, tuple[Decision, Answer]](), list[PromptFall]()
    for reference in references:
        evidence = gate_evidence(run, ranking, mine, reference, options)
        if evidence.same_files:
            decided[reference] = ("not_worse", Answer(_NOT_WORSE, SAME_FILES))
            continue
        compared = ranking.comparison.pair_of(mine, reference) or (bias and bias.contradictory)
        if not compared and not evidence.more_failures[0]:
            raise VievalError(f"--margin cannot compare {mine} with {reference}: {why_not(ranking, (mine, reference))}")
        decided[reference] = _decided(ranking, evidence, mine, reference, margin, bias, again)
        falls += evidence.falls
    falls.sort(key=lambda fall: fall.difference)
    return _of_all(mine, decided, tuple(falls[:MOST_FALLS]))


def _of_all(mine: str, decided: Mapping[str, tuple[Decision, Answer]], falls: tuple[PromptFall, ...]) -> Gate:
    """The gate of all references: the title is on the first that decides it and those like it, the evidence on each."""
    decisions = {decision for decision, _ in decided.values()}
    overall: Decision = "worse" if "worse" in decisions else "undecided" if "undecided" in decisions else "not_worse"
    decisive = next(answer for decision, answer in decided.values() if decision == overall)
    references = [reference for reference, (_, answer) in decided.items() if answer.title == decisive.title]
    title = decisive.title.format(mine=mine, references=enumeration(references))
    evidence = [f"Against {r}: {a.evidence}" if len(decided) > 1 else a.evidence for r, (_, a) in decided.items()]
    return Gate(mine, overall, Answer(title, " ".join(evidence), next=decisive.next), falls)


def same_files_gate(mine: str, references: Sequence[str]) -> Gate:
    """The gate of a generator whose pictures are the same files as all others'."""
    return _of_all(mine, {name: ("not_worse", Answer(_NOT_WORSE, SAME_FILES)) for name in references}, ())


def too_few_sentence(n: int, unit: str, margin: float, fall: float) -> str:
    """Sentence that even equal scores on so many prompts could not pass; empty where they could.

    Args:
        n: prompts or contests that both generators have.
        unit: what these are called.
        margin: from 0 on.
        fall: as `MeanOfDifferences` has it.
    """
    fewest = fewest_items(margin, fall)
    if n >= fewest:
        return ""
    enough = "" if math.isinf(fewest) else f"{fewest:,.0f} equal ones would, or "
    return f"--margin {margin:g}: even equal scores on all {n} {unit} could not pass; {enough}a better generator could"


def _decided(
    ranking: Leaderboard,
    evidence: GateEvidence,
    mine: str,
    reference: str,
    margin: float,
    bias: PositionBias | None,
    again: str,
) -> tuple[Decision, Answer]:
    """The decision on one reference, its title yet to be filled with names."""
    unit = ranking.unit
    scored, penalised = evidence.scored, evidence.penalised
    at_worst = "" if math.isnan(scored.low) else f", at worst {scored.low:.3f} with one bad prompt more"
    if any(evidence.more_failures):
        at_worst += f"; failures as the lowest score: difference {penalised.value:.3f}, at worst {penalised.low:.3f}"
    mean = _mean(ranking, scored, mine, reference)
    measured = f"{mean} on {scored.n} {unit}{at_worst}; the margin is {margin:g}."
    if reason := _nothing_decides(ranking, evidence, mine, reference, bias, again):
        return "undecided", Answer(_UNDECIDED, f"{measured} {reason[:1].upper()}{reason[1:]}.")
    if evidence.fell:
        measured += f" {evidence.fell} of {scored.n} {unit} fell by more than {LARGE_FALL:g}."
    more, fewer = evidence.more_failures
    p = more_failures_p(more, fewer)
    if p <= LEVEL:
        alone = f"{mine} fails on {more} {unit}, where {reference} does on {fewer} others ({p_sentence(p)})."
        return "worse", Answer(_FAILS, f"{alone} {measured}")
    decisions = [scored.decision(margin), penalised.decision(margin)]
    if "worse" in decisions:
        return "worse", Answer(_WORSE, measured)
    if "undecided" not in decisions:
        return "not_worse", Answer(_NOT_WORSE, measured)
    needed = max(scored.items_needed(margin), penalised.items_needed(margin))
    return "undecided", Answer(_UNDECIDED, measured, next=_enough(needed, unit))


def _nothing_decides(
    ranking: Leaderboard, evidence: GateEvidence, mine: str, reference: str, bias: PositionBias | None, again: str
) -> str:
    """Reason why the verdicts decide nothing, whatever the difference; empty where they do."""
    unit = ranking.unit
    for generator, unjudged in zip((mine, reference), evidence.unjudged, strict=True):
        if unjudged > MOST_UNJUDGED * evidence.items:
            return (
                f"{unjudged} of {evidence.items} {unit} of {generator} have no verdict, or one that a failed call or tool "
                f"left without a score; judge them again: {again}"
            )
    if bias is not None and bias.contradictory:
        return f"the judge contradicts itself in {bias.contradicted} of {bias.contests} contests, so its answers decide nothing"
    unranked = [f"{n.system} has {n.reason}" for n in ranking.numbers if n.system in (mine, reference) and n.reason]
    if unranked and evidence.penalised.decision(0) != "worse":
        return unranked[0]
    if evidence.scored.n < LEAST_FOR_A_TEST and more_failures_p(*evidence.more_failures) > LEVEL:
        return f"at least {LEAST_FOR_A_TEST} {unit} are needed"
    pair = ranking.comparison.pair_of(mine, reference)
    if ranking.statistic == CORRECTED and pair and math.isnan(pair.adjusted):
        return f"{LEAST_RATED} {unit} of each are needed, or all"
    return ""


def _mean(ranking: Leaderboard, scored: MeanOfDifferences, mine: str, reference: str) -> str:
    pair = ranking.comparison.pair_of(mine, reference)
    if pair is None:  # a judge that contradicts itself leaves no pairs
        return f"Difference {scored.value:.3f}" if scored.n else "No common score"
    difference = (pair.result if pair.first == mine else pair.result.turned).difference
    ends = f" [{difference.low:.3f}, {difference.high:.3f}]" if difference.has_interval else ""
    return f"Difference {difference.value:.3f}{ends}"


def _enough(needed: float, unit: str) -> str:
    enough = f"No feasible number of {unit}"
    if math.isfinite(needed):
        enough = f"About {round(needed, -max(0, math.floor(math.log10(needed)) - 1)):,.0f} {unit}"
    return f"{enough} would tell, if the difference stays what it is."
