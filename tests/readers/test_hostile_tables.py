"""Hostile tables: foreign files, bombs, nesting and damage are one line or a row's status."""

import os
import struct
import sys

import pytest

from tests.refusals import refusal
from tests.stored_tables import (
    IMAGE,
    as_arrow,
    columns_of,
    parquet,
    picture,
    pyarrow,
)
from tests.work import run_process
from vieval_plugin.judges.protocol import Status
from vieval_plugin.readers.image_folder import read_named
from vieval_plugin.readers.sample_rows import encoded_image
from vieval_plugin.readers.samples import read_samples
from vieval_plugin.readers.tables import BadLine

ipc = pytest.importorskip("pyarrow.ipc")

# in a process of its own, which a fault in a library of others would end
DAMAGE = """
import random, sys
from pathlib import Path
import pyarrow
from pyarrow import ipc, parquet
from vieval_plugin.text.errors import VievalError
from vieval_plugin.readers.samples import read_samples

folder, seed, times = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
image = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()})
cells = [{"bytes": bytes([n]) * 50, "path": f"{n}.png"} for n in range(40)]
kinds = pyarrow.array([f"k{n % 3}" for n in range(40)]).dictionary_encode()
table = pyarrow.table({"image": pyarrow.array(cells, image), "text": [f"t{n}" for n in range(40)], "category": kinds})
parquet.write_table(table, folder / "plain.parquet", row_group_size=16)
parquet.write_table(table, folder / "zstd.parquet", compression="zstd")
for name, new, compression in (("file", ipc.new_file, None), ("stream", ipc.new_stream, None), ("lz4", ipc.new_stream, "lz4")):
    with new(folder / f"{name}.arrow", table.schema, options=ipc.IpcWriteOptions(compression=compression)) as out:
        out.write_table(table, max_chunksize=16)
noise, whole, outcomes = random.Random(seed), sorted(folder.iterdir()), set()
for _ in range(times):
    data = bytearray(noise.choice(whole).read_bytes())
    place = noise.randrange(8, len(data))
    change = noise.randrange(4)
    if change == 0:
        data[place] = noise.randrange(256)
    elif change == 1:
        data[place : place + 4] = noise.choice([b"\\xff\\xff\\xff\\x7f", b"\\xff" * 4, bytes(4)])
    elif change == 2:
        del data[place : place + noise.randrange(1, 40)]
    else:
        del data[place:]
    (folder / "damaged").write_bytes(data)
    try:
        outcomes.add("read" if list(read_samples(folder / "damaged")) else "empty")
    except VievalError as error:
        assert "\\n" not in str(error), error
        outcomes.add("refused")
print(*sorted(outcomes))
"""
PNG = "iVBORw0KGgo" + "A" * 60
TEXTS = ["é" * 100, "A" * 70 + "é", "\ud800" * 70, PNG + "é", "%" * 70, ""]


def test_damage_is_one_line_and_never_the_end_of_the_process(tmp_path):
    command = [sys.executable, "-c", DAMAGE, str(tmp_path), "0", "400"]
    done = run_process(command, timeout=600)
    found = (done.returncode, done.stdout.split())
    assert found == (0, ["read", "refused"]), done.stderr[-2000:]


def save_state(folder, file):
    """Name a file of rows as `datasets.save_to_disk` does."""
    state = '{"_data_files": [{"filename": "%s"}]}'
    (folder / "state.json").write_text(state % file)


