"""Scores said in prose: read only where each sub-score is named once, with exactly one number, and nothing is hedged.

A number that is read wrongly does more harm than one that is not read. So any other digit in the text, any doubt, and any
name that can be meant either way ("artifacts 0" where 10 means none) leave all of it unread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from vieval_plugin.judges import hedged_answers

HEDGED = "scores in prose: hedged"
UNMATCHED = "scores in prose: not one number in range for each name"
EITHER_WAY = "scores in prose: a name that can be meant either way"

# what is longer than this is no answer to a question for a few numbers
_LONGEST = 4000
# a low score beside "no artifacts" was given on the scale turned round
_LOW = 0.5

# A number that stands alone, and what it is out of. A sign, a decimal comma or a unit keep it from being one.
_NUMBER = (
    r"(?<![\w.,+/#$\u20ac\u00a3-])([0-9]{1,3}(?:\.[0-9]{1,6})?)(?:\s*(?:/|out of)\s*([0-9]{1,3}))?(?![\w%])(?!\.[0-9])"
)
# how a name leads to its number, and a number to its name
_TO_NUMBER = (
    r"(?:\s+(?:score|rating))?(?:\s*[:=|]\s*|\s+[-\u2013\u2014]\s+|\s+(?:is|of|gets|scores|receives)\s+|\s*\(\s*)"
    r"(?:an?\s+)?(?:score\s+of\s+)?"
)
_TO_NAME = r"(?:\s+points?)?\s+(?:for|on|in)\s+(?:the\s+|its\s+)?"
# what may come before a name, and before a number
_BEFORE_NAME = re.compile(r"(?:^|[\n.,;:!|(\[{\u2013\u2014-]|\b(?:and|the|its|with|for|give|rate|scores?|overall))\s*$")
_BEFORE_NUMBER = re.compile(
    r"(?:^|[\n,;:!|(=\u2013\u2014-]|\b(?:and|of|an?|it|image|picture|photo|give|rate|score|deserves|gets|receives))\s*$"
)
_LOOKED_BACK = 20
# what may come after a number that is meant as it stands
_END = (
    r"(?=\s*(?:$|[;)(\]}|\n]|[.,](?![0-9])|[-\u2013\u2014]\s"
    r"|(?:and(?!\s+an?\b)|but|because|since|as|due|while|with|points?)\b))"
)
# One score alone begins a line or a sentence and ends it: "Score: 7.", not "a board with a score of 7 and a clock".
_START = r"(?:^|\n|[.!?]\s)\s*(?:(?:my|the|an?|final|overall)\s+){0,3}"
_LINE_END = r"(?=[\s.!)]*(?:$|\n))"
# a bare space leads from a name to its number only where the pairs are separated: not in "naturalness 10 cleanness 0"
_SEPARATED = r"(?=\s*(?:$|[,;\n]|\.(?![0-9])|and\b))"

_TAG = re.compile(r"</?[a-z|][^<>0-9]{0,30}>")
_LIST_MARK = re.compile(r"^[ \t]*[0-9]{1,2}[.)][ \t]+(?=\D)", re.MULTILINE)
_DECORATION = re.compile(r"[*`\"\u201c\u201d]|(?<!\w)'|'(?!\w)")


def scores_in_prose(text: str, names: Sequence[str], high: float) -> tuple[tuple[float, ...], str]:
    """The score that a text says of each name, or in fixed words why the numbers that it attaches to names are not read.

    Args:
        text: a reply without its thinking.
        names: what the sub-scores are called, in order; `score 1`, `score 2`, ... and, of one alone, `score` do as well.
        high: the end of the scale from 0, and the only denominator accepted.

    >>> scores_in_prose("A score of 7 for naturalness and 6 for cleanness.", ["naturalness", "cleanness"], 10)
    ((7.0, 6.0), '')
    >>> scores_in_prose("naturalness 10 artifacts 0", ["naturalness", "cleanness"], 10)
    ((), 'scores in prose: a name that can be meant either way')
    """
    if not names or not text.strip() or len(text) > _LONGEST:
        return (), ""
    plain = re.sub(rf"\(\s*0\s*(?:-|\u2013|to)\s*{high:g}\s*\)", " ", _plain(text))
    numbered = [f"score {place}" for place in range(1, len(names) + 1)]
    alone = [["score"]] if len(names) == 1 else []
    ways = [(labels, *_paired(plain, labels, high)) for labels in (names, numbered, *alone)]
    # a name may hold a digit, or a word that casts doubt elsewhere
    rest = _without(plain, [*names, *numbered])
    turned = hedged_answers.TURNED_ROUND.search(rest)
    if not turned and not any(tried for _, _, tried in ways):
        return (), ""
    if turned or hedged_answers.NUMBER_OF_FAULTS.search(rest) or any(map(hedged_answers.is_fault, names)):
        return (), EITHER_WAY
    if hedged_answers.casts_doubt(rest):
        return (), HEDGED
    clear = [(labels, scores) for labels, scores, _ in ways if scores]
    # numbers of scores and their names beside each other may be in two orders
    mixed = len(names) > 1 and clear and clear[0][0] is numbered and any(_matches(_label(n), plain) for n in names)
    if len(clear) != 1 or mixed:
        return (), UNMATCHED
    [(labels, scores)] = clear
    low = [name for name, score in zip(labels, scores, strict=True) if score < _LOW * high]
    faultless = [
        sentence for sentence in hedged_answers.SENTENCE_END.split(plain) if hedged_answers.FAULTLESS.search(sentence)
    ]
    contradicted = any(re.search(_label(name), sentence) for sentence in faultless for name in low)
    return ((), EITHER_WAY) if contradicted else (scores, "")


def _plain(text: str) -> str:
    """Lower case, less tags, Markdown, quotes and the numbers of a list."""
    lowered = _TAG.sub(" ", text.lower().replace("\u2019", "'"))
    return _LIST_MARK.sub("", _DECORATION.sub(" ", lowered))


def _label(name: str) -> str:
    """A pattern for a name, however its words are joined."""
    words = re.findall(r"[^\W\d_]+|[0-9]+|[^\w\s-]+", name.lower())
    return r"(?<![a-z0-9])(?<![a-z]-)" + r"[\s_#-]*".join(map(re.escape, words)) + r"(?![a-z0-9]|\.[0-9])"


def _without(plain: str, names: Sequence[str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        plain = re.sub(_label(name), f" {hedged_answers.NAME} ", plain)
    return plain


def _paired(plain: str, labels: Sequence[str], high: float) -> tuple[tuple[float, ...], bool]:
    """The number of each label where that is beyond doubt, and whether the text tries to give any.

    Beyond doubt are numbers all before their labels or all behind, and no other digit in the text.
    """
    behind, before = ([find(name, len(labels) == 1, plain) for name in labels] for find in (_behind, _before))
    near = any(re.search(_label(name) + r"[^\w\n.;]*(?:\w+[^\w\n.;]+){0,2}?[0-9]", plain) for name in labels)
    tried = any(behind) or any(before) or near
    pairs = behind if not any(before) else before if not any(behind) else []
    named_once = all(len(_matches(_label(name), plain)) == 1 for name in labels)
    if not pairs or not named_once or any(len(several) != 1 for several in pairs):
        return (), tried
    found = [match for [match] in pairs]
    # any other digit, of whatever script, may be another score
    alone = sum(map(str.isnumeric, plain)) == sum(map(str.isnumeric, "".join(match[0] for match in found)))
    each_its_own = len({match.start(1) for match in found}) == len(labels)
    fits = all(float(match[1]) <= high and float(match[2] or high) == high for match in found)
    return tuple(float(m[1]) for m in found) if alone and each_its_own and fits else (), tried


def _behind(name: str, single: bool, plain: str) -> list[re.Match[str]]:
    """Where a number follows a name."""
    if single:
        return _matches(_START + _label(name) + _TO_NUMBER + _NUMBER + _LINE_END, plain)
    linked = _matches(_label(name) + _TO_NUMBER + _NUMBER + _END, plain, _BEFORE_NAME)
    return linked or _matches(_label(name) + r"\s+" + _NUMBER + _SEPARATED, plain, _BEFORE_NAME)


def _before(name: str, single: bool, plain: str) -> list[re.Match[str]]:
    """Where a number precedes a name."""
    return [] if single else _matches(_NUMBER + _TO_NAME + _label(name), plain, _BEFORE_NUMBER)


def _matches(pattern: str, plain: str, after: re.Pattern[str] | None = None) -> list[re.Match[str]]:
    """Where a pattern is found, where it is said after which text."""
    found = re.finditer(pattern, plain)
    return [m for m in found if after is None or after.search(plain[max(0, m.start() - _LOOKED_BACK) : m.start()])]
