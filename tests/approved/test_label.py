"""`vieval label`: what a page asks, for what its labels suffice, and what cannot be labelled."""

import json
from itertools import groupby
from pathlib import Path

from tests.builders import a_sample_row, a_table, a_verdict_file, an_image_file
from vieval_plugin.judges.protocol import Image

PAIR = {"id": "x", "texts": {"prompt": "a cube"}}
LABEL = "vieval label {} --out page.html"


def row(uid, image_model="m", *, output="a.png", **fields):
    return a_sample_row(uid, output, image_model=image_model, **{"texts": {}, **fields})


def candidates(*files):
    return [
        {"image_model": f"m{number}", "images": {"output": file}}
        for number, file in enumerate(files)
    ]


def test_what_the_labels_suffice_for(approve):
    an_image_file("a.png")
    for count, others in ((60, 60), (40, 40), (80, 30)):
        new = [row(f"u{n}", "new") for n in range(count)]
        a_table(f"{count}.jsonl", [*new, *(row(f"u{n}", "old") for n in range(others))])
    files = ("60.jsonl --n 10", "60.jsonl --n 100", "60.jsonl --n 2")
    more = ("40.jsonl --n 50", "40.jsonl", "80.jsonl --n 70")
    approve(*map(LABEL.format, (*files, *more)))


def test_groups(approve):
    an_image_file("a.png")
    rows = [
        row(f"u{number}", name, group=f"template {number // 4}")
        for number in range(40)
        for name in ("new", "old")
    ]
    a_table("s.jsonl", rows)
    approve(LABEL.format("s.jsonl --n 24"))
    plan = json.loads(Path("page.plan.json").read_text())
    groups = [int(image["uid"][1:]) // 4 for image in plan["images"]]
    assert len([*groupby(groups)]) == len({*groups})


def test_contests_and_benchmarks(approve):
    an_image_file("a.png")
    a_table("pairs.jsonl", [{**PAIR, "candidates": candidates("a.png", "a.png")}])
    drawn = ("vieval_demo_contests/tie --n 3", "vieval_demo/tie --n 7")
    names = ("pairs.jsonl --kind tig", *drawn, "vieval_demo/tix", "no.jsonl")
    approve(*map(LABEL.format, names))


def test_images_that_are_missing(approve):
    an_image_file("a.png")
    an_image_file("b.png")
    files = {"1": "a.png", "2": "gone.png", "3": "b.png"}
    a_table("s.jsonl", [row(uid, output=file) for uid, file in files.items()])
    score = "vieval score s.jsonl --judge sharpness --out v.jsonl"
    approve(score, LABEL.format("s.jsonl"))


def test_several_files_of_verdicts(approve):
    files = {"new": ("new", "new"), "old": ("old", "old"), "other": ("new", "old")}
    for name, (model, image) in files.items():
        fields = {"images": {"output": Image(an_image_file(f"{image}.png"))}}
        a_verdict_file(f"{name}.jsonl", {model: [0.5]}, fields=fields)
    a_table("s.jsonl", [row("1")])
    others = ("old.jsonl", "s.jsonl", "other.jsonl")
    approve(*(LABEL.format(f"new.jsonl {other}") for other in others))


def test_refused(approve):
    an_image_file("a.png")
    Path("text.png").write_text("text")
    tables = {
        "no image there": [row("1", output="gone.png")],
        "no image": [row(uid, output="text.png") for uid in "12"],
        "no output": [row("1"), row("2", images={"source": "a.png"})],
        "no kind": [row("1"), row("2", kind="")],
        "two of one name": [row("1"), row("1")],
    }
    contests = {
        "three candidates": candidates("a.png", "a.png", "a.png"),
        "candidates without images": candidates("", "a.png"),
    }
    for name, rows in tables.items():
        a_table(f"{name}.jsonl", rows)
    for name, pair in contests.items():
        a_table(f"{name}.jsonl", [{**PAIR, "candidates": pair}])
    approve(
        *(LABEL.format(f"'{name}.jsonl'") for name in tables),
        *(LABEL.format(f"'{name}.jsonl' --kind tig") for name in contests),
    )
