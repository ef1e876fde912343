"""Inputs as people have them, through every door: each row of `inputs.jsonl` is pairs or a refusal.

A row has `files` (by path: a text, `@LABEL` for the picture of a label, columns, or members of a
tar), the `door` that reads them, and `pairs` of texts and the labels of their pictures, null for
none; or what is `refused`. Notes and reasons have the words in `says` and none in `quiet`.
"""

import base64
import json
import re
import zlib
from pathlib import Path

import pytest

from tests.builders import a_tar
from tests.pictures import plain
from tests.refusals import refusal
from tests.stored_results import read_lines
from vieval_plugin.images import read_bytes
from vieval_plugin.readers.columns import (
    fields_of,
    leftover_notes,
    parse_columns,
    rows_of,
)
from vieval_plugin.readers.image_folder import (
    read_folders,
    read_image_samples,
    read_named,
)
from vieval_plugin.readers.sample_rows import samples_of_row
from vieval_plugin.readers.samples import samples_in_rows

pyarrow = pytest.importorskip("pyarrow", reason='pip install ".[tables]"')
from pyarrow import ipc, parquet  # noqa: E402

ROWS = read_lines(Path(__file__).with_name("inputs.jsonl"))
LONG = "x" * 200_000
KINDS = [("tie", "tie"), ("portrait", "tig"), ("", "tig")]


def picture(label):
    """The picture of a label, like that of no other."""
    colour = tuple(zlib.crc32(label.encode()).to_bytes(4, "big")[:3])
    return plain(colour, (8, 6))


def content_of(text):
    """The bytes of a text with its pictures in base64 and its long cell, or of a picture."""
    if text.startswith("@"):
        return picture(text[1:])
    return filled(text).encode()


def filled(text):
    encoded = lambda match: base64.b64encode(picture(match[1])).decode()
    return re.sub(r"\{base64:(.*?)\}", encoded, text.replace("{long}", LONG))


