"""`vieval rank` of folders, by judges that score and that compare, and the gate."""

import re

import pytest

from tests.brightness import by_brightness, images, prompts, rough
from tests.builders import an_image_file
from tests.fake_server import FakeServer, named
from tests.stored_results import read_lines

pytestmark = pytest.mark.usefixtures("few_draws")


@pytest.fixture
def both(tmp_path):
    """Folders of two generators, and prompts."""

    def made(number):
        mine = images(tmp_path, "mine", rough(0.6, 1), number)
        theirs = images(tmp_path, "theirs", rough(0.5, 2), number)
        return mine, theirs, "--prompts", prompts(tmp_path, number)

    return made


def test_verdicts_of_one_generator_are_no_gate(both, tmp_path, vieval):
    mine, _, *given = both(3)
    out = tmp_path / "v.jsonl"
    # grey squares have no sharpness
    vieval("rank", mine, *given, "--judge", "sharpness", "--out", out, code=1)
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
    said = vieval(*command, "--judge", "text_rendering", code=1).err
    run = (
        f"{out} contains verdicts from a run with --judge sharpness, now text_rendering"
    )
    assert said == f"vieval: {run}; choose another --out, or delete the file\n"
    assert out.read_bytes() == written
    assert f"wrote {out}" in vieval(*sharpness, code=1).err


def test_the_page_has_the_answer_and_the_pictures_side_by_side(both, tmp_path, vieval):
    given = both(8)
    for judge in ("pairwise", "viescore"):
        page = tmp_path / f"{judge}.html"
        with FakeServer(reply=by_brightness()) as server:
            flags = ("--judge", judge, "--html", page, *named(server))
            shown = vieval("rank", *given, *flags).out.splitlines()
        text = page.read_text()
        assert shown[0].replace("<", "&lt;") in text
        cards = text.split('id="cards"', 1)[1]
        assert cards.count("<article") == 8
        assert cards.count("<use href=") == 16
        assert len(re.findall(r"<figcaption><b>(?:mine|theirs)", cards)) == 16
        assert text.count("<script") == 1
        assert len(re.findall(r'<button type="button" data-card="', text)) == 8


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


def test_image_names_number_the_prompts(tmp_path, vieval):
    """Those of both folders, of which one counts from 0 and the other from 1."""
    folders = {"mine": "{}.png", "theirs": "image_{:02}_s3.png"}
    for first, (name, form) in enumerate(folders.items()):
        for n in range(11):
            path = tmp_path / name / form.format(n + first)
            an_image_file(path, (20 * n,) * 3, (16, 16))
    texts = [f"square {n}" for n in range(11)]
    (tmp_path / "prompts.txt").write_text("\n".join(texts))
    out = tmp_path / "v.jsonl"
    flags = f"--prompts {tmp_path}/prompts.txt --judge sharpness --out {out}"
    vieval(f"rank {tmp_path}/mine {tmp_path}/theirs {flags}", code=1)
    rows = read_lines(out)
    found = {(row["uid"], row["texts"]["prompt"]) for row in rows}
    assert found == {(str(n), text) for n, text in enumerate(texts, start=1)}
    output = lambda row: row["images"]["output"]["file"]
    files = {(row["image_model"], row["uid"]): output(row) for row in rows}
    assert files["mine", "11"] == "mine/10.png"
    assert files["theirs", "11"] == "theirs/image_11_s3.png"


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
