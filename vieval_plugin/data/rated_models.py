"""Benchmarks whose file says, prompt by prompt, how people rated what each image model made of it.

All have the form `{id: {"prompt": ..., "models": {image model: [ratings]}}}` with ratings from 1 to 5. GenAI-Bench: Li et
al. (2024), files of the hub's zhiqiulin/GenAI-Bench-527 and BaiqiL/GenAI-Bench-1600. T2VScore: Wu et al. (2024), on
videos of EvalCrafter. StanfordT23D: Wu et al., GPT-4V(ision) is a Human-Aligned Evaluator (2024).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vieval_plugin.data.alignment_files import ASPECT, Row, numbered, rating, read_count, read_object
from vieval_plugin.data.video_frames import SUFFIXES as FRAME_SUFFIXES
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId

GENAI, T2VSCORE, STANFORD = "genai_bench_t2i", "t2vscore", "stanfordt23d"
FRAMES, VIEWS = 4, 9
FRAMES_FILE, VIEWS_FILE = "frames.json", "views.json"
MODELS: dict[str, tuple[str, ...]] = {
    GENAI: ("DALLE_3", "SDXL_Turbo", "DeepFloyd_I_XL_v1", "Midjourney_6", "SDXL_2_1", "SDXL_Base"),
    T2VSCORE: ("floor33", "gen2", "pika", "modelscope", "zeroscope"),
    STANFORD: ("dreamfusion", "instant3d", "latent-nerf", "magic3d", "mvdream", "shap-e"),
}
ADVICE = {
    GENAI: "unpack the hub's zhiqiulin/GenAI-Bench-527 into 527/ and BaiqiL/GenAI-Bench-1600 into 1600/",
    T2VSCORE: (
        "put t2vscore_alignment_score.json of linzhiqiu/t2v_metrics and videos/ there and run `vieval prepare t2vscore`"
    ),
    STANFORD: "put stanfordt23d.json of linzhiqiu/t2v_metrics and the rendered views/ there",
}
_FILES = {T2VSCORE: "t2vscore_alignment_score.json", STANFORD: "stanfordt23d.json"}

Images = Callable[[str, str], Mapping[str, Image]]


def genai_bench(folder: Path, task: str) -> list[Sample]:
    """Images `<task>/<image model>/<id>.jpeg`; tags from `<task>/genai_skills.json` (skill -> ids) where it is there."""
    folder = folder / task
    prompts = read_object(folder / "genai_image.json", ADVICE[GENAI])
    skills = _skills(folder / "genai_skills.json", prompts)

    def images(model: str, uid: str) -> Mapping[str, Image]:
        return {"output": Image(folder / model / f"{uid}.jpeg")}

    return _samples(folder / "genai_image.json", prompts, GENAI, task, images, skills)


def t2vscore(folder: Path, task: str) -> list[Sample]:
    """Videos as frames `frames<N>/<image model>/<id>/<k>`, in the roles `frame_<k>`; `output` is the first.

    N is what `frames.json` says, else 4.
    """
    count = read_count(folder / FRAMES_FILE, FRAMES)

    def images(model: str, uid: str) -> Mapping[str, Image]:
        return _several("frame", numbered(folder / f"frames{count}" / model / uid, count, FRAME_SUFFIXES))

    return _samples(*_prompts(folder, T2VSCORE), T2VSCORE, task, images)


def stanfordt23d(folder: Path, task: str) -> list[Sample]:
    """Objects as rendered views `views/<image model>/<id>/<k>`, in the roles `view_<k>`; `output` is the first.

    There are as many views as `views.json` says, else 9.
    """
    count = read_count(folder / VIEWS_FILE, VIEWS)

    def images(model: str, uid: str) -> Mapping[str, Image]:
        return _several("view", numbered(folder / "views" / model / uid, count, (".png", ".jpg")))

    return _samples(*_prompts(folder, STANFORD), STANFORD, task, images)


def videos(folder: Path, count: int) -> list[tuple[Path, Path]]:
    """Each rated video of T2VScore with the folder of its frames.

    A video is `videos/<image model>/<id>.mp4`, or has its id in four digits, as EvalCrafter's archives do.
    """
    pairs = []
    for sample in _samples(*_prompts(folder, T2VSCORE), T2VSCORE, "all", lambda _model, _uid: {}):
        model, uid = sample.id.image_model, sample.id.uid
        video = folder / "videos" / model / f"{uid}.mp4"
        padded = video.with_name(f"{uid:0>4}.mp4")
        frames = folder / f"frames{count}" / model / uid
        pairs.append((padded if padded.exists() and not video.exists() else video, frames))
    return pairs


def _prompts(folder: Path, benchmark: str) -> tuple[Path, dict[str, Any]]:
    path = folder / _FILES[benchmark]
    return path, read_object(path, ADVICE[benchmark])


def _samples(
    path: Path,
    prompts: Mapping[str, Any],
    benchmark: str,
    task: str,
    images: Images,
    tags: Mapping[str, tuple[str, ...]] | None = None,
) -> list[Sample]:
    """Samples by prompt and then image model, so that a limit does not pick one model."""
    samples = []
    for uid, cells in prompts.items():
        where = f"{path}: prompt {uid}"
        if not re.fullmatch(r"\w[\w.-]*", uid):  # it becomes a file name and must stay below its folder
            raise VievalError(f"{where}: not an id that can name a file; correct the file")
        if not isinstance(cells, dict) or not isinstance(cells.get("models"), dict):
            raise VievalError(f"{where}: no object of models; correct the file")
        texts = {"prompt": Row(where, cells).text("prompt")}
        for model in cells["models"]:
            if model not in MODELS[benchmark]:
                raise VievalError(f"{where}: unknown image model {model!r}; known: {', '.join(MODELS[benchmark])}")
        for model in MODELS[benchmark]:
            if model in cells["models"]:
                rated = {ASPECT: _ratings(cells["models"][model], f"{where}, {model}")}
                sample_id = SampleId(benchmark, task, model, uid)
                samples.append(Sample(sample_id, images(model, uid), texts, rated, (tags or {}).get(uid, ())))
    return samples


def _ratings(values: Any, where: str) -> tuple[float, ...]:
    if not isinstance(values, list) or not values:
        raise VievalError(f"{where}: no list of ratings; correct the file")
    return tuple(rating(value, 1, 5, f"{where}: rating {n}") for n, value in enumerate(values, start=1))


def _several(role: str, files: list[Path]) -> Mapping[str, Image]:
    return {**{f"{role}_{k}": Image(file) for k, file in enumerate(files)}, "output": Image(files[0])}


def _skills(path: Path, prompts: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """Skills by id. The file lists ids as numbers, which the prompts have in five digits."""
    if not path.exists():
        return {}
    found: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for skill, uids in read_object(path, ADVICE[GENAI]).items():
        if not isinstance(uids, list):
            raise VievalError(f"{path}: skill {skill!r} has no list of ids; {ADVICE[GENAI]}")
        for uid in dict.fromkeys(f"{value:0>5}" if isinstance(value, (int, str)) else str(value) for value in uids):
            if uid not in prompts:
                raise VievalError(
                    f"{path}: skill {skill!r} names prompt {uid}, which genai_image.json beside it lacks; "
                    "take both from one release"
                )
            found[uid] += (skill,)
    return found
