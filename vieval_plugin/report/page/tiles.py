"""Tiles of a gallery: all that a page shows of a sample or contest."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from vieval_plugin import config, images
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.judges.contests import FIRST, SECOND, Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import Choice, Image, SampleId, Status
from vieval_plugin.media.thumbnails import Thumbnail, Thumbnails
from vieval_plugin.readers.absent_images import absent_image
from vieval_plugin.records import OWN, Record, fingerprint, output_file
from vieval_plugin.report.page.disagreement import GalleryItem, Judgement, answer
from vieval_plugin.results.shard_verdicts import sample_of
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import decimals

_MOST_PICTURES = 12
_MOST_TEXT = 1500
_MOST_STEPS = 6000
_MOST_ALL_TEXT, _LEAST_TEXT = 1_200_000, 300
_STALE = "This image has changed since it was judged."
_FIRST = ("source", "mask", "subject", "concepts", "control")


@dataclass(frozen=True)
class Picture:
    """An image of a card: what it is, and its picture or, in words, why there is none."""

    role: str
    thumbnail: Thumbnail | str
    is_output: bool = False


@dataclass(frozen=True)
class GalleryVerdictStep:
    """A step of a verdict, its answer cut where it is long."""

    label: str
    status: str
    scores: str
    answer: str


@dataclass(frozen=True)
class GalleryVerdict:
    """Verdict of one judge on a tile; `disagreement` is that with people in words, `answer` its vote on a contest."""

    judge: str
    status: str
    scores: tuple[tuple[str, float], ...]
    answer: str
    disagreement: str
    order: float
    rationale: str
    steps: tuple[GalleryVerdictStep, ...]
    left_out: int


@dataclass(frozen=True)
class GalleryTile:
    """A sample or contest as a page shows it; `models` are the image models in it, `prompt` what all its outputs share;
    `file` is the output's name."""

    id: SampleId
    kind: str
    models: tuple[str, ...]
    tags: tuple[str, ...]
    prompt: str
    texts: tuple[tuple[str, str], ...]
    pictures: tuple[Picture, ...]
    note: str
    ratings: tuple[tuple[str, str], ...]
    vote: str
    verdicts: tuple[GalleryVerdict, ...]
    file: str

    @property
    def statuses(self) -> tuple[str, ...]:
        """Statuses of all its verdicts."""
        return tuple(dict.fromkeys(verdict.status for verdict in self.verdicts))

    @property
    def score(self) -> str:
        """O of the first judge, or its first score; empty where it has none."""
        scores = dict(self.verdicts[0].scores) if self.verdicts else {}
        return f"{scores.get('O', next(iter(scores.values()))):.4f}" if scores else ""

    @property
    def outputs(self) -> tuple[Thumbnail, ...]:
        """Pictures of what image models made, without those that are gone."""
        return tuple(p.thumbnail for p in self.pictures if p.is_output and isinstance(p.thumbnail, Thumbnail))


