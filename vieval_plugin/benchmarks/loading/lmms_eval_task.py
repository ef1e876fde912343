"""Benchmarks of generators that lmms-eval has: prompts and images as it loads them, read from its YAML and by its
functions.

Nothing of theirs is copied. A further one is a row: a module with `BENCHMARK = of_lmms_eval(HostTask(...))`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import PIL.Image
import yaml

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.generators import OfGenerators


@dataclass(frozen=True)
class HostTask:
    """A task of lmms-eval as conditions.

    `folder` is that below the host's `tasks`, with the YAML of the same name; `kind` says what a generator does,
    `text` what its instruction is called, `image` the role of the image it is given. `uid`, `category` and `tags` are
    columns.
    """

    folder: str
    kind: str
    text: str
    image: str
    uid: str
    category: str
    tags: tuple[str, ...]
    source: str
    licence: str


def of_lmms_eval(task: HostTask) -> Benchmark:
    """The benchmark of a task of lmms-eval; its data is the host's, or Parquet files below the data folder."""
    name = f"generate_{task.folder}"

    def load(root: Path, part: str) -> list[Sample]:
        return list(_samples(task, name, root))

    def missing(root: Path, part: str) -> list[str]:
        return [] if _parquet(root / task.folder) else [f"lmms-eval downloads it, or: {_advice(task, root)}"]

    return Benchmark(
        name,
        {task.kind: None},
        load,
        missing,
        OfGenerators(),
        source=task.source,
        licence=task.licence,
        trainable=False,
        generates=True,
        note=f"A generator makes the images of lmms-eval's {task.folder}.",
    )


def _samples(task: HostTask, name: str, root: Path) -> Iterator[Sample]:
    task_config = _yaml(task)
    text, visual = (_function(task, task_config[key]) for key in ("doc_to_text", "doc_to_visual"))
    conditions_folder, uid_counts = root / task.folder / "conditions", dict[str, int]()
    for number, row in enumerate(_rows(task, task_config, root)):
        try:
            [picture, *_] = visual(row)
            instruction = str(text(row))
            uid = str(row.get(task.uid, number))
        except Exception as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise VievalError(f"{task.folder}: row {number} is none of lmms-eval's task ({message})") from None
        uid_counts[uid] = uid_counts.get(uid, 0) + 1
        uid = uid if uid_counts[uid] == 1 else f"{uid}-{uid_counts[uid]}"
        tags = tuple(f"{column} {row[column]}" for column in task.tags if row.get(column) is not None)
        image = Image(_file(conditions_folder, picture))
        identity = SampleId(name, task.kind, "", uid)
        category = str(row.get(task.category) or "")
        yield Sample(identity, {task.image: image}, {task.text: instruction}, {}, tags, category=category)


def _file(folder: Path, picture: PIL.Image.Image) -> Path:
    """A picture of the host as a file that is called by its content."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=2)
    path = folder / f"{hashlib.sha256(buffer.getvalue()).hexdigest()[:32]}.png"
    if not path.is_file():
        write_whole(path, buffer.getvalue(), "data folder")
    return path


def _rows(task: HostTask, task_config: Mapping[str, Any], root: Path) -> Sequence[Mapping[str, Any]]:
    """The rows of the host's data set: of Parquet files that are there, else as the host has it."""
    import datasets

    split = task_config.get("test_split", "test")
    dataset: Any
    try:
        if files := _parquet(root / task.folder):
            dataset = datasets.load_dataset("parquet", data_files={split: files}, split=split)
        else:
            dataset_kwargs = dict(task_config.get("dataset_kwargs") or {})
            dataset = datasets.load_dataset(
                task_config["dataset_path"], task_config.get("dataset_name"), split=split, **dataset_kwargs
            )
    except Exception as error:
        message = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        raise VievalError(
            f"{task.folder}: lmms-eval's data set {task_config['dataset_path']} cannot be had ({message}); {_advice(task, root)}"
        ) from None
    rows: Sequence[Mapping[str, Any]] = dataset
    return rows


def _parquet(folder: Path) -> list[str]:
    return sorted(map(str, folder.glob("**/*.parquet")))


def _advice(task: HostTask, root: Path) -> str:
    return f"log in with a token that may read it, or put its Parquet files into {root / task.folder}"


def _yaml(task: HostTask) -> Mapping[str, Any]:
    package = importlib.util.find_spec("lmms_eval")
    if package is None or package.origin is None:
        raise VievalError(
            f'{task.folder} is a task of lmms-eval, which is not installed: pip install "vieval[lmms-eval]"'
        )
    path = Path(package.origin).parent / "tasks" / task.folder / f"{task.folder}.yaml"
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_WithFunctions)
    except (OSError, yaml.YAMLError) as error:
        raise VievalError(f"{path}: the task of lmms-eval cannot be read ({type(error).__name__})") from None
    return dict(document)


class _WithFunctions(yaml.SafeLoader):
    """Reads lmms-eval's YAML; what `!function` names is its name."""


_WithFunctions.add_constructor("!function", lambda _loader, node: str(node.value))


def _function(task: HostTask, named: str) -> Callable[[Mapping[str, Any]], Any]:
    module, _, name = named.rpartition(".")
    try:
        function: Callable[[Mapping[str, Any]], Any] = getattr(
            importlib.import_module(f"lmms_eval.tasks.{task.folder}.{module}"), name
        )
    except Exception as error:
        message = " ".join(str(error).split())[:200]
        raise VievalError(f"{task.folder}: lmms-eval's {named} cannot be loaded ({message})") from None
    return function
