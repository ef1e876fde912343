"""`vieval score`: what is judged, what cannot be, and each mistake in a line."""

import json
import os
from pathlib import Path

import pytest

from tests.builders import a_table, an_image_file
from tests.extras import needs
from tests.fake_server import Fault

SHARPNESS = "vieval score {} --judge sharpness --out v.jsonl"


def each(template, *values):
    """A command for each value."""
    return [template.format(value) for value in values]


@pytest.fixture
def pictures(approve):
    """Two generators with an image of two prompts each, and samples of three kinds."""
    for name in ("mine/a.png", "mine/b.png", "theirs/a.png", "theirs/b.png", "cat.png"):
        an_image_file(name, colour=(len(name) * 9, 90, 200))
    texts = {
        "tig": {"prompt": "a cube"},
        "tie": {"instruction": "add a hat"},
        "sdig": {"prompt": "a dog"},
    }
    further = {"tig": {}, "tie": {"source": "cat.png"}, "sdig": {"subject": "cat.png"}}
    rows = [
        {"uid": uid, "image_model": model, "kind": kind, "texts": texts[kind]}
        | {"images": {"output": f"{model}/{uid}.png", **further[kind]}}
        for model in ("mine", "theirs")
        for uid, kind in zip("aba", texts, strict=True)
    ]
    a_table("s.jsonl", rows)
    Path("prompts.txt").write_text("a cat\na dog\n")


def test_several_kinds(approve, pictures, judge_server):
    judge_server()
    approve(
        "vieval score s.jsonl --num-concurrent 1 --out v.jsonl",
        "vieval score s.jsonl --num-concurrent 1 --out v.jsonl",
        "vieval score s.jsonl --num-concurrent 1 --out v.jsonl --fresh --label before",
        "vieval score s.jsonl --num-concurrent 1 --out b.jsonl --fresh --label before",
        "vieval rank b.jsonl",
        "vieval report b.jsonl --out r",
        "cat r/report.md",
    )


def test_several_judges(approve, pictures, judge_server):
    judge_server()
    approve(
        "vieval score s.jsonl --judge viescore --judge sharpness --judge viescore --out v.jsonl",
        "vieval rank v.jsonl",
        "vieval show v.jsonl mine/a --judge sharpness",
        "vieval show v.jsonl mine/a",
        "vieval show v.jsonl mine/c",
    )


def test_kinds_that_a_judge_does_not_support(approve, pictures):
    approve(
        "vieval score s.jsonl --judge ssim --out v.jsonl",
        "vieval score s.jsonl --judge ssim --limit 1 --out w.jsonl",
    )


def test_flags_that_no_judge_uses(approve, pictures, judge_server):
    judge_server()
    approve(
        "vieval score s.jsonl --judge sharpness --model fake --scorer weights --lazy --out v.jsonl",
        "vieval score s.jsonl --judge viescore --lazy --num-concurrent 1 --out w.jsonl",
    )


@pytest.mark.parametrize("refused", [1, 100])
def test_replies_that_decline(approve, pictures, judge_server, refused):
    judge_server(
        faults=lambda number, _: Fault("refusal") if 1 < number <= refused + 1 else None
    )
    approve("vieval score s.jsonl --num-concurrent 1 --out v.jsonl")


def test_flags_refused(approve, pictures):
    flags = (
        "--temperature -1",
        "--num-concurrent 0",
        "--max-tokens 0",
        "--timeout 0",
        "--config nowhere.yaml",
    )
    approve(
        *each(
            "vieval score s.jsonl --model m --base-url http://127.0.0.1:9/v1 --out v.jsonl {}",
            *flags,
        ),
        *each(
            "vieval score s.jsonl --out v.jsonl {}",
            "--judge viescor",
            "--prompts prompts.txt",
            "--json",
        ),
        *each(
            "vieval score mine --prompts prompts.txt --judge sharpness --out v.jsonl {}",
            "--prompt x",
            "--source x",
            "--json",
        ),
        *each(SHARPNESS, "v.jsonl", "mine/a.png mine --prompt x"),
    )


def test_images_refused(approve, pictures, monkeypatch):
    Path("a.zip").write_bytes(b"PK\x03\x04" + bytes(40))
    Path("a.txt").write_text("a cat")
    Path("broken.png").write_text("no image")
    approve(
        *each(
            "vieval score {} --prompt cat",
            "cat.png",
            "a.zip",
            "a.txt",
            ".",
            "s.jsonl --out v.jsonl",
            "cat.png --model m",
        ),
        *each(
            "vieval score {} --judge sharpness",
            "none.png",
            "https://a.org/cat.png",
            "broken.png",
            "cat.png --out o.xlsx",
        ),
        *each("vieval score cat.png {}", "", "--source cat.png"),
    )


@pytest.mark.parametrize(
    "names", ["a.png a_1.png b.jpg grid.png", "1.png", ""], ids=["uids", "one", "none"]
)
def test_folders_and_prompts(approve, names):
    for name in names.split():
        an_image_file(f"mine/{name}")
    Path("mine").mkdir(exist_ok=True)
    for name, text in {
        "two.txt": "a\nb\n",
        "empty.txt": "",
        "uids.csv": "uid,prompt\na,x\nb,y\nc,z\n",
    }.items():
        Path(name).write_text(text)
    prompts = ("two.txt", "empty.txt", "absent.txt", "uids.csv")
    approve(
        "vieval score mine --judge sharpness --out v.jsonl",
        *each(
            "vieval score mine --judge sharpness --out v.jsonl --prompts {}", *prompts
        ),
    )


