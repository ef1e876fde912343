"""What `vieval score` reads: folders with prompts, tables, and what lmms-eval wrote."""

import csv
import itertools
import json
import os

import PIL.Image
import pytest

from tests.stored_results import write_lines

PROMPTS = ["a red cube", "a blue ball, on grass", "a green hat"]


def draw(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = PIL.Image.linear_gradient("L").resize((64, 48))
    if seed:
        picture = PIL.Image.effect_noise((64, 48), 40 + seed)
    picture.convert("RGB").save(path)


@pytest.fixture
def score(score):
    """Scores with a judge that needs no model."""
    return lambda *arguments, judge="sharpness": score(*arguments, "--judge", judge)


def names(rows):
    fields = ("image_model", "uid", "status")
    return [(*(row[name] for name in fields), row.get("draw", 0)) for row in rows]


def statuses(rows):
    return [row["status"] for row in rows]


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.txt"
    path.write_text("\n".join(PROMPTS) + "\n")
    return "--prompts", path


def table(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def test_several_folders_and_edits_whose_sources_the_prompts_name(score, tmp_path):
    draw(tmp_path / "in" / "1.png")
    row = {"uid": "1", "texts": {"instruction": "add a hat"}}
    prompts = tmp_path / "p.jsonl"
    write_lines(prompts, [{**row, "images": {"source": "in/1.png"}}])
    folders = [tmp_path / model for model in "xy"]
    for folder in folders:
        draw(folder / "1.webp", 3)
    code, rows, _, _ = score(*folders, "--prompts", prompts, judge="ssim")
    assert code == 0
    assert names(rows) == [("x", "1", "ok", 0), ("y", "1", "ok", 0)]
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
    assert code == 1
    expected = "ok parse_failure no_image parse_failure tool_error"
    assert statuses(written) == expected.split()
    first, *bad = written
    found = [first[name] for name in ("tags", "category", "draw", "kind")]
    assert found == [["red", "cube"], "shapes", 2, "tig"]
    cells, _, draws, address = (row["trace"][0]["reason"] for row in bad)
    assert cells == "3 cells, but the header has 7; quote cells that contain commas"
    assert draws == "`draw` must be a non-negative integer"
    remedy = "pass --allow-urls HOST to download images from that host"
    assert address.endswith(f"not a local file: https://example.com/a.png; {remedy}")


def host_row(number, *images, **more):
    answer = json.dumps({"images": [*map(str, images)]})
    asked = {"arguments": [PROMPTS[number], {"until": []}], "doc": {}, "target": ""}
    replies = {"resps": [[answer]], "filtered_resps": [answer]}
    return {"doc_id": number, **asked, **replies, **more}


def test_an_answer_that_lmms_eval_wrote_names_no_file_that_it_likes(score, tmp_path):
    run = tmp_path / "run"
    better = tmp_path / "saved" / "better.png"
    source = run / "source.png"
    draw(source)
    draw(better, 2)
    (run / "link.png").symlink_to(better)
    named, media = (better, run / "link.png", source), {"input_media": [str(source)]}
    rows = [host_row(number, path, **media) for number, path in enumerate(named)]
    write_lines(run / "x_samples_edits.jsonl", rows)
    edits = (run, "--kind", "tie")
    code, found, said, _ = score(*edits, judge="ssim")
    assert (code, statuses(found)) == (1, ["no_image"] * 3)
    assert "generate.trusted" in said
    options = tmp_path / "o.yaml"
    options.write_text("generate: {trusted: [saved]}\n")
    _, found, said, _ = score(*edits, "--config", options, judge="ssim")
    assert statuses(found) == ["ok", "ok", "no_image"]
    assert "returned one of its own input images" in said


def test_an_edit_is_shown_with_the_source_that_lmms_eval_kept(score, tmp_path):
    source = tmp_path / "source.png"
    made = tmp_path / "made.png"
    draw(source)
    draw(made, 2)
    rows = [host_row(0, made, input_media=[str(source)]), host_row(1, made)]
    path = write_lines(tmp_path / "x_samples_edits.jsonl", rows)
    code, found, said, _ = score(path, "--kind", "tie", judge="ssim")
    assert (code, statuses(found)) == (0, ["ok", "not_applicable"])
    assert "the sample has no source image" in said


def test_a_folder_of_broken_characters_is_read(score, prompts, tmp_path, vieval):
    folders = [tmp_path / "out" / os.fsdecode(name) for name in (b"mine", b"their\xff")]
    for folder, noise in itertools.product(folders, range(1, 4)):
        draw(folder / f"{noise}.png", noise)
    code, rows, _, _ = score(*folders, *prompts)
    assert code == 0
    assert {row["image_model"] for row in rows} == {"mine", "their?"}
    assert "their?" in vieval("rank", tmp_path / "verdicts.jsonl").out


def test_an_image_is_found_and_shown_by_the_name_of_its_file(score, tmp_path, vieval):
    for name in ("000", "001"):
        draw(tmp_path / "mine" / f"{name}.png")
    (tmp_path / "prompts.txt").write_text("a cat\na dog\n")
    score(tmp_path / "mine", "--prompts", tmp_path / "prompts.txt")
    for name in ("001", "001.png", "mine/2"):
        said = vieval("show", tmp_path / "verdicts.jsonl", name).out
        assert said.startswith("own/tig/mine/2 (001.png): PQ 0.000 [ok]")


def test_outputs_that_a_generator_did_not_make_end_no_run(score, tmp_path):
    draw(tmp_path / "a.png")
    for absent, code, last in (("{}.png", 1, ["ok"]), ("image {}", 1, [])):
        images = [*(absent.format(n) for n in range(20)), "a.png"]
        rows = [["image", "prompt"], *([image, "a hill"] for image in images)]
        found = score(table(tmp_path / "t.csv", rows))
        assert (found[0], statuses(found[1])[-1:]) == (code, last)
        assert len(found[1]) in (21, 0)
    assert "missing output image" in found[3]
