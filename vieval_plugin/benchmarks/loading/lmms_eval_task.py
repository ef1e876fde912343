"""Benchmarks of generators that lmms-eval has: prompts and images as it loads them, read from its
YAML and by its functions.

Nothing of theirs is copied. A further one is a file: a `benchmark.yaml` with `lmms_eval`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import PIL.Image
import yaml
from pydantic import Field

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.prompts.schema import StrictModel
from vieval_plugin.readers.hub import one_line
from vieval_plugin.text.errors import VievalError, install_advice
from vieval_plugin.text.yaml_json import JsonObject


class HostTask(StrictModel):
    """A task of lmms-eval as conditions."""

    #: Folder below the host's `tasks`, with the YAML of the same name.
    task: str = Field(pattern="^[A-Za-z0-9_]+$")
    #: Name of the instruction that a generator is given.
    text: str
    #: Role of the image that it is given.
    image: str
    #: Column of the uid.
    uid: str
    #: Column of the category.
    category: str = ""
    #: Columns of tags.
    tags: tuple[str, ...] = ()


def lmms_eval_benchmark(
    task: HostTask, name: str, kind: str, **described: Any
) -> Benchmark:
    """The benchmark of a task of lmms-eval; its data is the host's, or Parquet files below the
    data folder.
    """

    def load(root: Path, part: str) -> list[Sample]:
        return list(
            _samples(
                task,
                SampleId(name, part, "", ""),
                root,
            )
        )

    def missing(root: Path, part: str) -> list[str]:
        if _parquet(root / task.task):
            return []
        return [f"lmms-eval downloads it; if that fails, {_advice(task, root)}"]

    note = described["note"] or f"Generates images for lmms-eval's task {task.task}."
    return Benchmark(
        name,
        {kind: None},
        load,
        missing,
        OfGenerators(),
        generates=True,
        **{**described, "note": note},
    )


def _samples(task: HostTask, common: SampleId, root: Path) -> Iterator[Sample]:
    task_config = _yaml(task)
    text = _function(task, task_config["doc_to_text"])
    visual = _function(task, task_config["doc_to_visual"])
    conditions_folder = root / task.task / "conditions"
    uid_counts = dict[str, int]()
    for number, row in enumerate(_rows(task, task_config, root)):
        try:
            [picture, *_] = visual(row)
            instruction = str(text(row))
            uid = str(row.get(task.uid, number))
        except Exception as error:
            raise VievalError(
                f"{task.task}: row {number} does not fit lmms-eval's task ({one_line(error)})"
            ) from None
        uid_counts[uid] = uid_counts.get(uid, 0) + 1
        uid_count = uid_counts[uid]
        uid = uid if uid_count == 1 else f"{uid}-{uid_count}"
        tags = [
            f"{column} {row[column]}"
            for column in task.tags
            if row.get(column) is not None
        ]
        yield Sample(
            replace(common, uid=uid),
            {task.image: Image(_file(conditions_folder, picture))},
            {task.text: instruction},
            tags=tuple(tags),
            category=str(row.get(task.category) or ""),
        )


def _file(folder: Path, picture: PIL.Image.Image) -> Path:
    """A picture of the host as a file that is called by its content."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=2)
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()[:32]
    path = folder / f"{digest}.png"
    if not path.is_file():
        write_whole(path, buffer.getvalue(), "data folder")
    return path


def _rows(task: HostTask, task_config: JsonObject, root: Path) -> Sequence[JsonObject]:
    """The rows of the host's data set: of Parquet files that are there, else as the host has it."""
    import datasets

    split = task_config.get("test_split", "test")
    dataset: Any
    try:
        files = _parquet(root / task.task)
        if files:
            dataset = datasets.load_dataset(
                "parquet",
                data_files={split: files},
                split=split,
            )
        else:
            dataset_kwargs = dict(task_config.get("dataset_kwargs") or {})
            dataset = datasets.load_dataset(
                task_config["dataset_path"],
                task_config.get("dataset_name"),
                split=split,
                **dataset_kwargs,
            )
    except Exception as error:
        raise VievalError(
            f"{task.task}: cannot load lmms-eval's data set {task_config['dataset_path']} "
            f"({one_line(error)}); {_advice(task, root)}"
        ) from None
    rows: Sequence[JsonObject] = dataset
    return rows


def _parquet(folder: Path) -> list[str]:
    return sorted(map(str, folder.glob("**/*.parquet")))


def _advice(task: HostTask, root: Path) -> str:
    return f"log in with a token that can read it, or put its Parquet files into {root / task.task}"


def _yaml(task: HostTask) -> JsonObject:
    package = importlib.util.find_spec("lmms_eval")
    if package is None or package.origin is None:
        raise VievalError(
            f"{task.task} is a task of lmms-eval, which is not installed; "
            f"{install_advice('lmms-eval')}"
        )
    tasks_folder = Path(package.origin).parent / "tasks"
    path = tasks_folder / task.task / f"{task.task}.yaml"
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_WithFunctions)
    except (OSError, yaml.YAMLError) as error:
        raise VievalError(
            f"{path}: cannot read the lmms-eval task ({type(error).__name__})"
        ) from None
    return dict(document)


class _WithFunctions(yaml.SafeLoader):
    """Reads lmms-eval's YAML; what `!function` names is its name."""


_WithFunctions.add_constructor("!function", lambda _loader, node: str(node.value))


def _function(task: HostTask, path: str) -> Callable[[JsonObject], Any]:
    module, _, name = path.rpartition(".")
    try:
        function: Callable[[JsonObject], Any]
        imported = importlib.import_module(f"lmms_eval.tasks.{task.task}.{module}")
        function = getattr(imported, name)
    except Exception as error:
        raise VievalError(
            f"{task.task}: cannot load lmms-eval's {path} ({one_line(error)})"
        ) from None
    return function
