"""Judges all rows of a dataset before VLMEvalKit's inference loop, then gives that loop a stand-in
model, `KnownAnswers`, that returns the verdicts.

Sheets, --reuse, --mode and the summary remain the host's, while the judging is one run: candidates
of several contests are judged once, and verdicts are kept as they come.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from vlmeval.config import supported_VLM
from vlmeval.smp import LMUDataRoot, get_rank_and_world_size, load

from vieval_plugin import config
from vieval_plugin.hosts.shutdown import one_line, print_lines, tell
from vieval_plugin.hosts.vlmevalkit import names
from vieval_plugin.hosts.vlmevalkit.dataset import JudgedImages
from vieval_plugin.hosts.vlmevalkit.host_model import (
    HostModel,
    identity_of,
    keep_identity,
)
from vieval_plugin.hosts.vlmevalkit.models import OwnModel
from vieval_plugin.hosts.vlmevalkit.results import (
    KeptVerdict,
    VerdictFiles,
    append,
    cell,
    is_failed_call,
    read_cell,
    short_hash,
)
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Verdict
from vieval_plugin.readers.absent_images import require_images
from vieval_plugin.records import fingerprint, response_json, target_json
from vieval_plugin.results.documents import read_response
from vieval_plugin.run.answerers import Answerer
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import PreparedJudge, prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.router import ASKS_A_MODEL
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.text.errors import VievalError

#: Number of verdicts that lack a score because calls or tools failed, a number for each dataset
#: that was judged.
failed: list[int] = []
#: The datasets that the host could not build.
unbuilt: list[str] = []
_TAKES_VLLM = re.compile(r"Llama-4|Qwen2(\.5)?-VL")
_SHEETS = (".xlsx", ".tsv", ".json")
_PICKLES = ("_PREV.pkl", "_checkpoint.pkl", "_supp.pkl")


def building(original: Callable[..., Any]) -> Callable[..., Any]:
    """The host's `build_dataset`, which takes note of what it could not build, and says so of a
    name that is like ours.
    """

    @wraps(original)
    def build_dataset(dataset_name: str, **host_arguments: Any) -> Any:
        if names.is_like_ours(dataset_name):
            one_line(names.tasks_of)(dataset_name)
        built = original(dataset_name, **host_arguments)
        if built is None:
            unbuilt.append(dataset_name)
        return built

    return build_dataset


class KnownAnswers:
    """The model that the host's loop asks: it knows what to say of each row."""

    is_api = False

    def __init__(self, cells: Mapping[int, str]) -> None:
        self._cells = cells

    @one_line
    def generate(
        self, message: Sequence[Mapping[str, str]], dataset: str | None = None
    ) -> str:
        """The cell of the row that a prompt of `JudgedImages` names."""
        index = int(message[0]["value"].split()[1])
        if index not in self._cells:
            raise VievalError(
                f"VLMEvalKit asks about row {index}, although its sheet had an answer; delete the "
                "sheet"
            )
        return self._cells[index]

    def set_dump_image(self, dump_image: Any) -> None:
        """The host hands this to every model; there is nothing to dump."""


def judging(original: Callable[..., Any]) -> Callable[..., Any]:
    """The host's `infer_data_job`, which judges where the dataset is one of ours."""

    @wraps(original)
    def infer_data_job(
        model: Any, work_dir: Any, model_name: str, dataset: Any, **host_arguments: Any
    ) -> Any:
        if not isinstance(dataset, JudgedImages):
            return original(
                model,
                work_dir=work_dir,
                model_name=model_name,
                dataset=dataset,
                **host_arguments,
            )
        answers, used = judge_unanswered(
            model, Path(work_dir), model_name, dataset, host_arguments
        )
        one_line(original)(
            answers,
            work_dir=work_dir,
            model_name=model_name,
            dataset=dataset,
            **host_arguments,
        )
        return used

    return infer_data_job


@one_line
def judge_unanswered(
    model: Any,
    folder: Path,
    name: str,
    dataset: JudgedImages,
    host_arguments: Mapping[str, Any],
) -> tuple[KnownAnswers, Any]:
    """Judge the rows to which the host has no answer yet; the answers, and the model itself for the
    host's next dataset.

    `model` is the host's, built or only named; `host_arguments` are the host's further arguments.
    """
    rank, world_size = get_rank_and_world_size()
    limit = host_arguments.get("limit") or len(dataset.data)
    mine = list(map(int, dataset.data["index"][:limit]))[rank::world_size]
    judge = _Judge(model, name, dataset, host_arguments)
    files = VerdictFiles(folder, name, dataset.dataset_name)
    is_ignored = host_arguments.get("ignore_failed", False)
    answered_rows = discard_unusable_answers(
        files,
        judge.identity_hash,
        host_arguments.get("retry_failed", not is_ignored),
        rank,
        world_size,
    )
    verdicts = judge.earlier_verdicts(files, mine)
    answered_rows |= {row.index for row, _ in verdicts}
    unanswered_rows = [index for index in mine if index not in answered_rows]
    if unanswered_rows:
        verdicts += judge.judge(unanswered_rows, files.part(rank))
    cells = {row.index: cell(verdict, row) for row, verdict in verdicts}
    return KnownAnswers(cells), judge.model


