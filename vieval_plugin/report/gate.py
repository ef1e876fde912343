"""The gate of `vieval rank --margin`: a decision on the first generator, and a sentence for each
other one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import cast

from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.meta_evaluation.gate import (
    ControlResult,
    GateEvidence,
    PromptFall,
    are_same_files,
    files_by_generator,
    fillers,
    gate_evidence,
    shows_an_image,
)
from vieval_plugin.meta_evaluation.tables import p_sentence
from vieval_plugin.meta_evaluation.vote_answers import VOTES
from vieval_plugin.meta_evaluation.win_rates import EVEN, PositionBias
from vieval_plugin.records import YOUR_IMAGES, Provenance, Record, Run
from vieval_plugin.report.answer import Answer
from vieval_plugin.report.sections import Report, Section
from vieval_plugin.report.words import share_of_level
from vieval_plugin.stats.decisions import (
    CONTROL_ITEMS,
    CUSUM_LIMIT,
    FIRST_NIGHTS,
    LARGE_FALL,
    LEAST_FOR_A_TEST,
    LEAST_RATED,
    MOST_FILLED,
    MOST_UNJUDGED,
    MOST_UNREAD,
    ONE_SIDED_LEVEL,
)
from vieval_plugin.stats.drift import cusum
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.non_inferiority import Decision, fewest_items, more_failures_p
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import ExitCode, VievalError
from vieval_plugin.text.wording import enumeration, plural

#: Prompts that are named of those on which it failed, and of those on which its score fell.
MOST_FALLS = 10

#: Exit code of each decision.
EXIT_CODES = {
    "not_worse": ExitCode.FINE,
    "worse": ExitCode.WORSE,
    "undecided": ExitCode.UNDECIDED,
}
NO_OTHER = "--margin requires another generator to compare {} with"


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


_BLIND = "the judge may not notice a fall"
_DOUBTS = {
    Finding.UNREAD: "too many replies could not be read",
    Finding.FILLED: "the judge likely fills in scores without judging",
    Finding.PERHAPS_WORSE: "worse, but perhaps by less than the margin",
    Finding.UNDECIDED: "the interval includes the margin",
    Finding.INSUFFICIENT: "the verdicts are not sufficient",
}
_SLOW_FALL = "{judge} finds a slow fall across the nightly builds, first on {date}."
_MOST_BARS = 60
_CONTROL = "Positive control"
_READABLE = "Use a model that answers in the judge's format, or a server that enforces JSON schemas."
_SPOILT = {
    "exchanged": "images swapped among {} prompts",
    "degraded": "{} degraded images",
}


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
        return (
            (self.objection or _DOUBTS[self.finding])
            if self.decision == "undecided"
            else ""
        )

    def title(self, **names: str) -> str:
        """The sentence of the finding, with the objection to it."""
        return _objected(self.finding.format(**names), self.objection)


_SAME_FILES = ReferenceDecision(
    "not_worse",
    Finding.SAME_FILES,
    "All their images are identical files, so the difference is 0.",
)


@dataclass(frozen=True)
class Gate:
    """Decision on the first generator of a ranking against all others."""

    #: The generator in question.
    challenger: str
    decision: Decision
    #: The decision in words.
    answer: Answer
    #: The numbers on each other generator, but for those whose pictures are the same files.
    evidence: tuple[GateEvidence, ...] = ()
    #: Each one's difference with the interval that the ranking prints.
    differences: tuple[Estimate, ...] = ()
    #: The judge in words.
    judge: str = ""
    #: True where the mean is higher than that of each other generator, also with failures as the
    #: lowest score.
    better: bool = False
    #: True where too many replies on a reference could not be read, or too many scores are filled
    #: in.
    unreadable: bool = False
    #: Score that decides, empty where no score does; results of the positive control.
    aspect: str = ""
    control: tuple[ControlResult, ...] = ()
    #: True where a history of nights has raised an alarm.
    alarm: bool = False
    #: Largest fall of the mean that passes.
    margin: float = 0.0
    #: Why the data cannot tell, in a few words; empty where they can.
    doubt: str = ""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code: a judge that cannot be read before a fall, and a slow fall last."""
        if self.unreadable:
            return ExitCode.UNDECIDED
        if self.alarm and self.decision == "not_worse":
            return ExitCode.SLOW_FALL
        return EXIT_CODES[self.decision]

    @property
    def falls(self) -> tuple[PromptFall, ...]:
        """At most `MOST_FALLS` prompts on which it alone has no score, and as many on which its
        score fell most.
        """
        all_falls = chain(*(judge_evidence.falls for judge_evidence in self.evidence))
        falls = sorted(all_falls, key=lambda fall: fall.difference)
        failures = [fall for fall in falls if fall.status]
        score_falls = falls[len(failures) :]
        return (*failures[:MOST_FALLS], *score_falls[:MOST_FALLS])


