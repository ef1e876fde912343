"""Reader of answers in lines such as `Alignment Score (1-5): 4`, in which judges that were tuned to
such a form answer, whatever they are asked for.

Source of the form: the public model cards of UnifiedReward and of ImgEdit's judge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from vieval_plugin.judges.parsing import REFUSAL_INSIDE, Read
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.refusals import declines
from vieval_plugin.judges.wrapping import remove_ending, remove_thinking

_MARKS = r"[\s*_#>`\-\u2022]*"
_RANGE = r"(?:[(\[][^()\[\]\n]{0,40}[)\]])?"
_NUMBER = r"(?P<number>[+-]?\d{1,4}(?:\.\d{1,6})?)(?:\s*/\s*(?P<of>\d{1,4}))?"


def parse_labelled_lines(
    text: str, labels: Sequence[str], low: float, high: float
) -> Read[tuple[float, ...]]:
    """Read the number behind each label.

    Args:
        text: the reply as it came.
        labels: each begins a line of its own, once, in this order, and stands nowhere else.
        low, high: ends of the range of each number.

    Returns:
        `OK` with the numbers in the order of the labels, and what else was said as the reason; else
        `PARSE_FAILURE`.

    >>> parse_labelled_lines("A clean edit.\\nFidelity (1-5): 4\\n**Quality:** 3/5", ["Fidelity", "Quality"], 1, 5).scores
    (4.0, 3.0)
    >>> parse_labelled_lines("Fidelity: 4 or 5", ["Fidelity"], 1, 5).reason
    'the line of "Fidelity" is not its label and one number from 1 to 5'
    """
    said = remove_ending(remove_thinking(text))
    lines = said.splitlines()
    places, scores = list[int](), list[float]()
    for label in labels:
        if mentions(said, label) != 1:
            return _unread(f'"{label}" does not stand there once')
        place = next(n for n, line in enumerate(lines) if mentions(line, label))
        score = _number(lines[place], label, low, high)
        if score is None:
            whole = f"its label and one number from {low:g} to {high:g}"
            return _unread(f'the line of "{label}" is not {whole}')
        places.append(place)
        scores.append(score)
    if places != sorted(set(places)):
        return _unread("the labels do not stand in their order")
    reason = "\n".join(line for n, line in enumerate(lines) if n not in places).strip()
    finding = REFUSAL_INSIDE if declines(reason) else ""
    return Read(Status.OK, tuple(scores), tuple(scores), reason, finding)


def _unread(reason: str) -> Read[tuple[float, ...]]:
    return Read(Status.PARSE_FAILURE, reason=reason)


def mentions(text: str, label: str) -> int:
    """How often a label stands in a text as words, in whatever case.

    >>> mentions("Final score: 4 of the Score", "score"), mentions("Scores", "score")
    (2, 0)
    """
    pattern = r"\s+".join(map(re.escape, label.split()))
    return len(re.findall(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE))


def _number(line: str, label: str, low: float, high: float) -> float | None:
    """The number of a line that is a label and one number in range; None for any other."""
    name = r"\s+".join(map(re.escape, label.split()))
    match = re.fullmatch(
        rf"{_MARKS}{name}{_MARKS}{_RANGE}{_MARKS}[:\uff1a][\s*_`]*{_NUMBER}[\s*_.`]*",
        line,
        re.IGNORECASE,
    )
    if match is None or (match["of"] and float(match["of"]) != high):
        return None
    number = float(match["number"])
    return number if low <= number <= high else None
