"""Square pairs: which of two squares is the redder, as three drawn people voted. Nothing to
prepare.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from vieval_example import squares
from vieval_plugin.benchmarks.benchmark import Benchmark, known_part
from vieval_plugin.judges.contests import FIRST, SECOND, Contest, Votes
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.meta_evaluation.votes import ByVotes

NAME, PARTS = "square_pairs", {"red": 28}


def load(root: Path, part: str) -> list[Contest]:
    """Every square against every other; one of the three people never looks."""
    known_part(NAME, PARTS, part)
    found = []
    for number, pair in enumerate(combinations(squares.load(root, part), 2)):
        first, second = pair if number % 2 else pair[::-1]
        right = FIRST if first.ratings["SC"] > second.ratings["SC"] else SECOND
        votes = Votes("two_way", right, (right, right, FIRST))
        found.append(
            Contest(SampleId(NAME, part, "", f"pair_{number}"), (first, second), votes)
        )
    return found


BENCHMARK = Benchmark(
    name=NAME,
    parts=PARTS,
    load=load,
    missing=lambda root, part: [],
    report=ByVotes("two_way"),
    source="drawn by this package",
    licence="Apache-2.0",
    trainable=True,
    note="Synthetic: pairs of squares. Nobody voted.",
)
