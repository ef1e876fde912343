"""Submissions: one that is right is taken, and each that is not is refused in a line."""

import functools
import json
import operator
import re
import shutil

import pytest

from tests.leaderboard import cards
from tests.refusals import refusal
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.card.from_results import results_of_model
from vieval_plugin.leaderboard.submissions import (
    VERSION,
    Submission,
    read_submissions,
    run_of_submission,
    write_submission,
)
from vieval_plugin.results.runs import load_results


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """The folder of a card that is right, and the data folder that it is about."""
    folder = tmp_path_factory.mktemp("right")
    data = cards.ratings(folder / "data")
    return cards.card(folder / "card", cards.samples(data)), data


@pytest.fixture
def submission(right, tmp_path, monkeypatch):
    """A copy of it that a test may spoil."""
    monkeypatch.setenv("VIEVAL_DATA", str(right[1]))
    return shutil.copytree(right[0], tmp_path / "submission")


@pytest.fixture
def refused(submission, vieval):
    """Checks the submission, and gives the one line that refuses it."""

    def check(code=1):
        [line] = vieval("leaderboard", "check", submission, code=code).err.splitlines()
        return line

    return check


def test_a_right_one_is_taken_and_says_what_cannot_be_shown(submission, vieval):
    recomputed, limit = vieval("leaderboard", "check", submission).out.splitlines()
    said = "ImagenHub: recomputed 40 verdicts of maker/mine-7b from their replies, then"
    assert recomputed.startswith(said)
    assert limit.startswith("no check can show which model wrote the replies")


def test_it_is_small_and_the_same(submission, vieval, tmp_path, right):
    vieval("leaderboard", "add", submission, "--out", tmp_path / "board")
    [kept] = read_submissions(tmp_path / "board" / "submissions")
    [file] = (tmp_path / "board" / "submissions").iterdir()
    assert file.name.startswith("mine-7b-20")
    assert "as seen" not in file.read_text()
    [run] = kept.runs
    again = run_of_submission(run, "mine", cards.samples(right[1]))
    [before] = load_results([submission / cards.FILE]).runs
    family = benchmark("imagenhub").report
    before_cells, again_cells = (
        family.findings("imagenhub", ("cig",), [of], cards.OPTIONS).cells
        for of in (before, again)
    )
    expected = pytest.approx([*again_cells.values()], nan_ok=True)
    assert [*before_cells.values()] == expected
    assert again.setting == "0shot"
    assert again.aspects == before.aspects
    assert len(again.records["cig"]) == 40


def change_score(lines):
    lines[0]["scores"]["O"] = 1.0 if lines[0]["scores"]["O"] < 1 else 0.5


def change_targets(count, change):
    """A change of the first so many targets."""

    def apply(lines):
        for line in lines[:count]:
            target = json.loads(line["target"])
            change(target)
            line |= {"target": json.dumps(target), "uid": target["id"]["uid"]}

    return apply


def rename(target):
    target["id"]["uid"] = f"other_{target['id']['uid']}"


def move(target):
    target["id"]["benchmark"] = "vieval_demo"


def rate(target):
    target["ratings"]["SC"][0] = 0.25


def misname_step(lines):
    lines[0]["trace"] = [{**lines[0]["trace"][0], "path": ["sample"]}]


def empty_reasons(lines):
    for step in lines[9]["trace"]:
        step["reason"] = " "


SAMPLE = "imagenhub/cig/ControlNet/sample_0.jpg"
OTHERS = "imagenhub/cig/ControlNet/other_sample_0.jpg"
UNKNOWN = f"ImagenHub: 3 of 40 verdicts are on unknown samples (first: {OTHERS})"
ELSEWHERE = "its files also hold verdicts on vieval_demo; use one file per benchmark"
RATED = "sample_0.jpg: its human ratings or votes differ from the benchmark's"
NO_SCORE = "has scores, but its trace shows that the judge gave none"
#: Changes of lines of verdicts, whether the card is made of them again, and what refuses them.
CHANGES = {
    "score": (change_score, True, f"{SAMPLE}: the verdict is "),
    "hidden failure": (lambda lines: lines[9].update(status="ok"), True, "ok, but its replies give parse_failure"),
    "step": (misname_step, False, NO_SCORE),
    "uids": (change_targets(3, rename), False, UNKNOWN),
    "benchmark": (change_targets(3, move), False, ELSEWHERE),
    "ratings": (change_targets(1, rate), True, RATED),
    "twice": (lambda lines: lines.append(lines[0]), False, f"lines 1 and 41 are both verdicts by viescore on {SAMPLE}"),
    "reason": (empty_reasons, False, "failed (parse_failure) without a reason"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "remade", "message"), CHANGES.values(), ids=CHANGES)
def test_changed_verdicts(submission, refused, change, remade, message):
    cards.edit(submission, lambda lines: change(lines) or lines)
    if remade:
        cards.rewritten(submission)  # the card says what the changed verdicts do
    assert message in refused()


def test_no_card_is_made_of_changed_verdicts(submission):
    cards.edit(submission, lambda lines: change_score(lines) or lines)
    line = refusal(results_of_model, [submission / cards.FILE], None)
    assert re.search("sample_0.jpg: its O is .*, but its replies give", line)


