"""`vieval rank NEW --against FILE --margin M`: good, equal and bad builds, drift, refusals, and the files of a build."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.test_anchor import noisy
from tests.cli.test_rank_folders import by_brightness, images, prompts
from tests.fake_image_server import FakeImageServer
from tests.fake_server import FakeServer, named
from vieval_plugin.text.errors import ExitCode

N, ROOT = 80, Path(__file__).parents[2]
KEY = "sk-of-the-generator"


def level(prompt, shift=0.0):
    return 0.35 + prompt % 7 / 20 + shift


def build(folder, name, shift=0.0, spread=0.0):
    folder.mkdir(exist_ok=True)
    return images(folder, name, lambda prompt, draw: level(prompt, shift + spread * (prompt % 5 - 2)), N)


@pytest.fixture
def repository(tmp_path, monkeypatch, vieval):
    """Prompts, a judge, and the verdicts of the last good build."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "vieval.yaml").write_text("statistics: {draws: 100}\nstore: {path: replies.sqlite}")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))
    prompts(tmp_path, N)
    good = build(tmp_path / "last", "images")
    with FakeServer(reply=by_brightness()) as server:
        vieval("score", good, "--prompts", "prompts.csv", "--out", "last.jsonl", *named(server))
        yield server


def gate(vieval, server, folder, *flags, code, margin=0.1):
    flags = ["--against", "last.jsonl", "--margin", margin, "--html", "page.html", *flags]
    return vieval("rank", folder, "--prompts", "prompts.csv", *flags, *named(server), code=code)


@pytest.mark.parametrize(
    ("shift", "spread", "margin", "code", "said"),
    [
        (0.0, 0.01, 0.1, 0, "images is not worse than last by more than the margin."),
        (-0.3, 0.0, 0.1, 3, "images is worse than last by more than the margin."),
        (-0.03, 0.05, 0.05, 4, "It cannot be told whether images is worse than last by more than the margin."),
    ],
)
def test_a_build_is_gated_by_the_verdicts_of_the_last(
    repository, tmp_path, monkeypatch, vieval, shift, spread, margin, code, said
):
    new = build(tmp_path / "new", "images", shift, spread)
    for picture in (tmp_path / "last" / "images").iterdir():
        picture.unlink()  # which the gate needs not
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    flags = ["--summary", "s.md", "--junit", "j.xml", "--json", "all.json"]
    shown = gate(vieval, repository, new, *flags, code=code, margin=margin).out.splitlines()
    assert shown[0] == said
    assert shown[1].startswith("Difference ")
    assert "It was not checked whether the judge has drifted, as last.jsonl is no anchor." in shown
    summary = (tmp_path / "s.md").read_text()
    assert summary.startswith(f"## {said}\n\nDifference ")
    assert (tmp_path / "step.md").read_text() == f"{summary}\n"
    document = json.loads((tmp_path / "all.json").read_text())
    assert document["exit_code"] == code
    assert document["outcome"] == ExitCode(code).name.lower()
    assert document["answers"][0]["title"] == said
    assert {row["system"] for row in document["numbers"]} >= {"images", "last"}
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == (str(int(code != 0)), "0")
    page = (tmp_path / "page.html").read_text()
    assert said in page
    if code == 3:
        assert suite.find(".//failure").get("message") == said
        assert "tig/p" in suite.find(".//failure").text
        assert "a grey square" in summary
        assert "The prompts on which it fell most are in page.html." in shown
        assert page.index("images loses: 80 prompts") > 0
        assert document["falls"][0]["against"] == "last"
        assert float(document["falls"][0]["difference"]) == min(float(f["difference"]) for f in document["falls"])


