"""Several workers on one data set: what each dies of is nobody else's, and no row is lost or there twice."""

import os
import signal
import sys

import pytest

from tests.fake_server import FakeServer
from tests.shard_runs import (
    arguments,
    children,
    ended,
    files_in,
    kill_all,
    less_costs,
    start,
    verdicts,
    wait_until,
)
from vieval_plugin.errors import VievalError
from vieval_plugin.run.shards.launchers.parts import part_of

pytestmark = pytest.mark.usefixtures("no_store")
SMALL = ("--rows-per-shard", "8", "--num-concurrent", "4")
EVERY = [f"u{number}" for number in range(120)]


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
def test_processes_are_killed_and_started_again(vieval, data, tmp_path):
    with FakeServer(latency=0.02) as server:
        vieval(*arguments(data, tmp_path / "undisturbed", server, *SMALL))
        server.reset_stats()
        command = arguments(data, tmp_path / "out", server, *SMALL, "--processes", "2")
        driver = start(*command)
        wait_until(lambda: len(files_in(tmp_path / "out")) >= 4)
        os.kill(children(driver.pid)[0], signal.SIGKILL)
        wait_until(lambda: len(files_in(tmp_path / "out")) >= 10)
        workers = children(driver.pid)
        kill_all(driver)
        # workers whose driver is gone finish what they have open
        wait_until(lambda: not any(os.path.exists(f"/proc/{worker}") for worker in workers))
        printed = ended(start(*command))
        assert "18 of 18 done" in printed
        asked = server.stats()["requests"]
    assert less_costs(verdicts(tmp_path / "out")) == less_costs(verdicts(tmp_path / "undisturbed"))
    assert asked <= 2 * (120 + 2 * 2 * 3 * 8) + 10


def test_parts_share_the_row_groups(vieval, data, tmp_path, server):
    command = arguments(data, tmp_path / "out", server, *SMALL)
    for part in ("1/3", "3/3", "2/3"):
        before = {row["uid"] for row in verdicts(tmp_path / "out")}
        vieval(*command, "--part", part)
        assert len(verdicts(tmp_path / "out")) == len(before) + 40
    assert [row["uid"] for row in verdicts(tmp_path / "out")] == EVERY


def test_all_parts_may_begin_at_once(data, tmp_path):
    with FakeServer() as server:
        environment = [{"RANK": str(rank), "WORLD_SIZE": "3"} for rank in range(3)]
        command = arguments(data, tmp_path / "out", server, *SMALL, "--part", "auto")
        for process in [start(*command, environment=variables) for variables in environment]:
            ended(process)
        assert server.stats()["requests"] <= 2 * 120 + 6
    assert [row["uid"] for row in verdicts(tmp_path / "out")] == EVERY


def test_a_part_is_that_of_a_slurm_array():
    array = {"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "3"}
    assert part_of("auto", array) == (2, 4)
    for named, variables in (
        ("0/4", {}),
        ("5/4", {}),
        ("x", {}),
        ("auto", {}),
        ("auto", {**array, "SLURM_ARRAY_TASK_ID": "9"}),
    ):
        with pytest.raises(VievalError, match="part"):
            part_of(named, variables)
