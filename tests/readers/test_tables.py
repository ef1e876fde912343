"""The same rows in each format: the samples are the same."""

import pytest

from tests.refusals import refusal
from tests.stored_results import write_lines
from tests.stored_tables import (
    CAPTIONS,
    IMAGE,
    as_arrow,
    as_csv,
    as_json,
    as_jsonl,
    as_parquet,
    as_samples,
    as_saved,
    as_splits,
    columns_of,
    parquet,
    picture,
    pyarrow,
)
from tests.tables import table
from vieval_plugin.images import read_bytes
from vieval_plugin.judges.protocol import TableCell
from vieval_plugin.readers.columns import parse_columns
from vieval_plugin.readers.image_folder import read_named
from vieval_plugin.readers.samples import read_samples

ipc = pytest.importorskip("pyarrow.ipc")
ORIGINS = ("laion", "midjourney", "laion")
NAMES = ("a.png", None, "gone.JPG"), ("http://h/a.png?k=1", "data:image/png", "a.png")
WRONG_COLUMNS = [
    ("output=imgae", "t.csv: no column 'imgae'; did you mean image? known columns: "),
    ("outptu=image", "unknown field 'outptu'; did you mean output?"),
    ("output", "output=image,prompt=caption, got 'output'"),
]
PICKLE = b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R\x94."
UNREADABLE = "not a readable parquet or Arrow file"
NO_COLUMN = "no column of images"
VERDICT = b'{"uid": "1", "scores": {}, "status": "ok", "provenance": {}}\n'
FOOTER = b"PAR1" + bytes(8) + b"\xff\xff\xff\x7fPAR1"
NO_ROW = "rows can be read"
DIARY = f"{NO_COLUMN}; known columns: Dear diary|none of its 134 {NO_ROW}"
OTHERS = {
    "a PNG": (picture("a"), "must be a table, got an image (PNG)"),
    "an AVIF": (b"\0\0\0 ftypavif\0\0\0\0avif", "an image (AVIF)"),
    "a zip": (b"PK\x03\x04" + bytes(40), "a ZIP archive; unpack it"),
    "a gzip": (b"\x1f\x8b\x08" + bytes(40), "a gzip file; unpack it"),
    "a pickle": (PICKLE, "a pickle, which is not read because it could run arbitrary"),
    "a binary file": (b"\x7fELF" + bytes(100), "a binary file, not a supported table"),
    "text": (b"Dear diary,\ntoday I drew a cat.\n" * 67, DIARY),
    "no JSON": (b"{nothing\n" * 67, f"67 {NO_ROW}; line 1: not a JSON object"),
    "verdicts": (VERDICT, "contains verdicts, but samples are required"),
    "an object": (b'{\n"rows": []\n}\n', f"none of its 3 {NO_ROW}"),
    "nothing": (b"", "contains no samples|no header"),
    "a list of texts": (b'["a", "b"]', NO_COLUMN),
    "a list without an end": (b"[{", "invalid JSON"),
    "parquet that is cut off": (b"PAR1" + bytes(8), UNREADABLE),
    "a footer of 2 GiB": (FOOTER, "its footer is too large (2047 MiB"),
    "Arrow that is cut off": (b"ARROW1\0\0" + bytes(8), UNREADABLE),
    "a stream of garbage": (b"\xff" * 7 + b"\x7f" + bytes(80), UNREADABLE),
}


@pytest.fixture
def folder(tmp_path):
    """A folder of images."""
    for uid in CAPTIONS:
        (tmp_path / f"{uid}.png").write_bytes(picture(uid))
    return tmp_path


def beside(folder):
    for uid, text in CAPTIONS.items():
        (folder / f"{uid}.txt").write_text(text, encoding="utf-8")
    return folder


def metadata_csv(folder):
    return as_csv(folder / "metadata.csv", "file_name").parent


def metadata_parquet(folder):
    table = columns_of("paths").rename_columns(["file_name", "caption"])
    parquet.write_table(table, folder / "metadata.parquet")
    return folder


def parquet_of(form, name="t.parquet", **options):
    return lambda folder: as_parquet(folder / name, form, **options)


def arrow_of(form, writer):
    return lambda folder: as_arrow(folder / "t.arrow", form, writer)


