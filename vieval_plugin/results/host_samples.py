"""Read the verdicts that hosts write: `..._samples_*.jsonl`, with one row per sample.

lmms-eval writes them below --output_path, with --log_samples. In VLMEvalKit, VIEval
writes them below --work-dir, where some runs have their own folder and are linked from
the folder above.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from vieval_plugin.readers.places import is_shards
from vieval_plugin.records import Record, lines_of
from vieval_plugin.results.documents import MALFORMED, read_record, read_response
from vieval_plugin.results.sources import Source, source_of
from vieval_plugin.run.verdict_log import partial_file
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.untrusted import exists, isfile, real
from vieval_plugin.text.yaml_json import JsonObject, first_row, read_json

#: Pattern of hosts' samples files.
SAMPLES = "*_samples_*.jsonl"
#: File of a card, and the folder next to it with its verdicts.
CARD_JSON = "card.json"
VERDICTS = "verdicts"
#: Name of a VLMEvalKit run folder, after its day.
_RUN = re.compile(r"T[0-9]{8}(_G|-)")


def samples_files(result: Path) -> list[Path]:
    """Find the samples files of a result: the verdicts of a card's folder, or the
    result itself if it is a folder of shards, or the verdicts so far of a file that is
    not complete.

    If a folder, or one of its runs, has several files of one task and judge, the newest
    is used. A judge with other options, such as another temperature, is a different
    judge.
    """
    if isfile(result) or is_shards(result):
        return [result]
    if not exists(result) and isfile(partial_file(result)):
        return [partial_file(result)]
    if not exists(result):
        raise VievalError(f"{result}: no such file or folder")
    card_verdicts = _verdicts_of_card(result)
    if card_verdicts:
        return card_verdicts
    by_folder_and_task: dict[tuple[Path, str], list[Path]] = {}
    for path in sorted({real(path) for path in result.rglob(SAMPLES)}):
        folder = path.parent
        if _RUN.match(path.parent.name):
            folder = path.parent.parent
        task = re.sub(r"^.*_samples_", "", path.name)
        by_folder_and_task.setdefault((folder, task), []).append(path)
    task_files = by_folder_and_task.values()
    newest = [
        _newest(by_one) for files in task_files for by_one in _group_by_judge(files)
    ]
    if newest:
        return newest
    verdicts = sorted(result.rglob("*.jsonl"))  # as vieval score writes them
    if verdicts:
        raise VievalError(
            f"{result}: not a run folder; pass the verdict files in it, such as "
            f"{verdicts[0]}"
        )
    raise VievalError(
        f"{result}: contains no samples_*.jsonl; run lmms-eval with --log_samples and "
        f"--output_path {result}, or vieval vlmevalkit with --work-dir {result}"
    )


def _verdicts_of_card(result: Path) -> list[Path]:
    """Find a card's verdict files, without its repeats, from the card's folder or its
    verdict folder.
    """
    card = result.parent if result.name == VERDICTS else result
    if isfile(card / CARD_JSON):
        return sorted((card / VERDICTS).glob("*.jsonl"))
    return []


def _group_by_judge(files: Sequence[Path]) -> Collection[Sequence[Path]]:
    if len(files) == 1:
        return [files]
    by_source: dict[Source | None, list[Path]] = {}
    for path in files:
        by_source.setdefault(_first_source(path), []).append(path)
    return by_source.values()


def _first_source(path: Path) -> Source | None:
    """Source of a file's first verdict; None if it cannot be read."""
    try:
        return source_of(read_response(responses_of(first_row(path))[0])[2])
    except MALFORMED:
        return None


def _newest(files: Sequence[Path]) -> Path:
    """Return the newest of several files of one task: by name within one folder, as in
    lmms-eval, otherwise by modification time.
    """
    if len({path.parent for path in files}) == 1:
        return files[-1]
    return max(files, key=lambda path: path.stat().st_mtime)


def records_of(path: Path) -> list[tuple[Record, ...]]:
    """Read the records of a samples file, grouped by sample; VievalError with the line
    of a malformed row.
    """
    records = []
    summary = _summary(path)
    for number, line in enumerate(lines_of(path.read_text(encoding="utf-8")), start=1):
        row: Any = None
        try:
            row = read_json(line)
            if not isinstance(row, dict):
                raise VievalError("not a JSON object")
            responses = responses_of(row)
            spent = zip_longest(responses, _tokens(row)[: len(responses)])
            records.append(
                tuple(
                    read_record(response, row["target"], tokens, summary)
                    for response, tokens in spent
                )
            )
        except MALFORMED as error:
            missing = " is missing" if isinstance(error, KeyError) else ""
            hint = ""
            if isinstance(row, dict) and {"images", "texts"} <= row.keys():
                hint = "; these are samples: judge them with `vieval score`"
            raise VievalError(
                f"{path}: line {number} is not a VIEval result "
                f"({line_of(error)}{missing}){hint}"
            ) from None
    return records


def _summary(path: Path) -> Path | None:
    """Path of the host's results for the whole run, in the same folder as its samples."""
    summary = path.with_name(path.name.split("_samples_")[0] + "_results.json")
    return summary if isfile(summary) else None


def _tokens(row: JsonObject) -> list[int | None]:
    """Tokens used by each response of a row, if the host records them."""
    token_counts = row.get("token_counts")
    tokens = []
    for count in token_counts if isinstance(token_counts, list) else ():
        names = ("input_tokens", "output_tokens")
        parts = map(count.get, names) if isinstance(count, dict) else ()
        known = [part for part in parts if isinstance(part, int)]
        tokens.append(sum(known) if known else None)
    return tokens


def responses_of(sample: JsonObject) -> list[str]:
    """Response texts of a row: one per repeat."""
    responses = sample["filtered_resps"]
    return list(map(str, responses if isinstance(responses, list) else [responses]))
