"""Tables of any length are read in the memory that a few rows take."""

import json
import random
import sys

import PIL.Image
import pytest

from tests.pictures import encoded
from tests.work import run_process

READ = """
import sys
from pathlib import Path
from vieval_plugin.images import read_bytes
from vieval_plugin.readers.samples import read_samples
source = read_samples(Path(sys.argv[1]))
rows = sum(len(read_bytes(row.sample.images["output"])) > 0 and row.verdict is None for row in source)
# unlike ru_maxrss, which begins with that of the process that started this one
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(rows, int(peak.split()[1]) // 1024)
"""
FEW = 2_000
_ROOM = 80  # MiB that may differ between runs: buffers, and what an allocator keeps


def read(path):
    """The number of judged rows, and the peak memory in MiB of a process that read them."""
    done = run_process([sys.executable, "-c", READ, str(path)], check=True)
    return tuple(map(int, done.stdout.split()))


def as_jsonl(path, rows, noise):
    rows = (
        {"uid": number, "image": "a.png", "prompt": noise.randbytes(2_000).hex()}
        for number in range(rows)
    )
    with path.open("w") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


def as_parquet(path, rows, noise):
    pyarrow = pytest.importorskip("pyarrow", reason='pip install ".[tables]"')
    from pyarrow import parquet

    image = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()})
    schema = pyarrow.schema({"image": image, "prompt": pyarrow.string()})
    with parquet.ParquetWriter(path, schema) as out:
        for start in range(0, rows, 5_000):  # some 100 MiB a row group
            numbers = range(start, min(start + 5_000, rows))
            names = [f"{number}.png" for number in numbers]
            images = [{"bytes": noise.randbytes(20_000), "path": n} for n in names]
            prompts = [f"prompt {number}" for number in numbers]
            columns = {"image": pyarrow.array(images, image), "prompt": prompts}
            out.write_table(pyarrow.table(columns))


@pytest.mark.parametrize("write", [as_jsonl, as_parquet])
@pytest.mark.parametrize("rows", [8_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_rows(tmp_path, write, rows):
    (tmp_path / "a.png").write_bytes(encoded(PIL.Image.new("RGB", (8, 8))))
    taken = []
    for count in (FEW, rows):
        path = tmp_path / f"{count}.table"
        write(path, count, random.Random(0))
        read_rows, peak = read(path)
        assert read_rows == count
        taken.append(peak)
    assert taken[1] - taken[0] < _ROOM
