"""Cards of a gallery: all that a page shows of a sample or contest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from vieval_plugin import config, images
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import FIRST, SECOND, Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import Choice, Image, SampleId
from vieval_plugin.records import Record, fingerprint
from vieval_plugin.report.page.disagreement import GalleryItem, Judgement, answer
from vieval_plugin.report.page.thumbnails import Thumbnail, Thumbnails
from vieval_plugin.run.evaluate import OWN
from vieval_plugin.run.samples_file import read_samples

_MOST_PICTURES = 12
_MOST_TEXT = 1500
_MOST_STEPS = 6000
_FIRST = ("source", "mask", "subject", "concepts", "control")


@dataclass(frozen=True)
class Picture:
    """An image of a card: what it is, and its picture or, in words, why there is none."""

    role: str
    shown: Thumbnail | str


@dataclass(frozen=True)
class ShownStep:
    """A step of a verdict, its answer cut where it is long."""

    label: str
    status: str
    scores: str
    said: str


@dataclass(frozen=True)
class ShownVerdict:
    """What a card says of one judge; `apart` is how far it is from people, in words, `said` its answer to a contest."""

    judge: str
    status: str
    scores: tuple[tuple[str, str], ...]
    said: str
    apart: str
    order: float
    rationale: str
    steps: tuple[ShownStep, ...]
    left_out: int


@dataclass(frozen=True)
class Card:
    """A sample or contest as a page shows it; `models` are the image models in it, `prompt` what all its outputs share."""

    id: SampleId
    kind: str
    models: tuple[str, ...]
    tags: tuple[str, ...]
    prompt: str
    texts: tuple[tuple[str, str], ...]
    pictures: tuple[Picture, ...]
    note: str
    people: tuple[tuple[str, str], ...]
    vote: str
    verdicts: tuple[ShownVerdict, ...]
    apart: float

    @property
    def statuses(self) -> tuple[str, ...]:
        """Those of all its verdicts."""
        return tuple(dict.fromkeys(one.status for one in self.verdicts))


class Samples:
    """Where to find what was judged: the data folder, and a file of the user's own samples."""

    def __init__(self, own: Path | None = None) -> None:
        self._own = own
        self._parts: dict[tuple[str, str], Mapping[SampleId, Judged] | str] = {}

    def find(self, record: Record) -> Judged | str:
        """The sample or contest of a record; in words, why it cannot be had."""
        if record.sample is not None:
            return record.sample
        key = (record.id.benchmark, record.id.part)
        if key not in self._parts:
            try:
                self._parts[key] = {one.id: one for one in self._load(*key)}
            except VievalError:
                self._parts[key] = "The data of this benchmark is not here, so neither images nor texts are shown."
        held = self._parts[key]
        return held if isinstance(held, str) else held.get(record.id, "This sample is not in the data that is here.")

    def _load(self, benchmark: str, part: str) -> Sequence[Judged]:
        if benchmark != OWN:
            return benchmark_registry.samples(benchmark, part, config.current().data_folder())
        if self._own is None:
            raise VievalError("name the samples file with --samples")
        return read_samples(self._own, part).samples


def card_of(item: GalleryItem, samples: Samples, thumbnails: Thumbnails) -> Card:
    """A card, with its pictures made.

    Args:
        item: a sample or contest with its verdicts.
        samples: where to find it.
        thumbnails: the pictures of the page so far.
    """
    record = item.record
    found = samples.find(record)
    pictures: tuple[Picture, ...] = ()
    texts: Mapping[str, str] = {}
    if isinstance(found, str):
        note = found
    else:
        pictures = tuple(_pictures(found, thumbnails.of))
        texts = candidates_of(found)[0].texts
        note = _changed(record, found)
    models = [candidate.image_model for candidate in record.candidates] or [item.id.image_model]
    return Card(
        item.id,
        record.kind or item.id.part,
        tuple(models),
        (*record.tags, *([record.category] if record.category else [])),
        "/".join([item.id.benchmark, item.id.part, record.group or item.id.uid]),
        tuple((name, _cut(text)) for name, text in texts.items()),
        pictures[:_MOST_PICTURES],
        " ".join([*([note] if note else []), *_more(len(pictures))]),
        tuple((aspect, _listed(values)) for aspect, values in record.ratings.items()),
        _people(record),
        tuple(_verdict(one, record) for one in item.judgements),
        item.apart,
    )


def _more(pictures: int) -> list[str]:
    return [f"{pictures - _MOST_PICTURES} further images are not shown."] if pictures > _MOST_PICTURES else []


