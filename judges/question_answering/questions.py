"""Questions on a prompt with the answers that an image of it should give, in three forms, and what
makes them usable.

`dsg` has yes/no questions, each with those that must be answered yes for it to make sense; `tifa`
has questions with choices, one of which is right; `vq2a` has pairs of question and answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from vieval_plugin.judges.parsing import (
    list_schema,
    object_schema,
    read_answer,
    text_schema,
)

DSG = "dsg"
TIFA = "tifa"
VQ2A = "vq2a"
YES = "yes"
NO = "no"

#: Most questions of a prompt.
MOST_QUESTIONS = 24
_MOST_CHOICES = 6
_QUESTION = text_schema(200)
_ANSWER = text_schema(80)
_ID = {
    "type": "integer",
    "minimum": 1,
    "maximum": 99,
}
_ITEMS: Mapping[str, dict[str, Any]] = {
    DSG: {
        "id": _ID,
        "question": _QUESTION,
        "parents": list_schema(_ID),
    },
    TIFA: {
        "question": _QUESTION,
        "choices": list_schema(_ANSWER, 2, _MOST_CHOICES),
        "answer": _ANSWER,
    },
    VQ2A: {"question": _QUESTION, "answer": _ANSWER},
}
_LISTS = {
    setting: list_schema(object_schema(item), 1, MOST_QUESTIONS)
    for setting, item in _ITEMS.items()
}
#: Schema of the list of questions by setting.
SCHEMAS = {
    setting: object_schema({"questions": questions})
    for setting, questions in _LISTS.items()
}


@dataclass(frozen=True)
class PromptQuestion:
    """Question about an image of a prompt."""

    #: Name among the questions of its prompt.
    id: str
    #: The question.
    text: str
    #: Answer that an image of the prompt gives.
    expected: str = YES
    #: Answers to choose from.
    choices: tuple[str, ...] = (YES, NO)
    #: Names of the questions that must be answered yes for this one to make sense.
    parents: tuple[str, ...] = ()


def parse_questions(
    text: str, setting: str, shorten: bool = False
) -> tuple[tuple[PromptQuestion, ...], bool]:
    """The questions of a reply, and whether it came exactly as asked for.

    Args:
        text: the reply.
        setting: the form of its questions.
        shorten: take the first 24 of more, each once.

    Raises:
        ValueError: it is no list of questions, or they are no use: they are more than 24, two have
            one id, a question depends on one that is not there or on itself, or an answer is not
            among its choices.

    >>> parse_questions('{"questions": [{"question": "What is it?", "answer": "a cat"}]}', VQ2A)[0][0].expected
    'a cat'
    """
    answer, exact = read_answer(text, SCHEMAS[setting])
    numbered = enumerate(answer["questions"], start=1)
    questions = tuple(_question(number, item) for number, item in numbered)
    if len(questions) > MOST_QUESTIONS:
        if not shorten:
            raise ValueError(
                f"there must be at most {MOST_QUESTIONS} questions, got {len(questions)}"
            )
        questions = _shortened(questions)
        exact = False
    _require_graph(questions)
    return questions, exact


def _shortened(questions: Sequence[PromptQuestion]) -> tuple[PromptQuestion, ...]:
    """The first questions of a long list, each text once, without those that they depend on
    behind them.
    """
    by_text = {question.text.casefold(): question for question in reversed(questions)}
    first_questions = []
    for question in questions:
        if by_text[question.text.casefold()] is question:
            first_questions.append(question)
    del first_questions[MOST_QUESTIONS:]
    ids = {question.id for question in first_questions}
    shortened = []
    for question in first_questions:
        parents = tuple(parent for parent in question.parents if parent in ids)
        shortened.append(replace(question, parents=parents))
    return tuple(shortened)


def _question(number: int, item: Mapping[str, Any]) -> PromptQuestion:
    name = f"{item.get('id', number):g}"
    text = item["question"].strip()
    if "answer" not in item:
        parents = tuple(f"{parent:g}" for parent in item["parents"])
        return PromptQuestion(name, text, parents=parents)
    expected = _plain(item["answer"])
    if "choices" not in item:
        return PromptQuestion(name, text, expected)
    choices = {}
    for choice in map(_plain, item["choices"]):
        choices[choice.casefold()] = choice
    is_distinct = len(choices) == len(item["choices"])
    if not is_distinct or expected.casefold() not in choices:
        raise ValueError(
            f"question {name}: the choices must be distinct and include the answer"
        )
    choice = choices[expected.casefold()]
    return PromptQuestion(
        name,
        text,
        choice,
        tuple(choices.values()),
    )


def _plain(answer: str) -> str:
    """Normalize an answer for comparison."""
    return " ".join(answer.replace("_", " ").split())


def _require_graph(questions: Sequence[PromptQuestion]) -> None:
    """Raise ValueError if dependencies are not an acyclic graph over these questions."""
    parents = {question.id: question.parents for question in questions}
    if len(parents) < len(questions):
        raise ValueError("two questions have the same id")
    for question in questions:
        unknown = [parent for parent in question.parents if parent not in parents]
        if unknown:
            raise ValueError(
                f"question {question.id} depends on question {unknown[0]}, which does not exist"
            )
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        raise ValueError(
            "questions must not depend on each other in a cycle: "
            f"{', '.join(error.args[1])}"
        ) from None


def to_json(questions: Sequence[PromptQuestion]) -> str:
    """Yes/no questions as a model would list them."""
    items = []
    for q in questions:
        items.append(
            {
                "id": int(q.id),
                "question": q.text,
                "parents": [*map(int, q.parents)],
            }
        )
    return json.dumps({"questions": items})


def questions_in(text: str) -> dict[str, str]:
    """The words of each question of a list in any of the forms, by its id; none where the text
    is no such list.
    """
    for schema in SCHEMAS.values():
        try:
            items = read_answer(text, schema)[0]["questions"]
        except ValueError:
            continue
        words = {}
        for number, item in enumerate(items, start=1):
            words[f"{item.get('id', number):g}"] = item["question"]
        return words
    return {}


def counted(
    questions: Sequence[PromptQuestion], right: Mapping[str, bool]
) -> dict[str, bool]:
    """Tell of each question whether it counts as right: answered as expected, and so is each that
    it depends on.

    Args:
        questions: of one prompt.
        right: whether each was answered as expected, by its id.

    >>> cat, red = PromptQuestion("1", "A cat?"), PromptQuestion("2", "Is the cat red?", parents=("1",))
    >>> counted([cat, red], {"1": False, "2": True})
    {'1': False, '2': False}
    """
    counts = {}
    for question in questions:
        parents_right = [right.get(parent, True) for parent in question.parents]
        counts[question.id] = right[question.id] and all(parents_right)
    return counts
