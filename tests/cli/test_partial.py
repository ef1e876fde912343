"""Verdicts are written as they come: whatever ends a run, the same command goes on, and asks
nothing that is answered.
"""

import asyncio
import gc
import json
import re
import signal
import subprocess
import sys
import weakref
from collections import Counter
from pathlib import Path
from shlex import split

import PIL.Image
import pytest

from tests.builders import a_verdict_file, some_scores
from tests.fake_server import FakeServer
from tests.playing import scripted
from tests.stored_results import read_lines, write_lines
from tests.verdict_files import copied, runs_of
from tests.work import until
from vieval_plugin.cli import main
from vieval_plugin.config import Config, StoreOptions
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.readers.samples import SampleRow, SampleSource
from vieval_plugin.records import Provenance
from vieval_plugin.results.rows import rows_of
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scoring import score_into
from vieval_plugin.run.verdict_lines import Inputs, run_file, run_hash
from vieval_plugin.run.verdict_log import VerdictLog

HERE = Path(__file__).parents[2]
UNSTORED = "store: {use: false}\n"


def samples(folder, count, name="s.jsonl"):
    PIL.Image.effect_noise((64, 48), 60).save(folder / "a.png")
    rows = [
        {
            "uid": f"u{n}",
            "kind": "tig",
            "images": {"output": "a.png"},
            "texts": {"prompt": f"noise {n}"},
        }
        for n in range(count)
    ]
    write_lines(folder / name, rows)
    return folder / name


def scoring(folder, server, *more):
    flags = split(
        f"--model fake --base-url {server.base_url} --num-concurrent 8 "
        f"--config {folder}/o.yaml"
    )
    return [
        *map(
            str,
            ["score", folder / "s.jsonl", "--out", folder / "v.jsonl", *flags, *more],
        )
    ]


@pytest.fixture
def asked():
    """How often each prompt was asked about."""
    return Counter()


@pytest.fixture
def server(asked):
    def count(_number, body):
        asked.update(re.findall(r"noise \d+", json.dumps(body)))

    with FakeServer(faults=count) as running:
        yield running


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "o.yaml").write_text(UNSTORED)
    return tmp_path


def lines(path):
    return read_lines(path)