FORMATS = {
    "CSV": lambda folder: as_csv(folder / "t.csv"),
    "CSV under another name": lambda folder: as_csv(folder / "t.dat"),
    "JSONL": lambda folder: as_jsonl(folder / "t.jsonl"),
    "JSONL under another name": lambda folder: as_jsonl(folder / "t.csv"),
    "a samples file": lambda folder: as_samples(folder / "t.jsonl"),
    "a JSON list": lambda folder: as_json(folder / "t.json"),
    "parquet of paths": parquet_of("paths"),
    "parquet of structs": parquet_of("structs", row_group_size=2),
    "parquet of files": parquet_of("files"),
    "parquet of bytes": parquet_of("bytes", compression="zstd"),
    "parquet under another name": parquet_of("structs", "t.jsonl"),
    "an Arrow file": arrow_of("dictionary", ipc.new_file),
    "an Arrow stream": arrow_of("structs", ipc.new_stream),
    "a saved data set": lambda folder: as_saved(folder / "saved"),
    "a saved data set of one split": lambda folder: as_splits(folder / "saved"),
    "a folder with metadata.csv": metadata_csv,
    "a folder with metadata.parquet": metadata_parquet,
    "a folder with texts": beside,
}


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS)
def test_the_samples_are_the_same_whatever_the_rows_are_stored_as(folder, write):
    source = read_named([str(write(folder))])
    expected = [(uid, "tig", {"prompt": text}) for uid, text in CAPTIONS.items()]
    for _ in range(2):  # a source is read as often as it is needed
        rows = list(source)
        assert not any(row.verdict for row in rows)
        samples = [row.sample for row in rows]
        assert [(one.id.uid, one.kind, one.texts) for one in samples] == expected
        found = [read_bytes(one.images["output"]) for one in samples]
        assert found == [picture(uid) for uid in CAPTIONS]
    assert source.total == 3


def test_several_tables_are_one_source_and_a_uid_in_both_is_one_line(folder):
    more = folder / "more.jsonl"
    path = as_parquet(folder / "t.parquet", "structs")
    more.write_text('{"uid": "d", "image": "a.png", "prompt": "x"}\n')
    rows = list(read_named([str(path), str(more), str(path)]))
    found = [(row.sample.id.uid, row.place) for row in rows]
    places = [(uid, f"{path}: row {n}") for n, uid in enumerate("abc", start=1)]
    assert found == [*places, ("d", f"{more}: line 1")]
    line = refusal(read_named, [str(path), str(as_jsonl(folder / "t.jsonl"))])
    assert "both have uid 'a' (tig); use a different uid for each" in line


def test_every_command_reads_the_columns_of_a_table(folder, vieval, monkeypatch):
    (folder / "t.csv").write_text("photo,words\na.png,x\n")
    commands = {"score": "--judge sharpness --out v.jsonl", "label": "--out l.html"}
    monkeypatch.chdir(folder)
    for name, options in commands.items():
        more = options.split()
        vieval(name, as_parquet(folder / "t.parquet", "structs"), *more)
        said = vieval(name, folder / "t.csv", *more, code=1).err
        assert "no column of images; known columns: photo, words" in said
        vieval(name, folder / "t.csv", *more, "--columns", "output=photo,prompt=words")


def test_bytes_of_a_table_say_where_they_are_from(folder):
    path = as_parquet(folder / "t.parquet", "structs", row_group_size=2)
    found = [row.sample.images["output"].origin for row in read_samples(path)]
    assert found == [TableCell(path, number, "image") for number in range(3)]


@pytest.mark.parametrize(*table("columns_are_known_by_names_that_are_common.jsonl"))
def test_columns_are_known_by_names_that_are_common(tmp_path, header, read):
    names = header.replace("edit instruction", "edit_instruction").split(",")
    places = (read.get("source"), read.get("output"))
    cells = [f"v{n}.png" if n in places else f"v{n}" for n in range(len(names))]
    (tmp_path / "t.csv").write_text(f"{','.join(names)}\n{','.join(cells)}\n")
    (row,) = read_samples(tmp_path / "t.csv")
    sample = row.sample
    known = {role: image.source.name for role, image in sample.images.items()}
    known |= sample.texts
    expected = {key: cells[place] for key, place in read.items()}
    identity = {"uid": sample.id.uid, "image_model": sample.id.image_model}
    known |= {key: identity[key] for key in expected.keys() & identity}
    assert known == expected
    assert sample.kind == ("tie" if "source" in read else "tig")


def with_source(folder, values, column="source", caption="caption"):
    """A table of images with a caption and one more column, in CSV, JSONL and parquet."""
    rows = [
        {"image": f"{uid}.png", caption: uid, column: value}
        for uid, value in zip(CAPTIONS, values, strict=True)
    ]
    lines = [rows[0], *([value or "" for value in row.values()] for row in rows)]
    (folder / "s.csv").write_text("\n".join(map(",".join, lines)))
    write_lines(folder / "s.jsonl", rows)
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "s.parquet")
    return [folder / "s.csv", folder / "s.jsonl", folder / "s.parquet"]


