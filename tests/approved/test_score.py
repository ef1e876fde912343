"""`vieval score`: what is judged, what cannot be, and each mistake in a line."""

import json
import os
from pathlib import Path

import pytest

from tests.builders import a_sample_row, a_table, an_image_file
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
    kinds = {
        "tig": ("a", {"prompt": "a cube"}, {}),
        "tie": ("b", {"instruction": "add a hat"}, {"source": "cat.png"}),
        "sdig": ("a", {"prompt": "a dog"}, {"subject": "cat.png"}),
    }
    rows = []
    for model in ("mine", "theirs"):
        for kind, (uid, texts, further) in kinds.items():
            about = {"uid": uid, "image_model": model, "kind": kind, "texts": texts}
            images = {"output": f"{model}/{uid}.png", **further}
            rows.append({**about, "images": images})
    a_table("s.jsonl", rows)
    Path("prompts.txt").write_text("a cat\na dog\n")


ONE_BY_ONE = "vieval score s.jsonl --num-concurrent 1 --out"
JUDGES = "--judge viescore --judge sharpness --judge viescore"
CASES = {
    "several_kinds": (
        f"{ONE_BY_ONE} v.jsonl",
        f"{ONE_BY_ONE} v.jsonl",
        f"{ONE_BY_ONE} v.jsonl --fresh --label before",
        f"{ONE_BY_ONE} b.jsonl --fresh --label before",
        "vieval rank b.jsonl",
        "vieval report b.jsonl --out r",
        "cat r/report.md",
    ),
    "several_judges": (
        f"vieval score s.jsonl {JUDGES} --out v.jsonl",
        "vieval rank v.jsonl",
        "vieval show v.jsonl mine/a --judge sharpness",
        "vieval show v.jsonl mine/a",
        "vieval show v.jsonl mine/c",
    ),
    "flags_that_no_judge_uses": (
        "vieval score s.jsonl --judge sharpness --model fake --scorer weights --lazy --out v.jsonl",
        "vieval score s.jsonl --judge viescore --lazy --num-concurrent 1 --out w.jsonl",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_samples(approve, pictures, judge_server, name):
    judge_server()
    approve(*CASES[name])


def test_kinds_that_a_judge_does_not_support(approve, pictures):
    approve(
        "vieval score s.jsonl --judge ssim --out v.jsonl",
        "vieval score s.jsonl --judge ssim --limit 1 --out w.jsonl",
    )


@pytest.mark.parametrize("refused", [1, 100])
def test_replies_that_decline(approve, pictures, judge_server, refused):
    def faults(number, _):
        return Fault("refusal") if 1 < number <= refused + 1 else None

    judge_server(faults=faults)
    approve(f"{ONE_BY_ONE} v.jsonl")


AWAY = "--model m --base-url http://127.0.0.1:9/v1 --out v.jsonl"
FLAGS = ("--temperature -1", "--num-concurrent 0", "--max-tokens 0", "--timeout 0")
UNUSED = ("--prompt x", "--source x", "--json")
FOLDER = "vieval score mine --judge sharpness --out v.jsonl"
OF_FOLDER = "vieval score mine --prompts prompts.txt --judge sharpness --out v.jsonl {}"


def test_flags_refused(approve, pictures):
    others = ("--judge viescor", "--prompts prompts.txt", "--json")
    approve(
        *each(f"vieval score s.jsonl {AWAY} {{}}", *FLAGS, "--config nowhere.yaml"),
        *each("vieval score s.jsonl --out v.jsonl {}", *others),
        *each(OF_FOLDER, *UNUSED),
        *each(SHARPNESS, "v.jsonl", "mine/a.png mine --prompt x"),
    )


def test_images_refused(approve, pictures):
    Path("a.zip").write_bytes(b"PK\x03\x04" + bytes(40))
    Path("a.txt").write_text("a cat")
    Path("broken.png").write_text("no image")
    files = ("cat.png", "a.zip", "a.txt", ".", "s.jsonl --out v.jsonl")
    unread = ("none.png", "https://a.org/cat.png", "broken.png", "cat.png --out o.xlsx")
    approve(
        *each("vieval score {} --prompt cat", *files, "cat.png --model m"),
        *each("vieval score {} --judge sharpness", *unread),
        *each("vieval score cat.png {}", "", "--source cat.png"),
    )


FOLDERS = {"uids": ("a.png", "a_1.png", "b.jpg", "grid.png"), "one": ("1.png",)}
PROMPTS = {
    "two.txt": "a\nb\n",
    "empty.txt": "",
    "uids.csv": "uid,prompt\na,x\nb,y\nc,z\n",
}


@pytest.mark.parametrize("names", ["uids", "one", "none"])
def test_folders_and_prompts(approve, names):
    Path("mine").mkdir()
    for name in FOLDERS.get(names, ()):
        an_image_file(f"mine/{name}")
    for name, text in PROMPTS.items():
        Path(name).write_text(text)
    prompts = ("two.txt", "empty.txt", "absent.txt", "uids.csv")
    approve(FOLDER, *each(f"{FOLDER} --prompts {{}}", *prompts))


REFUSED = (
    "uid,prompt\n7,x",
    "uid,prompt\n1,x\n1,y",
    "prompt,output\nx,y.png",
    "prompt,image_model\nx,m",
    "uid,prompt\n1",
)


def test_prompts_refused(approve):
    an_image_file("mine/1.png")
    for number, text in enumerate(REFUSED):
        Path(f"p{number}.csv").write_text(f"{text}\n")
    approve(*each(f"{FOLDER} --prompts p{{}}.csv", *range(len(REFUSED))))


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
    files = [f"{n}.csv" for n in range(len(TABLES))]
    columns = "10.csv --columns prompt=prompt,source=source"
    approve(*each(SHARPNESS, *files, "pipe.csv", "empty.jsonl", columns))


def test_columns_that_a_flag_names(approve):
    an_image_file("a.png")
    # images of one digest are measured once or found in the store, as it happens
    for n in range(25):
        an_image_file(f"{n}.png", size=(32, 24 + n))
    rows = "".join(f"{n},{n}.png,a hill,laion\n" for n in range(25))
    Path("t.csv").write_text(f"uid,image,caption,source\n{rows}")
    Path("w.csv").write_text("image,wording\na.png,a cat\n")
    table = "vieval score t.csv --judge sharpness --out v.jsonl {}"
    approve(
        *each(table, "", "--columns source=source"),
        *each(SHARPNESS, "w.csv --kind tig", "w.csv --columns prompt=wording"),
    )


def test_rows_that_lack_something(approve, judge_server):
    an_image_file("a.png")
    whole = a_sample_row("whole", "a.png", "teal")
    no_prompt = {**whole, "uid": "no prompt", "texts": {}}
    instruction = {"texts": {"instruction": "make it teal"}}
    no_source = {**whole, "uid": "no source", "kind": "tie", **instruction}
    a_table(
        "s.jsonl",
        [whole, no_prompt, no_source, {**whole, "uid": "kind", "kind": "sculpture"}],
    )
    a_table("bad.jsonl", [no_source, {**whole, "images": {"output": "nowhere.png"}}])
    a_table("twice.jsonl", [whole, {**whole, "image_model": "m"}, whole])
    judge_server()
    approve(
        *each("vieval score {}.jsonl --out v.jsonl", "s", "bad", "twice"),
        "vieval show v.jsonl nowhere",
    )


def test_results_of_a_generator_in_lmms_eval(approve):
    an_image_file("run/my__model/0.png")
    drawn = {"images": [str(Path("run/my__model/0.png").absolute())]}
    answers = (json.dumps(drawn), "I cannot draw.", json.dumps({"images": ["/x.png"]}))
    rows = []
    for n, answer in enumerate(answers):
        row = {"doc_id": n, "doc": {}, "target": ""}
        row["arguments"] = [f"prompt {n}", {"until": []}]
        rows.append({**row, "resps": [[answer]], "filtered_resps": [answer]})
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
    score = "vieval score cat.png --prompt x --judge {}"
    approve(*each(score, "sharpness", "viescore"))


@needs("rapidocr")
def test_texts_that_prompts_demand(approve):
    an_image_file("a.png")
    prompts = (
        'a sign that says "OPEN"',
        'a poster titled "SALE", and a man called "Bob"',
    )
    rows = [
        {"uid": str(n), "images": {"output": "a.png"}, "texts": {"prompt": prompt}}
        for n, prompt in enumerate((*prompts, "a cat"))
    ]
    a_table("s.jsonl", rows)
    score = "vieval score s.jsonl --judge text_rendering {}"
    approve(*each(score, "--plan", "--out v.jsonl"), "vieval rank v.jsonl")
