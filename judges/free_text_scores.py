"""Scores said in prose: read only where each sub-score is named once, with exactly one number, and nothing is hedged.

A number that is read wrongly does more harm than one that is not read. So any other digit in the text, any doubt, and
any name that can be meant either way ("artifacts 0" where 10 means none) leave all of it unread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_FAULT = (
    r"\b(?:arti?e?facts?|distortions?|faults?|flaws?|defects?|errors?|glitch(?:es)?|noise|blur(?:riness|ring)?|watermarks?|"
    r"imperfections?|inconsistenc(?:y|ies)|over[\s_-]*edit(?:ing|s|ed)?|unnaturalness|degradation|damage|deviations?|"
    r"differences?|changes?|loss)\b"
)
_ABSENCE = re.compile(r"\b(?:absence|lack|free|freedom|freeness|no|without)\b")
# What stands for a name: the first of these signs for the first name. None is in a reply that is read.
_FIRST_NAME_CODEPOINT, _ANY_NAME = 0xE000, "[\ue000-\ue0ff]"
# a number given to a fault, less that is better, a name turned round
TURNED_ROUND = re.compile(
    rf"{_FAULT}(?:\s+(?:score|rating|level))?[\s:=|(-]*(?:is\s+|of\s+)?(?:an?\s+)?[0-9]"
    r"|\b(?:lower|smaller|fewer|less|0|zero)\s+(?:is|means?|=|being)\s+(?:the\s+)?(?:better|best|perfect|good|ideal|none)\b"
    r"|\b(?:inverted|inverse|reversed?)\b|\bbest\s*(?:is|=|:)\s*0|\b10\s+(?:is|means?|=|being)\s+(?:the\s+)?worst"
    rf"|\b(?:lack|absence|loss|shortage|deficit|opposite|inverse|reverse)\s+(?:of|in)\s+(?:the\s+)?{_ANY_NAME}"
    rf"|\b(?:un|non|im|dis|anti)[\s-]*{_ANY_NAME}|{_ANY_NAME}[\s-]*(?:loss|deficit|error|problem|issue|violation|penalt)"
)
NUMBER_OF_FAULTS = re.compile(rf"[0-9](?:\s*/\s*[0-9]+)?(?:\s+\w+){{0,2}}\s+{_FAULT}")
FAULTLESS = re.compile(rf"\b(?:no|without|free\s+of|zero|none|not\s+any)\b(?:\s+\w+){{0,2}}\s*{_FAULT}")

# what says of the numbers, wherever they stand, that they are uncertain or are not the answer
_DOUBT = re.compile(
    r"""\b(?:maybe|perhaps|possibly|probably|approx(?:imately)?|roughly|circa|somewhere|depends?|tb[cd]
    |undecided|unsure|not\s+(?:sure|certain|confident|final)|(?:kind|sort)\s+of|to\s+be\s+(?:confirmed|determined|checked)
    |(?:barely|hardly|scarcely|easily|like|mostly|no)\s+(?:an?\s+)?(?=[0-9])|(?:hard|difficult|impossible)\s+to\s+(?:say|tell|judge|rate|score)
    |i\s+(?:think|believe|feel)|between|range|for\s+instance|e\.g|such\s+as|format|template|second\s+thoughts?|wait|actually|correction|fake|made[\s-]up
    |tak(?:e|ing)\s+(?:\w+\s+){0,3}back|(?:is|are|was|were)\s+(?:\w+\s+)?(?:wrong|incorrect|invalid|false)|scratch
    |ideal(?:ly)?|best\s+possible|would\s+(?:have|be|get|receive|score|deserve)|perfect\s+(?:image|picture|photo)
    |earlier|originally|formerly|other\s+(?:raters?|judges?|models?)|etwa|vielleicht|environ|peut|quiza?s?|tal\s+vez|forse
    |(?:arbitrar|assum|discard|disregard|draft|dumm|estimat|example|fabricat|guess|hypothe|ignor|imagin|initial|invent|joking|kidding
    |pending|placeholder|preliminar|presum|pretend|previous|provisional|random|retract|revis|suppos|swap|tentativ|uncertain
    |withdraw)\w*)\b
    |[^\W\d_a-z]  # a letter of another language, in which doubt cannot be told""",
    re.VERBOSE,
)
# the same, where they stand in a sentence with a number
_DOUBT_BESIDE = re.compile(
    r"""\b(?:or|either|if|unless|when|whether|could|might|may|should|must|around|nearly|almost|close\s+to|near
    |at\s+(?:least|most)|up\s+to|under|over|above|below|higher|lower|better|worse|than|min(?:imum)?|max(?:imum)?|means?|scale|from
    |says?|said|asks?|asked|wants?|wanted|claims?|claimed|told|users?|instructions?
    |zero|two|three|four|five|six|seven|eight|nine|ten)\b|\?
    # turning a number round, or giving it to something else, stands before it
    |(?:\b(?:original|source|reference|ground\s+truth|input|foreground|background|before|after|not|never|neither|nor|cannot)
    |n't)\b(?=.*[0-9])""",
    re.VERBOSE,
)
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")


