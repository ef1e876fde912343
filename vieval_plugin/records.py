"""A verdict with its identity, its provenance and the human ratings: as data, and as the JSON that hosts carry.

The JSON is what a run leaves behind: lmms-eval's samples file holds neither document nor arguments, so the response
carries identity, provenance and verdict, and the target carries the ratings. `results/documents.py` reads both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from vieval_plugin.judges.contests import Contest, Judged, Votes
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Step, Verdict
from vieval_plugin.text.redaction import without_secrets
from vieval_plugin.text.untrusted import isfile
from vieval_plugin.text.wording import nan_to_none

SCHEMA = 2
OWN = "own"
"""The benchmark of a user's own samples."""
YOUR_IMAGES = "your images"
"""Name of that benchmark in sentences and titles, and of the generator of samples that name none."""
UNJUDGED = ("sample",)
"""The path of the one step of a sample that its judge was not asked about."""


def unjudged(status: Status, reason: str) -> Verdict:
    """The verdict on a sample that the judge is not asked about."""
    return Verdict({}, status, trace=(Step(UNJUDGED, status, reason=reason),))


@dataclass(frozen=True)
class Provenance:
    """The origin of a verdict.

    `judge` is the method, `settings` the words that tell its variants apart (`0shot`), `aspects` what it rates,
    `backbone` the name that tables call it by, `pack` and `pack_hash` the wording, `config_hash` the options in force.
    `recorded` marks a replay, `label` is what the user called the run. `options` are the resolved options of the run in
    the form of an options file, less keys.
    """

    judge: str
    settings: tuple[str, ...]
    aspects: tuple[str, ...]
    backbone: str = ""
    pack: str = ""
    pack_hash: str = ""
    config_hash: str = ""
    recorded: bool = False
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    label: str = ""

    @property
    def setting(self) -> str:
        """The settings in words, for people."""
        return " ".join(self.settings)


@dataclass(frozen=True)
class Generation:
    """The making of an image by a generator: the file, and what it cost, by name (`generation_seconds`, ...)."""

    image: str = ""
    cost: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class InputRow:
    """The row of a data set that a verdict in a folder of shards is about.

    `file` is as the folder's plan has it, `row` the number in it from 0, `prompt` which of the row's prompts. `digest` is
    the SHA-256 of the output's file, `traced` says whether answers were kept.
    """

    folder: str
    file: str
    row: int
    prompt: int
    digest: str
    traced: bool


@dataclass(frozen=True)
class Record:
    """A sample or contest after a run, with its verdict and human ratings.

    `ratings` maps an aspect to one value a rater, NaN where a rater gave none; `tags`, `kind`, `group`, `place` and
    `category` are the sample's. `generation` is there for images that a generator made in the run, and then `sample` is
    what was judged. `fingerprint` is that of the sample as it was judged. `tokens` is what the host says that the verdict
    took, in and out, None where it says nothing; `summary` the file in which it says how long the run took. A contest
    has `votes` and `candidates`, and no ratings of its own; `rated` are those of each candidate, and empty where people
    rated none. `row` is there for verdicts of a folder of shards, and then `sample` is not, but is read where it is
    needed.
    """

    id: SampleId
    verdict: Verdict
    provenance: Provenance
    ratings: Mapping[str, tuple[float, ...]]
    tags: tuple[str, ...] = ()
    fingerprint: str = ""
    kind: str = ""
    group: str = ""
    place: tuple[int, ...] = ()
    votes: Votes | None = None
    candidates: tuple[SampleId, ...] = ()
    category: str = ""
    generation: Generation | None = None
    sample: Judged | None = None
    tokens: int | None = None
    summary: Path | None = None
    rated: tuple[Mapping[str, tuple[float, ...]], ...] = ()
    row: InputRow | None = None


def output_file(record: Record) -> str:
    """The name of the file that was judged; empty for a contest, an image without a file, and where it is not known."""
    output = record.sample.images.get("output") if isinstance(record.sample, Sample) else None
    return output.source.name if output and isinstance(output.source, Path) and not output.origin else ""


@dataclass(frozen=True)
class JudgeName:
    """Name of a judge where generators are ranked: the method, its setting, the model that it asks or the run's label.

    `details` are further options that tell it from others.

    >>> str(JudgeName("viescore", "0shot", "mid")), str(JudgeName("sharpness", "", "sharpness"))
    ('viescore 0shot (mid)', 'sharpness')
    """

    judge: str
    setting: str
    model: str
    details: str = ""

    def __str__(self) -> str:
        further = ", ".join(filter(None, ["" if self.model == self.judge else self.model, self.details]))
        return " ".join(filter(None, [self.judge, self.setting, f"({further})" if further else ""]))


@dataclass(frozen=True)
class Run:
    """Records of one judge on one benchmark, by part, each sample's together; `label` is what tables call it.

    `against_all` and `table` are as the judge's description has them. `setting` and `model` are those of the verdicts,
    where they are known; `details` are options that tell it from other runs of that judge and model.
    """

    label: str
    benchmark: str
    judge: str
    aspects: tuple[str, ...]
    records: dict[str, list[tuple[Record, ...]]]
    against_all: bool = False
    table: str = ""
    setting: str = ""
    model: str = ""
    details: str = ""

    @property
    def name(self) -> JudgeName:
        """The judge's name beside generators."""
        return JudgeName(self.judge, self.setting, self.model or self.label, self.details)


