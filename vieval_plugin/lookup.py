"""Results on disk -> records, with the samples they judge and the judges that made them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vieval_plugin import config, judging
from vieval_plugin.data import benchmarks
from vieval_plugin.errors import VievalError
from vieval_plugin.exchanges import Exchange, exchanges
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.records import Provenance, Record, fingerprint, lines_of, read_verdict
from vieval_plugin.report.load import records_of, samples_files
from vieval_plugin.scoring import BENCHMARK, read_samples


@dataclass(frozen=True)
class Lookup:
    """Records, and where to find their samples: the data folder, or a file of the user's own samples."""

    records: tuple[Record, ...]
    samples: Path | None = None

    def find(self, name: str, judge: str | None = None) -> Record:
        """The record whose id is or ends in `name`, of a judge where one is named; VievalError names those it could be."""
        held = [record for record in self.records if judge in (None, record.provenance.judge)]
        exact = [record for record in held if str(record.id) == name]
        found = exact or [record for record in held if str(record.id).endswith(f"/{name}")]
        if len(found) == 1:
            return found[0]
        some = ", ".join(str(record.id) for record in (found or self.records)[:5])
        if len({record.id for record in found}) == 1:
            judges = ", ".join(dict.fromkeys(record.provenance.judge for record in found))
            raise VievalError(
                f"{name}: {len(found)} verdicts on this sample ({judges}); say which with --judge, or name one samples file"
            )
        if found:
            raise VievalError(f"{name}: {len(found)} verdicts are called that; say more of the id ({some}, ...)")
        raise VievalError(f"{name}: no such sample among {len(self.records)} verdicts; ids look like {some}")

    def sample(self, identity: SampleId) -> Sample:
        """The sample of a record; VievalError says what is missing to find it."""
        found = _samples(identity.benchmark, identity.task, self.samples).get(identity)
        if found is None:
            raise VievalError(f"{identity}: not among the samples; is this the data that was judged?")
        return found

    def exchanges(self, record: Record) -> list[Exchange]:
        """The conversation behind a record, told again (see exchanges.py)."""
        source = record.provenance
        prepared = judging.prepare(source.judge, judging.setting_of(source), config.current())
        if (prepared.provenance.setting, prepared.provenance.pack_hash) != (source.setting, source.pack_hash):
            now = prepared.provenance
            raise VievalError(
                f"{record.id}: judged as {source.setting} with pack {source.pack} ({source.pack_hash}), the options now say "
                f"{now.setting} with {now.pack} ({now.pack_hash}); name the run's options file in {config.FILE_VARIABLE}"
            )
        sample = self.sample(record.id)
        if record.fingerprint not in ("", fingerprint(sample)):
            raise VievalError(
                f"{record.id}: its texts or images are not those that were judged; name the samples file of that run "
                "with --samples, or judge again"
            )
        return exchanges(prepared.judge, sample, record.verdict)


def open_results(results: Sequence[Path], samples: Path | None = None) -> Lookup:
    """Records of lmms-eval runs (--output_path, or a samples file) or of `vieval score`; VievalError names a bad row."""
    found: list[Record] = []
    for result in results:
        if not result.exists():
            raise VievalError(
                f"{result}: no such file or folder; pass a run's --output_path, or what vieval score wrote"
            )
        for path in samples_files(result):
            found += _own(path) if _is_own(path) else [record for judged in records_of(path) for record in judged]
    return Lookup(tuple(found), samples)


def _is_own(path: Path) -> bool:
    with path.open(encoding="utf-8") as file:
        try:
            row = json.loads(file.readline())
        except ValueError:
            return False
    return isinstance(row, dict) and "provenance" in row and "resps" not in row


def _own(path: Path) -> Iterator[Record]:
    for number, line in enumerate(lines_of(path.read_text(encoding="utf-8")), start=1):
        try:
            row = json.loads(line)
            source = dict(row["provenance"])
            source["aspects"] = tuple(source["aspects"])
            identity = SampleId(BENCHMARK, row["task"], row["image_model"], row["uid"])
            judged = str(row.get("sample", ""))
            yield Record(identity, read_verdict(row), Provenance(**source), {}, fingerprint=judged)
        except (ValueError, KeyError, TypeError) as error:
            raise VievalError(f"{path}: line {number} is no verdict of vieval score ({error})") from None


@cache
def _samples(benchmark: str, task: str, own: Path | None) -> dict[SampleId, Sample]:
    if benchmark != BENCHMARK:
        folder = config.current().data_folder()
        return {sample.id: sample for sample in benchmarks.samples(folder, benchmark, task)}
    if own is None:
        raise VievalError("these are verdicts on your own samples; name their file with --samples")
    return {sample.id: sample for sample in read_samples(own)}
