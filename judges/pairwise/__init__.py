"""A judge of contests: all candidates in one question, asked in both orders.

What a model prefers may depend on what it is shown first, so each order's answer is kept, and a
judge that prefers another candidate in another order is called inconsistent. Source of the
practice: Zheng et al., Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena (NeurIPS 2023), on
position bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from vieval_plugin.judges.contests import FORWARD, REVERSE, Contest, JudgeOfContests
from vieval_plugin.judges.conversation import turn_units
from vieval_plugin.judges.pairwise.question import (
    LETTERS,
    Form,
    message,
    presentation_order,
)
from vieval_plugin.judges.pairwise.reading import reader, schema
from vieval_plugin.judges.probabilities import (
    interval_text,
    probability_ranges,
    spellings,
    unlikely,
)
from vieval_plugin.judges.protocol import (
    OUTPUTS,
    Ask,
    Chat,
    Choice,
    Interval,
    Likelihood,
    Path,
    Probabilities,
    Program,
    Reply,
    Status,
    Step,
    Verdict,
    failed_step,
    not_applicable,
    worst,
)
from vieval_plugin.judges.spec import (
    INPUTS,
    Export,
    JudgeSpec,
    Needs,
    option,
    require_wording,
)
from vieval_plugin.judges.structured_chat import (
    ChatRequest,
    ask_all,
    joined_findings,
    joined_reasons,
    joined_steps,
)
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.text.errors import VievalError

Answers: TypeAlias = Literal["four_way", "two_way"]
Orders: TypeAlias = Literal["both", "one"]
Mode: TypeAlias = Literal["answer", "expected"]

#: The finding where one order's answer is not the other's.
INCONSISTENT = "inconsistent"
#: The finding of an answer, in the mode `expected`, that hardly ever begins with a letter asked
#: for.
UNLIKELY = "neither letter is likely"


@dataclass(frozen=True)
class PairwiseOptions:
    """Options of the judge."""

    pack: str = option(
        "pairwise/v1",
        "prompt pack: a name from `vieval prompts list`, or a folder",
        folder=True,
    )
    answers: Answers = option(
        "four_way",
        (
            "possible answers for two candidates: the better one, both good or both "
            "bad (four_way), or only the better one (two_way)"
        ),
    )
    orders: Orders = option(
        "both",
        "show the candidates in both orders, or in only one",
    )
    mode: Mode = option(
        "answer",
        "ask for an answer, or for the probabilities of two letters (expected)",
    )


def build(
    options: PairwiseOptions, wording: Pack, setting: str = ""
) -> JudgeOfContests:
    """The judge with a prompt pack.

    The program asks once an order, all at once, and an order whose reply cannot be read up to
    `wording.reminders` times more; a pack that is answered with labels only once, as its authors
    do. Its verdict has no scores. `choice.votes` has the vote of each order that could be read,
    about the candidates in the contest's order: a word of the scheme `options.answers` for two
    candidates, a ranking for more. In the mode `expected`, `choice.preferences` has P(first)
    - P(second) of each order instead, in [-1, 1] and not divided by their sum; `bounds` has its
      interval.

    Raises:
        VievalError: a pack that is answered with labels, and options that such a pack cannot
            answer.
    """
    require_wording(SPEC, wording, setting)
    wording.require_images_first()
    if wording.asks_for_labels and (options.answers, options.mode) != (
        "four_way",
        "answer",
    ):
        raise VievalError(
            f"prompt pack {wording.name} requires four labels; set "
            f"judges.{SPEC.name}.answers to four_way and mode to answer, or use "
            "another pack"
        )
    orders = (FORWARD, REVERSE) if options.orders == "both" else (FORWARD,)

    def program(contest: Contest) -> Program:
        reason = _unfit(contest, options, wording)
        if reason:
            return not_applicable(reason, ("contest",))
        if options.mode == "expected":
            return (yield from _preferred(contest, orders, wording))
        return (yield from _voted(contest, orders, options, wording))

    return program


def _voted(
    contest: Contest,
    orders: Sequence[str],
    options: PairwiseOptions,
    wording: Pack,
) -> Program:
    number = len(contest.candidates)
    form: Form = options.answers if number == 2 else "ranking"
    labels = wording.asks_for_labels
    reply_schema = None if labels else schema(form, number)
    questions = []
    for order in orders:
        chat = Chat(
            (message(contest, order, form, wording),),
            (order,),
            reply_schema,
        )
        candidate_numbers = presentation_order(order, number)
        read = reader("labels" if labels else form, candidate_numbers)
        questions.append(ChatRequest(chat, read))
    answers = yield from ask_all(questions, wording)
    votes = {}
    final = {}
    for order, answer in zip(orders, answers, strict=True):
        final[order] = answer.final
        if answer.value:
            votes[order] = answer.value
    findings = joined_findings(answers)
    if len(set(votes.values())) > 1:
        findings += (INCONSISTENT,)
    return Verdict(
        {},
        worst([step.status for step in final.values()]),
        joined_reasons(final),
        joined_steps(answers),
        findings=findings,
        choice=Choice(votes),
    )


def _preferred(contest: Contest, orders: Sequence[str], wording: Pack) -> Program:
    letters = spellings(LETTERS[:2])
    asks: list[Ask] = [
        Likelihood(
            (message(contest, order, "letter", wording),),
            letters,
            (order,),
        )
        for order in orders
    ]
    replies = yield asks
    steps = []
    bounds = {}
    preferences = {}
    for reply, order in zip(replies, orders, strict=True):
        step = step_of(reply, order)
        steps.append(step)
        if step.bounds:
            low, high = preference_of(step.bounds, order)
            bounds[order] = (low, high)
            preferences[order] = (low + high) / 2
    findings = [UNLIKELY] * sum(map(unlikely, replies))
    if math.prod(preferences.values()) < 0 and len(preferences) == 2:
        findings.append(INCONSISTENT)
    return Verdict(
        {},
        worst([step.status for step in steps]),
        trace=tuple(steps),
        bounds=bounds,
        findings=tuple(findings),
        choice=Choice(preferences=preferences),
    )


def step_of(reply: Reply, order: str) -> Step:
    """A step whose bounds are the lowest and highest that P(A) - P(B) can be, in [-1, 1]."""
    if not isinstance(reply, Probabilities):
        return failed_step(reply, (order,), "probabilities")
    (low_a, low_b), (high_a, high_b) = probability_ranges(reply)
    # together they are at most 1
    lowest = low_a - min(high_b, 1 - low_a)
    answer = f"P(A) {interval_text(low_a, high_a)}, P(B) {interval_text(low_b, high_b)}"
    bounds = (lowest, min(high_a, 1 - low_b) - low_b)
    return Step((order,), Status.OK, answer=answer, bounds=bounds)


def preference_of(bounds: Interval, order: str) -> Interval:
    """An interval of P(A) - P(B) as one of P(first) - P(second).

    >>> preference_of((0.25, 0.5), "reverse")
    (-0.5, -0.25)
    """
    low, high = bounds
    return (0.0 - high, 0.0 - low) if order == REVERSE else bounds


def _unfit(contest: Contest, options: PairwiseOptions, wording: Pack) -> str:
    """Reason that a contest cannot be asked about in one question, in words; empty if it can."""
    number = len(contest.candidates)
    first = contest.candidates[0]
    if number > 2 and (options.mode == "expected" or wording.asks_for_labels):
        what = (
            "the mode expected"
            if options.mode == "expected"
            else f"prompt pack {wording.name}"
        )
        return f"{what} requires exactly 2 candidates, got {number}"
    if number > len(LETTERS):
        return f"a contest must have at most {len(LETTERS)} candidates, got {number}"
    if contest.kind not in wording.questions:
        return (
            f"prompt pack {wording.name} has no question for the kind {contest.kind!r}"
        )
    roles = wording.questions[contest.kind].images
    missing_roles = [role for role in roles if role not in first.images]
    if missing_roles:
        return (
            f"prompt pack {wording.name} shows the image {missing_roles[0]}, which the "
            "candidates do not have"
        )
    for n, candidate in enumerate(contest.candidates, start=1):
        differs = [
            name
            for name in {**first.texts, **candidate.texts}
            if first.texts.get(name) != candidate.texts.get(name)
        ]
        for role in roles:
            if first.images.get(role) != candidate.images.get(role):
                differs.append(role)
        if candidate.kind != first.kind or differs:
            names = ", ".join(differs) or "kind"
            return (
                "all candidates must have the same conditions, but candidates 1 and "
                f"{n} differ in {names}"
            )
    return ""


def titles(trace: Sequence[Step]) -> Mapping[Path, str]:
    """The orders in words."""
    return (
        {(FORWARD,): "candidates in order", (REVERSE,): "last candidate first"}
        if trace
        else {}
    )


def _labels(options: PairwiseOptions, setting: str) -> tuple[str, ...]:
    answer_format = options.answers if options.mode == "answer" else options.mode
    return (
        (answer_format,)
        if options.orders == "both"
        else (answer_format, f"{FORWARD} only")
    )


SPEC = JudgeSpec(
    name="pairwise",
    title="Pairwise",
    # it picks a winner, which is not a score of any aspect
    aspects=(),
    method="the better of two or more candidates, shown in both orders",
    needs={
        kind: Needs(
            tuple(OUTPUTS if role == "output" else role for role in inputs.images),
            inputs.texts,
        )
        for kind, inputs in INPUTS.items()
    },
    options=PairwiseOptions,
    build=build,
    pack=lambda options, setting: options.pack,
    calls=lambda options, setting: "2" if options.orders == "both" else "1",
    setting_labels=_labels,
    rates="contest",
    titles=titles,
    export=Export(partial(turn_units, kind="contest")),
)
