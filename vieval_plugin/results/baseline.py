"""Verdicts of an earlier build as the second side of a ranking, and the history of
nightly gates.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter

from vieval_plugin.images import images_of, is_there
from vieval_plugin.judges.contests import Judged, candidates_of
from vieval_plugin.judges.protocol import NOT_SENT, Sample, SampleId, Verdict
from vieval_plugin.meta_evaluation.gate import files_by_generator, known_digest
from vieval_plugin.records import YOUR_IMAGES, Provenance, Record, RecordsByPart
from vieval_plugin.results.lookup import open_results
from vieval_plugin.results.prompt_differences import text_difference
from vieval_plugin.results.runs import Results
from vieval_plugin.results.sources import source_of
from vieval_plugin.text.errors import VievalError, system_reason
from vieval_plugin.text.suggestions import abbreviated
from vieval_plugin.text.wording import plural

#: First word of the label of each run in an anchor.
REPEAT = "repeat "
_SHOWN_DIGITS = 12
_SHORT_DIGITS = 16
_OUTPUTS = ("output", "frame_", "view_")

#: Contents of prompts by benchmark, part and uid.
_Prompts: TypeAlias = Mapping[tuple[str, str, str], Mapping[str, str]]


@dataclass(frozen=True)
class Baseline:
    """Verdicts of one judge on the images of one earlier generator."""

    #: The file.
    path: Path
    #: Its verdicts; for an anchor, those of its first repeat.
    records: tuple[Record, ...]
    #: True if `vieval anchor make` wrote the file.
    is_anchor: bool

    @property
    def has_images(self) -> bool:
        """True if all of its images exist."""
        return all(
            record.sample and all(map(is_there, images_of(record.sample)))
            for record in self.records
        )

    def judged_anew(self, verdicts: Mapping[SampleId, Verdict]) -> Baseline:
        """Return the baseline with today's verdicts of its judge, by the sample ids in
        the file.
        """
        today = {_unnamed(identity): verdict for identity, verdict in verdicts.items()}
        judged = (replace(r, verdict=today[_unnamed(r.id)]) for r in self.records)
        return replace(self, records=tuple(judged))


def read_baseline(
    path: Path,
    records: Sequence[Record],
    partial: bool = False,
) -> Baseline:
    """Read verdicts of an earlier build, or an anchor, under a name that differs from
    the new generator's.

    Args:
        path: the file of the earlier verdicts.
        records: the new verdicts; an anchor may have fewer prompts than these.
        partial: as for `open_results`.

    Raises:
        VievalError: a side cannot be read, or consists of contests, several judges or several
            generators; or the earlier side has another judge or other prompts.
    """
    earlier = open_results([path], partial).records
    is_anchor = all(record.provenance.label.startswith(REPEAT) for record in earlier)
    if is_anchor:
        label = earlier[0].provenance.label
        earlier = tuple(r for r in earlier if r.provenance.label == label)
    generator = _generator_of(earlier, f"--against {path}", "keep only one")
    new_generator = _generator_of(
        records,
        "the new build",
        "pass one folder or file with --against",
    )
    _require_one_judge(earlier, path, records)
    then, now = (
        {_key(record.id): _shown(record.sample) for record in side}
        for side in (earlier, records)
    )
    if is_anchor:
        now = {key: contents for key, contents in now.items() if key in then}
    if then != now:
        raise VievalError(
            f"--against {path}: the prompts differ "
            f"(digest {_digest(then)}, now {_digest(now)}): "
            f"{_first_difference(then, now)}; "
            "make a new baseline from these prompts"
        )
    _require_same_fields(records, earlier, path)
    names = (generator, path.stem, f"{path.stem} (baseline)")
    taken_names = ("", new_generator, new_generator or YOUR_IMAGES)
    name = next(name for name in names if name not in taken_names)
    renamed_records = tuple(_set_generator(record, name) for record in earlier)
    return Baseline(path, renamed_records, is_anchor)


def _require_one_judge(
    earlier: tuple[Record, ...],
    path: Path,
    records: Sequence[Record],
) -> None:
    if len({source_of(record.provenance) for record in earlier}) > 1:
        raise VievalError(
            f"--against {path}: contains verdicts from several judges; keep one judge "
            "per file"
        )
    fields = judge_fields(earlier[0].provenance)
    for provenance in {record.provenance: None for record in records}:
        _require_same_judge(path, fields, judge_fields(provenance))


def _require_same_fields(
    records: Sequence[Record],
    earlier: tuple[Record, ...],
    path: Path,
) -> None:
    judged = [record.verdict for record in records if record.verdict.trace]
    if judged:
        _require_same_judge(
            path,
            {"fields": unsent_fields(record.verdict for record in earlier)},
            {"fields": unsent_fields(judged)},
        )


def add_baseline(results: Results, baseline: Baseline) -> Results:
    """Add a baseline of `read_baseline` as the second generator to results of one
    generator by one judge.

    Raises:
        VievalError: the results come from several judges.
    """
    if len(results.runs) != 1:
        labels = [run.label for run in results.runs]
        raise VievalError(
            f"--against requires results from one judge, got {abbreviated(labels)}"
        )
    [run] = results.runs
    records = results.records
    prompts = {_key(record.id) for record in baseline.records}
    compared = [record for record in records if _key(record.id) in prompts]
    by_part: RecordsByPart = {}
    for record in (*compared, *baseline.records):
        compared_record = replace(record, provenance=records[0].provenance)
        by_part.setdefault(record.id.part, []).append((compared_record,))
    notes = results.notes
    if len(compared) < len(records):
        notes += (
            f"compared only {len(compared)} of {len(records)} verdicts: those on "
            f"prompts from {baseline.path}",
        )
    return replace(
        results,
        runs=(replace(run, records=by_part),),
        notes=notes,
        paths=results.paths and (*results.paths, baseline.path),
        baseline=baseline.path,
    )


def _generator_of(
    records: Sequence[Record],
    name: str,
    advice: str,
) -> str:
    """Return the one generator of records, empty if it has no name; `name` begins the
    VievalError raised if there are several, and `advice` ends it.
    """
    if any(record.candidates for record in records):
        raise VievalError(
            f"{name}: contests compare two generators; use a judge that scores each "
            "image"
        )
    generators = sorted({record.id.image_model for record in records})
    if len(generators) > 1:
        names = abbreviated([generator or YOUR_IMAGES for generator in generators])
        raise VievalError(
            f"{name}: contains {len(generators)} generators ({names}); {advice}"
        )
    return generators[0]


def _require_same_judge(
    path: Path,
    then: Mapping[str, str],
    now: Mapping[str, str],
) -> None:
    for name in {**now, **then}:
        if then.get(name) != now.get(name):
            before, after = (side.get(name) or "unset" for side in (then, now))
            raise VievalError(
                f"--against {path}: judged with {name} {before}, now {after}; "
                "use the same judge, prompt pack and backbone for both"
            )


def judge_fields(provenance: Provenance) -> dict[str, str]:
    """Properties that identify a judge, by name."""
    return {
        "judge": provenance.judge,
        "setting": provenance.setting,
        "aspects": " ".join(provenance.aspects),
        **dict(source_of(provenance).details),
        "calibration": " ".join(provenance.calibration),
    }


def unsent_fields(verdicts: Iterable[Verdict]) -> str:
    """Sampling fields that a judge's model refused, in words; empty if it refused none."""
    refused = {
        finding
        for verdict in verdicts
        for finding in verdict.findings
        if finding.startswith(NOT_SENT)
    }
    return ", ".join(sorted(refused))


