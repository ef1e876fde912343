"""Contests looked at more closely: by annotator, number of candidates, category and pair of image models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vieval_plugin.meta_evaluation.findings import Number
from vieval_plugin.meta_evaluation.vote_answers import TIE_HANDLINGS, VOTES
from vieval_plugin.meta_evaluation.vote_statistics import Entrant, JudgedPart
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.votes import FIRST, NONE, SECOND, accuracy_by_size, annotator_points, ceiling_points


def breakdown_numbers(judged: JudgedPart, scheme: str) -> Iterator[Number]:
    """Further numbers of a part of a benchmark of votes.

    Args:
        judged: the part.
        scheme: that of its votes.

    Returns:
        Agreement with each annotator beside that of the annotators with one another; rankings by number of candidates;
        accuracy by category, and by pair of image models, whichever of the two came first. Of constant answers the best
        alone stands beside categories and pairs: all of them would be most of a long table.
    """
    yield from _by_annotator(judged, scheme)
    yield from _by_size(judged, scheme)
    entrants = _with_best_constant(judged, scheme)
    tags = sorted({tag for entrant in judged.entrants for o in entrant.answers.pairs.observations for tag in o.tags})
    for tag in tags:
        for entrant in entrants:
            pairs = entrant.answers.pairs
            tagged = np.array([tag in o.tags for o in pairs.observations], dtype=bool)[pairs.contest]
            yield from _accuracies(judged, entrant, scheme, tagged, "category", tag)
    yield from _by_image_models(judged, entrants, scheme)


def _with_best_constant(judged: JudgedPart, scheme: str) -> list[Entrant]:
    accepted = [entrant for entrant in judged.entrants if entrant.accepted]
    constants = [entrant for entrant in accepted if entrant.constant]
    ties = TIE_HANDLINGS[scheme][0]
    best = max(constants, key=lambda entrant: float(np.nanmean(entrant.answers.points(ties))), default=None)
    return [entrant for entrant in accepted if not entrant.constant or entrant is best]


def _by_annotator(judged: JudgedPart, scheme: str) -> Iterator[Number]:
    ties, has_ceiling = TIE_HANDLINGS[scheme][0], False
    for entrant in (entrant for entrant in judged.entrants if entrant.accepted):
        pairs = entrant.answers.pairs
        annotations = pairs.annotations()
        if not len(annotations):
            continue
        if not has_ceiling and len(annotations) > 1:
            has_ceiling = True
            ceiling = judged.bootstrap.share(ceiling_points(annotations, ties), pairs.groups)
            label = "annotators with one another"
            yield Number(label, ceiling, judged.part, VOTES, "annotators_all", "ceiling")
        # preferences, and scores of a single group, are no votes of the most detailed kind
        why = entrant.answers.why.get(ties, "")
        codes = entrant.answers.codes.get(ties)
        right = np.full(annotations.shape, np.nan)
        if not why and codes is not None:
            right = annotator_points(codes, annotations, ties)
        for number, of_annotator in enumerate(right, start=1):
            share = judged.bootstrap.share(of_annotator, pairs.groups, why)
            yield entrant.number(judged.part, f"annotator_{number}", share)
        yield entrant.number(judged.part, "annotators_all", judged.bootstrap.share(right, pairs.groups, why))


def _by_size(judged: JudgedPart, scheme: str) -> Iterator[Number]:
    tie_handlings = TIE_HANDLINGS[scheme] if scheme == "ranking" else ()
    for entrant in (entrant for entrant in judged.entrants if entrant.accepted):
        answers, pairs, bootstrap = entrant.answers, entrant.answers.pairs, judged.bootstrap
        for ties in tie_handlings:
            by_size = accuracy_by_size(
                *(answers.points(ties), pairs.contest.tolist(), pairs.sizes, pairs.groups),
                *(bootstrap.resamples, bootstrap.seed, answers.why.get(ties, "")),
            )
            for size, share in by_size.items():
                yield entrant.number(judged.part, f"all_pairs_accuracy_{ties}", share, "candidates", str(size))


def _by_image_models(judged: JudgedPart, entrants: Sequence[Entrant], scheme: str) -> Iterator[Number]:
    models_of = {id(entrant): entrant.answers.pairs.image_models for entrant in entrants}
    model_pairs = sorted({_unordered(pair) for models in models_of.values() for pair in models})
    # of one pair alone the accuracy is told above
    for model_pair in model_pairs if len(model_pairs) > 1 else ():
        for entrant in entrants:
            models, value = models_of[id(entrant)], ", ".join(model_pair)
            of_both = np.array([_unordered(pair) == model_pair for pair in models], dtype=bool)
            yield from _accuracies(judged, entrant, scheme, of_both, "image_models", value)
            if model_pair[0] == model_pair[1]:
                continue
            pairs = entrant.answers.pairs
            winning = np.where([pair == model_pair for pair in models], FIRST, SECOND)
            voters = (("people_prefer_first", pairs.human), ("judge_prefers_first", entrant.answers.codes["decisive"]))
            for statistic, votes in voters:
                won = np.where(np.isin(votes, (FIRST, SECOND)), (votes == winning).astype(float), 0.5)
                preferred = np.where(votes == NONE, np.nan, won)
                share = judged.bootstrap.share(preferred[of_both], _masked(pairs.groups, of_both))
                yield entrant.number(judged.part, statistic, share, "image_models", value)


def _unordered(models: tuple[str, str]) -> tuple[str, str]:
    first, second = models
    return (first, second) if first <= second else (second, first)


def _accuracies(
    judged: JudgedPart, entrant: Entrant, scheme: str, mask: Bools, breakdown: str, value: str
) -> Iterator[Number]:
    """Accuracy in each way of counting, over some of the pairs."""
    answers = entrant.answers
    groups = _masked(answers.pairs.groups, mask)
    for ties in TIE_HANDLINGS[scheme]:
        share = judged.bootstrap.share(answers.points(ties)[mask], groups, answers.why.get(ties, ""))
        yield entrant.number(judged.part, f"accuracy_{ties}", share, breakdown, value)


def _masked(groups: Sequence[str], mask: Bools) -> list[str]:
    return [group for group, is_included in zip(groups, mask, strict=True) if is_included]
