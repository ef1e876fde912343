"""Break down votes by annotator, number of candidates, category and pair of image
models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vieval_plugin.meta_evaluation.findings import Number
from vieval_plugin.meta_evaluation.vote_answers import TIE_HANDLINGS, VOTES
from vieval_plugin.meta_evaluation.vote_statistics import (
    Entrant,
    JudgedPart,
    Points,
    accuracy,
    all_pairs_right_shares,
)
from vieval_plugin.stats.votes import (
    FIRST,
    NONE,
    SECOND,
    VoteScheme,
    annotator_points,
    ceiling_points,
)


def breakdown_numbers(judged: JudgedPart, scheme: str) -> Iterator[Number]:
    """Breakdowns of a part of a vote benchmark.

    Args:
        judged: the part.
        scheme: that of its votes.

    Returns:
        Agreement with each annotator beside that of the annotators with one another;
        rankings by number of candidates; accuracy by category, and by pair of image
        models, whichever of the two came first. Only the best constant answer is
        included for categories and pairs, to keep the table short.
    """
    entrants = [entrant for entrant in judged.entrants if entrant.accepted]
    ties = TIE_HANDLINGS[scheme][0]
    yield from _annotator_breakdown(judged, entrants, ties)
    yield from _size_breakdown(judged, entrants, scheme)
    constants = [entrant for entrant in entrants if entrant.constant]
    best = max(
        constants,
        key=lambda entrant: float(np.nanmean(entrant.answers.points(ties))),
        default=None,
    )
    accuracies = {
        entrant: {
            f"accuracy_{ties}": accuracy(ties, entrant.answers)
            for ties in TIE_HANDLINGS[scheme]
        }
        for entrant in entrants
        if not entrant.constant or entrant is best
    }
    tags = {
        tag
        for entrant in judged.entrants
        for observation in entrant.answers.pairs.observations
        for tag in observation.tags
    }
    for tag in sorted(tags):
        for entrant, shares in accuracies.items():
            pairs = entrant.answers.pairs
            has_tag = [tag in observation.tags for observation in pairs.observations]
            tagged = np.array(has_tag, dtype=bool)[pairs.contest]
            for name, points in shares.items():
                yield judged.number(
                    entrant, name, points.where(tagged), "category", tag
                )
    yield from _model_breakdown(accuracies, judged)


def _model_breakdown(
    accuracies: dict[Entrant, dict[str, Points]], judged: JudgedPart
) -> Iterator[Number]:
    models_of = {entrant: entrant.answers.pairs.image_models for entrant in accuracies}
    model_pairs = sorted(
        {_unordered(pair) for models in models_of.values() for pair in models}
    )
    # with a single pair this repeats the accuracy above
    for model_pair in model_pairs if len(model_pairs) > 1 else ():
        for entrant, shares in accuracies.items():
            models = models_of[entrant]
            is_model_pair = np.array(
                [_unordered(pair) == model_pair for pair in models], dtype=bool
            )
            if model_pair[0] != model_pair[1]:
                shares = shares | _preferences(entrant, models, model_pair)
            for name, points in shares.items():
                yield judged.number(
                    entrant,
                    name,
                    points.where(is_model_pair),
                    "image_models",
                    ", ".join(model_pair),
                )


def _annotator_breakdown(
    judged: JudgedPart, entrants: Sequence[Entrant], ties: VoteScheme
) -> Iterator[Number]:
    has_ceiling = False
    for entrant in entrants:
        answers = entrant.answers
        pairs = answers.pairs
        annotations = pairs.annotations()
        if not len(annotations):
            continue
        if not has_ceiling and len(annotations) > 1:
            has_ceiling = True
            ceiling = judged.bootstrap.share(
                ceiling_points(annotations, ties), pairs.groups
            )
            yield Number(
                system="annotators against each other",
                estimate=ceiling,
                part=judged.part,
                aspect=VOTES,
                statistic="annotators_all",
                role="ceiling",
            )
        # preferences, and scores of a single group, are no votes of the most detailed kind
        why = answers.why.get(ties, "")
        right = np.full(annotations.shape, np.nan)
        if not why:
            right = annotator_points(answers.codes[ties], annotations, ties)
        for number, annotator_right in enumerate(right, start=1):
            yield judged.number(
                entrant,
                f"annotator_{number}",
                Points(annotator_right, pairs.groups, why),
            )
        yield judged.number(entrant, "annotators_all", Points(right, pairs.groups, why))


def _size_breakdown(
    judged: JudgedPart, entrants: Sequence[Entrant], scheme: str
) -> Iterator[Number]:
    for entrant in entrants:
        sizes = entrant.answers.pairs.contest_sizes
        for name, share in all_pairs_right_shares(scheme).items():
            points = share(entrant.answers)
            for size in np.unique(sizes):
                yield judged.number(
                    entrant, name, points.where(sizes == size), "candidates", str(size)
                )


def _preferences(
    entrant: Entrant, models: Sequence[tuple[str, str]], model_pair: tuple[str, str]
) -> dict[str, Points]:
    """Frequency with which people, and the judge, prefer the first of two image models; a tie is
    half a preference.
    """
    pairs = entrant.answers.pairs
    winning = np.where([pair == model_pair for pair in models], FIRST, SECOND)
    preferences = {}
    for statistic, votes in (
        ("people_prefer_first", pairs.human),
        ("judge_prefers_first", entrant.answers.codes["decisive"]),
    ):
        mask = np.isin(votes, (FIRST, SECOND))
        won = np.where(mask, (votes == winning).astype(float), 0.5)
        answered_won = np.where(votes == NONE, np.nan, won)
        preferences[statistic] = Points(answered_won, pairs.groups)
    return preferences


def _unordered(models: tuple[str, str]) -> tuple[str, str]:
    first, second = sorted(models)
    return first, second
