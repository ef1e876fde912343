"""Results as a host stores them, and the tables that commands write."""

import csv
import json

from vieval_plugin.records import response_json, target_json


def result(judged, verdict, provenance):
    """A row of a samples file: the verdict on one sample or contest."""
    response = response_json(judged.id, verdict, provenance)
    return {"filtered_resps": response, "target": target_json(judged)}


def write_results(folder, rows, name="1_samples_task.jsonl"):
    """Write rows as a samples file of lmms-eval; returns its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / name, rows)
    return folder


def csv_rows(path):
    """The rows of a CSV file, each by column."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_lines(path):
    """The documents of a JSONL file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path, documents):
    """Write a JSONL file; returns its path."""
    path.write_text("".join(f"{json.dumps(document)}\n" for document in documents))
    return path
