"""Read records from results on disk, with the samples that they judge and the judges
that made them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.images import images_of, is_changed, name_of
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.conversation import Exchange
from vieval_plugin.judges.protocol import Path as StepPath
from vieval_plugin.judges.protocol import Program, Reply, SampleId, Status, Verdict
from vieval_plugin.readers.places import is_shards
from vieval_plugin.records import UNJUDGED, Provenance, Record, fingerprint, output_file
from vieval_plugin.results.host_samples import samples_files
from vieval_plugin.results.rows import rows_of, sample_of
from vieval_plugin.run.scheduler import BROKEN
from vieval_plugin.run.verdict_log import partial_file
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import exists
from vieval_plugin.text.versions import VERSION
from vieval_plugin.text.wording import plural

if TYPE_CHECKING:
    from vieval_plugin.run.prepare import PreparedJudge

_MOST_EXAMPLES = 5
_prepared: dict[str, PreparedJudge] = {}


@dataclass(frozen=True)
class Lookup:
    """Records in which to look up samples."""

    #: Records; their samples are in them, in input rows or in the data folder.
    records: tuple[Record, ...]
    #: Notes on the records.
    notes: tuple[str, ...] = ()

    def find(self, name: str, judge: str | None = None) -> Record:
        """Find the record whose id is or ends in `name`, otherwise the one whose file
        or contest has that name; VievalError with the candidates if several match.

        With `judge`, search only records of that judge.
        """
        candidates = [
            record
            for record in self.records
            if judge in (None, record.provenance.judge)
        ]
        matches = [record for record in candidates if str(record.id) == name]
        if not matches:
            ending = f"/{name}"
            matches = [
                record for record in candidates if str(record.id).endswith(ending)
            ]
        if not matches:
            matches = [record for record in candidates if name in _short_names(record)]
        if len(matches) == 1:
            return matches[0]
        like = [str(record.id) for record in matches or self.records]
        more = ", ..." if len(like) > _MOST_EXAMPLES else ""
        examples = ", ".join(like[:_MOST_EXAMPLES]) + more
        if len({record.id for record in matches}) == 1:
            judges = dict.fromkeys(record.provenance.judge for record in matches)
            raise VievalError(
                f"{name}: {len(matches)} verdicts match this sample "
                f"({', '.join(judges)}); choose one with --judge, or pass one samples "
                "file"
            )
        if matches:
            raise VievalError(
                f"{name}: {len(matches)} verdicts match; use the full id ({examples})"
            )
        raise VievalError(
            f"{name}: not found among {plural(len(self.records), 'verdict')}; "
            f"ids look like {examples}"
        )

    def sample(self, record: Record) -> Judged:
        """Find the sample or contest of a record; VievalError with what is missing."""
        sample = sample_of(record) or _samples(record.id.benchmark, record.id.part).get(
            record.id
        )
        if sample is None:
            raise VievalError(
                f"{record.id}: not found among the samples; check that the data folder "
                "contains the data that was judged"
            )
        return sample

    def conversation(self, record: Record) -> list[Exchange]:
        """Rebuild the conversation of a record (see `conversation`); VievalError if it
        is not available.
        """
        if record.row and not record.row.traced:
            raise VievalError(
                f"{record.id}: prompts and replies were not saved; run `vieval score` "
                "again with --trace"
            )
        source = record.provenance
        prepared = judge_of(source)
        now = prepared.provenance
        if (now.settings, now.pack_hash) != (source.settings, source.pack_hash):
            remedy = "restore that pack"
            if not source.options:
                remedy = f"set {config.FILE_VARIABLE} to the run's options file"
            raise VievalError(
                f"{record.id}: judged as {source.setting} with pack {source.pack} "
                f"({source.pack_hash}), but the current options use {now.setting} "
                f"with {now.pack} ({now.pack_hash}); {remedy}"
            )
        sample = self.sample(record)
        require_as_judged(record, sample)
        return conversation(prepared.program, sample, record.verdict)


def require_as_judged(record: Record, judged: Judged) -> None:
    """Raise VievalError if the texts or images of a record's sample or contest differ
    from those that were judged.
    """
    image = next(filter(is_changed, images_of(judged)), None)
    if image:
        raise VievalError(
            f"{record.id}: {name_of(image)} has changed since it was judged; restore "
            "it, or run the judge again"
        )
    if record.fingerprint not in ("", fingerprint(judged)):
        raise VievalError(
            f"{record.id}: its texts or images have changed since they were judged; "
            "restore them, or run the judge again"
        )


def _short_names(record: Record) -> tuple[str, ...]:
    """Names other than the id: of the file that was judged, or the uids of a contest."""
    if record.candidates:
        return tuple(candidate.uid for candidate in record.candidates)
    file = output_file(record)
    if file:
        return (file, Path(file).stem)
    return ()


def open_results(results: Sequence[Path], partial: bool = False) -> Lookup:
    """Open records of lmms-eval runs (--output_path, or a samples file) or of `vieval
    score`; VievalError with the line of a malformed row.

    A folder of shards yields a sample of its records (`sample_shards`).

    With `partial`, read incomplete runs too.
    """
    records = list[Record]()
    notes = list[str]()
    for result in results:
        places = (result, partial_file(result))
        if not (is_shards(result) or any(map(exists, places))):
            raise VievalError(
                f"{result}: no such file or folder; "
                "pass a run's --output_path, "
                "or the output of vieval score"
            )
        for path in samples_files(result):
            if is_shards(path):
                from vieval_plugin.results.shard_sample import sample_shards

                sample = sample_shards(path, partial)
                records += sample.records
                notes += sample.notes
            else:
                records += [
                    record for judged in rows_of(path, partial) for record in judged
                ]
    return Lookup(tuple(records), tuple(notes))


def find_record(
    result: Path,
    name: str,
    judge: str | None = None,
    partial: bool = False,
) -> Record:
    """Find the record with a name, as `Lookup.find` does; in a folder of shards a name
    may be FILE:ROW.

    Raises:
        VievalError: the results cannot be read, or the name matches none or several of them.
    """
    if is_shards(result):
        from vieval_plugin.results.shard_verdicts import open_shards, record_named

        return record_named(open_shards(result, partial), name)
    return open_results([result], partial).find(name, judge)


def judge_of(source: Provenance) -> PreparedJudge:
    """Prepare the judge of a verdict with the options of its run."""
    from vieval_plugin.run.prepare import prepare, setting_of

    key = repr(source)
    if key not in _prepared:
        options = config.from_document(source.options)
        _prepared[key] = prepare(source.judge, setting_of(source), options)
    return _prepared[key]


def samples_by_id(benchmark: str, part: str) -> dict[SampleId, Judged]:
    """Load the samples of a benchmark from the data folder; VievalError if they are
    missing.
    """
    folder = config.current().data_folder()
    return {
        sample.id: sample
        for sample in benchmark_registry.samples(benchmark, part, folder)
    }


_samples = cache(samples_by_id)


def conversation(
    judge: Callable[[Judged], Program],
    judged: Judged,
    verdict: Verdict,
) -> list[Exchange]:
    """Rebuild every question behind a verdict with its answer, in order, by running the
    program again on its recorded answers.

    A verdict's trace holds every answer word for word, under the path of its question.
    Judges have no I/O, so the same program asks the same questions again. The result is
    empty if the program failed or the judge was not asked. VievalError if the judge now
    asks different questions, because its pack or options have changed since the run.
    """
    if not was_asked(verdict):
        return []
    exchanges, again = rerun(judge, judged, verdict)
    scores_differ = dict(again.scores) != dict(verdict.scores)
    if scores_differ or again.choice != verdict.choice:
        raise VievalError(
            f"{judged.id}: the recorded answers now give different scores; use the "
            "run's original options"
        )
    return exchanges


def was_asked(verdict: Verdict) -> bool:
    """Return whether a verdict was returned by the judge's program: it was asked and
    did not fail.
    """
    return not any(
        step.path == BROKEN or UNJUDGED in (step.path, step.path[1:])
        for step in verdict.trace
    )


def rerun(
    judge: Callable[[Judged], Program],
    judged: Judged,
    verdict: Verdict,
) -> tuple[list[Exchange], Verdict]:
    """Run a judge's program again on the answers in a verdict's trace; return every
    question with its answer, and the new verdict.

    Raises:
        VievalError: the judge now asks a question that was not asked then.
    """
    from vieval_plugin.run.router import recorded_reply

    steps = {(step.path, step.attempt): step for step in verdict.trace}
    asks_by_path: Counter[StepPath] = Counter()
    exchanges: list[Exchange] = []
    program = judge(judged)
    replies: list[Reply] | None = None
    while True:
        try:
            asks = next(program) if replies is None else program.send(replies)
        except StopIteration as end:
            return exchanges, end.value
        replies = []
        for ask in asks:
            step = steps.get((ask.path, asks_by_path[ask.path]))
            asks_by_path[ask.path] += 1
            if step is None:
                raise VievalError(
                    f"{judged.id}: no recorded answer to {'/'.join(ask.path)}; use "
                    "the run's original options"
                )
            replies.append(recorded_reply(ask, step))
            exchanges.append(Exchange(ask, replies[-1], step))


def require_consistent(records: Iterable[Record]) -> None:
    """Raise VievalError for the first verdict that contradicts itself."""
    for record in records:
        reason = contradiction(record)
        if reason:
            raise VievalError(
                f"{record.id}: {reason}; restore its file of verdicts, or run the judge "
                "again"
            )


def contradiction(record: Record) -> str:
    """Describe how a verdict contradicts its status, its trace or its judge; empty if
    it does not.

    A replay is never contradictory, because it may keep numbers of its log that no
    reply gives.
    """
    verdict = record.verdict
    source = record.provenance
    if source.recorded:
        return ""
    status = verdict.status
    scores = verdict.scores
    if scores and not was_asked(verdict):
        return (
            "it has scores, but its trace shows that the judge gave none (status "
            f"{status})"
        )
    if scores and not status.usable and scores.keys() >= set(source.aspects):
        return f"it has all scores, but its status is {status}"
    spec = judge_registry.judge_of_results(source.judge, source.options)
    # a metric such as a cosine may be negative
    lowest = 0 if spec and spec.pack and not spec.file else -1
    for aspect, score in scores.items():
        if score < lowest:
            return (
                f"{aspect} of {source.judge} must be at least {lowest}, got {score:g}"
            )
        steps = [step for step in verdict.trace if step.path == (aspect,)]
        if steps and not any(step.status.usable for step in steps):
            return (
                f"it has a score for {aspect}, but that question failed "
                f"({steps[-1].status})"
            )
    return _trace_contradiction(record)


def _trace_contradiction(record: Record) -> str:
    """Describe how a verdict contradicts its trace, if the judge's code and prompts are
    those of its run.
    """
    verdict = record.verdict
    source = record.provenance
    sample = sample_of(record)
    if (
        sample is None
        or record.version != VERSION
        or not was_asked(verdict)
        or (record.row and not record.row.traced)
    ):
        return ""
    try:
        judge = judge_of(source)
    except VievalError:  # its file or its pack is not here
        return ""
    provenance = judge.provenance
    if not judge.spec.is_ours or (provenance.setting, provenance.pack_hash) != (
        source.setting,
        source.pack_hash,
    ):
        return ""
    try:
        _, again = rerun(judge.program, sample, verdict)
    except VievalError as error:
        reason = str(error).removeprefix(f"{sample.id}: ")
        return reason.partition("; ")[0]  # the caller knows a better remedy
    if again.status is Status.NOT_APPLICABLE:  # an image is not there any more
        return ""
    names = {*verdict.scores, *again.scores} - {*source.calibrated_scores}
    for aspect in names:
        then, now = (scores.get(aspect) for scores in (verdict.scores, again.scores))
        if then != now:
            return f"its {aspect} is {then}, but its replies give {now}"
    if verdict.choice != again.choice or verdict.status.usable != again.status.usable:
        return (
            f"its choice or status ({verdict.status}) differs from that of its replies "
            f"({again.status})"
        )
    if verdict.bounds != again.bounds:
        return "its bounds differ from those of its replies"
    return _step_contradiction(verdict, again)


def _step_contradiction(verdict: Verdict, again: Verdict) -> str:
    """Describe how a step contradicts the same step of the verdict that its replies
    give now.
    """
    steps_now = {(step.path, step.attempt): step for step in again.trace}
    for step in verdict.trace:
        now = steps_now.get((step.path, step.attempt), step)
        if (step.status.usable, step.scores) != (now.status.usable, now.scores):
            return (
                f"its step {'/'.join(step.path)} differs from its reply ({now.status})"
            )
    return ""
