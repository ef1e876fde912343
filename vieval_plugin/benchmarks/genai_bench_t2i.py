"""GenAI-Bench: images of six image models, each rated by three people from 1 to 5 (Li et al.,
2024).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vieval_plugin.benchmarks.loading.conditions import generating
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.judges.protocol import Image, Sample
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.readers.rated_models import read_rated
from vieval_plugin.readers.rows import GRADED, KIND, read_object
from vieval_plugin.text.errors import VievalError

NAME = "genai_bench_t2i"
MODELS = (
    "DALLE_3",
    "SDXL_Turbo",
    "DeepFloyd_I_XL_v1",
    "Midjourney_6",
    "SDXL_2_1",
    "SDXL_Base",
)
ADVICE = (
    "unpack zhiqiulin/GenAI-Bench-527 into 527/ and BaiqiL/GenAI-Bench-1600 into "
    "1600/, both from the Hugging Face Hub"
)


def read(folder: Path, part: str) -> list[Sample]:
    """Images `<part>/<image model>/<id>.jpeg`; tags from `<part>/genai_skills.json` (skill ->
    ids) where it is there.
    """
    folder = folder / part
    path = folder / "genai_image.json"
    prompts = read_object(path, ADVICE)

    def images(model: str, uid: str) -> Mapping[str, Image]:
        return {"output": Image(folder / model / f"{uid}.jpeg")}

    return read_rated(
        path,
        prompts,
        benchmark=NAME,
        part=part,
        models=MODELS,
        images=images,
        tags=_skills(folder / "genai_skills.json", prompts),
    )


def _skills(path: Path, prompts: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """Skills by id. The file lists ids as numbers, which the prompts have in five digits."""
    if not path.exists():
        return {}
    skills: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for skill, uids in read_object(path, ADVICE).items():
        if not isinstance(uids, list):
            raise VievalError(
                f"{path}: skill {skill!r} must be a list of ids; {ADVICE}"
            )
        for uid in dict.fromkeys(
            f"{value:0>5}" if isinstance(value, (int, str)) else str(value)
            for value in uids
        ):
            if uid not in prompts:
                raise VievalError(
                    f"{path}: skill {skill!r} has prompt {uid}, which is missing from "
                    "genai_image.json; use both files from the same release"
                )
            skills[uid] += (skill,)
    return skills


_FOLDER = DataFolder(
    NAME,
    {"527": 3162, "1600": 9600},
    read,
    ADVICE,
)

BENCHMARK = _FOLDER.benchmark(
    WithLabels(GRADED),
    kinds=dict.fromkeys(_FOLDER.parts, KIND),
    title="GenAI-Bench",
    source=(
        "Li et al., GenAI-Bench (2024), arXiv 2406.13743; files from "
        "zhiqiulin/GenAI-Bench-527 and BaiqiL/GenAI-Bench-1600 on the Hugging Face Hub"
    ),
    licence=(
        "1600: Apache-2.0 (Hugging Face card of BaiqiL/GenAI-Bench, which has the "
        "same data); 527: unknown (ask its authors)"
    ),
)

BENCHMARKS = (BENCHMARK, generating(BENCHMARK, {"1600": 1600}, _FOLDER.load))