def _shown(sample: Judged | None) -> dict[str, str]:
    """Texts of a prompt, and the SHA-256 of each of its images."""
    if not isinstance(sample, Sample):
        return {}
    return {
        **sample.texts,
        **{
            f"image {role}": known_digest(image)
            for role, image in sorted(sample.images.items())
            if not role.startswith(_OUTPUTS)
        },
    }


def prompts_digest(records: Iterable[Record]) -> str:
    """First digits of the SHA-256 of the prompts of records, including the prompts'
    images.
    """
    prompts = {}
    for record in records:
        if record.sample:
            for sample in candidates_of(record.sample):
                prompts[_key(sample.id)] = _shown(sample)
    return _digest(prompts)


def _digest(prompts: _Prompts) -> str:
    """First digits of the SHA-256 of prompts: their uids and contents."""
    rows = [
        [*key, dict(sorted(contents.items()))]
        for key, contents in sorted(prompts.items())
    ]
    return _short_digest(rows)[:_SHOWN_DIGITS]


def _first_difference(then: _Prompts, now: _Prompts) -> str:
    for key in then:
        difference = text_difference(then[key], now.get(key, then[key]))
        if difference:
            return f"{key[2]!r} has {difference}"
    missing = [key for key in then if key not in now]
    if missing:
        return (
            f"missing {len(missing)} of its {len(then)} prompts "
            f"(first: {missing[0][2]!r})"
        )
    added = [key for key in now if key not in then]
    return f"{plural(len(added), 'new prompt')} (first: {added[0][2]!r})"


