"""Questions on a prompt, answered on its image: TIFA, VQ2A and the Davidsonian scene graph as three
settings.

Sources: Hu et al., TIFA (ICCV 2023); Yarom et al., What You See is What You Read? (NeurIPS 2023),
VQ2; Cho et al., Davidsonian Scene Graph (ICLR 2024), whose released code counts a question as no
where a parent was *answered* no.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

from vieval_plugin.judges.conversation import turn_units
from vieval_plugin.judges.parsing import Read, object_schema, read_answer, unread
from vieval_plugin.judges.probabilities import with_middles
from vieval_plugin.judges.protocol import (
    Ask,
    Judge,
    Likelihood,
    Path,
    Program,
    Sample,
    Schema,
    Status,
    Step,
    Verdict,
    worst,
)
from vieval_plugin.judges.question_answering.questions import (
    DSG,
    MOST_QUESTIONS,
    SCHEMAS,
    TIFA,
    VQ2A,
    PromptQuestion,
    counted,
    parse_questions,
    questions_in,
)
from vieval_plugin.judges.spec import (
    EVERY_KIND,
    Export,
    JudgeSpec,
    Needs,
    option,
    require_wording,
)
from vieval_plugin.judges.stages import Notes, StageAsker, ask_one, read_as
from vieval_plugin.judges.structured_chat import ChatRequest, ask_all, joined_steps
from vieval_plugin.judges.vqascore import average_bounds, step_of, variants
from vieval_plugin.prompts.pack import Pack

Stage: TypeAlias = Literal["questions", "answers"]
Questions: TypeAlias = Sequence[PromptQuestion]

ASPECT = "SC"
#: Finding of a list of more questions than are asked.
SHORTENED = f"first {MOST_QUESTIONS} questions only"
QUESTIONS: Path = ("questions",)
_LONGEST_LIST = 3072
_LONGEST_ANSWER = 128


@dataclass(frozen=True)
class QuestionAnsweringOptions:
    """Options of the judge."""

    pack: str = option(
        "question_answering/v1",
        "prompt pack: a name from `vieval prompts list`, or a folder",
        folder=True,
    )
    dependencies: bool = option(
        True,
        "count a question as no if a question that it depends on was answered no (dsg)",
    )
    backbones: Mapping[Stage, str] = option(
        {},
        "backbone for each stage, by its name under `backbones` ({questions: gpt})",
    )


def build(
    options: QuestionAnsweringOptions, wording: Pack, setting: str = DSG
) -> Judge:
    """The judge with a prompt pack, in one of its settings.

    The program asks for questions on the prompt, in words that are the same for all its images,
    then each question on the image. SC, in [0, 1], is the share that counts as right (`dsg`,
    `tifa`), or the mean probability of yes (`vq2a`), whose interval is in `bounds`. Without usable
    questions, or with a question that was not answered, the sample has that step's status and no
    score.

    Raises:
        VievalError: the pack does not word the setting.
    """
    require_wording(SPEC, wording, setting)
    wording.require_questions((f"{setting}_answer", f"{setting}_questions"), setting)

    def program(sample: Sample) -> Program:
        asker = StageAsker(wording, sample, options.backbones)
        notes = Notes()
        chat = asker.chat(
            f"{setting}_questions",
            stage="questions",
            path=QUESTIONS,
            schema=SCHEMAS[setting],
            variables=sample.texts,
            max_tokens=_LONGEST_LIST,
        )
        questions = yield from ask_one(
            chat,
            partial(_read_list, setting=setting, shorten=False),
            wording,
            notes,
            partial(_read_list, setting=setting, shorten=True),
        )
        if isinstance(questions, Status):
            return Verdict(
                {},
                questions,
                trace=tuple(notes.trace),
                findings=tuple(notes.findings),
            )
        key = f"{setting}_answer"
        if setting == VQ2A:
            return (yield from _probable(asker, key, questions, notes))
        dependencies = options.dependencies
        return (
            yield from _answered(
                asker,
                key,
                questions,
                notes,
                dependencies,
            )
        )

    return program


def _read_list(
    text: str, setting: str, shorten: bool
) -> Read[tuple[PromptQuestion, ...]]:
    """A list of questions; one that is too long is refused, or its first questions count."""
    reading = read_as(
        text,
        partial(
            parse_questions,
            setting=setting,
            shorten=shorten,
        ),
    )
    if reading.value is not None and len(questions_in(text)) > MOST_QUESTIONS:
        return replace(reading, finding=SHORTENED)
    return reading


def _answered(
    asker: StageAsker,
    key: str,
    questions: Questions,
    notes: Notes,
    dependencies: bool,
) -> Program:
    """Every question answered in words, each by a call of its own."""
    requests = []
    for question in questions:
        schema = object_schema({"answer": {"type": "string", "enum": question.choices}})
        chat = asker.chat(
            key,
            stage="answers",
            path=("answers", question.id),
            schema=schema,
            variables={"question": question.text, "choices": question.choices},
            max_tokens=_LONGEST_ANSWER,
        )
        requests.append(
            ChatRequest(
                chat,
                partial(
                    _read,
                    schema=schema,
                    expected=question.expected,
                ),
            )
        )
    outcomes = yield from ask_all(requests, asker.wording)
    notes.trace += joined_steps(outcomes)
    return verdict_of(
        questions,
        [outcome.final for outcome in outcomes],
        notes.trace,
        dependencies,
        notes.findings,
    )


def _read(text: str, schema: Schema, expected: str) -> Read[str]:
    read = read_as(text, partial(read_answer, schema=schema))
    if read.value is None:
        return unread(read.reason)
    answer = str(read.value["answer"])
    return Read(read.status, answer, (float(answer == expected),))


def verdict_of(
    questions: Sequence[PromptQuestion],
    final: Sequence[Step],
    trace: Sequence[Step],
    dependencies: bool = True,
    findings: Sequence[str] = (),
) -> Verdict:
    """The verdict of answers in words; the score of one that was read is 1 where it is as expected,
    else 0.

    Args:
        questions: of the prompt, at least one.
        final: the step that counts of each question.
        trace: all steps, that with the questions among them.
        dependencies: whether a question counts as no where one that it depends on was answered no.
        findings: of the program.
    """
    status = worst([step.status for step in [*_lists(trace), *final]])
    verdict = Verdict(
        {},
        status,
        trace=tuple(trace),
        findings=tuple(findings),
    )
    if not status.usable:
        return verdict
    right = {
        q.id: step.scores == (1.0,)
        for q, step in zip(
            questions,
            final,
            strict=True,
        )
    }
    counts = counted(questions, right) if dependencies else right
    causes = {True: "depends on a question answered no", False: "answered differently"}
    missed = []
    for question in questions:
        if not counts[question.id]:
            cause = causes[right[question.id]]
            missed.append(f"{question.text} ({cause})")
    as_expected = sum(counts.values())
    rationale = f"{as_expected} of {len(counts)} as expected"
    if missed:
        rationale += f"; not: {', '.join(missed)}"
    score = as_expected / len(counts)
    return replace(verdict, scores={ASPECT: score}, rationale=rationale)


def _probable(
    asker: StageAsker, key: str, questions: Questions, notes: Notes
) -> Program:
    """The probability of yes to every pair of question and answer, and its mean."""
    continuations = variants(*asker.wording.questions[key].scores)
    backbone = asker.backbone("answers")
    asks: list[Ask] = []
    for question in questions:
        variables = {"question": question.text, "answer": question.expected}
        asks.append(
            Likelihood(
                (asker.message(key, variables),),
                continuations,
                ("answers", question.id),
                backbone=backbone,
            )
        )
    replies = yield asks
    pairs = zip(asks, replies, strict=True)
    steps = [step_of(reply, ask.path) for ask, reply in pairs]
    trace = (*notes.trace, *steps)
    status = worst([step.status for step in [*_lists(trace), *steps]])
    verdict = Verdict(
        {},
        status,
        trace=trace,
        findings=tuple(notes.findings),
    )
    return with_middles(verdict, average_bounds(steps))


def titles(trace: Sequence[Step]) -> dict[Path, str]:
    """The words of each question by its path; none without usable questions."""
    words: dict[Path, str] = {}
    for step in _lists(trace):
        for name, text in questions_in(step.answer).items():
            words["answers", name] = text
    return words


def _lists(trace: Sequence[Step]) -> list[Step]:
    """The step with the questions, where they can be used."""
    return [step for step in trace if step.path == QUESTIONS and step.status.usable]


def _labels(options: QuestionAnsweringOptions, setting: str) -> tuple[str, ...]:
    if setting == DSG and not options.dependencies:
        return (setting, "without dependencies")
    return (setting,)


SPEC = JudgeSpec(
    name="question_answering",
    title="Question Answering",
    aspects=(ASPECT,),
    method="questions about the prompt (DSG, TIFA, VQ2A), answered from the image",
    needs={EVERY_KIND: Needs(("output",), ("prompt",))},
    options=QuestionAnsweringOptions,
    build=build,
    settings=(DSG, TIFA, VQ2A),
    pack=lambda options, setting: options.pack,
    calls=lambda options, setting: "2 or more",
    rounds=lambda options, setting: 3 if setting == VQ2A else 2,
    setting_labels=_labels,
    intervals=True,
    stepwise=True,
    titles=titles,
    export=Export(turn_units),
)
