"""Ten commands of docs/reference/papers.md, drawn by seed 0, on rows in the published form of
their data sets and against a scripted server.
"""

import csv
import json
import random
import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")
pytest.importorskip("aiohttp", reason="the fake server needs aiohttp")

from PIL import Image

from tests import pairs
from tests.benchmarks.alignment_files import FILES, GENAI
from tests.fake_server import FakeServer
from tests.in_process import served
from vieval_plugin.benchmarks import registry, tasks

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
    files = {
        **FILES,
        "seetrue": {"SeeTRUE.csv": SEETRUE},
        "genai_bench_t2i": {
            f"{part}/genai_{what}.json": json.dumps(content)
            for part in ("527", "1600")
            for what, content in (
                ("image", {"00001": GENAI}),
                ("skills", {"counting": [1], "advanced": [1]}),
            )
        },
    }
    del files["t2i_eval_bench"]
    for benchmark, contents in files.items():
        for name, text in contents.items():
            path = root / benchmark / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    pairs.write(root, 3)
    return root


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
def test_a_drawn_row_runs(evaluate, data, command):
    """The model that the row names is large, so a scripted server answers in its place."""
    words = shlex.split(command)
    [name] = words[words.index("--tasks") + 1].split(",")
    entry = tasks.entries()[name]
    parts = (
        [entry]
        if isinstance(entry, tasks.Task)
        else [tasks.entries()[member] for member in entry.members]
    )
    for part in parts:
        draw_images(data, part)
    with FakeServer() as server:
        run = evaluate(
            *served("vieval_openai", server), tasks=parts[0].name, limit=3, data=data
        )
        assert server.stats()["requests"] > 0
    assert run.rows
    assert set(run.statuses) <= {"ok", "repaired", "parse_failure"}
