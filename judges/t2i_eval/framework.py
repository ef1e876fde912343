"""The pipeline of strong models: three calls, all questions at once.

Source: Tu et al. (2024). The extraction sees the prompt alone; the answers see the image and the questions, never what
was extracted; the evaluation compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from vieval_plugin.judges.free_text_scores import contradicts
from vieval_plugin.judges.parsing import ONE_ANSWER, answer_objects, without_thinking
from vieval_plugin.judges.protocol import Ask, Chat, Reply, Status
from vieval_plugin.judges.refusals import withdrawn
from vieval_plugin.judges.structured_chat import ChatRequest, Read, ask_all
from vieval_plugin.judges.t2i_eval import schemas
from vieval_plugin.judges.t2i_eval.asker import UNANSWERED, Asker, Notes
from vieval_plugin.judges.t2i_eval.reading import (
    MISSING,
    REPEATED,
    WITHDRAWN_SCORE_REASON,
    as_json,
    fields,
    items,
    repeats,
)
from vieval_plugin.judges.t2i_eval.structure import (
    KINDS,
    Extraction,
    Fields,
    JudgedQuestion,
    Kind,
    Question,
    Result,
    folded,
    path_of,
    results_text,
    structure_text,
)

PartTexts = Mapping[str, Mapping[str, str]]
"""What a reply says, by part (`question_1`, `intrinsic`, `overall`) and name (`answer`, `explanation`, `score`)."""

_MAX_TOKENS = 4096
_NAMES = ("answer", "explanation", "score")


def judge_questions(
    asker: Asker, extraction: Extraction, notes: Notes
) -> Generator[list[Ask], list[Reply], Result | Status]:
    """Answer all questions in one call, then explain and score everything in another."""
    ablation, questions = asker.ablation, extraction.questions
    listed: dict[str, Any] = {"questions": schemas.numbered(questions), "with_reference": asker.with_reference}
    merged = ablation in ("merged", "no_answering")
    answers: dict[str, Fields] = {}
    if not merged:
        captions = ablation != "no_captioning"
        variables = {**listed, "captions": captions}
        chat = asker.chat(
            "answers", "answer", ("answers",), schemas.answers(questions, captions), variables, _MAX_TOKENS
        )
        parts = yield from _ask(asker, chat, questions, _missing_answers, notes)
        if isinstance(parts, Status):
            return parts
        answers = {
            name: _fields(parts.get(name, {}), q.kind == "appearance") for name, q in schemas.numbered(questions)
        }
        notes.findings += [UNANSWERED] * sum(answer == Fields() for answer in answers.values())
    variables = {
        **asker.sample.texts,
        **listed,
        "answers_too": ablation == "merged",
        "structure": structure_text(extraction) if extraction.entities else "",
        "answers": results_text(_judged(extraction, answers)),
        "kinds": [kind for kind in KINDS if extraction.of(kind)],
    }
    key = "evaluation" if not merged else "merged" if ablation == "merged" else "direct"
    schema = schemas.evaluation(questions, answers=ablation == "merged", appearance=merged)
    chat = asker.chat(key, "overall", ("evaluation",), schema, variables, _MAX_TOKENS)
    parts = yield from _ask(asker, chat, questions, _missing_score, notes)
    if isinstance(parts, Status):
        return Result(tuple(_judged(extraction, answers)))
    for name, question in schemas.numbered(questions):
        if merged or question.kind != "appearance":
            known, evaluation = answers.get(name, Fields()), _fields(parts.get(name, {}), True)
            answers[name] = Fields(known.answer or evaluation.answer, evaluation.explanation, evaluation.score)
    dimensions: dict[Kind, Fields] = {kind: _fields(parts[kind], True) for kind in KINDS if kind in parts}
    return Result(tuple(_judged(extraction, answers)), dimensions, _fields(parts["overall"], True))


def _judged(extraction: Extraction, answers: Mapping[str, Fields]) -> list[JudgedQuestion]:
    names = [name for name, _ in schemas.numbered(extraction.questions)]
    return [
        JudgedQuestion(path, q, answers.get(n, Fields()))
        for (path, q), n in zip(path_of(extraction), names, strict=True)
    ]


def _ask(
    asker: Asker, chat: Chat, questions: Sequence[Question], complete: Callable[[PartTexts], str], notes: Notes
) -> Generator[list[Ask], list[Reply], PartTexts | Status]:
    def read(text: str) -> Read[PartTexts]:
        if repeats(text):
            return Read(Status.PARSE_FAILURE, reason=REPEATED)
        try:
            parts = read_parts(without_thinking(text), questions)
        except ValueError as error:
            return Read(Status.PARSE_FAILURE, reason=str(error))
        missing = complete(parts)
        return Read(Status.PARSE_FAILURE, reason=f"{MISSING}: {missing}") if missing else Read(Status.OK, parts)

    [answer] = yield from ask_all([ChatRequest(chat, read)], asker.wording)
    notes.trace += answer.steps
    if answer.value is None:
        return notes.unread(answer.final)
    return answer.value


def _missing_answers(parts: PartTexts) -> str:
    return "" if parts else "answers"


def _missing_score(parts: PartTexts) -> str:
    return "the overall score" if _fields(parts.get("overall", {}), True).score is None else ""


def _fields(texts: Mapping[str, str], scored: bool) -> Fields:
    """Answer to one question; a score that is none leaves the rest."""
    names = [name for name in ("answer", "explanation") if texts.get(name)]
    with_score = fields(texts, [*names, "score"]) if scored and "score" in texts else Read[Fields](Status.OK)
    return with_score.value or fields(texts, names).value or Fields()


def read_parts(text: str, questions: Sequence[Question]) -> PartTexts:
    """Parts of a reply, for each question, each dimension and the whole: JSON in the asked shape, or Markdown.

    In Markdown a part begins with an item `question: ...` or with a heading that names the dimension's summary or the
    overall score; questions count in their order unless their words tell otherwise.

    Raises:
        ValueError: something was said twice and not the same, or taken back.
    """
    document = as_json(text)
    objects, outside = answer_objects(text, *_NAMES)
    further = [item.value for item in items("\n".join(outside)) if item.key not in _NAMES]
    if withdrawn(outside if objects else ["", "\n".join(further)]):
        raise ValueError(WITHDRAWN_SCORE_REASON)
    if objects and (len(objects) > 1 or document is None or contradicts("\n".join(outside), (), 10)):
        raise ValueError(ONE_ANSWER)
    if document is not None:
        return {name: _texts(part) for name, part in document.items() if isinstance(part, dict)}
    by_words = {folded(question.text): name for name, question in schemas.numbered(questions)}
    parts: dict[str, dict[str, str]] = {}
    part, number = "", 0
    for item in items(text):
        title = item.headings[-1].lower() if item.headings else ""
        summary = next((kind for kind in KINDS if kind in title), "") if "summary" in title else ""
        part = (
            "overall"
            if "overall score" in title or title == "overall"
            else summary or ("" if part in (*KINDS, "overall") else part)
        )
        if item.key == "question":
            number += 1
            part = by_words.get(folded(item.value), f"question_{number}")
        known = parts.setdefault(part, {}) if part and item.key in _NAMES else {}
        if known.setdefault(item.key, item.value) != item.value:
            raise ValueError(ONE_ANSWER)
    return parts


def _texts(part: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in part.items() if value not in (None, "")}
