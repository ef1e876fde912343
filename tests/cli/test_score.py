"""`vieval score`: verdicts in a file, what is asked again, images themselves, flags, and weights."""

import contextlib
import itertools
import json
import re
import sqlite3
import subprocess
from shlex import split

import pytest

from tests.builders import an_image_file
from tests.demo_samples import demo_file
from tests.fake_server import FakeServer, named
from tests.stored_results import read_lines
from tests.tool_pictures import file, photograph
from tests.verdict_files import provenance_of


def test_score_writes_verdicts_in_order_and_a_summary(score, server, samples_file):
    code, written, printed, said = score(samples_file, *named(server))
    given = [(row["uid"], row["image_model"]) for row in read_lines(samples_file)]
    assert code == 0
    assert [(row["uid"], row["image_model"]) for row in written] == given
    assert {(row["status"], row["model"]) for row in written} == {("ok", "fake")}
    means = ", ".join([r"demo_. 0\.\d{3}"] * 3)
    assert re.match(rf"viescore, mean O: {means}\n\n", printed)
    # one of them asks whether schemas are enforced
    assert "calls: 13, including probes: 1," in said
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


def numbering():
    """Readable answers of which no two are alike."""
    numbers = itertools.count()
    answer = lambda: {"score": [7, 7], "reasoning": f"answer {next(numbers)}"}
    return lambda request: json.dumps(answer())


# flags, and the age at which what is stored is too old
RUNS = ((["--fresh"], "null"), ([], "null"), ([], "0"))


def test_fresh_asks_anew_and_replaces_the_stored(score, samples_file, tmp_path):
    fresh, kept, aged = RUNS
    answers, runs = [], set()
    with FakeServer(reply=numbering(), schema_support="rejected") as server:
        for flags, max_age in (kept, kept, fresh, kept, aged, kept):
            text = f"store: {{path: r.sqlite, max_age: {max_age}}}\n"
            (tmp_path / "vieval.yaml").write_text(text)
            code, verdicts, _, said = score(samples_file, *named(server), *flags)
            assert code == 0
            steps = [step for verdict in verdicts for step in verdict["trace"]]
            answers.append([step["reason"] for step in steps])
            runs.add(verdicts[0]["run"])
    assert "from the cache: 12" in said
    first, *_ = answers
    assert answers[1] == first
    assert answers[2] == answers[3]
    assert answers[4] == answers[5]
    assert len({*first, *answers[2], *answers[4]}) == 3 * len(first)
    # only where replies come from differs, and not what is judged
    assert len(runs) == 1


def test_a_store_of_another_version_is_moved(score, server, samples_file, store):
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        database.execute("CREATE TABLE about (name, value)")
        database.execute("CREATE TABLE replies (key)")
        database.execute("INSERT INTO about VALUES ('schema', '2')")
    said = score(samples_file, *named(server))[-1]
    subprocess.run(re.search(r"`(mv .*?)`", said)[1], shell=True, check=True)
    assert score(samples_file, *named(server))[0] == 0


def test_a_judge_that_calls_nothing_ends_without_a_count_of_calls(score, samples_file):
    code, _, _, said = score(samples_file, "--judge", "ssim")
    assert (code, "verdicts: ok 6" in said) == (0, True)
    assert "calls:" not in said


# Flags.


def test_flags_of_the_backbone_are_on_top_of_the_options(score, samples_file, tmp_path):
    seen = []

    def reply(body):
        if body["max_tokens"] != 2048:  # and not whether schemas are enforced
            seen.append((body["temperature"], body["max_tokens"], body["model"]))
        return json.dumps({"score": [5, 5], "reasoning": "fine"})

    with FakeServer(reply=reply) as server:
        options = tmp_path / "other.yaml"
        judge = {"model": "fake", "base_url": server.base_url, "max_tokens": 99}
        text = json.dumps({"backbones": {"judge": judge}, "store": {"use": False}})
        options.write_text(text)
        flags = split("--temperature 0.5 --num-concurrent 1 --timeout 9 --patience 8")
        given = ("--config", options, *flags, "--limit", "2")
        code, rows, _, _ = score(samples_file, *given)
    assert (code, len(rows)) == (0, 2)
    assert set(seen) == {(0.5, 99, "fake")}
    source = provenance_of(tmp_path / "verdicts.jsonl", rows[0])
    told = source["options"]["backbones"]["judge"]
    names = ("temperature", "num_concurrent", "timeout", "patience")
    assert [told[name] for name in names] == [0.5, 1, 9.0, 8.0]


def test_verdicts_lie_beside_what_is_judged_where_no_file_is_named(tmp_path, vieval):
    an_image_file(tmp_path / "mine" / "1.png").with_suffix(".txt").write_text("a cat")
    table = tmp_path / "mine.csv"
    table.write_text("prompt,image\na cat,mine/1.png\n")
    for judged in (tmp_path / "mine", table):
        beside = tmp_path / "mine.verdicts.jsonl"
        assert f"wrote {beside}" in vieval("score", judged, "--judge", "sharpness").out
        beside.unlink()


def test_a_file_is_required_or_missing(tmp_path, vieval):
    said = vieval("score", "--benchmark", "vieval_demo", code=1).err
    assert "--out FILE (or --plan) is required" in said
    missing = tmp_path / "lst"
    said = vieval("score", missing, "--judge", "sharpness", code=1).err
    assert said.startswith(f"vieval: {missing}: no such file or folder; ")


