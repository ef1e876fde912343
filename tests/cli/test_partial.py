"""Interrupted runs resume, and ask nothing that is answered."""

import asyncio
import gc
import json
import math
import re
import signal
import subprocess
import sys
import weakref
from collections import Counter
from pathlib import Path

import pytest

from tests.builders import a_sample, a_verdict_file, some_scores
from tests.fake_server import FakeServer, Fault, named
from tests.playing import scripted
from tests.stored_results import read_lines
from tests.verdict_files import copied, runs_of
from tests.work import until
from vieval_plugin.config import Config, StoreOptions
from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.readers.samples import SampleRow, SampleSource
from vieval_plugin.records import Provenance
from vieval_plugin.results.rows import rows_of
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scoring import score_into
from vieval_plugin.run.verdict_lines import Inputs, run_file, run_hash
from vieval_plugin.run.verdict_log import VerdictLog

HERE = Path(__file__).parents[2]


def scoring(folder, server, *more):
    flags = f"--num-concurrent 8 --config {folder}/o.yaml"
    line = f"score {folder}/s.jsonl --out {folder}/v.jsonl {flags}"
    return [*line.split(), *named(server), *more]


@pytest.fixture
def asked():
    """How often each prompt was asked about."""
    return Counter()


@pytest.fixture
def server(asked):
    """A server that stops answering after `held_after` prompts while that is set."""

    def count(_number, body):
        prompts = re.findall(r"noise \d+", json.dumps(body))
        asked.update(prompts)
        is_held = len(asked) > running.held_after
        return Fault("hang") if is_held else None

    with FakeServer(faults=count) as running:
        running.held_after = math.inf
        yield running


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "o.yaml").write_text("store: {use: false}\n")
    return tmp_path


CODE = "import sys; from vieval_plugin.cli import main; sys.exit(main(sys.argv[1:]))"


def killed(folder, server, count):
    """A run in a process of its own that kill -9 ends as soon as so many verdicts are there."""
    partial = folder / "v.jsonl.partial"
    server.held_after = count + 16  # else a quick run ends before it is killed
    command = [sys.executable, "-c", CODE, *scoring(folder, server)]
    with subprocess.Popen(command, cwd=HERE, stderr=subprocess.DEVNULL) as process:
        until(lambda: partial.exists() and partial.read_bytes().count(b"\n") > count)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    server.held_after = math.inf
    return partial


MANY = pytest.param(20_000, marks=pytest.mark.extras)