ENTRY, STATISTICS = ("entries", 0), ("statistics",)
OUTSIDE = "refers to a file outside its folder (../data/x)"
OTHER_OPTIONS = "ImagenHub: the options on the card differ from those in its verdicts"
MOST_DRAWS = "the card's statistics must be those of `vieval card`, with at most 10,000"
UNCOVERED = "a benchmark of the leaderboard (imagenhub, genai_bench_tiger), got none"


@pytest.mark.parametrize(
    ("where", "fields", "message"),
    [
        ((*ENTRY, "files"), {"../data/x": "0"}, OUTSIDE),
        (ENTRY, {"options": {"judges": {}}}, OTHER_OPTIONS),
        (ENTRY, {"judge": "pairwise"}, "is 'pairwise' on the card, but"),
        (ENTRY, {"setting": "1shot"}, "is '1shot' on the card, but"),
        (ENTRY, {"pack_hash": "0"}, "is '0' on the card, but"),
        ((*ENTRY, "numbers", -1), {"system": cards.MODEL}, "spearman O all is value"),
        (STATISTICS, {"draws": 10**9}, MOST_DRAWS),
        ((), {"entries": []}, f"the card must cover {UNCOVERED}"),
    ],
)
def test_a_changed_card(submission, refused, where, fields, message):
    def change(card):
        functools.reduce(operator.getitem, where, card).update(fields)

    cards.on_card(submission, change)
    assert message in refused()


def test_a_file_that_was_changed_later_or_is_missing(submission, refused):
    file = submission / cards.FILE
    file.write_text(f"{file.read_text()}\n")
    assert "not the verdicts that the card was made from" in refused()
    file.unlink()
    assert "mine.jsonl: not found" in refused()


def test_an_image_and_a_text_that_are_not_the_benchmarks(tmp_path, monkeypatch, vieval):
    data = cards.ratings(tmp_path / "data")
    monkeypatch.setenv("VIEVAL_DATA", str(data))
    museum = data / "imagenhub" / "museum" / "ImagenHub_Control-Guided_IG"
    for folder in ("ControlNet", "UniControl", "input"):
        (museum / folder).mkdir(parents=True)
        for number in range(20):
            file = museum / folder / f"sample_{number}.jpg"
            file.write_text(f"{folder} {number}")
    folder = cards.card(tmp_path / "card", cards.samples(data))
    vieval("leaderboard", "check", folder)
    (museum / "UniControl" / "sample_3.jpg").write_bytes(b"the benchmark's own")
    lookup = {"sample_5.jpg": {"text": "a blue cube", "control_type": "canny"}}
    (museum / "dataset_lookup.json").write_text(json.dumps(lookup))
    image, *texts = vieval("leaderboard", "check", folder, code=1).err.splitlines()
    assert "UniControl/sample_3.jpg: judged with content of " in image
    found = [line.partition(": judged")[2] for line in texts]
    assert found == [" with texts other than the benchmark's"] * 2


def test_fewer_verdicts_than_the_card_says(submission, vieval):
    cards.edit(submission, lambda lines: lines[1:])
    lines = vieval("leaderboard", "check", submission, code=1).err.splitlines()
    assert "the card counts 40 verdicts, but its files hold 39" in lines[0]
    assert any("the digest of its samples differs" in line for line in lines)
    assert any(" on the card, but its verdicts give value " in line for line in lines)


def test_votes_are_checked_and_kept_too(tmp_path, monkeypatch, vieval):
    monkeypatch.setenv("VIEVAL_DATA", str(tmp_path / "data"))
    contests = cards.contests(tmp_path / "data")
    folder = cards.card(tmp_path / "card", contests, "pairwise")
    vieval("leaderboard", "add", folder, "--out", tmp_path)
    [submitted] = read_submissions(tmp_path / "submissions")
    [kept] = submitted.runs
    [before] = load_results([folder / cards.FILE]).runs
    again = run_of_submission(kept, "mine", contests)
    kept_choices, own_choices = (
        [record.verdict.choice for [record] in run.records["edit"]]
        for run in (again, before)
    )
    assert kept_choices == own_choices
    votes = {"forward": "both_good", "reverse": "both_good"}
    cards.edit(folder, lambda lines: lines[0]["choice"].update(votes=votes) or lines)
    cards.rewritten(folder)
    [line] = vieval("leaderboard", "check", folder, code=1).err.splitlines()
    assert "genai_bench_tiger/edit/0: " in line
    assert ", but its replies give" in line


def test_a_damaged_submission_of_the_page_is_one_line(submission, vieval, tmp_path):
    vieval("leaderboard", "add", submission, "--out", tmp_path)
    [file] = (tmp_path / "submissions").iterdir()
    document = json.loads(file.read_text())
    for broken in ("{", '{"submission": 9}', json.dumps({**document, "runs": [{}]})):
        file.write_text(broken)
        made = vieval("leaderboard", "make", "--out", tmp_path, code=1)
        [line] = made.err.splitlines()
        assert str(file) in line


def test_another_submission_of_the_same_name_and_date_is_refused(tmp_path):
    first = Submission(VERSION, "lab/model", "2026-11-23", ())
    assert write_submission(first, tmp_path) == write_submission(first, tmp_path)
    other = Submission(VERSION, "other/model", "2026-11-23", ())
    line = refusal(write_submission, other, tmp_path)
    assert "already holds a different submission" in line
