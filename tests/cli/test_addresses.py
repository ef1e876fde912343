"""Addresses as output: written to or refused at once, and printed so that they can be pasted."""

import argparse
import shlex
from pathlib import Path
from shlex import split

import pytest

from tests.fake_s3 import KEYS, FakeS3
from tests.shard_runs import write_parquet
from vieval_plugin.cli import build_parser, output_path

_WRITTEN = set(split("out html tables to root batch_files junit summary json_file"))
_ADDRESS = "s3://bucket/folder/x?region=here"


def outputs(parser, command=()):
    """The flags of a parser and of its commands that name a file or folder to write."""
    for action in parser._actions:
        is_written = action.type is Path and action.dest in _WRITTEN
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from outputs(below, (*command, name))
        elif action.type is output_path or is_written:
            yield command, action


FLAGS = [
    pytest.param(command, action, id=" ".join((*command, action.dest)))
    for command, action in outputs(build_parser())
]


def test_most_commands_write_something():
    assert len({flag.values[0] for flag in FLAGS}) >= 20


@pytest.mark.parametrize(("command", "action"), FLAGS)
def test_an_address_is_refused_first(command, action, monkeypatch, tmp_path):
    if command == ("score",) and action.dest == "out":
        pytest.skip("a folder of shards may be an address")
    monkeypatch.chdir(tmp_path)
    assert action.type is output_path
    line = "must be a local path, got s3://bucket/folder/x;"
    with pytest.raises(argparse.ArgumentTypeError, match=line):
        action.type(_ADDRESS)


@pytest.mark.parametrize(
    ("samples", "out", "key"),
    [
        ("cat.png", "s3://bucket/v.jsonl", "folders of shards"),
        ("rows.jsonl", "s3://bucket/folder", "folders of shards"),
        ("data", "s3://bucket/verdicts.parquet", "folders of shards"),
        ("data", "az://bucket/verdicts", "must begin with s3://"),
        ("data", "https://host/verdicts", "must begin with s3://"),
        ("az://bucket/a.parquet", "out", "must begin with s3://"),
    ],
)
def test_an_address_is_not_written_to(vieval, tmp_path, monkeypatch, samples, out, key):
    monkeypatch.chdir(tmp_path)
    write_parquet(tmp_path / "data", files=1, rows_each=4)
    before = sorted(tmp_path.rglob("*"))
    error = vieval("score", samples, "--judge", "sharpness", "--out", out, code=1).err
    assert key in error
    assert "://" in error
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def bucket(monkeypatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return FakeS3()


def test_a_printed_address_can_be_pasted(vieval, tmp_path, bucket):
    data = write_parquet(tmp_path / "data", files=1, rows_each=4)
    with bucket.serving() as address:
        printed = vieval("score", data, "--judge", "sharpness", "--out", address).out
        [line] = [line for line in printed.splitlines() if line.startswith("wrote")]
        [_, pasted] = shlex.split(line)
        assert pasted == address
        assert "complete" in vieval("shards", pasted, "--verify").out
        said = vieval("shards", address.replace("/run", "/other"), code=1).err
        assert "s3://bucket/other: not a folder of shards" in said


def test_a_bucket_that_there_is_not_is_named(vieval, tmp_path, bucket):
    judged = f"--judge sharpness --out {tmp_path}/out"
    with bucket.serving() as address:
        wrong = address.replace("bucket/run", "bucktes/run")
        for name in ("/run", "/run/*.parquet", "/run/a.parquet"):
            line = f"score {wrong.replace('/run', name)} {judged}"
            assert "s3://bucktes: no such bucket" in vieval(line, code=1).err
