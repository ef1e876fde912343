"""Contests looked at more closely: by annotator, number of candidates, category and pair of image models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vieval_plugin.meta_evaluation.tables import Table, with_interval
from vieval_plugin.meta_evaluation.vote_answers import COUNTED
from vieval_plugin.meta_evaluation.vote_entrants import Entrant, JudgedPart
from vieval_plugin.meta_evaluation.vote_statistics import Share, shown
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.votes import FIRST, NONE, SECOND, accuracy_by_size, annotator_points, ceiling_points

_INTERVAL = "% [95% interval]"


def in_percent(found: Share) -> str:
    """A share as a table shows it.

    >>> in_percent(Share(0.4266, 0.4, 0.45, np.zeros(1)))
    '42.66 [40.00, 45.00]'
    """
    return with_interval(100 * found.value, 100 * found.low, 100 * found.high, found.reason, digits=2)


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


def _each(judged: Sequence[JudgedPart]) -> Iterator[tuple[JudgedPart, Entrant]]:
    return ((of_part, entrant) for of_part in judged for entrant in of_part.entrants if entrant.accepted)


def _with_best_constant(of_part: JudgedPart, scheme: str) -> list[Entrant]:
    """The judges, and of the constant answers the best: all of them would be most of a long table."""
    accepted = [one for one in of_part.entrants if one.accepted]
    constants = [one for one in accepted if one.constant]
    best = max(constants, key=lambda one: float(np.nanmean(one.answers.points(COUNTED[scheme][0]))), default=None)
    return [one for one in accepted if not one.constant or one is best]


def _annotators(judged: Sequence[JudgedPart], scheme: str) -> Table:
    counted = COUNTED[scheme][0]
    most = max((len(one.answers.pairs.annotations()) for _, one in _each(judged)), default=0)
    rows: list[tuple[str, ...]] = []
    told: set[str] = set()
    for of_part, entrant in _each(judged):
        pairs = entrant.answers.pairs
        annotations = pairs.annotations()
        if len(annotations) == 0:
            continue
        if of_part.part not in told and len(annotations) > 1:
            told.add(of_part.part)
            ceiling = of_part.drawing.share(ceiling_points(annotations, counted), pairs.groups)
            rows.append((of_part.part, "annotators with one another", "", *[""] * (2 * most), *_cells(ceiling)))
        # preferences, and scores of a single group, are no votes of the most detailed kind
        why = entrant.answers.why.get(counted, "")
        right = (
            np.full(annotations.shape, np.nan)
            if why
            else annotator_points(entrant.answers.codes[counted], annotations, counted)
        )
        each = [of_part.drawing.share(one, pairs.groups, why) for one in right]
        blank = [""] * (2 * (most - len(each)))
        all_of_them = of_part.drawing.share(right, pairs.groups, why)
        named = (of_part.part, entrant.label, entrant.subject)
        rows.append((*named, *(cell for one in each for cell in _cells(one)), *blank, *_cells(all_of_them)))
    numbered = [cell for number in range(1, most + 1) for cell in ("n", f"annotator {number}")]
    title = f"Agreement with each annotator and all of them, {counted.replace('_', '-')}, {_INTERVAL}"
    return Table("annotators", title, ("task", "judge", "votes from", *numbered, "n", "all"), tuple(rows))


def _sizes(judged: Sequence[JudgedPart], scheme: str) -> Table:
    counted = COUNTED[scheme] if scheme == "ranking" else ()
    rows = []
    for of_part, entrant in _each(judged) if counted else ():
        pairs, drawing = entrant.answers.pairs, of_part.drawing
        contests = pairs.contest.tolist()
        by_size = {
            one: accuracy_by_size(
                entrant.answers.points(one), contests, pairs.sizes, pairs.groups, drawing.draws, drawing.seed
            )
            for one in counted
        }
        for size in np.unique(pairs.sizes).tolist():
            found = [shown(by_size[one][size], entrant.answers.why.get(one, "")) for one in counted]
            named = (of_part.part, str(size), entrant.label, entrant.subject)
            rows.append((*named, *(cell for one in found for cell in _cells(one))))
    title = f"Contests all of whose pairs are right, by number of candidates, {_INTERVAL}"
    return Table("sizes", title, ("task", "candidates", "judge", "votes from", *_header(counted)), tuple(rows))


def _categories(judged: Sequence[JudgedPart], scheme: str) -> Table:
    rows = []
    for of_part in judged:
        tags = sorted({tag for one in of_part.entrants for o in one.answers.pairs.observations for tag in o.tags})
        for tag in tags:
            for entrant in _with_best_constant(of_part, scheme):
                pairs = entrant.answers.pairs
                tagged = np.array([tag in o.tags for o in pairs.observations], dtype=bool)[pairs.contest]
                named = (of_part.part, tag, entrant.label, entrant.subject)
                rows.append((*named, *_accuracies(of_part, entrant, scheme, tagged)))
    header = ("task", "category", "judge", "votes from", *_header(COUNTED[scheme]))
    return Table("categories", f"Accuracy by category, {_INTERVAL}; of the constants the best", header, tuple(rows))


def _generators(judged: Sequence[JudgedPart], scheme: str) -> Table:
    rows = []
    for of_part in judged:
        named = [(one, one.answers.pairs.image_models) for one in _with_best_constant(of_part, scheme)]
        pairs = sorted({_unordered(both) for _, models in named for both in models})
        # of one pair alone the accuracy is told above
        for both in pairs if len(pairs) > 1 else ():
            for entrant, models in named:
                of_both = np.array([_unordered(one) == both for one in models], dtype=bool)
                where = (of_part.part, *both, entrant.label, entrant.subject)
                rows.append(
                    (
                        *where,
                        *_accuracies(of_part, entrant, scheme, of_both),
                        *_preferred(of_part, entrant, models, both),
                    )
                )
    header = ("task", "one image model", "the other", "judge", "votes from", *_header(COUNTED[scheme]))
    told = ("n", "people prefer the one", "n", "judge prefers the one")
    title = f"Accuracy by pair of image models, {_INTERVAL}; a tie is half a preference; of the constants the best"
    return Table("image_model_pairs", title, (*header, *told), tuple(rows))


def _unordered(models: tuple[str, str]) -> tuple[str, str]:
    first, second = models
    return (first, second) if first <= second else (second, first)


def _preferred(
    of_part: JudgedPart, entrant: Entrant, models: Sequence[tuple[str, str]], both: tuple[str, str]
) -> list[str]:
    """How often people, and the judge, prefer the first of two image models, in whichever place it stood."""
    if both[0] == both[1]:
        return [""] * 4
    pairs, codes = entrant.answers.pairs, entrant.answers.codes["decisive"]
    of_both = np.array([_unordered(one) == both for one in models], dtype=bool)
    winning = np.where([one == both for one in models], FIRST, SECOND)
    cells: list[str] = []
    for said in (pairs.human, codes):
        won = np.where(np.isin(said, (FIRST, SECOND)), (said == winning).astype(float), 0.5)
        given = np.where(said == NONE, np.nan, won)
        cells += _cells(of_part.drawing.share(given[of_both], _some(pairs.groups, of_both)))
    return cells


def _accuracies(of_part: JudgedPart, entrant: Entrant, scheme: str, some: Bools) -> list[str]:
    """Accuracy in each way of counting, over some of the pairs."""
    answers = entrant.answers
    groups = _some(answers.pairs.groups, some)
    found = [
        of_part.drawing.share(answers.points(one)[some], groups, answers.why.get(one, "")) for one in COUNTED[scheme]
    ]
    return [cell for one in found for cell in _cells(one)]


def _some(groups: Sequence[str], some: Bools) -> list[str]:
    return [group for group, wanted in zip(groups, some, strict=True) if wanted]


def _header(counted: Sequence[str]) -> list[str]:
    return [cell for one in counted for cell in ("n", one.replace("_", "-"))]


def _cells(found: Share) -> tuple[str, str]:
    return str(found.count), in_percent(found)
