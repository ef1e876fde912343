"""Contests looked at more closely: by annotator, number of candidates, category and pair of image models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vieval_plugin.meta_evaluation.tables import Table, in_percent
from vieval_plugin.meta_evaluation.vote_answers import TIE_HANDLINGS
from vieval_plugin.meta_evaluation.vote_statistics import Entrant, JudgedPart
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.votes import FIRST, NONE, SECOND, accuracy_by_size, annotator_points, ceiling_points

_INTERVAL = "% [95% interval]"


def breakdowns(judged: Sequence[JudgedPart], scheme: str) -> list[Table]:
    """The further tables of a benchmark of votes, some perhaps without rows.

    Args:
        judged: its parts.
        scheme: that of its votes.

    Returns:
        Agreement with each annotator under that of the annotators with one another; rankings by number of candidates;
        accuracy by category, and by pair of image models, whichever of the two came first.
    """
    return [
        _annotators(judged, scheme),
        _sizes(judged, scheme),
        _categories(judged, scheme),
        _generators(judged, scheme),
    ]


def _accepted_entrants(judged: Sequence[JudgedPart]) -> Iterator[tuple[JudgedPart, Entrant]]:
    return ((of_part, entrant) for of_part in judged for entrant in of_part.entrants if entrant.accepted)


def _with_best_constant(of_part: JudgedPart, scheme: str) -> list[Entrant]:
    """The judges, and of the constant answers the best: all of them would be most of a long table."""
    accepted = [entrant for entrant in of_part.entrants if entrant.accepted]
    constants = [entrant for entrant in accepted if entrant.constant]
    best = max(
        constants, key=lambda entrant: float(np.nanmean(entrant.answers.points(TIE_HANDLINGS[scheme][0]))), default=None
    )
    return [entrant for entrant in accepted if not entrant.constant or entrant is best]


def _annotators(judged: Sequence[JudgedPart], scheme: str) -> Table:
    ties = TIE_HANDLINGS[scheme][0]
    count = max((len(entrant.answers.pairs.annotations()) for _, entrant in _accepted_entrants(judged)), default=0)
    rows: list[tuple[str, ...]] = []
    parts_with_ceiling: set[str] = set()
    for of_part, entrant in _accepted_entrants(judged):
        pairs = entrant.answers.pairs
        annotations = pairs.annotations()
        if len(annotations) == 0:
            continue
        if of_part.part not in parts_with_ceiling and len(annotations) > 1:
            parts_with_ceiling.add(of_part.part)
            ceiling = of_part.bootstrap.share(ceiling_points(annotations, ties), pairs.groups)
            rows.append((of_part.part, "annotators with one another", "", *[""] * (2 * count), *_cells(ceiling)))
        # preferences, and scores of a single group, are no votes of the most detailed kind
        why = entrant.answers.why.get(ties, "")
        right = (
            np.full(annotations.shape, np.nan)
            if why
            else annotator_points(entrant.answers.codes[ties], annotations, ties)
        )
        shares = [of_part.bootstrap.share(annotator_right, pairs.groups, why) for annotator_right in right]
        blank = [""] * (2 * (count - len(shares)))
        all_of_them = of_part.bootstrap.share(right, pairs.groups, why)
        head = (of_part.part, entrant.label, entrant.subject)
        rows.append((*head, *(cell for share in shares for cell in _cells(share)), *blank, *_cells(all_of_them)))
    annotator_columns = [cell for number in range(1, count + 1) for cell in ("n", f"annotator {number}")]
    title = f"Agreement with each annotator and all of them, {ties.replace('_', '-')}, {_INTERVAL}"
    return Table("annotators", title, ("task", "judge", "votes from", *annotator_columns, "n", "all"), tuple(rows))


def _sizes(judged: Sequence[JudgedPart], scheme: str) -> Table:
    tie_handlings = TIE_HANDLINGS[scheme] if scheme == "ranking" else ()
    rows = []
    for of_part, entrant in _accepted_entrants(judged) if tie_handlings else ():
        answers, pairs, bootstrap = entrant.answers, entrant.answers.pairs, of_part.bootstrap
        contests = pairs.contest.tolist()
        by_size = {
            ties: accuracy_by_size(
                *(answers.points(ties), contests, pairs.sizes, pairs.groups),
                *(bootstrap.resamples, bootstrap.seed, answers.why.get(ties, "")),
            )
            for ties in tie_handlings
        }
        for size in np.unique(pairs.sizes).tolist():
            shares = [by_size[ties][size] for ties in tie_handlings]
            head = (of_part.part, str(size), entrant.label, entrant.subject)
            rows.append((*head, *(cell for share in shares for cell in _cells(share))))
    title = f"Contests all of whose pairs are right, by number of candidates, {_INTERVAL}"
    return Table("sizes", title, ("task", "candidates", "judge", "votes from", *_header(tie_handlings)), tuple(rows))


def _categories(judged: Sequence[JudgedPart], scheme: str) -> Table:
    rows = []
    for of_part in judged:
        tags = sorted(
            {tag for entrant in of_part.entrants for o in entrant.answers.pairs.observations for tag in o.tags}
        )
        for tag in tags:
            for entrant in _with_best_constant(of_part, scheme):
                pairs = entrant.answers.pairs
                tagged = np.array([tag in o.tags for o in pairs.observations], dtype=bool)[pairs.contest]
                head = (of_part.part, tag, entrant.label, entrant.subject)
                rows.append((*head, *_accuracies(of_part, entrant, scheme, tagged)))
    header = ("task", "category", "judge", "votes from", *_header(TIE_HANDLINGS[scheme]))
    return Table("categories", f"Accuracy by category, {_INTERVAL}; of the constants the best", header, tuple(rows))


def _generators(judged: Sequence[JudgedPart], scheme: str) -> Table:
    rows = []
    for of_part in judged:
        entrants = [(entrant, entrant.answers.pairs.image_models) for entrant in _with_best_constant(of_part, scheme)]
        pairs = sorted({_unordered(model_pair) for _, models in entrants for model_pair in models})
        # of one pair alone the accuracy is told above
        for model_pair in pairs if len(pairs) > 1 else ():
            for entrant, models in entrants:
                of_both = np.array([_unordered(pair_models) == model_pair for pair_models in models], dtype=bool)
                where = (of_part.part, *model_pair, entrant.label, entrant.subject)
                rows.append(
                    (
                        *where,
                        *_accuracies(of_part, entrant, scheme, of_both),
                        *_preferred(of_part, entrant, models, model_pair),
                    )
                )
    header = ("task", "one image model", "the other", "judge", "votes from", *_header(TIE_HANDLINGS[scheme]))
    preference_header = ("n", "people prefer the one", "n", "judge prefers the one")
    title = f"Accuracy by pair of image models, {_INTERVAL}; a tie is half a preference; of the constants the best"
    return Table("image_model_pairs", title, (*header, *preference_header), tuple(rows))


def _unordered(models: tuple[str, str]) -> tuple[str, str]:
    first, second = models
    return (first, second) if first <= second else (second, first)


def _preferred(
    of_part: JudgedPart, entrant: Entrant, models: Sequence[tuple[str, str]], model_pair: tuple[str, str]
) -> list[str]:
    """Share of preferences for the first of two image models, of people and of the judge, in whichever place it stood."""
    if model_pair[0] == model_pair[1]:
        return [""] * 4
    pairs, codes = entrant.answers.pairs, entrant.answers.codes["decisive"]
    of_both = np.array([_unordered(pair_models) == model_pair for pair_models in models], dtype=bool)
    winning = np.where([pair_models == model_pair for pair_models in models], FIRST, SECOND)
    cells: list[str] = []
    for votes in (pairs.human, codes):
        won = np.where(np.isin(votes, (FIRST, SECOND)), (votes == winning).astype(float), 0.5)
        preferred = np.where(votes == NONE, np.nan, won)
        cells += _cells(of_part.bootstrap.share(preferred[of_both], _masked(pairs.groups, of_both)))
    return cells


def _accuracies(of_part: JudgedPart, entrant: Entrant, scheme: str, mask: Bools) -> list[str]:
    """Accuracy in each way of counting, over some of the pairs."""
    answers = entrant.answers
    groups = _masked(answers.pairs.groups, mask)
    shares = [
        of_part.bootstrap.share(answers.points(ties)[mask], groups, answers.why.get(ties, ""))
        for ties in TIE_HANDLINGS[scheme]
    ]
    return [cell for share in shares for cell in _cells(share)]


def _masked(groups: Sequence[str], mask: Bools) -> list[str]:
    return [group for group, is_included in zip(groups, mask, strict=True) if is_included]


def _header(tie_handlings: Sequence[str]) -> list[str]:
    return [cell for ties in tie_handlings for cell in ("n", ties.replace("_", "-"))]


def _cells(share: Estimate) -> tuple[str, str]:
    return str(share.n), in_percent(share)
