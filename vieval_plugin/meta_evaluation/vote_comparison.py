"""Judges compared on people's votes: in how many pairs of candidates each is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.vote_answers import COUNTED, VOTES, Answers
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
    found = []
    for part in dict.fromkeys((*parts, *(part for run in runs for part in run.records))):
        drawing = Drawing.of(f"{benchmark}/{part}", options)
        judges = [entrant for entrant in entrants_of(part, runs, scheme, drawing) if not entrant.constant]
        scored = tuple(dict.fromkeys(one.subject for one in judges if not one.voting))
        for aspect in scored or ((VOTES,) if judges else ()):
            compared = [one for one in judges if one.voting or one.subject == aspect]
            found += [_compared(part, aspect, counted, compared) for counted in COUNTED[scheme]]
    return found


def _compared(part: str, aspect: str, counted: VoteScheme, entrants: Sequence[Entrant]) -> ComparedStatistic:
    judged = {entrant.label: _items(entrant.answers, counted) for entrant in entrants}
    compared = compared_means(part, aspect, f"accuracy {counted.replace('_', '-')}", judged, "pairs of candidates")
    return replace(compared, notes=(*compared.notes, *_unanswered(entrants)))


def _unanswered(entrants: Sequence[Entrant]) -> list[str]:
    """How many contests each judge answered, where some answered far fewer."""
    answered = {one.label: (len(one.answers.answered), len(one.answers.pairs.observations)) for one in entrants}
    if all(given >= _MOST * asked for given, asked in answered.values()):
        return []
    told = ", ".join(f"{label} {given} of {asked}" for label, (given, asked) in answered.items())
    return [f"a missing answer is wrong; answered: {told}"]


def _items(answers: Answers, counted: VoteScheme) -> Mapping[str, JudgedItem]:
    pairs = answers.pairs
    return {
        f"{pairs.observations[contest].uid}/{first}/{second}": JudgedItem(group, point)
        for contest, (first, second), group, point in zip(
            pairs.contest.tolist(), pairs.places.tolist(), pairs.groups, answers.points(counted).tolist(), strict=True
        )
        if not np.isnan(point)
    }
