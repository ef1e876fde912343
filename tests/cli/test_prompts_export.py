"""A benchmark's prompts go out to a generator, and its images come back to be scored."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import PIL.Image
import pytest

from tests.builders import a_sample
from tests.refusals import refusal
from tests.stored_results import csv_rows, read_lines
from vieval_plugin.benchmarks import registry
from vieval_plugin.benchmarks.loading.prompt_export import export_prompts
from vieval_plugin.generation.precomputed_images import PrecomputedImages
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.readers.image_folder import read_named

pytest.importorskip("skimage", reason="the drawn benchmark needs scikit-image")


def test_prompts_go_out_and_images_come_back(tmp_path, vieval):
    mine = tmp_path / "mine"
    folder = tmp_path / "out" / "tie"
    said = vieval(f"prompts export vieval_demo/tie --out {tmp_path}/out").out
    assert f"{folder / 'prompts.jsonl'}: 16 prompts" in said
    assert said.rstrip().endswith(f"run `vieval score {folder}`")
    rows = read_lines(folder / "prompts.jsonl")
    for row in rows:
        assert tuple(row["images"]) == ("source",)
        assert row["texts"]["instruction"]
        assert (folder / row["images"]["source"]).is_file()
    expected = csv_rows(folder / "expected.csv")
    assert [row["uid"] for row in expected] == [row["uid"] for row in rows]
    draw(mine, [row["file"] for row in expected])
    out = tmp_path / "verdicts.jsonl"
    prompts = f"--prompts {folder}/prompts.jsonl"
    vieval(f"score {mine} {prompts} --judge ssim --out {out}")
    found = [(verdict["uid"], verdict["status"]) for verdict in read_lines(out)]
    assert found == [(row["uid"], "ok") for row in rows]


@pytest.fixture
def exported(tmp_path, vieval):
    """Exports a benchmark; the file that is expected for each uid."""

    def run(benchmark):
        vieval(f"prompts export {benchmark} --out {tmp_path}/out")
        part = benchmark.partition("/")[2]
        return csv_rows(tmp_path / "out" / part / "expected.csv")

    return run


def draw(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        PIL.Image.new("RGB", (64, 64), (number * 5, 90, 120)).save(folder / name)


@pytest.mark.parametrize("place", ["out", "out/tie", "out/tie/mine"])
def test_images_beside_the_prompts_need_no_other_flag(
    tmp_path, place, exported, vieval
):
    """The images of conditions, which lie there as well, are nobody's output."""
    tie = tmp_path / "out" / "tie"
    out = tmp_path / "verdicts.jsonl"
    expected = exported("vieval_demo/tie")
    draw(tie / "mine", [row["file"] for row in expected])
    named = ["--prompts", tie / "prompts.jsonl"] if place == "out/tie/mine" else []
    vieval("score", tmp_path / place, "--judge", "ssim", "--out", out, *named)
    fields = ("image_model", "uid", "status")
    found = [tuple(verdict[name] for name in fields) for verdict in read_lines(out)]
    assert found == [("mine", row["uid"], "ok") for row in expected]


def test_the_images_answer_the_task_that_generates_too(tmp_path, exported):
    expected = [row["file"] for row in exported("generate_vieval_demo/tie")]
    draw(tmp_path / "out" / "tie" / "mine", expected)
    conditions = registry.samples("generate_vieval_demo", "tie", tmp_path)
    asked = [ImageRequest(sample, "", 1, 0) for sample in conditions]
    for place in ("out", "out/tie", "out/tie/mine"):
        made = PrecomputedImages(tmp_path / place, "mine")
        answers = [json.loads(made.answer(request)) for request in asked]
        assert [Path(answer["images"][0]).name for answer in answers] == expected


def test_a_benchmark_of_contests_exports_the_conditions_of_each_once(
    tmp_path, exported
):
    prompts = tmp_path / "out" / "tie" / "prompts.jsonl"
    contests = exported("vieval_demo_contests/tie")
    rows = prompts.read_text()
    shutil.rmtree(tmp_path / "out")
    assert contests == exported("vieval_demo/tie")
    assert rows == prompts.read_text()


def benchmark_of(samples):
    demo = registry.benchmark("vieval_demo")
    return replace(demo, load=lambda root, part: samples)


def test_a_uid_that_is_no_file_name_has_one_all_the_same(tmp_path):
    out = tmp_path / "out"
    uids = ["set/1", "set/2", "..", "a" * 300, "1.png", 'x: "y"?', "1"]
    benchmark = benchmark_of([a_sample(uid, prompt="x") for uid in uids])
    assert export_prompts(benchmark, "tig", tmp_path, out) == len(uids)
    files = {row["uid"]: row["file"] for row in csv_rows(out / "expected.csv")}
    assert files["1.png"] == "1.png"
    del files["1"]  # which would be called as that
    draw(out / "mine", files.values())
    rows = {row.sample.id.uid: row for row in read_named([str(out)])}
    found = {uid: rows[uid].sample.images["output"].source.name for uid in files}
    assert found == files


def test_prompts_that_the_data_lacks_are_one_line(tmp_path):
    benchmark = benchmark_of([a_sample()])
    line = refusal(export_prompts, benchmark, "tig", tmp_path, tmp_path / "out")
    assert "vieval_demo/tig: 1 of 1 prompts has no text in the local data" in line
    assert "run `vieval prepare vieval_demo`" in line


def test_files_of_the_user_are_not_replaced(tmp_path, exported, vieval):
    for _ in range(2):  # its own files are no matter
        exported("vieval_demo/tie")
    file = tmp_path / "out" / "tie" / "expected.csv"
    file.write_text("mine")
    command = f"prompts export vieval_demo/tie --out {tmp_path}/out"
    [line] = vieval(command, code=1).err.splitlines()
    assert f"{file} already exists and is not from this export" in line
    assert file.read_text() == "mine"