@pytest.mark.parametrize("column", ["source", "Source", "original", "mask", "control"])
@pytest.mark.parametrize("values", [ORIGINS, ("", "http://example.com/page", "x.pngs")])
def test_a_column_of_words_is_no_image(folder, column, values):
    key = {"mask": "mask", "control": "control"}.get(column, "source")
    for path in with_source(folder, values, column):
        source = read_samples(path)
        samples = [row.sample for row in source if row.verdict is None]
        found = [(one.kind, list(one.images), one.texts) for one in samples]
        assert found == [("tig", ["output"], {"prompt": uid}) for uid in CAPTIONS]
        [_, line] = source.notes
        shown = f"does not hold images (for example, {next(filter(None, values))!r})"
        assert line.startswith(f"{path}: ignoring column {column!r}, which {shown}; ")
        assert f"category={column}, or image_model={column} if it" in line
        labels = [value or "" for value in values]
        read = read_samples(path, columns={"category": column})
        assert [row.sample.category for row in read] == labels
        read = read_samples(path, columns={"image_model": column})
        assert [row.sample.id.image_model for row in read] == labels
        named = read_samples(path, columns=parse_columns([f"{key}={column}"]))
        assert {role for row in named for role in row.sample.images} == {"output", key}


@pytest.mark.parametrize("values", NAMES)
def test_names_of_images_are_read_without_the_images(folder, values):
    for path in with_source(folder, values):
        rows = list(read_samples(path))
        expected = [{"output", "source"} if value else {"output"} for value in values]
        assert [set(row.sample.images) for row in rows] == expected
        assert rows[2].sample.kind == "tie"
        reason = rows[2].verdict.reason if rows[2].verdict else ""
        assert ("missing source image" in reason) == (values[2] == "gone.JPG")


@pytest.mark.parametrize("column", ["source", "original"])
def test_a_column_that_holds_images_in_some_rows_alone_asks_which_it_is(folder, column):
    for path in with_source(folder, ("a.png", "laion", "b.png"), column):
        line = refusal(read_samples, path)
        assert (
            f"some values of column {column!r} look like images: 'a.png' does" in line
        )
        assert f"use --columns source={column} to read the column, or --col" in line
        read = read_samples(path, columns=parse_columns(["source="]))
        assert [row.sample.kind for row in read] == ["tig"] * 3


def test_an_address_without_a_suffix_is_an_image_beside_instructions_alone(folder):
    addresses = [f"https://example.com/{uid}" for uid in CAPTIONS]
    expected = {"instruction": {"output", "source"}, "caption": {"output"}}
    for caption, roles in expected.items():
        for path in with_source(folder, addresses, caption=caption):
            found = {role for row in read_samples(path) for role in row.sample.images}
            assert found == roles


@pytest.mark.parametrize(("data", "role"), [(picture("b"), True), (b"laion", False)])
def test_bytes_are_a_source_where_they_begin_as_an_image(folder, data, role):
    table = pyarrow.table({"image": [picture("a")], "caption": ["x"], "source": [data]})
    parquet.write_table(table, folder / "t.parquet")
    (row,) = read_samples(folder / "t.parquet")
    assert ("source" in row.sample.images) is role


@pytest.mark.parametrize(("columns", "line"), WRONG_COLUMNS)
def test_a_missing_column_names_the_nearest(folder, columns, line):
    path = as_csv(folder / "t.csv")
    read = lambda: read_samples(path, columns=parse_columns([columns]))
    assert line in refusal(read)


def test_uids_from_file_names_are_unique_for_each_image_model(tmp_path):
    files = ["x/1.png", "y/1.png", "1_2.png", "https://example.com/d/1.png?key=1"]
    rows = [{"image": file, "prompt": "x"} for file in files]
    rows.append({"image": "y/1.png", "prompt": "x", "image_model": "m"})
    write_lines(tmp_path / "t.jsonl", rows)
    found = [row.sample.id.uid for row in read_samples(tmp_path / "t.jsonl")]
    assert found == ["1", "1_2", "1_2_2", "1_3", "1"]