def gate_of(
    report: Report,
    margin: float,
    options: StatisticsOptions,
    limits: Sequence[str] = (),
    again: str = "",
) -> Gate:
    """Decide that the generator which comes first in the input is not worse than each other one by
    more than a margin.

    It is not worse if it is not worse than any, and worse if it is worse than one: such a test of
    all needs no adjusted level (Berger 1982, Multiparameter hypothesis testing and acceptance
    sampling). It is not worse than another only if that holds where both have a score and with
    failures as the lowest score, and if it does not fail more often.

    Args:
        report: with one ranking.
        margin: in the unit of the difference.
        options: those of the report.
        limits: sentences on what limits the answer.
        again: the words on how to judge again what a call or a tool failed on.

    Raises:
        VievalError: there are several rankings, no other generator, or no prompt that both have a
            score of and none on which the first fails alone.
    """
    section, ranking = _only_ranking(report)
    run = section.run_of(ranking)
    bias = section.bias[ranking.judge] if ranking.measure.counts_contests else None
    mine, *references = [system.label for system in ranking.comparison.compared.systems]
    if not references:
        raise VievalError(f"{NO_OTHER.format(mine)}; pass verdicts on its images too")
    files = files_by_generator(run.all_records)
    is_read = any(record.verdict.status.usable for record in run.all_records)
    decided = {}
    evidence = []
    for reference in references:
        if is_read and are_same_files(files[mine], files[reference]):
            decided[reference] = _SAME_FILES
            continue
        pair_evidence = gate_evidence(run, ranking, mine, reference, options)
        evidence.append(pair_evidence)
        filled = _fillers(run, mine, reference)
        _require_comparable(ranking, pair_evidence, bias)
        decided[reference] = _decided(
            ranking, pair_evidence, margin, bias, again, filled
        )
    gate = _combined_gate(mine, decided, _judge_words(ranking))
    track: tuple[str, ...] = ()
    if ranking.measure.is_plain_mean and evidence:
        track = _track_sentences(run.all_records[0].provenance, ranking)
    return _add_evidence(gate, ranking, evidence, margin, (*track, *limits))


def _only_ranking(report: Report) -> tuple[Section, Leaderboard]:
    """Return the ranking of a report, and its section.

    Raises:
        VievalError: the report has several rankings, or none.
    """
    count = len(report.generators)
    if count != 1:
        rankings = [ranking for _, ranking in report.generators]
        texts = [f"{board.benchmark} by {board.judge}" for board in rankings]
        judges = ", ".join(texts)
        raise VievalError(
            f"--margin requires one ranking, got {count} ({judges}); use verdicts of one judge"
        )
    return report.generators[0]


def _add_evidence(
    gate: Gate,
    ranking: Leaderboard,
    evidence: Sequence[GateEvidence],
    margin: float,
    limits: Sequence[str],
) -> Gate:
    """Add the evidence against each reference to a gate, and limits to its answer."""
    lows = [min(_low(ranking, e), e.penalised.plain_low) for e in evidence]
    differences = tuple(_difference(ranking, e) for e in evidence)
    return replace(
        gate,
        answer=replace(gate.answer, limits=tuple(limits)),
        evidence=tuple(evidence),
        differences=differences,
        margin=margin,
        better=all(low > 0 for low in lows),
        aspect="" if ranking.aspect == VOTES else ranking.aspect,
    )


def _judge_words(ranking: Leaderboard) -> str:
    judge = ranking.judge.words if ranking.judge else ""
    if ranking.measure.uses_ratings:
        return f"{judge}, corrected by people's ratings,"
    return judge


def _require_comparable(
    ranking: Leaderboard, evidence: GateEvidence, bias: PositionBias | None
) -> None:
    mine = evidence.challenger
    reference = evidence.reference
    compared = ranking.comparison.pair_of(mine, reference) or (
        bias and bias.contradictory
    )
    if not compared and not _is_unread(evidence) and not evidence.more_failures[0]:
        reasons = ranking.reasons_of((mine, reference)) or [
            f"they have no {ranking.unit} in common"
        ]
        text = "; ".join(reasons)
        raise VievalError(f"--margin cannot compare {mine} with {reference}: {text}")