def test_the_very_same_build_passes_without_a_judge_and_verdicts_stand_for_images(repository, tmp_path, vieval):
    same = build(tmp_path / "new", "images")
    asked = repository.stats()["requests"]
    flags = ["--prompts", "prompts.csv", "--against", "last.jsonl", "--margin", "0.1", "--junit", "j.xml"]
    shown = vieval("rank", same, *flags, *named(repository)).out.splitlines()
    assert shown[0] == "images is not worse than last by more than the margin."
    assert shown[1] == "All their pictures are the very same files, so the difference is 0."
    assert repository.stats()["requests"] == asked
    assert ElementTree.parse(tmp_path / "j.xml").getroot().get("failures") == "0"
    bad = build(tmp_path / "bad", "images", -0.3)
    vieval("score", bad, "--prompts", "prompts.csv", "--out", "bad.jsonl", *named(repository))
    shown = vieval("rank", "bad.jsonl", "--against", "last.jsonl", "--margin", "0.1", code=3).out.splitlines()
    assert shown[0] == "images is worse than last by more than the margin."


def refused(vieval, *flags):
    line = vieval("rank", *flags, "--margin", "0.1", code=1).err.splitlines()[-1]
    assert line.startswith("vieval: --against ")
    return line


def test_a_baseline_of_other_prompts_or_another_judge_is_refused_in_a_line(repository, tmp_path, vieval):
    new = build(tmp_path / "new", "images", 0.02)
    flags = [new, "--prompts", "other.csv", "--against", "last.jsonl", "--junit", "j.xml"]
    asked = repository.stats()["requests"]
    rows = (tmp_path / "prompts.csv").read_text()
    (tmp_path / "other.csv").write_text(rows.replace("grey square 7\n", "red square 7\n"))
    line = refused(vieval, *flags, *named(repository))
    assert "other prompts (digest " in line
    assert "'p7' has prompt 'a grey square 7' and 'a red square 7'" in line
    broken = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (broken.get("failures"), broken.get("errors")) == ("0", "1")
    assert broken.find(".//error").text.startswith("Nothing was decided.\n--against last.jsonl: other prompts")
    (tmp_path / "other.csv").write_text(rows + "p80,a grey square 80\n")
    assert "1 here are not in it, the first 'p80'" in refused(vieval, *flags, *named(repository))
    same = [new, "--prompts", "prompts.csv", "--against", "last.jsonl", *named(repository)]
    assert "judged with judge viescore, and here it is vieval_small" in refused(
        vieval, *same, "--judge", "vieval_small"
    )
    assert "judged with backbones.judge.temperature 0.0, and here it is 0.7" in refused(
        vieval, *same, "--temperature", "0.7"
    )
    other = [flag if flag != "fake" else "other-model" for flag in map(str, same)]
    assert "judged with backbone fake, and here it is other-model" in refused(vieval, *other)
    assert repository.stats()["requests"] == asked
    vieval(
        "score", new, tmp_path / "last" / "images", "--prompts", "prompts.csv", "--out", "two.jsonl", *named(repository)
    )
    assert ": 2 generators (" in refused(vieval, *[f if f != "last.jsonl" else "two.jsonl" for f in same])


def test_other_wording_is_refused(repository, tmp_path, vieval):
    rows = (tmp_path / "last.jsonl.run.json").read_text()
    digest = json.loads(rows)["runs"].popitem()[1]["provenance"]["pack_hash"]
    (tmp_path / "last.jsonl.run.json").write_text(rows.replace(digest, "0" * len(digest)))
    new = build(tmp_path / "new", "images", 0.02)
    flags = [new, "--prompts", "prompts.csv", "--against", "last.jsonl", *named(repository)]
    assert f"judged with pack viescore/v1 {'0' * len(digest)}, and here it is viescore/v1 {digest}" in refused(
        vieval, *flags
    )


