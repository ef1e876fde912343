"""Strip of at most six pictures under the answer: where judges are furthest from the ratings."""

from __future__ import annotations

from collections.abc import Iterable

from vieval_plugin.judges.contests import FIRST, SECOND
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.report.page.disagreement import (
    GalleryItem,
    Judgement,
    answer,
    prompt_of,
)
from vieval_plugin.stats.agreement import mean_of_known

MOST_PICTURES = 6


def largest_disagreements(
    items: Iterable[GalleryItem], annotators: str
) -> dict[SampleId, tuple[str, ...]]:
    """Samples and contests on which a judge is furthest from the ratings, one of each prompt, with
    what was said of each.

    Args:
        items: the furthest apart first.
        annotators: what gave the ratings, in a word.
    """
    furthest: dict[tuple[str, str, str], tuple[GalleryItem, Judgement]] = {}
    for item in items:
        disagreeing = [
            judgement for judgement in item.judgements if judgement.disagreement > 0
        ]
        if disagreeing and len(furthest) < MOST_PICTURES:
            judgement = max(disagreeing, key=lambda judgement: judgement.disagreement)
            furthest.setdefault(prompt_of(item.record), (item, judgement))
    return {
        item.id: _disagreement_lines(item, judgement, annotators)
        for item, judgement in furthest.values()
    }


def _disagreement_lines(
    item: GalleryItem, furthest: Judgement, annotators: str
) -> tuple[str, ...]:
    record = furthest.record
    if record.votes is not None:
        return (
            f"{annotators}: {_worded(record.votes.vote, item)}",
            f"{furthest.label}: {_worded(answer(record), item)}",
        )
    mean, score = (
        mean_of_known(item.record.ratings[furthest.aspect]),
        record.verdict.scores[furthest.aspect],
    )
    return (
        f"{annotators}: {furthest.aspect} {mean:.2f}",
        f"{furthest.label}: {furthest.aspect} {score:.2f}",
    )


def _worded(vote: str, item: GalleryItem) -> str:
    """The image model that a vote prefers, or the vote in words."""
    index = {FIRST: 0, SECOND: 1}.get(vote)
    return (
        vote.replace("_", " ") or "no answer"
        if index is None
        else item.record.candidates[index].image_model
    )
