"""The file that verdicts are appended to: who may write to it, and what is asked for again."""

import json
import os
import re
import shutil
from pathlib import Path
from shlex import split

import pytest

from tests.builders import a_contest, a_sample, a_sample_row, an_image_file
from tests.refusals import refusal
from tests.stored_results import write_lines
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.judges.protocol import Choice, Status, Step, Verdict
from vieval_plugin.readers.image_folder import read_folders
from vieval_plugin.readers.samples import read_samples
from vieval_plugin.records import Provenance
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.run.verdict_lines import (
    Inputs,
    run_file,
    run_hash,
    verdict_line,
    write_run_file,
)
from vieval_plugin.run.verdict_log import VerdictLog, partial_file

SOURCE = Provenance("sharpness", (), ("PQ",))
RUN = run_hash(SOURCE)


def log(path, total=4):
    return VerdictLog(path, Inputs("s.jsonl", total, "f"), {RUN: SOURCE})


def line(row, status="ok"):
    document = {"row": row, "run": RUN, "status": status, "uid": "u" * (row + 1)}
    return json.dumps(document)


def images(folder, colour):
    for n in range(3):
        an_image_file(folder / f"{n}.png", (colour, n, 0), (40, 40))
    return folder


def test_the_fields_of_a_line_are_those_of_the_page(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "reference" / "results.md"
    text = page.read_text(encoding="utf-8")
    section = text.split("### A line of verdicts\n")[1].split("\n#")[0]
    named = set(re.findall(r"`(\w+)`", section))
    told = {"answer": "{}", "reason": "text around it", "attempt": 1}
    status = Status.REPAIRED
    step = Step(("SC",), status, {"SC": 5.0}, **told)
    bounds = {"SC": (0.4, 0.6)}
    verdict = Verdict({"SC": 0.5}, status, "blurred", (step,), bounds, ("a rule",))
    choice = Choice({"forward": "first"}, {"forward": 0.5}, ({"SC": 0.5}, {"SC": 0.4}))
    about = {"draw": 1, "tags": ("a",), "category": "c", "group": "g"}
    of_sample, of_contest = (
        json.loads(verdict_line(0, item, Outcome(told, 3, 4), SOURCE, RUN, tmp_path))
        for item, told in (
            (a_sample(benchmark="vieval_demo", **about), verdict),
            (a_contest(), Verdict({}, Status.OK, choice=choice)),
        )
    )
    found = {*of_sample, *of_contest}
    assert found | {*of_sample["trace"][0], *of_contest["choice"]} <= named
    assert found >= set(split("bounds target draw group choice tokens"))


def refused(path):
    """What is said of a file that no run may write to."""
    return refusal(lambda: log(path).__enter__())


def test_two_runs_do_not_write_to_one_file(tmp_path):
    path = tmp_path / "v.jsonl.partial"
    with log(path) as first:
        first.append(RUN, 0, line(0), Usage())
        assert "another run is writing to it" in refused(path)
        first.append(RUN, 1, line(1), Usage())
        assert [json.loads(text)["row"] for text in first.lines(RUN)] == [0, 1]


@pytest.mark.parametrize(
    "content", ['{"key": "sk-123"}', '{"key": "sk-123"}\n', "a: 1\nb: 2", "\0\0"]
)
def test_the_file_of_somebody_else_stays_as_it_is(content, tmp_path):
    path = tmp_path / "v.jsonl.partial"
    path.write_text(content)
    assert "contains a run started by another program" in refused(path)
    assert path.read_text() == content


@pytest.mark.parametrize(
    "make", [lambda path: path.symlink_to("key.json"), os.mkfifo, os.mkdir]
)
def test_what_is_no_file_is_left_alone(make, tmp_path):
    (tmp_path / "key.json").write_text('{"key": 1}')
    make(path := tmp_path / "v.jsonl.partial")
    assert "not a regular file; remove it" in refused(path)
    assert (tmp_path / "key.json").read_text() == '{"key": 1}'


def test_a_first_line_that_was_torn_as_it_was_written_is_written_anew(tmp_path):
    with log(path := tmp_path / "v.jsonl.partial") as first:
        first.append(RUN, 0, line(0), Usage())
    path.write_bytes(path.read_bytes()[:40])
    with log(path) as again:
        assert again.total == 0
        again.append(RUN, 2, line(2), Usage())
        assert again.holds(RUN, 2)


def test_failed_calls_are_asked_again_and_refusals_are_not(tmp_path):
    path = tmp_path / "v.jsonl.partial"
    with log(path) as first:
        for row, status in enumerate(("ok", "api_error", "refusal", "tool_error")):
            first.append(RUN, row, line(row, status), Usage())
    path.write_bytes(path.read_bytes() + b"\0\0\n\n")
    with log(path) as again:
        assert [again.holds(RUN, row) for row in range(4)] == [True, False, True, False]
        again.append(RUN, 1, line(1), Usage())
        statuses = [json.loads(text)["status"] for text in again.lines(RUN)]
        assert statuses == ["ok", "ok", "refusal"]


def test_samples_that_are_the_file_of_verdicts_are_refused(tmp_path, vieval):
    images(tmp_path / "mine", 9)
    row = a_sample_row("1", "mine/1.png")
    out = tmp_path / "h.jsonl"
    samples = write_lines(partial_file(out), [row])
    command = ("score", samples, "--judge", "sharpness", "--out", out)
    assert "is an input file" in vieval(*command, code=1).err
    assert json.loads(samples.read_text()) == row


def test_other_images_under_the_same_names_are_other_inputs(tmp_path):
    (tmp_path / "p.txt").write_text("a\nb\nc\n")

    def fingerprint(folder):
        return read_folders([folder], tmp_path / "p.txt").fingerprint

    first = images(tmp_path / "a" / "mine", 9)
    second = images(tmp_path / "b" / "mine", 200)
    known = {fingerprint(first), fingerprint(second)}
    assert len(known) == 2
    assert fingerprint(first) in known
    for folder in (first, second):  # a table beside them
        (folder / "metadata.csv").write_text("file_name,text\n0.png,x\n1.png,y\n")
    tables = [read_samples(folder, "tig").fingerprint for folder in (first, second)]
    assert tables[0] != tables[1]
    (first / "metadata.csv").unlink()
    shutil.copy(second / "0.png", first / "0.png")
    assert fingerprint(first) not in known


def test_verdicts_that_were_there_can_be_read_until_others_are(tmp_path):
    out = tmp_path / "v.jsonl"
    with write_run_file(out, {"runs": {"old": 1}}):
        out.write_text("old")
    with pytest.raises(KeyboardInterrupt), write_run_file(out, {"runs": {"new": 2}}):
        raise KeyboardInterrupt
    assert json.loads(run_file(out).read_text())["runs"] == {"old": 1, "new": 2}
    with write_run_file(out, {"runs": {"new": 2}}):
        out.write_text("new")
    assert json.loads(run_file(out).read_text())["runs"] == {"new": 2}