@pytest.mark.parametrize("count", [300, MANY])
def test_a_killed_run_asks_nothing_twice(
    noise_samples, folder, server, asked, vieval, count
):
    noise_samples(count)
    partial = killed(folder, server, count * 6 // 10)
    assert not (folder / "v.jsonl").exists()
    is_whole = partial.read_bytes().endswith(b"\n")
    rows = read_lines(partial)[1:] if is_whole else []
    kept = [f"noise {row['uid'][1:]}" for row in rows if "uid" in row]
    before = Counter(asked)
    said = vieval(*scoring(folder, server))
    resuming = r"vieval: resuming with [\d,]+ verdicts? from an earlier run"
    assert re.search(resuming, said.err)
    assert "vieval: all counts below include the interrupted run; if" in said.err
    written = read_lines(folder / "v.jsonl")
    found = [(row["uid"], row["row"], row["status"]) for row in written]
    assert found == [(f"u{n}", n, "ok") for n in range(count)]
    assert not [prompt for prompt in kept if asked[prompt] > before[prompt]]
    # what was in flight when it ended is asked again, and nothing else
    assert len([prompt for prompt, times in asked.items() if times > 1]) <= 8
    assert set(asked) == {f"noise {n}" for n in range(count)}
    assert re.search(rf"^ +- +{count} ", said.out, re.MULTILINE)
    assert not partial.exists()


def test_a_torn_line_is_judged_again(noise_samples, folder, server, vieval):
    noise_samples(40)
    partial = killed(folder, server, 20)
    torn = partial.read_bytes().rstrip(b"\n")[:-7]
    partial.write_bytes(torn)
    vieval(*scoring(folder, server))
    written = read_lines(folder / "v.jsonl")
    assert [row["row"] for row in written] == list(range(40))
    names = sorted(path.name for path in folder.glob("v.jsonl*"))
    assert names == ["v.jsonl", "v.jsonl.run.json"]


OTHERS = {
    "--temperature 0.5": "started with backbones.judge.temperature 0.0, now 0.5;",
    "--label b": "started without label, now b;",
    "--judge viescore --judge ssim": "--judge viescore, now viescore, ssim;",
    "--limit 3": r"s.jsonl \(40 samples\), now .*s.jsonl \(3 samples\);",
    "": r"s.jsonl \(40 samples\), which has changed since;",
}


def test_others_are_refused(noise_samples, folder, server, asked, vieval):
    path = noise_samples(40)
    partial = killed(folder, server, 10)
    content = partial.read_bytes()
    before = asked.total()
    text = path.read_text()
    for flags, difference in OTHERS.items():
        path.write_text(text if flags else text.replace("noise 39", "noise 93"))
        said = vieval(*scoring(folder, server, *flags.split()), code=1).err
        assert re.search(rf"vieval: {partial}: contains a run .*{difference}", said)
        assert "use the command that started it, or remove the file" in said
        assert (partial.read_bytes(), asked.total()) == (content, before)
    path.write_text(text)
    vieval(*scoring(folder, server, "--num-concurrent", "2", "--timeout", "99"))


def test_an_incomplete_run_is_read_only_if_asked(noise_samples, folder, server, vieval):
    noise_samples(40)
    partial = killed(folder, server, 20)
    resume = "from an incomplete run; run the same command again to resume, or pass"
    for place in (partial, folder / "v.jsonl"):
        commands = reading(place, folder)
        for command in commands:
            said = vieval(*command, code=1).err
            assert f"{partial}: {resume} --partial" in said
        for command in (commands[0], commands[1], commands[4]):
            vieval(*command, "--partial", code=None)
        assert (folder / "l.html").exists()
        for page in ("report.html", "report.md"):
            assert "is from an incomplete run" in (folder / "r" / page).read_text()
    assert 0 < len(rows_of(partial, partial=True)) < 40


def reading(file, folder):
    """The commands that read verdicts."""
    lines = f"""
        report {file} --out {folder}/r
        show {file} u0
        rank {file}
        compare {file}
        label {file} --out {folder}/l.html
        export viescore {file} --out {folder}/e
        export --pairs {file} --out {folder}/pairs.jsonl"""
    return [line.split() for line in lines.strip().splitlines()]


def test_a_file_of_verdicts_needs_what_stands_beside_it(folder, vieval):
    path = a_verdict_file(folder / "v.jsonl", aurora=some_scores(2))
    place = folder / "other.jsonl"
    other = copied(path, place, lambda text: text.replace('"run": "', '"run": "x'))
    said = vieval("rank", other, code=1).err
    assert "line 1 is not a verdict from vieval score (it belongs to run x" in said
    assert ", which the accompanying run file does not describe" in said
    run_file(other).write_text("{")
    assert "other.jsonl.run.json: cannot be read" in vieval("rank", other, code=1).err


def test_a_file_that_lost_verdicts_says_how_many(noise_samples, folder, server, vieval):
    noise_samples(6)
    vieval(*scoring(folder, server))
    out = folder / "v.jsonl"
    assert "verdicts from its runs" not in "".join(vieval("rank", out))
    out.write_text("".join(out.read_text().splitlines(keepends=True)[:-2]))
    lost = "contains only 4 of the 6 verdicts from its runs; the missing ones are not"
    assert f"{out} {lost} counted" in "".join(vieval("rank", out))


def test_a_line_of_another_judge_than_its_runs_is_refused(tmp_path, vieval):
    place = tmp_path / "v.jsonl"
    verdicts = a_verdict_file(place, aurora=some_scores(4), borealis=some_scores(4))
    change = lambda text: text.replace('"judge": "viescore"', '"judge": "mine"', 1)
    other = copied(verdicts, tmp_path / "w.jsonl", change)
    for command in reading(other, tmp_path):
        said = vieval(*command, code=1).err
        assert "its judge is 'mine', but its run has 'viescore'" in said, command
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {f"{n}.jsonl{end}" for n in "vw" for end in ("", ".run.json")}


def test_options_and_costs_stand_beside_the_lines(
    noise_samples, folder, server, vieval
):
    noise_samples(20)
    (folder / "o.yaml").write_text(f"store: {{path: {folder / 'replies.sqlite'}}}\n")
    said = vieval(*scoring(folder, server)).err
    [of_run] = runs_of(folder / "v.jsonl").values()
    cost = of_run["usage"]
    # a question each about the prompt, and the one about quality that all of an image share
    assert cost["repeated"] == 19
    # and one to see whether the server enforces schemas
    called = rf"calls: {cost['calls']}(, including probes: 1)?, from the cache: 0, "
    assert re.search(f"{called}duplicates not asked: 19", said)
    assert f"tokens in: {cost['input_tokens']}, out: {cost['output_tokens']}" in said
    assert of_run["provenance"]["options"]["backbones"]["judge"]["temperature"] == 0
    rows = read_lines(folder / "v.jsonl")
    assert "options" not in json.dumps(rows[0])
    assert {row["run"] for row in rows} == set(runs_of(folder / "v.jsonl"))
    vieval("report", folder / "v.jsonl", "--out", folder / "r")
    tokens = sum(sum(row["tokens"]) for row in rows)
    assert f"| {tokens} |" in (folder / "r" / "report.md").read_text()


@pytest.mark.parametrize("count", [200, 2000])
def test_no_more_samples_are_in_memory_than_are_under_way(tmp_path, count):
    """The memory of a run does not grow with its samples."""
    references, most = [], []

    def rows():
        for number in range(count):
            row = SampleRow(a_sample(str(number)), f"line {number}")
            references.append(weakref.ref(row))
            if number % 100 == 0:
                gc.collect()
                most.append(sum(reference() is not None for reference in references))
            yield row

    def program(sample):
        yield from ()
        return Verdict({"PQ": 1.0}, Status.OK)

    source = SampleSource("s", rows, "f", total=count)
    by = Provenance("scripted", (), ("PQ",))
    runs = {run_hash(by): by}
    options = Config(store=StoreOptions(use=False))
    judged = (source, scripted(program), by, tmp_path, options)
    with VerdictLog(tmp_path / "v.partial", Inputs("s", count, "f"), runs) as log:
        asyncio.run(score_into(log, *judged, None, Progress(), bar=False))
        assert log.count(run_hash(by)) == count
    assert max(most) <= 140  # 128 are under way at once where no server bounds them
