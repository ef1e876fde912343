"""Tiles of a gallery: all that a page shows of a sample or contest, or of all images of a
prompt.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from vieval_plugin import images
from vieval_plugin.judges import objects
from vieval_plugin.judges.contests import (
    FIRST,
    FORWARD,
    REVERSE,
    SECOND,
    Contest,
    Judged,
    candidates_of,
)
from vieval_plugin.judges.objects import DetectedObject
from vieval_plugin.judges.pairwise.question import LETTERS, presentation_order
from vieval_plugin.judges.protocol import (
    Choice,
    Image,
    Sample,
    SampleId,
    Status,
    Verdict,
)
from vieval_plugin.judges.tools import from_json
from vieval_plugin.media.thumbnails import Thumbnail, Thumbnails
from vieval_plugin.meta_evaluation.findings import preferred
from vieval_plugin.meta_evaluation.measures import mean_of
from vieval_plugin.meta_evaluation.win_rates import EVEN
from vieval_plugin.readers.absent_images import absent_image
from vieval_plugin.records import OWN, YOUR_IMAGES, Record, fingerprint, output_file
from vieval_plugin.report.page.disagreement import (
    GalleryItem,
    Judgement,
    answer,
    prompt_of,
)
from vieval_plugin.results.rows import sample_of
from vieval_plugin.stats.agreement import mean_of_known
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import decimals, enumeration, plural, rounded

_MOST_PICTURES = 12
_MOST_TEXT = 1500
_MOST_STEPS = 6000
_MOST_ALL_TEXT = 1_200_000
_LEAST_TEXT = 300
#: Words of the results of contests by their points.
_OUTCOMES = {
    1.0: "beat",
    EVEN: "tied with",
    0.0: "lost to",
}
_FIRST = ("source", "mask", "subject", "concepts", "control")


@dataclass(frozen=True)
class Picture:
    """An image of a card."""

    #: Its role: `source`, `output` or, among others, its generator.
    role: str
    #: Thumbnail, or the reason why it has none.
    thumbnail: Thumbnail | str
    #: True for what an image model made.
    is_output: bool = False
    #: Score of the first judge, or its points in contests; NaN where it has none.
    score: float = math.nan
    #: Scores of the first judge in words, and those of annotators.
    scores: str = ""
    #: Reason of the first judge, of the aspect on which the outputs differ most.
    reason: str = ""
    #: Objects that the first judge's detector found.
    objects: tuple[DetectedObject, ...] = ()


@dataclass(frozen=True)
class GalleryVerdictStep:
    """A step of a verdict, its answer cut where it is long."""

    label: str
    status: str
    scores: str
    answer: str


@dataclass(frozen=True)
class GalleryVerdict:
    """Verdict of one judge on a tile; `disagreement` is that with people in words, `answer` its
    vote on a contest.

    `on` is the generator that it is on where the tile has several.
    """

    judge: str
    on: str
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
    """A sample or contest, or a prompt, as a page shows it; `models` are the image models in it,
    `prompt` what all its outputs share; `file` is the output's name.
    """

    id: SampleId
    title: str
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
    is_of_prompt: bool = False

    @property
    def statuses(self) -> tuple[str, ...]:
        """Statuses of all its verdicts."""
        return tuple(dict.fromkeys(verdict.status for verdict in self.verdicts))

    @property
    def values(self) -> list[float]:
        """Scores of the first judge on its outputs."""
        return [
            picture.score for picture in self.pictures if not math.isnan(picture.score)
        ]

    @property
    def score(self) -> str:
        """Mean of these scores; empty if missing."""
        if self.values:
            return f"{mean_of(self.values):.4f}"
        return ""

    @property
    def outputs(self) -> tuple[Thumbnail, ...]:
        """Pictures of what image models made, without those that are gone."""
        return tuple(
            p.thumbnail
            for p in self.pictures
            if p.is_output and isinstance(p.thumbnail, Thumbnail)
        )


class Samples:
    """Source of the judged samples: the records themselves, or the data folder."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], Mapping[SampleId, Judged] | str] = {}

    def find(self, record: Record) -> Judged | str:
        """The sample or contest of a record; in words, why it cannot be had."""
        try:
            sample = sample_of(record)
        except VievalError as error:
            return f"Cannot read the images: {error}"
        if sample is not None and (record.id.benchmark == OWN or _has_images(sample)):
            return sample
        key = (record.id.benchmark, record.id.part)
        if key not in self._parts:
            from vieval_plugin.results.lookup import samples_by_id

            try:
                self._parts[key] = samples_by_id(*key)
            except VievalError:
                self._parts[key] = (
                    "The data of this benchmark is not on this machine, so images and texts are not shown."
                )
        loaded = self._parts[key]
        if isinstance(loaded, str):
            return sample or loaded
        return (
            loaded.get(record.id)
            or sample
            or "This sample is not in the data on this machine."
        )


