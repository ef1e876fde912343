"""Verdicts of an earlier build as the other side of a ranking, by the same judge and on the same prompts or refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from vieval_plugin.images import is_there
from vieval_plugin.judges.protocol import Sample, SampleId, Verdict
from vieval_plugin.meta_evaluation.gate import known_digest
from vieval_plugin.records import YOUR_IMAGES, Provenance, Record
from vieval_plugin.results.lookup import open_results
from vieval_plugin.results.prompt_differences import prompt_difference
from vieval_plugin.results.runs import Results
from vieval_plugin.results.sources import source_of
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import abbreviated

REPEAT = "repeat "
"""First word of the label of each run in an anchor."""
_SHOWN_DIGITS = 12
_OUTPUTS = ("output", "frame_", "view_")

PromptKey = tuple[str, str, str]
"""Benchmark, part and uid of a prompt."""


@dataclass(frozen=True)
class Baseline:
    """Verdicts of one judge on the images of one earlier generator."""

    #: The file.
    path: Path
    #: Its verdicts; of an anchor those of its first repeat.
    records: tuple[Record, ...]
    #: True of a file of `vieval anchor make`.
    is_anchor: bool

    @property
    def samples(self) -> list[Sample]:
        """The samples that are at hand."""
        return _samples(self.records)

    @property
    def has_images(self) -> bool:
        """True where all of its images are there."""
        samples = self.samples
        return len(samples) == len(self.records) and all(is_there(i) for s in samples for i in s.images.values())

    def named(self, generator: str) -> Baseline:
        """The baseline under a name that is not that of another generator: its own, or that of its file."""
        names = (self.records[0].id.image_model, self.path.stem, f"{self.path.stem} (baseline)")
        name = next(name for name in names if name and name not in (generator, generator or YOUR_IMAGES))
        return replace(self, records=tuple(_with_generator(record, name) for record in self.records))

    def judged_anew(self, verdicts: Mapping[SampleId, Verdict]) -> Baseline:
        """The baseline with the verdicts that its judge gives today."""
        return replace(self, records=tuple(replace(r, verdict=verdicts[r.id]) for r in self.records))


def read_baseline(path: Path, partial: bool = False) -> Baseline:
    """Read verdicts of an earlier build, or an anchor.

    Raises:
        VievalError: they cannot be read, or are of contests, several judges or several generators.
    """
    records = open_results([path], partial).records
    is_anchor = all(record.provenance.label.startswith(REPEAT) for record in records)
    if is_anchor:
        records = tuple(r for r in records if r.provenance.label == records[0].provenance.label)
    _require_one_generator(records, f"--against {path}")
    if len({source_of(record.provenance) for record in records}) > 1:
        raise VievalError(f"--against {path}: verdicts of several judges; keep those of one in a file")
    return Baseline(path, records, is_anchor)


def require_comparable(baseline: Baseline, provenance: Provenance, samples: Iterable[Sample]) -> None:
    """Refuse a baseline by another judge or on other prompts.

    Args:
        baseline: of `read_baseline`.
        provenance: of the new verdicts.
        samples: those that are judged; an anchor may have fewer prompts than these.

    Raises:
        VievalError: says what differs.
    """
    then, now = (_judge_fields(origin) for origin in (baseline.records[0].provenance, provenance))
    if name := next((name for name in (*now, *then) if then.get(name) != now.get(name)), None):
        values = f"{then.get(name) or 'unset'}, and here it is {now.get(name) or 'unset'}"
        raise VievalError(
            f"--against {baseline.path}: judged with {name} {values}; judge both by the same judge, wording and backbone"
        )
    earlier, current = ({_key(s.id): s for s in side} for side in (baseline.samples, samples))
    if baseline.is_anchor:
        current = {key: sample for key, sample in current.items() if key in earlier}
    digests = [prompts_digest(by_prompt) for by_prompt in (earlier, current)]
    if digests[0] != digests[1]:
        raise VievalError(
            f"--against {baseline.path}: other prompts (digest {digests[0]}, here {digests[1]}): "
            f"{_first_difference(earlier, current)}; make a baseline of these prompts"
        )


def with_baseline(results: Results, baseline: Baseline) -> Results:
    """Results of one generator by one judge, with a baseline as the second generator.

    Raises:
        VievalError: the results are of several generators or judges, or the baseline is refused.
    """
    if len(results.runs) != 1:
        raise VievalError(f"--against: verdicts of {abbreviated([run.label for run in results.runs])}; name one judge")
    [run] = results.runs
    records = list(chain(*chain(*run.records.values())))
    _require_one_generator(records, "the new verdicts")
    require_comparable(baseline, records[0].provenance, _samples(records))
    prompts = {_key(record.id) for record in baseline.records}
    if lost := prompts - {_key(record.id) for record in records}:
        raise VievalError(f"--against {baseline.path}: {len(lost)} of its {len(prompts)} prompts have no verdict here")
    compared = [record for record in records if _key(record.id) in prompts]
    by_part: dict[str, list[tuple[Record, ...]]] = {}
    for record in (*compared, *baseline.named(records[0].id.image_model).records):
        by_part.setdefault(record.id.part, []).append((replace(record, provenance=records[0].provenance),))
    note = f"{len(compared)} of {len(records)} verdicts are on prompts of {baseline.path}, and count"
    notes = (*results.notes, note) if len(compared) < len(records) else results.notes
    return replace(results, runs=(replace(run, records=by_part),), notes=notes)


def prompts_digest(samples: Mapping[PromptKey, Sample]) -> str:
    """The first digits of the SHA-256 of prompts: their uids and texts, and the images that they show."""
    shown = {
        key: {role: known_digest(i) for role, i in sorted(sample.images.items()) if not role.startswith(_OUTPUTS)}
        for key, sample in samples.items()
    }
    rows = [[*key, dict(sorted(sample.texts.items())), shown[key]] for key, sample in sorted(samples.items())]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:_SHOWN_DIGITS]


def _require_one_generator(records: Sequence[Record], name: str) -> None:
    if any(record.candidates for record in records):
        raise VievalError(f"{name}: contests are between two generators; take a judge that scores each image")
    generators = {record.id.image_model or YOUR_IMAGES for record in records}
    if len(generators) > 1:
        raise VievalError(
            f"{name}: {len(generators)} generators ({abbreviated(sorted(generators))}); keep those of one"
        )


def _judge_fields(provenance: Provenance) -> dict[str, str]:
    """All that makes a judge what it is, by name."""
    fields = {"judge": provenance.judge, "setting": provenance.setting, "aspects": " ".join(provenance.aspects)}
    return {**fields, **dict(source_of(provenance).details), "calibration": " ".join(provenance.calibration)}


def _first_difference(earlier: Mapping[PromptKey, Sample], current: Mapping[PromptKey, Sample]) -> str:
    for key, sample in earlier.items():
        if key in current and (difference := prompt_difference(sample, current[key])):
            return f"{key[2]!r} has {difference}"
    if lost := [key for key in earlier if key not in current]:
        return f"{len(lost)} of its {len(earlier)} are not here, the first {lost[0][2]!r}"
    added = [key for key in current if key not in earlier]
    return f"{len(added)} here are not in it, the first {added[0][2]!r}" if added else "an image that a prompt shows"


def _key(identity: SampleId) -> PromptKey:
    return identity.benchmark, identity.part, identity.uid


def _samples(records: Iterable[Record]) -> list[Sample]:
    return [record.sample for record in records if isinstance(record.sample, Sample)]


def _with_generator(record: Record, name: str) -> Record:
    identity = replace(record.id, image_model=name)
    sample = replace(record.sample, id=identity) if isinstance(record.sample, Sample) else record.sample
    return replace(record, id=identity, sample=sample)
