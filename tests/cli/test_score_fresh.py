"""`vieval score --fresh`, and the option of the same meaning: what is stored is asked anew, and replaced."""

import itertools
import json

from tests.fake_server import FakeServer
from vieval_plugin.cli import main


def numbering():
    """Readable answers of which no two are alike."""
    numbers = itertools.count()
    return lambda request: json.dumps({"score": [7, 7], "reasoning": f"answer {next(numbers)}"})


def answers(out):
    return [step["reason"] for line in out.read_text().splitlines() for step in json.loads(line)["trace"]]


def test_fresh_asks_anew_and_replaces_what_was_stored(store, samples_file, tmp_path, capsys):
    out = tmp_path / "v.jsonl"
    with FakeServer(reply=numbering(), schema_support="rejected") as server:
        command = ["score", str(samples_file), "--model", "fake", "--base-url", server.base_url, "--out", str(out)]
        seen = []
        for further in ([], [], ["--fresh"], []):
            assert main([*command, *further]) == 0
            seen.append(answers(out))
        assert "answered from the store: 12" in capsys.readouterr().err
    assert seen[0] == seen[1]
    assert set(seen[0]).isdisjoint(seen[2])
    assert seen[2] == seen[3]


def test_so_does_the_option(samples_file, tmp_path, monkeypatch):
    options, out = tmp_path / "vieval.yaml", tmp_path / "v.jsonl"
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    seen = []
    with FakeServer(reply=numbering(), schema_support="rejected") as server:
        for refresh in ("false", "true", "false"):
            options.write_text(f"store: {{path: r.sqlite, refresh: {refresh}}}\n")
            command = ["score", str(samples_file), "--model", "fake", "--base-url", server.base_url]
            assert main([*command, "--out", str(out)]) == 0
            seen.append(answers(out))
    assert set(seen[0]).isdisjoint(seen[1])
    assert seen[1] == seen[2]


def test_what_is_asked_anew_has_the_same_provenance(store, samples_file, tmp_path, server):
    """It is the same run of the same options: only where replies come from differs."""
    found = []
    for name, further in (("a", []), ("b", ["--fresh"])):
        out = tmp_path / f"{name}.jsonl"
        command = ["score", str(samples_file), "--model", "fake", "--base-url", server.base_url, "--out", str(out)]
        assert main([*command, *further]) == 0
        found.append(out.read_text())
    assert found[0] == found[1]
