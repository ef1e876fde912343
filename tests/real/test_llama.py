"""llama.cpp's server with a tiny random model: a killed client, and a missing vision part."""

import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.real.parts import answers, installed, logged, program, report
from tests.serve.serving import Running
from tests.shard_runs import (
    arguments,
    ended,
    files_in,
    kill_all,
    start,
    verdicts,
    write_parquet,
)
from tests.work import free_ports, until

pytestmark = [pytest.mark.real, installed("llama")]
SERVER = Path(__file__).with_name("llama_server.py")
DEADLINE = 60  # seconds
SMALL = ("--rows-per-shard", 5, "--num-concurrent", 2)
CUT = ("--max-tokens", 64, "--max-failures", 1)


@contextmanager
def llama(folder, *blind):
    """A server, with the address of its API."""
    folder.mkdir()
    [port] = free_ports(1)
    command = [program("llama"), SERVER, folder, port, *blind]
    with logged(folder / "log", *command) as process:
        try:
            running = Running(port, None)
            until(lambda: process.poll() or answers(running, "/health"), DEADLINE)
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            yield SimpleNamespace(base_url=f"{running.url}/v1")
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("judge", "options", "status", "code"),
    [("vqascore", (), "ok", 0), ("viescore", CUT, "parse_failure", 1)],
)
def test_a_killed_client_goes_on_and_judges_each_row_once(
    judge, options, status, code, tmp_path
):
    data = write_parquet(tmp_path / "data", files=1, rows_each=40, group=10)
    out = tmp_path / "out"
    begun = time.monotonic()
    with llama(tmp_path / "llama") as server:
        more = (*SMALL, "--judge", judge, *options)
        command = arguments(data, out, server, *more)
        first = start(*command)
        until(lambda: len(files_in(out)) > 2, DEADLINE)
        kill_all(first)
        before = len(files_in(out))
        ended(start(*command), code)
        assert "0 of 40 rows left to judge" in ended(start(*command), code)
    found = verdicts(out)
    judged = [row["uid"] for row in found]
    report(f"llama.cpp, {judge}", begun, before, judged, 40)
    assert sorted(judged) == sorted(f"u{number}" for number in range(40))
    assert before < len(files_in(out))
    assert {row["status"] for row in found} == {status}
    scores = {row["scores"].get("SC") for row in found}
    assert len(scores) > 30 or status != "ok"


def test_a_model_without_its_vision_part_is_refused(tmp_path):
    data = write_parquet(tmp_path / "data", files=1, rows_each=5)
    with llama(tmp_path / "llama", "blind") as server:
        said = ended(start(*arguments(data, tmp_path / "out", server, *SMALL)), 1)
    assert "fake does not see the images sent to it" in said
    assert "you may need to provide the mmproj" in said
    assert verdicts(tmp_path / "out") == []
