"""What `vieval score` writes is enough: pages show its images without the samples file, and each
judge's verdicts are kept.
"""

import csv
import hashlib
import json
import re
import sys
from pathlib import Path
from shlex import split

import PIL.Image
import pytest

from tests.fake_server import FakeServer, named
from tests.stored_results import read_lines
from vieval_plugin.cli import main


def picture(path, colour):
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("RGB", (40, 30), colour).save(path)
    return path


@pytest.fixture
def folder(store, tmp_path, monkeypatch):
    """Two generators of three prompts, in folders."""
    for model, colours in {
        "mine": ("red", "green", "blue"),
        "theirs": ("pink", "lime", "navy"),
    }.items():
        for number, colour in enumerate(colours, start=1):
            picture(tmp_path / "images" / model / f"{number}.png", colour)
    (tmp_path / "prompts.txt").write_text("a red thing\na green thing\na blue thing\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(path):
    return read_lines(Path(path))


SCORE = ["score", "images", "--prompts", "prompts.txt", "--out", "out/v.jsonl"]


def test_verdicts_hold_texts_and_where_images_are(folder, vieval):
    vieval(*SCORE, "--judge", "sharpness")
    row = lines("out/v.jsonl")[0]
    assert row["texts"] == {"prompt": "a red thing"}
    content = (folder / "images" / "mine" / "1.png").read_bytes()
    assert row["images"] == {
        "output": {
            "file": "../images/mine/1.png",
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    }


def test_pages_say_which_images_changed(folder, vieval, tmp_path):
    vieval(*SCORE, "--judge", "sharpness")
    vieval("report", "out/v.jsonl", "--out", "r")
    page = (folder / "r" / "report.html").read_text()
    assert "data of this benchmark is not on this machine" not in page
    assert page.count("data:image/") >= 6
    picture(folder / "images" / "mine" / "1.png", "black")
    vieval("report", "out/v.jsonl", "--out", "again")
    changed = (folder / "again" / "report.html").read_text()
    tiles = changed.split("<figure>")[1:]
    assert {
        "<b>mine</b>" in tile
        for tile in tiles
        if ">changed since it was judged<" in tile
    } == {True}
    assert changed.count("An image has changed since it was judged.") == 1
    vieval("label", "out/v.jsonl", "--out", "label.html")
    assert (folder / "label.html").read_text().count("UklGR") == 6
    vieval("show", "out/v.jsonl", "theirs/2", "--html", "one.html")
    assert "changed" not in (folder / "one.html").read_text()
    said = vieval("show", "out/v.jsonl", "mine/1", "--html", "one.html", code=1).err
    assert "has changed since it was judged; restore it, or run the judge again" in said


def test_images_in_cells_of_a_parquet_file_are_shown(folder, vieval):
    pytest.importorskip("pyarrow")
    import pyarrow
    from pyarrow import parquet

    files = sorted((folder / "images" / "mine").iterdir())
    rows = [
        {"output": file.read_bytes(), "prompt": f"a {file.stem}"} for file in files
    ] * 20
    table = pyarrow.Table.from_pylist(rows)
    parquet.write_table(table, folder / "s.parquet", row_group_size=7)
    vieval("score", "s.parquet", "--judge", "sharpness", "--out", "v.jsonl")
    image = lines("v.jsonl")[40]["images"]["output"]
    digest = hashlib.sha256(files[1].read_bytes()).hexdigest()
    assert image == {
        "file": "s.parquet",
        "row": 40,
        "column": "output",
        "sha256": digest,
    }
    vieval("report", "v.jsonl", "--out", "r")
    page = (folder / "r" / "report.html").read_text()
    assert page.count("data:image/") >= 3
    assert "has changed" not in page
    uid = lines("v.jsonl")[40]["uid"]
    vieval("show", "v.jsonl", f"tig/{uid}", "--html", "one.html")


def test_judges_that_cannot_run_are_named_at_the_end(folder, vieval, server):
    judges = split(
        f"--judge viescore --judge sharpness --judge clip_score --scorer {folder}/none"
    )
    said = vieval(*SCORE, *judges, *named(server), code=1)
    assert {row["judge"] for row in lines("out/v.jsonl")} == {"viescore", "sharpness"}
    assert said.err.splitlines()[-1].startswith("vieval: clip_score: ")
    assert not Path("out/v.jsonl.partial").exists()


def test_verdicts_before_a_server_went_away_are_kept(folder, vieval):
    (folder / "o.yaml").write_text("store: {use: false}\n")
    flags = ["--config", "o.yaml", "--num-concurrent", "1", "--patience", "1"]
    command = [*SCORE, "--judge", "sharpness", "--judge", "viescore", *flags]
    with FakeServer(
        faults=lambda number, _: server.die(3600) if number == 7 else None
    ) as server:
        said = vieval(*command, *named(server), code=1).err
    assert said.splitlines()[-1].startswith("vieval: viescore: ")
    assert {row["judge"] for row in lines("out/v.jsonl")} == {"sharpness"}
    kept = sum(row.get("judge") == "viescore" for row in lines("out/v.jsonl.partial"))
    assert 0 < kept < 6
    with FakeServer() as server:
        said = vieval(*command, *named(server)).err
        assert server.stats()["requests"] <= 1 + 2 * (6 - kept)
    assert f"{6 + kept} verdicts from an earlier run" in said
    found = [row["judge"] for row in lines("out/v.jsonl")]
    assert found == (["sharpness"] * 6 + ["viescore"] * 6)
    assert not Path("out/v.jsonl.partial").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_flat_table_has_a_row_a_verdict(folder, vieval, ending):
    pytest.importorskip("pyarrow") if ending == "parquet" else None
    PIL.Image.effect_noise((40, 30), 60).save(folder / "images" / "mine" / "=1+1.png")
    (folder / "prompts.csv").write_text(
        "uid,prompt\n=1+1,white\n1,red\n2,green\n3,blue\n"
    )
    (folder / "images" / "theirs" / "3.png").write_text("none")
    out = folder / f"v.{ending}"
    vieval(
        f"score images --prompts prompts.csv --judge sharpness --judge ssim --out {out}",
        code=1,
    )
    if ending == "csv":
        rows = list(csv.DictReader(out.read_text().splitlines()))
        assert rows[0]["uid"] == "'=1+1"
        assert rows[0]["PQ"] != ""
    else:
        from pyarrow import parquet

        rows = parquet.read_table(out).to_pylist()
        assert rows[0]["uid"] == "=1+1"
        assert isinstance(rows[0]["PQ"], float)
    assert [row["judge"] for row in rows] == ["sharpness"] * 8 + ["ssim"] * 8
    assert {row["status"] for row in rows} == {"ok", "no_image", "not_applicable"}
    assert all(row["reason"] for row in rows if row["status"] != "ok")
    assert {"image_model", "kind", "model", "setting"} <= rows[0].keys()
    assert sorted(path.name for path in folder.glob("v.*")) == [
        f"v.{ending}",
        f"v.{ending}.run.json",
    ]


def test_an_address_keeps_no_key_in_results(folder, vieval, tmp_path):
    document = {
        "uid": "1",
        "kind": "tig",
        "images": {"output": "http://h.example/a.png?key=hunter2-and-more"},
        "texts": {"prompt": "x"},
    }
    text = json.dumps(document)
    (tmp_path / "s.jsonl").write_text(text)
    vieval("score", "s.jsonl", "--judge", "sharpness", "--out", "v.jsonl", code=1)
    assert "hunter2" not in (tmp_path / "v.jsonl").read_text()


# One image.


def test_an_image_prints_at_most_five_lines_a_judge(folder, vieval, server):
    flags = [
        *split("--prompt 'a red cat' --judge t2i_eval --judge viescore"),
        *named(server),
    ]
    said = vieval("score", "images/mine/1.png", *flags).out.splitlines()
    starts = [number for number, line in enumerate(said) if not line.startswith(" ")]
    assert len(starts) == 2
    assert max(starts[1], len(said) - starts[1]) <= 5


def test_a_source_makes_an_edit_and_equal_names_get_numbers(folder, vieval):
    same = ["images/mine/1.png", "images/theirs/1.png"]
    vieval(
        "score", *same, *split("--source images/mine/2.png --judge ssim --out v.jsonl")
    )
    assert [(row["uid"], row["kind"]) for row in lines("v.jsonl")] == [
        ("1_1", "tie"),
        ("1_2", "tie"),
    ]


def test_parquet_without_its_package_is_refused_first(folder, vieval, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = vieval(*SCORE[:-1], "v.parquet", "--judge", "sharpness", code=1).err
    assert (
        'reading parquet files requires pyarrow; run pip install ".[tables]" in a checkout'
        in said
    )
    assert not list(folder.glob("v.parquet*"))


def test_half_a_character_of_a_reply_is_no_end_of_a_run(tmp_path, capsys):
    """A reply may hold `\\ud800`, which no file of texts can: it is a question mark in the
    verdict.
    """
    PIL.Image.effect_noise((64, 48), 60).save(tmp_path / "a.png")
    row = {
        "uid": "1",
        "kind": "tig",
        "images": {"output": "a.png"},
        "texts": {"prompt": "noise \U0001f600"},
    }
    (tmp_path / "s.jsonl").write_text(json.dumps(row) + "\n")
    reply = json.dumps({"score": [7, 7], "reasoning": "half \ud800 of it"})
    with FakeServer(reply=lambda request: reply) as server:
        flags = split(
            f"--model fake --base-url {server.base_url} --out {tmp_path}/v.jsonl"
        )
        assert main(["score", str(tmp_path / "s.jsonl"), *flags]) in (0, 1)
    assert "unforeseen" not in capsys.readouterr().err
    [line] = map(json.loads, (tmp_path / "v.jsonl").read_text().splitlines())
    assert line["texts"]["prompt"] == "noise \U0001f600"
    assert "\ud800" not in json.dumps(line, ensure_ascii=False)


def test_images_without_a_generator_are_yours(samples_file, vieval, tmp_path):
    rows = read_lines(samples_file)
    text = "".join(
        json.dumps({**row, "uid": str(n), "image_model": ""}) + "\n"
        for n, row in enumerate(rows)
    )
    samples_file.write_text(text)
    out = tmp_path / "v.jsonl"
    vieval("score", samples_file, "--judge", "sharpness", "--out", out)
    ranked = vieval("rank", out).out
    answer = (
        r"Only your images were judged, so they cannot be compared\.\nMean PQ of "
        r"your images: 0\.\d\d \(95% interval "
    )
    assert re.match(answer, ranked)
    assert "\n      your images  " in ranked
    assert re.match(answer, vieval("report", out, "--out", tmp_path / "report").out)
