"""Our own layout: `sequences.jsonl` with a sequence a line, and `about.json` with source, licence and what it permits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from vieval_plugin.benchmarks.sequences import EditingSequence, Layout, SequenceFolder
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import lines_of
from vieval_plugin.text.yaml_json import read_json

FILE, DESCRIPTION_FILE = "sequences.jsonl", "about.json"


def _read(folder: Path) -> SequenceFolder:
    description = read_json((folder / DESCRIPTION_FILE).read_bytes())
    if not isinstance(description["trainable"], bool):
        raise ValueError(f"{DESCRIPTION_FILE}: trainable must be true or false")
    lines = lines_of((folder / FILE).read_text(encoding="utf-8"))
    sequences = tuple(_sequence(folder, number, line) for number, line in enumerate(lines, start=1))
    return SequenceFolder(str(description["source"]), str(description["licence"]), description["trainable"], sequences)


def _sequence(folder: Path, number: int, line: str) -> EditingSequence:
    try:
        row = read_json(line)
        images = tuple(folder / name for name in row["images"])
        return EditingSequence(str(row["uid"]), images, tuple(row["instructions"]))
    except KeyError as error:
        raise ValueError(f"row {number}: {error.args[0]} is missing") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"row {number}: {error}") from None


def write(folder: Path, description: SequenceFolder, sequences: Iterable[EditingSequence]) -> None:
    """Write sequences in this layout, their images already in the folder; VievalError where it cannot be written.

    The sequences may be made one by one; those of `description` are not used.
    """
    terms = {"source": description.source, "licence": description.licence, "trainable": description.trainable}
    write_whole(folder / DESCRIPTION_FILE, [json.dumps(terms, indent=1)])
    write_whole(
        folder / FILE, (f"{json.dumps(_row(folder, sequence), ensure_ascii=False)}\n" for sequence in sequences)
    )


def _row(folder: Path, sequence: EditingSequence) -> dict[str, object]:
    images = [str(path.relative_to(folder)) for path in sequence.images]
    return {"uid": sequence.uid, "images": images, "instructions": sequence.instructions}


LAYOUT = Layout(FILE, _read)
