"""A verdict with its identity, its provenance and the human ratings: as data, and as the JSON that
hosts carry.

The JSON is what a run leaves behind: lmms-eval's samples file holds neither document nor arguments,
so the response carries identity, provenance and verdict, and the target carries the ratings.
`results/documents.py` reads both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from vieval_plugin.judges.contests import Contest, Judged, Votes
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Step, Verdict
from vieval_plugin.text.redaction import remove_secrets
from vieval_plugin.text.untrusted import isfile
from vieval_plugin.text.wording import nan_to_none
from vieval_plugin.text.yaml_json import JsonObject

SCHEMA = 2
#: The benchmark of a user's own samples.
OWN = "own"
#: Name of that benchmark in sentences and titles, and of the generator of samples that name none.
YOUR_IMAGES = "your images"
#: The path of the one step of a sample that its judge was not asked about.
UNJUDGED = ("sample",)


def unjudged(status: Status, reason: str) -> Verdict:
    """The verdict on a sample that the judge is not asked about."""
    return Verdict({}, status, trace=(Step(UNJUDGED, status, reason=reason),))


class CalibratedScore(NamedTuple):
    """Score that a calibration adds; files have its fields as a list."""

    #: Name of the score.
    name: str
    #: Quality of the score, in words.
    quality: str
    #: Hash of the calibration's file.
    hash: str


@dataclass(frozen=True)
class Provenance:
    """The origin of a verdict."""

    judge: str
    #: Words that tell its variants apart (`0shot`).
    settings: tuple[str, ...]
    #: Aspects that it rates.
    aspects: tuple[str, ...]
    #: Name that tables call it by.
    backbone: str = ""
    #: Name of the prompt pack.
    pack: str = ""
    #: Hash of the prompt pack.
    pack_hash: str = ""
    #: Hash of the options in force.
    config_hash: str = ""
    #: It is of a replay.
    recorded: bool = False
    #: Resolved options of the run in the form of an options file, less keys.
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    #: Name that the user gave the run.
    label: str = ""
    #: Reader of the text in images, with its version and a digest of its weights; empty where text
    #: is not read.
    reader: str = ""
    #: The calibrated score; empty if missing.
    calibration: CalibratedScore | tuple[()] = ()

    @property
    def setting(self) -> str:
        """The settings in words, for people."""
        return " ".join(self.settings)

    @property
    def calibrated_scores(self) -> tuple[str, ...]:
        """Names of calibrated scores, of which there is one or none."""
        return (self.calibration.name,) if self.calibration else ()

    @property
    def calibration_note(self) -> str:
        """Line on a calibrated score and how good it is; empty if missing."""
        if not self.calibration:
            return ""
        name, quality, digest = self.calibration
        return f"{name} estimates people's ratings: {quality}, calibration {digest}"


@dataclass(frozen=True)
class Generation:
    """The making of an image by a generator."""

    #: The file; empty if missing.
    image: str = ""
    #: Cost by name (`generation_seconds`, ...).
    cost: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class InputRow:
    """The row of a data set that a verdict in a folder of shards is about."""

    #: The folder of shards.
    folder: str
    #: File as the folder's plan has it.
    file: str
    row: int
    #: Number among the row's prompts.
    prompt: int
    #: SHA-256 of the output's file; empty without a file.
    digest: str
    #: Answers were kept.
    traced: bool
    #: Group of the sample; empty where its prompt is one alone.
    group: str = ""


@dataclass(frozen=True)
class Totals:
    """Totals that a benchmark makes of the scores of its images."""

    #: Name of the benchmark.
    benchmark: str
    #: Names of the totals: `categories`, `all` and `any`.
    names: tuple[str, ...]
    #: Score from which on an image is right; None where scores are averaged.
    threshold: float | None


@dataclass(frozen=True)
class Record:
    """A sample or contest after a run, with its verdict and human ratings."""

    #: Identity of the sample or contest.
    id: SampleId
    verdict: Verdict
    #: Provenance of the verdict.
    provenance: Provenance
    #: Ratings by aspect, one an annotator, NaN where an annotator gave none; none of a contest.
    ratings: Mapping[str, tuple[float, ...]]
    #: Tags of the sample.
    tags: tuple[str, ...] = ()
    #: Fingerprint of the sample as it was judged.
    fingerprint: str = ""
    #: Kind of the sample.
    kind: str = ""
    #: Group of the sample.
    group: str = ""
    #: Place of the sample.
    place: tuple[int, ...] = ()
    #: Votes on a contest; None of a sample.
    votes: Votes | None = None
    #: Candidates of a contest.
    candidates: tuple[SampleId, ...] = ()
    #: Category of the sample.
    category: str = ""
    #: Making of an image that a generator made in the run.
    generation: Generation | None = None
    #: The sample that was judged, where it is at hand.
    sample: Judged | None = None
    #: Tokens that the verdict took as the host says, in and out; None where it says nothing.
    tokens: int | None = None
    #: File in which the host says how long the run took.
    summary: Path | None = None
    #: Ratings of each candidate of a contest; empty where annotators rated none.
    rated: tuple[Mapping[str, tuple[float, ...]], ...] = ()
    #: Row of a verdict in a folder of shards, from which the sample is read where it is needed.
    row: InputRow | None = None
    #: Version of VIEval that wrote the verdict; empty where its file does not say.
    version: str = field(default="", compare=False)
    #: Totals of the benchmark whose layout the images had; None for other samples.
    totals: Totals | None = field(default=None, compare=False)


def output_file(record: Record) -> str:
    """The name of the file that was judged; empty for a contest, an image without a file, and
    where it is not known.
    """
    if not isinstance(record.sample, Sample):
        return ""
    output = record.sample.images.get("output")
    if output is None or output.origin or isinstance(output.source, bytes):
        return ""
    return output.source.name


@dataclass(frozen=True)
class JudgeName:
    """Name of a judge where generators are ranked: the method, its setting, the model that it asks
    or the run's label.

    `details` are further options that tell it from others.

    >>> str(JudgeName("viescore", "0shot", "mid")), str(JudgeName("sharpness", "", "sharpness"))
    ('viescore 0shot (mid)', 'sharpness')
    """

    #: The method.
    judge: str
    setting: str
    #: Model that it asks, or the run's label.
    model: str
    #: Further options that tell it from others.
    details: str = ""

    @property
    def words(self) -> str:
        """The name as a sentence has it, without setting and options.

        >>> JudgeName("viescore", "0shot", "mid").words, JudgeName("sharpness", "", "sharpness").words
        ('viescore with mid', 'sharpness')
        """
        return f"{self.judge} with {self.model}" if self.backbone else self.judge

    @property
    def backbone(self) -> str:
        """The model that it asks, empty where it asks none."""
        return "" if self.model == self.judge else self.model

    def __str__(self) -> str:
        further = ", ".join(filter(None, [self.backbone, self.details]))
        words = [self.judge, self.setting, f"({further})" if further else ""]
        return " ".join(filter(None, words))


#: Records by part, each sample's together.
RecordsByPart: TypeAlias = dict[str, list[tuple[Record, ...]]]


@dataclass(frozen=True)
class Run:
    """Records of one judge on one benchmark."""

    #: Name in tables.
    label: str
    benchmark: str
    judge: str
    #: Aspects that it rates.
    aspects: tuple[str, ...]
    #: Records by part, each sample's together.
    records: RecordsByPart
    #: Option of this name in the judge's description.
    against_all: bool = False
    #: Option of this name in the judge's description.
    table: str = ""
    #: Setting of the verdicts, where it is known.
    setting: str = ""
    #: Model of the verdicts, where it is known.
    model: str = ""
    #: Options that tell it from other runs of that judge and model.
    details: str = ""

    @property
    def name(self) -> JudgeName:
        """The judge's name in tables of generators."""
        return JudgeName(
            self.judge, self.setting, self.model or self.label, self.details
        )

    @property
    def records_by_sample(self) -> list[tuple[Record, ...]]:
        """The records of each sample, in all parts."""
        return list(chain(*self.records.values()))

    @property
    def all_records(self) -> list[Record]:
        """The records of all samples, in all parts."""
        return list(chain(*self.records_by_sample))


