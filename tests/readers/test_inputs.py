"""Inputs as people have them, through every door: each row of `inputs.jsonl` is right pairs, or a
line that says why not.

A row has `files` (by path: a text, `@LABEL` for the picture of a label, columns, or members of a
tar), the `door` that reads them, and `pairs` of texts and the labels of their pictures, null for a
sample that has none; or what is `refused`. In `says` are words of the lines for the user and of
the reasons of rows that cannot be judged, in `quiet` words that none of them has.
"""

import base64
import io
import json
import tarfile
import zlib
from pathlib import Path

import PIL.Image
import pytest

from tests.pictures import encoded
from tests.refusals import refusal
from tests.stored_results import read_lines
from vieval_plugin.images import read_bytes
from vieval_plugin.readers.columns import (
    fields_of,
    leftover_notes,
    parse_columns,
    rows_of,
)
from vieval_plugin.readers.image_folder import read_folders, read_named
from vieval_plugin.readers.sample_rows import samples_of_row
from vieval_plugin.readers.samples import samples_in_rows

pyarrow = pytest.importorskip("pyarrow", reason='pip install ".[tables]"')
from pyarrow import ipc, parquet  # noqa: E402

ROWS = read_lines(Path(__file__).with_name("inputs.jsonl"))
LONG = "x" * 200_000


def picture(label: str) -> bytes:
    """The picture of a label, like that of no other."""
    return encoded(
        PIL.Image.new(
            "RGB", (8, 6), tuple(zlib.crc32(label.encode()).to_bytes(4, "big")[:3])
        )
    )


def filled(text: str) -> str:
    """A text with its pictures in base64 and its long cell."""
    parts = text.replace("{long}", LONG).split("{base64:")
    heads = (part.partition("}") for part in parts[1:])
    return parts[0] + "".join(
        base64.b64encode(picture(label)).decode() + rest for label, _, rest in heads
    )


