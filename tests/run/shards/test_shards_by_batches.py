"""A folder of shards whose questions are asked by batches, which span shards."""

import json

import pytest

from tests.batch_server import BatchServer
from tests.fake_server import FakeServer
from tests.shard_runs import arguments, less_costs, verdicts, write_parquet
from vieval_plugin.backends.http import batches
from vieval_plugin.cli import main


@pytest.mark.parametrize("stored", [True, False])
def test_batches_over_all_shards_give_the_verdicts_of_calls(tmp_path, monkeypatch, capsys, stored):
    monkeypatch.setattr(batches, "_POLL", 0.001)
    data = write_parquet(tmp_path / "data")
    store = {"path": str(tmp_path / "replies.sqlite")} if stored else {"use": False}
    (tmp_path / "o.yaml").write_text(json.dumps({"store": store}))
    flags = ["--config", tmp_path / "o.yaml", "--rows-per-shard", "10"]
    with FakeServer() as server:
        assert main([*map(str, arguments(data, tmp_path / "live", server, *flags, "--fresh"))]) == 0
    for file in tmp_path.glob("replies.sqlite*"):
        file.unlink()
    with BatchServer() as service:
        assert main([*map(str, arguments(data, tmp_path / "out", service, *flags, "--batch"))]) == 0
        assert len(service.batches) == 1
        assert set(service.paid.values()) == {1}
        assert service.paid.total() == 240
    assert less_costs(verdicts(tmp_path / "out")) == less_costs(verdicts(tmp_path / "live"))
    assert [row["calls"] for row in verdicts(tmp_path / "out")] == [2] * 120
    assert not (tmp_path / "out" / "batches").exists()
    calls = 240 if stored else 241  # it is asked once more whether schemas are enforced
    assert f"calls: {calls}, answered from the store: 0" in capsys.readouterr().err


def test_parts_of_a_run_do_not_go_with_batches(tmp_path, capsys):
    data = write_parquet(tmp_path / "data", files=1)
    with BatchServer() as service:
        given = arguments(data, tmp_path / "out", service, "--batch", "--part", "1/2")
        assert main([*map(str, given)]) == 1
        assert not service.files
    assert "--part does not go with batches, which one process sends for all shards" in capsys.readouterr().err