def is_hedged(text: str) -> bool:
    """Return whether a text in lower case hedges its numbers, turns them round or gives them as an example.

    >>> is_hedged("around 7 for naturalness"), is_hedged("7 for naturalness")
    (True, False)
    """
    numbered = (sentence for sentence in SENTENCE_END.split(text) if re.search("[0-9]", sentence))
    return bool(_DOUBT.search(text)) or any(map(_DOUBT_BESIDE.search, numbered))


def is_fault(name: str) -> bool:
    """Return whether a name is that of a fault, of which more is worse: people and models score such a thing either
    way.

    >>> is_fault("artifacts"), is_fault("absence of artifacts")
    (True, False)
    """
    words = " ".join(re.findall(r"[a-z]+", name.lower()))
    return bool(re.search(_FAULT, words)) and not _ABSENCE.search(words)


HEDGED = "scores in prose: hedged"
UNMATCHED = "scores in prose: not one number in range for each name"
EITHER_WAY = "scores in prose: a name that can be meant either way"

# what is longer than this is no answer to a question for a few numbers
_LONGEST = 4000
# a low score beside "no artifacts" was given on the scale turned round
_LOW = 0.5

# A number that stands alone, and what it is out of. A sign, a decimal comma or a unit keep it from being one.
_NUMBER = r"(?<![\w.,+/#$\u20ac\u00a3-])(?P<number>[0-9]{1,3}(?:\.[0-9]{1,6})?)(?:\s*(?:/|out of)\s*(?P<scale>[0-9]{1,3}))?(?![\w%])(?!\.[0-9])"
_NAME = rf"(?P<name>{_ANY_NAME})"
# how a name leads to its number, and what may come before either
_TO_NUMBER = (
    r"(?:\s+(?:score|rating))?(?:\s*[:=|]\s*|\s+[-\u2013\u2014]\s+|\s+(?:is|of|gets|scores|receives)\s+|\s*\(\s*)"
    r"(?:an?\s+)?(?:score\s+of\s+)?"
)
_BEFORE_NAME = r"(?:^|[\n.,;:!|(\[{\u2013\u2014-]|\b(?:and|the|its|with|for|give|rate|scores?|overall))\s*"
_BEFORE_NUMBER = (
    r"(?:^|[\n,;:!|(=\u2013\u2014-]|\b(?:and|of|an?|it|image|picture|photo|give|rate|score|deserves|gets|receives))\s*"
)
# what may come after a number that is meant as it stands
_END = (
    r"(?=\s*(?:$|[;)(\]}|\n]|[.,](?![0-9])|[-\u2013\u2014]\s"
    r"|(?:and(?!\s+an?\b)|but|because|since|as|due|while|with|points?)\b))"
)
_NAME_NUMBER_PATTERNS = (
    re.compile(rf"{_BEFORE_NAME}{_NAME}{_TO_NUMBER}{_NUMBER}{_END}"),
    # a bare space leads from a name to its number only where the pairs are separated: not in "naturalness 10 cleanness 0"
    re.compile(rf"{_BEFORE_NAME}{_NAME}\s+{_NUMBER}(?=\s*(?:$|[,;\n]|\.(?![0-9])|and\b))"),
)
_NUMBER_NAME_PATTERN = re.compile(
    rf"{_BEFORE_NUMBER}{_NUMBER}(?:\s+points?)?\s+(?:for|on|in)\s+(?:the\s+|its\s+)?{_NAME}"
)
# One score alone begins a line or a sentence and ends it: "Score: 7.", not "a board with a score of 7 and a clock".
_ALONE = re.compile(
    rf"(?:^|\n|[.!?]\s)\s*(?:(?:my|the|an?|final|overall)\s+){{0,3}}{_NAME}{_TO_NUMBER}{_NUMBER}(?=[\s.!)]*(?:$|\n))"
)
_NAME_NEAR_NUMBER = re.compile(rf"{_ANY_NAME}[^\w\n.;]*(?:\w+[^\w\n.;]+){{0,2}}?[0-9]")
_LIST_MARK = re.compile(r"^[ \t]*[0-9]{1,2}[.)][ \t]+(?=\D)", re.MULTILINE)
_MARKUP = re.compile(r"</?[a-z|][^<>0-9]{0,30}>|[*`\"\u201c\u201d\ue000-\uefff]|(?<!\w)'|'(?!\w)")

