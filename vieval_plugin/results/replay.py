"""Recorded verdicts in place of a judge: authors' logs, and samples files of earlier
lmms-eval runs.

Logs hold verdicts, not raw replies, so a replay enters where verdicts come out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
from vieval_plugin.results.documents import MALFORMED, read_response
from vieval_plugin.results.host_samples import responses_of
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.untrusted import exists, isfile
from vieval_plugin.text.yaml_json import read_json

Recorded: TypeAlias = tuple[Verdict, Provenance | None]
#: Verdicts on a sample or contest, one for each time it was judged.
Recordings: TypeAlias = tuple[Recorded, ...]
Verdicts: TypeAlias = dict[SampleId, Recordings]


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
    verdicts: Mapping[SampleId, Recordings]
    #: Lines of which nothing could be read, with the reason.
    unread_lines: tuple[str, ...] = ()

    @cached_property
    def covered(self) -> frozenset[str]:
        """Parts (`benchmark/part`) with at least one recorded verdict."""
        return frozenset(map(_part_of, self.verdicts))

    @cached_property
    def _verdicts_by_folded_name(self) -> Verdicts:
        """Verdicts by id with lower-case image models, without ambiguous ids."""
        recorded_by_folded_id = defaultdict[SampleId, list[Recordings]](list)
        for identity, recorded in self.verdicts.items():
            recorded_by_folded_id[_folded(identity)].append(recorded)
        return {
            identity: matches[0]
            for identity, matches in recorded_by_folded_id.items()
            if len(matches) == 1
        }

    def recordings_for(self, judged: SampleId | Judged) -> Recordings:
        """Recorded verdicts on a sample or contest, regardless of the case of its image
        model.
        """
        identity = _id(judged)
        exact = self.verdicts.get(identity)
        recorded = exact or self._verdicts_by_folded_name.get(_folded(identity), ())
        if not recorded and isinstance(judged, Contest):
            return self._candidate_recordings(judged)
        return recorded

    def _candidate_recordings(self, contest: Contest) -> Recordings:
        """Combine the verdicts on a contest's candidates into verdicts on the contest;
        absent ones are missing.
        """
        columns = map(self.recordings_for, contest.candidates)
        rows = zip_longest(*columns, fillvalue=(_MISSING, None))
        return tuple(map(_combined_recording, rows))

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
        if repeat < len(recorded):
            return recorded[repeat]
        return (_MISSING, None)

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
        return not self.covered.isdisjoint(_part_of(sample.id) for sample in candidates)

    def lacks(self, benchmark: str, part: str) -> str:
        """Message for a part without recorded verdicts; empty if it has some."""
        if f"{benchmark}/{part}" in self.covered:
            return ""
        parts = ", ".join(sorted(self.covered))
        return (
            f"{self.source}: no recorded verdicts for {benchmark}/{part} (it contains "
            f"{parts or f'no readable verdicts by {self.judge}'}); pass the logs of "
            "that task with logs=, or choose other --tasks"
        )

    def uncovered(self, judged: Iterable[SampleId | Judged]) -> list[str]:
        """Describe the missing samples or contests of each part; VievalError if no id
        of a part matches.
        """
        by_part: dict[str, dict[SampleId, SampleId | Judged]] = defaultdict(dict)
        for sample in judged:
            identity = _id(sample)
            by_part[_part_of(identity)][identity] = sample
        phrases = []
        for part, samples in by_part.items():
            recordings = list(map(self.recordings_for, samples.values()))
            missing_count = recordings.count(())
            partly = sum(
                any(verdict.status is Status.MISSING for verdict, _ in recorded)
                for recorded in recordings
            )
            are_contests = any(isinstance(s, Contest) for s in samples.values())
            what = "contests" if are_contests else "samples"
            benchmark = part.partition("/")[0]
            is_sibling_part_covered = part not in self.covered and self.covers(
                benchmark
            )
            if missing_count == len(recordings) and not is_sibling_part_covered:
                raise self._mismatch_error(part, list(samples), what)
            if missing_count or partly:
                more = f", {partly} more in part" if partly else ""
                phrases.append(
                    f"{missing_count} of {len(recordings)} {what} of {part} ({self.judge}{more})"
                )
        return phrases

    def _mismatch_error(
        self,
        part: str,
        requested: Sequence[SampleId],
        what: str,
    ) -> VievalError:
        """The error for a part of which no requested id was recorded."""
        ids = [key for key in self.verdicts if _part_of(key) == part]
        first_recorded = next(iter(ids), "none")
        return VievalError(
            f"{self.source}: {self.judge} has no recorded verdicts "
            f"on the {len(requested)} {what} of {part}: "
            f"0 of {len(ids)} recorded ids match "
            f"(first requested: {requested[0]}; first recorded: {first_recorded})"
        )


_MISSING = Verdict(
    {},
    Status.MISSING,
    trace=(Step(("sample",), Status.MISSING, reason="not recorded"),),
)


def _combined_recording(recordings: Sequence[Recorded]) -> Recorded:
    """The verdict on a contest by one verdict on each candidate."""
    verdict = contest_verdict([verdict for verdict, _ in recordings])
    provenance = next((by for _, by in recordings if by), None)
    return verdict, provenance


def _id(judged: SampleId | Judged) -> SampleId:
    if isinstance(judged, SampleId):
        return judged
    return judged.id


def _part_of(identity: SampleId) -> str:
    return f"{identity.benchmark}/{identity.part}"


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
        settings = spec.setting_labels(options.judges.options_of(spec), setting)
        recorded = Provenance(
            judge,
            tuple(settings),
            spec.aspects,
            pack="as recorded" if spec.pack else "",
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
    # logs of a part are a folder, or files whose names end in the part's
    folders = {}
    for folder_name, known_part in benchmark_registry.folders().items():
        folder = source / folder_name
        part_files = source.glob(f"*_{folder_name}.json")
        if folder.is_dir() or any(part_files):
            folders[folder] = known_part
    if not folders:
        examples = ", ".join(list(benchmark_registry.folders())[:3])
        raise VievalError(
            f"{source}: contains neither authors' logs (folders such as "
            f"{examples}) nor "
            "samples_*.jsonl files from a run with --log_samples"
        )
    return Recording(
        source,
        judge,
        _read_logs(folders, judge, name, setting),
    )


def _read_logs(
    folders: Mapping[Path, tuple[Benchmark, str]],
    judge: str,
    name: str,
    setting: str,
) -> Verdicts:
    """Read verdicts of authors' logs; VievalError if no part has a judge of that name."""
    read = logs.reader(judge)
    if read is None:
        return {}
    verdicts: dict[SampleId, Verdict] = {}
    unnamed = []
    for folder, (benchmark, part) in folders.items():
        identity = partial(SampleId, benchmark.name, part)
        try:
            verdicts |= read(folder, identity, name, setting)
        except logs.NotNamedError as error:
            unnamed.append(error)
    if unnamed and not verdicts:
        raise unnamed[0]
    return without_provenance(verdicts)


def without_provenance(verdicts: Mapping[SampleId, Verdict]) -> Verdicts:
    """Verdicts of authors' logs, each on a sample that was judged once."""
    return {identity: ((verdict, None),) for identity, verdict in verdicts.items()}


@lru_cache(maxsize=2)
def _read_samples(
    stamps: tuple[tuple[Path, int, int], ...],
) -> tuple[dict[str, Verdicts], tuple[str, ...]]:
    """Read verdicts of samples files by judge, and the lines that could not be read.

    The sample of an unreadable line counts as not recorded; it is an error if no line
    can be read.
    """
    verdicts: dict[str, Verdicts] = defaultdict(dict)
    unread_lines = []
    for path, *_ in stamps:
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(lines_of(text), start=1):
            try:
                parsed = list(map(read_response, responses_of(read_json(line))))
                identity, _, provenance = parsed[0]
            except MALFORMED as error:
                unread_lines.append(
                    f"{path}: line {number} is not a recorded verdict ({line_of(error)})"
                )
                continue
            verdicts[provenance.judge][identity] = tuple(
                (verdict, by) for _, verdict, by in parsed
            )
    if unread_lines and not verdicts:
        raise VievalError(unread_lines[0])
    return verdicts, tuple(unread_lines)
