"""JSON schemas of T2I-Eval's answers. Lengths are bounded, so that an answer under them ends."""

from __future__ import annotations

from collections.abc import Sequence

from vieval_plugin.judges.parsing import (
    list_schema,
    number_schema,
    object_schema,
    text_schema,
)
from vieval_plugin.judges.protocol import Schema
from vieval_plugin.judges.t2i_eval.structure import KINDS, Question


def _object(**properties: Schema) -> Schema:
    return object_schema(properties)


_NAME = text_schema(50)
_QUESTION = text_schema(140)
_PROSE = text_schema(600)
_SCORE = number_schema(0, 10)

ANSWER = _object(answer=_PROSE)
EXPLANATION = _object(explanation=_PROSE)
SCORE = _object(score=_SCORE)
EXPLANATION_AND_SCORE = _object(explanation=_PROSE, score=_SCORE)
ANSWER_AND_SCORE = _object(
    answer=_PROSE,
    explanation=_PROSE,
    score=_SCORE,
)
QUALITY = _object(reasoning=_PROSE, score=number_schema(0, 5))


def extraction(captions: bool) -> Schema:
    """Entities with their attributes, each with its question inside it, and relations with
    theirs.
    """
    attribute = _object(
        name=_NAME,
        value=_NAME,
        question=_QUESTION,
    )
    entity = _object(
        name=_NAME,
        **{"caption": text_schema(200)} if captions else {},
        appearance_question=_QUESTION,
        attributes=list_schema(attribute, 1),
    )
    relation = _object(
        entities=list_schema(_NAME, 1, 4),
        value=_NAME,
        question=_QUESTION,
    )
    return _object(entities=list_schema(entity, 1), relations=list_schema(relation))


def answers(questions: Sequence[Question], captions: bool) -> Schema:
    """Schema of one answer a question, in the questions' order; appearance is scored at once."""
    by_question = {
        name: EXPLANATION_AND_SCORE if q.kind == "appearance" else ANSWER
        for name, q in numbered(questions)
    }
    return _object(**{"caption": text_schema(600)} if captions else {}, **by_question)


def evaluation(
    questions: Sequence[Question], answers: bool, appearance: bool
) -> Schema:
    """Schema of one explanation and score a question (with its answer, and for those of appearance,
    if asked), then each dimension's that has questions, then the overall ones.
    """
    by_question = {}
    for name, q in numbered(questions):
        if q.kind != "appearance":
            by_question[name] = ANSWER_AND_SCORE if answers else EXPLANATION_AND_SCORE
        elif appearance:
            by_question[name] = EXPLANATION_AND_SCORE
    kinds = [kind for kind in KINDS if any(q.kind == kind for q in questions)]
    by_dimension = dict.fromkeys([*kinds, "overall"], EXPLANATION_AND_SCORE)
    return _object(**by_question, **by_dimension)


def numbered(questions: Sequence[Question]) -> list[tuple[str, Question]]:
    """Questions under the names they go by in one reply: `question_1`, `question_2`, ..."""
    numbers = range(1, len(questions) + 1)
    names = [f"question_{number}" for number in numbers]
    return list(zip(names, questions, strict=True))
