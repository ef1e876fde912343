"""Strip of at most six pictures under the answer: where judges are furthest from the ratings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vieval_plugin.judges.contests import FIRST, SECOND
from vieval_plugin.report.page.disagreement import GalleryItem, Judgement, answer, prompt_of
from vieval_plugin.stats.agreement import mean_of_known

MOST_PICTURES = 6


@dataclass(frozen=True)
class Highlight:
    """A sample or contest worth a place in the first screen: its name there, and what was said of it, a line each."""

    item: GalleryItem
    name: str
    values: tuple[str, ...]


def largest_disagreements(items: Iterable[GalleryItem], annotators: str) -> list[Highlight]:
    """Samples and contests on which a judge is furthest from the ratings, one of each prompt.

    Args:
        items: the furthest apart first.
        annotators: what gave the ratings, in a word.
    """
    highlights: dict[tuple[str, str, str], Highlight] = {}
    for item in items:
        key = prompt_of(item.record)
        disagreeing = [judgement for judgement in item.judgements if judgement.disagreement > 0]
        if disagreeing and key not in highlights and len(highlights) < MOST_PICTURES:
            furthest = max(disagreeing, key=lambda judgement: judgement.disagreement)
            highlights[key] = Highlight(item, _name(item), _disagreement_lines(item, furthest, annotators))
    return list(highlights.values())


def _disagreement_lines(item: GalleryItem, furthest: Judgement, annotators: str) -> tuple[str, ...]:
    record = furthest.record
    if record.votes is not None:
        return f"{annotators}: {_worded(record.votes.vote, item)}", f"{furthest.label}: {_worded(answer(record), item)}"
    mean, score = mean_of_known(item.record.ratings[furthest.aspect]), record.verdict.scores[furthest.aspect]
    return (f"{annotators}: {furthest.aspect} {mean:.2f}", f"{furthest.label}: {furthest.aspect} {score:.2f}")


def _worded(vote: str, item: GalleryItem) -> str:
    """The image model that a vote prefers, or the vote in words."""
    index = {FIRST: 0, SECOND: 1}.get(vote)
    return vote.replace("_", " ") or "no answer" if index is None else item.record.candidates[index].image_model


def _name(item: GalleryItem) -> str:
    return " against ".join(candidate.image_model for candidate in item.record.candidates) or item.id.image_model
