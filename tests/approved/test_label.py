"""`vieval label`: what a page asks, for what its labels suffice, and what cannot be labelled."""

import json
from itertools import groupby
from pathlib import Path

from tests.builders import a_table, a_verdict_file, an_image_file
from vieval_plugin.judges.protocol import Image

PAIR = {"id": "x", "texts": {"prompt": "a cube"}}


def row(uid, image_model="m", *, output="a.png", **fields):
    return {
        "uid": uid,
        "image_model": image_model,
        "kind": "tig",
        "images": {"output": output},
        **fields,
    }


def candidates(*files):
    return [
        {"image_model": f"m{number}", "images": {"output": file}}
        for number, file in enumerate(files)
    ]


def test_what_the_labels_suffice_for(approve):
    an_image_file("a.png")
    for count, others in ((60, 60), (40, 40), (80, 30)):
        rows = [
            *(row(f"u{n}", "new") for n in range(count)),
            *(row(f"u{n}", "old") for n in range(others)),
        ]
        a_table(f"{count}.jsonl", rows)
    files = (
        "60.jsonl --n 10",
        "60.jsonl --n 100",
        "60.jsonl --n 2",
        "40.jsonl --n 50",
        "40.jsonl",
        "80.jsonl --n 70",
    )
    approve(*(f"vieval label {name} --out page.html" for name in files))


def test_groups(approve):
    an_image_file("a.png")
    prompts = [
        {"uid": f"u{number}", "group": f"template {number // 4}"}
        for number in range(40)
    ]
    a_table(
        "s.jsonl",
        [
            row(image_model=name, **fields)
            for fields in prompts
            for name in ("new", "old")
        ],
    )
    approve("vieval label s.jsonl --n 24 --out page.html")
    plan = json.loads(Path("page.plan.json").read_text())
    groups = [int(image["uid"][1:]) // 4 for image in plan["images"]]
    assert len([*groupby(groups)]) == len({*groups})


def test_contests_and_benchmarks(approve):
    an_image_file("a.png")
    a_table("pairs.jsonl", [{**PAIR, "candidates": candidates("a.png", "a.png")}])
    names = (
        "pairs.jsonl --kind tig",
        "vieval_demo_contests/tie --n 3",
        "vieval_demo/tie --n 7",
        "vieval_demo/tix",
        "no.jsonl",
    )
    approve(*(f"vieval label {name} --out page.html" for name in names))


def test_images_that_are_missing(approve):
    for name in ("a.png", "b.png"):
        an_image_file(name)
    a_table(
        "s.jsonl", [row("1"), row("2", output="gone.png"), row("3", output="b.png")]
    )
    approve(
        "vieval score s.jsonl --judge sharpness --out v.jsonl",
        "vieval label s.jsonl --out page.html",
    )


def test_several_files_of_verdicts(approve):
    for name in ("new", "old"):
        an_image_file(f"{name}.png")
        a_verdict_file(
            f"{name}.jsonl",
            generators={name: [0.5]},
            fields={"images": {"output": Image(Path(f"{name}.png"))}},
        )
    a_table("s.jsonl", [row("1")])
    a_verdict_file(
        "other.jsonl", new=[0.5], fields={"images": {"output": Image(Path("old.png"))}}
    )
    approve(
        *(
            f"vieval label {files} --out page.html"
            for files in (
                "new.jsonl old.jsonl",
                "new.jsonl s.jsonl",
                "new.jsonl other.jsonl",
            )
        )
    )


def test_refused(approve):
    an_image_file("a.png")
    Path("text.png").write_text("text")
    tables = {
        "no image there": [row("1", output="gone.png")],
        "no image": [row(uid, output="text.png") for uid in "12"],
        "no output": [row("1"), row("2", images={"source": "a.png"})],
        "no kind": [row("1"), row("2", kind="")],
        "two of one name": [row("1"), row("1")],
        "three candidates": [
            {**PAIR, "candidates": candidates("a.png", "a.png", "a.png")}
        ],
        "candidates without images": [{**PAIR, "candidates": candidates("", "a.png")}],
    }
    for name, rows in tables.items():
        a_table(f"{name}.jsonl", rows)
    kinds = {name: " --kind tig" if "candidates" in name else "" for name in tables}
    approve(
        *(
            f"vieval label '{name}.jsonl'{kinds[name]} --out page.html"
            for name in tables
        )
    )
