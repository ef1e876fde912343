"""A data set in object storage is judged as one on a disk, read once, and no key leaves."""

import json

import pyarrow
import pytest

from tests.fake_s3 import KEYS, FakeS3
from tests.shard_runs import arguments, less_costs, parquet, picture, rows, verdicts

pytest.importorskip("pyarrow.fs")
pytest.importorskip("duckdb")
pytestmark = pytest.mark.usefixtures("keys")
SECRET = KEYS["AWS_SECRET_ACCESS_KEY"]


@pytest.fixture
def bucket(data):
    """A bucket with the data set in two folders, one in the other, beside another file."""
    store = FakeS3()
    names = ["data/part-0.parquet", "data/part-1.parquet", "data/more/part-2.parquet"]
    for name, file in zip(names, sorted(data.iterdir()), strict=True):
        store.objects[name] = file.read_bytes()
    store.objects["data/notes.txt"] = b"notes"
    with store.serving() as address:
        store.address = lambda name: address.replace("/run?", f"/{name}?")
        yield store


@pytest.fixture
def judge(vieval, tmp_path):
    """Judges what is named, into this test's folder; what was said on stderr."""

    def judged(*named, out=tmp_path / "out", code=0):
        more = ("--judge", "sharpness", "--rows-per-shard", "8")
        return vieval("score", *more, "--out", out, *named, code=code).err

    return judged


def parquet_bytes(table, **options):
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink, **options)
    return bytes(sink.getvalue())


def plain(found):
    """Verdicts by file and row, less their costs and the file's folder."""
    rows = [{**r, "file": r["file"].rpartition("/")[2]} for r in less_costs(found)]
    return sorted(rows, key=lambda row: (row["file"], row["row"]))


@pytest.mark.parametrize("extra", [(), ("--processes", "2")])
def test_a_bucket_equals_a_disk(vieval, server, bucket, data, tmp_path, extra):
    out, small = tmp_path / "out", ("--rows-per-shard", "8")
    vieval(*arguments(data, tmp_path / "local", server, *small))
    command = arguments(bucket.address("data"), out, server, *small, *extra)
    vieval(*command)
    assert plain(verdicts(out)) == plain(verdicts(tmp_path / "local"))
    plan = json.loads((out / "plan.json").read_text())
    assert plan["root"] == bucket.address("data")
    paths = [file["path"] for file in plan["files"]]
    assert paths == ["more/part-2.parquet", "part-0.parquet", "part-1.parquet"]
    assert "0 of 120 rows left to judge" in vieval(*command).err
    everything = [file.read_bytes() for file in out.rglob("*") if file.is_file()]
    assert not any(SECRET.encode() in content for content in everything)


PATTERNS = [("data/*.parquet", 2), ("data/**/*.parquet", 3), ("d*/[mn]*/part-*", 1)]


@pytest.mark.parametrize(("pattern", "count"), [*PATTERNS, ("data/part-1.parquet", 1)])
def test_files_are_named_as_on_a_disk(judge, bucket, tmp_path, pattern, count):
    judge(bucket.address(pattern))
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert len(plan["files"]) == count


def test_verdicts_may_lie_in_the_data_set(judge, bucket):
    for to_judge in (120, 0):
        said = judge(bucket.address("data"), out=bucket.address("data/verdicts"))
        assert f"{to_judge} of 120 rows left to judge" in said


def test_what_reads_the_data_again_reads_it_there(
    judge, vieval, bucket, data, tmp_path
):
    out = tmp_path / "out"
    judge(bucket.address("data"))
    complete = "complete: each row has exactly one verdict; compared 18 images with"
    assert complete in vieval("shards", out, "--verify").out
    vieval("filter", out, "--where", "row % 2 = 0", "--out", tmp_path / "kept")
    passed = parquet.read_table(tmp_path / "kept" / "more" / "part-2.parquet")
    assert passed["uid"].to_pylist() == [f"u{number}" for number in range(80, 120, 2)]
    expected = parquet.read_table(data / "part-2.parquet")["image"].to_pylist()[::2]
    assert passed["image"].to_pylist() == expected
    assert "u3" in vieval("show", out, "part-0.parquet:3").out
    asked = len(bucket.requests)
    vieval("report", out, "--out", tmp_path / "report")
    assert len(bucket.requests) > asked  # for its pictures


