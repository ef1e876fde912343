"""The other commands: what they print, and each mistake in a line."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.builders import (
    a_label_file,
    a_sample_row,
    a_table,
    a_verdict_file,
    an_image_file,
    some_scores,
)
from tests.extras import needs
from vieval_plugin.cli import main, read_options
from vieval_plugin.judges.protocol import Image


def test_names_that_do_not_exist(approve):
    approve(
        "vieval scoer samples.jsonl",
        "vieval gate new old",
        "vieval prompts show viescor/v1",
        "vieval prompts show viescore/v1 SC_tg",
        "vieval prompts show none/v1",
        "vieval prompts export vieval_demo/tia --out out",
        "vieval rank none",
        "vieval report none --out out",
        "vieval prepare imagenhb",
        "vieval label imagenhb/tig --out p.html",
        "vieval tasks imagenhb",
        "vieval cache info",
        "vieval card m",
        "vieval compare none",
    )


def test_files_of_another_sort(approve):
    an_image_file("1.png")
    row = a_sample_row("1", "1.png", "a cat", image_model="m")
    del row["kind"]
    a_table("samples.jsonl", [row])
    a_verdict_file("v.jsonl", aurora=[0.5], borealis=[0.4])
    Path("flat.csv").write_text("uid,image_model\n")
    Path("alone.jsonl").write_text(Path("v.jsonl").read_text())
    approve(
        "vieval rank samples.jsonl",
        "vieval compare samples.jsonl",
        "vieval report --out r samples.jsonl",
        "vieval label v.jsonl --kind tgi --out l.html",
        "vieval label samples.jsonl --kind tgi --out l.html",
        "vieval score v.jsonl --judge sharpness --out w.jsonl",
        "vieval rank flat.csv",
        "vieval rank alone.jsonl",
        "vieval anchor check v.jsonl",
        "vieval anchor make v.jsonl --n 5 --out a.jsonl",
        "vieval filter samples.jsonl --where 'PQ > 0' --out kept",
        "vieval show v.jsonl p9",
    )


def test_show(approve, judge_server):
    an_image_file("a.png")
    judge_server()
    approve(
        "vieval score a.png --prompt 'a red cube' --out v.jsonl",
        "vieval show v.jsonl a",
        "vieval show v.jsonl a --html p.html",
    )


def test_plan(approve, judge_server):
    an_image_file("a.png")
    a_table("s.jsonl", [a_sample_row(f"{n}", "a.png", "a cat") for n in range(4)])
    judge_server()
    approve("vieval score s.jsonl --plan", "vieval card --benchmark vieval_demo --plan")


@needs("torch", "rapidocr", "skimage", "lmms_eval")
def test_doctor(approve, judge_server, monkeypatch):
    monkeypatch.setattr("vieval_plugin.cli.doctor._SECONDS", 2.0)
    monkeypatch.setenv("GOOD_KEY", "sk-distinctive-0123456789")
    server = judge_server()
    near = {"model": "fake", "base_url": server.base_url}
    backbones = {
        "judge": {**near, "api_key_env": "GOOD_KEY"},
        "nokey": {**near, "api_key_env": "ABSENT_KEY"},
        "away": {"model": "fake", "base_url": "http://127.0.0.1:9/v1"},
    }
    options = {"backbones": backbones, "store": {"path": "r.sqlite"}}
    Path("vieval.yaml").write_text(json.dumps(options))
    for name in ("VIEVAL_MODEL", "VIEVAL_BASE_URL"):
        monkeypatch.delenv(name)
    approve(
        "vieval doctor",
        "vieval doctor --base-url http://127.0.0.1:9/v1",
        "vieval doctor --base-url nowhere",
        f"vieval doctor --base-url {server.url}",
        "vieval doctor --model fake",
    )


@needs("rapidocr", "skimage")
def test_demo(approve):
    approve("vieval demo")


def test_label(approve):
    a_verdict_file(aurora=some_scores(20), borealis=some_scores(20, seed=1))
    for model in ("mine", "theirs"):
        an_image_file(f"{model}/000.png")
    Path("prompts.txt").write_text("a cat\n")
    approve(
        "vieval label mine theirs --prompts prompts.txt --out l.html",
        "vieval label v.jsonl --out l.html",
        "vieval label mine --prompts prompts.txt --out mine/000.png",
    )


def test_cache(approve, judge_server):
    an_image_file("a.png")
    judge_server()
    Path("vieval.yaml").write_text("store: {path: replies.sqlite}\n")
    approve(
        "vieval score a.png --prompt 'a red cube' --out v.jsonl",
        "vieval cache info",
        "vieval cache clear --model fak --yes",
        "vieval cache clear --yes",
    )


CONDITIONS = (
    "SD > .7", "image is null", "statu = 'ok'", 'status = "ok"', "x.y = 1", "PQ >", "PQ + status", "PQ > 0; drop table x",
    "PQ > (select count(*) from read_text('/etc/passwd'))", "uid = 'nobody'", "PQ > cast(uid as int)",
)  # fmt: skip


@needs("duckdb", "pyarrow")
def test_filter_refused(approve):
    from tests.shard_runs import write_parquet

    write_parquet(Path("data"), 1)
    main(["score", "data", "--judge", "sharpness", "--out", "out"])
    filtered = [
        shlex.join(["vieval", "filter", "out", "--where", condition, "--out", "kept"])
        for condition in CONDITIONS
    ]
    approve(*filtered)


def printed_commands(text):
    """Whole commands in a text of outputs: with what they are about, not a command's name alone."""
    commands = dict.fromkeys(re.findall(r"`vieval ([^`\\]+)`", text))
    return [
        command
        for command in commands
        if len(shlex.split(command)) > 1 and shlex.split(command)[1][0] != "-"
    ]


OUTPUTS = [file.read_text() for file in sorted(Path(__file__).parent.glob("*/*.txt"))]


@pytest.mark.parametrize("command", printed_commands("".join(OUTPUTS)))
def test_flags_of_printed_commands(command):
    name, *arguments = shlex.split(command)
    assert read_options([name, *arguments])


def test_printed_commands_run(tmp_path, monkeypatch, capsys):
    """Verdicts of two builds: each command that an output names, down to the ranking."""
    monkeypatch.chdir(tmp_path)

    def printed(start):
        """The one command in the output so far that starts so."""
        commands = printed_commands(capsys.readouterr().out)
        [found] = [command for command in commands if command.startswith(start)]
        return found

    for name, score in (("new", 0.6), ("old", 0.5)):
        fields = {"images": {"output": Image(an_image_file(f"{name}.png"))}}
        a_verdict_file(f"{name}.jsonl", {name: [score] * 6}, fields=fields)
    assert main(["rank", "new.jsonl", "old.jsonl"]) == 0
    assert main(shlex.split(printed("label"))) == 0
    command = printed("rank new.jsonl").replace("labels-*.csv", "labels-ann.csv")
    images = json.loads(Path("label.plan.json").read_text())["images"]
    labels = [
        {"uid": image["uid"], "generator": image["image_model"], "value": n % 3 / 2}
        for n, image in enumerate(images)
    ]
    a_label_file("labels-ann.csv", labels)
    assert main(shlex.split(command)) == 0
    assert "rated" in capsys.readouterr().out