def _pictures(judged: Judged, shown: Callable[[Image], Thumbnail | str]) -> list[Picture]:
    """The conditions once, then each output under its model's name."""
    samples = candidates_of(judged)
    conditions = {role: image for role, image in samples[0].images.items() if not _made(role)} if samples else {}
    ordered = sorted(conditions, key=lambda role: _FIRST.index(role) if role in _FIRST else len(_FIRST))
    made = [
        (f"{n}: {sample.id.image_model}" if isinstance(judged, Contest) else role, image)
        for n, sample in enumerate(samples, start=1)
        for role, image in sample.images.items()
        if _made(role)
    ]
    return [Picture(role, shown(image)) for role, image in chain(((r, conditions[r]) for r in ordered), made)]


def _made(role: str) -> bool:
    return role == "output" or role.startswith(("frame_", "view_"))


def _changed(record: Record, judged: Judged) -> str:
    """Whether the texts or images are others than those that were judged; of images that are gone nothing is known."""
    held = [image for sample in candidates_of(judged) for image in sample.images.values()]
    if record.fingerprint in ("", _fingerprint(judged)) or not all(map(images.is_there, held)):
        return ""
    return "These are not the texts or images that were judged: they have changed since."


def _fingerprint(judged: Judged) -> str:
    try:
        return fingerprint(judged)
    except OSError:
        return "unknown"


def _people(record: Record) -> str:
    if record.votes is None or not (record.votes.vote or any(record.votes.annotators)):
        return ""
    each = (
        f" (annotators: {', '.join(vote or '-' for vote in record.votes.annotators)})"
        if record.votes.annotators
        else ""
    )
    return f"{_worded(record.votes.vote, record) or 'no vote'}{each}"


def _worded(vote: str, record: Record) -> str:
    """A vote in words, with the image model that it is for."""
    place = {FIRST: 0, SECOND: 1}.get(vote)
    named = f" ({record.candidates[place].image_model})" if place is not None and place < len(record.candidates) else ""
    return vote.replace("_", " ") + named


def _verdict(one: Judgement, record: Record) -> ShownVerdict:
    verdict = one.record.verdict
    steps, room, left_out = [], _MOST_STEPS, 0
    for step in verdict.trace:
        said = "\n".join(dict.fromkeys(filter(None, (step.answer.strip(), step.reason.strip()))))
        if room <= 0:
            left_out += 1
            continue
        told = _cut(said, min(_MOST_TEXT, room))
        room -= len(told)
        scores = ", ".join(f"{score:g}" for score in step.scores or step.bounds or ())
        steps.append(ShownStep(step.label, str(step.status), scores, told))
    return ShownVerdict(
        one.label,
        str(verdict.status),
        tuple((aspect, f"{value:.3g}") for aspect, value in verdict.scores.items()),
        _said(one.record),
        _apart(one),
        -1.0 if math.isnan(one.apart) else one.apart,
        _cut(verdict.rationale or verdict.reason),
        tuple(steps),
        left_out,
    )


def _said(record: Record) -> str:
    """A judge's answer to a contest, and what it comes from."""
    if record.votes is None:
        return ""
    choice = record.verdict.choice or Choice()
    parts = [f"{order} {_worded(vote, record)}" for order, vote in choice.votes.items()]
    parts += [f"{order} prefers 1 by {value:.3g}" for order, value in choice.preferences.items()]
    parts += [
        f"{n}: {', '.join(f'{aspect} {value:.3g}' for aspect, value in scores.items()) or 'no score'}"
        for n, scores in enumerate(choice.scores, start=1)
    ]
    return f"{_worded(answer(record), record) or 'no answer'}" + (f" ({'; '.join(parts)})" if parts else "")


def _apart(one: Judgement) -> str:
    """In words: where people and the judge put it among all."""
    if one.record.votes is not None:
        told = {0.0: "as people say", 1.0: "the opposite of what people say"}
        return "" if math.isnan(one.apart) else told.get(one.apart, "not what people say")
    if math.isnan(one.apart):
        return ""
    return f"{one.aspect}: people put it above {one.people:.0%} of all, the judge above {one.place:.0%}"


def _listed(values: Sequence[float]) -> str:
    return ", ".join("-" if math.isnan(value) else f"{value:g}" for value in values)


def _cut(text: str, most: int = _MOST_TEXT) -> str:
    return text if len(text) <= most else f"{text[:most]}… (cut: {len(text)} characters)"
