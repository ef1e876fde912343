"""Agreement of two judges on which of two images is better, and how often each is right where they
agree and where they do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean
from typing import TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.findings import preferred
from vieval_plugin.meta_evaluation.observations import (
    Observation,
    apply_contest_policy,
    observe,
)
from vieval_plugin.meta_evaluation.vote_answers import (
    NEVER_JUDGED,
    Pairs,
    judge_codes,
    paired,
    subjects_of,
)
from vieval_plugin.records import Run
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import FIRST, NONE, SECOND, TIE, TwoJudges, two_judges

#: The judge's code for each pair of images, that of people, and the cluster, by part, uid and the
#: two images.
_PairAnswers: TypeAlias = dict[tuple[str, ...], tuple[int, int, str]]


def agreement_of_two(
    runs: Sequence[Run], options: StatisticsOptions
) -> TwoJudges | None:
    """Agreement of two judges of one benchmark, and how often each is right where they agree and
    elsewhere.

    Pairs are those of contests, and of outputs of two image models for one prompt, by an aspect
    that both judges score.

    Args:
        runs: the judges'.
        options: the failure policy, the seed.

    Returns:
        Shares in [0, 1] of the pairs that both answered; None unless there are two judges with such
        pairs.
    """
    if len(runs) != 2:
        return None
    aspects = preferred(
        [aspect for aspect in runs[0].aspects if aspect in runs[1].aspects]
    )
    first, second = (_pair_answers(run, aspects, options) for run in runs)
    common = [
        key
        for key in first
        if key in second and NONE not in (first[key][0], second[key][0])
    ]
    if not common:
        return None
    judged = [first[key] for key in common]
    first_codes = np.array([first[key][0] for key in common], dtype=float)
    second_codes = np.array([second[key][0] for key in common], dtype=float)
    human_votes = [vote for _, vote, _ in judged]
    groups = [group for *_, group in judged]
    return two_judges(first_codes, second_codes, human_votes, groups, options.seed)


def _pair_answers(
    run: Run, aspects: Sequence[str], options: StatisticsOptions
) -> _PairAnswers:
    """A judge's answers by the first of these aspects; in contests, where one may vote and the
    other score, else by its own.
    """
    answers: _PairAnswers = {}
    for part, judged in run.records.items():
        observed = [
            observation
            for observation in apply_contest_policy(map(observe, judged), options)
            if observation.status not in NEVER_JUDGED
        ]
        pairs = paired([observation for observation in observed if observation.contest])
        if pairs.observations:
            answers |= _contest_answers(pairs, observed, aspects or run.aspects, part)
        by_prompt = grouped(
            (observation.uid, observation)
            for observation in observed
            if aspects and not observation.contest
        )
        for uid, samples in by_prompt.items():
            answers |= _image_answers(samples, aspects[0], part, uid)
    return answers


def _contest_answers(
    pairs: Pairs,
    observed: list[Observation],
    aspects: Sequence[str],
    part: str,
) -> _PairAnswers:
    subject = preferred(subjects_of(observed, aspects))[0]
    codes = judge_codes(pairs, subject)
    uids = [pairs.observations[number].uid for number in pairs.contest]
    compared = zip(uids, pairs.indices, codes, pairs.human, pairs.groups, strict=True)
    return {
        (part, uid, *map(str, images)): _answer(part, *answer)
        for uid, images, *answer in compared
    }


def _image_answers(
    samples: list[Observation], aspect: str, part: str, uid: str
) -> _PairAnswers:
    answers: _PairAnswers = {}
    ordered = sorted(
        samples, key=lambda observation: (observation.image_model, observation.draw)
    )
    for two in combinations(ordered, 2):
        scores = [observation.scores.get(aspect, math.nan) for observation in two]
        ratings = [
            fmean(observation.ratings.get(aspect) or [math.nan]) for observation in two
        ]
        images = [
            f"{observation.image_model}/{observation.draw}" for observation in two
        ]
        answer = _answer(part, _code(*scores), _code(*ratings), two[0].group)
        answers[part, uid, *images] = answer
    return answers


def _code(first: float, second: float) -> int:
    if math.isnan(first + second):
        return NONE
    if first == second:
        return TIE
    if first > second:
        return FIRST
    return SECOND


def _answer(part: str, code: int, vote: int, group: str) -> tuple[int, int, str]:
    return int(code), int(vote), f"{part}/{group}"