def test_a_file_that_was_replaced_is_refused(judge, vieval, bucket, tmp_path):
    out = tmp_path / "out"
    judge(bucket.address("data"))
    table = pyarrow.Table.from_pylist(list(rows(range(200, 240))))
    bucket.objects["data/part-1.parquet"] = parquet_bytes(table, row_group_size=20)
    error = judge(bucket.address("data"), code=1)
    assert "part-1.parquet has changed since the plan was made" in error
    filtered = ("filter", out, "--where", "PQ > 0", "--out", tmp_path / "kept")
    for command in (("shards", out, "--verify"), filtered):
        said = vieval(*command, code=1).err
        assert "s3://bucket/data/part-1.parquet: changed" in said


def test_an_object_that_vanishes_ends_its_shards(judge, bucket):
    def vanish(method, key):
        asked = [(method, key[-14:]) for method, key, _ in bucket.requests]
        if asked.count(("GET", "part-1.parquet")) > 8:
            bucket.objects.pop("data/part-1.parquet", None)
        return False

    bucket.fails = vanish
    error = judge(bucket.address("data"), code=1)
    assert "cannot read s3://bucket/data/part-1.parquet: " in error
    assert "Traceback" not in error
    assert SECRET not in error


def test_no_access_is_one_line_with_the_address(judge, bucket, tmp_path):
    error = judge(bucket.address("nowhere"), code=1)
    assert error.startswith("vieval: s3://bucket/nowhere: no parquet or tar files")
    bucket.fails = lambda method, key: key.endswith("part-0.parquet")
    error = judge(bucket.address("data"), code=1)
    assert error.startswith("vieval: cannot read s3://bucket/data/part-0.parquet: ")
    bucket.fails = lambda method, key: True
    error = judge(bucket.address("data"), code=1)
    assert error.startswith("vieval: cannot read s3://bucket/data: ")
    assert (error.count("\n"), SECRET in error) == (1, False)
    assert not (tmp_path / "out" / "plan.json").exists()


@pytest.mark.parametrize("password", ["hidden-word", "hidden/word"])
def test_keys_in_an_address_are_refused(judge, data, tmp_path, password):
    address = f"s3://me:{password}@bucket/data"
    for named, out in ((address, tmp_path / "out"), (data, address)):
        error = judge(named, out=out, code=1)
        assert "without keys; set keys in the environment" in error
        assert "hidden" not in error


def test_a_folder_with_a_space_is_found_again(judge, vieval, bucket, tmp_path):
    content = bucket.objects["data/part-0.parquet"]
    bucket.objects = {"da ta/of mine/a b.parquet": content}
    judge(bucket.address("da%20ta"))
    assert "complete" in vieval("shards", tmp_path / "out", "--verify").out


def test_what_cannot_be_judged_there_is_refused_in_one_line(
    judge, vieval, bucket, data
):
    command = ("score", bucket.address("data"), "--judge", "sharpness")
    for more in (("--out", "verdicts.jsonl"), ()):
        said = vieval(*command, *more, code=1).err
        assert said.startswith("vieval: s3://bucket/data: tar files, patterns and")
    bucket.objects["tars/a.tar"] = b"\0" * 1024
    said = judge(bucket.address("tars"), code=1)
    assert said.startswith("vieval: s3://bucket/tars/a.tar: tar files must be on")
    for folder in (bucket.address("data"), data):
        assert "contains all of the input" in judge(folder, out=folder, code=1)
    said = judge(data, bucket.address("data"), code=1)
    assert "have no common folder or bucket" in said


def test_a_path_in_a_table_leads_to_no_file_of_this_machine(judge, bucket, tmp_path):
    private = tmp_path / "private.jpg"
    private.write_bytes(picture(1))
    paths = [str(private), "../private.jpg", "there.jpg"]
    table = pyarrow.table({"image": paths, "prompt": ["a thing"] * 3})
    bucket.objects["paths/a.parquet"] = parquet_bytes(table)
    judge(bucket.address("paths"), "--max-failures", "1", code=1)
    found = verdicts(tmp_path / "out")
    assert {row["status"] for row in found} <= {"parse_failure", "no_image"}
    assert "inside the folder of the table" in found[0]["reason"]
    assert "missing output image" in found[2]["reason"]


@pytest.mark.parametrize("group", [600, 200])
def test_a_row_group_is_read_once(judge, bucket, tmp_path, group):
    many = [{"prompt": f"thing {n}", "image": picture(n, 96)} for n in range(600)]
    content = parquet_bytes(pyarrow.Table.from_pylist(many), row_group_size=group)
    bucket.objects = {"data/one.parquet": content}
    before = bucket.sent_bytes
    judge(bucket.address("data"), "--rows-per-shard", "50")
    assert (bucket.sent_bytes - before) / len(content) < 1.2
    assert len(verdicts(tmp_path / "out")) == 600
