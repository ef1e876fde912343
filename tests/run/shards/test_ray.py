"""Workers on a Ray cluster of two nodes: workers, drivers and nodes are killed, and no row is
lost or there twice.
"""

import os
import pickle
import signal
import sys
import time
import uuid
from shlex import split

import pytest

from tests.extras import needs
from tests.fake_s3 import KEYS, FakeS3
from tests.fake_server import FakeServer
from tests.shard_runs import (
    arguments,
    ended,
    fatal_judge,
    files_in,
    kill_all,
    less_costs,
    processes_of,
    start,
    verdicts,
)
from tests.work import until
from vieval_plugin.text.errors import VievalError

pytestmark = [
    needs("ray"),
    pytest.mark.usefixtures("no_store"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
]

KEY = "a-key-of-the-nodes-alone"
MARK = "VIEVAL_TEST_CLUSTER"
SMALL = ("--rows-per-shard", "8", "--num-concurrent", "4", "--workers", "2")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes with a processor each, the second also with what Ray is told is a GPU, and their
    mark in the environment.
    """
    from ray.cluster_utils import Cluster

    folder = tmp_path_factory.mktemp("cluster")
    with pytest.MonkeyPatch.context() as patch:
        own = {MARK: uuid.uuid4().hex, "RAY_USAGE_STATS_ENABLED": "0"}
        own["OPENAI_API_KEY"] = KEY
        for name, value in {**fatal_judge(folder, "u33"), **KEYS, **own}.items():
            patch.setenv(name, value)
        node = {"num_cpus": 1, "object_store_memory": 100 << 20}
        head = {"include_dashboard": False, **node}
        running = Cluster(initialize_head=True, head_node_args=head)
        running.mark = os.environ[MARK]
        running.second = running.add_node(num_gpus=1, **node)
    yield running
    running.shutdown()


def actors(cluster):
    """The processes of the cluster's workers."""
    return processes_of(f"{MARK}={cluster.mark}", "ray::ShardActor")


def test_a_worker_and_the_driver_are_killed(vieval, cluster, data, tmp_path):
    out = tmp_path / "out"
    with FakeServer(latency=0.02, api_key=KEY) as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_API_KEY", KEY)
            vieval(*arguments(data, tmp_path / "undisturbed", server, *SMALL[:4]))
        server.reset_stats()
        command = arguments(data, out, server, *SMALL, "--ray", cluster.address)
        driver = start(*command)
        until(lambda: len(files_in(out)) >= 4)
        os.kill(actors(cluster)[0], signal.SIGKILL)
        until(lambda: len(files_in(out)) >= 10)
        kill_all(driver)
        until(lambda: not actors(cluster))
        assert "18 of 18 done" in ended(start(*command))
        asked = server.stats()["requests"]
    found = less_costs(verdicts(out))
    assert found == less_costs(verdicts(tmp_path / "undisturbed"))
    assert asked <= 2 * (120 + 3 * 3 * 8) + 12


@pytest.mark.slow
def test_a_bucket_holds_all(vieval, cluster, data, tmp_path, monkeypatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    command = ("--judge", "sharpness", *SMALL[:2])
    vieval("score", data, "--out", tmp_path / "here", *command)
    bucket = FakeS3()
    for file in data.iterdir():
        bucket.objects[f"data/{file.name}"] = file.read_bytes()
    with bucket.serving() as run:
        inputs, out = run.replace("/run?", "/data?"), run.replace("/run?", "/verdicts?")
        command = (inputs, "--out", out, *command, "--ray", cluster.address)
        assert "18 of 18 done" in ended(start("score", *command))
    for key in [key for key in bucket.objects if key.startswith("verdicts/")]:
        file = tmp_path / "there" / key.removeprefix("verdicts/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bucket.objects[key])
    found = less_costs(verdicts(tmp_path / "there"))
    assert found == less_costs(verdicts(tmp_path / "here"))
    written = bucket.objects.values()
    assert not any(b"a-key-of-the-bucket" in content for content in written)


@pytest.mark.slow
def test_a_network_has_a_worker_a_gpu(cluster, data, tmp_path, scorer_weights):
    weights = scorer_weights["clip_score"]
    command = split(f"score {data} --judge clip_score --scorer {weights}")
    until(lambda: not actors(cluster))  # those of the test before
    on = ("--out", tmp_path / "out", "--ray", cluster.address)
    driver = start(*command, *on)
    workers = set()
    while driver.poll() is None:
        workers.update(actors(cluster))
        time.sleep(0.05)
    ended(driver)
    assert len(workers) == 1
    assert {row["status"] for row in verdicts(tmp_path / "out")} == {"ok"}


@pytest.mark.slow
def test_a_fatal_row_alone_has_no_verdict(cluster, data, tmp_path, monkeypatch):
    for name, value in fatal_judge(tmp_path / "plugin", "u33").items():
        monkeypatch.setenv(name, value)
    command = split(f"score {data} --judge fatal --out {tmp_path}/out")
    printed = ended(start(*command, *SMALL[:2], "--ray", cluster.address))
    assert " that had died; these lines" in printed
    found = verdicts(tmp_path / "out")
    assert len(found) == 120
    seen = [(row["uid"], row["status"]) for row in found if row["status"] != "ok"]
    assert seen == [("u33", "tool_error")]


@pytest.mark.slow
def test_a_node_is_lost_and_the_other_finishes(cluster, data, tmp_path, monkeypatch):
    out = tmp_path / "out"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeServer(latency=0.05) as server:
        command = arguments(data, out, server, *SMALL, "--ray", cluster.address)
        driver = start(*command)
        until(lambda: len(actors(cluster)) == 2 and len(files_in(out)) >= 3)
        cluster.remove_node(cluster.second, allow_graceful=False)
        assert "18 of 18 done" in ended(driver)
    assert {row["status"] for row in verdicts(out)} == {"ok"}
    assert len(verdicts(out)) == 120


def test_what_workers_are_told_holds_no_key(data, tmp_path, server, monkeypatch):
    from vieval_plugin.config import Backbone, Config
    from vieval_plugin.run.shards.start import ShardRequest, begin
    from vieval_plugin.run.shards.worker import ShardRun

    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-somebody")
    backbone = Backbone(model="fake", base_url=server.base_url)
    run = ShardRun(str(tmp_path / "out"), "", "viescore", None, Config(), backbone)
    begun = begin(ShardRequest([str(data)], run))
    assert b"a-key-of-somebody" not in pickle.dumps(begun.run)


def test_a_folder_that_only_a_node_sees_is_refused(tmp_path, monkeypatch):
    from vieval_plugin.run.shards.folder import open_folder
    from vieval_plugin.run.shards.launchers import ray as launcher
    from vieval_plugin.run.shards.passes import Written
    from vieval_plugin.run.shards.plan import Shard

    monkeypatch.setattr(launcher, "_PATIENCE", 0.3)
    written = Written(Shard("0" * 24, "a.parquet", 0, 0, 8))
    with pytest.raises(VievalError, match="use a folder that all nodes share"):
        launcher._require_seen(open_folder(tmp_path), written)


def test_a_cluster_that_refuses_the_token_is_an_error_in_one_line(monkeypatch):
    import ray

    from vieval_plugin.run.shards.launchers import ray as launcher

    def refuse(**options):
        raise ray.exceptions.RayError("the token is missing\nor incorrect")

    monkeypatch.setattr(ray, "init", refuse)
    expected = (
        "--ray 10.0.0.1:6379: cannot reach a Ray cluster (the token is missing or "
        "incorrect); if it requires a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
    )
    with pytest.raises(VievalError) as caught:
        launcher._connect(ray, "10.0.0.1:6379")
    assert str(caught.value) == expected