def record_of(judged: Judged, verdict: Verdict, provenance: Provenance) -> Record:
    """The record of a user's own sample or contest, without its fingerprint.

    Args:
        judged: with its images and texts, which the record keeps.
        verdict: on it.
        provenance: of the verdict.
    """
    record = Record(
        judged.id,
        verdict,
        provenance,
        ratings={},
        tags=judged.tags,
        kind=judged.kind,
        group=judged.group,
        sample=judged,
    )
    if isinstance(judged, Contest):
        candidates = tuple(candidate.id for candidate in judged.candidates)
        return replace(record, votes=judged.votes, candidates=candidates)
    return replace(record, group=judged.id.uid, category=judged.category)


def rated_record(judged: Judged, verdict: Verdict, provenance: Provenance) -> Record:
    """The record of a benchmark's sample or contest, with what people said of it.

    Args:
        judged: the benchmark's.
        verdict: on it.
        provenance: of the verdict.
    """
    record = replace(
        record_of(judged, verdict, provenance), group=judged.group, sample=None
    )
    if isinstance(judged, Contest):
        return record
    return replace(record, ratings=judged.ratings, place=judged.place)


def fingerprint(judged: Judged) -> str:
    """A short name for what was judged: the sample's texts and annotations, and the roles and sizes
    of its image files.

    Of a contest it stands for those of all its candidates.
    """
    if isinstance(judged, Contest):
        described: list[Any] = [*map(fingerprint, judged.candidates)]
    else:
        sizes = {role: _size(image) for role, image in sorted(judged.images.items())}
        noted = {
            name: json.dumps(value, ensure_ascii=False)
            for name, value in judged.annotations.items()
        }
        described = [dict(sorted({**judged.texts, **noted}.items())), sizes]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:16]


