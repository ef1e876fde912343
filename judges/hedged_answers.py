"""Whether the numbers of a text may be taken at their word: doubt, examples, and names that can be meant either way.

Lists of words never end. Where they are in doubt they err on the side of not reading.
"""

from __future__ import annotations

import re

from vieval_plugin.judges.refusals import TAKES_BACK

_FAULT = (
    r"\b(?:arti?e?facts?|distortions?|faults?|flaws?|defects?|errors?|glitch(?:es)?|noise|blur(?:riness|ring)?|watermarks?|"
    r"imperfections?|inconsistenc(?:y|ies)|over[\s_-]*edit(?:ing|s|ed)?|unnaturalness|degradation|damage|deviations?|"
    r"differences?|changes?|loss)\b"
)
_ABSENCE = re.compile(r"\b(?:absence|lack|free|freedom|freeness|no|without)\b")
# what turns a name itself round: the caller has put NAME in its place
NAME = "\x00"
# a number given to a fault, less that is better, a name turned round
TURNED_ROUND = re.compile(
    rf"{_FAULT}(?:\s+(?:score|rating|level))?[\s:=|(-]*(?:is\s+|of\s+)?(?:an?\s+)?[0-9]"
    r"|\b(?:lower|smaller|fewer|less|0|zero)\s+(?:is|means?|=|being)\s+(?:the\s+)?(?:better|best|perfect|good|ideal|none)\b"
    r"|\b(?:inverted|inverse|reversed?)\b|\bbest\s*(?:is|=|:)\s*0|\b10\s+(?:is|means?|=|being)\s+(?:the\s+)?worst"
    rf"|\b(?:lack|absence|loss|shortage|deficit|opposite|inverse|reverse)\s+(?:of|in)\s+(?:the\s+)?{NAME}"
    rf"|\b(?:un|non|im|dis|anti)[\s-]*{NAME}|{NAME}[\s-]*(?:loss|deficit|error|problem|issue|violation|penalt)"
)
NUMBER_OF_FAULTS = re.compile(rf"[0-9](?:\s*/\s*[0-9]+)?(?:\s+\w+){{0,2}}\s+{_FAULT}")
FAULTLESS = re.compile(rf"\b(?:no|without|free\s+of|zero|none|not\s+any)\b(?:\s+\w+){{0,2}}\s*{_FAULT}")

# what says of the numbers, wherever they stand, that they are uncertain or are not the answer
_DOUBT = re.compile(
    rf"""\b(?:maybe|perhaps|possibly|probably|presumably|supposedly|approximately|approx|roughly|circa|somewhere
    |about\s+(?=[0-9])|guess(?:ing|ed|es)?|estimat\w*|unsure|uncertain\w*|tentative\w*|provisional\w*|undecided|depends?
    |not\s+(?:sure|certain|confident|final)|(?:kind|sort)\s+of|to\s+be\s+(?:confirmed|determined|checked)|tb[cd]|drafts?
    |preliminary|pending|(?:barely|hardly|scarcely|easily|like|mostly|no)\s+(?:an?\s+)?(?=[0-9])|(?:hard|difficult|impossible)\s+to\s+(?:say|tell|judge|rate|score)
    |i\s+(?:think|suppose|believe|feel)|if\s+i\s+had\s+to|give\s+or\s+take|plus\s+or\s+minus|more\s+or\s+less|or\s+so|ish
    |between|range|examples?|for\s+instance|e\.g|such\s+as|format|template|{TAKES_BACK}
    |suppos(?:e|ing)|assum(?:e|ing)|imagine|pretend(?:ing)?|ideal(?:ly)?|best\s+possible
    |would\s+(?:have|be|get|receive|score|deserve)|perfect\s+(?:image|picture|photo)
    |previous\w*|earlier|initial\w*|originally|formerly|other\s+(?:raters?|judges?|models?)
    |swap\w*|revis\w*|scratch
    |etwa|vielleicht|ungef\w*|environ|peut|quiza?s?|tal\s+vez|forse)\b
    |[~\u2248\u00b1<>\u2264\u2265]|\+/-""",
    re.VERBOSE,
)
# the same, where they stand in a sentence with a number
_DOUBT_BESIDE = re.compile(
    r"""\b(?:or|either|if|unless|when|whether|could|might|may|should|must|around|nearly|almost|close\s+to|near
    |at\s+(?:least|most)|up\s+to|under|over|above|below|higher|lower|better|worse|than|min(?:imum)?|max(?:imum)?|means?|scale|from
    |says?|said|asks?|asked|wants?|wanted|claims?|claimed|told|users?|instructions?
    |zero|two|three|four|five|six|seven|eight|nine|ten)\b|\?""",
    re.VERBOSE,
)
# of what else a sentence may give numbers, before its first
_OF_ANOTHER = re.compile(r"\b(?:original|source|reference|ground\s+truth|input|foreground|background|before|after)\b")
_NEGATION = re.compile(r"\b(?:not|never|neither|nor|cannot)\b|n't\b")
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")


def casts_doubt(text: str) -> bool:
    """Whether a text in lower case hedges its numbers, turns them round or gives them as an example.

    >>> casts_doubt("around 7 for naturalness"), casts_doubt("7 for naturalness")
    (True, False)
    """
    # in another language doubt cannot be told
    if _DOUBT.search(text) or any(letter.isalpha() and not letter.isascii() for letter in text):
        return True
    sentences = [(line, [match.end() for match in re.finditer("[0-9]", line)]) for line in SENTENCE_END.split(text)]
    return any(
        _DOUBT_BESIDE.search(line) or _OF_ANOTHER.search(line[: ends[0]]) or _NEGATION.search(line[: ends[-1]])
        for line, ends in sentences
        if ends
    )


def is_fault(name: str) -> bool:
    """Whether a name is that of a fault, of which more is worse: people and models score such a thing either way.

    >>> is_fault("artifacts"), is_fault("absence of artifacts")
    (True, False)
    """
    words = " ".join(re.findall(r"[a-z]+", name.lower()))
    return bool(re.search(_FAULT, words)) and not _ABSENCE.search(words)
