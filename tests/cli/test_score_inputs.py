"""What `vieval score` reads beside a samples file: folders with prompts, CSV, and what lmms-eval wrote of generators."""

import csv
import json
import os

import PIL.Image
import pytest

PROMPTS = ["a red cube", "a blue ball, on grass", "a green hat"]


def draw(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = PIL.Image.effect_noise((64, 48), 40 + seed) if seed else PIL.Image.linear_gradient("L").resize((64, 48))
    picture.convert("RGB").save(path)


@pytest.fixture
def score(score):
    """Scores with a judge that needs no model."""
    return lambda *arguments, judge="sharpness": score(*arguments, "--judge", judge)


def names(rows):
    return [(row["image_model"], row["uid"], row.get("draw", 0), row["status"]) for row in rows]


def table(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def test_two_generators_are_ranked_from_folders_and_a_text_file(score, tmp_path, vieval):
    for model in ("mine", "theirs"):
        for noise, number in enumerate((1, 2, 3)):
            draw(tmp_path / "out" / model / f"{number}.png", noise if model == "mine" else 0)
    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS) + "\n")
    code, rows, said, _ = score(tmp_path / "out", "--prompts", tmp_path / "prompts.txt")
    assert code == 0
    assert names(rows) == [(model, str(n), 0, "ok") for n in (1, 2, 3) for model in ("mine", "theirs")]
    assert {row["kind"] for row in rows} == {"tig"}
    sharpest = [row["scores"]["PQ"] for row in rows[::2]]
    assert sharpest[0] < 0.5 < min(sharpest[1:])
    assert said.splitlines()[-1].startswith(f"next: `vieval rank {tmp_path / 'verdicts.jsonl'}`")
    assert "mine" in vieval("rank", tmp_path / "verdicts.jsonl").out


def test_images_belong_to_the_prompt_whose_uid_they_are_called_by(score, tmp_path):
    prompts = table(tmp_path / "p.csv", [["uid", "prompt"], ["a", PROMPTS[0]], ["b", PROMPTS[1]], ["c", PROMPTS[2]]])
    for name in ("a.png", "a_1.png", "b.jpg", "grid.png"):
        draw(tmp_path / "mine" / name)
    code, rows, said, told = score(tmp_path / "mine", "--prompts", prompts)
    assert names(rows) == [
        ("mine", "a", 0, "ok"),
        ("mine", "a", 1, "ok"),
        ("mine", "b", 0, "ok"),
        ("mine", "c", 0, "no_image"),
    ]
    assert code == 1
    assert f"the image output is not there: {tmp_path / 'mine' / 'c.png'}" in said
    assert (
        f"vieval: {tmp_path / 'mine'}: images that belong to no prompt and are left out: 1, the first grid.png" in told
    )


def test_several_folders_and_edits_whose_sources_the_prompts_name(score, tmp_path):
    draw(tmp_path / "in" / "1.png")
    row = {"uid": "1", "texts": {"instruction": "add a hat"}, "images": {"source": "in/1.png"}}
    (tmp_path / "p.jsonl").write_text(json.dumps(row))
    for model in ("x", "y"):
        draw(tmp_path / model / "1.webp", 3)
    code, rows, _, _ = score(tmp_path / "x", tmp_path / "y", "--prompts", tmp_path / "p.jsonl", judge="ssim")
    assert (code, names(rows), rows[0]["kind"]) == (0, [("x", "1", 0, "ok"), ("y", "1", 0, "ok")], "tie")


@pytest.mark.parametrize(
    ("files", "prompts", "message"),
    [
        (["1.png"], "a\nb\n", "cannot match 1 image (1.png, ...) to 2 prompts of {p}"),
        ([], "a\n", "no images in it, nor in its folders"),
        (["1.png"], "", "no prompts in it"),
        (["1.png"], None, "p.txt: the samples cannot be read (No such file or directory)"),
    ],
)
def test_a_folder_that_does_not_fit_its_prompts_is_one_line(score, tmp_path, files, prompts, message):
    (tmp_path / "mine").mkdir()
    for name in files:
        draw(tmp_path / "mine" / name)
    if prompts is not None:
        (tmp_path / "p.txt").write_text(prompts)
    code, rows, _, said = score(tmp_path / "mine", "--prompts", tmp_path / "p.txt")
    assert (code, rows, said.count("\n")) == (1, [], 1)
    assert message.format(p=tmp_path / "p.txt") in said