def _key(identity: SampleId) -> tuple[str, str, str]:
    return identity.benchmark, identity.part, identity.uid


def _unnamed(identity: SampleId) -> SampleId:
    return replace(identity, image_model="")


def _set_generator(record: Record, name: str) -> Record:
    identity = replace(record.id, image_model=name)
    sample = record.sample
    if isinstance(sample, Sample):
        sample = replace(sample, id=identity)
    return replace(record, id=identity, sample=sample)


@dataclass(frozen=True)
class Night:
    """Outcome of one nightly gate."""

    #: Date in UTC, as ISO 8601.
    date: str
    #: Digest of its images, or of their scores if an image is unknown.
    images: str
    #: Digest of the baseline's images, or of their scores.
    baseline: str
    #: Digest of judge, wording, backbone and sampling.
    judge: str
    #: Digest of the prompts.
    prompts: str
    #: Mean difference to the baseline.
    difference: float
    #: Number of prompts.
    n: int

    @property
    def series(self) -> tuple[str, str, str]:
        """Digests that all nights of a series share."""
        return self.baseline, self.judge, self.prompts


_NIGHT = TypeAdapter(Night)


def night_of(
    records: Sequence[Record],
    challenger: str,
    reference: str,
    difference: float,
    n: int,
) -> Night:
    """Summarise a nightly gate.

    Args:
        records: verdicts on the images of both.
        challenger, reference: labels of the two.
        difference: mean difference of the scores.
        n: number of prompts.
    """
    sides = {
        name: [
            record
            for record in records
            if (record.id.image_model or YOUR_IMAGES) == name
        ]
        for name in (challenger, reference)
    }
    if not all(sides.values()):  # contests involve both
        sides = {name: list(records) for name in sides}
    today = datetime.now(UTC).date().isoformat()
    images = _images_digest(sides[challenger], challenger)
    baseline = _images_digest(sides[reference], reference)
    judge = _short_digest(sorted(judge_fields(records[0].provenance).items()))
    prompts = prompts_digest(sides[challenger])
    return Night(
        today,
        images,
        baseline,
        judge,
        prompts,
        difference,
        n,
    )


def add_night(path: Path, night: Night) -> list[Night]:
    """Append a night to a history, and return its series.

    A build is not added again if its images are already in the series.

    Raises:
        VievalError: the file cannot be read or written, or a line is not a night.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            lines = enumerate(file.read().splitlines(), start=1)
            nights = [_read(path, number, line) for number, line in lines]
            # any change of the baseline, the judge or the prompts begins a new series
            newest_first = nights[::-1]
            latest = takewhile(lambda n: n.series == night.series, newest_first)
            series = [*latest][::-1]
            if any(earlier.images == night.images for earlier in series):
                return series
            file.write(json.dumps(asdict(night), allow_nan=False) + "\n")
            file.flush()
            os.fsync(file)
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(
            f"{path}: cannot be read or written ({system_reason(error)}); choose another --history"
        ) from None
    return [*series, night]


def _read(
    path: Path,
    number: int,
    line: str,
) -> Night:
    try:
        night = _NIGHT.validate_json(line)
        date.fromisoformat(night.date)
        if math.isfinite(night.difference):
            return night
    except ValueError:
        pass
    raise VievalError(
        f"{path}: line {number} is not a nightly gate record; restore the file, or "
        "choose another --history"
    )


def _images_digest(records: Sequence[Record], generator: str) -> str:
    files = files_by_generator(records).get(generator)
    if files and all(map(all, files.values())):
        rows = sorted((*key, *digests) for key, digests in files.items())
        return _short_digest(rows)
    verdicts = []
    for record in records:
        scores = sorted(record.verdict.scores.items())
        verdicts.append((record.id.part, record.id.uid, record.id.draw, scores))
    return _short_digest(sorted(verdicts))


def _short_digest(content: object) -> str:
    text = json.dumps(content)
    return hashlib.sha256(text.encode()).hexdigest()[:_SHORT_DIGITS]
