"""`vieval rank` of folders, by judges that score and that compare, and the gate."""

import csv
import re
from shlex import split

import numpy as np
import PIL.Image
import pytest

from tests.brightness import by_brightness, images, prompts, rough
from tests.fake_server import FakeServer, named
from tests.stored_results import read_lines

pytestmark = pytest.mark.usefixtures("few_draws")


def rank(vieval, server, *arguments, code=0):
    said = vieval("rank", *arguments, *named(server), code=code)
    return said.out.splitlines(), said.err


@pytest.fixture
def both(tmp_path):
    """Folders of two generators, and prompts."""

    def made(number):
        mine = images(tmp_path, "mine", rough(0.6, 1), number)
        theirs = images(tmp_path, "theirs", rough(0.5, 2), number)
        return mine, theirs, "--prompts", prompts(tmp_path, number)

    return made


def test_a_gate_that_cannot_decide_is_refused_first(both, tmp_path, vieval):
    mine, theirs, *given = both(3)
    out = tmp_path / "v.jsonl"
    given += ["--judge", "sharpness"]
    gate = [*given, "--margin", "0.1", "--out", out]
    compare = "--margin requires another generator to compare mine with; pass"
    one = "--margin requires one judge, got 2 (sharpness, histogram); pass only one"
    for arguments, line in (
        ([mine, *gate], f"{compare} the folder of its images too"),
        ([mine, theirs, *gate, "--judge", "histogram"], one),
    ):
        assert vieval("rank", *arguments, code=1).err == f"vieval: {line}\n"
    assert not out.exists()
    # grey squares have no sharpness
    vieval("rank", mine, *given, "--out", out, code=1)
    [line] = vieval("rank", out, "--margin", "0.1", code=1).err.splitlines()
    assert line.endswith("to compare mine with; pass verdicts on its images too")


def test_judges_that_cannot_run_do_not_take_the_others_along(both, tmp_path, vieval):
    judges = ("--judge", "sharpness", "--judge", "clip_score")
    absent = ("--scorer", tmp_path / "absent")
    said = vieval("rank", *both(8), *judges, *absent, code=1)
    assert "Mean PQ over prompts, by sharpness" in said.out
    assert "clip_score: " in said.err.splitlines()[-1]


def test_verdicts_of_another_judge_are_not_replaced(both, tmp_path, vieval):
    out = tmp_path / "v.jsonl"
    command = ["rank", *both(4), "--out", out]
    sharpness = [*command, "--judge", "sharpness"]
    vieval(*sharpness, code=1)  # grey squares have no sharpness
    written = out.read_bytes()
    assert vieval(*command, "--judge", "text_rendering", code=1).err == (
        f"vieval: {out} contains verdicts from a run with --judge sharpness, now text_rendering; "
        "choose another --out, or delete the file\n"
    )
    assert out.read_bytes() == written
    assert f"wrote {out}" in vieval(*sharpness, code=1).err


def test_the_page_has_the_answer_and_the_pictures_side_by_side(both, tmp_path, vieval):
    given = both(8)
    for judge in ("pairwise", "viescore"):
        page = tmp_path / f"{judge}.html"
        with FakeServer(reply=by_brightness()) as server:
            flags = ("--judge", judge, "--html", page)
            shown, _ = rank(vieval, server, *given, *flags)
        text = page.read_text()
        assert shown[0].replace("<", "&lt;") in text
        cards = text.split('id="cards"', 1)[1]
        assert cards.count("<article") == 8
        assert cards.count("<use href=") == 16
        assert len(re.findall(r"<figcaption><b>(?:mine|theirs)", cards)) == 16
        assert text.count("<script") == 1
        assert len(re.findall(r'<button type="button" data-card="', text)) == 8


