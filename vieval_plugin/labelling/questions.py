"""Questions of a labelling page: two ratings of a sample, or a vote on a contest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vieval_plugin.judges.contests import BOTH_BAD, BOTH_GOOD, FIRST, SECOND, TIE


@dataclass(frozen=True)
class PageAnswer:
    """Answer to a question of the page."""

    #: Key to press.
    key: str
    #: Value in the CSV file.
    value: str
    #: Text on the page.
    text: str


@dataclass(frozen=True)
class PageQuestion:
    """Question of the page."""

    #: Aspect that the CSV file names.
    aspect: str
    #: Title on the page.
    title: str
    #: Meaning in a sentence.
    explanation: str
    #: Answers in their order.
    answers: tuple[PageAnswer, ...]
    #: Key that selects it, if there are several questions.
    letter: str = ""


def _rating_steps(*texts: str) -> tuple[PageAnswer, ...]:
    """Steps of a rating from 0 to 1, worst first."""
    last = len(texts) - 1
    return tuple(
        PageAnswer(str(n), f"{n / last:g}", text) for n, text in enumerate(texts)
    )


RATINGS = (
    PageQuestion(
        aspect="SC",
        title="Semantic consistency",
        explanation="Does the output follow the prompt?",
        answers=_rating_steps(
            "not at all",
            "little",
            "partly",
            "mostly",
            "fully",
        ),
        letter="s",
    ),
    PageQuestion(
        aspect="PQ",
        title="Perceptual quality",
        explanation="Does it look natural and free of artefacts and distortions, regardless of "
        "the prompt?",
        answers=_rating_steps(
            "very poor",
            "poor",
            "fair",
            "good",
            "flawless",
        ),
        letter="p",
    ),
)
_BETTER = (
    PageAnswer("1", FIRST, "the first"),
    PageAnswer(
        "2",
        SECOND,
        "the second",
    ),
)
_ALIKE: Mapping[str, tuple[PageAnswer, ...]] = {
    "two_way": (),
    "three_way": (PageAnswer("3", TIE, "neither (they are equal)"),),
    "four_way": (
        PageAnswer("3", BOTH_GOOD.replace("_", " "), "both are good"),
        PageAnswer("4", BOTH_BAD.replace("_", " "), "both are bad"),
    ),
}


def vote(scheme: str) -> PageQuestion:
    """Question about a contest; without a scheme, with three answers."""
    hint = (
        "Consider both how well the output follows the prompt and how natural it looks."
    )
    return PageQuestion(
        aspect="vote",
        title="Which output is better?",
        explanation=hint,
        answers=_BETTER + _ALIKE[scheme or "three_way"],
    )


#: Task of an image model, by kind of sample.
TASKS = {
    "tig": "The output was generated from the text.",
    "tie": "The output is the source image, edited as the instruction says.",
    "mie": (
        "The output is the source image, edited within a region as the instruction "
        "says."
    ),
    "cig": (
        "The output was generated from the text, and should follow the control image."
    ),
    "sdig": (
        "The output was generated from the text, and should show the given subject."
    ),
    "sdie": "The output is the source image with the given subject inserted.",
    "mcic": (
        "The output was generated from the text, and should combine the given concepts."
    ),
}

#: The first question about a sample, by kind.
QUESTIONS = {
    "tig": "Does the image show everything that the prompt asks for?",
    "tie": "Is the image edited as the instruction says, and unchanged elsewhere?",
    "mie": (
        "Is the image edited within the region as the instruction says, and unchanged elsewhere?"
    ),
    "cig": "Does the image show everything that the prompt asks for, and follow the control image?",
    "sdig": "Does the image show everything that the prompt asks for, with the given subject?",
    "sdie": "Is the given subject inserted into the image, and the rest unchanged?",
    "mcic": "Does the image combine the given concepts as the prompt asks?",
}
