"""Recorded verdicts in place of a judge: authors' logs, and samples files of earlier
lmms-eval runs.

Logs hold verdicts, not raw replies, so a replay enters where verdicts come out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.config import Config
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import Contest, Judged, contest_verdict
from vieval_plugin.judges.protocol import SampleId, Status, Step, Verdict
from vieval_plugin.records import Provenance, lines_of
from vieval_plugin.results import logs
from vieval_plugin.results.documents import read_response
from vieval_plugin.results.host_samples import responses_of
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.untrusted import exists, isfile
from vieval_plugin.text.yaml_json import read_json

Recorded: TypeAlias = tuple[Verdict, Provenance | None]
Verdicts: TypeAlias = dict[SampleId, tuple[Recorded, ...]]


@dataclass(frozen=True)
class Recording:
    """A judge's recorded verdicts.

    A contest without a recorded verdict is answered by combining the verdicts on its
    candidates.
    """

    #: File or folder.
    source: Path
    judge: str
    #: Verdicts by sample or contest, one for each time it was judged; without provenance for
    #: authors' logs.
    verdicts: Mapping[SampleId, tuple[Recorded, ...]]
    #: Lines of which nothing could be read, with the reason.
    unread_lines: tuple[str, ...] = ()

    @cached_property
    def covered(self) -> frozenset[str]:
        """Parts (`benchmark/part`) with at least one recorded verdict."""
        return frozenset(
            f"{identity.benchmark}/{identity.part}" for identity in self.verdicts
        )

    @cached_property
    def _verdicts_by_folded_name(self) -> Mapping[SampleId, tuple[Recorded, ...]]:
        """Verdicts by id with lower-case image models, without ambiguous ids."""
        recorded_by_folded_id: dict[SampleId, list[tuple[Recorded, ...]]] = {}
        for identity, recorded in self.verdicts.items():
            recorded_by_folded_id.setdefault(_folded(identity), []).append(recorded)
        return {
            identity: matches[0]
            for identity, matches in recorded_by_folded_id.items()
            if len(matches) == 1
        }

    def recordings_for(self, judged: SampleId | Judged) -> tuple[Recorded, ...]:
        """Recorded verdicts on a sample or contest, regardless of the case of its image
        model.
        """
        identity = _id(judged)
        exact = self.verdicts.get(identity)
        recorded = exact or self._verdicts_by_folded_name.get(_folded(identity), ())
        return recorded or (
            self._candidate_recordings(judged) if isinstance(judged, Contest) else ()
        )

    def _candidate_recordings(self, contest: Contest) -> tuple[Recorded, ...]:
        """Combine the verdicts on a contest's candidates into verdicts on the contest;
        absent ones are missing.
        """
        columns = [self.recordings_for(candidate) for candidate in contest.candidates]
        rows = zip_longest(*columns, fillvalue=(_MISSING, None))
        return tuple(
            (
                contest_verdict([verdict for verdict, _ in row]),
                next((by for _, by in row if by), None),
            )
            for row in rows
        )

    def verdict(self, judged: SampleId | Judged, repeat: int = 0) -> Recorded:
        """The recorded verdict, or one with status `missing`.

        VievalError if the recording contains no verdict on the sample's benchmark: it
        belongs to another task.
        """
        recorded = self.recordings_for(judged)
        identity = _id(judged)
        if not (
            recorded or self.covers(identity.benchmark) or self.has_candidates(judged)
        ):
            raise VievalError(self.lacks(identity.benchmark, identity.part))
        return recorded[repeat] if repeat < len(recorded) else (_MISSING, None)

    def covers(self, benchmark: str) -> bool:
        """Return whether any part of a benchmark has verdicts, so that another part is
        `missing` instead of an error.
        """
        return any(part.startswith(f"{benchmark}/") for part in self.covered)

    def has_candidates(self, judged: SampleId | Judged) -> bool:
        """Return whether a part of a contest's candidates has verdicts, possibly in
        another benchmark.
        """
        candidates = judged.candidates if isinstance(judged, Contest) else ()
        return any(
            f"{candidate.id.benchmark}/{candidate.id.part}" in self.covered
            for candidate in candidates
        )

    def lacks(self, benchmark: str, part: str) -> str:
        """Message for a part without recorded verdicts; empty if it has some."""
        if f"{benchmark}/{part}" in self.covered:
            return ""
        parts = ", ".join(sorted(self.covered))
        covered_parts_text = parts or f"no readable verdicts of {self.judge}"
        return (
            f"{self.source}: no recorded verdicts for {benchmark}/{part} (it "
            f"contains {covered_parts_text}); pass the logs of that task with logs=, "
            "or choose other --tasks"
        )

    def uncovered(self, judged: Iterable[SampleId | Judged]) -> list[str]:
        """Describe the missing samples or contests of each part; VievalError if no id
        of a part matches.
        """
        by_part: dict[str, dict[SampleId, SampleId | Judged]] = {}
        for sample in judged:
            identity = _id(sample)
            by_part.setdefault(f"{identity.benchmark}/{identity.part}", {})[
                identity
            ] = sample
        phrases = []
        for part, part_samples in by_part.items():
            recordings = [
                self.recordings_for(sample) for sample in part_samples.values()
            ]
            missing_count = sum(not recorded for recorded in recordings)
            partly = sum(
                any(verdict.status is Status.MISSING for verdict, _ in recorded)
                for recorded in recordings
            )
            are_contests = any(
                isinstance(sample, Contest) for sample in part_samples.values()
            )
            what = "contests" if are_contests else "samples"
            is_sibling_part_covered = part not in self.covered and self.covers(
                part.partition("/")[0]
            )
            if missing_count == len(recordings) and not is_sibling_part_covered:
                raise self._nothing_recorded(
                    part,
                    missing_count,
                    what,
                    part_samples,
                )
            if missing_count or partly:
                more = f", {partly} more in part" if partly else ""
                phrases.append(
                    f"{missing_count} of {len(recordings)} {what} of {part} ({self.judge}{more})"
                )
        return phrases

    def _nothing_recorded(
        self,
        part: str,
        missing_count: int,
        what: str,
        part_samples: dict[SampleId, SampleId | Judged],
    ) -> VievalError:
        recorded_ids = [
            identity
            for identity in self.verdicts
            if f"{identity.benchmark}/{identity.part}" == part
        ]
        return VievalError(
            f"{self.source}: {self.judge} has no recorded verdicts on the "
            f"{missing_count} {what} of {part}: 0 of {len(recorded_ids)} recorded "
            f"ids match (first requested: {next(iter(part_samples))}; first "
            f"recorded: {next(iter(recorded_ids), 'none')})"
        )


_MISSING = Verdict(
    {},
    Status.MISSING,
    trace=(Step(("sample",), Status.MISSING, reason="not recorded"),),
)


def _id(judged: SampleId | Judged) -> SampleId:
    return judged if isinstance(judged, SampleId) else judged.id


def _folded(identity: SampleId) -> SampleId:
    return replace(identity, image_model=identity.image_model.casefold())


def replayed(
    recording: Recording,
    judged: SampleId | Judged,
    repeat: int,
    judge: str,
    setting: str,
    name: str,
    options: Config,
) -> tuple[Verdict, Provenance]:
    """Return a recorded verdict as the answer of a run, under the `name` that tables
    show (default: the judge's own).
    """
    verdict, recorded = recording.verdict(judged, repeat)
    if recorded is None:
        spec = options.judges.narrowed(judge_registry.judge(judge))
        settings = tuple(spec.setting_labels(options.judges.options_of(spec), setting))
        pack = "as recorded" if spec.pack else ""
        recorded = Provenance(
            judge,
            settings,
            spec.aspects,
            pack=pack,
            options=options.resolved(spec),
        )
    return verdict, replace(
        recorded,
        backbone=name or judge,
        config_hash=options.hash,
        recorded=True,
    )


def load(
    source: Path,
    judge: str,
    name: str = "",
    setting: str = "",
) -> Recording:
    """Read recorded verdicts of a judge from a folder in either format, or from one
    samples file.

    A recording without verdicts of the judge is empty. If authors' logs hold several
    models for the judge, `name` selects one; if they hold several settings, `setting`
    does.

    Raises VievalError with the file name if no log fits or a file is malformed.
    """
    if not exists(source):
        raise VievalError(
            f"{source}: no such file or folder; set logs= to the authors' results "
            "folder or an earlier --output_path"
        )
    files = [source] if isfile(source) else sorted(source.rglob("*samples_*.jsonl"))
    if files:
        stamps = tuple(
            (file, file.stat().st_mtime_ns, file.stat().st_size) for file in files
        )
        by_judge, unread_lines = _read_samples(stamps)
        return Recording(
            source,
            judge,
            by_judge.get(judge, {}),
            unread_lines,
        )
    folders = {
        source / folder: known_part
        for folder, known_part in benchmark_registry.folders().items()
        if _holds(source, folder)
    }
    if not folders:
        examples = ", ".join(list(benchmark_registry.folders())[:3])
        raise VievalError(
            f"{source}: contains neither authors' logs (folders such as "
            f"{examples}) nor "
            "samples_*.jsonl files from a run with --log_samples"
        )
    return Recording(source, judge, _read_logs(folders, judge, name, setting))


def _holds(source: Path, folder: str) -> bool:
    """Return whether authors' logs of a part exist: as a folder, or as files whose
    names end in the part's.
    """
    is_folder = (source / folder).is_dir()
    return is_folder or any(source.glob(f"*_{folder}.json"))


def _read_logs(
    folders: Mapping[Path, tuple[Benchmark, str]],
    judge: str,
    name: str,
    setting: str,
) -> Verdicts:
    """Read verdicts of authors' logs; VievalError if no part has a judge of that name."""
    read = logs.reader(judge)
    verdicts: Verdicts = {}
    unnamed: list[VievalError] = []
    for folder, (benchmark, part) in folders.items():
        try:
            if read:
                verdicts_of_part = read(
                    folder,
                    partial(SampleId, benchmark.name, part),
                    name,
                    setting,
                )
            else:
                verdicts_of_part = {}
        except logs.NotNamedError as error:
            unnamed.append(error)
            continue
        named_verdicts = verdicts_of_part.items()
        verdicts |= {
            identity: ((verdict, None),) for identity, verdict in named_verdicts
        }
    if unnamed and not verdicts:
        raise unnamed[0]
    return verdicts


@lru_cache(maxsize=2)
def _read_samples(
    stamps: tuple[tuple[Path, int, int], ...],
) -> tuple[dict[str, Verdicts], tuple[str, ...]]:
    """Read verdicts of samples files by judge, and the lines that could not be read.

    The sample of an unreadable line counts as not recorded; it is an error if no line
    can be read.
    """
    verdicts: dict[str, Verdicts] = {}
    unread_lines: list[str] = []
    lines = 0
    for path, *_ in stamps:
        for number, line in enumerate(
            lines_of(path.read_text(encoding="utf-8", errors="replace")), start=1
        ):
            lines += 1
            try:
                parsed = [
                    read_response(response)
                    for response in responses_of(read_json(line))
                ]
                identity, _, provenance = parsed[0]
            except (
                ValueError,
                KeyError,
                TypeError,
                AttributeError,
                IndexError,
                VievalError,
            ) as error:
                reason = line_of(error)
                unread_lines.append(
                    f"{path}: line {number} is not a recorded verdict ({reason})"
                )
                continue
            recorded = tuple(
                (verdict, provenance_of_verdict)
                for _, verdict, provenance_of_verdict in parsed
            )
            verdicts.setdefault(provenance.judge, {})[identity] = recorded
    if unread_lines and len(unread_lines) == lines:
        raise VievalError(unread_lines[0])
    return verdicts, tuple(unread_lines)