def _track_sentences(provenance: Provenance, ranking: Leaderboard) -> tuple[str, ...]:
    """Agreement of people with this judge on generators with published ratings; none where it is
    unknown.
    """
    from vieval_plugin.results.published.judges import track_record

    record = track_record(provenance, ranking.aspect)
    if record is None or not (record.better and record.equal):
        return ()
    interval = f"95% interval {100 * record.low:.0f} to {100 * record.high:.0f}%"
    agreed = f"people agreed in {record.agreed} of {record.better} pairs ({interval})"
    differing = f"{record.told_apart} of the {record.equal} pairs"
    return (
        f"Track record on {record.benchmark}, with the same questions and model: when the judge "
        f"found a generator better, {agreed}.",
        f"People found a difference in {differing} that the judge could not tell apart.",
    )


def apply_control(
    gate: Gate,
    results: Sequence[ControlResult],
    margin: float,
    prompts: int,
) -> Gate:
    """The gate of a judge after its positive control: it passes a build only if the judge saw
    images that were spoilt.

    Args:
        gate: that passes.
        results: of the control, one for each way in which images were spoilt.
        margin: of the gate.
        prompts: number that the control could choose from.
    """
    scored = min(evidence.scored.n for evidence in gate.evidence)
    sentences = [
        _control_sentence(gate, result, margin) for result in results if result.estimate
    ]
    step = "Use a judge that notices damaged images"
    objection = _BLIND
    if not sentences:
        are = "is" if scored == 1 else "are"
        reason = f"{plural(scored, 'prompt')} {are} too few"
        step = "Use more prompts"
        if scored >= CONTROL_ITEMS > prompts:
            reason = (
                f"the build has images for only {plural(prompts, 'prompt')} with a "
                "reference score above the margin"
            )
        elif scored >= CONTROL_ITEMS:
            reason = "the prompts are too similar to swap their images"
            step = "Use more varied prompts"
        else:
            objection = f"{reason} for the control"
        sentences = [
            f"{_CONTROL}: {reason}. At least {CONTROL_ITEMS} suitable prompts are needed."
        ]
    control = " ".join(sentences)
    if not any(result.seen for result in results):
        return replace(_blind(gate, objection, control, step), control=tuple(results))
    limits = (control, *gate.answer.limits)
    answer = replace(gate.answer, limits=limits)
    return replace(gate, answer=answer, control=tuple(results))


def require_no_control(gate: Gate, margin: float) -> Gate:
    """The gate of verdict files, whose judge is not asked about spoilt images: it decides
    nothing where all scores are alike.
    """
    if all(evidence.spread <= margin for evidence in gate.evidence):
        measured = f"{gate.aspect} means" if gate.aspect else "win rates"
        spread = max(e.spread for e in gate.evidence)
        scores = f"The {measured} of all prompts differ by at most {spread:.3f}."
        step = "Pass --model and --base-url to test the judge on damaged images"
        return _blind(
            gate,
            _BLIND,
            f"{scores} A fall by more than the margin would not be visible.",
            step,
        )
    line = "The judge was not tested on damaged images. Pass --model and --base-url to test it."
    return replace(
        gate, answer=replace(gate.answer, limits=(line, *gate.answer.limits))
    )


def add_history(
    gate: Gate,
    dates: Sequence[str],
    differences: Sequence[float],
) -> Gate:
    """The gate with what the nights of its series show: a build that passes does not hide a slow
    fall.

    Args:
        gate: of one reference.
        dates: of the nights, in order.
        differences: to the baseline, one a night.
    """
    answer = gate.answer
    nights = len(differences)
    change = cusum(differences)
    if change is None:
        return _limited(
            gate,
            f"History: {plural(nights, 'night')}. A slow fall can be detected from "
            f"night {FIRST_NIGHTS + 1}.",
        )
    spread = (
        f"The first {FIRST_NIGHTS} nights have a mean of {change.mean:+.3f} and a standard "
        f"deviation of {change.deviation:.3f}"
    )
    last_sum = change.sums[-1]
    total = f"the CUSUM of {nights} nights is {last_sum:.1f}"
    line = f"History: {total} (alarm at {CUSUM_LIMIT:g}). {spread}. {_sparkline(change.sums)}"
    if change.alarm is None:
        return _limited(gate, line)
    title = _SLOW_FALL.format(judge=gate.judge, date=dates[change.alarm])
    step = "Find the cause, then start a new series with a new baseline or another --history file."
    alarm = Answer(title, line, next=step)
    if gate.decision == "not_worse":
        alarm = replace(alarm, limits=(answer.title, answer.evidence, *answer.limits))
        return replace(gate, answer=alarm, alarm=True)
    return replace(_limited(gate, title, line), alarm=True)


