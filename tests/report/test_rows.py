"""Numbers and pairs in files have the declared types, whatever generators are called."""

import json

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

from tests.builders import a_provenance, a_verdict_file, some_scores
from vieval_plugin.cli import main
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.rows import NumberRow, PairRow
from vieval_plugin.report.files import _parquet

#: Names that a reader of text takes for a number or a truth value.
NAMES = ("1000", "1e3", "no", "nan")
POLARS = {
    "string": polars.String,
    "double": polars.Float64,
    "int64": polars.Int64,
    "bool": polars.Boolean,
}
TABLES = {"numbers": NumberRow, "pairs": PairRow}


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """The tables of a run of four generators, and of one in which one failed everywhere."""
    folders = [tmp_path_factory.mktemp(name) for name in ("whole", "failed")]
    scores_of_last = (some_scores(40, 0.5, seed=3), [Status.PARSE_FAILURE] * 40)
    for folder, last in zip(folders, scores_of_last, strict=True):
        means = {name: some_scores(40, 0.4, seed=n) for n, name in enumerate(NAMES[:3])}
        path = folder / "v.jsonl"
        source = a_provenance(model="judge-7b")
        file = a_verdict_file(path, {**means, NAMES[3]: last}, source=source)
        assert main(["rank", str(file), "--tables", str(folder)]) == 0
    return folders


def test_names_stay_names(two_runs):
    document = json.loads((two_runs[0] / "findings.json").read_text())
    generators = {row["system"] for row in document["numbers"]}
    pairs = {row[side] for row in document["pairs"] for side in ("better", "worse")}
    assert generators == pairs == set(NAMES)
    assert {row["backbone"] for row in document["numbers"]} == {"judge-7b"}
    assert {type(row["n"]) for row in document["numbers"]} == {int}


@pytest.mark.parametrize("table", TABLES)
def test_two_runs_are_one_table_with_types(two_runs, table):
    files = [folder / f"{table}.parquet" for folder in two_runs]
    first, second = map(pyarrow.parquet.read_table, files)
    both = pyarrow.concat_tables([first, second])
    assert first.schema == second.schema
    assert both.num_rows == len(pandas.concat(map(pandas.read_parquet, files)))
    frame = polars.concat(map(polars.read_parquet, files))
    assert frame.height == both.num_rows
    kinds = {field.name: str(field.type) for field in first.schema}
    assert dict(frame.schema) == {name: POLARS[kind] for name, kind in kinds.items()}
    names = ", ".join(f"'{file}'" for file in files)
    counted = duckdb.sql(f"SELECT count(*), avg(low) FROM read_parquet([{names}])")
    mean_low = both.to_pandas()["low"].mean()
    assert counted.fetchall() == [(both.num_rows, pytest.approx(mean_low))]
    found = [kinds[name] for name in ("n", "low", "level", "reason")]
    assert found == ["int64", "double", "double", "string"]
    assert list(kinds) == list(TABLES[table].__dataclass_fields__)


def test_a_table_without_rows_has_no_row_group():
    """`datasets` fails on one without rows."""
    file = pyarrow.BufferReader(_parquet(PairRow, ()))
    assert pyarrow.parquet.ParquetFile(file).num_row_groups == 0
