"""Judges compared on people's votes: in how many pairs of candidates each is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.vote_answers import TIE_HANDLINGS, VOTES, Answers
from vieval_plugin.meta_evaluation.vote_entrants import Entrant, entrants_of
from vieval_plugin.meta_evaluation.vote_statistics import Drawing
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import VoteScheme

_MOST = 0.95  # a judge that answered less than this share is told of


def compared_votes(
    benchmark: str, parts: Sequence[str], runs: Sequence[Run], scheme: str, options: StatisticsOptions
) -> list[ComparedStatistic]:
    """An entry a part, aspect and way of counting.

    A judge that votes itself stands beside those that score, whichever aspect they are compared on. A missing
    answer is wrong, so a contest that a judge failed on counts.

    Args:
        benchmark: its name; with the part it joins the seed of the folds in which thresholds are chosen.
        parts: all parts of the benchmark, in order.
        runs: one a judge, labels all different.
        scheme: that of the benchmark's votes.
        options: the seed.
    """
    comparisons = []
    for part in dict.fromkeys((*parts, *(part for run in runs for part in run.records))):
        drawing = Drawing.of(f"{benchmark}/{part}", options)
        judges = [entrant for entrant in entrants_of(part, runs, scheme, drawing) if not entrant.constant]
        scored = tuple(dict.fromkeys(entrant.subject for entrant in judges if not entrant.voting))
        for aspect in scored or ((VOTES,) if judges else ()):
            compared = [entrant for entrant in judges if entrant.voting or entrant.subject == aspect]
            comparisons += [_compared(part, aspect, tie_handling, compared) for tie_handling in TIE_HANDLINGS[scheme]]
    return comparisons


def _compared(part: str, aspect: str, tie_handling: VoteScheme, entrants: Sequence[Entrant]) -> ComparedStatistic:
    judged = {entrant.label: _items(entrant.answers, tie_handling) for entrant in entrants}
    compared = compared_means(part, aspect, f"accuracy {tie_handling.replace('_', '-')}", judged, "pairs of candidates")
    return replace(compared, notes=(*compared.notes, *_unanswered(entrants)))


def _unanswered(entrants: Sequence[Entrant]) -> list[str]:
    """Notes on the number of contests that each judge answered, where some answered far fewer."""
    answer_counts = {
        entrant.label: (len(entrant.answers.answered), len(entrant.answers.pairs.observations)) for entrant in entrants
    }
    if all(answers >= _MOST * contests for answers, contests in answer_counts.values()):
        return []
    listed = ", ".join(f"{label} {answers} of {contests}" for label, (answers, contests) in answer_counts.items())
    return [f"a missing answer is wrong; answered: {listed}"]


def _items(answers: Answers, tie_handling: VoteScheme) -> Mapping[str, JudgedItem]:
    pairs = answers.pairs
    return {
        f"{pairs.observations[contest].uid}/{first}/{second}": JudgedItem(group, point)
        for contest, (first, second), group, point in zip(
            pairs.contest.tolist(),
            pairs.places.tolist(),
            pairs.groups,
            answers.points(tie_handling).tolist(),
            strict=True,
        )
        if not np.isnan(point)
    }