def _limited(gate: Gate, *lines: str) -> Gate:
    limits = (*gate.answer.limits, *lines)
    return replace(gate, answer=replace(gate.answer, limits=limits))


def _sparkline(sums: Sequence[float]) -> str:
    """A small chart of the last nights of a CUSUM, the highest bar at the alarm."""
    bars = "▁▂▃▄▅▆▇█"
    totals = sums[-_MOST_BARS:]
    bar_count = len(bars)
    highest = bar_count - 1
    heights = (int(total / CUSUM_LIMIT * bar_count) for total in totals)
    return "".join(bars[min(height, highest)] for height in heights)


def _blind(
    gate: Gate,
    objection: str,
    reason: str,
    step: str,
) -> Gate:
    """A gate that passed, where nothing shows that its judge sees a fall: what it found, the
    objection to it, and what would show it.
    """
    answer = gate.answer
    title = gate.answer.title
    if gate.better:
        references = enumeration([evidence.reference for evidence in gate.evidence])
        title = Finding.BETTER.format(
            judge=gate.judge, mine=gate.challenger, references=references
        )
    title = _objected(title, objection)
    limits = (answer.evidence, *answer.limits)
    advice = f"{step}, or pass --no-control if you know that the judge notices a drop."
    blind_answer = Answer(title, reason, limits, advice)
    return replace(gate, decision="undecided", doubt=objection, answer=blind_answer)


def _control_sentence(gate: Gate, result: ControlResult, margin: float) -> str:
    damage = _SPOILT[result.spoiling].format(result.n)
    estimate = cast(Estimate, result.estimate)
    if result.contests:
        interval = f"{100 * estimate.low:.0f} to {100 * estimate.high:.0f}%"
        needed = f"more than {100 * (0.5 + margin):.0f}%"
        won = (
            f"the build's own images won {estimate.value:.0%} of {result.n} contests (95% "
            f"interval {interval}, required: {needed})"
        )
        return f"{_CONTROL}: against {damage}, {won}."
    change = f"{gate.aspect} is {_signed(estimate)}"
    return (
        f"{_CONTROL}: with {damage}, {change} (required: more than {margin:g} lower)."
    )


def same_files_gate(records: Iterable[Record]) -> Gate | None:
    """The gate of a generator whose pictures are the same files as all others'; None where they
    are not, or where none can be read.
    """
    judged = list(records)
    files = files_by_generator(judged)
    mine, *references = files
    own_files = files[mine]
    are_all_same = all(
        are_same_files(own_files, files[reference]) for reference in references
    )
    if not are_all_same or not any(map(shows_an_image, judged)):
        return None
    return _combined_gate(
        mine,
        dict.fromkeys(references, _SAME_FILES),
        "",
    )


def _combined_gate(
    mine: str,
    decided: Mapping[str, ReferenceDecision],
    judge: str,
) -> Gate:
    """The gate of all references: the title is on the first that decides it and those like it,
    the evidence on each.
    """
    unread = [one for one in decided.values() if one.finding.unreadable]
    decisive = min(
        unread or decided.values(),
        key=lambda one: ("worse", "undecided", "not_worse").index(one.decision),
    )
    kind = decisive.finding, decisive.objection
    references = [
        reference
        for reference, one in decided.items()
        if (one.finding, one.objection) == kind
    ]
    title = decisive.title(
        judge=judge,
        mine=mine,
        references=enumeration(references),
    )
    evidence = [one.evidence for one in decided.values()]
    if len(decided) > 1:
        evidence = [f"Against {name}: {one.evidence}" for name, one in decided.items()]
    answer = Answer(title, " ".join(evidence), next=decisive.next)
    return Gate(
        mine,
        decisive.decision,
        answer,
        judge=judge,
        unreadable=bool(unread),
        doubt=decisive.doubt,
    )