@pytest.mark.parametrize("path", ["../secret.png", "/{root}/secret.png", "link.png"])
@pytest.mark.parametrize("form", ["metadata.csv", "parquet", "saved"])
def test_a_table_of_others_names_no_file_outside_its_folder(tmp_path, path, form):
    (tmp_path / "secret.png").write_bytes(picture("a"))
    folder = tmp_path / "sent"
    folder.mkdir()
    (folder / "b.png").write_bytes(picture("b"))
    (folder / "link.png").symlink_to("../secret.png")
    named = [path.format(root=tmp_path), "b.png"]
    images = pyarrow.array([{"bytes": None, "path": name} for name in named], IMAGE)
    stored = pyarrow.table({"image": images, "text": ["x", "x"]})
    table = folder
    if form == "metadata.csv":
        rows = "".join(f"{name},x\n" for name in named)
        (folder / "metadata.csv").write_text(f"file_name,text\n{rows}")
    elif form == "parquet":
        table = folder / "t.parquet"
        parquet.write_table(stored, table)
    else:
        with ipc.new_stream(folder / "data.arrow", stored.schema) as out:
            out.write_table(stored)
        save_state(folder, "data.arrow")
    outside, inside = read_named([str(table)])
    assert outside.verdict.status is Status.PARSE_FAILURE
    assert "must be inside the folder of the table" in outside.verdict.reason
    assert inside.verdict is None
    assert inside.sample.images["output"].source.name == "b.png"


def test_a_saved_data_set_names_no_file_of_rows_outside_its_folder(tmp_path):
    as_arrow(tmp_path / "t.arrow", "structs", ipc.new_stream)
    (tmp_path / "sent").mkdir()
    save_state(tmp_path / "sent", "../t.arrow")
    line = refusal(read_samples, tmp_path / "sent")
    assert "data files must be inside its folder" in line


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    text = pyarrow.array(["x" * (300 << 20)])
    table = pyarrow.table({"image": text, "text": text})
    parquet.write_table(table, tmp_path / "t.parquet", compression="zstd")
    del text
    assert os.path.getsize(tmp_path / "t.parquet") < 1 << 20
    line = refusal(read_samples, tmp_path / "t.parquet")
    assert "MiB, which looks like a decompression bomb" in line


@pytest.mark.parametrize("form", ["parquet", "parquet dictionary", "arrow"])
def test_one_value_in_many_rows_is_counted_in_each(tmp_path, form):
    repeated = pyarrow.DictionaryArray.from_arrays([0] * 24, ["x" * (100 << 20)])
    columns = {"output": [f"{n}.png" for n in range(24)], "prompt": repeated}
    table = pyarrow.table(columns)
    path = tmp_path / "t.parquet"
    if form == "arrow":
        options = ipc.IpcWriteOptions(compression="zstd")
        with ipc.new_file(path, table.schema, options=options) as out:
            out.write_table(table)
    else:
        store_schema = form != "parquet"
        parquet.write_table(table, path, compression="zstd", store_schema=store_schema)
    del repeated, table
    assert os.path.getsize(path) < 1 << 20
    line = refusal(read_samples, path)
    assert "its cells expand to more than 2048 MiB" in line


def test_columns_of_nested_values_are_never_built(tmp_path):
    depth = pyarrow.array([None] * 3, pyarrow.int8())
    for _ in range(50):
        depth = pyarrow.StructArray.from_arrays([depth], ["inner"])
    table = columns_of("structs").append_column("deep", depth)
    parquet.write_table(table, tmp_path / "t.parquet")
    source = read_samples(tmp_path / "t.parquet")
    assert [row.sample.id.uid for row in source] == ["a", "b", "c"]
    assert "ignored columns: deep" in source.notes[-1]
    asked = (tmp_path / "t.parquet", None, {"images.source": "deep"})
    assert "column 'deep' has the unsupported" in refusal(read_samples, *asked)


def test_offsets_that_lie_are_no_read_of_other_memory(tmp_path):
    path = as_arrow(tmp_path / "t.arrow", "paths", ipc.new_stream)
    data = path.read_bytes()
    offsets = struct.pack("<3i", 0, 5, 10)
    assert offsets in data
    path.write_bytes(data.replace(offsets, struct.pack("<3i", 0, 5, 2**31 - 1)))
    assert "not a readable parquet or Arrow file" in refusal(read_samples, path)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_is_no_base64_is_no_image(text):
    assert encoded_image(text) is None
    with pytest.raises(BadLine, match="data URLs must contain base64"):
        encoded_image(f"DATA:image/png;base64,{text or '%'}")
