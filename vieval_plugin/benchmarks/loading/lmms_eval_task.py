"""Benchmarks of generators that lmms-eval has: prompts and images as it loads them, read from its YAML and by its functions.

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

    `folder` is that below the host's `tasks`, with the YAML of the same name; `kind` says what a generator does, `text` what
    its instruction is called, `image` the role of the image it is given. `uid`, `category` and `tags` are columns.
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
    about = _yaml(task)
    text, visual = (_function(task, about[key]) for key in ("doc_to_text", "doc_to_visual"))
    kept, seen = root / task.folder / "conditions", dict[str, int]()
    for number, row in enumerate(_rows(task, about, root)):
        try:
            [picture, *_] = visual(row)
            instruction = str(text(row))
            uid = str(row.get(task.uid, number))
        except Exception as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise VievalError(f"{task.folder}: row {number} is none of lmms-eval's task ({said})") from None
        seen[uid] = seen.get(uid, 0) + 1
        uid = uid if seen[uid] == 1 else f"{uid}-{seen[uid]}"
        tags = tuple(f"{column} {row[column]}" for column in task.tags if row.get(column) is not None)
        image = Image(_file(kept, picture))
        identity = SampleId(name, task.kind, "", uid)
        category = str(row.get(task.category) or "")
        yield Sample(identity, {task.image: image}, {task.text: instruction}, {}, tags, category=category)


def _file(folder: Path, picture: PIL.Image.Image) -> Path:
    """A picture of the host as a file that is called by its content."""
    drawn = io.BytesIO()
    picture.save(drawn, "PNG", compress_level=2)
    path = folder / f"{hashlib.sha256(drawn.getvalue()).hexdigest()[:32]}.png"
    if not path.is_file():
        write_whole(path, drawn.getvalue(), "data folder")
    return path


def _rows(task: HostTask, about: Mapping[str, Any], root: Path) -> Sequence[Mapping[str, Any]]:
    """The rows of the host's data set: of Parquet files that are there, else as the host has it."""
    import datasets

    split = about.get("test_split", "test")
    found: Any
    try:
        if files := _parquet(root / task.folder):
            found = datasets.load_dataset("parquet", data_files={split: files}, split=split)
        else:
            given = dict(about.get("dataset_kwargs") or {})
            found = datasets.load_dataset(about["dataset_path"], about.get("dataset_name"), split=split, **given)
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        raise VievalError(
            f"{task.folder}: lmms-eval's data set {about['dataset_path']} cannot be had ({said}); {_advice(task, root)}"
        ) from None
    rows: Sequence[Mapping[str, Any]] = found
    return rows


def _parquet(folder: Path) -> list[str]:
    return sorted(map(str, folder.glob("**/*.parquet")))


def _advice(task: HostTask, root: Path) -> str:
    return f"log in with a token that may read it, or put its Parquet files into {root / task.folder}"


def _yaml(task: HostTask) -> Mapping[str, Any]:
    found = importlib.util.find_spec("lmms_eval")
    if found is None or found.origin is None:
        raise VievalError(
            f'{task.folder} is a task of lmms-eval, which is not installed: pip install "vieval[lmms-eval]"'
        )
    path = Path(found.origin).parent / "tasks" / task.folder / f"{task.folder}.yaml"
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
        found: Callable[[Mapping[str, Any]], Any] = getattr(
            importlib.import_module(f"lmms_eval.tasks.{task.folder}.{module}"), name
        )
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise VievalError(f"{task.folder}: lmms-eval's {named} cannot be loaded ({said})") from None
    return found
