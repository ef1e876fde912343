"""The pipeline of strong models: three calls, all questions at once.

Source: Tu et al. (2024). The extraction sees the prompt alone; the answers see the image and the
questions, never what was extracted; the evaluation compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from vieval_plugin.judges.parsing import read_answer
from vieval_plugin.judges.protocol import Asking, Chat, Schema, Status
from vieval_plugin.judges.stages import Notes, ask_one, read_as
from vieval_plugin.judges.t2i_eval import schemas
from vieval_plugin.judges.t2i_eval.asker import Asker
from vieval_plugin.judges.t2i_eval.reading import fields_of
from vieval_plugin.judges.t2i_eval.structure import (
    KINDS,
    Extraction,
    Fields,
    JudgedQuestion,
    Question,
    Result,
    path_of,
    results_text,
    structure_text,
)

_MAX_TOKENS = 4096
# ablations that answer and evaluate in one call
_MERGED = ("merged", "no_answering", "no_decomposition")


def judge_questions(
    asker: Asker, extraction: Extraction, notes: Notes
) -> Asking[Result | Status]:
    """Answer all questions in one call, then explain and score everything in another."""
    questions = extraction.questions
    question_variables = {
        "questions": schemas.numbered(questions),
        "with_reference": asker.shows("reference"),
    }
    merged = asker.ablation in _MERGED
    answers = dict[str, Fields]()
    if not merged:
        outcome = yield from _answer(
            asker,
            questions,
            question_variables,
            notes,
        )
        if isinstance(outcome, Status):
            return outcome
        answers = outcome
    parts = yield from _evaluate(
        asker,
        extraction,
        question_variables,
        answers,
        notes,
    )
    if isinstance(parts, Status):
        return Result(tuple(_judged(extraction, answers)))
    for name, question in schemas.numbered(questions):
        if merged or question.kind != "appearance":
            evaluation = fields_of(parts[name])
            answer = answers.get(name, Fields()).answer or evaluation.answer
            answers[name] = replace(evaluation, answer=answer)
    dimensions = {kind: fields_of(parts[kind]) for kind in KINDS if kind in parts}
    judged = tuple(_judged(extraction, answers))
    return Result(judged, dimensions, fields_of(parts["overall"]))


def _answer(
    asker: Asker,
    questions: Sequence[Question],
    question_variables: Mapping[str, Any],
    notes: Notes,
) -> Asking[dict[str, Fields] | Status]:
    captions = asker.ablation != "no_captioning"
    schema = schemas.answers(questions, captions)
    chat = asker.chat(
        "answers",
        stage="answer",
        path=("answers",),
        schema=schema,
        variables={**question_variables, "captions": captions},
        max_tokens=_MAX_TOKENS,
    )
    parts = yield from _ask(asker, chat, schema, notes)
    if isinstance(parts, Status):
        return parts
    names = [name for name, _ in schemas.numbered(questions)]
    return {name: fields_of(parts[name]) for name in names}


def _evaluate(
    asker: Asker,
    extraction: Extraction,
    question_variables: Mapping[str, Any],
    answers: Mapping[str, Fields],
    notes: Notes,
) -> Asking[Mapping[str, Any] | Status]:
    """Explain and score everything, and answer too where the ablation merges both."""
    answers_too = asker.ablation == "merged"
    merged = asker.ablation in _MERGED
    variables = {
        **asker.sample.texts,
        **question_variables,
        "answers_too": answers_too,
        "structure": structure_text(extraction) if extraction.entities else "",
        "answers": results_text(_judged(extraction, answers)),
        "kinds": [kind for kind in KINDS if extraction.questions_of(kind)],
    }
    key = "evaluation"
    if merged:
        key = "merged" if answers_too else "direct"
    schema = schemas.evaluation(
        extraction.questions,
        answers=answers_too,
        appearance=merged,
    )
    chat = asker.chat(
        key,
        stage="overall",
        path=("evaluation",),
        schema=schema,
        variables=variables,
        max_tokens=_MAX_TOKENS,
    )
    return (yield from _ask(asker, chat, schema, notes))


def _judged(
    extraction: Extraction, answers: Mapping[str, Fields]
) -> list[JudgedQuestion]:
    names = [name for name, _ in schemas.numbered(extraction.questions)]
    return [
        JudgedQuestion(path, question, answers.get(name, Fields()))
        for (path, question), name in zip(
            path_of(extraction),
            names,
            strict=True,
        )
    ]


def _ask(
    asker: Asker, chat: Chat, schema: Schema, notes: Notes
) -> Asking[Mapping[str, Any] | Status]:
    """The parts of an answer (`question_1`, `intrinsic`, `overall`), or the status of one that
    could not be read.
    """
    read = partial(read_as, parse=partial(read_answer, schema=schema))
    return (yield from ask_one(chat, read, asker.wording, notes))
