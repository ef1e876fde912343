"""`vieval score`: verdicts in a file, what is asked again, and what is never replaced."""

import contextlib
import itertools
import json
import re
import sqlite3
import subprocess

import pytest

from tests.fake_server import FakeServer, named
from tests.stored_results import read_lines


def test_score_writes_verdicts_in_order_and_a_summary(score, server, samples_file):
    code, written, printed, said = score(samples_file, *named(server))
    given = read_lines(samples_file)
    assert code == 0
    found = [(w["uid"], w["image_model"]) for w in written]
    assert found == [(g["uid"], g["image_model"]) for g in given]
    assert all(w["status"] == "ok" and w["model"] == "fake" for w in written)
    assert re.match(
        r"viescore, mean O: demo_. 0\.\d{3}, demo_. 0\.\d{3}, demo_. 0\.\d{3}\n\n",
        printed,
    )
    assert (
        "calls: 13, including probes: 1," in said
    )  # one of them asks whether schemas are enforced
    code, again, _, said = score(samples_file, *named(server))
    assert (code, again) == (0, written)
    assert "calls: 0, from the cache: 12" in said


@pytest.mark.parametrize("command", [["score", "--judge", "ssim"], ["label"]])
def test_what_is_read_is_never_replaced(samples_file, vieval, command):
    image = samples_file.parent / read_lines(samples_file)[0]["images"]["output"]
    link = samples_file.parent / "link.jsonl"
    link.symlink_to(samples_file)
    before = samples_file.read_bytes(), image.read_bytes()
    for out in (samples_file, image, link):
        said = vieval(*command, samples_file, "--out", out, code=1).err
        assert "is an input file and would be overwritten" in said
    assert (samples_file.read_bytes(), image.read_bytes()) == before


# What is stored is asked anew, and replaced.


def numbering():
    """Readable answers of which no two are alike."""
    numbers = itertools.count()
    answer = lambda: {"score": [7, 7], "reasoning": f"answer {next(numbers)}"}
    return lambda request: json.dumps(answer())


# flags, and the age at which what is stored is too old
RUNS = ((["--fresh"], "null"), ([], "null"), ([], "0"))


def test_fresh_asks_anew_and_replaces_the_stored(score, samples_file, tmp_path):
    fresh, kept, aged = RUNS
    answers = []
    with FakeServer(reply=numbering(), schema_support="rejected") as server:
        for flags, max_age in (kept, kept, fresh, kept, aged, kept):
            text = f"store: {{path: r.sqlite, max_age: {max_age}}}\n"
            (tmp_path / "vieval.yaml").write_text(text)
            code, verdicts, _, said = score(samples_file, *named(server), *flags)
            assert code == 0
            steps = [step for verdict in verdicts for step in verdict["trace"]]
            answers.append([step["reason"] for step in steps])
    assert "from the cache: 12" in said
    first, *_ = answers
    assert answers[1] == first
    assert answers[2] == answers[3]
    assert answers[4] == answers[5]
    assert len({*first, *answers[2], *answers[4]}) == 3 * len(first)


def test_what_is_asked_anew_has_the_same_provenance(score, samples_file, server):
    """It is the same run of the same options: only where replies come from differs."""
    found = score(samples_file, *named(server))[1]
    assert found == score(samples_file, *named(server), "--fresh")[1]


# What a sample lacks is its own verdict and never the end of a run.


@pytest.fixture
def old_store(store):
    """A store of replies that another version of VIEval wrote, where the options say."""
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        database.execute("CREATE TABLE about (name, value)")
        database.execute("CREATE TABLE replies (key)")
        database.execute("INSERT INTO about VALUES ('schema', '2')")
    return store


def test_a_store_of_another_version_is_moved(score, server, samples_file, old_store):
    said = score(samples_file, *named(server))[-1]
    subprocess.run(re.search(r"`(mv .*?)`", said)[1], shell=True, check=True)
    assert score(samples_file, *named(server))[0] == 0


def test_a_judge_that_calls_nothing_ends_without_a_count_of_calls(score, samples_file):
    code, _, _, said = score(samples_file, "--judge", "ssim")
    assert (code, "verdicts: ok 6" in said) == (0, True)
    assert "calls:" not in said