class _Judge:
    """A dataset's judge with the host's model as its backbone."""

    def __init__(
        self,
        model: Any,
        name: str,
        dataset: JudgedImages,
        host_arguments: Mapping[str, Any],
    ) -> None:
        self.model = model
        self._name = name
        self._dataset = dataset
        self._host_arguments = host_arguments
        maker = supported_VLM.get(model) if isinstance(model, str) else None
        ours = getattr(maker, "func", maker)
        if maker is not None and isinstance(ours, type) and issubclass(ours, OwnModel):
            self.model = maker()  # it loads nothing yet
        self._our_model = self.model if isinstance(self.model, OwnModel) else None
        self.options = self._our_model.options if self._our_model else config.current()
        task = dataset.tasks[0]  # all of a dataset have one judge in one setting
        if self._our_model:
            self._identity = self._our_model.identity
        else:
            self._identity = identity_of(self.model, name, supported_VLM)
        self._prepared = prepare(
            task.judge,
            task.setting,
            self.options,
            self._our_model.served_by if self._our_model else None,
        )
        _require_answerable(self._prepared, self._our_model)
        backbone = self._our_model.backbone if self._our_model else name
        by = self._provenance = self._prepared.by(backbone)
        parts = [
            by.judge,
            by.settings,
            by.backbone,
            by.reader,
            by.pack_hash,
            by.config_hash,
            self._identity,
        ]
        #: An answer with another hash is by another judge, model or wording, and is not reused.
        self.identity_hash = short_hash(json.dumps(parts, sort_keys=True, default=str))

    def earlier_verdicts(
        self, files: VerdictFiles, indices: Sequence[int]
    ) -> list[tuple[KeptVerdict, Verdict]]:
        """Verdicts of a run that was ended before the host noted them, where they are of this
        judge on this sample.
        """
        samples = {i: self._sample(i) for i in indices}
        by_index = dict[int, tuple[KeptVerdict, Verdict]]()
        for row in files.rows():
            if row.index not in samples:
                continue
            sample = samples[row.index]
            if (row.by, row.target) == (self.identity_hash, target_json(sample)):
                identity, verdict, _ = read_response(row.response)
                print_then = json.loads(row.response)["sample"]
                is_same = (identity, print_then) == (sample.id, fingerprint(sample))
                if is_same and not is_failed_call(verdict):
                    by_index[row.index] = row, verdict
        return list(by_index.values())

    def judge(
        self, unanswered_rows: Sequence[int], part: Path
    ) -> list[tuple[KeptVerdict, Verdict]]:
        """Judge rows, each verdict appended to a file as it comes."""
        judged = [self._sample(index) for index in unanswered_rows]
        require_images(judged)
        progress = Progress()
        rows = list[tuple[KeptVerdict, Verdict]]()

        def on_outcome(number: int, outcome: Outcome) -> None:
            sample = judged[number]
            response = response_json(
                sample.id, outcome.verdict, self._provenance, fingerprint(sample)
            )
            row = KeptVerdict(
                unanswered_rows[number],
                target_json(sample),
                response,
                self.identity_hash,
            )
            append(part, row)
            rows.append((row, outcome.verdict))

        answerer = self._our_model.answerer if self._our_model else self._host_model()
        jobs = [Job(sample, self._prepared) for sample in judged]
        try:
            answerer.judge(
                jobs,
                self.options,
                progress,
                on_outcome,
                bar=True,
            )
        finally:
            tell(progress)
            failed.append(progress.failed_calls)
        return rows

    def _sample(self, index: int) -> Judged:
        return self._dataset.judged[index]

    def _host_model(self) -> Answerer:
        """The host's model, built as the host would build it."""
        if isinstance(self.model, str):
            self.model = _built(self.model, self._host_arguments)
        keep_identity(self.model, self._identity)
        if hasattr(self.model, "set_dump_image"):
            self.model.set_dump_image(self._dataset.dump_image)
        host_model = HostModel(
            self.model,
            self._name,
            self._identity,
            Path(LMUDataRoot()) / "images" / "vieval",
            self._dataset.dataset_name,
        )
        return host_model.answerer(self._host_arguments.get("api_nproc", 4))