def test_a_folder_of_images_alone_is_told_to_come_with_prompts(score, tmp_path):
    draw(tmp_path / "out" / "mine" / "1.png")
    for folder in (tmp_path / "out", tmp_path / "out" / "mine"):
        code, _, _, said = score(folder)
        assert (code, said) == (
            1,
            f"vieval: {tmp_path / 'out' / 'mine'}: images, and no prompts; name the file of what they were made of with "
            "--prompts, call it prompts.jsonl, or put a .txt beside each image\n",
        )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [["uid", "prompt"], ["7", "x"]],
            "cannot match 1 image (1.png, ...) to 1 prompt of {p}: no image there is called by a uid, as 7.png are",
        ),
        ([["uid", "prompt"], ["1", "x"], ["1", "y"]], "lines 2 and 3 are both '1'; give each a uid of its own"),
        ([["prompt", "output"], ["x", "y.png"]], "line 2: it names an output"),
        ([["prompt", "image_model"], ["x", "m"]], "line 2: a prompt has no image_model and no draw"),
        ([["uid", "prompt"], ["1"]], "line 2: 1 cells where the header has 2"),
    ],
)
def test_prompts_that_are_wrong_are_one_line(score, tmp_path, rows, message):
    draw(tmp_path / "mine" / "1.png")
    code, written, _, said = score(tmp_path / "mine", "--prompts", table(tmp_path / "p.csv", rows))
    assert (code, written, said.count("\n")) == (1, [], 1)
    assert message.format(p=tmp_path / "p.csv") in said


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
    assert [row["status"] for row in written] == ["ok", "parse_failure", "no_image", "parse_failure", "tool_error"]
    assert (written[0]["tags"], written[0]["category"], written[0]["draw"], written[0]["kind"]) == (
        ["red", "cube"],
        "shapes",
        2,
        "tig",
    )
    assert code == 1
    reasons = [row["trace"][0]["reason"] for row in written[1:]]
    assert reasons[0] == "3 cells where the header has 7; put texts with commas in quotes"
    assert reasons[2] == "draw must be a whole number from 0"
    assert reasons[3].endswith(
        "a file on this machine: https://example.com/a.png; --allow-urls HOST has the images of a host fetched"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"outptu,prompt\na.png,x\n", "no column 'outptu'; did you mean output? the columns are outptu, prompt"),
        (
            b"output:prompt\na.png:x\n",
            "no column of images; the columns are output:prompt; say which it is: --columns output=COLUMN",
        ),
        (
            ",".join(f"c{number}" for number in range(10_000)).encode() + b"\n",
            "no column of images; the columns are c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, "
            "c17, c18, c19 and 9980 more; say which it is",
        ),
        (b"output,subject\na.png,x\n", "is the column 'subject' an image or a text?"),
        (b"output,output\na.png,x\n", "two columns are called 'output'"),
        (b'output,prompt\na.png,"x\n', "line 2 is not readable as CSV (a quotation mark opens a cell"),
        (b"output,prompt\na.png,\xff\n", "not UTF-8; save the table as CSV UTF-8"),
        (b"", "no header in it"),
        (b"output,prompt\n", "no samples in it"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_line(score, tmp_path, content, message):
    (tmp_path / "s.csv").write_bytes(content)
    code, rows, _, said = score(tmp_path / "s.csv")
    assert (code, rows, said.count("\n")) == (1, [], 1)
    assert f"vieval: {tmp_path / 's.csv'}: " in said
    assert message in said


def host_row(number, answer, **more):
    return {"doc_id": number, "doc": {}, "target": "", "arguments": [PROMPTS[number], {"until": []}],
            "resps": [[answer]], "filtered_resps": [answer], **more}  # fmt: skip


def test_what_lmms_eval_wrote_of_its_own_generation_task_is_judged(score, tmp_path):
    folder = tmp_path / "run" / "my__model"
    draw(folder / "made" / "0.png")
    answers = [
        json.dumps({"text": "", "images": [str(folder / "made" / "0.png")]}),
        "I cannot draw.",
        json.dumps({"images": ["/nowhere.png"]}),
    ]
    file = folder / "20261121_000000_samples_some_task.jsonl"
    file.write_text("".join(f"{json.dumps(host_row(n, answer))}\n" for n, answer in enumerate(answers)))
    code, rows, said, _ = score(tmp_path / "run", "--kind", "tig")
    assert names(rows) == [
        ("my__model", f"some_task-{n}", 0, status) for n, status in enumerate(["ok", "no_image", "no_image"])
    ]
    assert code == 0
    assert "the generator answered with text only: 'I cannot draw.'" in said
    code, rows, _, said = score(file)
    assert code == 1
    assert "line 1 is no image that is to be judged (it is of a task that says no kind; name" in said


def test_an_answer_that_lmms_eval_wrote_names_no_file_that_it_likes(score, tmp_path):
    run = tmp_path / "run"
    draw(run / "source.png")
    draw(tmp_path / "saved" / "better.png", 2)
    (run / "link.png").symlink_to(tmp_path / "saved" / "better.png")
    named = [tmp_path / "saved" / "better.png", run / "link.png", run / "source.png"]
    rows = [
        host_row(number, json.dumps({"images": [str(path)]}), input_media=[str(run / "source.png")])
        for number, path in enumerate(named)
    ]
    (run / "x_samples_edits.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    code, found, said, _ = score(run, "--kind", "tie", judge="ssim")
    assert (code, [row["status"] for row in found]) == (1, ["no_image"] * 3)
    assert "generate.trusted" in said
    (tmp_path / "o.yaml").write_text("generate: {trusted: [saved]}\n")
    code, found, said, _ = score(run, "--kind", "tie", "--config", tmp_path / "o.yaml", judge="ssim")
    assert [row["status"] for row in found] == ["ok", "ok", "no_image"]
    assert "names one of its own conditions" in said


def test_an_edit_is_shown_with_the_source_that_lmms_eval_kept(score, tmp_path):
    draw(tmp_path / "source.png")
    draw(tmp_path / "made.png", 2)
    answer = json.dumps({"images": [str(tmp_path / "made.png")]})
    rows = [host_row(0, answer, input_media=[str(tmp_path / "source.png")]), host_row(1, answer)]
    (tmp_path / "x_samples_edits.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    code, found, said, _ = score(tmp_path / "x_samples_edits.jsonl", "--kind", "tie", judge="ssim")
    assert [row["status"] for row in found] == ["ok", "not_applicable"]
    assert code == 0
    assert "the sample has no image source" in said


@pytest.mark.parametrize("named", ["samples.jsonl", "samples.csv"])
def test_a_pipe_is_refused_and_not_read_in_part(score, tmp_path, named):
    pipe = tmp_path / named
    os.mkfifo(pipe)
    code, rows, _, told = score(pipe)
    assert (code, rows) == (1, [])
    assert told == f"vieval: {pipe}: not a plain file; write what it gives to a file, and name that\n"


def test_a_folder_with_a_name_of_broken_characters_gives_verdicts_that_can_be_read(score, tmp_path, vieval):
    folders = [tmp_path / "out" / os.fsdecode(name) for name in (b"mine", b"their\xff")]
    for folder in folders:
        for noise in range(1, 4):
            draw(folder / f"{noise}.png", noise)
    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS) + "\n")
    code, rows, _, _ = score(*folders, "--prompts", tmp_path / "prompts.txt")
    assert code == 0
    assert {row["image_model"] for row in rows} == {"mine", "their?"}
    assert "their?" in vieval("rank", tmp_path / "verdicts.jsonl").out


def test_a_table_whose_prompts_have_an_unknown_name_ends_before_anything_is_asked(score, tmp_path):
    draw(tmp_path / "0.png")
    rows = table(tmp_path / "s.csv", [["image", "wording"], ["0.png", "a cat"]])
    line = f"vieval: {rows}: no prompt was found; say --columns prompt=wording (columns left out: wording)"
    assert score(rows, judge="clip_score")[3].splitlines() == [line]
    assert score(rows)[3].splitlines() == [f"{line}; or name the kind of all, such as --kind tig"]
    assert score(rows, "--kind", "tig")[0] == 0
    assert score(rows, "--columns", "prompt=wording")[0] == 0


def test_an_image_is_found_and_shown_by_the_name_of_its_file(score, tmp_path, vieval):
    for name in ("000", "001"):
        draw(tmp_path / "mine" / f"{name}.png")
    (tmp_path / "prompts.txt").write_text("a cat\na dog\n")
    score(tmp_path / "mine", "--prompts", tmp_path / "prompts.txt")
    for name in ("001", "001.png", "mine/2"):
        assert vieval("show", tmp_path / "verdicts.jsonl", name).out.startswith(
            "own/tig/mine/2 (001.png): PQ 0.000 [ok]"
        )


def test_several_folders_are_labelled_together(tmp_path, vieval):
    for model in ("mine", "theirs"):
        draw(tmp_path / model / "000.png")
    (tmp_path / "prompts.txt").write_text("a cat\n")
    folders = tmp_path / "mine", tmp_path / "theirs"
    said = vieval("label", *folders, "--prompts", tmp_path / "prompts.txt", "--out", tmp_path / "l.html").out
    assert said.splitlines()[0].endswith(" MB): 2 of 2 to label")
    assert "drawn from 2 of 2 groups" in said
    tables = [
        table(folder / "t.csv", [["image", "prompt", "image_model"], ["000.png", "a cat", folder.name]])
        for folder in folders
    ]
    assert "2 of 2 to label\ndrawn from 2 of 2 groups" in vieval("label", *tables, "--out", tmp_path / "l.html").out


def test_a_source_of_plain_words_makes_no_edit_of_a_csv(score, tmp_path):
    draw(tmp_path / "a.png")
    rows = [["uid", "image", "caption", "source"], *([str(n), "a.png", "a hill", "laion"] for n in range(25))]
    path = table(tmp_path / "t.csv", rows)
    code, found, _, told = score(path, "--columns", "source=source", judge="sharpness")
    assert (code, found) == (1, [])
    assert (
        "t.csv: none of the first 20 rows can be judged, and nothing was asked; line 2: the image source is not" in told
    )
    assert not list(tmp_path.glob("verdicts.jsonl*"))
    code, found, _, told = score(path, judge="sharpness")
    assert (code, {(row["kind"], row["status"]) for row in found}) == (0, {("tig", "ok")})
    assert "the column 'source' holds no images (such as 'laion') and is left out" in told


def test_two_generators_in_one_table_are_told_apart_by_the_column_that_the_error_asks_for(score, tmp_path):
    draw(tmp_path / "a.png")
    rows = [["uid", "image", "caption", "source"], *(["p0", "a.png", "a hill", model] for model in ("new", "old"))]
    path = table(tmp_path / "t.csv", rows)
    code, _, _, err = score(path)
    assert (code, "name the column of the generator by --columns image_model=COLUMN" in err) == (1, True)
    code, records, _, _ = score(path, "--columns", "image_model=source")
    assert (code, names(records)) == (0, [("new", "p0", 0, "ok"), ("old", "p0", 0, "ok")])


def test_addresses_of_sources_that_are_not_fetched_end_the_run(score, tmp_path):
    draw(tmp_path / "a.png")
    edits = [[str(n), "a.png", "paint it red", f"https://example.com/{n}"] for n in range(25)]
    path = table(tmp_path / "t.csv", [["uid", "image", "instruction", "source"], *edits])
    for flags in ((), ("--allow-urls", "example.org")):
        code, found, _, told = score(path, *flags)
        assert (code, found) == (1, [])
        assert "--allow-urls HOST fetches it, --columns source= leaves the column out" in told
    assert score(path, "--columns", "source=", "--kind", "tie", judge="sharpness")[0] == 0


def test_a_kind_that_nothing_tells_is_asked_for(score, tmp_path):
    draw(tmp_path / "a.png")
    rows = [["image", "prompt", "source"], *([["a.png", "red", "a.png"]] * 25)]
    _, _, _, told = score(
        table(tmp_path / "t.csv", rows), "--columns", "prompt=prompt,source=source", judge="sharpness"
    )
    assert "has no kind: say which, such as --kind tie, or add a column instruction" in told


def test_outputs_that_a_generator_did_not_make_end_no_run(score, tmp_path):
    draw(tmp_path / "a.png")
    rows = [["image", "prompt"], *([f"{n}.png", "a hill"] for n in range(20)), ["a.png", "a hill"]]
    _, found, _, _ = score(table(tmp_path / "t.csv", rows), judge="sharpness")
    assert (len(found), found[-1]["status"]) == (21, "ok")
    rows[1:21] = ([f"image {n}", "a hill"] for n in range(20))
    code, found, _, told = score(table(tmp_path / "t.csv", rows), judge="sharpness")
    assert (code, found) == (1, [])
    assert "the image output is not there" in told
