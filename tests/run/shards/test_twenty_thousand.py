"""20,000 rows in 40 files, by launchers whose workers and drivers are killed at a quarter and at 60%, twice."""

import os
import signal
import sys

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
    wait_until,
    write_parquet,
)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")]

FILES, ROWS_EACH, PER_SHARD, CONCURRENT = 40, 500, 50, 16
SHARDS = FILES * ROWS_EACH // PER_SHARD
MARK = "VIEVAL_TEST_RUN"
FLAGS = ("--judge", "vqascore", "--rows-per-shard", PER_SHARD, "--num-concurrent", CONCURRENT)


@pytest.fixture(scope="module")
def server():
    with FakeServer(latency=0.01) as running:
        yield running


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_parquet(tmp_path_factory.mktemp("data"), FILES, ROWS_EACH, 250)


@pytest.fixture(scope="module")
def undisturbed(server, data, tmp_path_factory):
    """The verdicts of one process that nobody disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "options.yaml").write_text("store: {use: false}\n")
    ended(
        start(*arguments(data, folder / "out", server, *FLAGS), environment={"VIEVAL_CONFIG": folder / "options.yaml"})
    )
    return less_costs(verdicts(folder / "out"))


def drivers_of(launcher, command):
    """The commands of the drivers of a launcher."""
    if launcher == "parts":
        return [[*command, "--part", part] for part in ("1/2", "2/2")]
    flags = {"processes": ["--processes", "2"], "ray": ["--workers", "2", "--ray=local"]}
    return [[*command, *flags[launcher]]]


def workers_of(launcher, mark, drivers):
    """The processes of workers."""
    if launcher == "parts":
        return [driver.pid for driver in drivers]
    if launcher == "processes":
        return [child for driver in drivers for child in children(driver.pid)]
    return processes_of(f"{MARK}={mark}", "ray::ShardActor")


@pytest.mark.parametrize("kept", [False, True], ids=["no store", "a store"])
@pytest.mark.parametrize("launcher", [pytest.param("ray", marks=needs("ray")), "processes", "parts"])
def test_nothing_is_lost_and_little_asked_again(server, data, undisturbed, tmp_path, launcher, kept):
    (tmp_path / "options.yaml").write_text(f"store: {{use: {str(kept).lower()}, path: replies.sqlite}}\n")
    environment = {"VIEVAL_CONFIG": str(tmp_path / "options.yaml"), MARK: tmp_path.name, "RAY_USAGE_STATS_ENABLED": "0"}
    commands = drivers_of(launcher, arguments(data, tmp_path / "out", server, *FLAGS))
    server.reset_stats()
    for share in (0.25, 0.6):
        drivers = [start(*command, environment=environment) for command in commands]
        wait_until(lambda share=share: len(files_in(tmp_path / "out")) >= (share - 0.1) * SHARDS, 600)
        os.kill(workers_of(launcher, tmp_path.name, drivers)[0], signal.SIGKILL)
        wait_until(lambda share=share: len(files_in(tmp_path / "out")) >= share * SHARDS, 600)
        workers = workers_of(launcher, tmp_path.name, drivers)
        for driver in drivers:
            kill_all(driver)
        wait_until(lambda workers=workers: not any(os.path.exists(f"/proc/{worker}") for worker in workers))
    for driver in [start(*command, environment=environment) for command in commands]:
        ended(driver)
    found, asked = verdicts(tmp_path / "out"), server.stats()["requests"]
    assert less_costs(found) == undisturbed
    kills, hellos = 6, 40
    lost = kills * CONCURRENT if kept else kills * 3 * PER_SHARD
    assert asked <= len(undisturbed) + lost + hellos