def _has_images(judged: Judged) -> bool:
    """Return whether a sample has images that are there: those that a benchmark draws
    are in no file to read them from.
    """
    has_image = any(True for _ in images.images_of(judged))
    return has_image and not absent_image(judged)


def text_room(verdicts: int) -> int:
    """Number of characters that a page shows of a verdict's rationale, and of its steps, by how
    many verdicts it has.

    >>> text_room(10), text_room(1000), text_room(100_000)
    (6000, 1200, 300)
    """
    room = _MOST_ALL_TEXT // max(verdicts, 1)
    return max(_LEAST_TEXT, min(_MOST_STEPS, room))


def tile_of(
    item: GalleryItem,
    samples: Samples,
    thumbnails: Thumbnails,
    room: int = _MOST_STEPS,
    by_prompt: bool = False,
    generators: Sequence[str] = (),
    repeated: Mapping[str, str] | None = None,
) -> GalleryTile:
    """Build a tile, with its pictures rendered.

    Args:
        item: a sample or contest with its verdicts, or all those of a prompt.
        samples: where to find it.
        thumbnails: the pictures of the page so far.
        room: see `text_room`.
        by_prompt: whether the outputs of a prompt stand side by side, each under its generator with
            its score.
        generators: their order.
        repeated: the rationale of judges that all tiles have, and none shows.
    """
    records = item.records
    notes = list[str]()
    judged = list[Judged]()
    for record in records:
        sample = samples.find(record)
        if isinstance(sample, str):
            notes.append(sample)
            continue
        judged.append(sample)
        notes += _change_notes(record, sample)
    candidates = chain(*map(candidates_of, judged))
    by_id = {sample.id: sample for sample in candidates}
    outputs = list(by_id.values())
    names = [""] * len(outputs)
    if by_prompt:
        outputs = _ordered_outputs(outputs, generators)
        names = [_generator(sample.id) for sample in outputs]
    elif judged and isinstance(judged[0], Contest):
        names = []
        for n, sample in enumerate(outputs, start=1):
            names.append(f"{n}: {sample.id.image_model}")
    room_each = room // len(records)
    repeated_texts = repeated or {}
    verdicts = [
        _verdict(judgement, room_each, by_prompt, repeated_texts)
        for judgement in item.judgements
    ]
    captions = _captions(item, verdicts)
    pictures = _pictures(outputs, names, captions, thumbnails)
    hidden = len(pictures) - _MOST_PICTURES
    if hidden > 0:
        notes.append(f"Not shown: {plural(hidden, 'more image')}.")
    models = [c.image_model for record in records for c in record.candidates]
    if not models:
        models = [record.id.image_model for record in records]
    record = item.record
    title = " against ".join(models) or item.id.uid
    ratings: Mapping[str, Sequence[float]] = record.ratings
    file = ""
    if by_prompt:
        title = record.group or item.id.uid
        ratings = {}
    else:
        file = output_file(record)
    texts = outputs[0].texts if outputs else {}
    tags = [*record.tags]
    if record.category:
        tags.append(record.category)
    return GalleryTile(
        item.id,
        title,
        record.kind or item.id.part,
        tuple(dict.fromkeys(models)),
        tuple(tags),
        "/".join(prompt_of(record)),
        tuple((name, _cut(text)) for name, text in texts.items()),
        tuple(pictures[:_MOST_PICTURES]),
        " ".join(dict.fromkeys(notes)),
        tuple((aspect, _values(values)) for aspect, values in ratings.items()),
        _people(record),
        tuple(verdicts),
        file,
        by_prompt,
    )


def _ordered_outputs(
    outputs: Sequence[Sample], generators: Sequence[str]
) -> list[Sample]:
    """Outputs of a prompt in the order of their generators."""
    places = {generator: place for place, generator in enumerate(generators)}

    def place(sample: Sample) -> tuple[int, int]:
        generator = sample.id.image_model or YOUR_IMAGES
        return places.get(generator, len(places)), sample.id.draw

    return sorted(outputs, key=place)