def write(path: Path, content) -> None:
    """Write a file of a row of the table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".tar":
        with tarfile.open(path, "w") as tar:
            for name, text in content:
                data = (
                    picture(text[1:]) if text.startswith("@") else filled(text).encode()
                )
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
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
        path.write_bytes(
            picture(content[1:])
            if content.startswith("@")
            else filled(content).encode()
        )


def columns_of(content):
    return {
        name: [filled(v) if isinstance(v, str) else v for v in values]
        for name, values in content.items()
    }


def pair_of(sample, verdict=None):
    """The text of a sample and its picture; none where its verdict is decided."""
    texts = [
        f"instruction: {text}" if name == "instruction" else text
        for name, text in sample.texts.items()
    ]
    output = None if verdict else sample.images.get("output")
    return " | ".join(texts), output and read_bytes(output)


def in_rows(rows, notes):
    pairs = [pair_of(row.sample, row.verdict) for row in rows]
    reasons = (f"{row.place}: {row.verdict.reason}" for row in rows if row.verdict)
    return pairs, (*notes, *reasons)


def in_source(source):
    return in_rows(list(source), source.notes)


def read_folder(row, folder, columns):
    prompts = row.get("prompts", "p.csv")
    return in_source(
        read_folders(
            [folder / name for name in row.get("inputs", ["m"])],
            folder / prompts,
            None,
            columns,
        )
    )


def read_table(row, folder, columns):
    return in_source(
        read_named(
            [str(folder / name) for name in row.get("inputs", ["t.csv"])],
            None,
            None,
            columns,
        )
    )


def samples_of_table(table, columns):
    fields = fields_of(table, columns)
    rows = list(
        samples_in_rows(
            rows_of(table, fields, prefix="t:"), table.folder, None, table.unit
        )
    )
    notes = (*fields.notes, *leftover_notes(table.name, fields.leftover))
    return in_rows(rows, notes)


def read_tar(row, folder, columns):
    from vieval_plugin.readers.webdataset import tar_index, webdataset_table

    return samples_of_table(
        webdataset_table(folder / "t.tar", tar_index(folder / "t.tar").members), columns
    )


def read_shards(row, folder, columns):
    from vieval_plugin.readers.arrow_tables import parquet_table
    from vieval_plugin.readers.places import place_of

    return samples_of_table(
        parquet_table(place_of(folder / "t.parquet"), 0, [range(100)]), columns
    )


def read_hub(row, folder, columns):
    from vieval_plugin.readers import hub

    datasets = pytest.importorskip("datasets", reason='pip install ".[hub]"')
    patch = pytest.MonkeyPatch()
    patch.setattr(hub, "unreachable", lambda: "")
    made = datasets.Dataset.from_file(str(folder / "t.arrow"))
    patch.setattr(hub, "load_from_hub", lambda *_: {"train": made})
    try:
        return samples_of_table(hub.hub_table("me/pictures"), columns)
    finally:
        patch.undo()


def read_request(row, folder, columns):
    pytest.importorskip("aiohttp", reason='pip install ".[http]"')
    from vieval_plugin.serve.protocols import judge_v1
    from vieval_plugin.serve.protocols.protocol import Body, Conditions, Reading

    entries = judge_v1.read(
        Body((folder / "request").read_bytes()), Reading(Conditions(), 10, 10_000)
    )
    return [pair_of(entry.judged) for entry in entries], ()


def read_batch(row, folder, columns):
    from vieval_plugin.api.batches import JudgeBatches

    judge = JudgeBatches("sharpness", options={"store": {"use": False}})
    seen = []
    judge._judge = lambda samples: seen.extend(samples) or [None] * len(samples)
    judge._added = lambda verdicts: {}
    judge(columns_of(row["files"]["batch"]))
    return [pair_of(sample) for sample in seen], ()


def read_host(row, folder, columns):
    """Images that were made elsewhere, as a host asks for them, for the prompts that it
    generates from.
    """
    from vieval_plugin.benchmarks.generate_prompts import PART, load
    from vieval_plugin.generation.precomputed_images import PrecomputedImages
    from vieval_plugin.generation.requests import ImageRequest

    images = PrecomputedImages(folder / row.get("inputs", ["m"])[0])
    pairs = []
    for sample in load(folder / "p.csv", PART):
        answer = json.loads(images.answer(ImageRequest(sample, sample.texts["prompt"])))
        pairs.append((sample.texts["prompt"], Path(answer["images"][0]).read_bytes()))
    return pairs, ()


DOORS = {
    "folder": read_folder,
    "table": read_table,
    "tar": read_tar,
    "shards": read_shards,
    "hub": read_hub,
    "serve": read_request,
    "batch": read_batch,
    "host": read_host,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['door']}: {row['id']}")
def test_an_input_is_paired_rightly_or_refused_in_a_line(tmp_path, row):
    for name, content in row["files"].items():
        if row["door"] != "batch":
            write(tmp_path / name, content)
    columns = parse_columns(row.get("columns", []))
    if "refused" in row:
        assert row["refused"] in refusal(DOORS[row["door"]], row, tmp_path, columns)
        return
    pairs, notes = DOORS[row["door"]](row, tmp_path, columns)
    expected = [
        (text.replace("{long}", LONG), label and picture(label))
        for text, label in row["pairs"]
    ]
    assert pairs == expected
    for words in row.get("says", []):
        assert any(words in line for line in notes), notes
    assert "says" in row or not any("matched by" in line for line in notes), notes
    assert not any(words in line for words in row.get("quiet", []) for line in notes), (
        notes
    )


@pytest.mark.parametrize(
    ("code", "kind"), [("tie", "tie"), ("portrait", "tig"), ("", "tig")]
)
def test_a_kind_of_all_replaces_foreign_words_in_the_column(code, kind):
    [(sample, _)] = samples_of_row(
        Path(),
        0,
        {"kind": code, "images": {"output": "a.png"}, "texts": {"prompt": "a"}},
        "tig",
        "own",
    )
    assert sample.kind == kind
