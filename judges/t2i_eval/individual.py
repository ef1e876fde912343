"""The pipeline of small models: a call of its own for every question and every stage, eight deep.

Source: Tu et al. (2024), the individual-task pipeline. Calls: 1 + 2 for each question of appearance
+ 3 for each other + 2 for each dimension that has questions + 2; depth 8 however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence

from vieval_plugin.judges.protocol import Asking
from vieval_plugin.judges.stages import Notes
from vieval_plugin.judges.t2i_eval import schemas
from vieval_plugin.judges.t2i_eval.asker import Asker, Stage, Thread, Turn, converse
from vieval_plugin.judges.t2i_eval.structure import (
    KINDS,
    Extraction,
    Fields,
    JudgedQuestion,
    Kind,
    Result,
    path_of,
    results_text,
    structure_text,
    summaries_text,
)


def judge_questions(
    asker: Asker, extraction: Extraction, notes: Notes
) -> Asking[list[JudgedQuestion]]:
    """Answer, explain and score every question, all of them at once."""
    context = {
        **asker.sample.texts,
        "structure": structure_text(extraction) if extraction.entities else "",
        "structure_info": structure_text(extraction, questions=True),
    }
    questions = path_of(extraction)
    threads = []
    for path, question in questions:
        blind = {
            "question": question.text,
            "kind": question.kind,
            "entities": question.entities,
            "with_reference": asker.shows("reference"),
        }
        turns = _turns(question.kind, asker.ablation)
        threads.append(Thread(path, turns, {**context, **blind}, blind))
    answers = yield from converse(asker, threads, notes)
    judged = [
        JudgedQuestion(path, question, fields)
        for (path, question), fields in zip(
            questions,
            answers,
            strict=True,
        )
    ]
    return judged


def _turns(kind: Kind, ablation: str) -> tuple[Turn, ...]:
    appearance = kind == "appearance"
    if ablation == "merged":
        schema = (
            schemas.EXPLANATION_AND_SCORE if appearance else schemas.ANSWER_AND_SCORE
        )
        return (
            Turn(
                "judgement",
                f"{kind}_judgement",
                "score",
                schema,
                appearance,
            ),
        )
    is_direct = ablation == "no_answering" and not appearance
    explanation = Turn(
        "explanation",
        f"{kind}_{'direct' if is_direct else 'explanation'}",
        "explanation",
        schemas.EXPLANATION,
        appearance,
    )
    score = Turn(
        "score",
        f"{kind}_score",
        "score",
        schemas.SCORE,
        appearance,
    )
    if appearance or is_direct:
        return (explanation, score)
    answer = Turn(
        "answer",
        f"{kind}_answer",
        "answer",
        schemas.ANSWER,
        blind=True,
    )
    return (answer, explanation, score)


def summarise(
    asker: Asker,
    extraction: Extraction,
    judged: Sequence[JudgedQuestion],
    notes: Notes,
) -> Asking[Result]:
    """A summary and a score of each dimension that has judged questions, then of the whole."""
    context = {
        **asker.sample.texts,
        "structure_info": structure_text(extraction, questions=True),
    }
    kinds = []
    threads = []
    for kind in KINDS:
        kind_questions = [entry for entry in judged if entry.question.kind == kind]
        if not any(entry.reply.explanation for entry in kind_questions):
            continue
        kinds.append(kind)
        variables = {
            **context,
            "dimension": kind,
            "results": results_text(kind_questions),
        }
        turns = _closing(f"{kind}_summary", "summary")
        threads.append(Thread((kind,), turns, variables))
    summaries = yield from converse(asker, threads, notes)
    dimensions = dict(zip(kinds, summaries, strict=True))
    if not any(summary.explanation for summary in summaries):
        return Result(tuple(judged), dimensions, Fields())
    variables = {
        **context,
        "results": results_text(judged),
        "summaries": summaries_text(dimensions),
    }
    thread = Thread(
        ("overall",),
        _closing("overall", "overall"),
        variables,
    )
    [overall] = yield from converse(asker, [thread], notes)
    return Result(tuple(judged), dimensions, overall)


def _closing(key: str, step: Stage) -> tuple[Turn, ...]:
    score = Turn("score", f"{key}_score", step, schemas.SCORE)
    return (Turn("explanation", key, step, schemas.EXPLANATION), score)
