"""A judge in Ray Data, with checkpoints that survive a kill, as docs/tutorials/millions.md has it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.extras import needs
from tests.fake_server import FakeServer
from tests.shard_runs import kill_all, parquet, wait_until, write_parquet

pytestmark = [needs("ray"), pytest.mark.extras]
JOB = """
import sys

import ray
from ray.data import DataContext
from ray.data.checkpoint import CheckpointConfig

from vieval_plugin import JudgeBatches

data, out, address = sys.argv[1:]
ray.init(address="local", num_cpus=4, include_dashboard=False)  # the filter of checkpoints takes some
context = DataContext.get_current()
context.checkpoint_config = CheckpointConfig("uid", out + "-checkpoints", delete_checkpoint_on_success=False)
# bytes of rows that are judged before their checkpoint is written
context.target_min_block_size, context.target_max_block_size = 1, 1 << 14
judged = ray.data.read_parquet(data, override_num_blocks=20).map_batches(
    JudgeBatches,
    fn_constructor_kwargs={"name": "viescore", "model": "fake", "base_url": address, "keep": True},
    batch_size=16,
    compute=ray.data.ActorPoolStrategy(size=1),
)
judged.write_parquet(out)
"""


def is_quiet(server):
    """Whether nothing is asked for two seconds."""
    before = server.stats()["requests"]
    time.sleep(2)
    return server.stats()["requests"] == before


def test_a_killed_job_goes_on_from_its_checkpoints(tmp_path):
    pytest.importorskip("ray.data", reason="Ray Data needs packages that Ray's core does not")
    data, out = write_parquet(tmp_path / "data", 10, 32, 16), tmp_path / "out"
    (tmp_path / "options.yaml").write_text("store: {use: false}\n")
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "VIEVAL_CONFIG": str(tmp_path / "options.yaml"), "PYTHONPATH": path}
    with FakeServer(latency=0.5) as server:
        command = [sys.executable, "-c", JOB, str(data), str(out), server.base_url]
        log = (tmp_path / "log").open("w")
        job = subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=log)
        checkpoints = Path(f"{out}-checkpoints")
        wait_until(lambda: len(list(checkpoints.rglob("*.parquet"))) >= 4 or job.poll() is not None)
        assert job.poll() is None, (tmp_path / "log").read_text()[-3000:]
        kill_all(job)
        wait_until(lambda: is_quiet(server))  # an actor outlives its driver by a batch
        kept = sum(parquet.read_metadata(file).num_rows for file in checkpoints.rglob("*.parquet"))
        server.reset_stats()
        again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert again.returncode == 0, again.stderr[-3000:]
        assert server.stats()["requests"] <= 2 * (320 - kept) + 2
    rows = [row for file in out.rglob("*.parquet") for row in parquet.read_table(file).to_pylist()]
    assert sorted(row["uid"] for row in rows) == sorted(f"u{number}" for number in range(320))
    assert {row["status"] for row in rows} == {"ok"}
