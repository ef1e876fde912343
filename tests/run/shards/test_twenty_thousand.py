"""Launchers whose workers and drivers are killed at a quarter and at 60% of 400 or 20,000 rows."""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import split

import pytest

from tests.extras import needs
from tests.fake_server import FakeServer
from tests.shard_runs import (
    arguments,
    children,
    ended,
    files_in,
    kill_all,
    less_costs,
    processes_of,
    start,
    verdicts,
    write_parquet,
)
from tests.work import until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes are found in /proc"
)

CONCURRENT = 16
MARK = "VIEVAL_TEST_RUN"


@dataclass(frozen=True)
class Size:
    files: int
    rows_each: int
    per_shard: int
    latency: float  # seconds of a reply, so that a small run too is under way when it is killed

    @property
    def shards(self):
        return self.files * self.rows_each // self.per_shard

    @property
    def flags(self):
        rows = f"--judge vqascore --rows-per-shard {self.per_shard}"
        return split(f"{rows} --num-concurrent {CONCURRENT}")


SHORT, LONG = Size(4, 100, 10, 0.15), Size(40, 500, 50, 0.01)


# on Ray the short form is tests/run/shards/test_ray.py
CASES = [
    pytest.param(SHORT, "processes", False, id="400 rows-processes-no store"),
    pytest.param(SHORT, "parts", True, id="400 rows-parts-a store"),
]
for launcher, marks in {"ray": [needs("ray")], "processes": [], "parts": []}.items():
    marks = [pytest.mark.extras, *marks]
    CASES += [
        pytest.param(LONG, launcher, False, id=f"{launcher}-no store", marks=marks),
        pytest.param(LONG, launcher, True, id=f"{launcher}-a store", marks=marks),
    ]


@pytest.fixture(scope="module")
def size(request):
    return request.param


@pytest.fixture(scope="module")
def server(size):
    with FakeServer(latency=size.latency) as running:
        yield running


@pytest.fixture(scope="module")
def data(size, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return write_parquet(folder, size.files, size.rows_each, size.rows_each // 2)


@pytest.fixture(scope="module")
def undisturbed(size, server, data, tmp_path_factory):
    """The verdicts of one process that nobody disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "options.yaml").write_text("store: {use: false}\n")
    command = arguments(data, folder / "out", server, *size.flags)
    ended(start(*command, environment={"VIEVAL_CONFIG": folder / "options.yaml"}))
    return less_costs(verdicts(folder / "out"))


def drivers_of(launcher, command):
    """The commands of the drivers of a launcher."""
    if launcher == "parts":
        return [[*command, "--part", part] for part in ("1/2", "2/2")]
    flags = {"processes": "--processes 2", "ray": "--workers 2 --ray=local"}
    return [[*command, *split(flags[launcher])]]


def workers_of(launcher, mark, drivers):
    """The processes of workers."""
    if launcher == "parts":
        return [driver.pid for driver in drivers]
    if launcher == "processes":
        return [child for driver in drivers for child in children(driver.pid)]
    return processes_of(f"{MARK}={mark}", "ray::ShardActor")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "launcher", "kept"), CASES, indirect=["size"], scope="module"
)
def test_nothing_is_lost(size, server, data, undisturbed, tmp_path, launcher, kept):
    options = tmp_path / "options.yaml"
    out = tmp_path / "out"
    options.write_text(f"store: {{use: {str(kept).lower()}, path: replies.sqlite}}\n")
    environment = {"VIEVAL_CONFIG": str(options), MARK: tmp_path.name}
    environment["RAY_USAGE_STATS_ENABLED"] = "0"
    commands = drivers_of(launcher, arguments(data, out, server, *size.flags))
    server.reset_stats()
    written = lambda share: len(files_in(out)) >= share * size.shards
    for share in (0.25, 0.6):
        drivers = [start(*command, environment=environment) for command in commands]
        until(lambda share=share: written(share - 0.1))
        os.kill(workers_of(launcher, tmp_path.name, drivers)[0], signal.SIGKILL)
        until(lambda share=share: written(share))
        left = [
            Path(f"/proc/{worker}")
            for worker in workers_of(launcher, tmp_path.name, drivers)
        ]
        for driver in drivers:
            kill_all(driver)
        until(lambda left=left: not any(process.exists() for process in left))
    for driver in [start(*command, environment=environment) for command in commands]:
        ended(driver)
    found, asked = verdicts(out), server.stats()["requests"]
    assert less_costs(found) == undisturbed
    assert not list((out / "under_way").iterdir())
    kills, hellos = 6, 40
    lost = kills * CONCURRENT if kept else kills * 3 * size.per_shard
    assert asked <= len(undisturbed) + lost + hellos
