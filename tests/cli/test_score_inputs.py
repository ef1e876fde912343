"""What `vieval score` reads beside a samples file: folders with prompts, CSV, and what lmms-eval
wrote of generators.
"""

import csv
import json
import os
from shlex import split

import PIL.Image
import pytest

from tests.stored_results import write_lines

PROMPTS = ["a red cube", "a blue ball, on grass", "a green hat"]


def draw(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = (
        PIL.Image.effect_noise((64, 48), 40 + seed)
        if seed
        else PIL.Image.linear_gradient("L").resize((64, 48))
    )
    picture.convert("RGB").save(path)


@pytest.fixture
def score(score):
    """Scores with a judge that needs no model."""
    return lambda *arguments, judge="sharpness": score(*arguments, "--judge", judge)


def names(rows):
    return [
        (row["image_model"], row["uid"], row.get("draw", 0), row["status"])
        for row in rows
    ]


def table(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def test_two_generators_are_ranked_from_folders(score, tmp_path, vieval):
    for model in ("mine", "theirs"):
        for noise, number in enumerate((1, 2, 3)):
            path = tmp_path / "out" / model / f"{number}.png"
            draw(path, noise if model == "mine" else 0)
    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS) + "\n")
    code, rows, said, _ = score(tmp_path / "out", "--prompts", tmp_path / "prompts.txt")
    assert code == 0
    assert names(rows) == [
        (model, str(n), 0, "ok") for n in (1, 2, 3) for model in ("mine", "theirs")
    ]
    assert {row["kind"] for row in rows} == {"tig"}
    sharpest = [row["scores"]["PQ"] for row in rows[::2]]
    assert sharpest[0] < 0.5 < min(sharpest[1:])
    assert said.splitlines()[-1].startswith(
        f"next: `vieval rank {tmp_path / 'verdicts.jsonl'}`"
    )
    assert "mine" in vieval("rank", tmp_path / "verdicts.jsonl").out


def test_several_folders_and_edits_whose_sources_the_prompts_name(score, tmp_path):
    draw(tmp_path / "in" / "1.png")
    row = {
        "uid": "1",
        "texts": {"instruction": "add a hat"},
        "images": {"source": "in/1.png"},
    }
    (tmp_path / "p.jsonl").write_text(json.dumps(row))
    for model in ("x", "y"):
        draw(tmp_path / model / "1.webp", 3)
    code, rows, _, _ = score(
        tmp_path / "x", tmp_path / "y", "--prompts", tmp_path / "p.jsonl", judge="ssim"
    )
    assert code == 0
    assert names(rows) == [("x", "1", 0, "ok"), ("y", "1", 0, "ok")]
    assert rows[0]["kind"] == "tie"


def test_a_table_is_read_and_its_bad_rows_are_their_samples_verdicts(score, tmp_path):
    draw(tmp_path / "a.png")
    header = ["uid", "image_model", "output", "prompt", "tags", "category", "draw"]
    rows = [
        ["1", "mine", "a.png", "a cube, red", "red; cube", "shapes", "2"],
        ["2", "mine", "a.png"],
        ["3", "mine", "nowhere.png", "x", "", "", ""],
        ["4", "mine", "a.png", "x", "", "", "-1"],
        ["5", "mine", "https://example.com/a.png", "x", "", "", ""],
    ]
    code, written, _, _ = score(table(tmp_path / "s.csv", [header, *rows]))
    found = [row["status"] for row in written]
    assert found == (split("ok parse_failure no_image parse_failure tool_error"))
    assert written[0]["tags"] == ["red", "cube"]
    assert written[0]["category"] == "shapes"
    assert written[0]["draw"] == 2
    assert written[0]["kind"] == "tig"
    assert code == 1
    reasons = [row["trace"][0]["reason"] for row in written[1:]]
    found = reasons[0]
    assert found == "3 cells, but the header has 7; quote cells that contain commas"
    assert reasons[2] == "`draw` must be a non-negative integer"
    assert reasons[3].endswith(
        "not a local file: https://example.com/a.png; pass --allow-urls HOST to download "
        "images from that host"
    )