def killed(folder, server, count):
    """A run in a process of its own that kill -9 ends as soon as so many verdicts are there."""
    code = (
        "import sys; from vieval_plugin.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    partial = folder / "v.jsonl.partial"
    with subprocess.Popen(
        [sys.executable, "-c", code, *scoring(folder, server)],
        cwd=HERE,
        stderr=subprocess.DEVNULL,
    ) as process:
        until(lambda: partial.exists() and partial.read_bytes().count(b"\n") > count)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    return partial


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.extras)])
def test_a_killed_run_asks_nothing_twice(folder, server, asked, vieval, count):
    samples(folder, count)
    partial = killed(folder, server, count * 6 // 10)
    assert not (folder / "v.jsonl").exists()
    kept = (
        {row["uid"] for row in lines(partial)[1:] if "uid" in row}
        if partial.read_bytes().endswith(b"\n")
        else set()
    )
    before = Counter(asked)
    said = vieval(*scoring(folder, server))
    assert re.search(
        r"vieval: resuming with [\d,]+ verdicts? from an earlier run", said.err
    )
    written = lines(folder / "v.jsonl")
    assert [row["uid"] for row in written] == [f"u{n}" for n in range(count)]
    assert [row["row"] for row in written] == list(range(count))
    assert {row["status"] for row in written} == {"ok"}
    assert not [
        uid for uid in kept if asked[f"noise {uid[1:]}"] > before[f"noise {uid[1:]}"]
    ]
    # what was in flight when it ended is asked again, and nothing else
    assert len([prompt for prompt, times in asked.items() if times > 1]) <= 8
    assert set(asked) == {f"noise {n}" for n in range(count)}
    assert re.search(rf"^ +- +{count} ", said.out, re.MULTILINE)
    assert not partial.exists()


def test_a_signal_leaves_what_was_judged_and_says_where(folder, server, vieval):
    samples(folder, 40)
    partial = killed(folder, server, 20)
    torn = partial.read_bytes().rstrip(b"\n")[:-7]
    partial.write_bytes(torn)
    assert vieval(*scoring(folder, server))
    assert [row["row"] for row in lines(folder / "v.jsonl")] == list(range(40))
    assert sorted(path.name for path in folder.glob("v.jsonl*")) == [
        "v.jsonl",
        "v.jsonl.run.json",
    ]


@pytest.mark.parametrize(
    ("flags", "change", "difference"),
    [
        (
            ["--temperature", "0.5"],
            None,
            "started with backbones.judge.temperature 0.0, now 0.5;",
        ),
        (["--label", "b"], None, "started without label, now b;"),
        (
            ["--judge", "viescore", "--judge", "sharpness"],
            None,
            "--judge viescore, now viescore, sharpness;",
        ),
        (
            ["--limit", "3"],
            None,
            r"s.jsonl \(40 samples\), now .*s.jsonl \(3 samples\);",
        ),
        (
            [],
            lambda text: text.replace("noise 39", "noise 93"),
            r"s.jsonl \(40 samples\), which has changed since;",
        ),
        (["--num-concurrent", "2", "--timeout", "99"], None, ""),
    ],
)
def test_others_are_refused(folder, server, asked, vieval, flags, change, difference):
    path = samples(folder, 40)
    partial = killed(folder, server, 10)
    content, before = partial.read_bytes(), asked.total()
    if change:
        path.write_text(change(path.read_text()))
    said = vieval(*scoring(folder, server, *flags), code=1 if difference else 0).err
    if not difference:
        return
    assert re.search(
        (
            rf"vieval: {partial}: contains a run "
            rf"{difference if difference.startswith('started') else '.*' + difference}"
        ),
        said,
    )
    assert "use the command that started it, or remove the file" in said
    assert (partial.read_bytes(), asked.total()) == (content, before)


def test_an_incomplete_run_is_read_only_if_asked(folder, server, vieval):
    samples(folder, 40)
    partial = killed(folder, server, 20)
    for name, place in (("a", partial), ("b", folder / "v.jsonl")):
        report = folder / name
        page = folder / f"{name}.html"
        commands = [
            ["report", place, "--out", report],
            ["show", place, "u0"],
            ["rank", place],
            ["compare", place],
            ["label", place, "--out", page],
            ["export", "viescore", partial, "--out", folder / "e"],
        ]
        for command in commands:
            said = vieval(*command, code=1).err
            assert (
                f"{partial}: from an incomplete run; run the same command again to resume, or "
                "pass --partial"
            ) in said
        for command in (commands[0], commands[1], commands[4]):
            assert main([*map(str, command), "--partial"]) == 0
        assert page.exists()
        for file in ("report.html", "report.md"):
            assert "is from an incomplete run" in (report / file).read_text()
    assert 0 < len(rows_of(partial, partial=True)) < 40


def test_a_file_of_verdicts_needs_what_stands_beside_it(folder, server, vieval):
    samples(folder, 2)
    vieval(*scoring(folder, server))
    alone = folder / "alone.jsonl"
    alone.write_text((folder / "v.jsonl").read_text())
    assert (
        "alone.jsonl.run.json, which records the judges used, is missing from the same folder; copy it there"
        in vieval("rank", alone, code=1).err
    )
    path = folder / "v.jsonl"
    place = folder / "other.jsonl"
    other = copied(path, place, lambda text: text.replace('"run": "', '"run": "x'))
    said = vieval("rank", other, code=1).err
    assert re.search(
        (
            "line 1 is not a verdict from vieval score .it belongs to run x.*, which the accompanying run "
            "file does not describe"
        ),
        said,
    )
    run_file(other).write_text("{")
    assert "other.jsonl.run.json: cannot be read" in vieval("rank", other, code=1).err


def test_a_file_that_lost_verdicts_says_how_many(folder, server, vieval):
    samples(folder, 6)
    vieval(*scoring(folder, server))
    out = folder / "v.jsonl"
    assert "verdicts from its runs" not in "".join(vieval("rank", out))
    out.write_text("".join(out.read_text().splitlines(keepends=True)[:-2]))
    assert (
        f"{out} contains only 4 of the 6 verdicts from its runs; the missing ones are not counted"
        in "".join(vieval("rank", out))
    )


def test_a_line_of_another_judge_than_its_runs_is_refused(tmp_path, vieval):
    place = tmp_path / "v.jsonl"
    verdicts = a_verdict_file(place, aurora=some_scores(4), borealis=some_scores(4))
    other = copied(
        verdicts,
        tmp_path / "w.jsonl",
        lambda text: text.replace('"judge": "viescore"', '"judge": "mine"', 1),
    )
    commands = [
        ["rank", other],
        ["report", other, "--out", tmp_path / "r"],
        ["show", other, "p000"],
        ["compare", other],
        ["label", other, "--out", tmp_path / "l.html"],
        ["export", "--pairs", other, "--out", tmp_path / "pairs.jsonl"],
    ]
    for command in commands:
        assert (
            "its judge is 'mine', but its run has 'viescore'"
            in vieval(*command, code=1).err
        ), command
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {f"{n}.jsonl{end}" for n in "vw" for end in ("", ".run.json")}


def test_options_and_costs_stand_beside_the_lines(folder, server, vieval):
    samples(folder, 20)
    (folder / "o.yaml").write_text(f"store: {{path: {folder / 'replies.sqlite'}}}\n")
    said = vieval(*scoring(folder, server)).err
    [of_run] = runs_of(folder / "v.jsonl").values()
    cost = of_run["usage"]
    # a question each about the prompt, and the one about quality that all of an image share
    assert cost["repeated"] == 19
    assert cost["calls"] in (
        21,
        22,
    )  # and one to see whether the server enforces schemas
    called = rf"calls: {cost['calls']}(, including probes: 1)?, from the cache: 0, "
    assert re.search(f"{called}duplicates not asked: 19", said)
    assert f"tokens in: {cost['input_tokens']}, out: {cost['output_tokens']}" in said
    assert of_run["provenance"]["options"]["backbones"]["judge"]["temperature"] == 0
    rows = (folder / "v.jsonl").read_text().splitlines()
    assert "options" not in rows[0]
    found = {row["run"] for row in map(json.loads, rows)}
    assert found == (set(runs_of(folder / "v.jsonl")))
    assert sum(map(len, rows)) / len(rows) < 1000
    assert all(json.loads(row)["tokens"] for row in rows)
    vieval("report", folder / "v.jsonl", "--out", folder / "r")
    tokens = sum(sum(row["tokens"]) for row in lines(folder / "v.jsonl"))
    assert f"| {tokens} |" in (folder / "r" / "report.md").read_text()


@pytest.mark.parametrize("count", [200, 2000])
def test_no_more_samples_are_in_memory_than_are_under_way(tmp_path, count):
    """The memory of a run does not grow with its samples."""
    references, most = [], []

    def rows():
        for number in range(count):
            row = SampleRow(
                Sample(SampleId("own", "tig", "", str(number)), {}), f"line {number}"
            )
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
    with VerdictLog(
        tmp_path / "v.partial", Inputs("s", count, "f"), {run_hash(by): by}
    ) as log:
        options = Config(store=StoreOptions(use=False))
        asyncio.run(
            score_into(
                log,
                source,
                scripted(program),
                by,
                tmp_path,
                options,
                None,
                Progress(),
                bar=False,
            )
        )
        assert log.count(run_hash(by)) == count
    assert max(most) <= 140  # 128 are under way at once where no server bounds them