@pytest.mark.parametrize(("data", "line"), OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("name", ["t.jsonl", "t"])
def test_what_is_no_table_is_refused_in_one_line(tmp_path, name, data, line):
    (tmp_path / name).write_bytes(data)
    said = refusal(read_samples, tmp_path / name)
    assert any(words in said for words in line.split("|"))


def test_a_folder_of_nothing_and_a_name_of_nothing_are_one_line(tmp_path):
    assert "no images, no metadata.csv" in refusal(read_named, [str(tmp_path)])
    assert "cannot read " in refusal(read_named, [str(tmp_path / "t.csv")])


def test_a_folder_of_parquet_files_stands_for_these(score, vieval, tmp_path):
    data = tmp_path / "data"
    files = [f"train/part-{number}.parquet" for number in (2, 10)]  # in this order
    (data / "train").mkdir(parents=True)
    for file in files:
        table = pyarrow.table({"image": [picture("a")] * 2, "text": ["x", "y"]})
        parquet.write_table(table, data / file)
    assert "4 samples" in vieval("score", data, "--plan", "--judge", "sharpness").out
    uids = [f"{file}:{row}" for file in files for row in (0, 1)]
    code, rows, _, _ = score(data, "--judge", "sharpness")
    assert (code, [row["uid"] for row in rows]) == (0, uids)


def test_an_image_of_a_table_that_is_none_is_its_rows_status(score, tmp_path):
    named = {"a.png": picture("a"), "b.png": b"no image"}
    stored = [{"bytes": data, "path": name} for name, data in named.items()]
    images = pyarrow.array([*stored, None], IMAGE)
    table = pyarrow.table({"image": images, "text": ["x"] * 3})
    parquet.write_table(table, tmp_path / "t.parquet")
    code, rows, _, _ = score(tmp_path / "t.parquet", "--judge", "sharpness")
    found = [(row["uid"], row["status"]) for row in rows]
    assert found == [("a", "ok"), ("b", "no_image"), ("3", "no_image")]
    assert code == 1


def test_a_text_beside_an_image_that_is_lacking_or_a_link_is_its_rows_status(tmp_path):
    sent = tmp_path / "sent"
    sent.mkdir()
    for uid in CAPTIONS:
        (sent / f"{uid}.png").write_bytes(picture(uid))
    for folder in (sent, tmp_path):
        (folder / "a.txt").write_text("a cat")
    (sent / "b.txt").symlink_to("../a.txt")
    a, b, c = read_named([str(sent)])
    found = (a.verdict, a.sample.texts, a.sample.id.image_model)
    assert found == (None, {"prompt": "a cat"}, "sent")
    assert b.verdict.reason == "b.txt links to a file outside its folder"
    assert c.verdict.reason == "no c.txt next to c.png"


def test_a_data_set_of_the_hub_is_read(folder, monkeypatch, tmp_path_factory):
    """The hub is a folder here; all else is what `datasets` does, its cache included."""
    datasets = pytest.importorskip("datasets", reason='pip install ".[hub]"')
    from vieval_plugin.readers import hub

    home = tmp_path_factory.mktemp("hub")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", home / "cache")
    load = datasets.load_dataset
    asked = []

    def from_folder(name, config=None, **options):
        asked.append((name, config))
        return load(str(home / "data"), cache_dir=str(home / "cache"), **options)

    monkeypatch.setattr(datasets, "load_dataset", from_folder)
    monkeypatch.setattr(hub, "unreachable", lambda: "")
    monkeypatch.chdir(folder)
    for name in ("train", "test"):
        (home / "data" / name).mkdir(parents=True)
        as_parquet(home / "data" / name / "0.parquet", "structs")
    rows = list(read_named(["me/pictures:test"]))
    shown = [read_bytes(row.sample.images["output"]) for row in rows]
    assert [row.sample.id.uid for row in rows] == list(CAPTIONS)
    assert shown == list(map(picture, CAPTIONS))
    assert rows[0].sample.images["output"].origin.row == 0
    assert asked == [("me/pictures", None)]
    line = "me/pictures: choose one of its splits: me/pictures:train, me/pictures:test"
    assert line in refusal(read_named, ["me/pictures"])


def test_without_the_hub_a_path_is_never_sent(tmp_path, monkeypatch):
    from vieval_plugin.readers import hub

    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    line = refusal(read_named, ["me/pictures"])
    assert "no such file or folder, and the Hugging Face Hub cannot be reached" in line
    monkeypatch.setattr(hub, "unreachable", lambda: pytest.fail("asked"))
    for path in ("out/verdicts.jsonl", "./pictures", "a/b/c"):
        assert "cannot read" in refusal(read_named, [path])


@pytest.mark.parametrize("path", [{"path": None}, {}], ids=["null path", "no path"])
def test_images_without_a_path_need_no_schema(tmp_path, path):
    rows = [{"bytes": picture(uid), **path} for uid in "ab"]
    stored = pyarrow.table({"picture": rows, "prompt": ["a", "b"]})
    parquet.write_table(stored, tmp_path / "t.parquet")
    source = read_named([str(tmp_path / "t.parquet")])
    shown = [read_bytes(row.sample.images["output"]) for row in source]
    assert shown == [picture("a"), picture("b")]