def test_the_best_image_of_each_prompt(tmp_path, vieval):
    mine = images(tmp_path, "mine", rough(0.5, 1), 4, draws=3)
    given = split(
        f"{mine} --prompts {prompts(tmp_path, 4)} --judge viescore --best-of "
        f"--tables {tmp_path}/t"
    )
    with FakeServer(reply=by_brightness()) as server:
        shown, _ = rank(vieval, server, *given)
    assert shown[0] == "in all rows: generator = mine, of = 3"
    with (tmp_path / "t" / "best_of.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    grey = lambda n, draw: round(255 * rough(0.5, 1)(n, draw)) / 255
    scores = {n: [round(10 * grey(n, draw)) for draw in range(3)] for n in range(4)}
    expected = [(f"p{n}", int(np.argmax(levels)), "3") for n, levels in scores.items()]
    assert [(row[0], int(row[2]), row[4]) for row in rows] == expected
    assert rows[0][5] == str(mine / f"p0_{np.argmax(scores[0])}.png")


def test_equal_scores_need_prompts_and_equal_files_no_judge(tmp_path, vieval):
    levels = {"mine": 0.5, "same": 0.5, "theirs": 0.51}
    mine, same, theirs = (
        images(tmp_path, name, lambda prompt, draw, level=level: level)
        for name, level in levels.items()
    )
    given = ["--prompts", prompts(tmp_path), "--judge", "viescore", "--margin"]
    with FakeServer(reply=by_brightness()) as server:
        shown, said = rank(vieval, server, mine, theirs, *given, "0.02", code=4)
        few = "with 24 prompts, equal scores cannot pass (148 prompts are required)"
        assert few in said
        enough = "be enough to decide, if the difference stays the same."
        assert any(line.endswith(enough) for line in shown)
        asked = server.stats()["requests"]
        for margin in ("0.02", "0"):
            shown, _ = rank(vieval, server, mine, same, *given, margin)
            assert len(shown) == 2
            assert "mine is not worse than same" in shown[0]
            assert "identical files" in shown[1]
        assert server.stats()["requests"] == asked
        out = tmp_path / "v.jsonl"
        rank(vieval, server, mine, same, *given, "0.02", "--out", out)
    assert "identical files" in vieval("rank", out, "--margin", "0.02").out


def test_the_very_same_files_that_are_no_images_do_not_pass(tmp_path, vieval):
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        for number in range(3):
            (tmp_path / name / f"p{number}.png").write_text("broken")
    given = [tmp_path / "new", tmp_path / "old", "--prompts", prompts(tmp_path, 3)]
    given += ["--judge", "sharpness", "--margin", "0.05"]
    for further in ([], ["--out", tmp_path / "v.jsonl"]):
        said = vieval("rank", *given, *further, code=1)
        assert "cannot compare new with old: new: no prompts with a score" in said.err
        assert "identical files" not in said.out


def test_columns_of_prompts_may_have_other_names(both, tmp_path, vieval):
    *folders, _, path = both(3)
    rows = [f"p{n},a grey square {n}\n" for n in range(3)]
    path.write_text("".join(["name,wording\n", *rows]))
    out = tmp_path / "v.jsonl"
    given = f"--prompts {path} --judge sharpness --out {out} --columns".split()
    # grey squares have no sharpness
    vieval("rank", *folders, *given, "uid=name,prompt=wording", code=1)
    found = {(row["uid"], row["texts"]["prompt"]) for row in read_lines(out)}
    assert found == {(f"p{n}", f"a grey square {n}") for n in range(3)}
    said = vieval("rank", *folders, *given, "uid=nam,prompt=wording", code=1).err
    [line] = said.splitlines()
    assert "'nam'" in line


def numbered(folder, names):
    """Images brighter and brighter, under these names."""
    folder.mkdir()
    for place, name in enumerate(names):
        PIL.Image.new("RGB", (16, 16), (20 * place,) * 3).save(folder / name)
    return folder


def test_image_names_number_the_prompts(tmp_path, vieval):
    mine = numbered(tmp_path / "mine", [f"{n}.png" for n in range(11)])
    names = [f"image_{n:02}_s3.png" for n in range(1, 12)]
    theirs = numbered(tmp_path / "theirs", names)
    texts = [f"square {n}" for n in range(11)]
    (tmp_path / "prompts.txt").write_text("\n".join(texts))
    (tmp_path / "prompts.csv").write_text("prompt\n" + "\n".join(texts))
    for name in ("prompts.txt", "prompts.csv"):
        out = tmp_path / f"{name}.jsonl"
        flags = f"--prompts {tmp_path / name} --judge sharpness --out {out}"
        vieval(f"rank {mine} {theirs} {flags}", code=1)
        rows = read_lines(out)
        found = {(row["uid"], row["texts"]["prompt"]) for row in rows}
        assert found == {(str(n), text) for n, text in enumerate(texts, start=1)}
        files = {
            (row["image_model"], row["uid"]): row["images"]["output"]["file"]
            for row in rows
        }
        assert files["mine", "3"] == "mine/2.png"
        assert files["mine", "11"] == "mine/10.png"
        assert files["theirs", "11"] == "theirs/image_11_s3.png"


def test_folders_with_prompts_of_their_own_need_no_flag(both, vieval):
    mine, theirs, _, table = both(3)
    table.rename(mine / "prompts.csv")
    with FakeServer(reply=by_brightness()) as server:
        shown, _ = rank(vieval, server, mine, theirs, "--judge", "viescore")
        assert shown[1].endswith(", on 3 prompts.")
        (mine / "prompts.csv").unlink()
        for file in [*mine.glob("*.png"), *theirs.glob("*.png")]:
            file.with_suffix(".txt").write_text("a grey square")
        shown, _ = rank(vieval, server, mine, theirs, "--judge", "viescore")
        assert shown[1].endswith(", on 3 prompts.")


READ = ("prompts.csv", "mine/p0.png", "people.csv", "people.html")


@pytest.mark.parametrize(
    ("flag", "suffix"), [("--out", ".jsonl"), ("--html", ".html"), ("--junit", ".xml")]
)
@pytest.mark.parametrize("read", READ)
def test_nothing_that_is_read_is_replaced(both, tmp_path, vieval, flag, suffix, read):
    header = "benchmark,part,uid,generator,draw,rater,aspect,value\n"
    for name in ("people.csv", "people.html"):
        (tmp_path / name).write_text(header)
    given = [*both(2), "--judge", "sharpness", "--margin", "0.1"]
    path = tmp_path / read
    before = path.read_bytes()
    human = ["--human", path] if read.startswith("people") else []
    [line] = vieval("rank", *given, *human, flag, path, code=1).err.splitlines()
    assert path.read_bytes() == before
    ending = f"{flag} must end in {suffix}, got {path}"
    if read.endswith(suffix):
        ending = f"overwritten; choose another {flag}"
    assert line.endswith(ending)