def _size(image: Image) -> int:
    if isinstance(image.source, bytes):
        return len(image.source)
    return image.source.stat().st_size if isfile(image.source) else -1


def response_json(
    identity: SampleId,
    verdict: Verdict,
    provenance: Provenance,
    judged: str = "",
    generation: Generation | None = None,
) -> str:
    """The response a host stores for a sample: one line, no `<` (hosts strip what looks like a
    reasoning tag).

    `judged` is the fingerprint of the sample, `generation` how a generator made it.
    """
    document = {
        "vieval": SCHEMA,
        "id": asdict(identity),
        "verdict": verdict_document(verdict),
        "sample": judged,
        "provenance": asdict(provenance),
    }
    if generation:
        document["made"] = asdict(generation)
    return one_line(document)


@dataclass(frozen=True)
class Unjudged:
    """An image that a run made for a judge and left to be judged later."""

    #: The sample, without its output where there is no image.
    sample: Sample
    #: Making of the image.
    generation: Generation
    #: The judge; empty for none.
    judge: str
    setting: str = ""
    #: Reason why there is no image; empty where there is one.
    reason: str = ""
    #: Findings on the image.
    findings: tuple[str, ...] = ()
    #: Status of a sample without its image.
    status: Status = Status.NO_IMAGE


def unjudged_json(unjudged: Unjudged) -> str:
    """The response a host stores for an image that is not judged yet; its conditions stand in
    the target.
    """
    fields = {
        "judge": unjudged.judge,
        "setting": unjudged.setting,
        "findings": unjudged.findings,
        "reason": unjudged.reason,
    }
    if unjudged.reason:
        fields["status"] = str(unjudged.status)
    document = {
        "vieval": SCHEMA,
        "id": asdict(unjudged.sample.id),
        "made": asdict(unjudged.generation),
    }
    return one_line(document | remove_secrets(fields))


def one_line(document: Mapping[str, Any]) -> str:
    """A document as a host carries it."""
    return json.dumps(document, allow_nan=False).replace("<", "\\u003c")


def verdict_document(verdict: Verdict) -> JsonObject:
    """A verdict as JSON values, less secrets of this process; only one on a contest has a
    choice.
    """
    document: JsonObject = remove_secrets(asdict(verdict))
    if verdict.choice is None:
        del document["choice"]
    return document


def target_json(judged: Judged) -> str:
    """The target a host stores: identity, people's ratings (null where a rater gave none) or
    votes, tags and place.
    """
    if isinstance(judged, Contest):
        return _contest_target(judged)
    category = {"category": judged.category} if judged.category else {}
    return json.dumps(
        {
            "vieval": SCHEMA,
            "id": asdict(judged.id),
            "kind": judged.kind,
            "group": judged.group,
            "place": judged.place,
            **category,
            "ratings": _ratings(judged),
            "tags": judged.tags,
        }
    )


def conditions_json(sample: Sample) -> str:
    """The target a host stores for conditions: as `target_json`, with the texts and the files
    that an image was made from.
    """
    paths = {
        role: str(image.source)
        for role, image in sample.images.items()
        if not isinstance(image.source, bytes)
    }
    target = json.loads(target_json(sample))
    return json.dumps({**target, "texts": dict(sample.texts), "images": paths})


def _contest_target(contest: Contest) -> str:
    rated = list(map(_ratings, contest.candidates))
    return json.dumps(
        {
            "vieval": SCHEMA,
            "id": asdict(contest.id),
            "kind": contest.kind,
            "group": contest.group,
            "place": [],
            "ratings": {},
            "tags": contest.tags,
            "votes": asdict(contest.votes),
            "candidates": [asdict(candidate.id) for candidate in contest.candidates],
            **({"rated": rated} if any(rated) else {}),
        }
    )


def _ratings(sample: Sample) -> dict[str, list[float | None]]:
    """People's ratings as JSON values: null where a rater gave none."""
    return {
        aspect: [nan_to_none(value) for value in values]
        for aspect, values in sample.ratings.items()
    }


def lines_of(text: str) -> list[str]:
    """The lines of a JSONL text. They end at a line feed and nowhere else: a model may say
    U+2028 or U+0085.
    """
    return text.removesuffix("\n").split("\n") if text else []
