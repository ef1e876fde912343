"""The words of a page, each in a sentence or two: where it stands, and at the end those that the
page uses.
"""

from __future__ import annotations

import re

from markupsafe import Markup

from vieval_plugin.text.escaping import html
from vieval_plugin.text.wording import unbroken

_MEANINGS = {
    "SC": "Semantic consistency: is it what was asked for?",
    "PQ": "Perceptual quality: does it look right?",
    "O": "Overall: semantic consistency and perceptual quality together.",
    "task type": (
        "What the image model was asked for, such as an image from a text, or an edit "
        "by a text or within a mask."
    ),
    "Spearman's correlation": "Do two sides put things in the same order? 1 for the same order, "
    "0 for no relation, -1 for the reverse. The scale that either uses does not matter.",
    "(Fisher)": "The correlation is computed for each image model and task type alone, so that a "
    "judge earns nothing by knowing which model is good, and averaged by Fisher's z.",
    "accuracy": (
        "Share of the pairs that people voted on for which the judge says the same. A "
        "missing answer is wrong."
    ),
    "95%": (
        "Of 100 such intervals, 95 contain the true number. They come from resampling groups "
        "of samples (bootstrap)."
    ),
    "rank": (
        "The places that the tests leave open: a rank of 2-4 is not significantly better or "
        "worse than two others."
    ),
    "n": "Number of samples, prompts or contests behind the number.",
    "failed": "Verdicts without a score: the reply could not be read, the model declined, or a "
    "call failed. No score is made up for them.",
    "answers": (
        "Answers behind all verdicts, also when asked again, from a model or from the store."
    ),
    "human ceiling": (
        "How well people agree with each other, computed like the judges' numbers. "
        "Hardly any judge exceeds it."
    ),
    "best constant": (
        "The best you can do with the same answer for every image. A judge has to "
        "be better than that."
    ),
    "disagreement": "Distance between the place of an image by the judge and by people: 0 for "
    "the same place among all images, 1 for first against last. For contests: 1 for the opposite "
    "vote, half for a tie against a preference.",
    "p (Holm)": (
        "Probability of such a difference by chance, adjusted for the number of pairs "
        "that are compared."
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
        <abbr title="Number of samples, prompts or contests behind the number." tabindex="0">n</abbr> of 3
        """
        text = unbroken(text)
        parts = list[Markup]()
        end = 0
        for match in _TERMS.finditer(text):
            self._used[match[0]] = meaning = _MEANINGS[match[0]]
            word = Markup('<abbr title="{}" tabindex="0">{}</abbr>').format(
                html(meaning), html(match[0])
            )
            parts += [html(text[end : match.start()]), word]
            end = match.end()
        return Markup("").join([*parts, html(text[end:])])

    @property
    def used(self) -> list[tuple[str, str]]:
        """These words with their meanings, in the alphabet's order."""
        return sorted(
            self._used.items(), key=lambda entry: entry[0].casefold().lstrip("(")
        )
