"""Form around an answer that says nothing of it: fences, tags, role words, marks of the end of a turn."""

from __future__ import annotations

import re

from vieval_plugin.judges.thinking import thinks, without_thinking
from vieval_plugin.judges.words_around import doubts

_LONGEST = 1000
DELIMITER = "||V^=^V||"  # of the VIEScore authors

_INVISIBLE = "\ufeff\u200b\u2060"
_TAG = r"<(?![/!])[^<>{}\n]{1,60}>|\[[A-Z][A-Z_ ]{1,30}\]|\[assistant\]"
_FENCE = r"(?:`{3,8}|~{3,8})[ \t]*[\w+-]{0,30}"
_ROLE = r"(?<![^\W_])(?:assistant|model|ai|bot)(?![^\W_])[ \t*]*:?"
_OPENING = rf"(?:[\s*#{_INVISIBLE}]|{re.escape(DELIMITER)}|{_FENCE}|`|{_TAG}|{_ROLE}|\$\$)*+"
_CLOSED_TAG = r"</[^<>{}\n]{1,60}>|\[/[A-Z][A-Z_ ]{1,30}\]"
_TURN_END = (
    r"<eos>|<end_of_turn>|<\uff5cend\u2581of\u2581sentence\uff5c>"
    r"|<\|(?:im_end|eo[tms](?:_id)?|end\w{0,30}|return|user|endoftext)\|>"
)
_CLOSING = rf"(?:[\s`*_.{_INVISIBLE}]|~~~|\$\$|---|\u2705|{re.escape(DELIMITER)}|{_CLOSED_TAG}|{_TURN_END})*+"
_BEGINNING = re.compile(_OPENING, re.IGNORECASE)
_BEFORE_ANSWER = re.compile(rf"{_OPENING}\Z", re.IGNORECASE)
_BEHIND_ANSWER = re.compile(_CLOSING, re.IGNORECASE)
_ENDING = re.compile(rf"(?:{_TURN_END}|{_CLOSED_TAG}|[\s`*_.\u3002{_INVISIBLE}])++\Z", re.IGNORECASE)
_OPEN_BRACKET = re.compile(r"(?:\[|\\boxed\{|\{)\s*\Z")
_PAIRS = (("[", "]"), ("\\boxed{", "}"), ("{", "}"))


def words_before(text: str) -> str:
    """What stands before an answer, without the form.

    >>> words_before("<answer>Here it is:\\n```json\\n")
    'Here it is:'
    """
    text = _OPEN_BRACKET.sub("", text)
    inner = _BEFORE_ANSWER.sub("", text[_BEGINNING.match(text).end() :])
    form = text.replace(inner, " ", 1) if inner else text
    return text if thinks(text) or doubts("", form.replace("_", " ")) else inner


def is_closing(text: str) -> bool:
    """Return whether what stands behind an answer is form alone."""
    return _BEHIND_ANSWER.fullmatch(text) is not None and not thinks(text)


def without_pair(before: str, behind: str) -> tuple[str, str]:
    """What stands around an answer, without brackets that hold it alone.

    >>> without_pair("```[", "]```")
    ('```', '```')
    """
    outer, rest = before.rstrip(), behind.lstrip()
    for opening, closing in _PAIRS:
        if outer.endswith(opening) and rest.startswith(closing):
            return outer.removesuffix(opening), rest.removeprefix(closing)
    return before, behind


def without_ending(text: str) -> str:
    """A text without marks of the end of a turn, closing tags and the like.

    >>> without_ending("[[A>B]]**<|im_end|>\\n")
    '[[A>B]]'
    """
    head, tail = text[:-_LONGEST], text[-_LONGEST:]
    return head + _ENDING.sub("", tail)


def unwrapped(text: str) -> str:
    """A short answer without thinking and form.

    >>> unwrapped("<think>A?</think><answer>**7**</answer><|im_end|>"), unwrapped("\\\\boxed{A}")
    ('7', 'A')
    """
    answer = without_thinking(text).strip()
    if len(answer) > _LONGEST:
        return answer
    answer = without_ending(answer)
    answer = answer[_BEGINNING.match(answer).end() :].strip("* \t\r\n")
    boxed = re.fullmatch(r"\\boxed\{([^{}]*)\}", answer)
    return boxed[1] if boxed else answer