def _generator(identity: SampleId) -> str:
    model = identity.image_model or YOUR_IMAGES
    return f"{model} #{identity.draw}" if identity.draw else model


def points_of(record: Record) -> tuple[float, ...]:
    """Points of both candidates of a contest, a tie being half a win; none without an answer."""
    if not record.verdict.status.usable or len(record.candidates) != 2:
        return ()
    vote = answer(record)
    if not vote:
        return ()
    won = {FIRST: 1.0, SECOND: 0.0}.get(vote, EVEN)
    return (won, 1 - won)


def mean_ratings(record: Record) -> str:
    """The means of people's ratings of each aspect, in words."""
    texts = []
    for aspect, ratings in record.ratings.items():
        mean = float(mean_of_known(ratings))
        if not math.isnan(mean):
            texts.append(f"{aspect} {rounded(mean, 2)}")
    return ", ".join(texts)


def score_of(record: Record) -> float:
    """O of a verdict, or else what comes first; NaN without scores."""
    scores = record.verdict.scores
    if not scores:
        return math.nan
    first, *_ = preferred(list(scores))
    return scores[first]


def _caption_name(aspect: str) -> str:
    """A score's name in a caption, with a mark where it is calibrated."""
    raw = aspect.removesuffix("_calibrated")
    if raw == aspect:
        return aspect
    return f"{raw} (calibrated)"


def _captions(
    item: GalleryItem, verdicts: Sequence[GalleryVerdict]
) -> dict[SampleId, Picture]:
    """Scores and reasons of the first judge on each output, as pictures without a thumbnail."""
    contests = list[tuple[Record, str]]()
    scored = list[tuple[Record, str]]()
    first_judge = item.judgements[0].label
    for judgement, verdict in zip(item.judgements, verdicts, strict=True):
        if judgement.label != first_judge:
            continue
        record = judgement.record
        explained = contests if record.candidates else scored
        explained.append((record, verdict.rationale))
    aspect = _most_different_aspect(scored)
    captions = {}
    for record, rationale in scored:
        reason = _aspect_reason(rationale, aspect, record)
        captions[record.id] = _scored_caption(record, reason)
    candidates = chain(*(record.candidates for record, _ in contests))
    for sample in {*candidates}:
        captions[sample] = _contest_caption(sample, contests)
    return captions


def _most_different_aspect(scored: Sequence[tuple[Record, str]]) -> str:
    """The aspect on which outputs differ most, of those that reasons are given for; empty where
    none is.
    """
    values = grouped(
        (aspect, score)
        for record, rationale in scored
        for aspect, score in record.verdict.scores.items()
        if re.search(rf"^{re.escape(aspect)}: ", rationale, re.MULTILINE)
    )
    ranges = {}
    for aspect, scores in values.items():
        ranges[aspect] = max(scores) - min(scores)
    return max(ranges, key=ranges.__getitem__, default="")


def _aspect_reason(rationale: str, aspect: str, record: Record) -> str:
    """The reason of one aspect among all; all where it has none."""
    if not aspect:
        return rationale
    names = "|".join(map(re.escape, record.verdict.scores))
    pattern = rf"^{re.escape(aspect)}: .*?(?=\n(?:{names}): |\Z)"
    match = re.search(pattern, rationale, re.MULTILINE | re.DOTALL)
    return match[0] if match else rationale


def _scored_caption(record: Record, reason: str) -> Picture:
    scores = record.verdict.scores
    captions = []
    for aspect in preferred(list(scores)):
        name = _caption_name(aspect)
        score = rounded(scores[aspect], 2)
        captions.append(f"{name} {score}")
    caption = ", ".join(captions) or str(record.verdict.status)
    ratings = mean_ratings(record)
    if ratings:
        caption += f"; annotators: {ratings}"
    return Picture(
        "",
        "no image",
        True,
        score_of(record),
        caption,
        reason,
        _detected_objects(record),
    )


