"""A benchmark's prompts go out to a generator, and its images come back to be scored."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from shlex import split

import PIL.Image
import pytest

from tests.refusals import refusal
from tests.stored_results import csv_rows, read_lines
from vieval_plugin.benchmarks import registry
from vieval_plugin.benchmarks.loading.prompt_export import export_prompts
from vieval_plugin.cli import main
from vieval_plugin.generation.precomputed_images import PrecomputedImages
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.readers.image_folder import read_named

pytest.importorskip("skimage", reason="the drawn benchmark needs scikit-image")


def test_prompts_go_out_and_images_come_back(tmp_path, capsys):
    mine = tmp_path / "mine"
    out = tmp_path / "out"
    assert main(["prompts", "export", "vieval_demo/tie", "--out", str(out)]) == 0
    folder = out / "tie"
    said = capsys.readouterr().out
    assert f"{folder / 'prompts.jsonl'}: 16 prompts" in said
    assert said.rstrip().endswith(f"run `vieval score {folder}`")
    rows = read_lines(folder / "prompts.jsonl")
    assert {tuple(row["images"]) for row in rows} == {("source",)}
    assert all(
        row["texts"]["instruction"] and (folder / row["images"]["source"]).is_file()
        for row in rows
    )
    expected = csv_rows(folder / "expected.csv")
    assert [row["uid"] for row in expected] == [row["uid"] for row in rows]

    draw(mine, [row["file"] for row in expected])
    score = split(f"score {mine} --prompts {folder}/prompts.jsonl --judge ssim")
    assert main([*score, "--out", str(tmp_path / "verdicts.jsonl")]) == 0
    verdicts = read_lines(tmp_path / "verdicts.jsonl")
    found = [(verdict["uid"], verdict["status"]) for verdict in verdicts]
    assert found == [(row["uid"], "ok") for row in rows]


def exported(tmp_path, benchmark):
    assert main(["prompts", "export", benchmark, "--out", str(tmp_path / "out")]) == 0
    return csv_rows(tmp_path / "out" / benchmark.partition("/")[2] / "expected.csv")


def draw(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        PIL.Image.new("RGB", (64, 64), (number * 5, 90, 120)).save(folder / name)


@pytest.mark.parametrize("place", ["out", "out/tie", "out/tie/mine"])
def test_images_beside_the_prompts_need_no_other_flag(tmp_path, place, vieval):
    """The images of conditions, which lie there as well, are nobody's output."""
    tie = tmp_path / "out" / "tie"
    expected = exported(tmp_path, "vieval_demo/tie")
    draw(tie / "mine", [row["file"] for row in expected])
    score = [
        "score",
        str(tmp_path / place),
        *split(f"--judge ssim --out {tmp_path}/verdicts.jsonl"),
    ]
    if place == "out/tie/mine":
        score += ["--prompts", str(tie / "prompts.jsonl")]
    vieval(*score)
    verdicts = read_lines(tmp_path / "verdicts.jsonl")
    assert [
        (verdict["image_model"], verdict["uid"], verdict["status"])
        for verdict in verdicts
    ] == [("mine", row["uid"], "ok") for row in expected]


def test_the_images_answer_the_task_that_generates_too(tmp_path):
    expected = exported(tmp_path, "generate_vieval_demo/tie")
    draw(tmp_path / "out" / "tie" / "mine", [row["file"] for row in expected])
    conditions = registry.samples("generate_vieval_demo", "tie", tmp_path)
    for place in ("out", "out/tie", "out/tie/mine"):
        made = PrecomputedImages(tmp_path / place, "mine")
        answers = [
            json.loads(made.answer(ImageRequest(sample, "", 1, 0)))
            for sample in conditions
        ]
        found = [Path(answer["images"][0]).name for answer in answers]
        assert found == [row["file"] for row in expected]


def test_where_no_name_matches_both_sides_are_shown(tmp_path, vieval):
    tie = tmp_path / "out" / "tie"
    expected = [row["file"] for row in exported(tmp_path, "vieval_demo/tie")]
    draw(tie / "mine", [f"image{number}.png" for number in range(12)])
    said = vieval(f"score {tie} --judge ssim --out {tmp_path}/v.jsonl", code=1).err
    assert "cannot match 12 images (image0.png, image1.png, image2.png, ...)" in said
    assert f"no image is named after a uid, such as {', '.join(expected[:3])}" in said


def test_a_benchmark_of_contests_exports_the_conditions_of_each_once(tmp_path):
    contests = exported(tmp_path, "vieval_demo_contests/tie")
    rows = (tmp_path / "out" / "tie" / "prompts.jsonl").read_text()
    shutil.rmtree(tmp_path / "out")
    assert contests == exported(tmp_path, "vieval_demo/tie")
    assert rows == (tmp_path / "out" / "tie" / "prompts.jsonl").read_text()


def test_a_uid_that_is_no_file_name_has_one_all_the_same(tmp_path):
    out = tmp_path / "out"
    uids = ["set/1", "set/2", "..", "a" * 300, "1.png", 'x: "y"?', "1"]
    samples = [
        Sample(SampleId("b", "tig", "m", uid), {}, {"prompt": "x"}) for uid in uids
    ]
    benchmark = replace(
        registry.benchmark("vieval_demo"), load=lambda root, part: samples
    )
    assert export_prompts(benchmark, "tig", tmp_path, out) == len(uids)
    files = {row["uid"]: row["file"] for row in csv_rows(out / "expected.csv")}
    assert files["1.png"] == "1.png"
    del files["1"]  # which would be called as that
    draw(out / "mine", files.values())
    rows = {row.sample.id.uid: row for row in read_named([str(out)])}
    found = {uid: rows[uid].sample.images["output"].source.name for uid in files}
    assert found == files


def test_prompts_that_the_data_lacks_are_one_line(tmp_path, capsys):
    samples = [Sample(SampleId("b", "tig", "m", "1"), {})]
    benchmark = replace(
        registry.benchmark("vieval_demo"), load=lambda root, part: samples
    )
    line = refusal(export_prompts, benchmark, "tig", tmp_path, tmp_path / "out")
    assert (
        "vieval_demo/tig: 1 of 1 prompts has no text in the local data; run `vieval prepare "
        "vieval_demo`"
    ) in line


def test_files_of_the_user_are_not_replaced(tmp_path, vieval):
    command = ["prompts", "export", "vieval_demo/tie", "--out", tmp_path / "out"]
    vieval(*command)
    vieval(*command)  # its own files are no matter
    (tmp_path / "out/tie/expected.csv").write_text("mine")
    [line] = vieval(*command, code=1).err.splitlines()
    assert (
        f"{tmp_path / 'out/tie/expected.csv'} already exists and is not from this export"
        in line
    )
    assert (tmp_path / "out/tie/expected.csv").read_text() == "mine"
