"""GenEval: objects, their number, colours and places in images of three image models, each by five
workers.

Source: Ghosh, Hajishirzi, Schmidt, GenEval (NeurIPS Datasets and Benchmarks 2023). Parts are the
tags of its prompts, and its total is the mean of the six.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Prepared, Preparing, known_part
from vieval_plugin.benchmarks.loading.conditions import generating
from vieval_plugin.benchmarks.loading.folders import DataFolder, manual_download_lines
from vieval_plugin.judges.objects import WantedScene, read_scene
from vieval_plugin.judges.protocol import WANTED_OBJECTS, Image, Sample, SampleId
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.readers.download import Download, fetch_all
from vieval_plugin.readers.rows import (
    ASPECT,
    KIND,
    Row,
    absent_file,
    decimal,
    read_lines,
    read_table,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import isfile

NAME = "geneval"
MODELS = ("clip", "if-xl", "sdv2")
#: Prompts of each tag.
TAGS = {
    "single_object": 80,
    "two_object": 99,
    "counting": 80,
    "colors": 94,
    "position": 100,
    "color_attr": 100,
}
PROMPTS = "evaluation_metadata.jsonl"
ADDRESS = f"https://raw.githubusercontent.com/djghosh13/geneval/main/prompts/{PROMPTS}"
#: SHA-256 of the prompts at commit af4902f.
DIGEST = "5c48e0813e812e3c373fa5c8ed07a8f0a483be30272b4427b0559c8048e67c13"
ADVICE = (
    f"put {PROMPTS} and annotations_<image model>.csv from github.com/djghosh13/geneval into "
    "the benchmark folder, and images as <image model>/00000/samples/0000.png"
)
_COLUMNS = ("Input.prompt_id", "Input.image_id")
_COUNT = "Answer.task-count-"
_COLOR = "Answer.task-color-"
_PLACES = ("Answer.task-position-x", "Answer.task-position-y")
#: Images of each tag that workers saw, of all three image models.
_RATED = dict(
    zip(
        TAGS,
        (156, 216, 204, 228, 240, 156),
        strict=True,
    )
)


def load_prompts(root: Path, part: str = "") -> list[Sample]:
    """The prompts of a tag, or all; a uid is the number of a prompt in five digits.

    Raises:
        VievalError: in one line, for an unknown tag, and a file that is absent or malformed.
    """
    tag = part and known_part(NAME, TAGS, part)
    prompts = _read_prompts(root / NAME)
    return [prompt for prompt in prompts if tag in ("", prompt.category)]


def _read_prompts(folder: Path) -> list[Sample]:
    prompts = []
    for number, row in enumerate(read_lines(folder / PROMPTS, ADVICE)):
        tag = known_part(NAME, TAGS, row.text("tag"))
        names = filter(row.cells.__contains__, ("tag", "include", "exclude"))
        wanted = {name: row.cells[name] for name in names}
        texts = {
            "prompt": row.text("prompt"),
            WANTED_OBJECTS: json.dumps(wanted),
        }
        try:
            read_scene(texts[WANTED_OBJECTS])
        except VievalError as error:
            raise VievalError(f"{row.where}: {error}") from None
        sample_id = SampleId(
            NAME,
            tag,
            "",
            f"{number:05}",
        )
        prompts.append(
            Sample(
                sample_id,
                {},
                texts,
                kind=KIND,
                category=tag,
            )
        )
    return prompts


def read(folder: Path, part: str) -> list[Sample]:
    """Each image of a tag, rated by each worker with 1 if all that its prompt asks for is there.

    Images of a prompt are a group.
    """
    prompts = {prompt.id.uid: prompt for prompt in _read_prompts(folder)}
    scenes = {uid: read_scene(p.texts[WANTED_OBJECTS]) for uid, p in prompts.items()}
    files = {model: folder / f"annotations_{model}.csv" for model in MODELS}
    present = {model: file for model, file in files.items() if isfile(file)}
    if not present:
        raise absent_file(files[MODELS[0]], ADVICE)
    samples = []
    for model, file in present.items():
        ratings: dict[tuple[str, str], list[float]] = defaultdict(list)
        for row, uid, image in _answers(file, prompts):
            ratings[uid, image].append(float(is_right(scenes[uid], row.cells)))
        samples += [
            replace(
                prompts[uid],
                id=SampleId(
                    NAME,
                    part,
                    model,
                    f"{uid}_{image}",
                ),
                images={"output": Image(folder / model / uid / "samples" / image)},
                ratings={ASPECT: tuple(rights)},
                group=uid,
            )
            for (uid, image), rights in ratings.items()
            if prompts[uid].category == part
        ]
    return samples


def _answers(
    path: Path, prompts: Mapping[str, Sample]
) -> Iterator[tuple[Row, str, str]]:
    """The answers of workers with the uid of the prompt and the name of the image.

    A line that another one's break has cut off has no number of a prompt, and is left out.
    """
    for row in read_table(path, _COLUMNS, ADVICE):
        prompt, image = (row.cells[column].strip() for column in _COLUMNS)
        if not (prompt.isdecimal() and image.isdecimal()):
            continue
        uid = f"{int(prompt):05}"
        if uid not in prompts:
            raise VievalError(f"{row.where}: no prompt {prompt} in {PROMPTS}; {ADVICE}")
        yield row, uid, f"{int(image):04}.png"


def is_right(scene: WantedScene, answer: Mapping[str, str]) -> bool:
    """Return whether a worker judged that an image follows its prompt.

    Each object at least as often as asked for and less often than is excluded, its colour among
    the ticked ones, and its position in one of the two answers.
    """
    counts = {}
    for number, entry in enumerate(scene.include):
        count = decimal(answer.get(f"{_COUNT}{number}") or "0")
        colors = answer.get(f"{_COLOR}{number}", "").split("|")
        places = [answer.get(column) for column in _PLACES]
        counts[entry.label] = count
        if (
            not count >= entry.count
            or (entry.color and entry.color not in colors)
            or (entry.relation and entry.relation.split()[0] not in places)
        ):
            return False
    return all(counts.get(label, 0) < count for label, count in scene.exclude)


def _check_digest(body: bytes) -> None:
    found = hashlib.sha256(body).hexdigest()
    if found != DIGEST:
        raise ValueError(
            f"SHA-256 mismatch: expected {DIGEST[:12]}..., got {found[:12]}..."
        )


def prepare_prompts(root: Path, preparing: Preparing) -> Prepared:
    """Fetch the prompts if missing."""
    job = Download(ADDRESS, root / NAME / PROMPTS, _check_digest)
    failed = asyncio.run(fetch_all([job]))
    if failed:
        why = f"{ADDRESS}: {failed[0].reason}"
        return Prepared(manual_download_lines(NAME, root, why), False)
    line = f"{job.path}: ready, {sum(TAGS.values())} prompts"
    return Prepared((line,), True)


def prepare(root: Path, preparing: Preparing) -> Prepared:
    """Fetch the prompts if missing, and check what is put there by hand."""
    prompts = prepare_prompts(root, preparing)
    checked = _FOLDER.prepare(root, preparing)
    if prompts.complete:
        return checked
    return replace(checked, lines=(*prompts.lines, *checked.lines))


_FOLDER = DataFolder(NAME, _RATED, read, ADVICE)

BENCHMARK = _FOLDER.benchmark(
    WithLabels(("majority_agreement", "spearman")),
    prepare=prepare,
    prompts=load_prompts,
    kind=KIND,
    title="GenEval",
    source=(
        "Ghosh, Hajishirzi, Schmidt, GenEval (2023), arXiv 2310.11513; "
        "github.com/djghosh13/geneval"
    ),
    licence="MIT (prompts and answers); images by the image models: no stated terms",
)

BENCHMARKS = (
    BENCHMARK,
    replace(generating(BENCHMARK, TAGS, load_prompts), prepare=prepare_prompts),
)
