"""Files of verdicts on samples and contests, read by what people read parquet with."""

import pytest

from tests.shard_runs import (
    arguments,
    files_in,
    parquet,
    picture,
    pyarrow,
    verdicts,
    write_parquet,
)

pytestmark = pytest.mark.usefixtures("no_store")


@pytest.fixture(params=["samples", "contests"])
def folder(request, vieval, server, tmp_path):
    """A folder of verdicts."""
    data, judge = tmp_path / "data", ()
    if request.param == "samples":
        write_parquet(data, files=1, rows_each=8)
    else:
        data.mkdir()
        outputs = [[picture(number), picture(99 - number)] for number in range(8)]
        table = {"prompt": [f"a thing {n}" for n in range(8)], "output": outputs}
        parquet.write_table(pyarrow.table(table), data / "a.parquet")
        judge = ("--judge", "pairwise")
    vieval(*arguments(data, tmp_path / "out", server, "--rows-per-shard", "4", *judge))
    return tmp_path / "out"


def _by_datasets(files, cache):
    datasets = pytest.importorskip("datasets")
    given = {"data_files": files, "split": "train", "cache_dir": str(cache)}
    return datasets.load_dataset("parquet", **given).to_list()


def _by_duckdb(files, cache):
    query = pytest.importorskip("duckdb").sql(f"SELECT * FROM read_parquet({files})")
    names = query.columns
    return [dict(zip(names, row, strict=True)) for row in query.fetchall()]


def _by_polars(files, cache):
    return pytest.importorskip("polars").read_parquet(files).to_dicts()


def _by_pandas(files, cache):
    pandas = pytest.importorskip("pandas")
    return pandas.concat(map(pandas.read_parquet, files)).to_dict("records")


@pytest.mark.parametrize("read", [_by_datasets, _by_duckdb, _by_polars, _by_pandas])
def test_each_reads_all_verdicts(read, folder, tmp_path):
    rows = read([*map(str, files_in(folder))], tmp_path / "cache")
    rows.sort(key=lambda row: row["row"])
    assert len(rows) == 8
    for row, verdict in zip(rows, verdicts(folder), strict=True):
        assert (row["uid"], row["digest"]) == (verdict["uid"], verdict["digest"])
        asked, told = (
            [(score["question"], list(score["scores"])) for score in of["sub_scores"]]
            for of in (row, verdict)
        )
        assert asked == told
        if verdict["choice"]:
            votes = [dict(vote) for vote in row["choice"]["votes"]]
            assert votes == verdict["choice"]["votes"]
