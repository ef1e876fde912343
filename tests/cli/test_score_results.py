"""Verdicts are enough: pages show images from them, and each judge's are kept."""

import hashlib
import re
import sys
from pathlib import Path
from shlex import split

import PIL.Image
import pytest

from tests.fake_server import FakeServer, named
from tests.stored_results import csv_rows, read_lines, write_lines


def picture(path, colour):
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("RGB", (40, 30), colour).save(path)
    return path


@pytest.fixture
def folder(store, tmp_path, monkeypatch):
    """Two generators of three prompts, in folders."""
    colours = {"mine": "red green blue", "theirs": "pink lime navy"}
    for model, names in colours.items():
        for number, colour in enumerate(names.split(), start=1):
            picture(tmp_path / "images" / model / f"{number}.png", colour)
    (tmp_path / "prompts.txt").write_text("a red thing\na green thing\na blue thing\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(path="v.jsonl"):
    return read_lines(Path(path))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


SCORE = ["score", "images", "--prompts", "prompts.txt", "--out", "out/v.jsonl"]


def test_verdicts_hold_texts_and_where_images_are(folder, vieval):
    vieval(*SCORE, "--judge", "sharpness")
    row = lines("out/v.jsonl")[0]
    assert row["texts"] == {"prompt": "a red thing"}
    sha256 = digest(folder / "images" / "mine" / "1.png")
    output = {"file": "../images/mine/1.png", "sha256": sha256}
    assert row["images"] == {"output": output}


def test_pages_say_which_images_changed(folder, vieval):
    vieval(*SCORE, "--judge", "sharpness")
    vieval("report", "out/v.jsonl", "--out", "r")
    page = (folder / "r" / "report.html").read_text()
    assert "data of this benchmark is not on this machine" not in page
    assert page.count("data:image/") >= 6
    picture(folder / "images" / "mine" / "1.png", "black")
    vieval("report", "out/v.jsonl", "--out", "again")
    page = (folder / "again" / "report.html").read_text()
    changed = [t for t in page.split("<figure>")[1:] if ">changed since it was" in t]
    assert {"<b>mine</b>" in tile for tile in changed} == {True}
    assert page.count("An image has changed since it was judged.") == 1
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
    cells = [{"output": f.read_bytes(), "prompt": f"a {f.stem}"} for f in files]
    table = pyarrow.Table.from_pylist(cells * 20)
    parquet.write_table(table, folder / "s.parquet", row_group_size=7)
    vieval("score", "s.parquet", "--judge", "sharpness", "--out", "v.jsonl")
    row = lines()[40]
    place = {"file": "s.parquet", "row": 40, "column": "output"}
    assert row["images"]["output"] == {**place, "sha256": digest(files[1])}
    vieval("report", "v.jsonl", "--out", "r")
    page = (folder / "r" / "report.html").read_text()
    assert page.count("data:image/") >= 3
    assert "has changed" not in page
    vieval("show", "v.jsonl", f"tig/{row['uid']}", "--html", "one.html")


def test_judges_that_cannot_run_are_named_at_the_end(folder, vieval, server):
    judges = "--judge viescore --judge sharpness --judge clip_score --scorer none"
    said = vieval(*SCORE, *judges.split(), *named(server), code=1)
    assert {row["judge"] for row in lines("out/v.jsonl")} == {"viescore", "sharpness"}
    assert said.err.splitlines()[-1].startswith("vieval: clip_score: ")
    assert not Path("out/v.jsonl.partial").exists()


def test_verdicts_before_a_server_went_away_are_kept(folder, vieval):
    (folder / "o.yaml").write_text("store: {use: false}\n")
    flags = ["--config", "o.yaml", "--num-concurrent", "1", "--patience", "1"]
    command = [*SCORE, "--judge", "sharpness", "--judge", "viescore", *flags]
    dies = lambda number, _: server.die(3600) if number == 7 else None
    with FakeServer(faults=dies) as server:
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
    assert found == ["sharpness"] * 6 + ["viescore"] * 6
    assert not Path("out/v.jsonl.partial").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_flat_table_has_a_row_a_verdict(folder, vieval, ending):
    pytest.importorskip("pyarrow") if ending == "parquet" else None
    PIL.Image.effect_noise((40, 30), 60).save(folder / "images" / "mine" / "=1+1.png")
    table = "uid,prompt\n=1+1,white\n1,red\n2,green\n3,blue\n"
    (folder / "prompts.csv").write_text(table)
    (folder / "images" / "theirs" / "3.png").write_text("none")
    judged = "score images --prompts prompts.csv --judge sharpness --judge ssim"
    vieval(judged, "--out", f"v.{ending}", code=1)
    if ending == "csv":
        rows = csv_rows(folder / "v.csv")
        assert rows[0]["uid"] == "'=1+1"
        assert rows[0]["PQ"] != ""
    else:
        from pyarrow import parquet

        rows = parquet.read_table(folder / "v.parquet").to_pylist()
        assert rows[0]["uid"] == "=1+1"
        assert isinstance(rows[0]["PQ"], float)
    assert [row["judge"] for row in rows] == ["sharpness"] * 8 + ["ssim"] * 8
    assert {row["status"] for row in rows} == {"ok", "no_image", "not_applicable"}
    assert all(row["reason"] for row in rows if row["status"] != "ok")
    assert {"image_model", "kind", "model", "setting"} <= rows[0].keys()
    names = sorted(path.name for path in folder.glob("v.*"))
    assert names == [f"v.{ending}", f"v.{ending}.run.json"]


def test_an_address_keeps_no_key_in_results(folder, vieval):
    images = {"output": "http://h.example/a.png?key=hunter2-and-more"}
    row = {"uid": "1", "kind": "tig", "images": images, "texts": {"prompt": "x"}}
    write_lines(folder / "s.jsonl", [row])
    vieval("score", "s.jsonl", "--judge", "sharpness", "--out", "v.jsonl", code=1)
    assert "hunter2" not in (folder / "v.jsonl").read_text()


# One image.


def test_a_source_makes_an_edit_and_equal_names_get_numbers(folder, vieval):
    same = "score images/mine/1.png images/theirs/1.png --source images/mine/2.png"
    vieval(same, *split("--judge ssim --out v.jsonl"))
    found = [(row["uid"], row["kind"]) for row in lines()]
    assert found == [("1_1", "tie"), ("1_2", "tie")]


def test_parquet_without_its_package_is_refused_first(folder, vieval, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = vieval(*SCORE[:-1], "v.parquet", "--judge", "sharpness", code=1).err
    remedy = 'run pip install ".[tables]" in a checkout'
    assert f"reading parquet files requires pyarrow; {remedy}" in said
    assert not list(folder.glob("v.parquet*"))


def test_images_without_a_generator_are_yours(samples_file, vieval, tmp_path):
    rows = enumerate(read_lines(samples_file))
    yours = [{**row, "uid": str(n), "image_model": ""} for n, row in rows]
    write_lines(samples_file, yours)
    out = tmp_path / "v.jsonl"
    vieval("score", samples_file, "--judge", "sharpness", "--out", out)
    ranked = vieval("rank", out).out
    mean = r"Mean PQ of your images: 0\.\d\d \(95% interval "
    answer = rf"Only your images were judged, so they cannot be compared\.\n{mean}"
    assert re.match(answer, ranked)
    assert "\n      your images  " in ranked
    assert re.match(answer, vieval("report", out, "--out", tmp_path / "report").out)
