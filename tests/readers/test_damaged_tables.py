"""Parquet and Arrow files that were damaged at random are refused in one line, or read: no process ends, none waits."""

import subprocess
import sys

import pytest

pytest.importorskip("pyarrow", reason='pip install "vieval[tables]"')

# in a process of its own, which a fault in a library of others would end
DAMAGE = """
import random, sys
from pathlib import Path
import pyarrow
from pyarrow import ipc, parquet
from vieval_plugin.errors import VievalError
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


def test_damage_is_one_line_and_never_the_end_of_the_process(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", DAMAGE, str(tmp_path), "0", "400"], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout.split()) == (0, ["read", "refused"]), done.stderr[-2000:]
