"""ImagenHub: seven tasks, 29 image models, three annotators.

A data folder holds `imagenhub/human_ratings/<folder>/<stem>_rater{1,2,3}.tsv` and, for live
judging, the museum's own layout: `imagenhub/museum/<folder>/<image model | input | token |
mask>/<uid>` with `dataset_lookup.json` beside them. `vieval prepare imagenhub` fetches all of it.
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark, Prepared, Preparing
from vieval_plugin.benchmarks.imagenhub import arena
from vieval_plugin.benchmarks.imagenhub.samples import (
    conditions,
    load,
    missing,
    missing_conditions,
)
from vieval_plugin.benchmarks.imagenhub.tasks import NAME, TASKS
from vieval_plugin.benchmarks.loading.conditions import generating
from vieval_plugin.meta_evaluation.image_models import ByImageModel


def _prepare(root: Path, preparing: Preparing) -> Prepared:
    from vieval_plugin.benchmarks.imagenhub.filling import prepare  # needs aiohttp

    return prepare(root, preparing)


BENCHMARK = Benchmark(
    NAME,
    {task: info.instructions * len(info.image_models) for task, info in TASKS.items()},
    load,
    missing,
    ByImageModel({task: info.added_last for task, info in TASKS.items()}),
    title="ImagenHub",
    source=(
        "Ku et al., ImagenHub (2024), arXiv 2310.01596; ratings from "
        "github.com/TIGER-AI-Lab/VIEScore, conditions from the ImagenHub data sets on the "
        "Hugging Face Hub, images from chromaica.github.io/Museum"
    ),
    licence=(
        "ratings: MIT (the VIEScore repository), which CIGEval's authors train on; "
        "conditions: CC BY 4.0 where the Hugging Face cards state a licence; images: "
        "made from these by the image models"
    ),
    trainable=True,
    prepare=_prepare,
    hosts={
        "ratings": "human ratings",
        "hub": "Hugging Face rows API",
        "museum": "images",
    },
    folders={info.folder: task for task, info in TASKS.items()},
)

BENCHMARKS = (
    BENCHMARK,
    generating(
        BENCHMARK,
        {task: info.instructions for task, info in TASKS.items()},
        conditions,
        missing_conditions,
    ),
    arena.BENCHMARK,
)
