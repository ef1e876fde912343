"""A folder of shards whose questions are asked by batches, which span shards."""

import json
import re
from shlex import split

import pytest

from tests.batch_server import BatchServer
from tests.fake_server import FakeServer
from tests.shard_runs import (
    arguments,
    files_in,
    kill_all,
    less_costs,
    start,
    verdicts,
    write_parquet,
)
from tests.work import until
from vieval_plugin.backends.http import batches

FLAGS = ["--rows-per-shard", "10", "--price-input", "1", "--price-output", "4"]


@pytest.fixture
def live(tmp_path, monkeypatch, vieval):
    """The verdicts that calls give, after which nothing is stored; and the options."""
    monkeypatch.setattr(batches, "_POLL", 0.001)
    write_parquet(tmp_path / "data")

    def judged(store):
        (tmp_path / "o.yaml").write_text(json.dumps({"store": store}))
        monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "o.yaml"))
        with FakeServer() as server:
            vieval(*arguments(tmp_path / "data", tmp_path / "live", server, *FLAGS))
        for file in tmp_path.glob("replies.sqlite*"):
            file.unlink()
        return less_costs(verdicts(tmp_path / "live"))

    return judged


RUNS = [(True, []), (False, []), (True, ["--processes", "2"])]


@pytest.mark.parametrize(("stored", "more"), RUNS)
def test_batches_give_the_verdicts_of_calls(live, tmp_path, vieval, stored, more):
    out = tmp_path / "out"
    store = {"path": str(tmp_path / "replies.sqlite")} if stored else {"use": False}
    expected = live(store)
    with BatchServer() as service:
        command = arguments(tmp_path / "data", out, service, *FLAGS, "--batch", *more)
        said = vieval(*command).err
        assert len(service.batches) == 1
        assert (set(service.paid.values()), service.paid.total()) == ({1}, 240)
    assert less_costs(verdicts(out)) == expected
    assert [row["calls"] for row in verdicts(out)] == [2] * 120
    assert not (out / "batches").exists()
    calls = 240 if stored else 241  # it is asked once more whether schemas are enforced
    if more:
        calls = "24[0-4]"  # each process may show the two pictures of the sight check
    told = rf"calls: {calls}, .*: 0, tokens .* price: (\S+)\n.*saved by batches: (\S+)"
    price, saved = map(float, re.search(told, said).groups())
    assert price == pytest.approx(saved, rel=0.02)


QUICK = (
    "from vieval_plugin.backends.http import batches as b\n"
    "b._POLL, b.MOST_REQUESTS = 0.01, 100"
)


def test_a_killed_run_pays_nothing_twice(live, tmp_path, vieval):
    expected = live({"use": False})
    running, out = [], tmp_path / "out"

    def kill(method, path, moment):
        sent = path.endswith("batches") and (method, moment) == ("POST", "after")
        if sent and len(running) == 1:
            kill_all(running[0])

    with BatchServer(on_call=kill) as service:
        more = split("--batch --processes 2")
        command = arguments(tmp_path / "data", out, service, *FLAGS, *more)
        running.append(start(*command, code=QUICK))
        running[0].wait()
        running.append(start(*command, code=QUICK))
        until(lambda: files_in(out) or running[1].poll() is not None)
        kill_all(running[1])
        vieval(*command)
        assert (set(service.paid.values()), service.paid.total()) == ({1}, 240)
    assert less_costs(verdicts(out)) == expected


def test_parts_of_a_run_do_not_go_with_batches(tmp_path, vieval):
    data = write_parquet(tmp_path / "data", files=1)
    with BatchServer() as service:
        given = arguments(data, tmp_path / "out", service, "--batch", "--part", "1/2")
        said = vieval(*given, code=1).err
        assert not service.files
    assert "--part cannot be combined with batches, because one process sends" in said