def write(path, content):
    """Write a file of a row of the table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".tar":
        a_tar(path, [(name, content_of(text)) for name, text in content])
    elif isinstance(content, dict) and "text" in content:
        path.write_bytes(content["text"].encode(content["encoding"]))
    elif isinstance(content, dict):
        table = pyarrow.table(columns_of(content))
        if path.suffix == ".parquet":
            parquet.write_table(table, path)
        else:
            with ipc.new_stream(path, table.schema) as out:
                out.write_table(table)
    else:
        path.write_bytes(content_of(content))


def columns_of(content):
    return {
        name: [filled(v) if isinstance(v, str) else v for v in values]
        for name, values in content.items()
    }


def pair_of(sample, verdict=None):
    """The text of a sample and its picture; none where its verdict is decided."""
    shown = {"instruction": "instruction: "}
    texts = [shown.get(name, "") + text for name, text in sample.texts.items()]
    output = None if verdict else sample.images.get("output")
    return " | ".join(texts), output and read_bytes(output)


def in_rows(rows, notes):
    pairs = [pair_of(row.sample, row.verdict) for row in rows]
    reasons = (f"{row.place}: {row.verdict.reason}" for row in rows if row.verdict)
    return pairs, (*notes, *reasons)


def in_source(source):
    return in_rows(list(source), source.notes)


def read_folder(row, folder, columns):
    prompts = folder / row.get("prompts", "p.csv")
    inputs = [folder / name for name in row.get("inputs", ["m"])]
    return in_source(read_folders(inputs, prompts, None, columns))


def read_table(row, folder, columns):
    inputs = [str(folder / name) for name in row.get("inputs", ["t.csv"])]
    return in_source(read_named(inputs, None, None, columns))


def samples_of_table(table, columns):
    fields = fields_of(table, columns)
    read = rows_of(table, fields, prefix="t:")
    rows = list(samples_in_rows(read, table.folder, None, table.unit))
    notes = (*fields.notes, *leftover_notes(table.name, fields.leftover))
    return in_rows(rows, notes)


def read_tar(row, folder, columns):
    from vieval_plugin.readers.webdataset import tar_index, webdataset_table

    index = tar_index(folder / "t.tar")
    return samples_of_table(webdataset_table(folder / "t.tar", index.members), columns)


def read_shards(row, folder, columns):
    from vieval_plugin.readers.arrow_tables import parquet_table
    from vieval_plugin.readers.places import place_of

    table = parquet_table(place_of(folder / "t.parquet"), 0, [range(100)])
    return samples_of_table(table, columns)


def read_hub(row, folder, columns):
    from vieval_plugin.readers import hub

    datasets = pytest.importorskip("datasets", reason='pip install ".[hub]"')
    made = datasets.Dataset.from_file(str(folder / "t.arrow"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "unreachable", lambda: "")
        patch.setattr(hub, "load_from_hub", lambda *_: {"train": made})
        return samples_of_table(hub.hub_table("me/pictures"), columns)


def read_request(row, folder, columns):
    pytest.importorskip("aiohttp", reason='pip install ".[http]"')
    from vieval_plugin.serve.protocols import judge_v1
    from vieval_plugin.serve.protocols.protocol import Body, Conditions, Reading

    body = Body((folder / "request").read_bytes())
    entries = judge_v1.read(body, Reading(Conditions(), 10, 10_000))
    return [pair_of(entry.judged) for entry in entries], ()


def read_batch(row, folder, columns):
    from vieval_plugin.api.batches import JudgeBatches

    judge, seen = JudgeBatches("sharpness", options={"store": {"use": False}}), []
    judge._judge = lambda samples: seen.extend(samples) or [None] * len(samples)
    judge._added = lambda verdicts: {}
    judge(columns_of(row["files"]["batch"]))
    return [pair_of(sample) for sample in seen], ()


def read_host(row, folder, columns):
    """Images for the prompts that a host generates from."""
    from vieval_plugin.benchmarks.generate_prompts import PART, load
    from vieval_plugin.generation.precomputed_images import PrecomputedImages
    from vieval_plugin.generation.requests import ImageRequest

    images = PrecomputedImages(folder / row.get("inputs", ["m"])[0])
    pairs = []
    for sample in load(folder / "p.csv", PART):
        answer = json.loads(images.answer(ImageRequest(sample, sample.texts["prompt"])))
        pairs.append((sample.texts["prompt"], Path(answer["images"][0]).read_bytes()))
    return pairs, ()


DOORS = {"folder": read_folder, "table": read_table, "tar": read_tar}
DOORS |= {"shards": read_shards, "hub": read_hub, "serve": read_request}
DOORS |= {"batch": read_batch, "host": read_host}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['door']}: {row['id']}")
def test_an_input_is_paired_rightly_or_refused_in_a_line(tmp_path, row):
    for name, content in row["files"].items():
        if row["door"] != "batch":
            write(tmp_path / name, content)
    asked = (row, tmp_path, parse_columns(row.get("columns", [])))
    if "refused" in row:
        assert row["refused"] in refusal(DOORS[row["door"]], *asked)
        return
    pairs, notes = DOORS[row["door"]](*asked)
    expected = [
        (filled(text), label and picture(label)) for text, label in row["pairs"]
    ]
    assert pairs == expected
    for words in row.get("says", []):
        assert any(words in line for line in notes), notes
    assert "says" in row or not any("matched by" in line for line in notes), notes
    told = "\n".join(notes)
    assert not any(words in told for words in row.get("quiet", [])), notes


@pytest.mark.parametrize(("code", "kind"), KINDS)
def test_a_kind_of_all_replaces_foreign_words_in_the_column(code, kind):
    row = {"kind": code, "images": {"output": "a.png"}, "texts": {"prompt": "a"}}
    [(sample, _)] = samples_of_row(Path(), 0, row, "tig", "own")
    assert sample.kind == kind


@pytest.mark.parametrize(
    ("text", "kind"), [({"prompt": "a"}, "tig"), ({"instruction": "a"}, "tie")]
)
def test_images_passed_together_are_one_group(text, kind, tmp_path):
    paths = [str(tmp_path / name) for name in ("a.png", "b.png")]
    for path in paths:
        Path(path).write_bytes(picture(path))
    samples = [row.sample for row in read_image_samples(paths, text, None, None)]
    assert {(sample.group, sample.kind) for sample in samples} == {("a", kind)}
