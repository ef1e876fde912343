"""VLMEvalKit's own run in this process: imported once, in half a minute, and run often."""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.stored_results import read_lines

if importlib.util.find_spec("vlmeval") is None:
    collect_ignore_glob = ["test_*.py"]

TIE = "vieval_demo_viescore_tie"


@dataclass
class Run:
    """What a run left behind: its exit code, the last line where it ended so, and its folder."""

    code: int
    line: str
    folder: Path

    def only(self, pattern):
        """The one file of that name, wherever the distribution puts it; links lead to the same."""
        [found] = {path.resolve() for path in self.folder.rglob(pattern)}
        return found

    @property
    def rows(self):
        return read_lines(self.only("*_samples_*.jsonl"))

    @property
    def responses(self):
        return [row["filtered_resps"][0] for row in self.rows]

    @property
    def verdicts(self):
        return [json.loads(response)["verdict"] for response in self.responses]

    @property
    def table(self):
        """The last row of the table, that over all."""
        import pandas

        return pandas.read_csv(self.only("*_acc.csv")).iloc[-1]

    @property
    def sheet(self):
        from vlmeval.smp import load

        return load(str(self.only("*.xlsx")))


@pytest.fixture(scope="session")
def host():
    """The VLMEvalKit that is here: `ms`, `nvidia` or `checkout`."""
    from vieval_plugin.hosts.vlmevalkit import guard, register

    register()
    return guard.installation().name.partition("-")[0].partition(" ")[0]


@pytest.fixture
def run(tmp_path, monkeypatch, host):
    """Runs `vieval vlmevalkit` with these arguments, in this process."""
    from vieval_plugin.hosts.vlmevalkit import command, dataset, judging

    (tmp_path / "lmu").mkdir()
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def runs(*arguments, out="out", limit=12, options=None):
        folder = tmp_path / out
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", sys.argv)
            for kept in (judging.failed, judging.unbuilt, dataset.LIMIT):
                kept.clear()
            if options is not None:
                path = tmp_path / f"{out}.yaml"
                path.write_text(json.dumps(options))
                patch.setenv("VIEVAL_CONFIG", str(path))
            try:
                asked = [*map(str, arguments), "--work-dir", str(folder)]
                code = command.run(asked, limit)
                line = ""
            except SystemExit as end:
                code, line = (
                    (1, end.code) if isinstance(end.code, str) else (end.code or 0, "")
                )
        return Run(code, line, folder)

    return runs


@pytest.fixture
def configured(tmp_path):
    """Writes a --config file with one model and demo datasets; its arguments."""

    def written(kind, data=(TIE,), name="fake", **arguments):
        datasets = {one: {"class": "JudgedImages", "dataset": one} for one in data}
        document = {"model": {name: {"class": kind, **arguments}}, "data": datasets}
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document))
        return ("--config", path)

    return written


@pytest.fixture
def gpt(configured):
    """The host's own class for OpenAI's server, at a fake one."""
    model = {"model": "gpt-4o", "key": "EMPTY-key", "retry": 1, "temperature": 0}

    def written(server, **further):
        address = f"{server.base_url}/chat/completions"
        return configured("GPT4V", api_base=address, **model, **further)

    return written


@pytest.fixture
def ours(configured):
    """Our client at a fake server."""

    def written(server, *data, **further):
        model = {"model": "fake", "base_url": server.base_url, **further}
        return configured("VievalOpenAI", data or (TIE,), **model)

    return written


@pytest.fixture(scope="session")
def process(tmp_path_factory):
    """Starts Python in a process of its own with this environment and an LMUData folder."""
    folder = tmp_path_factory.mktemp("lmu")
    own = {**os.environ, "LMUData": str(folder), "CUDA_VISIBLE_DEVICES": ""}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}

    def started(*arguments, **environment):
        command = [sys.executable, *map(str, arguments)]
        return subprocess.Popen(command, env={**own, **environment}, **pipes)

    return started
