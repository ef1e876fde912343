"""Judges whose scores are the same on every sample: perhaps one model under two names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from vieval_plugin.judges.protocol import SampleId, Verdict
from vieval_plugin.records import Run
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.decisions import LEAST_COMMON
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
    groups: list[list[str]] = []
    for label, judge_verdicts in verdicts.items():
        alike = next(
            (
                group
                for group in groups
                if _are_same(verdicts[group[0]], judge_verdicts)
            ),
            [],
        )
        groups += [] if alike else [alike]
        alike.append(label)
    sentences = []
    for group in groups:
        if len(group) < 2:
            continue
        group_verdicts = [verdicts[label] for label in group]
        common = set.intersection(*map(set, group_verdicts))
        if len(common) >= LEAST_COMMON:
            sentences.append(_sentence(group, group_verdicts, common))
    return sentences


def _scored(run: Run) -> _Verdicts:
    """The verdicts with scores or a choice, by sample, one for each time that it was judged."""
    return grouped(
        (record.id, record.verdict)
        for record in run.all_records
        if record.verdict.scores or record.verdict.choice
    )


def _are_same(first: _Verdicts, second: _Verdicts) -> bool:
    common = 0
    distinct = set()
    for sample, verdicts in first.items():
        scores = second.get(sample)
        if scores:
            if len(verdicts) != len(scores) or not all(map(_agree, verdicts, scores)):
                return False
            common += 1
            distinct.add(
                repr([(verdict.scores, verdict.choice) for verdict in verdicts])
            )
    return common >= LEAST_COMMON and len(distinct) > 1


def _agree(first: Verdict, second: Verdict) -> bool:
    """True where all scores are equal that both have, and so is the choice."""
    aspects = first.scores.keys() & second.scores.keys()
    scored = bool(aspects) or not (first.scores or second.scores)
    return (
        scored
        and first.choice == second.choice
        and all(first.scores[a] == second.scores[a] for a in aspects)
    )


def _sentence(
    labels: Sequence[str], verdicts: Sequence[_Verdicts], common: set[SampleId]
) -> str:
    are_contests = all(
        verdict.choice for sample in common for verdict in verdicts[0][sample]
    )
    score, unit = ("answer", "contests") if are_contests else ("score", "samples")
    everyone = "both" if len(labels) == 2 else "all of them"
    if all(len(judge_verdicts) == len(common) for judge_verdicts in verdicts):
        scope = ""
    else:
        scope = f" that {everyone} scored"
    return (
        f"{enumeration(labels)} gave the same {score} to all {len(common):,} {unit}{scope}. "
        "Are they the same model?"
    )
