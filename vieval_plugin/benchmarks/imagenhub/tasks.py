"""ImagenHub's seven tasks: their files, image models, conditions.

Source of all constants: Ku et al., ImagenHub (2024), and the files the authors published.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import known_part

NAME = "imagenhub"
ANNOTATORS = 3


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
    #: Roles of condition images, each with the museum's folder.
    images: tuple[tuple[str, str], ...]
    #: Names of texts, each with the column of the lookup.
    texts: tuple[tuple[str, str], ...]

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
        return (*(folder for _, folder in self.images), *self.image_models)


TASKS: dict[str, TaskInfo] = {
    "tig": TaskInfo(
        "ImagenHub_Text-Guided_IG",
        ratings_stem="Text-To-Image",
        image_models=("SD", "SDXL", "DALLE2", "DeepFloydIF", "OpenJourney"),
        instructions=197,
        added_last=0,
        images=(),
        texts=(("prompt", "prompt"),),
    ),
    "mie": TaskInfo(
        "ImagenHub_Mask-Guided_IE",
        ratings_stem="Mask-Guided_IE",
        image_models=("SDInpaint", "SDXLInpaint", "Glide", "BlendedDiffusion"),
        instructions=179,
        added_last=2,
        images=(("source", "input"), ("mask", "mask")),
        texts=(("instruction", "instruction"),),
    ),
    "tie": TaskInfo(
        "ImagenHub_Text-Guided_IE",
        ratings_stem="Text-Guided_IE",
        image_models=(
            "MagicBrush",
            "InstructPix2Pix",
            "Prompt2prompt",
            "CycleDiffusion",
            "SDEdit",
            "Text2Live",
            "DiffEdit",
            "Pix2PixZero",
        ),
        instructions=179,
        added_last=2,
        images=(("source", "input"),),
        texts=(("instruction", "instruction"),),
    ),
    "sdig": TaskInfo(
        "ImagenHub_Subject-Driven_IG",
        ratings_stem="Subject-Driven_IG",
        image_models=(
            "DreamBooth",
            "DreamBoothLora",
            "BLIPDiffusion_Gen",
            "TextualInversion",
        ),
        instructions=150,
        added_last=1,
        images=(("subject", "input"),),
        texts=(("prompt", "prompt"), ("subject", "subject")),
    ),
    "sdie": TaskInfo(
        "ImagenHub_Subject-Driven_IE",
        ratings_stem="Subject-Driven_IE",
        image_models=("PhotoSwap", "DreamEdit", "BLIPDiffusion_Edit"),
        instructions=154,
        added_last=2,
        images=(("source", "input"), ("subject", "token")),
        texts=(("subject", "subject"),),
    ),
    "mcic": TaskInfo(
        "ImagenHub_Multi-Concept_IC",
        ratings_stem="Multi-Subject_IG",
        image_models=("CustomDiffusion", "DreamBooth", "TextualInversion"),
        instructions=102,
        added_last=2,
        images=(("concepts", "input"),),
        texts=(
            ("prompt", "prompt"),
            ("concept_1", "concept1"),
            ("concept_2", "concept2"),
        ),
    ),
    "cig": TaskInfo(
        "ImagenHub_Control-Guided_IG",
        ratings_stem="Control-Guided_IG",
        image_models=("ControlNet", "UniControl"),
        instructions=150,
        added_last=0,
        images=(("control", "input"),),
        texts=(("prompt", "text"), ("control_type", "control_type")),
    ),
}


def task_info(task: str) -> TaskInfo:
    """The facts of a task by its code; VievalError naming the seven for an unknown one."""
    return TASKS[known_part(NAME, TASKS, task)]


def ratings_folder(root: Path, task: str) -> Path:
    """Folder of a task's human ratings in the data folder `root`."""
    return root / NAME / "human_ratings" / task_info(task).folder


def museum_folder(root: Path, task: str) -> Path:
    """Folder of a task's images and conditions in the data folder `root`."""
    return root / NAME / "museum" / task_info(task).folder