# A number beside an answer that may be a score. None is a count ("6 fingers"), image 1, a price, a time or a share, the
# full mark that was missed, or what a quotation has.
_STATED = re.compile(
    r"(?<![\w.,#$\u20ac\u00a3+-])(?<![0-9][:/x])(?<!\bimage )(?<!candidate )(?<!concept )(?<!subject )(?<!step )(?<!perfect )"
    r"(?<!full )(?<!not a )([0-9]{1,3}(?:\.[0-9]+)?)(?:\s*(?:/|out of)\s*[0-9]+)?(?![\w%\u00b0]|[.,:/][0-9]|-\w|\s%)"
    r"(?!\s+(?!(?:and?|as|at|because|but|due|for|from|i[fns]|instead|not|o[fnr]|out|points?|since|so|stars?|to|which|with)\b)[a-z])",
    re.IGNORECASE,
)
_QUOTATION = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*[A-Za-z](?:[^\"\\\n]|\\.)*\"|\u201c[^\u201d\n]*[A-Za-z][^\u201d\n]*\u201d|(?<!\w)'[^'\n]*[A-Za-z][^'\n]*'(?!\w)"
)


def contradicts(text: str, scores: Sequence[float], high: float) -> bool:
    """Return whether a text beside an answer has other numbers that may be scores, or the same in another order.

    >>> contradicts("Corrected: 2 and 1.", [10, 10], 10), contradicts("A hand has 6 fingers, hence 7.", [7, 8], 10)
    (True, False)
    """
    for sentence in SENTENCE_END.split(_LIST_MARK.sub("", _QUOTATION.sub(" ", text))):
        numbers = dict.fromkeys(float(match[1]) for match in _STATED.finditer(sentence))
        rest = iter(dict.fromkeys(scores))
        if not all(number in rest for number in numbers if number <= high):
            return True
    return False


def read_free_text_scores(text: str, names: Sequence[str], high: float) -> tuple[tuple[float, ...], str]:
    """The score that a text says of each name, or in fixed words why the numbers that it attaches to names are not
    read.

    Args:
        text: a reply without its thinking.
        names: what the sub-scores are called, in order; `score 1`, `score 2`, ... and, of one alone, `score` do too.
        high: the end of the scale from 0, and the only denominator accepted.

    >>> read_free_text_scores("A score of 7 for naturalness and 6 for cleanness.", ["naturalness", "cleanness"], 10)
    ((7.0, 6.0), '')
    >>> read_free_text_scores("naturalness 10 artifacts 0", ["naturalness", "cleanness"], 10)
    ((), 'scores in prose: a name that can be meant either way')
    """
    if not names or not text.strip() or len(text) > _LONGEST:
        return (), ""
    plain = re.sub(rf"\(\s*0\s*(?:-|\u2013|to)\s*{high:g}\s*\)", " ", _plain(text))
    numbered = [f"score {place}" for place in range(1, len(names) + 1)]
    alone = [["score"]] if len(names) == 1 else []
    ways = [(labels, *_paired(plain, labels, high)) for labels in (names, numbered, *alone)]
    # a name may hold a digit, or a word that casts doubt elsewhere
    text_without_names = _with_name_placeholders(plain, [*names, *numbered])
    turned = TURNED_ROUND.search(text_without_names)
    if not turned and not any(has_score_attempt for _, _, has_score_attempt in ways):
        return (), ""
    if turned or NUMBER_OF_FAULTS.search(text_without_names) or any(map(is_fault, names)):
        return (), EITHER_WAY
    if is_hedged(text_without_names):
        return (), HEDGED
    clear = [(labels, scores) for labels, scores, _ in ways if scores]
    # numbers of scores and their names beside each other may be in two orders
    mixed = len(names) > 1 and clear and clear[0][0] is numbered and any(re.search(_label(n), plain) for n in names)
    if len(clear) != 1 or mixed:
        return (), UNMATCHED
    [(labels, scores)] = clear
    low = [_label(name) for name, score in zip(labels, scores, strict=True) if score < _LOW * high]
    faultless = filter(FAULTLESS.search, SENTENCE_END.split(plain))
    contradicted = any(re.search(name, sentence) for sentence in faultless for name in low)
    return ((), EITHER_WAY) if contradicted else (scores, "")


def _plain(text: str) -> str:
    """Lower case, less tags, Markdown, quotes and the numbers of a list."""
    return _LIST_MARK.sub("", _MARKUP.sub(" ", text.lower().replace("\u2019", "'")))


def _label(name: str) -> str:
    """A pattern for a name, however its words are joined."""
    words = re.findall(r"[^\W\d_]+|[0-9]+|[^\w\s-]+", name.lower())
    return r"(?<![a-z0-9])(?<![a-z]-)" + r"[\s_#-]*".join(map(re.escape, words)) + r"(?![a-z0-9]|\.[0-9])"


def _with_name_placeholders(plain: str, names: Sequence[str]) -> str:
    """A text with a sign in place of each name, the longest first, as it may hold another."""
    for place in sorted(range(len(names)), key=lambda place: -len(names[place])):
        plain = re.sub(_label(names[place]), chr(_FIRST_NAME_CODEPOINT + place), plain)
    return plain


def _paired(plain: str, labels: Sequence[str], high: float) -> tuple[tuple[float, ...], bool]:
    """The number of each label where that is beyond doubt, and whether the text tries to give any.

    Beyond doubt are numbers all before their labels or all behind, and no other digit in the text.
    """
    text, signs = (
        _with_name_placeholders(plain, labels),
        [chr(_FIRST_NAME_CODEPOINT + place) for place in range(len(labels))],
    )
    forms = (_ALONE,) if len(labels) == 1 else _NAME_NUMBER_PATTERNS
    following = [match for form in forms for match in form.finditer(text)]
    preceding = [] if len(labels) == 1 else list(_NUMBER_NAME_PATTERN.finditer(text))
    has_score_attempt = bool(following or preceding or _NAME_NEAR_NUMBER.search(text))
    pairs = {match["name"]: match for match in following or preceding}
    named_once = sorted(re.findall(_ANY_NAME, text)) == sorted(pairs) == signs
    # any other digit, of whatever script, may be another score
    alone = sum(map(str.isnumeric, text)) == sum(map(str.isnumeric, "".join(match[0] for match in pairs.values())))
    if not named_once or not alone or (following and preceding):
        return (), has_score_attempt
    fits = all(float(m["number"]) <= high and float(m["scale"] or high) == high for m in pairs.values())
    return tuple(float(pairs[sign]["number"]) for sign in signs) if fits else (), has_score_attempt