class Samples:
    """Source of the judged samples: the records themselves, or the data folder."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], Mapping[SampleId, Judged] | str] = {}

    def find(self, record: Record) -> Judged | str:
        """The sample or contest of a record; in words, why it cannot be had."""
        try:
            sample = sample_of(record)
        except VievalError as error:
            return f"Its images cannot be read: {error}"
        if sample is not None and (record.id.benchmark == OWN or _has_images(sample)):
            return sample
        key = (record.id.benchmark, record.id.part)
        if key not in self._parts:
            try:
                samples = benchmark_registry.samples(*key, config.current().data_folder())
                self._parts[key] = {sample.id: sample for sample in samples}
            except VievalError:
                self._parts[key] = "The data of this benchmark is not here, so neither images nor texts are shown."
        loaded = self._parts[key]
        if isinstance(loaded, str):
            return sample or loaded
        return loaded.get(record.id) or sample or "This sample is not in the data that is here."


def _has_images(judged: Judged) -> bool:
    """Tell whether a sample has images that are there: those that a benchmark draws are in no file to read them from."""
    return any(True for _ in images.images_of(judged)) and not absent_image(judged)


def text_room(verdicts: int) -> int:
    """Number of characters that a page shows of a verdict's rationale, and of its steps, by how many verdicts it has.

    >>> text_room(10), text_room(1000), text_room(100_000)
    (6000, 1200, 300)
    """
    return max(_LEAST_TEXT, min(_MOST_STEPS, _MOST_ALL_TEXT // max(verdicts, 1)))


def tile_of(item: GalleryItem, samples: Samples, thumbnails: Thumbnails, room: int = _MOST_STEPS) -> GalleryTile:
    """Build a tile, with its pictures rendered.

    Args:
        item: a sample or contest with its verdicts.
        samples: where to find it.
        thumbnails: the pictures of the page so far.
        room: see `text_room`.
    """
    record = item.record
    judged = samples.find(record)
    pictures: tuple[Picture, ...] = ()
    texts: Mapping[str, str] = {}
    if isinstance(judged, str):
        notes = [judged]
    else:
        pictures = tuple(
            _pictures(judged, lambda image: _STALE if images.is_changed(image) else images.thumbnail(image, thumbnails))
        )
        texts = candidates_of(judged)[0].texts
        notes = _change_notes(record, judged)
    if len(pictures) > _MOST_PICTURES:
        notes.append(f"{len(pictures) - _MOST_PICTURES} further images are not shown.")
    models = [candidate.image_model for candidate in record.candidates] or [item.id.image_model]
    return GalleryTile(
        item.id,
        record.kind or item.id.part,
        tuple(models),
        (*record.tags, *([record.category] if record.category else [])),
        "/".join([item.id.benchmark, item.id.part, record.group or item.id.uid]),
        tuple((name, _cut(text)) for name, text in texts.items()),
        pictures[:_MOST_PICTURES],
        " ".join(notes),
        tuple((aspect, _values(values)) for aspect, values in record.ratings.items()),
        _people(record),
        tuple(_verdict(judgement, record, room) for judgement in item.judgements),
        output_file(record),
    )


def _pictures(judged: Judged, thumbnail_of: Callable[[Image], Thumbnail | str]) -> list[Picture]:
    """The conditions once, then each output under its model's name."""
    samples = candidates_of(judged)
    conditions = {role: image for role, image in samples[0].images.items() if not _is_output(role)} if samples else {}
    ordered = sorted(conditions, key=lambda role: _FIRST.index(role) if role in _FIRST else len(_FIRST))
    outputs = [
        (f"{n}: {sample.id.image_model}" if isinstance(judged, Contest) else role, image)
        for n, sample in enumerate(samples, start=1)
        for role, image in sample.images.items()
        if _is_output(role)
    ]
    return [
        *(Picture(role, thumbnail_of(conditions[role])) for role in ordered),
        *(Picture(role, thumbnail_of(image), is_output=True) for role, image in outputs),
    ]


def _is_output(role: str) -> bool:
    return role == "output" or role.startswith(("frame_", "view_"))


def _change_notes(record: Record, judged: Judged) -> list[str]:
    """Note where texts or images have changed since they were judged; of missing images nothing is known."""
    if record.fingerprint in ("", _fingerprint(judged)) or not all(map(images.is_there, images.images_of(judged))):
        return []
    return ["These are not the texts or images that were judged: they have changed since."]


def _fingerprint(judged: Judged) -> str:
    try:
        return fingerprint(judged)
    except OSError:
        return "unknown"


def _people(record: Record) -> str:
    if record.votes is None or not (record.votes.vote or any(record.votes.annotators)):
        return ""
    annotators = ", ".join(vote or "-" for vote in record.votes.annotators)
    vote = _worded(record.votes.vote, record) or "no vote"
    return f"{vote} (annotators: {annotators})" if record.votes.annotators else vote


def _worded(vote: str, record: Record) -> str:
    """A vote in words, with the image model that it is for."""
    index = {FIRST: 0, SECOND: 1}.get(vote)
    model = f" ({record.candidates[index].image_model})" if index is not None and index < len(record.candidates) else ""
    return vote.replace("_", " ") + model


