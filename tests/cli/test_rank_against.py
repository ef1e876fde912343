"""`vieval rank NEW --against FILE --margin M`: builds, drift, refusals, and files of a build."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import split
from xml.etree import ElementTree

import pytest

from tests.brightness import by_brightness, images, noisy, prompts
from tests.builders import an_image_file
from tests.fake_image_server import FakeImageServer
from tests.fake_server import FakeServer, named
from vieval_plugin.text.errors import ExitCode

N, ROOT = 80, Path(__file__).parents[2]
KEY = "sk-of-the-generator"
OUTPUTS = split("--summary s.md --junit j.xml --json all.json --html page.html")
GATE = ["--prompts", "prompts.csv", "--against", "last.jsonl", "--margin", "0.1"]
ANCHOR = "anchor make last.jsonl --n 60 --out anchor.jsonl --copy-images"


def build(name, shift=0.0, spread=0.0):
    """Images that differ from the last build's by so much on average, and by so much either way."""
    level = lambda n, draw: 0.35 + n % 7 / 20 + shift + spread * (n % 5 - 2)
    return images(Path(), name, level, N)


@pytest.fixture
def judge(tmp_path, monkeypatch, vieval):
    """A judge's server, in a folder with prompts and verdicts of the last good build."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    options = "statistics: {draws: 100}\nstore: {path: replies.sqlite}"
    Path("vieval.yaml").write_text(options)
    monkeypatch.setenv("VIEVAL_CONFIG", "vieval.yaml")
    prompts(Path(), N)
    with FakeServer(reply=by_brightness()) as server:
        scored(vieval, server, build("last"), "last.jsonl")
        yield server


def scored(vieval, server, folders, out, table="prompts.csv"):
    vieval(f"score {folders} --prompts {table} --out {out}", *named(server))


def result():
    """What a build reads: the cases of JUnit, the JSON, and the Markdown."""
    suites = ElementTree.parse("j.xml").getroot()
    return suites, json.loads(Path("all.json").read_text()), Path("s.md").read_text()


@pytest.mark.parametrize(
    ("shift", "spread", "margin", "code", "said"),
    [
        (0.0, 0.01, 0.1, 0, "new is not worse than last"),
        (-0.3, 0.0, 0.1, 3, "new is worse than last"),
        (-0.03, 0.05, 0.05, 4, "new is worse than last, but perhaps"),
    ],
)
def test_a_build_gate(judge, monkeypatch, vieval, shift, spread, margin, code, said):
    for picture in Path("last").iterdir():
        picture.unlink()  # which the gate needs not
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "step.md")
    gate = (*GATE, *OUTPUTS, "--margin", margin, *named(judge))
    shown = vieval("rank", build("new", shift, spread), *gate, code=code)
    lines = shown.out.splitlines()
    verdict, _, title = lines[0].partition(": ")
    assert verdict == {0: "PASS", 3: "FAIL", 4: "INCONCLUSIVE"}[code]
    assert said in title
    assert "Judge drift was not checked: last.jsonl is not an anchor." in lines
    suites, document, summary = result()
    assert summary.startswith(f"## {verdict}: {title}\n\nThe mean O of new is ")
    assert Path("step.md").read_text() == f"{summary}\n"
    outcome, answer = ExitCode(code).name.lower(), document["answers"][0]
    assert (document["exit_code"], document["outcome"]) == (code, outcome)
    assert (answer["title"], answer["outcome"]) == (title, outcome)
    assert {row["system"] for row in document["numbers"]} >= {"new", "last"}
    [against] = document["against"]
    assert (document["margin"], against["reference"]) == (margin, "last")
    assert against["failures"] == {"new": 0, "last": 0}
    pattern = r"is ([\d.]+) \w+ .*than that of last on (\d+) prompts.*: at most ([\d.]+) lower"
    numbers = re.search(pattern, lines[1]).groups()
    expected = [abs(against["scored"][name]) for name in ("difference", "n", "low")]
    assert [float(number) for number in numbers] == pytest.approx(expected, abs=6e-4)
    assert (suites.get("failures"), suites.get("errors")) == (str(int(code != 0)), "0")
    page = Path("page.html").read_text()
    assert f"<b>{verdict}</b> <span>exit code {code}" in page
    assert re.search(rf"{N} prompts: \d+ lower, \d+ higher, \d+ equal", page)
    for file in ("s.md", "j.xml", "all.json"):
        assert Path(file).read_bytes().endswith(b"\n")
    if code == 3:
        failure = suites.find(".//failure")
        assert failure.get("message") == f"{verdict}: {title}"
        assert "tig/p" in failure.text
        assert "a grey square" in summary
        assert "page.html shows the prompts with the largest drop." in lines
        first = document["falls"][0]
        falls = [fall["difference"] for fall in document["falls"]]
        assert falls == sorted(falls)
        assert falls[0] == pytest.approx(first["score"] - first["reference_score"])


def test_without_a_margin_no_exit_code_decides(judge, vieval):
    without_margin = vieval("rank", build("new", 0.01), *GATE[:4], *named(judge)).out
    assert "\nThis is not a gate: pass --margin M to decide" in without_margin


def test_the_prompts_that_failed_are_named_before_those_that_fell(judge, vieval):
    """16 of 80 images are not there, and the others are noise."""
    lost = [f"p{prompt}" for prompt in range(3, N, 5)]
    build("new", spread=0.01)
    for uid in lost:
        Path("new", f"{uid}.png").unlink()
    vieval("rank", "new", *GATE, *OUTPUTS, *named(judge), code=3)
    suites, document, summary = result()
    assert document["answers"][0]["title"].startswith(
        "new fails more often than last, "
    )
    assert document["against"][0]["failures"] == {"new": 16, "last": 0}
    failed = list(itertools.takewhile(lambda fall: fall["status"], document["falls"]))
    found = {(fall["score"], fall["difference"], fall["status"]) for fall in failed}
    assert found == {(None, None, "no_image")}
    assert {fall["prompt"].removeprefix("tig/") for fall in failed} <= set(lost)
    assert len(failed) == 10 < len(document["falls"]) <= 20
    assert f"| {failed[0]['prompt']} | last | - | " in summary
    assert "; no_image; " in suites.find(".//failure").text


def test_identical_builds_need_no_judge_and_verdicts_stand_for_images(judge, vieval):
    asked = judge.stats()["requests"]
    gate = ("rank", build("new"), *GATE, *OUTPUTS[:-2], *named(judge))
    shown = vieval(*gate).out.splitlines()
    assert shown[0].startswith("PASS: new is not worse than last")
    assert shown[1] == "All their images are identical files, so the difference is 0."
    assert judge.stats()["requests"] == asked
    assert result()[0].get("failures") == "0"
    scored(vieval, judge, build("bad", -0.3), "bad.jsonl")
    shown = vieval("rank", "bad.jsonl", *GATE[2:], code=3).out
    assert "bad is worse than last" in shown.splitlines()[0]


def test_a_night_of_an_identical_build_is_recorded_once(judge, vieval):
    gate = ("rank", build("new"), *GATE, *named(judge))
    verdicts = ("rank", "new.jsonl", *GATE[2:])
    ways = [gate, (*gate, "--out", "new.jsonl"), verdicts]
    for number, way in enumerate(ways):
        shown = vieval(*way, "--history", f"{number}.jsonl").out
        assert "History: 1 night." in shown
        vieval(*way, "--history", "h.jsonl")
    [night] = Path("h.jsonl").read_text().splitlines()
    assert json.loads(night).items() >= {"difference": 0.0, "n": N}.items()
    alone = {Path(f"{number}.jsonl").read_text() for number in range(3)}
    assert alone == {f"{night}\n"}


def test_a_baseline_that_does_not_fit_is_refused_first(judge, vieval):
    """By judge, wording, sampling and prompts, with images at hand and to be made."""
    rows = Path("prompts.csv").read_text()
    Path("reworded.csv").write_text(rows.replace("grey square 7\n", "red square 7\n"))
    Path("longer.csv").write_text(rows + "p80,a grey square 80\n")
    scored(vieval, judge, f"{build('new', 0.02)} last", "two.jsonl")
    Path("other.jsonl").write_text(Path("last.jsonl").read_text())
    of_run = Path("last.jsonl.run.json").read_text()
    digest = json.loads(of_run)["runs"].popitem()[1]["provenance"]["pack_hash"]
    zeros = "0" * len(digest)
    Path("other.jsonl.run.json").write_text(of_run.replace(digest, zeros))
    asked = judge.stats()["requests"]
    reworded = "'p7' has prompt 'a grey square 7' and 'a red square 7'; make a new"
    several = "the new build: contains 2 generators (last, new); pass one folder or"
    cases = (
        ("--prompts reworded.csv", reworded),
        ("--prompts longer.csv", "1 new prompt (first: 'p80')"),
        ("--judge sharpness", "judged with judge viescore, now sharpness"),
        ("--temperature 0.7", "with backbones.judge.temperature 0.0, now 0.7"),
        ("--model other-model", "judged with backbone fake, now other-model"),
        ("--against other.jsonl", f"with pack viescore/v1 {zeros}, now viescore/v1"),
        ("--against two.jsonl", ": contains 2 generators (last, new)"),
        ("--against absent.jsonl", "absent.jsonl: no such file or folder"),
        ("last", several),
    )
    gate = [*GATE, *OUTPUTS, *named(judge)]
    with FakeImageServer() as server:
        generator = ["--generator-url", server.base_url, "--generator-model", "m"]
        for (words, line), source in itertools.product(cases, ([], generator)):
            flags = [*gate, *source, *words.split()]
            folders = [flags.pop()] if words == "last" else []
            said = vieval("rank", "new", *folders, *flags, code=1).err.splitlines()[-1]
            assert line in said or (source and "exactly one image folder" in said)
            error = result()[0].find(".//error").text
            assert error.startswith("The gate could not decide.\n")
        assert server.requests == []
    assert judge.stats()["requests"] == asked
    longer = [*GATE, "--prompts", "longer.csv", *named(judge)]
    said = vieval("rank", "new", *longer, code=1).err
    assert re.search(r"the prompts differ \(digest \w{12}, now \w{12}\)", said)


def test_an_edit_of_another_source_is_another_prompt(judge, vieval):
    for name, brightness in (("source", 9), ("other", 200)):
        an_image_file(f"{name}.png", (brightness,) * 3, (16, 16))
    rows = [f"p{n},make it brighter,source.png" for n in range(N)]
    table = "\n".join(["uid,instruction,source", *rows])
    Path("edits.csv").write_text(table)
    scored(vieval, judge, "last", "edits.jsonl", table="edits.csv")
    flags = split("--prompts edits.csv --against edits.jsonl --margin 0.1")
    flags += named(judge)
    # the fake judge reads no edits
    said = vieval("rank", build("new", 0.02), *flags, code=4).err
    assert "--against" not in said
    changed = table.replace("p7,make it brighter,source", "p7,make it brighter,other")
    Path("edits.csv").write_text(changed)
    assert "'p7' has image source '" in vieval("rank", "new", *flags, code=1).err


def asked_by(way, server, monkeypatch):
    """Flags that name a server, or none where the environment or the options do."""
    if way == "environment":
        monkeypatch.setenv("VIEVAL_MODEL", "fake")
        monkeypatch.setenv("VIEVAL_BASE_URL", server.base_url)
    elif way == "options":
        backbone = f"{{judge: {{model: fake, base_url: {server.base_url}}}}}"
        text = f"statistics: {{draws: 100}}\nbackbones: {backbone}"
        Path("today.yaml").write_text(text)
        monkeypatch.setenv("VIEVAL_CONFIG", "today.yaml")
    return named(server) if way == "flags" else []


@pytest.mark.parametrize("way", ["flags", "environment", "options"])
def test_a_drifted_judge_says_nothing_of_images(judge, monkeypatch, vieval, way):
    """The server of the anchor still answers as it did, and is not the one that is named now."""
    drifted = FakeServer(reply=noisy(2, shift=2))
    with FakeServer(reply=noisy(1)) as recorded, drifted as today:
        vieval(ANCHOR, *named(recorded))
        Path("page.html").write_text("of an earlier build")
        flags, asked = asked_by(way, today, monkeypatch), recorded.stats()["requests"]
        gate = [build("new", -0.3), *GATE, *OUTPUTS, "--against", "anchor.jsonl"]
        shown = vieval("rank", *gate, *flags, code=5).out.splitlines()
        checked = vieval("anchor check anchor.jsonl", *flags, code=5).out
        assert checked.startswith("Drift: ")
        assert recorded.stats()["requests"] == asked
    drift = "The judge itself has drifted, so your images were not compared."
    assert shown[0] == f"JUDGE DRIFTED: {drift}"
    longer = "no longer answers like the judge of the anchor"
    assert shown[1].startswith(f"Drift: viescore 0shot by fake {longer}")
    assert result()[0].find(".//error").get("type") == "judge_drifted"
    assert not Path("page.html").exists()


def test_an_unchanged_judge_judges_both_sides_of_an_anchor(judge, vieval):
    with FakeServer(reply=noisy(1)) as server:
        vieval(ANCHOR, *named(server))
    gate = [build("new", -0.3), *GATE, "--against", "anchor.jsonl"]
    with FakeServer(reply=noisy(3)) as server:
        shown = vieval("rank", *gate, *named(server), code=3).out.splitlines()
        assert "new is worse than last" in shown[0]
        assert " on 60 prompts. " in shown[1]
        assert shown[2].startswith("No drift found: viescore 0shot by fake ")
        compared = "compared only 60 of 80 verdicts: those on prompts from anchor.jsonl"
        assert f"note: {compared}" in shown
        for picture in Path("anchor.images").iterdir():
            picture.unlink()
        shown = vieval("rank", *gate, *named(server), code=3).out.splitlines()
    assert "Judge drift was not checked: the anchor's images were not found." in shown


def refusal(path, body):
    code = "content_policy_violation"
    return 400, {"error": {"code": code, "message": "not allowed"}}


def test_images_are_made_by_a_server_with_a_seed_a_prompt(judge, monkeypatch, vieval):
    monkeypatch.setenv("VIEVAL_GENERATOR_API_KEY", KEY)
    with FakeImageServer() as generator:
        place = f"--generator-url {generator.base_url} --generator-model org/model"
        flags = split(f"{place} --prompts prompts.csv")
        seeded = (*flags, "--seed", 100)
        shown = vieval("rank night --out night.jsonl", *seeded, *named(judge))
        gate = ["--against", "night.jsonl", "--margin", "0.1", *named(judge)]
        vieval("rank", "again", *seeded, *gate)
        generator.answer = refusal
        refused = vieval("rank", "none", *flags, *gate, code=3)
    assert re.search(r"org/model refused p0: .*not allowed", refused.err)
    assert refused.out.startswith(
        "FAIL: none fails more often than night, as judged by viescore with fake.\n"
        "Only none fails on 80 prompts, only night on 0 "
    )
    bodies = [json.loads(body) for _, _, body in generator.requests]
    assert sorted(body["seed"] for body in bodies[:N]) == list(range(100, 100 + N))
    assert {body["model"] for body in bodies} == {"org/model"}
    assert f"org/model generated {N} of {N} images in night (seed 100)" in shown.err
    found = {path.name for path in Path("night").iterdir()}
    assert found == {f"p{n}.png" for n in range(N)}
    for file in ("night.jsonl", "night.jsonl.run.json"):
        assert KEY not in Path(file).read_text()


def test_a_server_that_fails_makes_no_gate_and_goes_on_where_it_stopped(judge, vieval):
    broken = [True]

    def answer(path, body):
        fails = broken and json.loads(body)["seed"] == 5
        return (400, {"error": {"message": "no"}}) if fails else None

    with FakeImageServer(answer=answer) as generator:
        made = f"--generator-url {generator.base_url} --generator-model m"
        given = (f"rank night {made} --prompts prompts.csv", *named(judge))
        line = vieval(*given, code=1).err.splitlines()[-1]
        assert line.startswith(f"vieval: m: failed to generate 1 of {N} images (")
        broken.clear()
        count = len(generator.requests)
        said = vieval(*given).err
    assert len(generator.requests) == count + 1
    assert f"kept {N - 1} images in night from an interrupted run" in said


def test_a_killed_run_leaves_no_result_and_resumes(judge, vieval):
    Path("j.xml").write_text("of an earlier build")
    answered = []

    def slowly(body):
        answered.append(body)
        time.sleep(0.2)
        return by_brightness()(body)

    with FakeImageServer() as generator:
        arguments = ["rank", "night", *GATE, *OUTPUTS, "--margin", "0.4"]
        arguments += ["--generator-url", generator.base_url, "--generator-model", "m"]
        with FakeServer(reply=slowly) as server:
            command = [sys.executable, "-m", "vieval_plugin", *arguments]
            command += [*named(server), "--num-concurrent", "1"]
            env = {**os.environ, "PYTHONPATH": str(ROOT)}
            running = subprocess.Popen(command, env=env)
            while len(answered) < 5:
                time.sleep(0.05)
            running.terminate()
            assert running.wait() == 128 + signal.SIGTERM
        assert not Path("j.xml").exists()
        assert len(generator.requests) == N
        said = vieval(*arguments, *named(judge)).err
        assert len(generator.requests) == N
        assert int(re.search(r"from the cache: (\d+)", said)[1]) > 0
        assert result()[0].get("errors") == "0"
        vieval(*arguments, *named(judge))  # which is the next build
        assert len(generator.requests) == 2 * N
