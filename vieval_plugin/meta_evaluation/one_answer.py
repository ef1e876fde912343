"""Judges that give nearly always the same answer, so that their number says nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from vieval_plugin.judges.contests import FIRST, FORWARD, REVERSE, SECOND
from vieval_plugin.records import Record

#: The share of answers from which the same answer decides a judge's number, and how few answers say
#: nothing of it.
SHARE, LEAST_ANSWERS = 0.95, 20

_IMAGE_OF = {
    (FORWARD, FIRST): "the first image shown",
    (FORWARD, SECOND): "the second image shown",
    (REVERSE, FIRST): "the second image shown",
    (REVERSE, SECOND): "the first image shown",
}


def one_answer(records: Sequence[Record], aspect: str) -> str:
    """Say that a judge answers alike, in words; empty where it does not.

    A vote counts by the place at which its candidate was shown, and a score to two decimals.

    Args:
        records: those of one judge, samples or contests.
        aspect: the aspect whose scores are looked at; a judge's own votes have none.

    Returns:
        How often it gave the answer that it gives at least 95 times of 100, of 20 answers or more.

    >>> one_answer([], "SC")
    ''
    """
    answers = Counter(
        answer for record in records for answer in _answers(record, aspect)
    )
    for answer, times in answers.most_common(1):
        if answers.total() >= LEAST_ANSWERS and times >= SHARE * answers.total():
            return f"{times} of {answers.total()} answers are {answer}, so its number says little"
    return ""


def _answers(record: Record, aspect: str) -> Iterator[str]:
    choice = record.verdict.choice
    for order in (FORWARD, REVERSE):
        if choice and (vote := choice.votes.get(order)):
            yield _IMAGE_OF.get((order, vote), vote.replace("_", " "))
    if choice is None and aspect in record.verdict.scores:
        yield f"{record.verdict.scores[aspect]:.2f}"
