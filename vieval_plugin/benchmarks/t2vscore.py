"""T2VScore: videos of five models of text-to-video generation, rated by people from 1 to 5 (Wu et
al., 2024).

The ratings are in the file of the VQAScore authors' repository, the videos are
EvalCrafter's. `vieval prepare` extracts the frames on which a video is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.judges.protocol import Image, Sample
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.readers.rated_models import Images, numbered_roles, read_rated
from vieval_plugin.readers.rows import GRADED, numbered, read_count, read_object
from vieval_plugin.readers.video_frames import SUFFIXES, extract_all, failure_lines

NAME = "t2vscore"
FRAMES = 4
FRAMES_FILE = "frames.json"
MODELS = ("floor33", "gen2", "pika", "modelscope", "zeroscope")
ADVICE = (
    "put t2vscore_alignment_score.json from linzhiqiu/t2v_metrics and videos/ into "
    f"the benchmark folder, then run `vieval prepare {NAME}`"
)

_ALL = "all"


def read(folder: Path, part: str) -> list[Sample]:
    """Videos as frames `frames<N>/<image model>/<id>/<k>`, in the roles `frame_<k>`; `output` is
    the first.

    N is what `frames.json` says, else 4.
    """
    count = read_count(folder / FRAMES_FILE, FRAMES)

    def images(model: str, uid: str) -> Mapping[str, Image]:
        frames = folder / f"frames{count}" / model / uid
        return numbered_roles("frame", numbered(frames, count, SUFFIXES))

    return _rated(folder, part, images)


def videos(folder: Path, count: int) -> list[tuple[Path, Path]]:
    """Each rated video with the folder of its frames, `count` of them.

    A video is `videos/<image model>/<id>.mp4`, or has its id in four digits, as EvalCrafter's
    archives do.
    """
    pairs = []
    for sample in _rated(folder, _ALL, lambda _model, _uid: {}):
        model = sample.id.image_model
        uid = sample.id.uid
        video = folder / "videos" / model / f"{uid}.mp4"
        padded = video.with_name(f"{uid:0>4}.mp4")
        frames = folder / f"frames{count}" / model / uid
        file = padded if padded.exists() and not video.exists() else video
        pairs.append((file, frames))
    return pairs


def make_frames(folder: Path, preparing: Preparing) -> list[str]:
    """Extract missing frames; return one line per reason for failed videos."""
    count = read_count(folder / FRAMES_FILE, FRAMES)
    pairs = videos(folder, count)
    lines = failure_lines(
        extract_all(pairs, count),
        len(pairs),
        "download them again, then run the same command again",
    )
    return [f"{NAME}: {line}" for line in lines]


def _rated(folder: Path, part: str, images: Images) -> list[Sample]:
    path = folder / "t2vscore_alignment_score.json"
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
    {_ALL: 2543},
    read=read,
    advice=ADVICE,
    make=make_frames,
    count_file=FRAMES_FILE,
)

BENCHMARK = _FOLDER.benchmark(
    WithLabels(GRADED),
    title="T2VScore",
    source=(
        "Wu et al., Towards A Better Metric for Text-to-Video Generation (2024), arXiv "
        "2401.07781; ratings from github.com/linzhiqiu/t2v_metrics, videos from "
        "RaphaelLiu/EvalCrafter_T2V_Dataset on the Hugging Face Hub"
    ),
    licence=(
        "videos: Apache-2.0 (Hugging Face card); ratings: unknown (ask their authors)"
    ),
)