def host_row(number, answer, **more):
    return {"doc_id": number, "doc": {}, "target": "", "arguments": [PROMPTS[number], {"until": []}],
            "resps": [[answer]], "filtered_resps": [answer], **more}  # fmt: skip


def test_an_answer_that_lmms_eval_wrote_names_no_file_that_it_likes(score, tmp_path):
    run = tmp_path / "run"
    draw(run / "source.png")
    draw(tmp_path / "saved" / "better.png", 2)
    (run / "link.png").symlink_to(tmp_path / "saved" / "better.png")
    named = [tmp_path / "saved" / "better.png", run / "link.png", run / "source.png"]
    rows = [
        host_row(
            number,
            json.dumps({"images": [str(path)]}),
            input_media=[str(run / "source.png")],
        )
        for number, path in enumerate(named)
    ]
    write_lines(run / "x_samples_edits.jsonl", rows)
    code, found, said, _ = score(run, "--kind", "tie", judge="ssim")
    assert (code, [row["status"] for row in found]) == (1, ["no_image"] * 3)
    assert "generate.trusted" in said
    (tmp_path / "o.yaml").write_text("generate: {trusted: [saved]}\n")
    place = tmp_path / "o.yaml"
    code, found, said, _ = score(run, "--kind", "tie", "--config", place, judge="ssim")
    assert [row["status"] for row in found] == ["ok", "ok", "no_image"]
    assert "returned one of its own input images" in said


def test_an_edit_is_shown_with_the_source_that_lmms_eval_kept(score, tmp_path):
    draw(tmp_path / "source.png")
    draw(tmp_path / "made.png", 2)
    answer = json.dumps({"images": [str(tmp_path / "made.png")]})
    rows = [
        host_row(0, answer, input_media=[str(tmp_path / "source.png")]),
        host_row(1, answer),
    ]
    write_lines(tmp_path / "x_samples_edits.jsonl", rows)
    path = tmp_path / "x_samples_edits.jsonl"
    code, found, said, _ = score(path, "--kind", "tie", judge="ssim")
    assert [row["status"] for row in found] == ["ok", "not_applicable"]
    assert code == 0
    assert "the sample has no source image" in said


def test_a_folder_of_broken_characters_is_read(score, tmp_path, vieval):
    folders = [tmp_path / "out" / os.fsdecode(name) for name in (b"mine", b"their\xff")]
    for folder in folders:
        for noise in range(1, 4):
            draw(folder / f"{noise}.png", noise)
    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS) + "\n")
    code, rows, _, _ = score(*folders, "--prompts", tmp_path / "prompts.txt")
    assert code == 0
    assert {row["image_model"] for row in rows} == {"mine", "their?"}
    assert "their?" in vieval("rank", tmp_path / "verdicts.jsonl").out


def test_an_image_is_found_and_shown_by_the_name_of_its_file(score, tmp_path, vieval):
    for name in ("000", "001"):
        draw(tmp_path / "mine" / f"{name}.png")
    (tmp_path / "prompts.txt").write_text("a cat\na dog\n")
    score(tmp_path / "mine", "--prompts", tmp_path / "prompts.txt")
    for name in ("001", "001.png", "mine/2"):
        assert vieval("show", tmp_path / "verdicts.jsonl", name).out.startswith(
            "own/tig/mine/2 (001.png): PQ 0.000 [ok]"
        )


def test_outputs_that_a_generator_did_not_make_end_no_run(score, tmp_path):
    draw(tmp_path / "a.png")
    rows = [
        ["image", "prompt"],
        *([f"{n}.png", "a hill"] for n in range(20)),
        ["a.png", "a hill"],
    ]
    _, found, _, _ = score(table(tmp_path / "t.csv", rows), judge="sharpness")
    assert (len(found), found[-1]["status"]) == (21, "ok")
    rows[1:21] = ([f"image {n}", "a hill"] for n in range(20))
    code, found, _, told = score(table(tmp_path / "t.csv", rows), judge="sharpness")
    assert (code, found) == (1, [])
    assert "missing output image" in told
