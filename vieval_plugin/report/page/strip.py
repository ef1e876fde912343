"""Strip of at most six pictures under the answer: the best and worst of each generator, or the largest disagreements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import Markup

from vieval_plugin.judges.contests import FIRST, SECOND
from vieval_plugin.media.thumbnails import Thumbnail
from vieval_plugin.meta_evaluation.candidates import best_first
from vieval_plugin.report.page.disagreement import GalleryItem, Judgement, answer
from vieval_plugin.text.escaping import html

MOST_PICTURES = 6

_T = TypeVar("_T")


@dataclass(frozen=True)
class Highlight:
    """A sample or contest worth a place in the first screen: its name there, and what was said of it, a line each."""

    item: GalleryItem
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class StripPicture:
    """A place in the strip: the card that it leads to, its pictures, and the lines below them."""

    card: str
    thumbnails: tuple[Thumbnail, ...]
    name: str
    values: tuple[str, ...]


def strip(title: str, pictures: Sequence[StripPicture]) -> Markup:
    """The strip as HTML, of pictures that the page has already; empty where none has a picture."""
    visible = [picture for picture in pictures if picture.thumbnails][:MOST_PICTURES]
    if not visible:
        return Markup("")
    entries = Markup("").join(map(_entry, visible))
    return Markup('<div class="strip"><p>{}</p><ul>{}</ul></div>').format(html(title), entries)


def _entry(picture: StripPicture) -> Markup:
    drawing = Markup(
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="xMinYMid" role="img" aria-label="{}"><use href="#p{}"/>'
        '<rect class="edge" width="100%" height="100%"/></svg>'
    )
    uses = Markup("").join(drawing.format(t.width, t.height, html(picture.name), t.number) for t in picture.thumbnails)
    values = Markup("").join(Markup('<span class="value">{}</span>').format(html(value)) for value in picture.values)
    entry = Markup('<li><a href="#{}"><span class="seen">{}</span><span class="name">{}</span>{}</a></li>')
    return entry.format(picture.card, uses, html(picture.name), values)


def largest_disagreements(items: Iterable[GalleryItem], annotators: str) -> list[Highlight]:
    """Samples and contests on which a judge is furthest from the ratings, one of each prompt.

    Args:
        items: the furthest apart first.
        annotators: what gave the ratings, in a word.
    """
    highlights: dict[tuple[str, str, str], Highlight] = {}
    for item in items:
        key = item.id.benchmark, item.id.part, item.record.group or item.id.uid
        disagreeing = [judgement for judgement in item.judgements if judgement.disagreement > 0]
        if disagreeing and key not in highlights and len(highlights) < MOST_PICTURES:
            furthest = max(disagreeing, key=lambda judgement: judgement.disagreement)
            highlights[key] = Highlight(item, _name(item), _disagreement_lines(item, furthest, annotators))
    return list(highlights.values())


def _disagreement_lines(item: GalleryItem, furthest: Judgement, annotators: str) -> tuple[str, ...]:
    record = furthest.record
    if record.votes is not None:
        return f"{annotators}: {_worded(record.votes.vote, item)}", f"{furthest.label}: {_worded(answer(record), item)}"
    ratings = [value for value in item.record.ratings.get(furthest.aspect, ()) if not math.isnan(value)]
    mean = math.fsum(ratings) / len(ratings) if ratings else math.nan
    score = record.verdict.scores[furthest.aspect]
    return (f"{annotators}: {furthest.aspect} {mean:.2f}", f"{furthest.label}: {furthest.aspect} {score:.2f}")


def best_and_worst(items: Sequence[GalleryItem], generators: Sequence[str]) -> list[Highlight]:
    """The best and the worst of each generator by the first judge; of contests one for each answer.

    Args:
        items: with a verdict or none.
        generators: in the order in which they are shown; others follow.
    """
    contests = [item for item in items if item.record.candidates]
    if len(contests) == len(items):
        return _each_answer(contests)
    judge = next((judgement.label for item in items for judgement in item.judgements if judgement.aspect), "")
    scored: dict[str, list[tuple[float, str, GalleryItem]]] = {generator: [] for generator in generators}
    for item in items:
        for judgement in (j for j in item.judgements if j.label == judge and j.aspect):
            score = judgement.record.verdict.scores[judgement.aspect]
            scored.setdefault(item.id.image_model, []).append((score, judgement.aspect, item))
    scored = {generator: entries for generator, entries in scored.items() if entries}
    per_end = max(1, MOST_PICTURES // (2 * max(len(scored), 1)))
    highlights = [
        Highlight(item, generator, (f"{end}: {aspect} {score:.2f}",))
        for generator, entries in scored.items()
        for end, (score, aspect, item) in ends(
            sorted(entries, key=lambda entry: best_first(entry[0], entry[2].id)), per_end
        )
    ]
    return highlights[:MOST_PICTURES]


def ends(ordered: Sequence[_T], n: int) -> list[tuple[str, _T]]:
    """The `each` best and the `each` worst of a sequence, the best first, none twice.

    >>> ends([4, 3, 2, 1], 1), ends([4], 1)
    ([('best', 4), ('worst', 1)], [('best', 4)])
    """
    return [("best", entry) for entry in ordered[:n]] + [("worst", entry) for entry in ordered[n:][-n:]]


def _each_answer(contests: Iterable[GalleryItem]) -> list[Highlight]:
    """A contest for each image model that is preferred, and one for each other answer."""
    by_answer: dict[str, Highlight] = {}
    for item in contests:
        value = _worded(answer(item.record), item)
        by_answer.setdefault(value, Highlight(item, _name(item), (f"preferred: {value}",)))
    return list(by_answer.values())[:MOST_PICTURES]


def _worded(vote: str, item: GalleryItem) -> str:
    """The image model that a vote prefers, or the vote in words."""
    index = {FIRST: 0, SECOND: 1}.get(vote)
    return vote.replace("_", " ") or "no answer" if index is None else item.record.candidates[index].image_model


def _name(item: GalleryItem) -> str:
    return " against ".join(candidate.image_model for candidate in item.record.candidates) or item.id.image_model
