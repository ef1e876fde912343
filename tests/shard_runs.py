"""Data sets in parquet and tar files, and runs of `vieval score` into folders of shards."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

pyarrow = pytest.importorskip("pyarrow", reason="shards are parquet files")
parquet = pytest.importorskip("pyarrow.parquet")
COSTS = ["calls", "tokens", "seconds"]


def picture(number, size=16):
    """An image like no other's."""
    rng = np.random.default_rng(number)
    pixels = rng.integers(0, 255, (size, size, 3), dtype=np.uint8)
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def rows(numbers, form="struct"):
    """Rows of a data set as the hub has them: with bytes in a struct, as they are, or in files."""
    for number in numbers:
        image = picture(number)
        if form == "struct":
            image = {"bytes": image, "path": f"{number}.jpg"}
        yield {"uid": f"u{number}", "prompt": f"a thing {number}", "image": image}


def write_parquet(folder, files=3, rows_each=40, group=20, form="struct"):
    """A data set of parquet files, with numbered images."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in range(files):
        numbers = range(file * rows_each, (file + 1) * rows_each)
        table = pyarrow.Table.from_pylist(list(rows(numbers, form)))
        path = folder / f"part-{file}.parquet"
        parquet.write_table(table, path, row_group_size=group)
    return folder


def write_tar(path, samples):
    """A webdataset tar: of each sample its members by what follows its key."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = "w:gz" if path.name.endswith("gz") else "w"
    with tarfile.open(path, mode) as tar:
        for key, members in samples.items():
            for name, content in members.items():
                entry = tarfile.TarInfo(f"{key}.{name}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return path


def verdicts(folder):
    """All verdicts of a folder, in the order of files and rows."""
    paths = sorted((folder / "verdicts").glob("*.parquet"))
    if not paths:
        return []
    table = pyarrow.concat_tables([parquet.read_table(path) for path in paths])
    order = [(name, "ascending") for name in ("file", "row", "prompt")]
    return table.sort_by(order).to_pylist()


def less_costs(found):
    """Verdicts less what differs between two runs of the same."""
    return [{name: row[name] for name in row if name not in COSTS} for row in found]


def arguments(data, out, server, *more):
    """The command that judges a data set."""
    named = data if isinstance(data, list) else [data]
    asked = ("--model", "fake", "--base-url", server.base_url)
    return ["score", *named, "--out", out, *asked, *more]


def start(*command, environment=None, code=None):
    """`vieval` in a process of its own, or a script that ends with it."""
    begin = "import sys; from vieval_plugin.cli import main"
    script = f"{begin}\n{code or ''}\nsys.exit(main(sys.argv[1:]))"
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    about = {"env": {**os.environ, **(environment or {})}, "text": True, **pipes}
    about |= {"cwd": Path(__file__).parents[1], "start_new_session": True}
    return subprocess.Popen([sys.executable, "-c", script, *map(str, command)], **about)


def ended(process, code=0):
    """What a process printed, which is to end with this code."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, out + err
    return out + err


def kill_all(process):
    """kill -9 of a process and all that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)


def children(process):
    """The processes that a process has started."""
    files = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for file in files for child in file.read_text().split()]


def processes_of(variable, name):
    """The processes of this name that have a variable in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ours = variable.encode() in (folder / "environ").read_bytes()
            if ours and name.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def files_in(folder):
    return sorted((folder / "verdicts").glob("*.parquet"))


def metadata(path):
    return json.loads(parquet.read_schema(path).metadata[b"vieval"])


FATAL = '''
"""A judge that ends its process at rows that VIEVAL_FATAL names, as a tool with a fault in C would."""
import ctypes
import os
from dataclasses import replace

from vieval_plugin.judges import auto_metrics

sharpness = next(spec for spec in auto_metrics.SPECS if spec.name == "sharpness")


def build(options, pack, setting):
    judge = sharpness.build(options, pack, setting)

    def fatal(sample):
        if sample.id.uid in os.environ["VIEVAL_FATAL"].split(","):
            ctypes.string_at(0)
        return (yield from judge(sample))

    return fatal


SPEC = replace(sharpness, name="fatal", build=build)
'''


def fatal_judge(folder, *uids):
    """The environment of a process that knows the judge `fatal`, an installed package's."""
    described = folder / "fatal_judge-1.0.dist-info"
    described.mkdir(parents=True)
    (folder / "fatal_judge.py").write_text(FATAL)
    about = "Metadata-Version: 2.1\nName: fatal-judge\nVersion: 1.0\n"
    (described / "METADATA").write_text(about)
    entry = "[vieval.judges]\nfatal = fatal_judge\n"
    (described / "entry_points.txt").write_text(entry)
    paths = filter(None, [str(folder), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": os.pathsep.join(paths), "VIEVAL_FATAL": ",".join(uids)}