def _built(name: str, host_arguments: Mapping[str, Any]) -> Any:
    """A model of the host by its name; transformers would spread it over processes if it saw how
    many there are.
    """
    if name not in supported_VLM:
        raise VievalError(
            f"unknown model {name!r}; `vlmutil mlist all` lists VLMEvalKit's models"
        )
    takes_vllm = host_arguments.get("use_vllm") and _TAKES_VLLM.search(name)
    world_size = os.environ.pop("WORLD_SIZE", None)
    try:
        return supported_VLM[name](**({"use_vllm": True} if takes_vllm else {}))
    finally:
        if world_size is not None:
            os.environ["WORLD_SIZE"] = world_size


def _require_answerable(prepared: PreparedJudge, our_model: OwnModel | None) -> None:
    """Raise VievalError if the judge measures with another network, or asks a model but
    was passed a network.
    """
    measures = our_model is not None and our_model.measures
    if prepared.spec.scored and not measures:
        raise VievalError(
            f"{prepared.spec.name} is a network; use --model VievalScorer"
        )
    if prepared.asks_a_model and measures:
        raise VievalError(ASKS_A_MODEL)


def install_pipeline(pipeline: Any) -> None:
    """Judge our datasets before the pipeline starts, as it would wait for ever for a model that raises;
    exit with 1 where an evaluation failed, as the pipeline would exit with 0.
    """
    begin = pipeline.__init__
    run = pipeline.run

    @wraps(begin)
    def __init__(
        self: Any, dataset_configs: Any, *arguments_after: Any, **options: Any
    ) -> None:
        begin(self, dataset_configs, *arguments_after, **options)
        for dataset_config in self.dataset_configs:
            if isinstance(dataset_config.dataset_obj, JudgedImages) and self.run_infer:
                dataset_config.model_obj, _ = judge_unanswered(
                    dataset_config.model_obj,
                    Path(dataset_config.work_dir),
                    dataset_config.model_name,
                    dataset_config.dataset_obj,
                    {
                        "retry_failed": self.retry_failed,
                        "api_nproc": self.concurrency,
                    },
                )

    @wraps(run)
    async def run_and_tell(self: Any) -> None:
        await run(self)
        for dataset_config in self.dataset_configs:
            if (
                isinstance(dataset_config.dataset_obj, JudgedImages)
                and dataset_config.eval_status.name == "Error"
            ):
                raise SystemExit(
                    f"vieval: the evaluation of {dataset_config.dataset_name} failed (see above)"
                )

    pipeline.__init__ = __init__
    pipeline.run = run_and_tell


def discard_unusable_answers(
    files: VerdictFiles, by: str, retry_failed: bool, rank: int, world_size: int
) -> set[int]:
    """Delete files of answers that cannot be read or are by another judge, as the host takes up whatever
    it finds; the rows that the remaining files answer.

    Failed calls do not count as answers where they are tried again.
    """
    rows: set[int] = set()
    unusable: dict[Path, str] = {}
    for path in _files(files, rank, world_size):
        try:
            answers = _answers(path)
        except Exception:  # pickles written in place and cut short raise anything
            unusable[path] = "unreadable"
            continue
        found = set()
        for index, text in answers.items():
            cell = read_cell(text)
            if cell is None or cell.by != by:
                unusable[path] = "answers from a different judge, model or wording"
                break
            if not (retry_failed and cell.failed):
                found.add(int(index))
        else:
            rows |= found
    _wait_for_others(world_size)  # all have looked before any deletes
    for path, why in unusable.items():
        path.unlink(missing_ok=True)
        print_lines(f"deleted {path} ({why}); its rows are judged again")
    _wait_for_others(world_size)
    return rows


def _wait_for_others(world_size: int) -> None:
    if world_size > 1:
        import torch.distributed

        torch.distributed.barrier()


def _files(files: VerdictFiles, rank: int, world_size: int) -> Iterator[Path]:
    stem = f"{files.model}_{files.dataset}"
    names = [stem + end for end in (*_SHEETS, *_PICKLES)]
    names.append(f"{rank}{world_size}_{files.dataset}.pkl")
    yield from filter(Path.exists, map(files.folder.joinpath, names))


def _answers(path: Path) -> Mapping[Any, Any]:
    loaded = load(str(path))
    if isinstance(loaded, dict):
        return loaded
    return dict(
        zip(
            loaded["index"],
            loaded["prediction"],
            strict=True,
        )
    )
