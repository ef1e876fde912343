"""Sentences on several judges of the same samples: whether their scores are the same, how often two
of them agree, and which generator each finds best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from vieval_plugin.judges.protocol import SampleId, Verdict
from vieval_plugin.meta_evaluation.comparison import Comparison
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.meta_evaluation.two_judges import agreement_of_two
from vieval_plugin.records import Run
from vieval_plugin.report.answer import measured_quantity, percent_text
from vieval_plugin.report.words import number_word
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.decisions import LEAST_COMMON
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.wording import enumeration

_Verdicts: TypeAlias = dict[SampleId, list[Verdict]]


def same_scores(runs: Sequence[Run]) -> list[str]:
    """A sentence for each group of judges that gave the same score to every sample that they
    scored.

    Judges that give one score to all samples are in no group, as their models may differ.

    Args:
        runs: of one benchmark, one a judge.
    """
    verdicts = {run.label: _scored(run) for run in runs}
    samples = {run.label: {record.id for record in run.all_records} for run in runs}
    groups: list[list[str]] = []
    for label, judge_verdicts in verdicts.items():
        for group in groups:
            if _are_same(verdicts[group[0]], judge_verdicts):
                group.append(label)
                break
        else:
            groups.append([label])
    sentences = []
    for group in groups:
        if len(group) < 2:
            continue
        common = set.intersection(*(_complete(verdicts[label]) for label in group))
        if len(common) < LEAST_COMMON:
            continue
        is_part = any(samples[label] != common for label in group)
        sentences.append(_sentence(group, verdicts[group[0]], common, is_part))
    return sentences


def _scored(run: Run) -> _Verdicts:
    """The verdicts with scores or a choice, by sample, one for each time that it was judged."""
    return grouped(
        (record.id, record.verdict)
        for record in run.all_records
        if record.verdict.scores or record.verdict.choice
    )


def _complete(verdicts: _Verdicts) -> set[SampleId]:
    """The samples without a failed verdict, which may have some of its scores."""
    return {
        sample
        for sample, own in verdicts.items()
        if all(verdict.status.usable for verdict in own)
    }


def _are_same(first: _Verdicts, second: _Verdicts) -> bool:
    common = 0
    distinct = set()
    for sample, verdicts in first.items():
        others = second.get(sample)
        if not others:
            continue
        if len(verdicts) != len(others):
            return False
        if not all(map(_agree, verdicts, others)):
            return False
        common += 1
        answers = [(verdict.scores, verdict.choice) for verdict in verdicts]
        distinct.add(repr(answers))
    return common >= LEAST_COMMON and len(distinct) > 1


def _agree(first: Verdict, second: Verdict) -> bool:
    """True where all scores are equal that both have, and so is the choice."""
    if first.choice != second.choice:
        return False
    aspects = first.scores.keys() & second.scores.keys()
    if not aspects:
        return not first.scores and not second.scores
    pairs = ((first.scores[aspect], second.scores[aspect]) for aspect in aspects)
    return all(score == other for score, other in pairs)


def _sentence(
    labels: Sequence[str],
    verdicts: _Verdicts,
    common: set[SampleId],
    is_part: bool,
) -> str:
    are_contests = all(
        verdict.choice for sample in common for verdict in verdicts[sample]
    )
    score = "score"
    unit = "samples"
    if are_contests:
        score = "answer"
        unit = "contests"
    scope = ""
    if is_part:
        everyone = "both" if len(labels) == 2 else "all of them"
        scope = f" that {everyone} scored"
    return (
        f"{enumeration(labels)} gave the same {score} "
        f"to all {len(common):,} {unit}{scope}. "
        "Are they the same model?"
    )


def agreement_notes(runs: Sequence[Run], options: StatisticsOptions) -> list[str]:
    """Sentences on how often two judges agree and, by the ratings, how often each is right
    then and elsewhere.

    Args:
        runs: one a judge, of one benchmark; of other numbers than two there is no sentence.
        options: the failure policy, the seed.
    """
    agreement = agreement_of_two(runs, options)
    if agreement is None:
        return []
    first, second = (run.label for run in runs)
    alike = agreement.alike
    agreeing = round(alike.value * alike.n)
    count = f"{agreeing:,} of {alike.n:,}"
    sentences = [f"{first} and {second} agree on {count} pairs of images."]
    where_alike = agreement.right_where_alike
    if where_alike.defined:
        share = percent_text(where_alike)
        sentences.append(
            f"Where they agree and the ratings differ ({where_alike.n:,}), "
            f"both are right in {share}."
        )
    elsewhere = agreement.first_elsewhere
    if elsewhere.defined:
        first_share = percent_text(elsewhere)
        second_share = percent_text(agreement.second_elsewhere)
        sentences.append(
            f"Where they disagree and the ratings differ ({elsewhere.n:,}), "
            f"{first} is right in {first_share} and {second} in {second_share}."
        )
    rated_equal = agreement.rated_equal
    if rated_equal:
        have = "has" if rated_equal == 1 else "have"
        subject = f"The other {rated_equal:,}"
        sentences.append(f"{subject} {have} equal ratings.")
    return [" ".join(sentences)]


def several_judges_sentence(
    boards: Sequence[Leaderboard], contradictory: Sequence[str] = ()
) -> str:
    """A sentence over several judges of the same generators; empty of one, of two that agree, and
    without comparisons. What measures something else than quality, such as sharpness, is left out.

    Args:
        boards: one a judge.
        contradictory: judges that contradict themselves, whose answers decide nothing.
    """
    all_judges = len(boards)
    boards = [board for board in boards if measured_quantity(board) is None]
    judge_count = len(boards)
    if judge_count < 2 or not any(board.comparison.pairs for board in boards):
        return ""
    best = []
    for board in boards:
        is_silent = str(board.judge) in contradictory
        best.append(None if is_silent else _best(board.comparison))
    if all_judges == 2 and best[0] == best[1]:
        return ""
    winners = dict.fromkeys(filter(None, best))
    counts = {name: best.count(name) for name in winners}
    count = number_word(judge_count)
    judges = "judges"
    if judge_count < all_judges:
        judges = "judges of quality"
    models = {board.judge.model for board in boards if board.judge}
    if len(models) == 1 and "" not in models:
        judges += f" (all use {models.pop()})"
    if list(counts.values()) == [judge_count]:
        [winner] = counts
        subject = "Both" if judge_count == 2 else f"All {count}"
        return f"{subject} {judges} find {winner} significantly best."
    findings = _judges_findings(best, counts, boards)
    return f"Of {count} {judges}, {enumeration(findings)}."


def _judges_findings(
    best: list[str | None],
    counts: dict[str, int],
    boards: Sequence[Leaderboard],
) -> list[str]:
    """Phrases on the number of judges that find each generator best."""
    unscored = sum(
        winner == "" and not board.comparison.all_pairs
        for winner, board in zip(best, boards, strict=True)
    )
    undecided = best.count("") - unscored
    silent = best.count(None)
    findings = []
    for name in sorted(counts, key=lambda name: -counts[name]):
        count = counts[name]
        verb = "finds" if count == 1 else "find"
        judges = number_word(count)
        findings.append(f"{judges} {verb} {name} significantly best")
    if undecided:
        finding = f"{number_word(undecided)} cannot tell which is best"
        if undecided == len(best):
            finding = "none finds a generator significantly best"
        findings.append(finding)
    if unscored:
        have = "has" if unscored == 1 else "have"
        findings.append(f"{number_word(unscored)} {have} too few scores")
    if silent:
        contradict = "contradicts itself" if silent == 1 else "contradict themselves"
        findings.append(f"{number_word(silent)} {contradict}")
    return findings


def _best(comparison: Comparison) -> str:
    """The generator that is significantly better than all others with a rank; empty if
    undecided.
    """
    labels = [system.label for system in comparison.ranked]
    if len(labels) < 2:
        return ""
    first, *others = labels
    if all(comparison.beats(first, other) for other in others):
        return first
    return ""
