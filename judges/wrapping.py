"""Remove what surrounds an answer in a reply: thinking, code fences, tags and lead-in
words.

Words are only matched against lists per language. They decide whether an answer is
read, not its value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

LONGEST_LEAD_IN = 300

_PUNCTUATION = re.compile(
    r"[\s#*_:.,!\u00a1()|=\-\u2013\u2014\u3001\u3002\uff01\uff0c\uff1a\u060c\u0964\ufeff"
    "\u2705\U0001f4ca\U0001f4dd\U0001f3af\u2b50\u2728\U0001f4cb\U0001f50d\U0001f5bc\ufe0f]*"
)
_SENTENCE_END = re.compile("[.:!\n\u3002\uff01\uff1a\u0964]")
# one line that ends in a colon, without digits, brackets and quotation marks
_ANNOUNCEMENT = re.compile(
    r"[^\d\n;{}()\[\]<>\"\u201c-\u201f\u00ab\u00bb\u300a-\u300f]{1,80}[:\uff1a]\W*"
)
_NO_WORD = re.compile(r"(?:[^\w']|_)+")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True)
class _LeadIns:
    """Words of one language that may stand before an answer."""

    allowed: re.Pattern[str]
    #: Those that name an image.
    image: re.Pattern[str]
    #: An image with its number, or the name of the one that is judged, at the end.
    heading: re.Pattern[str]
    #: Those that name a judgement.
    judgement: re.Pattern[str]
    #: Those that name a judgement, or say that one was made.
    announcement: re.Pattern[str]
    #: Those that name an answer.
    answer: re.Pattern[str]

    def leads_in(self, text: str) -> bool:
        """Return whether words lead in to an answer; those that name an image but no judgement
        may say what it shows.
        """
        if not _PUNCTUATION.fullmatch(self.allowed.sub(" ", text)):
            return False
        parts = _SENTENCE_END.split(self.heading.sub("", text))
        sentences = [part for part in parts if not _PUNCTUATION.fullmatch(part)]
        if not (sentences and self.image.search(text)):
            return True
        return self.judgement.search(sentences[-1]) is not None


def is_lead_in(text: str) -> bool:
    """Return whether a text consists only of lead-in words of one language.

    >>> [is_lead_in(text) for text in ("**Final score of image 2:**", "Image 2:", "The image:", "An example:")]
    [True, True, False, False]
    """
    plain = _plain(text)
    if len(text) > LONGEST_LEAD_IN:
        return False
    return any(language.leads_in(plain) for language in _lead_ins())


def announces(text: str) -> bool:
    """Return whether one short line says that a judgement follows, in whatever words, and raises no
    doubt of it.

    >>> [announces(text) for text in ("Evaluation of the edit follows:", "A made-up rating:", "It has 2 scores:")]
    [True, False, False]
    """
    plain = _plain(text.strip())
    names_judgement = any(
        language.announcement.search(plain) for language in _lead_ins()
    )
    if not names_judgement or not _ANNOUNCEMENT.fullmatch(plain):
        return False
    return not (is_negated(text) or doubts(text, text))


def is_negated(text: str) -> bool:
    """Return whether a text has a word such as `not`, `without`, `only` or `other`."""
    padded_text = _padded(text)
    return any(phrase in padded_text for phrase in _doubts()["announcing"])


def doubts(text: str, before: str = "", behind: str = "") -> bool:
    """Return whether the text around an answer says that it is not the answer.

    Args:
        text: all of it.
        before, behind: its lines next to the answer.

    >>> doubts("For example:"), doubts("The original is sharper."), doubts("", "The original:")
    (True, False, True)
    """
    parts = {
        "": (text, before, behind),
        "next": (before, behind),
        "before": (before,),
    }
    for kind, texts in parts.items():
        words = _padded(*texts)
        if words.strip() and any(phrase in words for phrase in _doubts()[kind]):
            return True
    return False


def names_answer(key: str) -> bool:
    """Return whether a key around an object says that it is an answer: `evaluation`, not
    `image`.
    """
    if not is_lead_in(key):
        return False
    plain = _plain(key)
    return any(language.answer.search(plain) for language in _lead_ins())


def _plain(text: str) -> str:
    return text.replace("\u2019", "'").lower()


@cache
def _lead_ins() -> tuple[_LeadIns, ...]:
    languages: dict[str, dict[str, list[str]]] = {}
    for language, kind, phrases in _lines("lead_ins.txt"):
        languages.setdefault(language, {}).setdefault(kind, []).extend(phrases)
    return tuple(map(_language_lead_ins, languages.values()))


def _language_lead_ins(kinds: Mapping[str, list[str]]) -> _LeadIns:
    output = kinds.get("output", [])
    image = kinds["image"]
    judgement = kinds["judgement"]
    # the image that is judged, and numbers of images
    headings = output + [phrase for phrase in image if "N" in phrase]
    heading = _any_of(headings).pattern
    punctuation = _PUNCTUATION.pattern
    return _LeadIns(
        allowed=_any_of(["json", *chain(*kinds.values())]),
        image=_any_of(image + output),
        heading=re.compile(
            rf"(?:\A|{_SENTENCE_END.pattern}){punctuation}(?:{heading}){punctuation}\Z"
        ),
        judgement=_any_of(judgement),
        announcement=_any_of(judgement + kinds.get("examined", [])),
        answer=_any_of(kinds["answer"] + judgement),
    )


@cache
def _doubts() -> dict[str, list[str]]:
    """Phrases by where they count, with a space where a word begins or ends."""
    phrases = defaultdict[str, list[str]](list)
    for _, kind, line in _lines("doubts.txt"):
        phrases[kind] += map(_delimited, line)
    return phrases


def _delimited(phrase: str) -> str:
    if _UNSPACED.search(phrase):
        return _padded(phrase).strip()
    padded = _padded(phrase.rstrip("-"))
    return padded.removesuffix(" ") if phrase.endswith("-") else padded


def _padded(*texts: str) -> str:
    """The words of texts, each with a space before and behind it."""
    joined = _plain(" ".join(texts))
    return _NO_WORD.sub(" ", f" {joined} ")


def _lines(name: str) -> Iterator[tuple[str, str, list[str]]]:
    """Language, kind and phrases of each line of a list."""
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        head, _, phrases = line.partition(":")
        language, _, kind = head.partition(" ")
        if not line.startswith("#"):
            yield language, kind, [phrase.strip() for phrase in phrases.split(",")]


def _any_of(phrases: Sequence[str]) -> re.Pattern[str]:
    return re.compile(
        "|".join(
            map(
                _pattern,
                sorted(
                    phrases,
                    key=len,
                    reverse=True,
                ),
            )
        )
    )


def _pattern(phrase: str) -> str:
    literal = re.escape(phrase.replace("N", "0").lower())
    literal = literal.replace(r"\ ", r"[\s_]+")
    literal = literal.replace("0", r"[\s_#]{0,2}[0-9]{1,4}\s?")
    return literal if _UNSPACED.search(phrase) else rf"(?<![^\W_]){literal}(?![^\W_])"


_LONGEST = 1000
DELIMITER = "||V^=^V||"  # of the VIEScore authors

_INVISIBLE = "\ufeff\u200b\u2060"
_TAG = r"<(?![/!])[^<>{}\n]{1,60}>|\[[A-Z][A-Z_ ]{1,30}\]|\[assistant\]"
_FENCE = r"(?:`{3,8}|~{3,8})[ \t]*[\w+-]{0,30}"
_ROLE = r"(?<![^\W_])(?:assistant|model|ai|bot)(?![^\W_])[ \t*]*:?"
_LITERAL_DELIMITER = re.escape(DELIMITER)
_OPENING = (
    rf"(?:[\s*#{_INVISIBLE}]|{_LITERAL_DELIMITER}|{_FENCE}|`|{_TAG}|{_ROLE}|\$\$)*+"
)
_CLOSED_TAG = r"</[^<>{}\n]{1,60}>|\[/[A-Z][A-Z_ ]{1,30}\]"
_TURN_END = (
    r"<eos>|<end_of_turn>|<\uff5cend\u2581of\u2581sentence\uff5c>"
    r"|<\|(?:im_end|eo[tms](?:_id)?|end\w{0,30}|return|user|endoftext)\|>"
)
_CLOSING = rf"(?:[\s`*_.{_INVISIBLE}]|~~~|\$\$|---|\u2705|{_LITERAL_DELIMITER}|{_CLOSED_TAG}|{_TURN_END})*+"
_BEGINNING = re.compile(_OPENING, re.IGNORECASE)
_BEFORE_ANSWER = re.compile(rf"{_OPENING}\Z", re.IGNORECASE)
_BEHIND_ANSWER = re.compile(_CLOSING, re.IGNORECASE)
_ENDING = re.compile(
    rf"(?:{_TURN_END}|{_CLOSED_TAG}|[\s`*_.\u3002{_INVISIBLE}])++\Z",
    re.IGNORECASE,
)
_OPEN_BRACKET = re.compile(r"(?:\[|\\boxed\{|\{)\s*\Z")
_PAIRS = (("[", "]"), ("\\boxed{", "}"), ("{", "}"))
# how each family of models ends its thinking
_THOUGHT = r"(?:[a-z]{1,9}[:_-]){0,3}(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad)"
_THINKING_END = re.compile(
    r"(^[ "
    rf"\t]{{0,99}}(?:<\|start\|>assistant)?)?(?=[<&\\\u25c1\[])(?:(?:<|&lt;|\\u003c)\s{{0,9}}\\?/\s{{0,9}}{_THOUGHT}\s{{0,9}}(?:>|&gt;|\\u003e)"
    r"|\u25c1/think\u25b7|\[/think\]|<\|end_(?:of_thought|thinking)\|>|<\|channel\|>\s{0,9}final\s{0,9}(?:<\|message\|>)?)"
    r"|assistantfinal",
    re.IGNORECASE | re.MULTILINE,
)
_THINKING_BEGIN = re.compile(
    rf"(?:<|&lt;|\\u003c)\s{{0,9}}{_THOUGHT}\s{{0,9}}(?:>|&gt;|\\u003e)|\u25c1think\u25b7|\[think\]"
    r"|<\|(?:begin_of_thought|start_thinking)\|>|<\|channel\|>\s{0,9}analysis",
    re.IGNORECASE,
)
# each mark of thinking has one of them, which are found faster than the marks
_MARK_SIGNS = (
    ">",
    "&gt;",
    "\\u003e",
    "\u25b7",
    "think]",
    "assistantfinal",
)
# what gpt-oss writes where its marks are left out
_BARE_ANALYSIS = re.compile("analysis(?=[A-Z])")
# what differs between the beginning and the end of one thinking
_SIDE = re.compile(
    r"begin_of|start|end_of|end|assistant|analysis|final|message|&[lg]t;|\\u003[ce]|[^a-z\u25c1\[]"
)


def remove_thinking(text: str) -> str:
    """Remove thinking from a reply, including an unfinished block.

    >>> [remove_thinking(text).strip() for text in ("<think>7?</think>8", "[THINK]7?[/THINK]8", "7?\\n</think>8")]
    ['8', '8', '8']
    """
    if not _may_think(text):
        return text
    answer = text[max(thinking_ends(text), default=0) :]
    return _THINKING_BEGIN.split(answer, maxsplit=1)[0]


def thinking_ends(text: str) -> list[int]:
    """Places behind each end of thinking that begins a line or whose own beginning opens the
    reply; others may be quoted.
    """
    if not _may_think(text):
        return []
    reply = text.lstrip()
    begin = _THINKING_BEGIN.match(reply) or _BARE_ANALYSIS.match(reply)
    kind = _SIDE.sub("", begin[0].lower()) if begin else None
    return [
        end.end()
        for end in _THINKING_END.finditer(text)
        if end[1] is not None or _SIDE.sub("", end[0].lower()) == kind
    ]


def thinks(text: str) -> bool:
    """Return whether a mark of thinking stands in a text."""
    marks = (_THINKING_BEGIN, _THINKING_END)
    return _may_think(text) and any(mark.search(text) for mark in marks)


def _may_think(text: str) -> bool:
    lower = text.lower()
    return any(sign in lower for sign in _MARK_SIGNS)


def is_only_thinking(text: str) -> bool:
    """Return whether a text ends before an answer begins: it is empty, or thinking without an end.

    >>> is_only_thinking("<think>First,"), is_only_thinking("<think>First,</think> 7")
    (True, False)
    """
    answer = text.strip()
    return not answer or (answer.startswith("<think>") and "</think>" not in answer)


def words_before(text: str) -> str:
    """The words before an answer, without the form.

    >>> words_before("<answer>Here it is:\\n```json\\n")
    'Here it is:'
    """
    if not text.strip():
        return ""
    text = _OPEN_BRACKET.sub("", text)
    inner = _BEFORE_ANSWER.sub("", _BEGINNING.sub("", text, count=1))
    form = text.replace(inner, " ", 1) if inner else text
    if thinks(text) or doubts("", form.replace("_", " ")):
        return text
    return inner


def is_closing(text: str) -> bool:
    """Return whether the text after an answer contains only formatting."""
    return _BEHIND_ANSWER.fullmatch(text) is not None and not thinks(text)


def remove_pair(before: str, behind: str) -> tuple[str, str]:
    """The text around an answer, without brackets that hold the answer alone.

    >>> remove_pair("```[", "]```")
    ('```', '```')
    """
    outer = before.rstrip()
    remainder = behind.lstrip()
    for opening, closing in _PAIRS:
        if outer.endswith(opening) and remainder.startswith(closing):
            return outer.removesuffix(opening), remainder.removeprefix(closing)
    return before, behind


def remove_ending(text: str) -> str:
    """A text without marks of the end of a turn, closing tags and the like.

    >>> remove_ending("[[A>B]]**<|im_end|>\\n")
    '[[A>B]]'
    """
    tail = text[-_LONGEST:]
    return text[:-_LONGEST] + _ENDING.sub("", tail)


def unwrapped(text: str) -> str:
    """A short answer without thinking and form.

    >>> unwrapped("<think>A?</think><answer>**7**</answer><|im_end|>"), unwrapped("\\\\boxed{A}")
    ('7', 'A')
    """
    answer = remove_thinking(text).strip()
    if len(answer) > _LONGEST:
        return answer
    answer = _BEGINNING.sub("", remove_ending(answer), count=1).strip("* \t\r\n")
    boxed = re.fullmatch(r"\\boxed\{([^{}]*)\}", answer)
    return boxed[1] if boxed else answer
