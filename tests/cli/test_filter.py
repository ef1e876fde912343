"""`vieval filter`: from a folder of parquet files to the rows that pass, in one sitting."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from tests.extras import needs
from tests.fake_server import named
from tests.shard_runs import (
    metadata,
    parquet,
    picture,
    pyarrow,
    verdicts,
    write_parquet,
    write_tar,
)
from tests.stored_results import read_lines

pytestmark = needs("duckdb")
SHARPNESS = ("--judge", "sharpness")


@pytest.fixture
def data(tmp_path):
    folder = write_parquet(tmp_path / "data" / "deep", rows_each=40)
    other = folder.parent / "other"
    other.mkdir()
    (folder / "part-2.parquet").rename(other / "part-2.parquet")
    return folder.parent


def rows_in(folder):
    """The rows of a data set."""
    files = sorted(folder.rglob("*.parquet"))
    return [row for file in files for row in parquet.read_table(file).to_pylist()]


@pytest.fixture
def scored(vieval, tmp_path):
    """Verdicts by sharpness on a data set; their folder."""

    def judged(data, *flags):
        out = tmp_path / "out"
        vieval("score", data, *SHARPNESS, "--out", out, *flags)
        return out

    return judged


@pytest.fixture
def filtered(vieval, tmp_path):
    """Filters verdicts into `kept`; what is printed."""

    def run(out, where, *flags, name="kept", code=0):
        given = ("--where", where, "--out", tmp_path / name)
        said = vieval("filter", out, *given, *flags, code=code)
        return said.err if code else said.out

    return run


def test_a_folder_of_parquet_files_becomes_a_filtered_data_set(
    vieval, scored, filtered, data, tmp_path
):
    out = scored(data, "--rows-per-shard", "8")
    vieval("shards", out, "--verify")
    assert "PQ" in vieval("rank", out).out
    scores = {row["uid"]: row["scores"]["PQ"] for row in verdicts(out)}
    limit = sorted(scores.values())[90]
    printed = filtered(out, f"PQ >= {limit!r} and status = 'ok'")
    passing = [uid for uid, score in scores.items() if score >= limit]
    assert f"{len(passing)} of 120 rows" in printed
    given = {row["uid"]: row for row in rows_in(data)}
    assert rows_in(tmp_path / "kept") == [
        {**given[uid], "PQ": scores[uid], "status": "ok", "verdict_uid": uid}
        for uid in given
        if uid in passing
    ]
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    # what was filtered is judged again as any data set is, and filtered again
    again = tmp_path / "again"
    twice = tmp_path / "twice"
    vieval("score", tmp_path / "kept", *SHARPNESS, "--out", again)
    assert "--prefix" in filtered(again, "PQ > 0", name="twice", code=1)
    assert not twice.exists()
    filtered(again, "PQ > 0", "--prefix", "second_", name="twice")
    first = rows_in(twice)[0]
    assert first["second_PQ"] == first["PQ"]


CONDITIONS = (
    ("SC is not null and file = 'part-0.parquet'", 40),
    ('"row" % 4 = 1', 10),
    ("rationale like '%' and calls = 2 and draw = 0", 40),
    ("uid in ('u1', 'u7') or SC < -1", 2),
    ("len(sub_scores) > 0 and tokens.input > 0", 40),
)


def test_conditions_are_sql_on_all_that_a_verdict_has(
    vieval, filtered, server, tmp_path
):
    out = tmp_path / "out"
    data = write_parquet(tmp_path / "data", 1)
    vieval("score", data, *named(server), "--out", out)
    for number, (where, passes) in enumerate(CONDITIONS):
        assert f"{passes} of 40 rows" in filtered(out, where, name=str(number))


FORBIDDEN = Path(__file__).with_name("forbidden_conditions.jsonl")


def test_a_condition_opens_nothing(scored, filtered, tmp_path):
    out = scored(write_parquet(tmp_path / "data", 1, rows_each=2))
    for row in read_lines(FORBIDDEN):
        assert row["key"] in filtered(out, row["where"], code=1), row
        assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]


def test_a_text_may_hold_any_words(scored, filtered, tmp_path):
    out = scored(write_parquet(tmp_path / "data", 1, rows_each=2))
    where = """uid <> '"class":"SUBQUERY"' -- (SELECT 1)"""
    assert "2 of 2" in filtered(out, where)


def test_a_condition_loads_no_extension(scored, filtered, tmp_path):
    out = scored(write_parquet(tmp_path / "data", 1))
    for name in ("autoinstall_known_extensions", "autoload_known_extensions"):
        where = f"cast(current_setting('{name}') as varchar) = 'false'"
        filtered(out, where, name=name)


def test_an_input_that_is_another_now_leaves_nothing(scored, filtered, data, tmp_path):
    out = scored(data)
    changed = data / "other" / "part-2.parquet"
    parquet.write_table(parquet.read_table(changed).slice(1), changed)
    err = filtered(out, "PQ > 0", code=1)
    assert "part-2.parquet: changed since the plan was made" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine").write_text("a file")
    assert "already exists" in filtered(out, "PQ > 0", code=1)


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_a_tar_becomes_a_tar(vieval, scored, filtered, tmp_path, name):
    prompts = [f'{{"prompt": "thing {n}"}}'.encode() for n in range(6)]
    about = {"mask.bin": b"kept as it is"}
    samples = {
        f"x/{n}": {"jpg": picture(n), "json": text, **about}
        for n, text in enumerate(prompts)
    }
    write_tar(tmp_path / "data" / name, samples)
    passing = ("x/1", "x/5")
    filtered(scored(tmp_path / "data"), f"uid in {passing}")
    with tarfile.open(tmp_path / "kept" / name) as tar:
        members = {entry.name: tar.extractfile(entry).read() for entry in tar}
    further = {key: json.loads(members.pop(f"{key}.vieval.json")) for key in passing}
    expected = {
        f"{key}.{part}": content
        for key in passing
        for part, content in samples[key].items()
    }
    assert members == expected
    assert further["x/5"]["verdict_uid"] == "x/5"
    assert further["x/5"].keys() == {"PQ", "status", "verdict_uid"}
    vieval("score", tmp_path / "kept", *SHARPNESS, "--out", tmp_path / "again")
    assert [row["uid"] for row in verdicts(tmp_path / "again")] == list(passing)


def test_what_is_added_to_a_tar_has_the_names_of_its_samples(
    scored, filtered, tmp_path
):
    """`tar --directory FOLDER .` writes ./ before each name, by which members are grouped."""
    tar = write_tar(tmp_path / "a.tar", {f"./{n}": {"jpg": picture(n)} for n in (1, 2)})
    filtered(scored(tar, "--kind", "tig"), "PQ > 0")
    with tarfile.open(tmp_path / "kept" / "a.tar") as kept:
        names = "./1.vieval.json ./1.jpg ./2.vieval.json ./2.jpg"
        assert kept.getnames() == names.split()


def test_a_tar_that_was_filtered_before_keeps_what_was_added_then(
    scored, filtered, tmp_path
):
    members = {"jpg": picture(1), "txt": b"a thing", "vieval.json": b"{}"}
    write_tar(tmp_path / "data" / "a.tar", {"1": members})
    out = scored(tmp_path / "data")
    err = filtered(out, "PQ > 0", code=1)
    remedy = "use --prefix to rename the added one"
    assert f"a.tar: already has a member 1.vieval.json; {remedy}" in err
    assert not (tmp_path / "kept").exists()
    filtered(out, "PQ > 0", "--prefix", "second_")
    with tarfile.open(tmp_path / "kept" / "a.tar") as tar:
        assert tar.extractfile("1.vieval.json").read() == b"{}"
        assert "second_PQ" in json.load(tar.extractfile("1.second_vieval.json"))


@needs("datasets")
def test_what_the_library_datasets_wrote_keeps_its_features(scored, filtered, tmp_path):
    import datasets
    import PIL.Image

    features = {"image": datasets.Image(), "prompt": datasets.Value("string")}
    features["kind_of"] = datasets.ClassLabel(names=["a", "b"])
    pictures = [PIL.Image.open(io.BytesIO(picture(n))) for n in range(6)]
    columns = {"image": pictures, "prompt": [*"abcdef"], "kind_of": [0, 1] * 3}
    (tmp_path / "data").mkdir()
    made = datasets.Dataset.from_dict(columns, features=datasets.Features(features))
    made.to_parquet(tmp_path / "data" / "train.parquet")
    filtered(scored(tmp_path / "data"), '"row" > 2')
    file = tmp_path / "kept" / "train.parquet"
    cache = tmp_path / "cache"
    kept = datasets.Dataset.from_parquet(str(file), cache_dir=str(cache))
    assert kept.features["image"] == datasets.Image()
    assert kept["kind_of"] == [1, 0, 1]
    assert kept[0]["image"].size == (16, 16)
    assert kept.features["PQ"] == datasets.Value("float64")


def test_each_prompt_that_passes_has_a_row(vieval, filtered, server, tmp_path):
    given = [{"image": picture(n), "prompt": [f"a {n}", f"b {n}"]} for n in range(3)]
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    parquet.write_table(pyarrow.Table.from_pylist(given), data / "a.parquet")
    vieval("score", data, *named(server), "--kind", "tig", "--out", out)
    assert len(verdicts(out)) == 6
    filtered(out, 'prompt = 1 or "row" = 0')
    written = rows_in(tmp_path / "kept")
    uids = [f"a.parquet:{uid}" for uid in ("0#0", "0#1", "1#1", "2#1")]
    assert [row["verdict_uid"] for row in written] == uids
    prompts = [given[n]["prompt"] for n in (0, 0, 1, 2)]
    assert [row["prompt"] for row in written] == prompts


def test_joined_files_are_filtered_as_single_ones(
    vieval, scored, filtered, data, tmp_path
):
    out = scored(data, "--rows-per-shard", "8")
    filtered(out, '"row" % 3 = 0', name="before")
    vieval("shards", out, "--compact")
    [joined] = (out / "verdicts").iterdir()
    assert parquet.ParquetFile(joined).num_row_groups == len(metadata(joined)["shards"])
    filtered(out, '"row" % 3 = 0', name="after")
    before, after = (tmp_path / name for name in ("before", "after"))
    for file in before.rglob("*.parquet"):
        same = parquet.read_table(after / file.relative_to(before))
        assert parquet.read_table(file) == same