def too_few_sentence(n: int, margin: float, fall: float) -> str:
    """Sentence that equal scores on `n` prompts cannot pass; empty where they can.

    Args:
        n: prompts that both generators have.
        margin: from 0 on.
        fall: as `MeanOfDifferences` has it.

    >>> too_few_sentence(100, 0.02, 1.0)
    '--margin 0.02: with 100 prompts, equal scores cannot pass (148 prompts are required); only a better generator can'
    """
    fewest = fewest_items(margin, fall)
    if n >= fewest:
        return ""
    enough = ""
    if not math.isinf(fewest):
        enough = f" ({fewest:,.0f} prompts are required)"
    return (
        f"--margin {margin:g}: with {n} prompts, equal scores cannot pass{enough}; "
        "only a better generator can"
    )


def require_decidable(
    records: Sequence[Record],
    judges: Sequence[str],
    margin: float,
    contests: bool,
) -> str:
    """Refuse a gate that could decide nothing, before anything is judged.

    Args:
        records: what is compared, those of the generator in question first.
        judges: names of the judges that are asked.
        margin: of the gate.
        contests: the judge compares images two by two.

    Returns:
        `too_few_sentence` of the prompts that the generator has in common with each other one.

    Raises:
        VievalError: there is no other generator, or there are several judges.
    """
    prompts = defaultdict[str, set[tuple[str, str]]](set)
    for record in records:
        group = record.sample.group if record.sample else record.id.uid
        prompts[record.id.image_model].add((record.id.part, group))
    mine, *references = prompts
    if not references:
        raise VievalError(f"{NO_OTHER.format(mine)}; pass the folder of its images too")
    if len(names := dict.fromkeys(judges)) > 1:
        judge_names = ", ".join(names)
        raise VievalError(
            f"--margin requires one judge, got {len(names)} ({judge_names}); pass "
            "only one"
        )
    common = min(len(prompts[mine] & prompts[reference]) for reference in references)
    return too_few_sentence(common, margin, EVEN if contests else 1.0)


def _fillers(run: Run, *generators: str) -> tuple[int, ...]:
    """Number of prompts of each generator whose scores are likely filled in."""
    both_records = [
        record
        for record in run.all_records
        if record.votes is None and (record.id.image_model or YOUR_IMAGES) in generators
    ]
    prompts = {
        (r.id.image_model or YOUR_IMAGES, r.id.part, r.id.uid)
        for r in fillers(both_records)
    }
    counts = Counter(generator for generator, *_ in prompts)
    return tuple(counts[generator] for generator in generators)


def _decided(
    ranking: Leaderboard,
    evidence: GateEvidence,
    margin: float,
    bias: PositionBias | None,
    again: str,
    filled: Sequence[int],
) -> ReferenceDecision:
    """The decision on one reference."""
    measured = _measured_sentences(ranking, evidence, margin)
    if _is_unread(evidence):
        unread, replies = evidence.unread
        counts = (
            f"{unread} of {replies} replies on {evidence.reference} could not be read"
        )
        why = f"{counts} (limit {MOST_UNREAD:.0%}). {measured}"
        return ReferenceDecision("undecided", Finding.UNREAD, why, _READABLE)
    fillers = _fillers_sentence(ranking, evidence, filled)
    if min(filled) > MOST_FILLED * evidence.items:
        why = f"{fillers} (limit {MOST_FILLED:.0%}). {measured}"
        return ReferenceDecision("undecided", Finding.FILLED, why, _READABLE)
    if any(filled):
        measured += f" {fillers}."
    reason = _nothing_decides(ranking, evidence, bias, again)
    if reason:
        initial = reason[:1].upper()
        why = f"{initial}{reason[1:]}. {measured}"
        return ReferenceDecision("undecided", Finding.INSUFFICIENT, why)
    measured += _large_changes(ranking, evidence, bias)
    return _decision_by_margin(ranking, evidence, margin, measured)


def _measured_sentences(
    ranking: Leaderboard, evidence: GateEvidence, margin: float
) -> str:
    """The measured difference in words, and its bounds where they differ."""
    measured = f"{_measured(ranking, evidence)} Allowed: {margin:g} lower."
    if not math.isnan(evidence.scored.low):
        limit = f"one-sided {share_of_level(_level(ranking) / 2)} bound"
        low_text = _bound(evidence.scored.low)
        measured += f" With one more bad prompt: {low_text} ({limit})."
    if any(evidence.more_failures):
        penalised = evidence.penalised
        change = f"{_signed(penalised.value)}, {_bound(penalised.low)}"
        measured += f" With failures as the lowest score: {change}."
    return measured