def test_a_drifted_judge_says_nothing_of_images_and_an_unchanged_one_judges_both(repository, tmp_path, vieval):
    with FakeServer(reply=noisy(1)) as server:
        vieval("anchor", "make", "last.jsonl", "--n", 60, "--out", "anchor.jsonl", "--copy-images", *named(server))
    new = build(tmp_path / "new", "images", -0.3)
    flags = ["--prompts", "prompts.csv", "--against", "anchor.jsonl", "--margin", "0.1", "--junit", "j.xml"]
    with FakeServer(reply=noisy(2, shift=2)) as server:
        shown = vieval("rank", new, *flags, *named(server), code=5).out.splitlines()
    assert shown[0] == "The judge itself has drifted; nothing is said of your images."
    assert shown[1].startswith("Drift: viescore 0shot by fake is not the judge of the anchor")
    assert ElementTree.parse(tmp_path / "j.xml").getroot().find(".//error").get("type") == "judge_drifted"
    with FakeServer(reply=noisy(3)) as server:
        shown = vieval("rank", new, *flags, *named(server), code=3).out.splitlines()
    assert shown[0] == "images is worse than anchor by more than the margin."
    assert " on 60 prompts, " in shown[1]
    assert shown[2].startswith("No drift found: viescore 0shot by fake ")
    assert "note: 60 of 80 verdicts are on prompts of anchor.jsonl, and count" in shown
    for picture in (tmp_path / "anchor.images").iterdir():
        picture.unlink()
    with FakeServer(reply=noisy(3)) as server:
        shown = vieval("rank", new, *flags, *named(server), code=3).out.splitlines()
    assert "It was not checked whether the judge has drifted, as the anchor's images are not there." in shown


def test_images_are_made_by_a_server_with_a_seed_a_prompt(repository, tmp_path, monkeypatch, vieval):
    monkeypatch.setenv("VIEVAL_GENERATOR_API_KEY", KEY)
    with FakeImageServer() as generator:
        flags = ["--generator-url", generator.base_url, "--generator-model", "org/model", "--prompts", "prompts.csv"]
        shown = vieval("rank", "night", *flags, "--seed", 100, "--out", "night.jsonl", *named(repository))
        vieval(
            "rank", "again", *flags, "--seed", 100, "--against", "night.jsonl", "--margin", "0.1", *named(repository)
        )
    bodies = [json.loads(body) for _, _, body in generator.requests]
    assert sorted(body["seed"] for body in bodies[:N]) == list(range(100, 100 + N))
    assert {body["model"] for body in bodies} == {"org/model"}
    assert f"org/model made {N} of {N} images in night (seed 100)" in shown.err
    assert {path.name for path in (tmp_path / "night").iterdir()} == {f"p{n}.png" for n in range(N)}
    for left in ("night.jsonl", "night.jsonl.run.json"):
        assert KEY not in (tmp_path / left).read_text()


def test_a_server_that_fails_makes_no_gate_and_goes_on_where_it_stopped(repository, tmp_path, vieval):
    broken = [True]

    def answer(path, body):
        return (400, {"error": {"message": "no"}}) if broken and json.loads(body)["seed"] == 5 else None

    with FakeImageServer(answer=answer) as generator:
        flags = ["night", "--generator-url", generator.base_url, "--generator-model", "m", "--prompts", "prompts.csv"]
        line = vieval("rank", *flags, *named(repository), code=1).err.splitlines()[-1]
        assert line.startswith(f"vieval: m: 1 of {N} images were not made (")
        broken.clear()
        made = len(generator.requests)
        said = vieval("rank", *flags, *named(repository)).err
    assert len(generator.requests) == made + 1
    assert f"{N - 1} images in night are of a run that was stopped" in said


def test_a_killed_run_leaves_no_result_and_goes_on_from_the_store(repository, tmp_path, vieval):
    new = build(tmp_path / "new", "images", 0.02)
    arguments = [
        "rank",
        new,
        "--prompts",
        "prompts.csv",
        "--against",
        "last.jsonl",
        "--margin",
        "0.1",
        "--junit",
        "j.xml",
    ]
    vieval(*arguments, *named(repository))
    before = (tmp_path / "j.xml").read_text()
    (tmp_path / "replies.sqlite").unlink()
    answered = []

    def slowly(body):
        answered.append(body)
        time.sleep(0.2)
        return by_brightness()(body)

    with FakeServer(reply=slowly) as server:
        command = [sys.executable, "-m", "vieval_plugin", *map(str, arguments), *named(server), "--num-concurrent", "1"]
        running = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
        while len(answered) < 5:
            time.sleep(0.05)
        running.terminate()
        assert running.wait() == 128 + signal.SIGTERM
    assert not (tmp_path / "j.xml").exists()
    with FakeServer(reply=by_brightness()) as server:
        said = vieval(*arguments, *named(server)).err
    assert int(re.search(r"answered from the store: (\d+)", said)[1]) > 0
    assert (tmp_path / "j.xml").read_text() == before
