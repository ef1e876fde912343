"""Resolution of judges: in how many groups of eight images of one prompt all have the same score, and how many pairs tie.

    python bench/tied_groups.py FOLDER

FOLDER has the recorded verdicts of VIEScore's authors on ImagenHub's text-guided edits (the folders
`results_*` of their repository), where eight editors worked on each instruction. A group whose
members all have one score gives none of them an advantage, and a pair that ties says nothing.
Images of one generator, as trainers have them, are more alike than these.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

PART = "ImagenHub_Text-Guided_IE"
SIZE = 8
LEAST = 30


def scores_of(folder: Path) -> dict[str, float]:
    """By uid, the square root of the lowest sub-scores' product, from 0 to 1; without what could
    not be read.
    """
    consistency = json.loads((folder / "SC.json").read_text())
    quality = json.loads((folder / "PQ.json").read_text())
    scores = {}
    for uid, row in consistency.items():
        sub_scores = [row.get("score"), quality.get(uid, {}).get("score")]
        if all(map(is_scored, sub_scores)):
            lowest = [min(numbers) / 10 for numbers in sub_scores]
            scores[uid] = math.sqrt(math.prod(lowest))
    return scores


def is_scored(sub_scores: object) -> bool:
    """True for a list of numbers with at least one."""
    if not isinstance(sub_scores, list) or not sub_scores:
        return False
    return all(isinstance(number, (int, float)) for number in sub_scores)


def distances_of(file: Path) -> dict[str, float]:
    """By uid, LPIPS to the reference, a measure without steps."""
    distances = {}
    for uid, metrics in json.loads(file.read_text()).items():
        if "LPIPS" in metrics:
            distances[uid] = metrics["LPIPS"]
    return distances


def groups(root: Path) -> Iterator[tuple[str, list[list[float]]]]:
    """Each judge, and its scores of all eight editors for each instruction that it scored whole."""
    for results in sorted(root.glob("results_*")):
        by_editor = []
        for model in sorted((results / PART).glob("*")):
            read = scores_of if model.is_dir() else distances_of
            by_editor.append(read(model))
        if len(by_editor) != SIZE:
            continue
        uids = set.intersection(*map(set, by_editor))
        if len(uids) < LEAST:
            continue
        judge = results.name.removeprefix("results_")
        scored = []
        for uid in sorted(uids):
            scored.append([by_uid[uid] for by_uid in by_editor])
        yield judge, scored


def main() -> None:
    """Print a row a judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    print(
        "| judge | groups | all eight tie | pairs that tie | different scores in a "
        "group |\n|---|---|---|---|---|"
    )
    for judge, scored in groups(options.folder):
        different = [len(set(scores)) for scores in scored]
        tied = different.count(1) / len(scored)
        pairs = []
        for scores in scored:
            pairs += [first == second for first, second in combinations(scores, 2)]
        print(
            f"| {judge} | {len(scored)} | {tied:.1%} | {sum(pairs) / len(pairs):.1%} | "
            f"{sum(different) / len(scored):.1f} |"
        )


if __name__ == "__main__":
    main()
