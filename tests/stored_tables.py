"""The same rows in every format that tables are stored in."""

import csv
import json

import PIL.Image
import pytest

from tests.pictures import encoded

pyarrow = pytest.importorskip("pyarrow", reason='pip install ".[tables]"')
from pyarrow import parquet  # noqa: E402

CAPTIONS = {"a": "a red cube, on a ball", "b": 'a "blue" ball', "c": "ein grüner Hut"}
IMAGE = pyarrow.struct({"bytes": pyarrow.binary(), "path": pyarrow.string()})


def picture(uid):
    return encoded(PIL.Image.new("RGB", (8, 6), (ord(uid), 0, 0)))


def columns_of(form):
    """The rows as columns of Arrow: images as paths, as bytes, or as both."""
    paths = [f"{uid}.png" for uid in CAPTIONS]
    files = [picture(uid) for uid in CAPTIONS]
    structs = lambda images: pyarrow.array(
        [{"bytes": it, "path": path} for it, path in zip(images, paths, strict=True)],
        IMAGE,
    )
    images = {
        "paths": pyarrow.array(paths),
        "structs": structs(files),
        "files": structs([None] * len(paths)),
        "bytes": pyarrow.array(files, pyarrow.large_binary()),
        "dictionary": pyarrow.array(paths).dictionary_encode(),
    }[form]
    named = {"uid": list(CAPTIONS)} if form == "bytes" else {}
    return pyarrow.table({**named, "image": images, "caption": list(CAPTIONS.values())})


def as_csv(path, image="image"):
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        rows = [(f"{uid}.png", text) for uid, text in CAPTIONS.items()]
        csv.writer(file).writerows([(image, "caption"), *rows])
    return path


def objects():
    return [{"image": f"{uid}.png", "caption": text} for uid, text in CAPTIONS.items()]


def as_jsonl(path):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in objects()))
    return path


def as_samples(path):
    rows = [
        {"images": {"output": row["image"]}, "texts": {"prompt": row["caption"]}}
        for row in objects()
    ]
    path.write_text("\n\n".join(map(json.dumps, rows)))
    return path


def as_json(path):
    path.write_text(json.dumps(objects(), indent=2))
    return path


def as_parquet(path, form, **options):
    parquet.write_table(columns_of(form), path, **options)
    return path


def as_arrow(path, form, writer):
    with writer(path, columns_of(form).schema) as out:
        out.write_table(columns_of(form), max_chunksize=2)
    return path


def as_saved(path):
    datasets = pytest.importorskip("datasets", reason='pip install ".[hub]"')
    stored = datasets.Dataset(columns_of("structs"))
    stored = stored.cast_column("image", datasets.Image())
    stored.save_to_disk(path, num_shards=2)
    return path


def as_splits(path):
    as_saved(path / "train")
    (path / "dataset_dict.json").write_text('{"splits": ["train"]}')
    return path
