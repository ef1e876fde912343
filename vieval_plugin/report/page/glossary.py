"""The words of a page, each in a sentence or two: where it stands, and at the end those that the
page uses.
"""

from __future__ import annotations

import re

from markupsafe import Markup

from vieval_plugin.text.escaping import html
from vieval_plugin.text.wording import unbroken

_MEANINGS = {
    "SC": "Semantic consistency: how well an image follows its prompt.",
    "PQ": "Perceptual quality: how good an image looks.",
    "O": "Overall score, from semantic consistency and perceptual quality.",
    "task type": (
        "The task of the image model, such as generating an image from text, or editing one by "
        "instruction or within a mask."
    ),
    "Spearman's correlation": "Measures whether two sides put items in the same order: 1 for "
    "the same order, 0 for no relation, -1 for the reverse. Their scales do not matter.",
    "(Fisher)": (
        "The correlation is computed separately for each image model and task type, "
        "then averaged using Fisher's z-transformation. A judge gains nothing from "
        "knowing which model is good."
    ),
    "accuracy": (
        "Share of pairs on which the judge agrees with people's votes. A missing answer counts "
        "as wrong."
    ),
    "95%": (
        "Of 100 such intervals, about 95 contain the true value. They come from resampling "
        "groups of samples (bootstrap)."
    ),
    "rank": (
        "The places that are possible according to the tests. A rank of 2-4 means not "
        "significantly better or worse than two others."
    ),
    "n": "Number of samples, prompts or contests behind the value.",
    "failed": "Verdicts without a score: the reply could not be read, the model declined, or a "
    "call failed. VIEval never makes up a score for them.",
    "answers": (
        "Answers behind all verdicts, including retries, from a model or from the cache."
    ),
    "human ceiling": (
        "How well people agree with each other, computed in the same way as "
        "for judges. "
        "Few judges exceed it."
    ),
    "best constant": (
        "The best possible result with the same answer for every image. A judge must "
        "do better."
    ),
    "disagreement": "Distance between the judge's place and people's place for an image: 0 for "
    "the same place among all images, 1 for first versus last. For contests: 1 for the opposite "
    "vote, 0.5 for a tie versus a preference.",
    "p (Holm)": (
        "Probability of a difference this large by chance, adjusted for the number of "
        "compared pairs."
    ),
}
_TERMS = re.compile(
    "|".join(
        rf"(?<![\w'-]){re.escape(word)}(?![\w'-])"
        for word in sorted(_MEANINGS, key=len, reverse=True)
    )
)


class Glossary:
    """The words that a page uses, collected while they are explained where they stand."""

    def __init__(self) -> None:
        self._used: dict[str, str] = {}

    def explain(self, text: str) -> Markup:
        """A text in which each word that needs it says what it means when it is pointed at, tapped
        or focused.

        >>> print(Glossary().explain("n of 3"))
        <abbr title="Number of samples, prompts or contests behind the value." tabindex="0">n</abbr> of 3
        """
        text = unbroken(text)
        parts = list[Markup]()
        end = 0
        for match in _TERMS.finditer(text):
            self._used[match[0]] = meaning = _MEANINGS[match[0]]
            term = html(match[0])
            word = Markup('<abbr title="{}" tabindex="0">{}</abbr>').format(
                html(meaning), term
            )
            parts += [html(text[end : match.start()]), word]
            end = match.end()
        parts.append(html(text[end:]))
        return Markup("").join(parts)

    @property
    def used(self) -> list[tuple[str, str]]:
        """These words with their meanings, in the alphabet's order."""
        meanings = self._used.items()
        return sorted(meanings, key=lambda entry: entry[0].casefold().lstrip("("))
