"""A folder of shards in object storage: each file is put in one go, and what is there is whole."""

import io
from shlex import split

import pytest

from tests.fake_s3 import FakeS3
from tests.shard_runs import arguments, parquet, picture, write_tar

pytestmark = pytest.mark.usefixtures("keys")
SMALL = ("--rows-per-shard", "8")

pytest.importorskip("pyarrow.fs")


def verdicts_in(bucket):
    files = [
        content for key, content in bucket.objects.items() if key.endswith(".parquet")
    ]
    return sorted(
        uid
        for file in files
        for uid in parquet.read_table(io.BytesIO(file)).column("uid").to_pylist()
    )


def test_shards_are_put_once_each_and_resumed(vieval, server, data):
    bucket = FakeS3()
    with bucket.serving() as address:
        command = arguments(data, address, server, *SMALL)
        vieval(*command, "--budget", "120", code=1)
        assert 0 < len(verdicts_in(bucket)) <= 60
        vieval(*command)
        assert verdicts_in(bucket) == sorted(f"u{number}" for number in range(120))
        found = bucket.puts(".parquet")
        assert found == {key: 1 for key in bucket.objects if key.endswith(".parquet")}
        assert "18 of 18 done" in vieval("shards", address, "--verify").out
        vieval("shards", address, "--compact")
        assert len([key for key in bucket.objects if key.endswith(".parquet")]) == 1
        assert "18 of 18 done" in vieval("shards", address).out
        assert verdicts_in(bucket) == sorted(f"u{number}" for number in range(120))
    assert all(
        b"a-key-of-the-bucket" not in content for content in bucket.objects.values()
    )


def test_what_cannot_be_put_ends_the_run_with_no_half_of_a_shard(vieval, server, data):
    bucket, kept = FakeS3(), []

    def fails(method, key):
        kept.extend([key] if method == "PUT" and key.endswith(".parquet") else [])
        return (
            len(set(kept)) > 3
            and key.endswith(".parquet")
            and method in ("PUT", "POST")
        )

    bucket.fails = fails
    with bucket.serving() as address:
        command = arguments(data, address, server, *SMALL)
        assert "cannot write" in vieval(*command, code=1).err
        assert len(bucket.puts(".parquet")) >= 3
        for key, content in bucket.objects.items():
            assert not key.endswith(".parquet") or parquet.read_table(
                io.BytesIO(content)
            ).num_rows in (4, 8)
        bucket.fails = lambda method, key: False
        vieval(*command)
    assert verdicts_in(bucket) == sorted(f"u{number}" for number in range(120))


@pytest.mark.parametrize("replaced", [False, True])
def test_another_machine_indexes_tars(vieval, tmp_path, monkeypatch, replaced):
    def samples(text):
        return {
            str(number): {"jpg": picture(number), "txt": text} for number in range(20)
        }

    path = write_tar(tmp_path / "data" / "a.tar", samples(b"a thing"))
    bucket = FakeS3()
    with bucket.serving() as address:
        command = (
            *split(f"score {path.parent} --out {address} --judge sharpness"),
            *SMALL,
        )
        vieval(*command)
        files = [key for key in bucket.objects if key.endswith(".parquet")]
        first = bucket.objects.pop(files[0])
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache of the other"))
        if replaced:
            write_tar(path, dict(reversed(samples(b"a thing").items())))
            said = vieval(*command, code=1).err
            assert "a.tar: changed since the plan was made" in said
        else:
            vieval(*command)
            uids = [
                parquet.read_table(io.BytesIO(content)).column("uid")
                for content in (first, bucket.objects[files[0]])
            ]
            assert uids[0] == uids[1]
