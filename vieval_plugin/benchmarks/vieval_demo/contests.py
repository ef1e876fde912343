"""The drawn images of vieval_demo, and vieval_demo_contests: these two by two, with
synthetic votes.

The votes follow from the known defects, so that every way to judge contests can be tried without
downloads. They say nothing about any image model.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import combinations
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark, known_part
from vieval_plugin.benchmarks.vieval_demo.plan import INSTRUCTIONS, LICENCE, TASKS
from vieval_plugin.judges.contests import (
    BOTH_BAD,
    BOTH_GOOD,
    FIRST,
    SECOND,
    Contest,
    Votes,
)
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.meta_evaluation.votes import ByVotes

NAME = "vieval_demo_contests"
_GOOD = 0.5  # two outputs rated alike are both good from here on, and else both bad


def load(root: Path, part: str) -> list[Sample]:
    """The samples of a part (see `outputs.samples`), drawn once a process; `root` is not used."""
    return list(_samples_of(part))


@cache
def _samples_of(part: str) -> tuple[Sample, ...]:
    from vieval_plugin.benchmarks.vieval_demo.outputs import (
        samples,
    )  # needs Pillow, SciPy and scikit-image

    return tuple(samples(part))


@cache
def contests(part: str) -> tuple[Contest, ...]:
    """The 48 contests of a part: the outputs of three image models two by two, for 16 instructions.

    Args:
        part: one of the seven codes in `TASKS`.

    Returns:
        Contests with a four-way vote: for the output whose overall rating is higher, and where they
        are rated alike that both are good (from 0.5 on) or bad. The better output comes first about
        as often as second, drawn by a fixed seed.

    Raises:
        VievalError: there is no such part, or scikit-image (for its photographs) is not installed.
    """
    known_part(NAME, TASKS, part)
    by_uid: dict[str, list[Sample]] = {}
    for sample in _samples_of(part):
        by_uid.setdefault(sample.id.uid, []).append(sample)
    pairs = [
        (uid, pair)
        for uid, outputs in by_uid.items()
        for pair in combinations(outputs, 2)
    ]
    turns = [turn % 2 for turn in range(len(pairs))]
    random.Random(f"{NAME}/{part}").shuffle(turns)
    pairs_drawn = []
    for (uid, pair), turn in zip(pairs, turns, strict=True):
        better, worse = sorted(pair, key=_rated, reverse=True)
        first, second = (better, worse) if turn else (worse, better)
        name = f"{uid}#{pair[0].id.image_model}-{pair[1].id.image_model}"
        if _rated(better) == _rated(worse):
            vote = BOTH_GOOD if _rated(better) >= _GOOD else BOTH_BAD
        else:
            vote = FIRST if better is first else SECOND
        sample_id = SampleId(
            NAME,
            part,
            "",
            name,
        )
        votes = Votes("four_way", vote)
        pairs_drawn.append(
            Contest(
                sample_id,
                (first, second),
                votes,
                group=uid,
            )
        )
    return tuple(pairs_drawn)


def _rated(sample: Sample) -> float:
    return sample.ratings["O"][0]


CONTESTS = Benchmark(
    NAME,
    dict.fromkeys(TASKS, INSTRUCTIONS * 3),
    lambda root, part: list(contests(part)),
    lambda root, part: [],
    ByVotes("four_way"),
    source="drawn by VIEval",
    licence=LICENCE,
    trainable=True,
    synthetic=True,
    note=(
        "Synthetic: images drawn by VIEval with known defects, and votes derived from them. "
        "These are not human votes."
    ),
)
