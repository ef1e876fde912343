"""Thinking in a reply: where it ends, by the marks of each family of models."""

from __future__ import annotations

import re

# how each family of models ends its thinking
_THOUGHT = r"(?:[a-z]{1,9}[:_-]){0,3}(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad)"
_THINKING_END = re.compile(
    rf"(^[ \t]{{0,99}})?(?=[<&\\\u25c1\[])(?:(?:<|&lt;|\\u003c)\s{{0,9}}\\?/\s{{0,9}}{_THOUGHT}\s{{0,9}}(?:>|&gt;|\\u003e)"
    r"|\u25c1/think\u25b7|\[/think\]|<\|end_(?:of_thought|thinking)\|>|<\|channel\|>\s{0,9}final\s{0,9}(?:<\|message\|>)?)"
    r"|assistantfinal",
    re.IGNORECASE | re.MULTILINE,
)
_THINKING_BEGIN = re.compile(
    rf"(?:<|&lt;|\\u003c)\s{{0,9}}{_THOUGHT}\s{{0,9}}(?:>|&gt;|\\u003e)|\u25c1think\u25b7|\[think\]"
    r"|<\|(?:begin_of_thought|start_thinking)\|>|<\|channel\|>\s{0,9}analysis",
    re.IGNORECASE,
)
# what gpt-oss writes where its marks are left out
_BARE_ANALYSIS = re.compile("analysis(?=[A-Z])")
# what differs between the beginning and the end of one thinking
_SIDE = re.compile(r"begin_of|start|end_of|end|assistant|analysis|final|message|&[lg]t;|\\u003[ce]|[^a-z\u25c1\[]")


def without_thinking(text: str) -> str:
    """A reply less its thinking: what stands behind the last end of any, up to where one begins that has no end.

    >>> [without_thinking(text).strip() for text in ("<think>7?</think>8", "[THINK]7?[/THINK]8", "7?\\n</think>8")]
    ['8', '8', '8']
    """
    return _THINKING_BEGIN.split(text[max(thinking_ends(text), default=0) :], maxsplit=1)[0]


def thinking_ends(text: str) -> list[int]:
    """Places behind each end of thinking that begins a line or whose own beginning opens the reply; others may be quoted."""
    reply = text.lstrip()
    begin = _THINKING_BEGIN.match(reply) or _BARE_ANALYSIS.match(reply)
    kind = _SIDE.sub("", begin[0].lower()) if begin else None
    return [
        end.end() for end in _THINKING_END.finditer(text) if end[1] is not None or _SIDE.sub("", end[0].lower()) == kind
    ]


def thinks(text: str) -> bool:
    """Return whether a mark of thinking stands in a text."""
    return _THINKING_BEGIN.search(text) is not None or _THINKING_END.search(text) is not None


def is_only_thinking(text: str) -> bool:
    """Return whether a text ends before an answer begins: it is empty, or thinking without an end.

    >>> is_only_thinking("<think>First,"), is_only_thinking("<think>First,</think> 7")
    (True, False)
    """
    words = text.strip()
    return not words or (words.startswith("<think>") and "</think>" not in words)
