"""`vieval filter`: from a folder of parquet files to the rows that pass, in one sitting."""

import io
import json
import tarfile
from shlex import split

import pytest

from tests.extras import needs
from tests.shard_runs import (
    metadata,
    parquet,
    picture,
    pyarrow,
    verdicts,
    write_parquet,
    write_tar,
)

pytestmark = needs("duckdb")
SHARPNESS = ("--judge", "sharpness")


@pytest.fixture
def data(tmp_path):
    folder = write_parquet(tmp_path / "data" / "deep", rows_each=40)
    (folder.parent / "other").mkdir()
    (folder / "part-2.parquet").rename(folder.parent / "other" / "part-2.parquet")
    return folder.parent


def test_a_folder_of_parquet_files_becomes_a_filtered_data_set(vieval, data, tmp_path):
    twice = tmp_path / "twice"
    out, kept = tmp_path / "out", tmp_path / "kept"
    vieval("score", data, *SHARPNESS, "--out", out, "--rows-per-shard", "8")
    vieval("shards", out, "--verify")
    assert "PQ" in vieval("rank", out).out
    scores = {row["uid"]: row["scores"]["PQ"] for row in verdicts(out)}
    limit = sorted(scores.values())[90]
    printed = vieval(
        "filter", out, "--where", f"PQ >= {limit!r} and status = 'ok'", "--out", kept
    ).out
    passing = [uid for uid, score in scores.items() if score >= limit]
    assert f"{len(passing)} of 120 rows" in printed
    given = {
        row["uid"]: row
        for file in sorted(data.rglob("*.parquet"))
        for row in parquet.read_table(file).to_pylist()
    }
    written = [
        row
        for file in sorted(kept.rglob("*.parquet"))
        for row in parquet.read_table(file).to_pylist()
    ]
    assert written == [
        {**given[uid], "PQ": scores[uid], "status": "ok", "verdict_uid": uid}
        for uid in given
        if uid in passing
    ]
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    # what was filtered is judged again as any data set is, and filtered again
    vieval("score", kept, *SHARPNESS, "--out", tmp_path / "again")
    again = (*split(f"filter {tmp_path}/again --where 'PQ > 0' --out {twice}"),)
    assert "--prefix" in vieval(*again, code=1).err
    assert not twice.exists()
    vieval(*again, "--prefix", "second_")
    first = parquet.read_table(next(twice.rglob("*.parquet"))).to_pylist()[0]
    assert first["second_PQ"] == first["PQ"]


def test_conditions_are_sql_on_all_that_a_verdict_has(vieval, server, tmp_path):
    data = write_parquet(tmp_path / "data", 1)
    out = tmp_path / "out"
    vieval(
        "score", data, "--model", "fake", "--base-url", server.base_url, "--out", out
    )
    conditions = (
        ("SC is not null and file = 'part-0.parquet'", 40),
        ('"row" % 4 = 1', 10),
        ("rationale like '%' and calls = 2 and draw = 0", 40),
        ("uid in ('u1', 'u7') or SC < -1", 2),
        ("len(sub_scores) > 0 and tokens.input > 0", 40),
    )
    for number, (where, passes) in enumerate(conditions):
        path = tmp_path / str(number)
        printed = vieval("filter", out, "--where", where, "--out", path).out
        assert f"{passes} of 40 rows" in printed


QUERY, UNUSABLE = "got a query", "invalid condition"


@pytest.mark.parametrize(
    ("where", "key"),
    [
        ("(SELECT count(*) FROM sniff_csv('/etc/passwd')) > 0", QUERY),
        ("(SELECT count(*) FROM read_text('/etc/passwd')) > 0", QUERY),
        ("(FROM glob('/etc/pass*') SELECT count(*)) > 0", QUERY),
        ("EXISTS (FROM 'http://127.0.0.1:1/x.csv')", QUERY),
        ("(SELECT count(*) FROM duckdb_settings()) > 0", QUERY),
        ("(SELECT count(*) FROM enable_logging(storage='stdout')) > 0", QUERY),
        ("(SELECT count(*) FROM query('ATTACH ''x.db''')) > 0", QUERY),
        ("(SELECT count(*) FROM range(1000000000000)) > 0", QUERY),
        ("PQ IN (FROM range(2))", QUERY),
        ("ARRAY(SELECT 1)[1] = 1", QUERY),
        ("(PIVOT verdicts ON kind) > 0", QUERY),
        ("PQ > 0; ATTACH 'x.db'", QUERY),
        ("PQ > 0) TO 'x.csv' --", UNUSABLE),
        ("getenv('HOME') <> ''", UNUSABLE),
        ("read_text('/etc/passwd') <> ''", UNUSABLE),
        ("load_aws_credentials() is null", UNUSABLE),
    ],
)
def test_a_condition_opens_nothing(vieval, tmp_path, where, key):
    out = tmp_path / "out"
    write_parquet(tmp_path / "data", 1, rows_each=2)
    vieval("score", tmp_path / "data", *SHARPNESS, "--out", out)
    kept = tmp_path / "kept"
    err = vieval("filter", out, "--where", where, "--out", kept, code=1).err
    assert key in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]


