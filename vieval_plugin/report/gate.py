"""The gate of `vieval rank --margin`: a decision on the first generator, and a sentence for each
other one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from vieval_plugin.meta_evaluation.vote_answers import VOTES
from vieval_plugin.meta_evaluation.win_rates import EVEN
from vieval_plugin.records import YOUR_IMAGES, Record, Run
from vieval_plugin.report.answer import Answer
from vieval_plugin.report.reference_decision import (
    SAME_FILES,
    Finding,
    ReferenceComparison,
    ReferenceDecision,
    change_text,
    decide,
    objected,
    require_comparable,
)
from vieval_plugin.report.sections import Report, Section
from vieval_plugin.stats.decisions import CONTROL_ITEMS, CUSUM_LIMIT, FIRST_NIGHTS
from vieval_plugin.stats.drift import cusum
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.non_inferiority import Decision, fewest_items
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import ExitCode, VievalError
from vieval_plugin.text.wording import enumeration, plural, rounded

#: Prompts that are named of those on which it failed, and of those on which its score fell.
MOST_FALLS = 10

#: Exit code of each decision.
EXIT_CODES = {
    "not_worse": ExitCode.FINE,
    "worse": ExitCode.WORSE,
    "undecided": ExitCode.UNDECIDED,
}
NO_OTHER = "--margin requires another generator to compare {} with"


_BLIND = "the judge may not notice a fall"
_SLOW_FALL = "{judge} finds a slow fall across the nightly builds, first on {date}."
_MOST_BARS = 60
_CONTROL = "Positive control"
_SPOILT = {
    "exchanged": "images swapped among {} prompts",
    "degraded": "{} degraded images",
}


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
    #: Generators whose pictures are the same files.
    identical: tuple[str, ...] = ()
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
        all_falls = chain(*(evidence.falls for evidence in self.evidence))
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
    bias = None
    if ranking.measure.counts_contests:
        bias = section.bias[ranking.judge]
    systems = ranking.comparison.compared.systems
    mine, *references = [system.label for system in systems]
    if not references:
        raise VievalError(f"{NO_OTHER.format(mine)}; pass verdicts on its images too")
    files = files_by_generator(run.all_records)
    verdicts = [record.verdict for record in run.all_records]
    is_read = any(verdict.status.usable for verdict in verdicts)
    decisions = {}
    comparisons = []
    for reference in references:
        if is_read and are_same_files(files[mine], files[reference]):
            decisions[reference] = SAME_FILES
            continue
        evidence = gate_evidence(run, ranking, mine, reference, options)
        comparison = ReferenceComparison(ranking, evidence, margin, bias)
        comparisons.append(comparison)
        filled = _fillers(run, mine, reference)
        require_comparable(comparison)
        decisions[reference] = decide(comparison, again, filled)
    gate = _combined_gate(mine, decisions, _judge_words(ranking))
    if comparisons:
        limits = (*_track_sentences(run, ranking), *limits)
    aspect = ranking.aspect
    if aspect == VOTES:
        aspect = ""
    gate = _add_evidence(gate, comparisons)
    gate = _limited(gate, limits)
    return replace(gate, margin=margin, aspect=aspect)


def _only_ranking(report: Report) -> tuple[Section, Leaderboard]:
    """Return the ranking of a report, and its section.

    Raises:
        VievalError: the report has several rankings, or none.
    """
    count = len(report.generators)
    if count != 1:
        rankings = (ranking for _, ranking in report.generators)
        texts = (f"{ranking.benchmark} by {ranking.judge}" for ranking in rankings)
        judges = ", ".join(texts)
        raise VievalError(
            f"--margin requires one ranking, got {count} ({judges}); "
            "use verdicts of one judge"
        )
    return report.generators[0]


def _add_evidence(gate: Gate, comparisons: Sequence[ReferenceComparison]) -> Gate:
    """Add the evidence against each reference to a gate."""
    lows = []
    for comparison in comparisons:
        penalised = comparison.evidence.penalised
        lows.append(min(comparison.low, penalised.plain_low))
    return replace(
        gate,
        evidence=tuple(comparison.evidence for comparison in comparisons),
        differences=tuple(comparison.difference for comparison in comparisons),
        better=all(low > 0 for low in lows),
    )


def _judge_words(ranking: Leaderboard) -> str:
    judge = ranking.judge.words if ranking.judge else ""
    if ranking.measure.uses_ratings:
        return f"{judge}, corrected by people's ratings,"
    return judge


def _track_sentences(run: Run, ranking: Leaderboard) -> tuple[str, ...]:
    """Agreement of people with this judge on generators with published ratings; none where it is
    unknown.
    """
    from vieval_plugin.results.published.judges import track_record

    if not ranking.measure.is_plain_mean:
        return ()
    record = track_record(run.all_records[0].provenance, ranking.aspect)
    if record is None or not (record.better and record.equal):
        return ()
    low = 100 * record.low
    high = 100 * record.high
    return (
        f"Track record on {record.benchmark}, with the same questions and model: "
        "when the judge found a generator better, "
        f"people agreed in {record.agreed} of {record.better} pairs "
        f"(95% interval {low:.0f} to {high:.0f}%).",
        f"People found a difference in {record.told_apart} of the {record.equal} pairs "
        "that the judge could not tell apart.",
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
    measured = (result for result in results if result.estimate)
    sentences = [_control_sentence(gate, result, margin) for result in measured]
    step = "Use a judge that notices damaged images"
    objection = _BLIND
    if not sentences:
        scored = min(evidence.scored.n for evidence in gate.evidence)
        reason, step = _reason_without_control(scored, prompts)
        if scored < CONTROL_ITEMS:
            objection = f"{reason} for the control"
        sentences = [
            f"{_CONTROL}: {reason}. "
            f"At least {CONTROL_ITEMS} suitable prompts are needed."
        ]
    is_seen = any(result.seen for result in results)
    if is_seen and len(sentences) > 1:
        sentences.append("One of the two is enough.")
    control = " ".join(sentences)
    if is_seen:
        gate = _limited(gate, (control, *gate.answer.limits))
    else:
        gate = _blind(gate, objection, control, step)
    return replace(gate, control=tuple(results))


def _reason_without_control(scored: int, prompts: int) -> tuple[str, str]:
    """Return the reason why a control could not spoil any image, and what would let it."""
    step = "Use more prompts"
    if scored < CONTROL_ITEMS:
        are = "is" if scored == 1 else "are"
        count = plural(scored, "prompt")
        return f"{count} {are} too few", step
    if prompts < CONTROL_ITEMS:
        count = plural(prompts, "prompt")
        reason = (
            f"the build has images for only {count} "
            "with a reference score above the margin"
        )
        return reason, step
    reason = "the prompts are too similar to swap their images"
    return reason, "Use more varied prompts"


def require_no_control(gate: Gate, margin: float) -> Gate:
    """The gate of verdict files, whose judge is not asked about spoilt images: it decides
    nothing where all scores are alike.
    """
    spreads = [evidence.spread for evidence in gate.evidence]
    if all(spread <= margin for spread in spreads):
        measured = "win rates"
        if gate.aspect:
            measured = f"{gate.aspect} means"
        reason = (
            f"The {measured} of all prompts differ by at most {rounded(max(spreads), 3)}. "
            "A fall by more than the margin would not be visible."
        )
        step = "Pass --model and --base-url to test the judge on damaged images"
        return _blind(gate, _BLIND, reason, step)
    line = (
        "The judge was not tested on damaged images. "
        "Pass --model and --base-url to test it."
    )
    return _limited(gate, (line, *gate.answer.limits))


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
    limits = answer.limits
    nights = len(differences)
    change = cusum(differences)
    if change is None:
        line = (
            f"History: {plural(nights, 'night')}. "
            f"A slow fall can be detected from night {FIRST_NIGHTS + 1}."
        )
        return _limited(gate, (*limits, line))
    last_sum = change.sums[-1]
    line = (
        f"History: the CUSUM of {nights} nights is {last_sum:.1f} "
        f"(alarm at {CUSUM_LIMIT:g}). "
        f"The first {FIRST_NIGHTS} nights have a mean of {change.mean:+.3f} "
        f"and a standard deviation of {change.deviation:.3f}. "
        f"{_sparkline(change.sums)}"
    )
    if change.alarm is None:
        return _limited(gate, (*limits, line))
    title = _SLOW_FALL.format(judge=gate.judge, date=dates[change.alarm])
    step = (
        "Find the cause, then start a new series with a new baseline "
        "or another --history file."
    )
    if gate.decision == "not_worse":
        passed = (answer.title, answer.evidence, *limits)
        alarm = Answer(title, line, passed, step)
        return replace(gate, answer=alarm, alarm=True)
    gate = _limited(gate, (*limits, title, line))
    return replace(gate, alarm=True)


def _limited(gate: Gate, limits: Sequence[str]) -> Gate:
    """A gate with these sentences on what limits its answer."""
    answer = replace(gate.answer, limits=tuple(limits))
    return replace(gate, answer=answer)


def _sparkline(sums: Sequence[float]) -> str:
    """A small chart of the last nights of a CUSUM, the highest bar at the alarm."""
    bars = "▁▂▃▄▅▆▇█"
    highest = len(bars) - 1
    line = ""
    for total in sums[-_MOST_BARS:]:
        height = int(total / CUSUM_LIMIT * len(bars))
        line += bars[min(height, highest)]
    return line


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
    title = answer.title
    if gate.better:
        references = enumeration([evidence.reference for evidence in gate.evidence])
        title = Finding.BETTER.format(
            judge=gate.judge, mine=gate.challenger, references=references
        )
    title = objected(title, objection)
    limits = (answer.evidence, *answer.limits)
    advice = f"{step}, or pass --no-control if you know that the judge notices a drop."
    return replace(
        gate,
        decision="undecided",
        doubt=objection,
        answer=Answer(title, reason, limits, advice),
    )


def _control_sentence(gate: Gate, result: ControlResult, margin: float) -> str:
    damage = _SPOILT[result.spoiling].format(result.n)
    control = f"{_CONTROL} {'passed' if result.seen else 'failed'}"
    estimate = cast(Estimate, result.estimate)
    if not result.contests:
        return (
            f"{control}: with {damage}, {gate.aspect} is {change_text(estimate)} "
            f"(required: the whole interval more than {margin:g} lower)."
        )
    low = 100 * estimate.low
    high = 100 * estimate.high
    needed = 100 * (0.5 + margin)
    return (
        f"{control}: against {damage}, the build's own images won "
        f"{estimate.value:.0%} of {result.n} contests "
        f"(95% interval {low:.0f} to {high:.0f}%) "
        f"(required: the whole interval more than {needed:.0f}%)."
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
    decisions = dict.fromkeys(references, SAME_FILES)
    return _combined_gate(mine, decisions, judge="")


def _combined_gate(
    mine: str,
    decisions: Mapping[str, ReferenceDecision],
    judge: str,
) -> Gate:
    """The gate of all references: the title is on the first that decides it and those like it,
    the evidence on each.
    """
    unread = [
        decision for decision in decisions.values() if decision.finding.unreadable
    ]
    decisive = min(unread or decisions.values(), key=_precedence)
    references = []
    evidence = []
    for reference, decision in decisions.items():
        has_same_finding = decision.finding == decisive.finding
        if has_same_finding and decision.objection == decisive.objection:
            references.append(reference)
        where = ""
        if len(decisions) > 1:
            where = f"Against {reference}: "
        evidence.append(f"{where}{decision.evidence}")
    title = decisive.title(judge=judge, mine=mine, references=enumeration(references))
    return Gate(
        mine,
        decisive.decision,
        Answer(title, " ".join(evidence), next=decisive.next),
        identical=tuple(
            reference
            for reference, decision in decisions.items()
            if decision is SAME_FILES
        ),
        judge=judge,
        unreadable=bool(unread),
        doubt=decisive.doubt,
    )


def _precedence(decision: ReferenceDecision) -> int:
    """Return the place of a decision: a fall decides before a doubt."""
    return ("worse", "undecided", "not_worse").index(decision.decision)


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
        identity = record.id
        group = record.sample.group if record.sample else identity.uid
        prompt = (identity.part, group)
        prompts[identity.image_model].add(prompt)
    mine, *references = prompts
    if not references:
        raise VievalError(f"{NO_OTHER.format(mine)}; pass the folder of its images too")
    judge_names = dict.fromkeys(judges)
    if len(judge_names) > 1:
        names = ", ".join(judge_names)
        raise VievalError(
            f"--margin requires one judge, got {len(judge_names)} ({names}); "
            "pass only one"
        )
    own_prompts = prompts[mine]
    common = min(len(own_prompts & prompts[reference]) for reference in references)
    fall = EVEN if contests else 1.0
    return too_few_sentence(common, margin, fall)


def _fillers(run: Run, *generators: str) -> tuple[int, ...]:
    """Number of prompts of each generator whose scores are likely filled in."""
    records = [
        record
        for record in run.all_records
        if record.votes is None and _generator(record) in generators
    ]
    prompts = {
        (_generator(record), record.id.part, record.id.uid)
        for record in fillers(records)
    }
    counts = Counter(generator for generator, *_ in prompts)
    return tuple(counts[generator] for generator in generators)


def _generator(record: Record) -> str:
    return record.id.image_model or YOUR_IMAGES
