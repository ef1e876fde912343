"""Folders of shards that somebody changed by hand, and data sets with strange contents."""

import io
import json
import os
import tarfile

import pyarrow
import pytest

from tests.shard_runs import parquet, picture, verdicts, write_parquet, write_tar

pytest.importorskip("duckdb")


@pytest.fixture
def out(vieval, tmp_path):
    """A finished run by a pixel metric, of 2 files with 20 rows each in row groups of 10."""
    data = write_parquet(tmp_path / "data", 2, 20, 10)
    vieval("score", data, "--judge", "sharpness", "--out", tmp_path / "out")
    return tmp_path / "out"


FILE = [{"path": path} for path in ("../data/part-0.parquet", "/etc/x", "a\0b", 5)]
FILE += [{"groups": groups} for groups in (["a"], [10**12], [-1, 10])]
PLAN = [{"rows_per_shard": 0}, {"rows_per_shard": "x"}, {"columns": 5}, {"root": 5}]
CHANGES = [("files", change) for change in FILE] + [("plan", change) for change in PLAN]


@pytest.mark.parametrize(("of", "change"), [*CHANGES, ("provenance", {"options": 5})])
def test_a_plan_changed_by_hand_is_refused(vieval, out, tmp_path, of, change):
    plan = json.loads((out / "plan.json").read_text())
    parts = {"plan": plan, "files": plan["files"][0], "provenance": plan["provenance"]}
    parts[of].update(change)
    (out / "plan.json").write_text(json.dumps(plan))
    kept = tmp_path / "kept"
    filtered = ["filter", out, "--where", "PQ > 0", "--out", kept]
    for command in (["shards", out, "--verify"], filtered):
        assert "not a readable shard plan" in vieval(*command, code=1).err
    assert not kept.exists()


def test_verdicts_on_absent_rows_pass_nothing(vieval, out, tmp_path):
    first, *_, last = sorted((out / "verdicts").iterdir())
    original = first.read_bytes()
    table = parquet.read_table(first)
    field = table.schema.field("row")
    moved = pyarrow.array([row + 1000 for row in table["row"].to_pylist()], field.type)
    changed = table.set_column(table.schema.get_field_index("row"), field, moved)
    parquet.write_table(changed.replace_schema_metadata(table.schema.metadata), first)
    command = ["filter", out, "--where", "PQ > 0", "--out", tmp_path / "kept"]
    assert "rows with verdicts are missing" in vieval(*command, code=1).err
    first.write_bytes(original)
    last.write_bytes(original)
    assert "the verdicts from a different shard" in vieval(*command, code=1).err
    assert not (tmp_path / "kept").exists()


def test_a_folder_of_verdicts_inside_the_data_is_not_data(vieval, tmp_path):
    data = write_parquet(tmp_path / "data", 1, 20, 10)
    command = ("score", data, "--judge", "sharpness", "--out", data / "out")
    vieval(*command)
    assert "0 of 20 rows left to judge" in vieval(*command).err


@pytest.mark.parametrize("out", ["out", "new/out", "empty"])
def test_a_data_set_without_images_leaves_no_folder_behind(vieval, tmp_path, out):
    for folder in ("empty", "pipes"):
        (tmp_path / folder).mkdir()
    os.mkfifo(tmp_path / "pipes" / "a.parquet")
    part_0 = write_parquet(tmp_path / "data", 1, 20, 10) / "part-0.parquet"
    parquet.write_table(parquet.read_table(part_0).drop_columns("image"), part_0)
    write_tar(tmp_path / "tars" / "a.tar", {"1": {"txt": b"a thing"}})
    before = set(tmp_path.rglob("*"))
    absent = "no column of images"
    refused = {"data": absent, "tars": absent, "pipes": "a.parquet: not a regular file"}
    for data, words in refused.items():
        command = ("score", tmp_path / data, "--judge", "sharpness")
        assert words in vieval(*command, "--out", tmp_path / out, code=1).err
        assert set(tmp_path.rglob("*")) == before


def test_names_in_a_tar_need_not_be_utf_8(vieval, tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.GNU_FORMAT) as tar:
        for name in ("good", "\udcff\udcfe"):
            for suffix, content in ((".jpg", picture(len(name))), (".txt", b"a hill")):
                entry = tarfile.TarInfo(name + suffix)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    vieval(f"score {tmp_path}/a.tar --judge sharpness --kind tig --out {tmp_path}/out")
    assert [row["status"] for row in verdicts(tmp_path / "out")] == ["ok", "ok"]
    vieval("filter", tmp_path / "out", "--where", "PQ >= 0", "--out", tmp_path / "kept")
