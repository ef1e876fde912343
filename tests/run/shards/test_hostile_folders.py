"""Folders of shards that somebody changed by hand, and data sets with what does not belong
there.
"""

import io
import json
import os
import tarfile
from shlex import split

import pyarrow
import pytest

from tests.shard_runs import parquet, picture, verdicts, write_parquet, write_tar

pytest.importorskip("duckdb")


@pytest.fixture
def out(vieval, tmp_path):
    """A finished run by a pixel metric, of 2 files with 20 rows each in row groups of 10."""
    data = tmp_path / "data"
    write_parquet(data, 2, 20, 10)
    vieval("score", data, "--judge", "sharpness", "--out", tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan["files"][0].update(path="../data/part-0.parquet"),
        lambda plan: plan["files"][0].update(path="/etc/part-0.parquet"),
        lambda plan: plan["files"][0].update(path="a\0b"),
        lambda plan: plan["files"][0].update(path=5),
        lambda plan: plan["files"][0].update(groups=["a"]),
        lambda plan: plan["files"][0].update(groups=[10**12]),
        lambda plan: plan["files"][0].update(groups=[-1, 10]),
        lambda plan: plan.update(rows_per_shard=0),
        lambda plan: plan.update(rows_per_shard="x"),
        lambda plan: plan.update(columns=5),
        lambda plan: plan.update(root=5),
        lambda plan: plan["provenance"].update(options=5),
    ],
)
def test_a_plan_changed_by_hand_is_refused(vieval, out, tmp_path, change):
    plan = json.loads((out / "plan.json").read_text())
    change(plan)
    (out / "plan.json").write_text(json.dumps(plan))
    for command in (
        ["shards", out, "--verify"],
        ["filter", out, "--where", "PQ > 0", "--out", tmp_path / "kept"],
    ):
        assert "not a readable shard plan" in vieval(*command, code=1).err
    assert not (tmp_path / "kept").exists()


def test_verdicts_on_absent_rows_pass_nothing(vieval, out, tmp_path):
    first, *_, last = sorted((out / "verdicts").iterdir())
    original = first.read_bytes()
    table = parquet.read_table(first)
    rows = [row + 1000 for row in table["row"].to_pylist()]
    moved = pyarrow.array(rows, table.schema.field("row").type)
    place = table.schema.get_field_index("row")
    changed = table.set_column(place, table.schema.field("row"), moved)
    parquet.write_table(changed.replace_schema_metadata(table.schema.metadata), first)
    command = ["filter", out, "--where", "PQ > 0", "--out", tmp_path / "kept"]
    assert "rows with verdicts are missing" in vieval(*command, code=1).err
    first.write_bytes(original)
    last.write_bytes(original)
    assert "the verdicts from a different shard" in vieval(*command, code=1).err
    assert not (tmp_path / "kept").exists()


def test_a_folder_of_verdicts_inside_the_data_is_not_data(vieval, tmp_path):
    data = tmp_path / "data"
    write_parquet(data, 1, 20, 10)
    command = split(f"score {data} --judge sharpness --out {tmp_path}/data/out")
    vieval(*command)
    assert "0 of 20 rows left to judge" in vieval(*command).err


@pytest.mark.parametrize("out", ["out", "new/out", "empty"])
def test_a_data_set_without_images_leaves_no_folder_behind(vieval, tmp_path, out):
    part_0 = tmp_path / "data" / "part-0.parquet"
    (tmp_path / "empty").mkdir()
    write_parquet(tmp_path / "data", 1, 20, 10)
    parquet.write_table(parquet.read_table(part_0).drop_columns("image"), part_0)
    write_tar(tmp_path / "tars" / "a.tar", {"1": {"txt": b"a thing"}})
    before = set(tmp_path.rglob("*"))
    for data in ("data", "tars"):
        command = split(
            f"score {tmp_path}/{data} --judge sharpness --out {tmp_path}/{out}"
        )
        assert "no column of images" in vieval(*command, code=1).err
        assert set(tmp_path.rglob("*")) == before


def test_a_named_pipe_is_no_data(vieval, tmp_path):
    (tmp_path / "data").mkdir()
    os.mkfifo(tmp_path / "data" / "a.parquet")
    command = split(f"score {tmp_path}/data --judge sharpness --out {tmp_path}/out")
    assert "a.parquet: not a regular file" in vieval(*command, code=1).err


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
