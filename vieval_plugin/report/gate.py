"""The gate of `vieval rank --margin`: a decision on the first generator, and a sentence for each other one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from vieval_plugin.meta_evaluation.comparison import LEAST_FOR_A_TEST
from vieval_plugin.meta_evaluation.corrected_ranking import CORRECTED, LEAST_RATED
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.meta_evaluation.gate import (
    LARGE_FALL,
    GateEvidence,
    PromptFall,
    are_same_files,
    files_by_generator,
    gate_evidence,
)
from vieval_plugin.meta_evaluation.tables import p_sentence
from vieval_plugin.meta_evaluation.win_rates import WIN_RATE, PositionBias
from vieval_plugin.records import Record
from vieval_plugin.report.answer import Answer, why_not
from vieval_plugin.report.sections import Report
from vieval_plugin.stats.non_inferiority import LEVEL, Decision, fewest_items, more_failures_p
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import ExitCode, VievalError
from vieval_plugin.text.wording import enumeration

#: Share of a generator's prompts up to which what could be judged again counts as failures, and decides.
MOST_UNJUDGED = 0.01
#: Prompts that are named of those on which it failed, and of those on which its score fell.
MOST_FALLS = 10

#: Exit code of each decision.
EXIT_CODES = {"not_worse": ExitCode.FINE, "worse": ExitCode.WORSE, "undecided": ExitCode.UNDECIDED}
NO_OTHER = "--margin compares {} with another generator, and there is none"
_NOT_WORSE = "{mine} is not worse than {references} by more than the margin."
_SAME_FILES: tuple[Decision, Answer] = (
    "not_worse",
    Answer(_NOT_WORSE, "All their pictures are the very same files, so the difference is 0."),
)
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
    #: The numbers on each other generator, but for those whose pictures are the same files.
    evidence: tuple[GateEvidence, ...] = ()

    @property
    def falls(self) -> tuple[PromptFall, ...]:
        """At most `MOST_FALLS` prompts on which it alone has no score, and as many on which its score fell most."""
        falls = sorted(chain(*(of_one.falls for of_one in self.evidence)), key=lambda fall: fall.difference)
        failures = [fall for fall in falls if fall.status]
        return (*failures[:MOST_FALLS], *falls[len(failures) :][:MOST_FALLS])


def gate_of(
    report: Report, margin: float, options: StatisticsOptions, limits: Sequence[str] = (), again: str = ""
) -> Gate:
    """Decide that the generator which comes first in the input is not worse than each other one by more than a margin.

    It is not worse if it is not worse than any, and worse if it is worse than one: such a test of all needs no adjusted
    level (Berger 1982, Multiparameter hypothesis testing and acceptance sampling). It is not worse than another only if
    that holds where both have a score and with failures as the lowest score, and if it does not fail more often.

    Args:
        report: with one ranking.
        margin: in the unit of the difference.
        options: those of the report.
        limits: sentences on what limits the answer.
        again: the words on how to judge again what a call or a tool failed on.

    Raises:
        VievalError: there are several rankings, no other generator, or no prompt that both have a score of and none on
            which the first fails alone.
    """
    if (count := len(report.generators)) != 1:
        judges = ", ".join(f"{ranking.benchmark} by {ranking.judge}" for _, ranking in report.generators)
        raise VievalError(f"--margin decides by one ranking, and here are {count} ({judges}); name one judge")
    [(section, ranking)] = report.generators
    [run] = [run for run in section.runs if run.name == ranking.judge]
    bias = section.bias[ranking.judge] if ranking.statistic == WIN_RATE else None
    mine, *references = [system.label for system in ranking.comparison.compared.systems]
    if not references:
        raise VievalError(f"{NO_OTHER.format(mine)}; rank verdicts on its images with these")
    files = files_by_generator(chain(*chain(*run.records.values())))
    decided, evidence = dict[str, tuple[Decision, Answer]](), list[GateEvidence]()
    for reference in references:
        if are_same_files(files[mine], files[reference]):
            decided[reference] = _SAME_FILES
            continue
        evidence.append(gate_evidence(run, ranking, mine, reference, options))
        compared = ranking.comparison.pair_of(mine, reference) or (bias and bias.contradictory)
        if not compared and not evidence[-1].more_failures[0]:
            raise VievalError(f"--margin cannot compare {mine} with {reference}: {why_not(ranking, (mine, reference))}")
        decided[reference] = _decided(ranking, evidence[-1], margin, bias, again)
    of_all = _of_all(mine, decided)
    return replace(of_all, answer=replace(of_all.answer, limits=tuple(limits)), evidence=tuple(evidence))


def same_files_gate(records: Iterable[Record]) -> Gate | None:
    """The gate of a generator whose pictures are the same files as all others'; None where they are not."""
    files = files_by_generator(records)
    mine, *references = files
    if not all(are_same_files(files[mine], files[reference]) for reference in references):
        return None
    return _of_all(mine, dict.fromkeys(references, _SAME_FILES))


