"""What we write, read by the newest of what people read it with, in an environment without VIEval."""

import json

import pytest

from tests.fake_server import FakeServer, Fault
from tests.real.parts import installed, program
from tests.shard_runs import (
    arguments,
    ended,
    files_in,
    kill_all,
    parquet,
    picture,
    pyarrow,
    start,
    write_parquet,
    write_tar,
)
from tests.work import run_process, until

pytestmark = [pytest.mark.real, installed("readers")]
ROWS = 160
#: A form by the end of a file's name.
FORMS = {".parquet": "parquet", ".jsonl": "json", ".csv": "csv"}
#: What was written, as patterns of files.
ALL_ROWS = [
    "shards/verdicts/*.parquet",
    "v.jsonl",
    "v.csv",
    "v.parquet",
    "all/*.parquet",
]
OTHERS = ["kept/*.parquet", "tables/numbers.csv", "tables/numbers.parquet"]
#: By reader, a function that reads files of a form as rows.
READ = {
    "datasets": """
import datasets
def read(form, files):
    options = dict(data_files=files, split="train", cache_dir=cache)
    return datasets.load_dataset(form, **options).to_list()
""",
    "duckdb": """
import duckdb
def read(form, files):
    query = duckdb.sql(f"SELECT * FROM read_{form}({files})")
    return [dict(zip(query.columns, row)) for row in query.fetchall()]
""",
    "polars": """
import polars
def read(form, files):
    one = {"parquet": polars.read_parquet, "json": polars.read_ndjson}
    return polars.concat(map(one.get(form, polars.read_csv), files)).to_dicts()
""",
    "pandas": """
import pandas
def read(form, files):
    one = {"parquet": pandas.read_parquet, "csv": pandas.read_csv}
    lines = lambda file: pandas.read_json(file, lines=True)
    return pandas.concat(map(one.get(form, lines), files)).to_dict("records")
""",
}
BEGIN = "import json, math, sys\ncache, groups = sys.argv[1], json.loads(sys.argv[2])\n"
END = """
def score(row):
    value = (row["scores"] if "scores" in row else row).get("SC")
    return None if value is None or math.isnan(value) else value
print(json.dumps([
    [[row.get("uid", row.get("prompt")), score(row)] for row in read(*group)]
    for group in groups
]))
"""
WEBDATASET = """
import json, sys
import webdataset
kept = webdataset.WebDataset(sys.argv[1:], shardshuffle=False).decode("pil")
print(json.dumps([
    [sample["__key__"], sample["vieval.json"]["verdict_uid"], sample["txt"], sample["jpg"].size]
    for sample in kept
]))
"""
PAIRS = """
import json, sys
import datasets
rows = datasets.load_dataset("parquet", data_files=sys.argv[2], split="train", cache_dir=sys.argv[1])
print(json.dumps([
    [row["prompt"], row["chosen"].size, row["rejected"].size] for row in rows
]))
"""


def printed(script, *words):
    """The JSON that a script prints in the readers' environment."""
    command = [program("readers"), "-c", script, *map(str, words)]
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(words[0])}
    done = run_process(command, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder of what commands wrote: the run was killed and resumed, and some rows are refused."""
    folder = tmp_path_factory.mktemp("written")
    data = write_parquet(folder / "data", files=4, rows_each=40, group=10)
    small = ("--rows-per-shard", 5, "--num-concurrent", 4, "--max-failures", 1)

    def fault(number, request):
        return Fault("refusal") if "thing 9" in str(request) else None

    with FakeServer(latency=0.05, faults=fault) as server:
        command = arguments(data, folder / "shards", server, *small)
        run = start(*command)
        until(lambda: len(files_in(folder / "shards")) > 4)
        kill_all(run)
        ended(start(*command))
        files = sorted(data.iterdir())
        for name in ("v.jsonl", "v.csv", "v.parquet"):
            ended(start(*arguments(files, folder / name, server)))
    for name, where in (("all", "row >= 0"), ("kept", "PQ > 0.2 and row < 20")):
        filtering = ("filter", folder / "shards", "--where", where, "--out")
        ended(start(*filtering, folder / name))
    ended(start("rank", folder / "v.jsonl", "--tables", folder / "tables"))
    return folder


@pytest.mark.parametrize("reader", READ)
def test_each_reads_each_row_once(reader, written, tmp_path):
    groups = [
        (FORMS[files[0].suffix], list(map(str, files)))
        for pattern in (*ALL_ROWS, *OTHERS)
        if (files := sorted(written.glob(pattern)))
    ]
    read = printed(BEGIN + READ[reader] + END, tmp_path, json.dumps(groups))
    for (_, files), rows in zip(groups, read, strict=True):
        assert rows, files
    for pattern, rows in zip(ALL_ROWS, read, strict=False):
        uids = [uid for uid, _ in rows]
        missing, twice = ROWS - len(set(uids)), len(uids) - len(set(uids))
        print(f"{reader}, {pattern}: missing {missing}, twice {twice}")
        assert sorted(uids) == sorted(f"u{number}" for number in range(ROWS))
        assert any(score is None for _, score in rows)


@pytest.mark.parametrize(("name", "folder"), [("a.tar", ""), ("b.tar.gz", "./")])
def test_webdataset_reads_what_passed_a_filter(name, folder, vieval, tmp_path):
    """With names as `tar --directory FOLDER .` writes them too."""
    samples = {
        f"{folder}{number}": {"jpg": picture(number), "txt": b"a thing"}
        for number in range(ROWS)
    }
    tar = write_tar(tmp_path / name, samples)
    vieval("score", tar, "--judge", "sharpness", "--out", tmp_path / "out")
    where = "PQ > 0 and CAST(uid AS INT) % 3 = 0"
    vieval("filter", tmp_path / "out", "--where", where, "--out", tmp_path / "kept")
    assert printed(WEBDATASET, tmp_path / "kept" / name) == [
        [f"{folder}{number}", f"{number}", "a thing", [16, 16]]
        for number in range(0, ROWS, 3)
    ]


def test_datasets_reads_the_images_of_exported_pairs(vieval, tmp_path):
    prompted = lambda n: {"uid": f"p{n // 4}", "prompt": f"a thing {n // 4}"}
    drawn = lambda n: {"draw": n % 4, "image": picture(n, 16 + n % 4)}
    images = [{**prompted(number), **drawn(number)} for number in range(40)]
    (tmp_path / "data").mkdir()
    parquet.write_table(pyarrow.Table.from_pylist(images), tmp_path / "data/a.parquet")
    vieval(f"score {tmp_path}/data --judge sharpness --out {tmp_path}/out")
    pairs = tmp_path / "pairs.parquet"
    vieval("export", "--pairs", tmp_path / "out", "--out", pairs)
    read = printed(PAIRS, tmp_path / "cache", pairs)
    assert [prompt for prompt, *_ in read] == [f"a thing {n}" for n in range(10)]
    assert all(chosen != rejected for _, chosen, rejected in read)
