"""`vieval cache`: what the reply cache holds."""

import io
import json
from pathlib import Path

from vieval_plugin import Backbone, evaluate
from vieval_plugin.benchmarks import vieval_demo


def test_cache_shows_exports_and_clears(store, server, vieval):
    evaluate(
        vieval_demo.load(Path(), "tig")[:2],
        backbone=Backbone(model="fake", base_url=server.base_url),
    )
    assert "fake  4 replies" in vieval("cache", "info").out
    exported = [json.loads(line) for line in vieval("cache", "export").out.splitlines()]
    assert len(exported) == 4
    assert all(row["reply"]["kind"] == "Text" for row in exported)
    printed = vieval("cache", "clear", "--model", "fak", "--yes", code=1).err
    assert printed.endswith("contains no replies from 'fak'; did you mean fake?\n")
    assert vieval("cache", "clear", "--yes").out == "deleted 4 replies\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_clear_deletes_nothing_unasked(store, server, monkeypatch, vieval):
    evaluate(
        vieval_demo.load(Path(), "tig")[:1],
        backbone=Backbone(model="fake", base_url=server.base_url),
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    told = vieval("cache", "clear", "--model", "fake", code=1)
    assert (told.out, told.err) == (
        "",
        "vieval: cannot ask for confirmation without a terminal; pass --yes\n",
    )
    for answer in ("", "n\n", "\n", "nay\n"):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        out = vieval("cache", "clear", "--model", "fake").out
        assert out.startswith(
            f"delete 2 replies from fake in {store}? Requesting them again costs calls. [y/N] "
        )
        assert out.endswith(f"not confirmed: kept 2 replies from fake in {store}\n")
    monkeypatch.setattr("sys.stdin", Terminal("Yes\n"))
    assert vieval("cache", "clear", "--model", "fake").out.endswith(
        "deleted 2 replies\n"
    )
