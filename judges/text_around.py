"""Answers with text around them, which count only where a second reply says the same.

Form decides first: an answer begins a line or follows a colon or full stop, it is not quoted, and beside it stands no other
object, no list of numbers and no digit beside a slash. Then no word around it may say that it is none (`doubts.txt`).
"""

from __future__ import annotations

import re

from vieval_plugin.judges.parsing import decoded
from vieval_plugin.judges.thinking import without_thinking
from vieval_plugin.judges.words_around import doubts
from vieval_plugin.judges.wrapping import unwrapped, without_pair

_OBJECT = re.compile(r"\{(?!\s*\{)")
_OTHER_ANSWER = re.compile(r"[{}]|\[\[|\[[^\]\n]*\d[^\]\n]*\]|\d\s*/\s*\d")
_FORM = r"(?:[-*#\u2022\u2705_ \t]|`{1,8}[ \t]*\w{0,20}\s|~{3,8}[ \t]*\w{0,20}\s|<[^<>\n]{1,60}>|\[[A-Z_ ]{2,30}\]|json\b|\$\$)*+"
_BEGINS_LINE = re.compile(rf"(?:\A|[\n:\uff1a.\u3002!\uff01\u0964]){_FORM}\s*\Z", re.IGNORECASE)
_QUOTED = re.compile(r"(?:\A|\n)[ \t]*(?:>|\||//)[^\n]*\Z|<!--|~~(?!~)|[\"'\u201c\u2018\u00ab\u300c\u2039(,\t][ ]*\Z")
_GOES_ON = re.compile(r"[ \t]*[^\s\w`<*\[\]|.~\u2705$]|\.?[ \t]+[a-z]|[ \t]*[<\[](?![/|])")
_MARKS = re.compile(r"`{3,8}[ \t]*\w*|~{3,8}[ \t]*\w*|[*#_]")
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f\u0964])\s*")
_CLAUSE = re.compile(r"[,.;:!\n\u2013\u2014\uff0c\u3002\uff1a\uff01\u3001\u060c\u0964]")
_LONGEST = 20_000


def answers_inside(text: str, images: int = 1) -> dict[str, str]:
    """The answer of a reply by its form, without the text around it; empty where there is none.

    Args:
        text: the reply as it came.
        images: number of images that were shown, the last of which is judged.

    >>> answers_inside('The hand is warped.\\n{"score": [7], "reasoning": "a hand"}\\nAnything else?')
    {'object': '{"score": [7], "reasoning": "a hand"}'}
    >>> answers_inside("Yes, there is a dog.")
    {'last line': 'Yes, there is a dog.', 'first clause': 'Yes'}
    """
    body = without_thinking(text)[:_LONGEST]
    first = _OBJECT.search(body)
    if first is None:
        return _short_answers(body)
    try:
        _, end, _ = decoded(body, first.start())
    except ValueError:
        return {}
    before, behind = without_pair(body[: first.start()], body[end:])
    inside = body[first.start() : end]
    return {} if _tells_otherwise(before, behind, images) else {"object": inside}


def names_other_image(text: str, images: int) -> bool:
    """Return whether the line before an object has the number of an image that is not judged.

    >>> names_other_image('Image 1: {"score": [9]}', 2), names_other_image('Image 2: {"score": [9]}', 2)
    (True, False)
    """
    body = without_thinking(text)
    first = _OBJECT.search(body)
    numbers = re.findall(r"\d{1,3}", _line_before(body[: first.start()])) if first and images > 1 else []
    return any(1 <= int(number) < images for number in numbers)


def _tells_otherwise(before: str, behind: str, images: int) -> bool:
    """Return whether the text around an object may mean another answer, or none."""
    around = f"{before}\n{behind}"
    if _OTHER_ANSWER.search(around) or _QUOTED.search(before) or not _BEGINS_LINE.search(before):
        return True
    if _GOES_ON.match(behind) or names_other_image(f"{before}{{", images):
        return True
    first_line = next(filter(str.strip, behind.splitlines()), "")
    return doubts(around, _line_before(before), _MARKS.sub(" ", first_line))


def _line_before(before: str) -> str:
    """The sentence that stands directly before an object, or the heading."""
    lines = [line for line in _MARKS.sub(" ", before).splitlines() if line.strip()]
    sentences = _SENTENCE.split(lines[-1].strip()) if lines else []
    return next(filter(None, reversed(sentences)), "")


def _short_answers(body: str) -> dict[str, str]:
    """The last line of a reply without an object and the words before its first comma or stop."""
    lines = body.strip().splitlines() or [""]
    answers = {"last line": unwrapped(lines[-1]), "first clause": unwrapped(_CLAUSE.split(body.strip(), maxsplit=1)[0])}
    return {} if _OTHER_ANSWER.search(body) or doubts(body) else answers
