"""Test a judge in Ray Data with checkpoints, as docs/tutorials/millions.md has it."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.extras import needs
from tests.fake_server import FakeServer, Fault
from tests.shard_runs import parquet, write_parquet
from tests.work import until

pytestmark = needs("ray")


def judge(data, out, batch=16, block=1 << 14, tasks=20):
    """A job of the session of Ray that is under way."""
    import ray
    from ray.data import DataContext
    from ray.data.checkpoint import CheckpointConfig

    from vieval_plugin import JudgeBatches

    context = DataContext.get_current()
    kept = {"delete_checkpoint_on_success": False}
    context.checkpoint_config = CheckpointConfig("uid", f"{out}-checkpoints", **kept)
    # bytes of rows that are judged before their checkpoint is written
    context.target_min_block_size, context.target_max_block_size = 1, block
    read = ray.data.read_parquet(str(data), override_num_blocks=tasks)
    made = {"fn_constructor_kwargs": {"name": "viescore", "keep": True}}
    made["compute"] = ray.data.ActorPoolStrategy(size=1)
    judged = read.map_batches(JudgeBatches, batch_size=batch, **made)
    judged.write_parquet(str(out))


# the filter of checkpoints takes some
START = {"address": "local", "num_cpus": 4, "include_dashboard": False}


def environment(tmp_path, server):
    lacking = "Ray Data needs packages that Ray's core does not"
    pytest.importorskip("ray.data", reason=lacking)
    backbone = {"model": "fake", "base_url": server.base_url}
    backbone |= {"retries": 0, "patience": 1}
    file = tmp_path / "options.yaml"
    options = {"store": {"use": False}, "backbones": {"judge": backbone}}
    file.write_text(json.dumps(options))
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(filter(None, paths))
    return {"VIEVAL_CONFIG": str(file), "PYTHONPATH": path}


def checkpoints(out):
    """Files of checkpoints that hold; Ray takes back one that is still `.pending`."""
    files = Path(f"{out}-checkpoints").rglob("*.parquet")
    return [file for file in files if not file.name.endswith(".pending.parquet")]


def rows_kept(out, server):
    """Rows with a checkpoint once nothing is asked; an actor outlives its job by a batch."""
    seen = [-1, server.stats()["requests"]]
    while seen[-1] != seen[-2]:
        time.sleep(2)
        seen.append(server.stats()["requests"])
    return sum(parquet.read_metadata(file).num_rows for file in checkpoints(out))


def check(out, server, kept, count):
    """All rows are there once, and those with a checkpoint were not asked about again."""
    assert server.stats()["distinct_prompts"] <= 2 * (count - kept) + 1
    tables = [parquet.read_table(file).to_pylist() for file in out.rglob("*.parquet")]
    rows = [row for table in tables for row in table]
    wanted = sorted(f"u{number}" for number in range(count))
    assert sorted(row["uid"] for row in rows) == wanted
    assert {row["status"] for row in rows} == {"ok"}


def test_a_failed_job_goes_on_from_its_checkpoints(tmp_path, monkeypatch):
    """The server goes away once there is a checkpoint."""
    data, out, count = write_parquet(tmp_path / "data", 2, 8, 4), tmp_path / "out", 16
    is_away = [True]

    def faults(number, body):
        if not is_away or number <= count:
            return None
        until(lambda: checkpoints(out))
        return Fault("reset")

    with FakeServer(faults=faults) as server:
        for name, value in environment(tmp_path, server).items():
            monkeypatch.setenv(name, value)
        ray = pytest.importorskip("ray")
        ray.init(**START)
        try:
            with pytest.raises(Exception, match="has not answered for"):
                judge(data, out, batch=2, block=1 << 11, tasks=2)
            kept = rows_kept(out, server)
            is_away.clear()
            server.reset_stats()
            judge(data, out, batch=2, block=1 << 11, tasks=2)
        finally:
            ray.shutdown()
            # Ray leaves a handler of its own
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        check(out, server, kept, count)
