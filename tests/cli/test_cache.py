"""`vieval cache`: what the store of replies holds."""

import io
import json
from pathlib import Path

from vieval_plugin import Backbone, evaluate
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.cli import main


def test_cache_shows_exports_and_clears(store, server, capsys):
    evaluate(vieval_demo.load(Path(), "tig")[:2], backbone=Backbone(model="fake", base_url=server.base_url))
    assert main(["cache", "info"]) == 0
    assert "fake  4 replies" in capsys.readouterr().out
    assert main(["cache", "export"]) == 0
    exported = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(exported) == 4
    assert all(row["reply"]["kind"] == "Text" for row in exported)
    assert main(["cache", "clear", "--model", "fak", "--yes"]) == 1
    assert capsys.readouterr().err.endswith("holds no replies of 'fak'; did you mean fake?\n")
    assert main(["cache", "clear", "--yes"]) == 1
    told = capsys.readouterr().err
    assert told.endswith("holds 4 replies of 1 models; name one with --model, or delete them all with --all\n")
    assert main(["cache", "clear", "--all", "--yes"]) == 0
    assert capsys.readouterr().out == "deleted 4 replies\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_clear_asks_and_deletes_nothing_where_there_is_nobody_to_ask(store, server, monkeypatch, capsys):
    evaluate(vieval_demo.load(Path(), "tig")[:1], backbone=Backbone(model="fake", base_url=server.base_url))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main(["cache", "clear", "--model", "fake"]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "vieval: deleted nothing: there is no terminal to ask at; say --yes\n")
    for answer in ("", "n\n", "\n", "nay\n"):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        assert main(["cache", "clear", "--model", "fake"]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"delete 2 replies of fake from {store}? They cannot be had back for free. [y/N] ")
        assert out.endswith(f"deleted nothing; 2 replies of fake are still in {store}\n")
    monkeypatch.setattr("sys.stdin", Terminal("Yes\n"))
    assert main(["cache", "clear", "--model", "fake"]) == 0
    assert capsys.readouterr().out.endswith("deleted 2 replies\n")


def test_a_store_that_is_not_there_is_one_line(store, capsys):
    assert main(["cache", "info"]) == 1
    assert "no store of replies there yet" in capsys.readouterr().err
