"""Data sets and options of runs into folders of shards."""

import pytest

from tests.fake_s3 import KEYS


@pytest.fixture
def data(tmp_path):
    from tests.shard_runs import write_parquet  # which needs pyarrow

    return write_parquet(tmp_path / "data")


@pytest.fixture
def no_store(tmp_path, monkeypatch):
    """Options without a store, so that all that is asked is counted."""
    (tmp_path / "options.yaml").write_text("store: {use: false}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "options.yaml"))


@pytest.fixture
def keys(no_store, monkeypatch):
    """Keys of the bucket, from the environment, and no store."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