def _bound(low: float) -> str:
    """The lower bound of a change in words.

    >>> _bound(-0.1), _bound(0.1)
    ('at most 0.100 lower', 'at least 0.100 higher')
    """
    return f"{'at most' if low < 0 else 'at least'} {_signed(low)}"


def _fillers_sentence(
    ranking: Leaderboard, evidence: GateEvidence, filled: Sequence[int]
) -> str:
    names = zip((evidence.challenger, evidence.reference), filled, strict=True)
    total = f"{evidence.items} {ranking.unit}"
    counts = " and ".join(f"{number} of {total} of {name}" for name, number in names)
    return f"Scores were likely filled in without judging for {counts}"


def _decision_by_margin(
    ranking: Leaderboard, evidence: GateEvidence, margin: float, measured: str
) -> ReferenceDecision:
    """Decision by failures first, then by the margin."""
    scored = evidence.scored
    penalised = evidence.penalised
    more, fewer = evidence.more_failures
    p = more_failures_p(more, fewer)
    if p <= ONE_SIDED_LEVEL:
        mine = f"Only {evidence.challenger} fails on {more} {ranking.unit}"
        p_text = p_sentence(p)
        other = f"only {evidence.reference} on {fewer} ({p_text})"
        why = f"{mine}, {other}. {measured}"
        return ReferenceDecision("worse", Finding.FAILS, why)
    decisions = [scored.decision(margin), penalised.decision(margin)]
    if "worse" in decisions:
        finding = (
            Finding.WORSE if decisions[0] == "worse" else Finding.WORSE_BY_FAILURES
        )
        return ReferenceDecision("worse", finding, measured)
    if "undecided" not in decisions:
        return ReferenceDecision("not_worse", Finding.NOT_WORSE, measured)
    needed = max(scored.items_needed(margin), penalised.items_needed(margin))
    enough = _enough(needed, _unit(ranking, evidence))
    stays = f"if the difference stays at {scored.value:.3f}"
    finding, objection = _undecided_finding(ranking, evidence, margin)
    step = f"{enough} would be enough to decide, {stays}."
    return ReferenceDecision("undecided", finding, measured, step, objection)


def _enough(needed: float, units: str) -> str:
    if not math.isfinite(needed):
        return f"No feasible number of {units}"
    digits = 1 - math.floor(math.log10(needed))
    return f"About {round(needed, digits):,.0f} {units}"


def _undecided_finding(
    ranking: Leaderboard, evidence: GateEvidence, margin: float
) -> tuple[Finding, str]:
    """Finding from the interval where the gate cannot decide, and the objection to it."""
    scored = evidence.scored
    low = _low(ranking, evidence)
    if max(scored.high, _difference(ranking, evidence).high) < 0:
        return Finding.PERHAPS_WORSE, ""
    if not low > -margin:
        return Finding.UNDECIDED, ""
    finding = Finding.BETTER if low > 0 else Finding.NOT_WORSE
    if not evidence.penalised.plain_low > (0.0 if low > 0 else -margin):
        return finding, "perhaps not if failures count as the lowest score"
    return finding, f"{scored.n} {_unit(ranking, evidence)} are too few to pass"


def _objected(title: str, objection: str) -> str:
    """A title with the objections to it, if any."""
    return f"{title.removesuffix('.')}, but {objection}." if objection else title


def _is_unread(evidence: GateEvidence) -> bool:
    """Return whether too many replies on the reference could not be read."""
    unread, replies = evidence.unread
    return unread > MOST_UNREAD * replies


def _large_changes(
    ranking: Leaderboard, evidence: GateEvidence, bias: PositionBias | None
) -> str:
    """Sentence on prompts that fell or rose far, and on contests that an answer to each side
    makes ties.
    """
    if ranking.measure.counts_contests:
        contradicted = bias.contradicted if bias else 0
        contests = plural(contradicted, "contradictory contest")
        return f" {contests} counted as tied, which reduces differences." * bool(
            contradicted
        )
    if not evidence.fell:
        return ""
    alone = "By the judge alone, scores" if ranking.measure.uses_ratings else "Scores"
    fell = f"fell by more than {LARGE_FALL:g} on {evidence.fell} of {evidence.compared} prompts"
    return f" {alone} {fell} and rose by as much on {evidence.rises}."


