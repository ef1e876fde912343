"""Groups of images of one prompt: each against each, and the share of wins of every member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from vieval_plugin.api.verdicts import preference
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import Sample, SampleId, Verdict
from vieval_plugin.records import OWN


def pairs(samples: Sequence[Sample]) -> Iterator[Contest]:
    """The contests of each member of a group with each other, in the order of `itertools.combinations`."""
    for first, second in combinations(range(len(samples)), 2):
        identity = SampleId(OWN, samples[first].kind, "", f"{first}-{second}")
        yield Contest(identity, (samples[first], samples[second]))


def win_shares(number: int, verdicts: Sequence[Verdict]) -> list[tuple[float | None, tuple[Verdict, ...]]]:
    """The share of wins of each member of a group, in [0, 1], and the verdicts on its contests.

    Each opponent counts once, a tie as half a win, and both orders of a contest alike. A member of which a contest
    failed has no share, as one over fewer opponents would be another measure than the others'.

    Args:
        number: the members.
        verdicts: on the contests of `pairs`.

    >>> from vieval_plugin.judges.protocol import Choice, Status
    >>> first = Verdict({}, Status.OK, choice=Choice({"forward": "first", "reverse": "first"}))
    >>> even = Verdict({}, Status.OK, choice=Choice({"forward": "first", "reverse": "second"}))
    >>> [share for share, _ in win_shares(3, [first, first, even])]
    [1.0, 0.25, 0.25]
    """
    wins: list[list[float]] = [[] for _ in range(number)]
    involved: list[list[Verdict]] = [[] for _ in range(number)]
    for (first, second), verdict in zip(combinations(range(number), 2), verdicts, strict=True):
        involved[first].append(verdict)
        involved[second].append(verdict)
        if verdict.status.usable:
            share = (preference(verdict, "") + 1) / 2
            wins[first].append(share)
            wins[second].append(1 - share)
    return [
        (sum(won) / len(won) if won and len(won) == number - 1 else None, tuple(found))
        for won, found in zip(wins, involved, strict=True)
    ]