def _detected_objects(record: Record) -> tuple[DetectedObject, ...]:
    """Objects of a trace; none where it is of another judge, or not as ours are."""
    try:
        return tuple(
            found
            for step in record.verdict.trace
            if step.path == (objects.NAME,) and step.status.usable
            for found in objects.detected_objects(from_json(step.answer))
            if all(map(math.isfinite, (*found.box, found.score)))
            and len(found.box) == 4
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return ()


def _contest_caption(
    sample: SampleId, contests: Sequence[tuple[Record, str]]
) -> Picture:
    """Results of an output in its contests, with the reason of one, which is a win if it has any;
    the reason of a single contest is under the winner.
    """
    results = [
        (points, record.candidates[1 - position].image_model, rationale)
        for record, rationale in contests
        for position, points in enumerate(points_of(record))
        if record.candidates[position] == sample
    ]
    if not results:
        return Picture("", "no image", True)
    values = [points for points, *_ in results]
    rivals = grouped((points, rival) for points, rival, _ in results)
    texts = []
    for points, verb in _OUTCOMES.items():
        if points in rivals:
            distinct = list(dict.fromkeys(rivals[points]))
            texts.append(f"{verb} {enumeration(distinct)}")
    text = "; ".join(texts)
    contest_count = len(values)
    if contest_count > 1:
        wins = values.count(1.0)
        text = f"won {wins} of {contest_count}: {text}"
    most_points, _, rationale = max(results, key=lambda result: result[0])
    reason = ""
    if most_points or len(contests) > 1:
        reason = rationale
    return Picture(
        "",
        "no image",
        True,
        mean_of(values),
        text,
        reason,
    )


def _pictures(
    outputs: Sequence[Sample],
    names: Sequence[str],
    captions: Mapping[SampleId, Picture],
    thumbnails: Thumbnails,
) -> list[Picture]:
    """The conditions once, then each output under its name."""

    def thumbnail_of(image: Image) -> Thumbnail | str:
        if images.is_changed(image):
            return "changed since it was judged"
        return images.thumbnail(image, thumbnails)

    first_images = outputs[0].images if outputs else {}
    conditions = [role for role in first_images if not _is_output(role)]
    conditions.sort(key=_condition_place)
    pictures = []
    for role in conditions:
        thumbnail = thumbnail_of(first_images[role])
        pictures.append(Picture(role, thumbnail))
    for sample, name in zip(outputs, names, strict=True):
        caption = captions.get(sample.id, Picture("", "no image", True))
        roles = [role for role in sample.images if _is_output(role)]
        for role in roles:
            title = name
            if not name or len(roles) > 1:
                title = f"{name} {role}".strip()
            thumbnail = thumbnail_of(sample.images[role])
            pictures.append(replace(caption, role=title, thumbnail=thumbnail))
        if name and not roles:
            pictures.append(replace(caption, role=name))
    return pictures


def _condition_place(role: str) -> int:
    """Return the place of a condition among all, those without one last."""
    if role in _FIRST:
        return _FIRST.index(role)
    return len(_FIRST)


def _is_output(role: str) -> bool:
    return role == "output" or role.startswith(("frame_", "view_"))


def _change_notes(record: Record, judged: Judged) -> list[str]:
    """Note where texts or images have changed since they were judged; of missing images nothing
    is known.
    """
    judged_images = list(images.images_of(judged))
    if any(map(images.is_changed, judged_images)):
        return ["An image has changed since it was judged."]
    is_same = record.fingerprint in ("", _fingerprint(judged))
    if is_same or not all(map(images.is_there, judged_images)):
        return []
    return ["These texts or images have changed since they were judged."]


def _fingerprint(judged: Judged) -> str:
    try:
        return fingerprint(judged)
    except OSError:
        return "unknown"


def _people(record: Record) -> str:
    votes = record.votes
    if votes is None:
        return ""
    if not votes.vote and not any(votes.annotators):
        return ""
    text = _worded(votes.vote, record) or "no vote"
    if votes.annotators:
        annotators = ", ".join(vote or "-" for vote in votes.annotators)
        text += f" (annotators: {annotators})"
    return text


def _worded(vote: str, record: Record) -> str:
    """A vote in words, with the image model that it is for."""
    index = {FIRST: 0, SECOND: 1}.get(vote)
    text = vote.replace("_", " ")
    if index is not None and index < len(record.candidates):
        text += f" ({record.candidates[index].image_model})"
    return text


def _verdict(
    judgement: Judgement,
    room: int,
    by_prompt: bool,
    repeated: Mapping[str, str],
) -> GalleryVerdict:
    record = judgement.record
    verdict = record.verdict
    rationale = ""
    if judgement.label not in repeated:
        rationale = _cut(reasons(record), min(_MOST_TEXT, room))
    steps, left_out = _steps(verdict, room)
    on = ""
    if by_prompt:
        models = " and ".join(c.image_model for c in record.candidates)
        on = models or _generator(record.id)
    order = judgement.disagreement
    if math.isnan(order):
        order = -1.0
    return GalleryVerdict(
        judgement.label,
        on,
        str(verdict.status),
        tuple(verdict.scores.items()),
        _contest_answer(record),
        _disagreement_text(judgement),
        order,
        rationale,
        tuple(steps),
        left_out,
    )


def _steps(verdict: Verdict, room: int) -> tuple[list[GalleryVerdictStep], int]:
    """Cut the steps of a verdict to `room` characters, and count those without room."""
    steps = []
    left_out = 0
    head = ("", verdict.rationale.strip(), verdict.reason.strip())
    for step in verdict.trace:
        texts = dict.fromkeys((step.answer.strip(), step.reason.strip()))
        text = "\n".join(text for text in texts if text not in head)
        if not text and step.status is Status.OK:
            continue
        if room <= 0:
            left_out += 1
            continue
        excerpt = _cut(text, min(_MOST_TEXT, room))
        room -= len(excerpt)
        step_scores = step.scores or step.bounds or ()
        scores = ", ".join(f"{score:g}" for score in step_scores)
        status = str(step.status)
        steps.append(GalleryVerdictStep(step.label, status, scores, excerpt))
    return steps, left_out


def scores_text(scores: Mapping[str, float]) -> str:
    """Scores by aspect in words."""
    texts = [f"{aspect} {rounded(value, 2)}" for aspect, value in scores.items()]
    return ", ".join(texts)


def _contest_answer(record: Record) -> str:
    """A judge's answer to a contest, and what it comes from."""
    if record.votes is None:
        return ""
    choice = record.verdict.choice or Choice()
    parts = [
        f"{order} {_worded(vote, record)}"
        for order, vote in choice.votes.items()
        if vote
    ]
    parts += [
        f"{order} prefers 1 by {value:.2f}"
        for order, value in choice.preferences.items()
    ]
    for n, scores in enumerate(choice.scores, start=1):
        score = scores_text(scores) or "no score"
        parts.append(f"{n}: {score}")
    text = _worded(answer(record), record) or "no answer"
    if parts:
        text += f" ({'; '.join(parts)})"
    return text


def _disagreement_text(judgement: Judgement) -> str:
    """Places of a sample among all by people and by the judge, in words."""
    disagreement = judgement.disagreement
    if math.isnan(disagreement):
        return ""
    if judgement.record.votes is not None:
        texts = {0.0: "agrees with the vote", 1.0: "contradicts the vote"}
        return texts.get(disagreement, "differs from the vote")
    return (
        f"{judgement.aspect}: "
        f"place by people {judgement.human_quantile:.0%}, "
        f"by the judge {judgement.quantile:.0%} "
        "(0% is the lowest, equal scores share a place)"
    )


def _values(values: Sequence[float]) -> str:
    return ", ".join(decimals(value, ".3g", "-") for value in values)


def _cut(text: str, length: int = _MOST_TEXT) -> str:
    total = len(text)
    if total <= length:
        return text
    return f"{text[:length]}… (truncated, {total} characters in total)"


def reasons(record: Record) -> str:
    """The rationale or reason of a verdict; on a contest, each order names the image that each
    letter stood for.
    """
    verdict = record.verdict
    lines = []
    for line in (verdict.rationale or verdict.reason).split("\n"):
        order, colon, reason = line.partition(": ")
        if order in (FORWARD, REVERSE) and colon:
            letters = _letters(order, record)
            line = f"{order} ({letters}): {reason}"
        lines.append(line)
    return "\n".join(lines)


def _letters(order: str, record: Record) -> str:
    """The letter of each candidate in an order: `A: second generator, B: first generator`."""
    numbers = presentation_order(order, len(record.candidates))
    texts = []
    for letter, number in zip(LETTERS, numbers, strict=False):
        candidate = record.candidates[number - 1]
        name = candidate.image_model or f"image {number}"
        texts.append(f"{letter}: {name}")
    return ", ".join(texts)


def repeated_rationales(items: Sequence[GalleryItem]) -> dict[str, str]:
    """The rationale of each judge that gives the same on all items.

    >>> repeated_rationales([])
    {}
    """
    if len(items) < 2:
        return {}
    rationales = defaultdict[str, set[str]](set)
    for judgement in chain(*(item.judgements for item in items)):
        verdict = judgement.record.verdict
        text = verdict.rationale or verdict.reason
        rationales[judgement.label] |= {
            re.sub(r"^\d+: ", "", line) for line in text.split("\n")
        }
    return {
        judge: min(texts)
        for judge, texts in rationales.items()
        if len(texts) == 1 and any(texts)
    }
