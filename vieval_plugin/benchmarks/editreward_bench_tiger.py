"""EditReward-Bench of TIGER-Lab: two, three or four edits of one image, ranked by people.

Source: Wu et al., EditReward (2025), in the hub's `TIGER-Lab/EditReward-Bench`, which has a row for
each two edits of a group. It is another benchmark than that of Luo et al. with the same name
(`editscore_bench`). A group is right only if all its pairs are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise, permutations
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import printed_numbers
from vieval_plugin.benchmarks.loading.contest_hub import HubRows, Keep, hub_benchmark
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.judges.contests import RANKING, Contest
from vieval_plugin.meta_evaluation.tables import Printed
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.readers.contest_rows import CONTESTS, ContestRows, read_contests
from vieval_plugin.readers.rows import read_lines
from vieval_plugin.text.wording import plural
from vieval_plugin.text.yaml_json import JsonObject

NAME = "editreward_bench_tiger"
PART = "all"
KIND = "tie"
DATASET = "TIGER-Lab/EditReward-Bench"
SPLIT = "train"
ADVICE = f"run `vieval prepare {NAME}`"

_LETTERS = "ABCD"


def read(folder: Path, part: str) -> list[Contest]:
    """The groups, from `all/contests.jsonl`."""
    home = folder / part
    contests = read_lines(home / CONTESTS, ADVICE)
    return read_contests(
        contests,
        home,
        ContestRows(NAME, part, KIND, RANKING),
    )


def _comparison(_number: int, row: JsonObject, keep: Keep) -> JsonObject:
    """A row of the hub: the edits of a group that it shows, by letter, and which of them people
    put before which.
    """
    group = str(row["id"])
    compared = row.get("comparison_type")
    first_letter = str(row.get("dataset", ""))[:1]
    size = row.get("num_candidates") or int(first_letter or len(_LETTERS))
    numbers = [
        k for k in range(1, len(_LETTERS) + 1) if row.get(f"candidate_{k}") is not None
    ]
    letters = list(_LETTERS[: len(numbers)])
    if compared:
        letters = compared.split("vs")
    if len(letters) != len(numbers) or not set(letters) <= set(_LETTERS):
        raise ValueError(
            f"comparison_type {compared!r} does not match {len(numbers)} candidates"
        )
    if compared and size > 2:
        # of three and four, the rows of a group have its name before their own
        group = group.split("_")[0]
    return {
        "id": f"{size}-{group}",
        "size": size if compared else len(numbers),
        "instruction": row["instruction"],
        "source": keep(row["source_image"]),
        "candidates": {
            letter: {
                "image_model": row.get(f"model_{k}"),
                "images": {"output": keep(row[f"candidate_{k}"])},
            }
            for letter, k in zip(letters, numbers, strict=True)
        },
        "ranks": _ranks(row["ranking"], letters),
    }


def _ranks(ranking: str, letters: Sequence[str]) -> dict[str, int]:
    """The rank of each letter, such as in `B>A=C` or `A=B=Good`, from 0; ties share one."""
    ranks = {}
    rank = 0
    for sign, name in re.findall(r"(^|[>=])\s*([^>=\s]+)", str(ranking).strip()):
        rank += sign == ">"
        if name not in ("Good", "Bad"):
            ranks[name] = rank
    if sorted(ranks) != sorted(letters):
        raise ValueError(
            f"the ranking must contain {', '.join(letters)}, got {ranking!r}"
        )
    return ranks


def _groups(pairs: Sequence[JsonObject]) -> list[JsonObject]:
    """A contest a group, in the order of their first rows."""
    groups: dict[str, list[JsonObject]] = {}
    for pair in pairs:
        groups.setdefault(pair["id"], []).append(pair)
    contests = []
    for name, rows in groups.items():
        candidates = {
            letter: candidate
            for row in rows
            for letter, candidate in row["candidates"].items()
        }
        letters = sorted(candidates)
        first_row = rows[0]
        size = first_row["size"]
        if len(letters) != size:
            raise ValueError(
                f"group {name} must have {size} candidates, got {len(letters)}"
            )
        if len(rows) > math.comb(size, 2):
            raise ValueError(
                f"group {name} must have at most {plural(math.comb(size, 2), 'row')}, "
                f"got {len(rows)}"
            )
        contests.append(
            {
                "id": name,
                "texts": {"instruction": first_row["instruction"]},
                "images": {"source": first_row["source"]},
                "candidates": [candidates[letter] for letter in letters],
                "vote": _ranking(letters, [row["ranks"] for row in rows]),
            }
        )
    return contests


def _ranking(letters: Sequence[str], ranks_by_row: Sequence[Mapping[str, int]]) -> str:
    """The ranking that says the same of each two as people did; empty where none does, or where
    two were not compared.
    """
    preferred = {}
    for ranks in ranks_by_row:
        for a, b in permutations(ranks, 2):
            # a lower rank is preferred
            preferred[a, b] = _sign(ranks[b] - ranks[a])
    wins = {a: sum(preferred.get((a, b), 0) > 0 for b in letters) for a in letters}
    for a, b in combinations(letters, 2):
        if preferred.get((a, b)) != _sign(wins[a] - wins[b]):
            return ""
    ordered = sorted(letters, key=lambda letter: -wins[letter])
    ranking = str(letters.index(ordered[0]) + 1)
    for a, b in pairwise(ordered):
        sign = "=" if wins[a] == wins[b] else ">"
        ranking += f"{sign}{letters.index(b) + 1}"
    return ranking


def _sign(difference: int) -> int:
    return (difference > 0) - (difference < 0)


_FOLDER = DataFolder(NAME, {PART: 484}, read, ADVICE)
_HUB = {
    PART: HubRows(
        DATASET,
        "",
        SPLIT,
        _comparison,
        _groups,
    )
}


_PRINTED = Printed(
    PART,
    ("2 candidates", "3 candidates", "4 candidates", "overall"),
    printed_numbers(
        """
        random: 25.81 11.33 1.35 13.84
        GPT-4o: 45.69 27.33 7.31 28.31
        GPT-5: 57.53 38.51 12.84 37.81
        Gemini-2.0-Flash: 52.43 33.33 13.51 33.47
        Gemini-2.5-Flash: 58.61 39.86 12.16 38.02
        Qwen2.5-VL-3B-Instruct: 51.07 20.27 2.71 26.86
        Qwen2.5-VL-7B-Instruct: 52.69 24.67 3.38 29.75
        Qwen2.5-VL-32B-Instruct: 50.54 25.27 4.05 28.72
        MiMo-VL-7B-SFT-2508: 49.46 30.41 9.46 31.19
        EditReward (Qwen2.5-VL-7B): 56.99 36.00 10.81 36.78
        EditReward (MiMo-VL-7B): 56.45 42.67 11.49 38.42
        """
    ),
    "README of github.com/TIGER-AI-Lab/EditReward: % of groups in which all pairs are "
    "ranked correctly; judges that vote were asked about each pair, and for judges "
    "that score, the threshold for a tie between two candidates was chosen on the "
    "test set",
)

BENCHMARK = hub_benchmark(
    _FOLDER,
    _HUB,
    ByVotes(RANKING),
    kind=KIND,
    title="EditReward-Bench-TIGER",
    source=f"Wu et al., EditReward (2025), arXiv 2509.26346; {DATASET} on the Hugging Face Hub",
    licence="Apache-2.0 (Hugging Face card)",
    printed=(_PRINTED,),
)