def test_a_text_may_hold_any_words(vieval, tmp_path):
    write_parquet(tmp_path / "data", 1, rows_each=2)
    vieval("score", tmp_path / "data", *SHARPNESS, "--out", tmp_path / "out")
    where = """uid <> '"class":"SUBQUERY"' -- (SELECT 1)"""
    out = ("--out", tmp_path / "kept")
    assert "2 of 2" in vieval("filter", tmp_path / "out", "--where", where, *out).out


def test_a_condition_loads_no_extension_and_a_file_is_no_folder(vieval, tmp_path):
    out = tmp_path / "out"
    data = write_parquet(tmp_path / "data", 1)
    vieval("score", data, *SHARPNESS, "--out", out)
    for number, name in enumerate(
        ("autoinstall_known_extensions", "autoload_known_extensions")
    ):
        where = f"cast(current_setting('{name}') as varchar) = 'false'"
        vieval(f"filter {out} --where", where, "--out", tmp_path / f"kept{number}")
    file = data / "part-0.parquet"
    path = tmp_path / "none"
    err = vieval("filter", file, "--where", "PQ > 0", "--out", path, code=1).err
    assert err == (
        f"vieval: {file}: expected a folder of shards, got a file; judge the data set "
        "with --out FOLDER\n"
    )


def test_an_input_that_is_another_now_leaves_nothing(vieval, data, tmp_path):
    out = tmp_path / "out"
    vieval("score", data, *SHARPNESS, "--out", out)
    parquet.write_table(
        parquet.read_table(data / "other" / "part-2.parquet").slice(1),
        data / "other" / "part-2.parquet",
    )
    err = vieval(f"filter {out} --where 'PQ > 0' --out {tmp_path}/kept", code=1).err
    assert "part-2.parquet: changed since the plan was made" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine").write_text("a file")
    err = vieval(f"filter {out} --where 'PQ > 0' --out {tmp_path}/kept", code=1).err
    assert "already exists" in err


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_a_tar_becomes_a_tar(vieval, tmp_path, name):
    samples = {
        f"x/{n}": {
            "jpg": picture(n),
            "json": b'{"prompt": "thing %d"}' % n,
            "mask.bin": b"kept as it is",
        }
        for n in range(6)
    }
    write_tar(tmp_path / "data" / name, samples)
    vieval("score", tmp_path / "data", *SHARPNESS, "--out", tmp_path / "out")
    path = tmp_path / "kept"
    vieval(f"filter {tmp_path}/out --where", "uid in ('x/1', 'x/5')", "--out", path)
    with tarfile.open(tmp_path / "kept" / name) as tar:
        members = {entry.name: tar.extractfile(entry).read() for entry in tar}
    further = {
        key: json.loads(members.pop(f"{key}.vieval.json")) for key in ("x/1", "x/5")
    }
    assert members == {
        f"{key}.{member}": samples[key][member]
        for key in further
        for member in samples[key]
    }
    assert further["x/5"]["verdict_uid"] == "x/5"
    assert further["x/5"].keys() == {"PQ", "status", "verdict_uid"}
    vieval("score", tmp_path / "kept", *SHARPNESS, "--out", tmp_path / "again")
    assert [row["uid"] for row in verdicts(tmp_path / "again")] == ["x/1", "x/5"]


def test_what_is_added_to_a_tar_has_the_names_of_its_samples(vieval, tmp_path):
    """`tar --create --directory FOLDER .` writes ./ before each name, and webdataset groups
    members by it.
    """
    tar = write_tar(tmp_path / "a.tar", {f"./{n}": {"jpg": picture(n)} for n in (1, 2)})
    vieval("score", tar, "--kind", "tig", *SHARPNESS, "--out", tmp_path / "out")
    vieval("filter", tmp_path / "out", "--where", "PQ > 0", "--out", tmp_path / "kept")
    with tarfile.open(tmp_path / "kept" / "a.tar") as kept:
        found = kept.getnames()
        assert found == (split("./1.vieval.json ./1.jpg ./2.vieval.json ./2.jpg"))


