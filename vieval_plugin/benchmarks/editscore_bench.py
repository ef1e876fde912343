"""The EditReward-Bench of EditScore: pairs of edits of which people prefer one in a dimension.

Source: Luo et al., EditScore (2025), in the hub's `EditScore/EditReward-Bench`. It is another
benchmark than that of Wu et al. with the same name (`editreward_bench_tiger`). There are no ties: a
judge's tie is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from vieval_plugin.benchmarks.loading.contest_hub import HubRows, Keep, hub_benchmark
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.judges.contests import FIRST, SECOND, Contest
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.readers.contest_rows import CONTESTS, ContestRows, read_contests
from vieval_plugin.readers.rows import read_lines
from vieval_plugin.text.yaml_json import JsonObject

NAME = "editscore_bench"
KIND = "tie"
SCHEME = "two_way"
PARTS = {
    "prompt_following": 944,
    "consistency": 890,
    "overall": 1238,
}
DATASET = "EditScore/EditReward-Bench"
SPLIT = "train"
ADVICE = f"run `vieval prepare {NAME}`"


def read(folder: Path, part: str) -> list[Contest]:
    """The pairs of a dimension, from `<part>/contests.jsonl`."""
    home = folder / part
    contests = read_lines(home / CONTESTS, ADVICE)
    return read_contests(
        contests,
        home,
        ContestRows(NAME, part, KIND, SCHEME),
    )


def _convert_hub_row(part: str, number: int, row: JsonObject, keep: Keep) -> JsonObject:
    """A row of the hub as one of ours, the preferred edit first as it is there; empty for
    another dimension.
    """
    if row["dimension"] not in PARTS:
        raise ValueError(f"unknown dimension {row['dimension']!r}")
    if row["dimension"] != part:
        return {}
    first, second = row["output_images"]
    return {
        "id": str(number),
        "texts": {"instruction": row["instruction"]},
        "images": {"source": keep(row["input_image"])},
        "candidates": [
            {"images": {"output": keep(stored)}} for stored in (first, second)
        ],
        "vote": FIRST,
        "group": row["instruction"],
        "tags": [row["task_type"]],
    }


def _alternate_preferred(rows: Sequence[JsonObject]) -> list[JsonObject]:
    """The rows of the dimension, the preferred edit first and second by turns: who always names the
    first has one half.
    """
    pairs = []
    for number, row in enumerate(filter(None, rows)):
        pair = row
        if number % 2:
            pair = {
                **row,
                "candidates": row["candidates"][::-1],
                "vote": SECOND,
            }
        pairs.append(pair)
    return pairs


_FOLDER = DataFolder(NAME, PARTS, read, ADVICE)
_HUB = {
    part: HubRows(
        DATASET,
        "",
        SPLIT,
        partial(_convert_hub_row, part),
        _alternate_preferred,
    )
    for part in PARTS
}


BENCHMARK = hub_benchmark(
    _FOLDER,
    _HUB,
    ByVotes(SCHEME),
    kind=KIND,
    title="EditReward-Bench-EditScore",
    source=f"Luo et al., EditScore (2025), arXiv 2509.23909; {DATASET} on the Hugging Face Hub",
    licence="Apache-2.0 (Hugging Face card)",
)
