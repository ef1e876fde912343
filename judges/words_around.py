"""Words around an answer, from lists by language: those that may lead in to it, and those that say that it is none.

Words are asked only whether they are in a list: they decide whether an answer is read, never what it is.
"""

from __future__ import annotations

import re
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
_NO_WORD = re.compile(r"(?:[^\w']|_)+")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True)
class _LeadIns:
    """Words of one language that may stand before an answer."""

    #: All of them.
    allowed: re.Pattern[str]
    #: Those that name an image.
    image: re.Pattern[str]
    #: An image with its number, or the name of the one that is judged, at the end.
    heading: re.Pattern[str]
    #: Those that name a judgement.
    judgement: re.Pattern[str]
    #: Those that name an answer.
    answer: re.Pattern[str]

    def leads_in(self, text: str) -> bool:
        """Return whether words lead in to an answer; those that name an image but no judgement may say what it shows."""
        if not _PUNCTUATION.fullmatch(self.allowed.sub(" ", text)):
            return False
        sentences = [
            part for part in _SENTENCE_END.split(self.heading.sub("", text)) if not _PUNCTUATION.fullmatch(part)
        ]
        return not (sentences and self.image.search(text)) or self.judgement.search(sentences[-1]) is not None


def is_lead_in(text: str) -> bool:
    """Return whether a text is built of nothing but words of one language that may stand before an answer.

    >>> [is_lead_in(text) for text in ("**Final score of image 2:**", "Image 2:", "The image:", "An example:")]
    [True, True, False, False]
    """
    plain = _plain(text)
    return len(text) <= LONGEST_LEAD_IN and any(language.leads_in(plain) for language in _lead_ins())


def doubts(text: str, before: str = "", behind: str = "") -> bool:
    """Return whether a text around an answer says that it is none; some words do so only where they stand next to it.

    Args:
        text: all of it.
        before, behind: its lines next to the answer.

    >>> doubts("For example:"), doubts("The original is sharper."), doubts("", "The original:")
    (True, False, True)
    """
    padded = {"": _padded(text, before, behind), "next": _padded(before, behind), "before": _padded(before)}
    return any(phrase in words for kind, words in padded.items() for phrase in _doubts()[kind])


def names_answer(key: str) -> bool:
    """Return whether a key around an object says that it is an answer: `evaluation`, not `image`."""
    return is_lead_in(key) and any(language.answer.search(_plain(key)) for language in _lead_ins())


def _plain(text: str) -> str:
    return text.replace("\u2019", "'").lower()


@cache
def _lead_ins() -> tuple[_LeadIns, ...]:
    languages: dict[str, dict[str, list[str]]] = {}
    for language, kind, phrases in _lines("lead_ins.txt"):
        languages.setdefault(language, {}).setdefault(kind, []).extend(phrases)
    return tuple(
        _LeadIns(
            allowed=_any_of(["json", *chain(*kinds.values())]),
            image=_any_of(kinds["image"] + kinds.get("output", [])),
            heading=re.compile(
                rf"(?:\A|{_SENTENCE_END.pattern}){_PUNCTUATION.pattern}"
                rf"(?:{_any_of(_headings(kinds)).pattern}){_PUNCTUATION.pattern}\Z"
            ),
            judgement=_any_of(kinds["judgement"]),
            answer=_any_of(kinds["answer"] + kinds["judgement"]),
        )
        for kinds in languages.values()
    )


def _headings(kinds: Mapping[str, Sequence[str]]) -> list[str]:
    """Names of the image that is judged, and numbers of images."""
    return [*kinds.get("output", []), *(phrase for phrase in kinds["image"] if "N" in phrase)]


@cache
def _doubts() -> dict[str, list[str]]:
    """Phrases by where they count, with a space where a word begins or ends."""
    phrases: dict[str, list[str]] = {}
    for _, kind, line in _lines("doubts.txt"):
        phrases.setdefault(kind, []).extend(map(_delimited, line))
    return phrases


def _delimited(phrase: str) -> str:
    if _UNSPACED.search(phrase):
        return _padded(phrase).strip()
    return _padded(phrase.rstrip("-")).removesuffix(" " if phrase.endswith("-") else "")


def _padded(*texts: str) -> str:
    """The words of texts, each with a space before and behind it."""
    return _NO_WORD.sub(" ", f" {_plain(' '.join(texts))} ")


def _lines(name: str) -> Iterator[tuple[str, str, list[str]]]:
    """Language, kind and phrases of each line of a list."""
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        head, _, phrases = line.partition(":")
        language, _, kind = head.partition(" ")
        if not line.startswith("#"):
            yield language, kind, [phrase.strip() for phrase in phrases.split(",")]


def _any_of(phrases: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_pattern, sorted(phrases, key=len, reverse=True))))


def _pattern(phrase: str) -> str:
    literal = (
        re.escape(phrase.replace("N", "0").lower()).replace(r"\ ", r"[\s_]+").replace("0", r"[\s_#]{0,2}[0-9]{1,4}\s?")
    )
    return literal if _UNSPACED.search(phrase) else rf"(?<![^\W_]){literal}(?![^\W_])"