# Images themselves, without a file: `vieval score cat.png --prompt "a red cat"`.


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for number, name in enumerate(("cat", "dog", "before")):
        picture = file(photograph(32, number)).source
        (tmp_path / f"{name}.png").write_bytes(picture)
    for name in ("VIEVAL_MODEL", "VIEVAL_BASE_URL", "VIEVAL_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_answer_takes_three_lines(folder, server, vieval, monkeypatch):
    monkeypatch.setenv("VIEVAL_MODEL", "fake")
    monkeypatch.setenv("VIEVAL_BASE_URL", server.base_url)
    said = vieval("score cat.png --prompt 'a red cat'")
    answer = r"cat: SC 0\..*\(viescore 0shot by fake\)\n  SC: .*\n  PQ: .*\n"
    assert re.fullmatch(answer, said.out)
    assert said.err == ""
    assert not list(folder.glob("*.jsonl"))


def test_an_edit_is_told_by_its_source_and_instruction(folder, server, vieval):
    edit = "score cat.png dog.png --source before.png --instruction 'add a hat' --json"
    said = vieval(edit, *named(server), "--out", "verdicts.jsonl").out
    verdicts = [json.loads(line) for line in said.splitlines()]
    found = [(row["uid"], row["kind"], row["status"]) for row in verdicts]
    assert found == [("cat", "tie", "ok"), ("dog", "tie", "ok")]
    assert read_lines(folder / "verdicts.jsonl") == verdicts
    # a judge that needs no text measures an image alone
    vieval("score cat.png --judge sharpness")


ADDRESSES = (
    "http://127.0.0.1:9/1.png?token=SECRETa.SECRETb",
    *(f"{begin}127.0.0.1:9/1.png?token=SECRETa.png" for begin in ("//", "http:/")),
    "http:\\\\host\\1.png?token=SECRETa.png",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_what_an_address_asks_with_is_nowhere(folder, vieval, address):
    scored = f"score {address} --prompt 'a red cat' --judge sharpness"
    said = [*vieval(f"{scored} --out v.jsonl", code=1)]
    said += vieval(f"{scored} --json", code=1)
    written = [file.read_text() for file in folder.glob("v.jsonl*")]
    assert written
    assert "SECRET" not in "".join([*said, *written])


def test_equal_broken_files_are_each_named_as_they_are_called(folder, vieval):
    for name in ("one", "two", "three"):
        (folder / f"{name}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    scored = "score one.png two.png three.png --prompt 'a red cat' --judge sharpness"
    said = vieval(scored, "--json", code=1).out
    for verdict in map(json.loads, said.splitlines()):
        assert f"{verdict['uid']}.png" in verdict["trace"][0]["reason"]


# A judge that measures with a network.


def test_own_images_are_scored_with_named_weights(score, scorer_weights, tmp_path):
    weights = scorer_weights["clip_score"]
    given = (demo_file(tmp_path, "tig"), "--judge", "clip_score", "--scorer", weights)
    code, verdicts, *_ = score(*given)
    assert code == 0
    found = [(row["status"], row["model"]) for row in verdicts]
    assert found == [("ok", "clip")] * 6
    reasons = [verdict["trace"][0]["reason"] for verdict in verdicts]
    assert all(reason.startswith(f"{weights}@sha256:") for reason in reasons)
    code, again, _, said = score(*given)
    assert (code, again) == (0, verdicts)
    assert "from the cache: 6" in said


def test_a_verdict_is_shown_with_weights(score, scorer_weights, tmp_path, vieval):
    given = (demo_file(tmp_path, "tie"), "--judge", "lpips")
    assert score(*given, "--scorer", scorer_weights["lpips"])[0] == 0
    page = tmp_path / "page.html"
    vieval("show", tmp_path / "verdicts.jsonl", "demo_a/0", "--html", page)
    assert page.read_text().count("<img") >= 2
    assert "sha256:" in page.read_text()


def test_weights_that_are_not_there_end_with_one_line(score, tmp_path):
    absent = tmp_path / "absent"
    given = (demo_file(tmp_path, "tig"), "--judge", "clip_score", "--scorer", absent)
    code, verdicts, _, said = score(*given)
    assert (code, verdicts) == (1, [])
    assert f"vieval: {absent}: weights folder not found" in said


DESCRIBED = """\
name: mine
kinds: [tig]
questions:
  SC: {text: "a photo of {{ prompt }}"}
scale: [-1, 1]
network: {form: dual_encoder, base: BASE}
"""


def test_a_described_scorer_scores_the_kinds_that_it_names(
    score, scorer_weights, tmp_path
):
    path, base = tmp_path / "mine.yaml", str(scorer_weights["clip_score"])
    path.write_text(DESCRIBED.replace("BASE", base))
    code, verdicts, *_ = score(demo_file(tmp_path, "tig"), "--judge", path)
    assert (code, len(verdicts)) == (0, 6)
    for verdict in verdicts:
        [step] = verdict["trace"]
        assert verdict["scores"] == {"SC": pytest.approx((step["scores"][0] + 1) / 2)}
        assert step["reason"].startswith("mine on ")
        assert provenance_of(tmp_path / "verdicts.jsonl", verdict)["pack"] == "mine"
    code, verdicts, *_ = score(demo_file(tmp_path, "tie"), "--judge", path)
    assert code == 1
    assert {verdict["status"] for verdict in verdicts} == {"not_applicable"}