def _of_all(mine: str, decided: Mapping[str, tuple[Decision, Answer]]) -> Gate:
    """The gate of all references: the title is on the first that decides it and those like it, the evidence on each."""
    decisions = {decision for decision, _ in decided.values()}
    overall: Decision = "worse" if "worse" in decisions else "undecided" if "undecided" in decisions else "not_worse"
    decisive = next(answer for decision, answer in decided.values() if decision == overall)
    references = [reference for reference, (_, answer) in decided.items() if answer.title == decisive.title]
    title = decisive.title.format(mine=mine, references=enumeration(references))
    evidence = [f"Against {r}: {a.evidence}" if len(decided) > 1 else a.evidence for r, (_, a) in decided.items()]
    return Gate(mine, overall, Answer(title, " ".join(evidence), next=decisive.next))


def too_few_sentence(n: int, margin: float, fall: float) -> str:
    """Sentence that even equal scores on so many prompts could not pass; empty where they could.

    Args:
        n: prompts that both generators have.
        margin: from 0 on.
        fall: as `MeanOfDifferences` has it.

    >>> too_few_sentence(100, 0.02, 1.0)
    '--margin 0.02: on all 100 prompts even equal scores could not pass, which takes 148; only a better generator could'
    """
    fewest = fewest_items(margin, fall)
    if n >= fewest:
        return ""
    enough = "" if math.isinf(fewest) else f", which takes {fewest:,.0f}"
    return f"--margin {margin:g}: on all {n} prompts even equal scores could not pass{enough}; only a better generator could"


def _decided(
    ranking: Leaderboard, evidence: GateEvidence, margin: float, bias: PositionBias | None, again: str
) -> tuple[Decision, Answer]:
    """The decision on one reference, its title yet to be filled with names."""
    unit, scored, penalised = ranking.unit, evidence.scored, evidence.penalised
    at_worst = "" if math.isnan(scored.low) else f", at worst {scored.low:.3f} with one bad prompt more"
    if any(evidence.more_failures):
        at_worst += f"; failures as the lowest score: difference {penalised.value:.3f}, at worst {penalised.low:.3f}"
    measured = f"{_difference(ranking, evidence)} on {scored.n} {unit}{at_worst}; the margin is {margin:g}."
    if reason := _nothing_decides(ranking, evidence, bias, again):
        return "undecided", Answer(_UNDECIDED, f"{measured} {reason[:1].upper()}{reason[1:]}.")
    if evidence.fell:
        measured += f" {evidence.fell} of {scored.n} {unit} fell by more than {LARGE_FALL:g}."
    more, fewer = evidence.more_failures
    if (p := more_failures_p(more, fewer)) <= LEVEL:
        others = f"where {evidence.reference} does on {fewer} others ({p_sentence(p)})"
        return "worse", Answer(_FAILS, f"{evidence.challenger} fails on {more} {unit}, {others}. {measured}")
    decisions = [scored.decision(margin), penalised.decision(margin)]
    if "worse" in decisions:
        return "worse", Answer(_WORSE, measured)
    if "undecided" not in decisions:
        return "not_worse", Answer(_NOT_WORSE, measured)
    needed, enough = max(scored.items_needed(margin), penalised.items_needed(margin)), f"No feasible number of {unit}"
    if math.isfinite(needed):
        enough = f"About {round(needed, -max(0, math.floor(math.log10(needed)) - 1)):,.0f} {unit}"
    stays = f"if the difference stays at {scored.value:.3f}"
    return "undecided", Answer(_UNDECIDED, measured, next=f"{enough} would tell, {stays}.")


def _nothing_decides(ranking: Leaderboard, evidence: GateEvidence, bias: PositionBias | None, again: str) -> str:
    """Reason why the verdicts decide nothing, whatever the difference; empty where they do."""
    unit, compared = ranking.unit, (evidence.challenger, evidence.reference)
    for generator, unjudged in zip(compared, evidence.unjudged, strict=True):
        if unjudged > MOST_UNJUDGED * evidence.items:
            return (
                f"{unjudged} of {evidence.items} {unit} of {generator} have no verdict, or one that a failed call or tool "
                f"left without a score; judge them again: {again}"
            )
    if bias is not None and bias.contradictory:
        return f"the judge contradicts itself in {bias.contradicted} of {bias.contests} contests, so its answers decide nothing"
    unranked = [f"{n.system} has {n.reason}" for n in ranking.numbers if n.system in compared and n.reason]
    if unranked and evidence.penalised.decision(0) != "worse":
        return unranked[0]
    if evidence.scored.n < LEAST_FOR_A_TEST and more_failures_p(*evidence.more_failures) > LEVEL:
        return f"at least {LEAST_FOR_A_TEST} {unit} are needed"
    pair = ranking.comparison.pair_of(*compared)
    if reason := ranking.comparison.compared.undecided_reason:
        return reason
    if ranking.statistic == CORRECTED and pair and math.isnan(pair.adjusted):
        return f"{LEAST_RATED} {unit} of each are needed, or all images"
    return ""


def _difference(ranking: Leaderboard, evidence: GateEvidence) -> str:
    """The difference of the judge's means with its interval, in words."""
    pair = ranking.comparison.pair_of(evidence.challenger, evidence.reference)
    if pair is None:  # a judge that contradicts itself leaves no pairs
        return f"Difference {evidence.scored.value:.3f}" if evidence.scored.n else "No common score"
    difference = (pair if pair.first == evidence.challenger else pair.turned).result.difference
    ends = f" [{difference.low:.3f}, {difference.high:.3f}]" if difference.has_interval else ""
    return f"Difference {difference.value:.3f}{ends}"