def record_of(judged: Judged, verdict: Verdict, provenance: Provenance) -> Record:
    """The record of a user's own sample or contest, without its fingerprint.

    Args:
        judged: with its images and texts, which the record keeps.
        verdict: on it.
        provenance: of the verdict.
    """
    contest = judged if isinstance(judged, Contest) else None
    return Record(
        judged.id,
        verdict,
        provenance,
        {},
        judged.tags,
        kind=judged.kind,
        group=judged.group if contest else judged.id.uid,
        votes=contest.votes if contest else None,
        candidates=tuple(candidate.id for candidate in contest.candidates) if contest else (),
        category="" if isinstance(judged, Contest) else judged.category,
        sample=judged,
    )


def rated_record(judged: Judged, verdict: Verdict, provenance: Provenance) -> Record:
    """The record of a benchmark's sample or contest, with what people said of it.

    Args:
        judged: the benchmark's.
        verdict: on it.
        provenance: of the verdict.
    """
    common = partial(Record, judged.id, verdict, provenance, tags=judged.tags, kind=judged.kind, group=judged.group)
    if isinstance(judged, Contest):
        candidates = tuple(candidate.id for candidate in judged.candidates)
        return common(ratings={}, votes=judged.votes, candidates=candidates)
    return common(ratings=judged.ratings, place=judged.place, category=judged.category)


def fingerprint(judged: Judged) -> str:
    """A short name for what was judged: the sample's texts and annotations, and the roles and sizes of its image files.

    Of a contest it stands for those of all its candidates.
    """
    if isinstance(judged, Contest):
        return _short(json.dumps([fingerprint(candidate) for candidate in judged.candidates]))
    return _short(_described(judged))


def _described(sample: Sample) -> str:
    sizes = {role: _size(image) for role, image in sorted(sample.images.items())}
    noted = {name: json.dumps(value, ensure_ascii=False) for name, value in sample.annotations.items()}
    return json.dumps([dict(sorted({**sample.texts, **noted}.items())), sizes])


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _size(image: Image) -> int:
    if isinstance(image.source, bytes):
        return len(image.source)
    return image.source.stat().st_size if isfile(image.source) else -1


def response_json(
    identity: SampleId, verdict: Verdict, provenance: Provenance, judged: str = "", generation: Generation | None = None
) -> str:
    """The response a host stores for a sample: one line, no `<` (hosts strip what looks like a reasoning tag).

    `judged` is the fingerprint of the sample, `generation` how a generator made it.
    """
    document = {
        "vieval": SCHEMA,
        "id": asdict(identity),
        "sample": judged,
        "provenance": asdict(provenance),
        "verdict": verdict_document(verdict),
        **({"made": asdict(generation)} if generation else {}),
    }
    return one_line(document)


@dataclass(frozen=True)
class Unjudged:
    """An image that a run made for a judge and left to be judged later: the sample, or why there is no image."""

    sample: Sample
    generation: Generation
    judge: str
    setting: str = ""
    reason: str = ""
    findings: tuple[str, ...] = ()
    status: Status = Status.NO_IMAGE


def unjudged_json(unjudged: Unjudged) -> str:
    """The response a host stores for an image that is not judged yet; its conditions stand in the target."""
    fields = {"judge": unjudged.judge, "setting": unjudged.setting, "findings": unjudged.findings}
    fields |= {"reason": unjudged.reason, "status": str(unjudged.status)} if unjudged.reason else {"reason": ""}
    return one_line(
        {
            "vieval": SCHEMA,
            "id": asdict(unjudged.sample.id),
            "made": asdict(unjudged.generation),
            **without_secrets(fields),
        }
    )


def one_line(document: Mapping[str, Any]) -> str:
    """A document as a host carries it."""
    return json.dumps(document, allow_nan=False).replace("<", "\\u003c")


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON values, less secrets of this process; only one on a contest has a choice."""
    document: dict[str, Any] = without_secrets(asdict(verdict))
    if verdict.choice is None:
        del document["choice"]
    return document


def target_json(judged: Judged) -> str:
    """The target a host stores: identity, people's ratings (null where a rater gave none) or votes, tags and place."""
    if isinstance(judged, Contest):
        return _contest_target(judged)
    sample = judged
    ratings = _ratings(sample)
    placed: dict[str, Any] = {"kind": sample.kind, "group": sample.group, "place": sample.place}
    if sample.category:
        placed["category"] = sample.category
    return json.dumps({"vieval": SCHEMA, "id": asdict(sample.id), **placed, "ratings": ratings, "tags": sample.tags})


def conditions_json(sample: Sample) -> str:
    """The target a host stores for conditions: as `target_json`, with the texts and the files that an image was made from."""
    paths = {role: str(image.source) for role, image in sample.images.items() if not isinstance(image.source, bytes)}
    return json.dumps({**json.loads(target_json(sample)), "texts": dict(sample.texts), "images": paths})


def _contest_target(contest: Contest) -> str:
    document: dict[str, Any] = {
        "vieval": SCHEMA,
        "id": asdict(contest.id),
        "kind": contest.kind,
        "group": contest.group,
        "place": [],
        "ratings": {},
        "tags": contest.tags,
        "votes": asdict(contest.votes),
        "candidates": [asdict(candidate.id) for candidate in contest.candidates],
    }
    if any(candidate.ratings for candidate in contest.candidates):
        document["rated"] = [_ratings(candidate) for candidate in contest.candidates]
    return json.dumps(document)


def _ratings(sample: Sample) -> dict[str, list[float | None]]:
    """People's ratings as JSON values: null where a rater gave none."""
    return {aspect: [nan_to_none(value) for value in values] for aspect, values in sample.ratings.items()}


def lines_of(text: str) -> list[str]:
    """The lines of a JSONL text. They end at a line feed and nowhere else: a model may say U+2028 or U+0085."""
    return text.removesuffix("\n").split("\n") if text else []