def test_prompts_refused(approve):
    an_image_file("mine/1.png")
    tables = (
        "uid,prompt\n7,x",
        "uid,prompt\n1,x\n1,y",
        "prompt,output\nx,y.png",
        "prompt,image_model\nx,m",
        "uid,prompt\n1",
    )
    for number, text in enumerate(tables):
        Path(f"p{number}.csv").write_text(f"{text}\n")
    approve(
        *each(
            "vieval score mine --judge sharpness --out v.jsonl --prompts p{}.csv",
            *range(len(tables)),
        )
    )


TABLES = (
    b"outptu,prompt\na.png,x\n", b"output|prompt\na.png|x\n", b"output,subject\na.png,x\n", b"output,output\na.png,x\n",
    b'output,prompt\na.png,"x\n', b"output,prompt\na.png,\xff\n", b"", b"output,prompt\n", b"image,wording\na.png,a cat\n",
    ",".join(f"c{number}" for number in range(10_000)).encode() + b"\n", b"image,prompt,source\n" + b"a.png,red,a.png\n" * 25,
    b"uid,image,prompt,source\np,a.png,a hill,new\np,a.png,a hill,old\n",
    b"image,instruction,source\n" + b"a.png,paint it red,https://example.com/1\n" * 25,
)  # fmt: skip


def test_tables_refused(approve):
    an_image_file("a.png")
    for number, content in enumerate(TABLES):
        Path(f"{number}.csv").write_bytes(content)
    os.mkfifo("pipe.csv")
    Path("empty.jsonl").touch()
    approve(
        *each(
            SHARPNESS,
            *(f"{n}.csv" for n in range(len(TABLES))),
            "pipe.csv",
            "empty.jsonl",
            "10.csv --columns prompt=prompt,source=source",
        )
    )


def test_columns_that_a_flag_names(approve):
    an_image_file("a.png")
    # images of one digest are measured once or found in the store, as it happens
    for n in range(25):
        an_image_file(f"{n}.png", size=(32, 24 + n))
    Path("t.csv").write_text(
        "uid,image,caption,source\n"
        + "".join(f"{n},{n}.png,a hill,laion\n" for n in range(25))
    )
    Path("w.csv").write_text("image,wording\na.png,a cat\n")
    approve(
        *each(
            "vieval score t.csv --judge sharpness --out v.jsonl {}",
            "",
            "--columns source=source",
        ),
        *each(SHARPNESS, "w.csv --kind tig", "w.csv --columns prompt=wording"),
    )


def test_rows_that_lack_something(approve, judge_server):
    an_image_file("a.png")
    texts, images = {"prompt": "teal"}, {"output": "a.png"}
    rows = [
        {"uid": "whole", "kind": "tig", "images": images, "texts": texts},
        {"uid": "no prompt", "kind": "tig", "images": images, "texts": {}},
        {
            "uid": "no source",
            "kind": "tie",
            "images": images,
            "texts": {"instruction": "make it teal"},
        },
        {"uid": "kind", "kind": "sculpture", "images": images, "texts": texts},
    ]
    a_table("s.jsonl", rows)
    a_table("bad.jsonl", [rows[2], {**rows[0], "images": {"output": "nowhere.png"}}])
    a_table("twice.jsonl", [rows[0], {**rows[0], "image_model": "m"}, rows[0]])
    judge_server()
    approve(
        *each("vieval score {}.jsonl --out v.jsonl", "s", "bad", "twice"),
        "vieval show v.jsonl nowhere",
    )


def test_results_of_a_generator_in_lmms_eval(approve):
    an_image_file("run/my__model/0.png")
    answers = [
        json.dumps({"images": [str(Path("run/my__model/0.png").absolute())]}),
        "I cannot draw.",
        json.dumps({"images": ["/x.png"]}),
    ]
    rows = [
        {
            "doc_id": n,
            "doc": {},
            "target": "",
            "arguments": [f"prompt {n}", {"until": []}],
        }
        | {"resps": [[answer]], "filtered_resps": [answer]}
        for n, answer in enumerate(answers)
    ]
    a_table("run/my__model/20261121_000000_samples_some_task.jsonl", rows)
    approve(*each(SHARPNESS, "run --kind tig", "run"))


def test_store_of_another_version(approve, pictures, judge_server):
    import sqlite3

    with sqlite3.connect("replies.sqlite") as database:
        database.executescript(
            "CREATE TABLE about (name, value); CREATE TABLE replies (key); INSERT INTO about "
            "VALUES ('schema', '2')"
        )
    database.close()
    Path("vieval.yaml").write_text("store: {path: replies.sqlite}\n")
    judge_server()
    approve(
        "vieval score s.jsonl --judge viescore --judge t2i_eval --out v.jsonl",
        "vieval score s.jsonl --judge ssim --out v.jsonl",
    )


def test_model_in_the_environment_alone(approve, pictures, monkeypatch):
    monkeypatch.setenv("VIEVAL_MODEL", "m")
    approve(
        *each("vieval score cat.png --prompt x --judge {}", "sharpness", "viescore")
    )


@needs("rapidocr")
def test_texts_that_prompts_demand(approve):
    an_image_file("a.png")
    prompts = (
        'a sign that says "OPEN"',
        'a poster titled "SALE", and a man called "Bob"',
        "a cat",
    )
    rows = [
        {"uid": str(n), "images": {"output": "a.png"}, "texts": {"prompt": p}}
        for n, p in enumerate(prompts)
    ]
    a_table("s.jsonl", rows)
    approve(
        "vieval score s.jsonl --judge text_rendering --plan",
        "vieval score s.jsonl --judge text_rendering --out v.jsonl",
        "vieval rank v.jsonl",
    )
