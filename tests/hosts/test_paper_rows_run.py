"""Ten drawn commands of docs/reference/papers.md, on rows of the published form."""

import csv
import functools
import json
import random
import re
import shlex
from pathlib import Path

import pytest
from PIL import Image

from tests import pairs
from tests.benchmarks.alignment_files import FILES, GENAI
from tests.fake_server import FakeServer
from tests.in_process import served
from tests.scripted_t2i_eval import Scene, Script, entity, over_http
from vieval_plugin.benchmarks import imagenhub, registry, tasks
from vieval_plugin.judges.t2i_eval.structure import Relation

with (Path(__file__).parents[1] / "docs" / "paper_rows.csv").open() as file:
    COMMANDS = sorted(
        {row["command"] for row in csv.DictReader(file) if row["state"] == "runs"}
    )
DRAWN = random.Random(0).sample(COMMANDS, 10)
ASKED = [command for command in DRAWN if "vieval_replay" not in command]
SEETRUE = "image,text,label,dataset_source\n" + "".join(
    f"{part}{number}.png,a fox {number},{number % 2},{part}\n"
    for part in ("drawbench", "editbench")
    for number in range(3)
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with a few rows of each benchmark, and an image for each that they name."""
    root = tmp_path_factory.mktemp("data")
    genai = {"image": {"00001": GENAI}, "skills": {"counting": [1], "advanced": [1]}}
    genai_files = {
        f"{part}/genai_{what}.json": json.dumps(content)
        for part in ("527", "1600")
        for what, content in genai.items()
    }
    files = {**FILES, "seetrue": {"SeeTRUE.csv": SEETRUE}}
    files["genai_bench_t2i"] = genai_files
    del files["t2i_eval_bench"]
    for benchmark, contents in files.items():
        for name, text in contents.items():
            path = root / benchmark / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for part in imagenhub.TASKS:
        write_imagenhub(root, part)
    pairs.write(root, 3)
    return root


def write_imagenhub(root, part):
    """Ratings and conditions of two instructions of an ImagenHub task."""
    info, uids = imagenhub.TASKS[part], ("sample_1.jpg", "sample_2.jpg")
    ratings = root / "imagenhub" / "human_ratings" / info.folder
    museum = root / "imagenhub" / "museum" / info.folder
    for folder in (ratings, museum):
        folder.mkdir(parents=True)
    cells = "\t".join("[0.5, 1]" for _ in info.image_models)
    table = ["\t".join(("uid", *info.image_models)), *(f"{u}\t{cells}" for u in uids)]
    for rater in (1, 2, 3):
        file = ratings / f"{info.ratings_stem}_rater{rater}.tsv"
        file.write_text("\n".join(table))
    texts = dict.fromkeys(info.texts.values(), "a red cup on a table")
    (museum / "dataset_lookup.json").write_text(json.dumps(dict.fromkeys(uids, texts)))


def t2i_eval_reply(data):
    """What a model says that knows the three drawn pairs of T2I-Eval-Bench."""
    cup = (entity("cup", color="red"), entity("table"))
    relations = (Relation(("cup", "table"), "on"),)
    scenes = []
    for sample in registry.benchmark("t2i_eval_bench").load(data, "tig"):
        drawn = sample.images["output"].source.read_bytes()
        scenes.append(Scene(sample.texts["prompt"], cup, relations, drawn=drawn))
    return over_http(Script(tuple(scenes)))


def draw_images(data, task):
    for sample in registry.benchmark(task.benchmark).load(data, task.part):
        for image in sample.images.values():
            if not image.source.exists():
                image.source.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (64, 64), "teal").save(image.source)


def test_the_draw_has_rows_of_several_papers():
    assert len(ASKED) >= 6
    assert len({re.search(r"--tasks (\w+)", command)[1] for command in ASKED}) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("command", ASKED)
def test_a_drawn_row_runs(evaluate, data, scorer_weights, command):
    """The model that the row names is large: a scripted server or a tiny network takes its place."""
    words = shlex.split(command)
    [name] = words[words.index("--tasks") + 1].split(",")
    entry = tasks.entries()[name]
    part = tasks.entries()[entry.members[0]] if hasattr(entry, "members") else entry
    draw_images(data, part)
    judged = functools.partial(evaluate, tasks=part.name, limit=3, data=data)
    if "vieval_scorer" in words:
        weights = f"name={scorer_weights[part.judge]}"
        run = judged("--model", "vieval_scorer", "--model_args", weights)
    else:
        reply = t2i_eval_reply(data) if part.judge == "t2i_eval" else None
        with FakeServer(reply=reply) as server:
            run = judged(*served("vieval_openai", server))
            assert server.stats()["requests"] > 0
    assert set(run.statuses) <= {"ok", "repaired", "parse_failure"}
    assert {"ok", "repaired"} & set(run.statuses)
