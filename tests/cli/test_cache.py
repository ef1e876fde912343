"""`vieval cache`: what the reply cache holds."""

import io
import json
from pathlib import Path

import pytest

from vieval_plugin import Backbone, evaluate
from vieval_plugin.benchmarks import vieval_demo


@pytest.fixture
def kept(store, server):
    """A store with two replies."""
    backbone = Backbone(model="fake", base_url=server.base_url)
    evaluate(vieval_demo.load(Path(), "tig")[:1], backbone=backbone)
    return store


def test_cache_exports(kept, vieval):
    exported = [json.loads(line) for line in vieval("cache", "export").out.splitlines()]
    assert [row["reply"]["kind"] for row in exported] == ["Text"] * 2


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_clear_deletes_nothing_unasked(kept, monkeypatch, vieval):
    clear = "cache clear --model fake"
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    told = vieval(clear, code=1)
    line = "cannot ask for confirmation without a terminal; pass --yes"
    assert (told.out, told.err) == ("", f"vieval: {line}\n")
    replies = f"2 replies from fake in {kept}"
    asked = f"delete {replies}? Getting them again requires new calls. [y/N] "
    for answer in ("", "n\n", "\n", "nay\n"):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        out = vieval(clear).out
        assert out.startswith(asked)
        assert out.endswith(f"not confirmed: kept {replies}\n")
    monkeypatch.setattr("sys.stdin", Terminal("Yes\n"))
    assert vieval(clear).out.endswith("deleted 2 replies\n")
