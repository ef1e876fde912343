"""Judges with published verdicts, and these verdicts as results."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import resources
from itertools import chain
from pathlib import Path

from pydantic import TypeAdapter

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.config import Config
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import SampleId, Verdict
from vieval_plugin.records import Provenance, Record, Run, rated_record
from vieval_plugin.results import logs
from vieval_plugin.results.published.files import (
    NAME,
    PublishedFile,
    descriptions,
    files_below,
)
from vieval_plugin.results.replay import Recording, replayed, without_provenance
from vieval_plugin.results.runs import results_of
from vieval_plugin.text.errors import VievalError, system_reason


@dataclass(frozen=True)
class PublishedJudge:
    """A judge with published verdicts on a benchmark."""

    #: Its name in their repository.
    name: str
    #: Its name in tables.
    title: str
    benchmark: str
    #: The method.
    judge: str
    #: Folder of the logs of one part (`{part}`, as the authors call it), below that of published
    #: verdicts.
    folder: str
    #: Model that answered.
    backbone: str = ""
    #: Setting of the method.
    setting: str = ""
    #: Exact model, if known.
    version: str = ""
    #: Day of publication.
    date: str = ""

    def files(self, part: str) -> tuple[PublishedFile, ...]:
        """Published files of one part, by the authors' name of the part."""
        return files_below(self.folder.format(part=part))


@cache
def published_judges(benchmark: str) -> tuple[PublishedJudge, ...]:
    """Return the judges with published verdicts on a benchmark; empty if there are
    none.

    >>> published_judges("imagenhub")[0].title, published_judges("mine")
    ('GPT-4o zero-shot', ())
    """
    return _described(benchmark, "judges")


@cache
def published_baselines(benchmark: str) -> tuple[PublishedJudge, ...]:
    """Return the baselines with published values on a benchmark."""
    return _described(benchmark, "baselines")


@dataclass(frozen=True)
class TrackRecord:
    """Human agreement with the order that a published judge gave to pairs of
    generators, by one score.
    """

    benchmark: str
    #: Pairs of which the judge found one better, and those of them that people order alike.
    better: int
    agreed: int
    #: Pairs that the judge could not tell apart, and those of them that people tell apart.
    equal: int
    told_apart: int
    #: Ends of the 95% interval of the share on which people agree, over resamples of generators; in
    #: [0, 1].
    low: float
    high: float


_TRACK_RECORD = TypeAdapter(TrackRecord)


def track_record(provenance: Provenance, aspect: str) -> TrackRecord | None:
    """Return the track record of a judge by a score, if verdicts with the same prompt
    pack and model were published; otherwise None.

    Args:
        provenance: of the judge's verdicts.
        aspect: the score.
    """
    by = provenance.judge
    setting = provenance.setting
    if provenance.pack not in ("as recorded", f"{by}/authors-{setting}"):
        return None
    table = (resources.files(__package__) / "track_records.csv").read_text("utf-8")
    for row in csv.DictReader(table.splitlines()):
        if (row["aspect"], row["setting"]) != (aspect, setting):
            continue
        for judge in published_judges(row["benchmark"]):
            if (judge.name, judge.judge) == (row["name"], by) and (
                provenance.backbone in {judge.version, judge.backbone} - {""}
            ):
                title = benchmark_registry.benchmark(row["benchmark"]).title
                return _TRACK_RECORD.validate_python({**row, "benchmark": title})
    return None


def present(benchmark: str, root: Path) -> list[PublishedJudge]:
    """Return the judges of `published_judges` with at least one part whose logs are
    complete below `root`.
    """
    return [
        judge for judge in published_judges(benchmark) if parts_present(judge, root)
    ]


def parts_present(judge: PublishedJudge, root: Path) -> list[str]:
    """Return the parts for which all logs of a judge are below `root`."""
    folders = benchmark_registry.benchmark(judge.benchmark).folders
    parts = []
    for folder, part in folders.items():
        files = judge.files(folder)
        if files and all(file.is_there(root) for file in files):
            parts.append(part)
    return parts


def verdicts_of(judge: PublishedJudge, root: Path) -> Recording:
    """Read the verdicts of a published judge, for each part whose logs are complete.

    Args:
        judge: one of `published_judges` or `published_baselines`.
        root: the folder of published verdicts.

    Raises:
        VievalError: the judge has no logs there, or a file is not the published one.
    """
    read = logs.reader(judge.judge)
    benchmark = benchmark_registry.benchmark(judge.benchmark)
    folders = {part: folder for folder, part in benchmark.folders.items()}
    parts = parts_present(judge, root)
    if read is None or not parts:
        raise VievalError(
            f"{root}: no logs of {judge.title} on {benchmark.title}; run `vieval prepare {NAME}`"
        )
    verdicts: dict[SampleId, Verdict] = {}
    require_published(judge, root)
    for part in parts:
        log_folder = root / judge.folder.format(part=folders[part])
        identity = partial(
            SampleId,
            judge.benchmark,
            part,
        )
        verdicts |= read(
            log_folder,
            identity,
            "",
            judge.setting,
        )
    return Recording(root, judge.judge, without_provenance(verdicts))


def require_published(judge: PublishedJudge, root: Path) -> None:
    """Raise VievalError unless every file of the available parts is the published one.

    Args:
        judge, root: as for `verdicts_of`.
    """
    benchmark = benchmark_registry.benchmark(judge.benchmark)
    folders = {part: folder for folder, part in benchmark.folders.items()}
    parts = parts_present(judge, root)
    for file in chain(*(judge.files(folders[part]) for part in parts)):
        path = root / file.place
        try:
            difference = file.difference(path.read_bytes())
        except OSError as error:
            difference = f"cannot be read ({system_reason(error)})"
        if difference:
            raise VievalError(
                f"{path}: {difference}; remove it and run `vieval prepare {NAME}`"
            )


def run_of(
    judge: PublishedJudge,
    root: Path,
    judged: Iterable[Judged | Record],
) -> Run:
    """Build a run from the verdicts of a published judge on samples or contests.

    Args:
        judge, root: as for `verdicts_of`.
        judged: samples of a benchmark, or records of them, with ratings and votes; parts without
            logs are left out of the run.

    Raises:
        VievalError: as `verdicts_of`, and if the judge has no verdicts on these samples.
    """
    recording = verdicts_of(judge, root)
    records = []
    for sample in judged:
        if f"{sample.id.benchmark}/{sample.id.part}" in recording.covered:
            verdict, provenance = replayed(
                recording,
                sample.id,
                0,
                judge.judge,
                judge.setting,
                judge.backbone,
                Config(),
            )
            provenance = replace(provenance, label=judge.title)
            if isinstance(sample, Record):
                records.append(replace(sample, verdict=verdict, provenance=provenance))
            else:
                records.append(rated_record(sample, verdict, provenance))
    if not records:
        raise VievalError(
            f"{root}: {judge.title} has no verdicts on these samples of {judge.benchmark}"
        )
    [run] = results_of(records).runs
    return run


def _described(benchmark: str, section: str) -> tuple[PublishedJudge, ...]:
    described = descriptions().get(benchmark, {})
    judges = []
    for name, entry in described.get(section, {}).items():
        fields = {
            "judge": described["judge"],
            "folder": described["folder"],
            **entry,
        }
        folder = fields["folder"].replace("{name}", name)
        fields["folder"] = f"{described['place']}/{folder}"
        judges.append(PublishedJudge(name, benchmark=benchmark, **fields))
    return tuple(judges)
