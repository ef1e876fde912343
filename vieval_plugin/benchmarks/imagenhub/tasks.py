"""ImagenHub's seven tasks: their files, image models, conditions.

They are in `tasks.yaml`, with its source.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from vieval_plugin.benchmarks.benchmark import known_part
from vieval_plugin.text.yaml_json import read_yaml

NAME = "imagenhub"
ANNOTATORS = 3


@dataclass(frozen=True)
class HubSplit:
    """Split of the hub that holds a task's conditions."""

    #: Data set of the hub.
    dataset: str
    split: str
    #: Pattern of the museum's name of a row.
    uid: str
    #: Text columns that are kept.
    columns: tuple[str, ...]
    #: Text columns that are kept where they are there.
    optional: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"dataset {self.dataset}, split {self.split}"


@dataclass(frozen=True)
class TaskInfo:
    """ImagenHub task, which is a part of the benchmark and a kind of its own."""

    #: Folder of its ratings and of its images.
    folder: str
    #: Beginning of the names of its ratings files.
    ratings_stem: str
    #: Image models of the papers.
    image_models: tuple[str, ...]
    instructions: int
    #: Annotator, from 0, whose O the published code adds last: floating-point ties of the human O,
    #: and so the fourth decimal of printed correlations, depend on it.
    added_last: int
    #: The museum's folder of each condition image by its role.
    images: dict[str, str]
    #: The column of the lookup of each text by its name.
    texts: dict[str, str]
    #: Its conditions on the hub.
    hub: HubSplit

    @property
    def ratings_files(self) -> tuple[str, ...]:
        """The names of the annotators' files, in order."""
        return tuple(
            f"{self.ratings_stem}_rater{number}.tsv"
            for number in range(1, ANNOTATORS + 1)
        )

    @property
    def museum_folders(self) -> tuple[str, ...]:
        """The museum's folders of images: conditions, then outputs."""
        return (*self.images.values(), *self.image_models)


_FILE = Path(__file__).with_suffix(".yaml")
_DOCUMENT = read_yaml(_FILE.read_text(encoding="utf-8"))
TASKS = TypeAdapter(dict[str, TaskInfo]).validate_python(_DOCUMENT)


def task_info(task: str) -> TaskInfo:
    """The facts of a task by its code; VievalError naming the seven for an unknown one."""
    return TASKS[known_part(NAME, TASKS, task)]


def ratings_folder(root: Path, task: str) -> Path:
    """Folder of a task's human ratings in the data folder `root`."""
    return root / NAME / "human_ratings" / task_info(task).folder


def museum_folder(root: Path, task: str) -> Path:
    """Folder of a task's images and conditions in the data folder `root`."""
    return root / NAME / "museum" / task_info(task).folder