def _nothing_decides(
    ranking: Leaderboard,
    evidence: GateEvidence,
    bias: PositionBias | None,
    again: str,
) -> str:
    """Reason why the verdicts decide nothing, whatever the difference; empty where they do."""
    unit = ranking.unit
    compared = (evidence.challenger, evidence.reference)
    for generator, unjudged in zip(compared, evidence.unjudged, strict=True):
        if unjudged > MOST_UNJUDGED * evidence.items:
            have = "has" if unjudged == 1 else "have"
            return (
                f"{unjudged} of {evidence.items} {unit} of {generator} {have} no verdict, or no score "
                f"because a call or tool failed. To judge them again, run {again}"
            )
    if bias is not None and bias.contradictory:
        return (
            f"the judge contradicts itself in {bias.contradicted} of {bias.contests} "
            "contests, so its answers cannot be used"
        )
    unranked = ranking.reasons_of(compared)
    if unranked and evidence.penalised.decision(0) != "worse":
        return unranked[0]
    if (
        evidence.scored.n < LEAST_FOR_A_TEST
        and more_failures_p(*evidence.more_failures) > ONE_SIDED_LEVEL
    ):
        return f"at least {LEAST_FOR_A_TEST} {unit} are needed"
    pair = ranking.comparison.pair_of(*compared)
    reason = ranking.comparison.compared.undecided_reason
    if reason:
        return reason
    if ranking.measure.uses_ratings and pair and math.isnan(pair.adjusted):
        return f"at least {LEAST_RATED} {unit} of each generator, or all images, are needed"
    return ""


def _measured(ranking: Leaderboard, evidence: GateEvidence) -> str:
    """The difference of the judge's means with its interval, in words."""
    if not evidence.scored.n:
        return f"No {ranking.unit.removesuffix('s')} has scores of both generators."
    difference = _difference(ranking, evidence)
    on = f"on {evidence.scored.n} {ranking.unit}"
    if _unit(ranking, evidence) == "groups":
        on = f"on {evidence.compared} {ranking.unit} in {evidence.scored.n} groups"
    measured = f"The {ranking.measure.noun.lower()}"
    opponent = "½"
    if not ranking.measure.counts_contests:
        measured += f" {ranking.aspect}"
        opponent = f"that of {evidence.reference}"
    change = _signed(difference, _level(ranking))
    return f"{measured} of {evidence.challenger} is {change} than {opponent} {on}."


def _difference(ranking: Leaderboard, evidence: GateEvidence) -> Estimate:
    """The difference with the interval that the ranking prints; a judge that contradicts itself
    leaves none.
    """
    pair = ranking.comparison.pair_of(evidence.challenger, evidence.reference)
    if not pair:
        return Estimate(evidence.scored.value)
    return (
        pair if pair.first == evidence.challenger else pair.turned
    ).result.difference


def _low(ranking: Leaderboard, evidence: GateEvidence) -> float:
    """The lower end of the difference's interval: that printed or Student's, whichever is
    lower.
    """
    ends = [evidence.scored.plain_low, _difference(ranking, evidence).low]
    finite_ends = (end for end in ends if not math.isnan(end))
    return min(finite_ends, default=math.nan)


def _unit(ranking: Leaderboard, evidence: GateEvidence) -> str:
    """The unit of chance: groups where prompts of one template count as one."""
    in_groups = (
        not ranking.measure.uses_ratings and evidence.scored.n < evidence.compared
    )
    return "groups" if in_groups else ranking.unit


def _level(ranking: Leaderboard) -> float:
    """Two-sided level at which the ranking decides, less at a look at labels."""
    return ranking.comparison.compared.level


def _signed(change: Estimate | float, level: float = 2 * ONE_SIDED_LEVEL) -> str:
    """A change in words, with its interval at a two-sided level where it has one.

    >>> _signed(-0.1), _signed(Estimate(-0.1, -0.2, 0.05))
    ('0.100 lower', '0.100 lower (95% interval 0.200 lower to 0.050 higher)')
    """
    if isinstance(change, Estimate):
        interval = ""
        if change.has_interval:
            low = _signed(change.low)
            high = _signed(change.high)
            share = share_of_level(level)
            interval = f" ({share} interval {low} to {high})"
        return f"{_signed(change.value)}{interval}"
    direction = "lower" if change < 0 else "higher"
    return f"{abs(change):.3f} {direction}"
