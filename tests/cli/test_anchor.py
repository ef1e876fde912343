"""`vieval anchor`: the same judge passes, another is found, and a change is one line."""

import json
from shlex import split

import pytest

from tests.brightness import by_brightness, images, noisy, prompts
from tests.fake_server import FakeServer, Fault, named
from tests.stored_results import read_lines, write_lines

N = 40


@pytest.fixture
def scored(tmp_path, vieval):
    """Verdicts on 60 images of two generators."""
    level = lambda least: lambda prompt, draw: least + prompt / 50
    sides = {"mine": level(0.2), "theirs": level(0.21)}
    folders = [images(tmp_path, name, side, 30) for name, side in sides.items()]
    out = tmp_path / "v.jsonl"
    with FakeServer(reply=noisy(0)) as server:
        flags = ("--prompts", prompts(tmp_path, 30), "--out", out)
        vieval("score", *folders, *flags, *named(server))
    return out


@pytest.fixture
def anchor(scored, tmp_path, vieval):
    out = tmp_path / "anchor.jsonl"
    with FakeServer(reply=noisy(1)) as server:
        command = f"anchor make {scored} --n {N} --out {out} --copy-images"
        said = vieval(command, *named(server)).out
    assert f"anchor.jsonl: {N} samples, each judged 3 times (seed 0)" in said
    return out


def check(vieval, anchor, reply, code, **settings):
    with FakeServer(reply=reply, **settings) as server:
        checked = ("anchor", "check", anchor, *named(server))
        return vieval(*checked, code=code).out.splitlines()


def test_an_anchor_is_balanced_and_readable(anchor, tmp_path, vieval):
    rows = read_lines(anchor)
    assert len(rows) == 3 * N
    assert sum(row["image_model"] == "mine" for row in rows) == 3 * N / 2
    vieval("report", anchor, "--out", tmp_path / "report")


def test_the_same_judge_passes_and_others_are_found(anchor, vieval):
    shown = check(vieval, anchor, noisy(2), 0)
    assert shown[0].startswith("No drift found: viescore 0shot by ")
    assert shown[-1] == "seed 0"
    assert any(line.startswith("SC ") for line in shown)
    shown = check(vieval, anchor, noisy(3, shift=1), 5)
    assert shown[0].startswith("Drift: viescore 0shot by ")
    assert "mean score" in shown[0]
    shown = check(vieval, anchor, noisy(4, refusals=0.3), 5)
    assert "usable answers" in shown[0]


def test_nothing_is_taken_from_the_store(anchor, vieval):
    asked = []

    def counted(body):
        asked.append(body)
        return noisy(2)(body)

    check(vieval, anchor, counted, 0)
    once = len(asked)
    check(vieval, anchor, counted, 0)
    assert len(asked) == 2 * once
    assert once >= 2 * N


def test_a_server_that_fails_decides_nothing(anchor, vieval):
    faults = lambda number, body: Fault("overlong") if number > 20 else None
    shown = check(vieval, anchor, None, 4, faults=faults)
    assert shown[0].startswith("Inconclusive: only ")
    assert "have answers from viescore 0shot by " in shown[0]


def test_an_image_that_is_gone_or_changed_is_one_line(anchor, tmp_path, vieval):
    copies = sorted((tmp_path / "anchor.images").iterdir())
    kept = copies[0].read_bytes()
    copies[0].write_bytes(copies[1].read_bytes())
    [line] = vieval("anchor", "check", anchor, code=1).err.splitlines()
    assert "has changed since it was judged" in line
    copies[0].unlink()
    [line] = vieval("anchor", "check", anchor, code=1).err.splitlines()
    assert "missing 1 image (first: " in line
    copies[0].write_bytes(kept)


def test_a_foreign_anchor_leaks_no_secrets(anchor, tmp_path, monkeypatch, vieval):
    monkeypatch.setenv("A_SECRET", "private")
    of_run = anchor.with_name("anchor.jsonl.run.json")
    document = json.loads(of_run.read_text())
    options = [run["provenance"]["options"] for run in document["runs"].values()]
    for recorded in options:
        base_url = ["http://192.0.2.1:9/v1"]
        recorded["backbones"]["judge"].update(base_url=base_url, api_key_env="A_SECRET")
    of_run.write_text(json.dumps(document))
    line = vieval("anchor", "check", anchor, code=1).err.splitlines()[-1]
    assert "the server address stored in these results is not used" in line
    with FakeServer(reply=noisy(2), api_key="yours") as server:
        monkeypatch.setenv("OPENAI_API_KEY", "yours")
        for recorded in options:
            recorded["backbones"]["judge"]["base_url"] = [server.base_url]
        of_run.write_text(json.dumps(document))
        assert "HTTP 401" in vieval("anchor", "check", anchor, code=1).err
        assert "drift" in vieval("anchor", "check", anchor, *named(server)).out
    drawn = images(tmp_path, "private", lambda prompt, draw: 0.5, 1)
    [private] = drawn.iterdir()
    kept = anchor.read_text()
    rows = [json.loads(row) for row in kept.splitlines()]
    for row in rows:
        row["images"]["output"] = {"file": str(private), "sha256": ""}
    write_lines(anchor, rows)
    said = vieval("anchor", "check", anchor, code=1).err
    assert "has changed since it was judged" in said
    anchor.write_text(kept.replace('"judge": "viescore"', '"judge": "of_yours"'))
    of_yours = tmp_path / "of_yours.yaml"
    of_yours.write_text("name: a password\nquestions: {PQ: {text: b}}\n")
    for run in document["runs"].values():
        run["provenance"]["judge"] = "of_yours"
        run["provenance"]["options"]["judge_files"] = [str(of_yours)]
    of_run.write_text(json.dumps(document))
    line = vieval("anchor", "check", anchor, code=1).err.splitlines()[-1]
    unknown = f"unknown judge 'of_yours' (judge files in the results: {of_yours}); put"
    assert unknown in line
    assert "password" not in line


def test_a_judge_of_contests_has_an_anchor(tmp_path, vieval):
    level = lambda least: lambda prompt, draw: least + prompt / 100
    sides = {"a": level(0.2), "b": level(0.5)}
    folders = [images(tmp_path, name, side, 24) for name, side in sides.items()]
    out = tmp_path / "v.jsonl"
    anchor = tmp_path / "a.jsonl"
    with FakeServer(reply=by_brightness()) as server:
        given = split(f"--prompts {prompts(tmp_path, 24)} --judge pairwise --out {out}")
        vieval("rank", *folders, *given, *named(server))
        vieval("anchor", "make", out, "--out", anchor, *named(server))
    check(vieval, anchor, by_brightness(), 0)
    shown = check(vieval, anchor, by_brightness(bias=2), 5)
    assert "changed" in shown[0]
