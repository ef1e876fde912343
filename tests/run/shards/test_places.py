"""Where a folder of shards may be: it is resumed, and no row is missing or there twice."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fake_s3 import FakeS3
from tests.fake_server import FakeServer
from tests.shard_runs import (
    arguments,
    ended,
    files_in,
    kill_all,
    parquet,
    picture,
    start,
    write_tar,
)
from tests.work import until

pytest.importorskip("pyarrow.fs")
pytestmark = pytest.mark.usefixtures("keys")
SMALL = ("--rows-per-shard", "8")
EVERY = sorted(f"u{number}" for number in range(120))


@dataclass(frozen=True)
class Place:
    """A folder of shards."""

    address: str | Path
    #: Files of verdicts by name.
    files: Callable[[], dict[str, bytes]]

    @property
    def uids(self):
        """Uid of each verdict."""
        tables = map(parquet.read_table, map(io.BytesIO, self.files().values()))
        return sorted(uid for table in tables for uid in table["uid"].to_pylist())


def verdicts_of(bucket):
    found = bucket.objects.items()
    return {key: content for key, content in found if key.endswith(".parquet")}


@pytest.fixture
def bucket():
    return FakeS3()


@pytest.fixture(params=["folder", "bucket"])
def place(request, bucket, tmp_path):
    if request.param == "folder":
        out = tmp_path / "out"
        found = lambda: {path.name: path.read_bytes() for path in files_in(out)}
        yield Place(out, found)
        return
    with bucket.serving() as address:
        yield Place(address, lambda: verdicts_of(bucket))


def test_a_run_is_resumed_finished_and_never_repeated(vieval, server, data, place):
    command = arguments(data, place.address, server, *SMALL)
    assert "--budget" in vieval(*command, "--budget", "100", code=1).err
    assert server.stats()["requests"] <= 100
    first = place.files()
    assert 0 < len(place.uids) <= 50
    vieval(*command)
    assert place.uids == EVERY
    assert first.items() <= place.files().items()
    verify = ("shards", place.address, "--verify")
    assert "18 of 18 done" in vieval(*verify).out
    asked = server.stats()["requests"]
    again = ("--num-concurrent", "3", "--timeout", "7")
    vieval(*arguments(data, place.address, server, *again))
    assert "merged" in vieval("shards", place.address, "--compact").out
    assert len(place.files()) == 1
    vieval(*command)
    assert (server.stats()["requests"], place.uids) == (asked, EVERY)
    assert "18 of 18 done" in vieval(*verify).out


def test_shards_that_were_merged_are_resumed(vieval, server, data, place):
    command = arguments(data, place.address, server, *SMALL)
    vieval(*command, "--budget", "120", code=1)
    before = place.uids
    vieval("shards", place.address, "--compact")
    assert place.uids == before
    assert len(place.files()) == 1
    asked = server.stats()["requests"]
    vieval(*command)
    assert server.stats()["requests"] - asked <= 2 * (120 - len(before)) + 2
    assert place.uids == EVERY


def test_a_killed_run_is_resumed(vieval, data, place):
    with FakeServer(latency=0.01) as server:
        more = (*SMALL, "--num-concurrent", "4")
        command = arguments(data, place.address, server, *more)
        process = start(*command)
        until(lambda: len(place.files()) > 2)
        kill_all(process)
        assert len(place.uids) < 120
        ended(start(*command))
    assert place.uids == EVERY
    assert "complete" in vieval("shards", place.address, "--verify").out


def test_a_bucket_is_put_each_file_once_and_no_key(vieval, server, data, bucket):
    with bucket.serving() as address:
        vieval(*arguments(data, address, server, *SMALL))
    assert bucket.puts(".parquet") == dict.fromkeys(verdicts_of(bucket), 1)
    written = bucket.objects.values()
    assert not any(b"a-key-of-the-bucket" in content for content in written)


def test_what_cannot_be_put_ends_the_run_with_no_half_of_a_shard(
    vieval, server, data, bucket
):
    kept = set()

    def fails(method, key):
        is_put = key.endswith(".parquet") and method in ("PUT", "POST")
        kept.update({key} if is_put and method == "PUT" else ())
        return is_put and len(kept) > 3

    bucket.fails = fails
    with bucket.serving() as address:
        place = Place(address, lambda: verdicts_of(bucket))
        command = arguments(data, address, server, *SMALL)
        assert "cannot write" in vieval(*command, code=1).err
        assert len(bucket.puts(".parquet")) >= 3
        for content in place.files().values():
            assert parquet.read_table(io.BytesIO(content)).num_rows in (4, 8)
        bucket.fails = lambda method, key: False
        vieval(*command)
    assert place.uids == EVERY


@pytest.mark.parametrize("replaced", [False, True])
def test_another_machine_indexes_tars(vieval, bucket, tmp_path, monkeypatch, replaced):
    samples = {str(n): {"jpg": picture(n), "txt": b"a thing"} for n in range(20)}
    path = write_tar(tmp_path / "data" / "a.tar", samples)
    with bucket.serving() as address:
        flags = ("--judge", "sharpness", *SMALL)
        command = ("score", path.parent, "--out", address, *flags)
        vieval(*command)
        name, first = next(iter(verdicts_of(bucket).items()))
        del bucket.objects[name]
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache of the other"))
        if replaced:
            write_tar(path, dict(reversed(samples.items())))
            said = vieval(*command, code=1).err
            assert "a.tar: changed since the plan was made" in said
        else:
            vieval(*command)
            contents = (first, bucket.objects[name])
            tables = [parquet.read_table(io.BytesIO(content)) for content in contents]
            before, after = (table["uid"] for table in tables)
            assert before == after
