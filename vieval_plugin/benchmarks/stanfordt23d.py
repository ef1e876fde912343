"""StanfordT23D: 3D objects of six models, rated by three people from 1 to 5 and judged by rendered
views.

Source: Wu et al., GPT-4V(ision) is a Human-Aligned Evaluator for Text-to-3D Generation (2024), in
the file of the VQAScore authors' repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.judges.protocol import Image, Sample
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.readers.rated_models import numbered_roles, read_rated
from vieval_plugin.readers.rows import GRADED, numbered, read_count, read_object

NAME = "stanfordt23d"
VIEWS = 9
VIEWS_FILE = "views.json"
MODELS = ("dreamfusion", "instant3d", "latent-nerf", "magic3d", "mvdream", "shap-e")
ADVICE = (
    "put stanfordt23d.json from linzhiqiu/t2v_metrics and the rendered views/ into "
    "the benchmark folder"
)


def read(folder: Path, part: str) -> list[Sample]:
    """Objects as rendered views `views/<image model>/<id>/<k>`, in the roles `view_<k>`; `output`
    is the first.

    There are as many views as `views.json` says, else 9.
    """
    count = read_count(folder / VIEWS_FILE, VIEWS)
    path = folder / "stanfordt23d.json"

    def images(model: str, uid: str) -> Mapping[str, Image]:
        views = folder / "views" / model / uid
        return numbered_roles("view", numbered(views, count, (".png", ".jpg")))

    return read_rated(
        path,
        read_object(path, ADVICE),
        benchmark=NAME,
        part=part,
        models=MODELS,
        images=images,
    )


_FOLDER = DataFolder(
    NAME,
    {"all": 360},
    read,
    ADVICE,
    count_file=VIEWS_FILE,
)

BENCHMARK = _FOLDER.benchmark(
    WithLabels(GRADED),
    title="StanfordT23D",
    source=(
        "Wu et al., GPT-4V(ision) is a Human-Aligned Evaluator for Text-to-3D "
        "Generation (2024), arXiv 2401.04092; ratings from "
        "github.com/linzhiqiu/t2v_metrics, renderings from "
        "zhiqiulin/vqascore_ablation on the Hugging Face Hub"
    ),
    licence=(
        "renderings: MIT (Hugging Face card of the VQAScore authors); objects and "
        "ratings: unknown (ask their authors)"
    ),
)
