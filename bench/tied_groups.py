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
    by_aspect = [
        json.loads((folder / f"{aspect}.json").read_text()) for aspect in ("SC", "PQ")
    ]
    scores = {}
    for uid in by_aspect[0]:
        lists = [one.get(uid, {}).get("score") for one in by_aspect]
        if all(
            isinstance(one, list)
            and one
            and all(isinstance(n, (int, float)) for n in one)
            for one in lists
        ):
            scores[uid] = math.sqrt(math.prod(min(one) / 10 for one in lists if one))
    return scores


def distances_of(file: Path) -> dict[str, float]:
    """By uid, LPIPS to the reference, a measure without steps."""
    return {
        uid: one["LPIPS"]
        for uid, one in json.loads(file.read_text()).items()
        if "LPIPS" in one
    }


def groups(root: Path) -> Iterator[tuple[str, list[list[float]]]]:
    """Each judge, and its scores of all eight editors for each instruction that it scored whole."""
    for results in sorted(root.glob("results_*")):
        models = sorted((results / PART).glob("*"))
        tables = [
            scores_of(model) if model.is_dir() else distances_of(model)
            for model in models
        ]
        if len(tables) == SIZE:
            uids = set.intersection(*map(set, tables))
            if len(uids) < LEAST:
                continue
            yield (
                results.name.removeprefix("results_"),
                [[table[uid] for table in tables] for uid in sorted(uids)],
            )


def main() -> None:
    """Print a row a judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    print(
        "| judge | groups | all eight tie | pairs that tie | different scores in a group "
        "|\n|---|---|---|---|---|"
    )
    for judge, scored in groups(parser.parse_args().folder):
        tied = sum(len(set(own)) == 1 for own in scored) / len(scored)
        pairs = [
            first == second for own in scored for first, second in combinations(own, 2)
        ]
        different = sum(len(set(own)) for own in scored) / len(scored)
        print(
            f"| {judge} | {len(scored)} | {tied:.1%} | {sum(pairs) / len(pairs):.1%} | "
            f"{different:.1f} |"
        )


if __name__ == "__main__":
    main()