def test_a_tar_that_was_filtered_before_keeps_what_was_added_then(vieval, tmp_path):
    out = tmp_path / "out"
    path = tmp_path / "data" / "a.tar"
    write_tar(path, {"1": {"jpg": picture(1), "txt": b"a thing", "vieval.json": b"{}"}})
    vieval("score", tmp_path / "data", *SHARPNESS, "--out", out)
    err = vieval(f"filter {out} --where 'PQ > 0' --out {tmp_path}/kept", code=1).err
    assert (
        "a.tar: already has a member 1.vieval.json; use --prefix to rename the added one"
        in err
    )
    assert not (tmp_path / "kept").exists()
    vieval(f"filter {out} --where 'PQ > 0' --out {tmp_path}/kept --prefix second_")
    with tarfile.open(tmp_path / "kept" / "a.tar") as tar:
        assert tar.extractfile("1.vieval.json").read() == b"{}"
        assert "second_PQ" in json.load(tar.extractfile("1.second_vieval.json"))


@needs("datasets")
def test_what_the_library_datasets_wrote_keeps_its_features(vieval, tmp_path):
    out = tmp_path / "out"
    import datasets
    import PIL.Image

    pictures = [PIL.Image.open(io.BytesIO(picture(n))) for n in range(6)]
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "prompt": datasets.Value("string"),
            "kind_of": datasets.ClassLabel(names=["a", "b"]),
        }
    )
    columns = {
        "image": pictures,
        "prompt": [f"thing {n}" for n in range(6)],
        "kind_of": [0, 1] * 3,
    }
    made = datasets.Dataset.from_dict(columns, features=features)
    (tmp_path / "data").mkdir()
    made.to_parquet(tmp_path / "data" / "train.parquet")
    vieval("score", tmp_path / "data", *SHARPNESS, "--out", out)
    vieval("filter", out, "--where", '"row" > 2', "--out", tmp_path / "kept")
    kept = datasets.Dataset.from_parquet(
        str(tmp_path / "kept" / "train.parquet"), cache_dir=str(tmp_path / "cache")
    )
    assert kept.features["image"] == datasets.Image()
    assert kept["kind_of"] == [1, 0, 1]
    assert kept[0]["image"].size == (16, 16)
    assert kept.features["PQ"] == datasets.Value("float64")


def test_each_prompt_that_passes_has_a_row(vieval, server, tmp_path):
    given = [{"image": picture(n), "prompt": [f"a {n}", f"b {n}"]} for n in range(3)]
    (tmp_path / "data").mkdir()
    table = pyarrow.Table.from_pylist(given)
    parquet.write_table(table, tmp_path / "data" / "a.parquet")
    asked = ("--model", "fake", "--base-url", server.base_url, "--kind", "tig")
    vieval("score", tmp_path / "data", *asked, "--out", tmp_path / "out")
    assert len(verdicts(tmp_path / "out")) == 6
    path = tmp_path / "kept"
    vieval(f"filter {tmp_path}/out --where", 'prompt = 1 or "row" = 0', "--out", path)
    written = parquet.read_table(tmp_path / "kept" / "a.parquet").to_pylist()
    assert [row["verdict_uid"] for row in written] == [
        f"a.parquet:{uid}" for uid in ("0#0", "0#1", "1#1", "2#1")
    ]
    found = [row["prompt"] for row in written]
    assert found == [given[n]["prompt"] for n in (0, 0, 1, 2)]


def test_joined_files_are_filtered_as_single_ones(vieval, data, tmp_path):
    out = tmp_path / "out"
    vieval("score", data, *SHARPNESS, "--out", out, "--rows-per-shard", "8")
    vieval(f"filter {out} --where", '"row" % 3 = 0', "--out", tmp_path / "before")
    vieval("shards", out, "--compact")
    [joined] = (out / "verdicts").iterdir()
    assert parquet.ParquetFile(joined).num_row_groups == len(metadata(joined)["shards"])
    vieval(f"filter {out} --where", '"row" % 3 = 0', "--out", tmp_path / "after")
    for file in (tmp_path / "before").rglob("*.parquet"):
        assert parquet.read_table(file) == parquet.read_table(
            tmp_path / "after" / file.relative_to(tmp_path / "before")
        )
