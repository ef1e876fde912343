"""Tables of images or prompts, opened by content instead of name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vieval_plugin.images import format_of
from vieval_plugin.media.files import require_plain
from vieval_plugin.readers.arrow_tables import (
    ARROW,
    PARQUET,
    arrow_table,
    is_saved,
    parquet_table,
    saved_table,
)
from vieval_plugin.readers.delimited import csv_table
from vieval_plugin.readers.hub import hub_table, is_hub_name
from vieval_plugin.readers.image_names import image_model_of
from vieval_plugin.readers.places import place_of
from vieval_plugin.readers.tables import (
    InputTable,
    encoding_of,
    json_table,
    jsonl_table,
    lines_of_file,
    readable,
    rows_of_document,
    text_table,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import exists, isdir, isfile, path_of
from vieval_plugin.text.wording import natural
from vieval_plugin.text.yaml_json import read_json

#: The tables by which a folder of images is known, as the hub has it; their column `file_name`
#: names its images.
METADATA = tuple(f"metadata.{suffix}" for suffix in ("csv", "jsonl", "parquet"))

_HEAD = 4096
_ARROW_STREAM = b"\xff\xff\xff\xff"
_REFUSED = {
    b"PK\x03\x04": "a ZIP archive; unpack it and pass the folder or table inside",
    b"\x1f\x8b": "a gzip file; unpack it and pass the file inside",
    **{
        bytes([0x80, version]): (
            "a pickle, which is not read because it could run arbitrary code; save "
            "the table as parquet or CSV"
        )
        for version in range(2, 6)
    },
}
_TABLES = (
    "supported tables are CSV, JSONL, parquet, Arrow, and folders saved by `datasets`"
)


def open_table(location: str | Path) -> InputTable:
    """Open the table at a path or of a data set on the hub.

    A folder is one that `datasets.save_to_disk` wrote, or has a `metadata.csv`, `.jsonl` or
    `.parquet`. Files are told apart by their first bytes, and those that hold text by what it
    begins with and then by their suffix.

    Raises:
        VievalError: there is none, it cannot be read, or it is something else, which the message
            says.
    """
    path = path_of(location)
    if isdir(path):
        return _folder_table(path)
    if not exists(path) and not path.suffix and is_hub_name(str(location)):
        return hub_table(str(location))
    require_plain(path)
    with readable(path), path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(PARQUET):
        return parquet_table(place_of(path))
    if head.startswith((ARROW, _ARROW_STREAM)):
        return arrow_table([path])
    refused = _refused(head)
    if refused:
        raise VievalError(f"{path}: {refused}")
    image = format_of(head)
    if image:
        raise VievalError(
            f"{path}: must be a table, got an image ({image}); to judge single images, "
            "pass their prompt with --prompt"
        )
    text = head.decode(encoding_of(head), errors="ignore")
    if "\0" in text:
        raise VievalError(f"{path}: a binary file, not a supported table; {_TABLES}")
    return _text_table(path, text.lstrip())


def _refused(head: bytes) -> str:
    return next(
        (advice for magic, advice in _REFUSED.items() if head.startswith(magic)), ""
    )


def other_than_table(path: Path) -> str:
    """The kind of a file that is not a table, such as `a ZIP archive`; empty for a
    table and for what cannot be read.

    >>> other_than_table(Path("prompts.txt"))
    'a text file'
    """
    if path.suffix.lower() == ".txt":
        return "a text file"
    try:
        with path.open("rb") as file:
            return _refused(file.read(_HEAD)).partition(";")[0]
    except OSError:
        return ""


def _text_table(path: Path, head: str) -> InputTable:
    suffix = path.suffix.lower()
    if suffix == ".txt":
        return text_table(path)
    if head.startswith("[") or (head.startswith("{") and _is_one_document(path)):
        return json_table(path)
    if head.startswith("{") or suffix in (".jsonl", ".json"):
        return jsonl_table(path)
    return csv_table(path)


def _is_one_document(path: Path) -> bool:
    """Return whether a file that begins with an object is one JSON document, as opposed to an
    object a line.
    """
    lines = lines_of_file(path)
    try:
        document = read_json(next(lines)[1].decode())
        is_row = rows_of_document(document) == [document]
    except VievalError:
        return True  # a line as long as only a document is
    except ValueError:
        return path.suffix.lower() == ".json"
    return not is_row and next(lines, None) is None


def metadata_of(folder: Path) -> Path | None:
    """The table that says what the images of a folder are; None if missing."""
    return next((folder / name for name in METADATA if isfile(folder / name)), None)


def parquet_files(folder: Path) -> list[Path]:
    """The parquet files below a folder; none where one table says what is in it, or it is no
    folder.
    """
    if not isdir(folder) or is_saved(folder) or metadata_of(folder):
        return []
    files = (f for f in folder.rglob("*.parquet") if f.name[0] != "." and isfile(f))
    return sorted(files, key=lambda file: natural(str(file)))


def _folder_table(folder: Path) -> InputTable:
    if is_saved(folder):
        return saved_table(folder)
    path = metadata_of(folder)
    if path:
        return replace(
            open_table(path),
            roots=(folder,),
            image_model=image_model_of(folder),
        )
    raise VievalError(
        f"{folder}: contains no images, no {', '.join(METADATA)}, no other parquet "
        "files, no data set saved by `datasets`, "
        "and no lmms-eval run"
    )
