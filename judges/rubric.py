"""Judges whose questions are answered with sub-scores: how these are asked for, and how they become
scores.

A question stands in its prompt pack under the aspect that it is about, or under aspect and kind
(`SC_tie`).
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from statistics import fmean

from vieval_plugin.judges.answer_formats import ScoresAsked, format_of
from vieval_plugin.judges.probabilities import (
    spellings,
    step_of,
    unlikely,
    with_middles,
)
from vieval_plugin.judges.protocol import (
    Ask,
    Chat,
    Image,
    Judge,
    Likelihood,
    Message,
    Program,
    Sample,
    Scores,
    Status,
    Step,
    Verdict,
    worst,
)
from vieval_plugin.judges.spec import Build, JudgeSpec
from vieval_plugin.judges.structured_chat import (
    ChatRequest,
    StructuredChatOutcome,
    ask_all,
    joined_findings,
    joined_reasons,
    joined_steps,
)
from vieval_plugin.prompts.pack import Pack, PackQuestion
from vieval_plugin.prompts.scale import Combination, Scale
from vieval_plugin.text.errors import VievalError

OVERALL = "O"
#: The finding of a reply that hardly ever begins with an answer asked for: of a model that thinks
#: first, for example.
UNLIKELY = "the reply rarely begins with an expected answer"
#: The reasons of questions that are not asked.
LEFT_OUT = "skipped by the option aspects"
CHANGES_NOTHING = "skipped by the option lazy, because O does not depend on it"
_ZERO_DECIDES = ("min", "product", "geometric_mean")


@dataclass(frozen=True)
class OneShotExample:
    """Worked example that is shown before a question."""

    #: Image files in the order of the question's own images.
    images: tuple[pathlib.Path, ...]
    #: Sub-scores that they deserve.
    scores: Scores
    #: Reasons for these.
    reasoning: str = ""


@dataclass(frozen=True)
class Rubric:
    """Way from sub-scores to scores."""

    #: Scale of each sub-score.
    scale: Scale
    #: Combination within each aspect that is asked about.
    combine: Mapping[str, Combination]
    #: Combination of the other aspects to O, where O is not asked about.
    overall: Combination | None = None
    #: Aspects that could be asked about and are not.
    left_out: tuple[str, ...] = ()
    #: One aspect is asked about after another, and no more once O is 0, or cannot be had, whatever
    #: the answer.
    lazy: bool = False

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects that it rates; not those that are asked about only where O depends on
        them.
        """
        aspects = self.rounds[0]
        return (*aspects, OVERALL) if self.overall else (*aspects,)

    def narrowed(self, aspects: Sequence[str], lazy: bool) -> Rubric:
        """The rubric of a judge that asks about some aspects only, or lazily; VievalError for
        one it does not ask about.
        """
        unknown = sorted(set(aspects) - set(self.combine))
        if unknown:
            known_aspects = ", ".join(self.combine)
            raise VievalError(
                f"aspects: unknown aspect {unknown[0]!r}; known aspects: {known_aspects}"
            )
        left_out = tuple(
            aspect for aspect in self.combine if aspects and aspect not in aspects
        )
        combine = {
            aspect: how
            for aspect, how in self.combine.items()
            if aspect not in left_out
        }
        overall = None if left_out else self.overall
        return replace(
            self,
            combine=combine,
            overall=overall,
            left_out=left_out,
            lazy=lazy and overall in _ZERO_DECIDES,
        )

    @property
    def rounds(self) -> list[list[str]]:
        """The aspects that are asked about at once, round by round."""
        aspects = list(self.combine)
        return [[aspect] for aspect in aspects] if self.lazy else [aspects]

    def scores(self, sub_scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
        """Scores in [0, 1] by aspect; an aspect without sub-scores is absent, and O needs all
        others.

        >>> Rubric(Scale("linear", 0, 10), {"SC": "min", "PQ": "min"}, "geometric_mean").scores({"SC": [9, 4], "PQ": [10]})
        {'SC': 0.4, 'PQ': 1.0, 'O': 0.6324555320336759}
        """
        scores = {}
        for aspect, values in sub_scores.items():
            combine = _COMBINE[self.combine[aspect]]
            scores[aspect] = combine([self.scale(value) for value in values])
        return self.add_overall(scores)

    def add_overall(self, scores: dict[str, float]) -> dict[str, float]:
        """Scores with O, where it is combined and all that it needs are there."""
        is_complete = scores.keys() == self.combine.keys()
        is_zero = self.lazy and 0.0 in scores.values()
        if self.overall and (is_complete or is_zero):
            return {**scores, OVERALL: _COMBINE[self.overall](list(scores.values()))}
        return scores

    def unasked(self, aspects: Collection[str]) -> list[Step]:
        """The steps of questions that were not asked, where those about these aspects were."""
        unneeded = [aspect for aspect in self.combine if aspect not in aspects]
        reasons = {
            **dict.fromkeys(self.left_out, LEFT_OUT),
            **dict.fromkeys(unneeded, CHANGES_NOTHING),
        }
        return [
            Step((aspect,), Status.NOT_ASKED, reason=reason)
            for aspect, reason in reasons.items()
        ]


def _geometric_mean(values: Sequence[float]) -> float:
    product = math.prod(values)
    # exactly rounded, which powers are not
    if len(values) == 2:
        return math.sqrt(product)
    return product ** (1 / len(values))


_COMBINE: Mapping[Combination, Callable[[Sequence[float]], float]] = {
    "min": min,
    "mean": fmean,
    "product": math.prod,
    "geometric_mean": _geometric_mean,
}


def rubric_spec(
    spec: JudgeSpec, rubric: Rubric, build: Callable[[Rubric], Build]
) -> JudgeSpec:
    """The description of a judge that asks as a rubric has it, and can be narrowed to some of
    its questions.
    """
    calls = str(len(rubric.combine))
    if rubric.lazy and len(rubric.rounds) > 1:
        calls = f"1 to {calls}"
    rounds = 3 if spec.intervals else len(rubric.rounds)

    def narrowed(aspects: Sequence[str], lazy: bool) -> JudgeSpec:
        # an interval is not known to be 0
        is_lazy = lazy and not spec.intervals
        return rubric_spec(
            spec,
            rubric.narrowed(aspects, is_lazy),
            build,
        )

    return replace(
        spec,
        aspects=rubric.aspects,
        build=build(rubric),
        calls=lambda options, setting: calls,
        rounds=lambda options, setting: rounds,
        narrowed=narrowed,
    )


def question_key(pack: Pack, aspect: str, kind: str) -> str:
    """The name of the question about an aspect of a kind of sample."""
    key = f"{aspect}_{kind}"
    return key if key in pack.questions else aspect


def question_text(
    pack: Pack,
    question: PackQuestion,
    sample: Sample,
    example: OneShotExample | None = None,
) -> str:
    """The words of a question; its template knows the sample's texts and kind, and the `names`
    of the sub-scores.
    """
    variables = {
        "kind": sample.kind,
        **sample.texts,
        "names": question.scores,
        "example": example,
    }
    return pack.render(question.template, variables)


def judge(
    rubric: Rubric,
    pack: Pack,
    examples: Mapping[str, OneShotExample] | None = None,
) -> Judge:
    """The judge that asks about every aspect at once, and again where a reply cannot be read.

    A question is asked again up to `pack.reminders` times. Scores are in [0, 1]; an aspect whose
    replies could not be read is absent. `examples` are shown with the questions of their names. A
    lazy rubric's questions are asked one after another.
    """
    shown = examples or {}

    def program(sample: Sample) -> Program:
        outcomes: dict[str, StructuredChatOutcome[Scores]] = {}
        for aspects in rubric.rounds:
            asks = []
            for aspect in aspects:
                key = question_key(pack, aspect, sample.kind)
                message = _message(
                    pack,
                    pack.questions[key],
                    sample,
                    shown.get(key),
                )
                asks.append(_score_ask(rubric, pack, key, aspect, message))
            outcomes |= zip(
                aspects,
                (yield from ask_all(asks, pack)),
                strict=True,
            )
            final = {aspect: outcome.final for aspect, outcome in outcomes.items()}
            sub_scores = {
                aspect: step.scores
                for aspect, step in final.items()
                if step.status.usable
            }
            scores = rubric.scores(sub_scores)
            is_decided = OVERALL in scores or len(scores) < len(final)
            if rubric.lazy and is_decided:
                break
        steps = joined_steps(outcomes.values())
        rated = [aspect for aspect in rubric.aspects if aspect in scores]
        return Verdict(
            {aspect: scores[aspect] for aspect in rated},
            worst([step.status for step in final.values()]),
            joined_reasons(final),
            (*steps, *rubric.unasked(final)),
            findings=joined_findings(outcomes.values()),
        )

    return program


def _message(
    pack: Pack,
    question: PackQuestion,
    sample: Sample,
    example: OneShotExample | None = None,
) -> Message:
    images = list(map(Image, example.images)) if example else []
    images += [sample.images[role] for role in question.images]
    text = question_text(pack, question, sample, example)
    return Message("user", question.parts(images, text))


def _score_ask(
    rubric: Rubric, pack: Pack, key: str, aspect: str, message: Message
) -> ChatRequest[Scores]:
    question = pack.questions[key]
    scale = rubric.scale
    scores_asked = ScoresAsked(
        question.scores,
        scale.low,
        scale.high,
        keys=pack.keys_shown(question.template),
        optional=pack.manifest.optional,
    )
    form = format_of(pack)
    chat = Chat((message,), (aspect,), form.schema(scores_asked))
    return ChatRequest(chat, form.reader(scores_asked))


def _likelihood_ask(
    pack: Pack, aspect: str, sample: Sample, continuations: tuple[str, ...]
) -> Likelihood:
    question = pack.questions[question_key(pack, aspect, sample.kind)]
    message = _message(pack, question, sample)
    return Likelihood(
        (message,),
        continuations,
        (aspect,),
        "beginning",
    )


def expected_judge(
    rubric: Rubric,
    pack: Pack,
    answers: Mapping[str, float],
) -> Judge:
    """The judge that is answered with probabilities: a score is the mean of what the answers stand
    for.

    Where a server lists only its likeliest tokens a score is the middle of what is possible, and
    `bounds` has the interval.
    """
    score_by_answer = {
        answer: rubric.scale(number) for answer, number in answers.items()
    }
    scored = dict(sorted(score_by_answer.items(), key=itemgetter(1)))
    continuations = spellings(scored)
    values = [*scored.values()]

    def program(sample: Sample) -> Program:
        aspects = list(rubric.combine)
        asks: list[Ask] = [
            _likelihood_ask(pack, aspect, sample, continuations) for aspect in aspects
        ]
        replies = yield asks
        steps = []
        lowest = {}
        highest = {}
        for reply, aspect in zip(replies, aspects, strict=True):
            step = step_of(reply, (aspect,), continuations, values)
            steps.append(step)
            if step.bounds:
                lowest[aspect], highest[aspect] = step.bounds
        verdict = Verdict(
            {},
            worst([step.status for step in steps]),
            trace=(*steps, *rubric.unasked(aspects)),
            findings=(UNLIKELY,) * sum(map(unlikely, replies)),
        )
        highest = rubric.add_overall(highest)
        low_ends = rubric.add_overall(lowest).items()
        bounds = {aspect: (low, highest[aspect]) for aspect, low in low_ends}
        return with_middles(verdict, bounds)

    return program