def _verdict(judgement: Judgement, record: Record, room: int) -> GalleryVerdict:
    verdict = judgement.record.verdict
    steps, left_out = [], 0
    most_rationale = min(_MOST_TEXT, room)
    head = ("", verdict.rationale.strip(), verdict.reason.strip())
    for step in verdict.trace:
        text = "\n".join(dict.fromkeys(text for text in (step.answer.strip(), step.reason.strip()) if text not in head))
        if not text and step.status is Status.OK:
            continue
        if room <= 0:
            left_out += 1
            continue
        excerpt = _cut(text, min(_MOST_TEXT, room))
        room -= len(excerpt)
        scores = ", ".join(f"{score:g}" for score in step.scores or step.bounds or ())
        steps.append(GalleryVerdictStep(step.label, str(step.status), scores, excerpt))
    return GalleryVerdict(
        judgement.label,
        str(verdict.status),
        tuple(verdict.scores.items()),
        _contest_answer(judgement.record),
        _disagreement_text(judgement),
        -1.0 if math.isnan(judgement.disagreement) else judgement.disagreement,
        _cut(verdict.rationale or verdict.reason, most_rationale),
        tuple(steps),
        left_out,
    )


def _contest_answer(record: Record) -> str:
    """A judge's answer to a contest, and what it comes from."""
    if record.votes is None:
        return ""
    choice = record.verdict.choice or Choice()
    parts = [f"{order} {_worded(vote, record)}" for order, vote in choice.votes.items() if vote]
    parts += [f"{order} prefers 1 by {value:.2f}" for order, value in choice.preferences.items()]
    parts += [
        f"{n}: {', '.join(f'{aspect} {value:.2f}' for aspect, value in scores.items()) or 'no score'}"
        for n, scores in enumerate(choice.scores, start=1)
    ]
    return f"{_worded(answer(record), record) or 'no answer'}" + (f" ({'; '.join(parts)})" if parts else "")


def _disagreement_text(judgement: Judgement) -> str:
    """Places of a sample among all by people and by the judge, in words."""
    if judgement.record.votes is not None:
        texts = {0.0: "as it was voted", 1.0: "the opposite of the vote"}
        return "" if math.isnan(judgement.disagreement) else texts.get(judgement.disagreement, "not as it was voted")
    if math.isnan(judgement.disagreement):
        return ""
    human, judge = judgement.human_quantile, judgement.quantile
    return f"{judgement.aspect}: rated above {human:.0%} of all, judged above {judge:.0%}"


def _values(values: Sequence[float]) -> str:
    return ", ".join(decimals(value, "g", "-") for value in values)


def _cut(text: str, length: int = _MOST_TEXT) -> str:
    return text if len(text) <= length else f"{text[:length]}… (cut: {len(text)} characters)"


def _without_numbers(rationale: str) -> set[str]:
    """Lines of a rationale, that on a contest without the numbers of its candidates."""
    return {re.sub(r"^\d+: ", "", line) for line in rationale.split("\n")}


def said_once(tiles: Sequence[GalleryTile]) -> tuple[list[GalleryTile], list[str]]:
    """Tiles without the note, and without the rationale of a judge, that all of them have; and these as sentences.

    >>> said_once([])
    ([], [])
    """
    notes = {tile.note for tile in tiles}
    rationales: dict[str, set[str]] = {}
    for verdict in (verdict for tile in tiles for verdict in tile.verdicts):
        rationales.setdefault(verdict.judge, set()).update(_without_numbers(verdict.rationale))
    repeated = {judge: next(iter(texts)) for judge, texts in rationales.items() if len(texts) == 1 and texts != {""}}
    if len(tiles) < 2:
        return list(tiles), []
    note = notes.pop() if len(notes) == 1 else ""
    trimmed = [
        replace(
            tile,
            note="" if note else tile.note,
            verdicts=tuple(replace(v, rationale="") if v.judge in repeated else v for v in tile.verdicts),
        )
        for tile in tiles
    ]
    return trimmed, [*([note] if note else []), *(f"{judge} says of each: {text}" for judge, text in repeated.items())]
