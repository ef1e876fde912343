"""Words by which an answer declines to judge, says that no image was seen, or takes its scores back."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LONGEST = 10_000

_CANNOT = r"(?:can't|cannot|can\ not|couldn't|won't|will\ not|unable\ to|not\ able\ to)"
_IMAGE = r"(?:images?|pictures?|photos?)"
# not "the image clearly" or "the picture quality"
_AN_IMAGE = rf"(?:\w+\ ){{0,2}}?{_IMAGE}\b(?!\ (?!(?:i|we|so|but|and|or|here|at|to|it|this|my|the)\b)\w)"
_IMAGE_PROVIDED_WORDS = r"(?:attached|provided|given|shown\ to\ me|supplied|uploaded|received|seen|sent|load(?:ed)?)"
_FULL_SCORE_WORDS = r"(?:full|perfect|high\w*|top|max\w*)\ "  # a score that is lower is one
# The judge's own declining, which is one wherever it stands. An apology, or "the edit could not be completed", stands
# beside many honest scores.
_DECLINES = re.compile(
    rf"""\b(?:(?:can't|cannot|won't|will\ not|unable\ to)\ (?:assist|help|comply)
    | (?:(?:don't|do\ not|doesn't)\ have|lack)\ (?:the\ |any\ )?(?:ability|capability|capacity|means)
    | against\ (?:my|our)\ (?:guidelines|polic)
    | (?:evaluation|assessment|rating|scores?)\ (?:is\ |are\ )?not\ (?:possible|available)
    | (?:evaluation|assessment|rating|scoring)\ cannot\ be\ (?:conducted|completed|performed|given|provided|made|done)
    | (?:i|we)(?:'ve|\ am|\ are|\ was|\ were|\ have|\ did)?\ (?:{_CANNOT}|not|never|haven't|didn't|wasn't)\ (?:\w+\ )?
      (?:seen?|view(?:ed)?|access|process|open|received?|shown|given|got)\ {_AN_IMAGE}
    | (?:there\ (?:is|was|are|were)|see)\ no\ {_AN_IMAGE}
    | no\ {_IMAGE}\ (?:(?:was|were|is|are|has|have|been)\ )*{_IMAGE_PROVIDED_WORDS}\b(?!\ (?:that|which|where|of))
    | {_IMAGE}\ (?:was|were|is|are|has|have|did)\ (?:not|never)\ (?:been\ )?{_IMAGE_PROVIDED_WORDS}
    | without\ (?:seeing|having\ seen|access\ to)\ {_AN_IMAGE}
    | (?:i|we)(?:'m|'re|\ am|\ are|\ must|\ have\ to)?\ (?:\w+\ )?(?:{_CANNOT}|not\ going\ to|decline|refuse)\ (?:(?!{_FULL_SCORE_WORDS})\w+\ ){{0,3}}?
      (?:assess|rate|score|judge|evaluate|answer|(?:give|provide)\ (?:(?!{_FULL_SCORE_WORDS})\w+\ ){{0,2}}?(?:scores?|ratings?|evaluations?)|do))\b""",
    re.IGNORECASE | re.VERBOSE,
)
# The same where there are no scores.
_REFUSES = re.compile(
    rf"""^\W*sorry\b | \b(?:(?:i'?m|i\ am|we'?re|we\ are)\ (?:\w+\ )?(?:sorry|afraid)\b | apologi(?:[sz]e|es)\b
    | {_CANNOT}\ (?:\w+\ ){{0,3}}?(?:assess(?:ed)?|(?:rate|score|judge|evaluate|provide|complete)d?|(?:conduct|perform)(?:ed)?)\b
    | as\ an?\ (?:ai|artificial\ intelligence|(?:\w+\ )?language\ model|assistant)\b(?!-)
    | (?:decline|refuse)\ to\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_ANSWER_WORDS = r"(?:(?:scores?|numbers?|ratings?|answers?|verdict|json)\b)"
# The judge takes its own answer back: "ignored", "wrong" and "placeholder" are said of many an image.
_TAKES_BACK = re.compile(
    rf"""(?:^|[.!?:;,*\n]|\b(?:please|and|so|but|must|should|to))\s*
      (?:ignore|disregard|discard|forget)\ (?:all\ |of\ )*(?:above|(?:the|my|this|that|these|those|it|them)\b
        (?:\ (?:above|previous|preceding|earlier|former|first|last|{_ANSWER_WORDS})|(?=\W*$|\W*\n|[.,;:!]|\ (?:is|was|i|as|it)\b)))
    | \bi(?:'m|\ am|\ was)?\ (?:\w+\ )?(?:tak(?:e|ing)\ (?:\w+\ ){{1,3}}?back|kidding|joking|meant|(?:retract|withdraw)\b)
    | \bi\ (?:\w+\ )?(?:made\ (?:\w+\ ){{1,2}}?up|invented|fabricated)\b | \b(?:retract|withdraw)(?:ing)?\ my\b
    | \b(?:{_ANSWER_WORDS}(?:\ above)?|these|those|they|above|this|that|it)\ (?:is|are|was|were)\ (?:\w+\ ){{0,2}}?
      (?:placeholders?|dumm(?:y|ies)|invented|fabricated|made\ up)\b(?!\ \w)
    | \b{_ANSWER_WORDS}(?:\ above)?\ (?:is|are|was|were)\ (?:\w+\ )?(?:random|arbitrary|hypothetical|wrong|incorrect|invalid|false|fake)\b
    | \bnot\ (?:my|the)\ (?:\w+\ )?{_ANSWER_WORDS} | \bon\ second\ thoughts?\b""",
    re.IGNORECASE | re.VERBOSE,
)
# What leads to an answer that is not the judge's.
_LEADS_TO_QUOTED_ANSWER = re.compile(
    r"(?:(?:never|not|n't) (?:\w+ )?(?:answer|say|give|write|choose|my)\b|\b(?:placeholder|dummy|hypothetical)\b)[^.!?\n]{0,60}$"
    r"|\b(?:reads?|says?|text)[\s:*\"']*$",
    re.IGNORECASE,
)


def refuses(answer: str) -> bool:
    """Return whether an answer without scores reads like a refusal to give any."""
    return declines(answer) or bool(_REFUSES.search(_plain(answer)))


def declines(text: str) -> bool:
    """Return whether a text beside scores says that none are given: they were quoted then.

    >>> declines("I'm sorry, but I can't rate this. The form would be:"), declines("Sorry for the confusion. So:")
    (True, False)
    """
    return bool(_DECLINES.search(_plain(text)))


def withdrawn(outside: Sequence[str]) -> bool:
    """Return whether the texts before, between and behind answers decline to give any, lead to one that is not the
    judge's or, behind one, take it back.

    >>> withdrawn(["Corrected, ignore the above:", "."]), withdrawn(["", "Ignore the above."])
    (False, True)
    """
    return (
        declines("\n".join(outside))
        or any(_LEADS_TO_QUOTED_ANSWER.search(_plain(text).rstrip("` \n")) for text in outside[:-1])
        or bool(_TAKES_BACK.search(_plain("\n".join(outside[1:]))))
    )


def _plain(text: str) -> str:
    ends = text if len(text) <= 2 * _LONGEST else f"{text[:_LONGEST]} {text[-_LONGEST:]}"
    return ends.replace("\u2019", "'")
