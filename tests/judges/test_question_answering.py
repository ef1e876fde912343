"""Test question answering by a backbone that answers from a known graph."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.playing import images_of, play, prepared, text_of
from tests.refusals import refuses
from vieval_plugin import Image, Sample, SampleId, Status
from vieval_plugin.judges import question_answering
from vieval_plugin.judges.protocol import Chat, Likelihood, Probabilities, Text
from vieval_plugin.judges.question_answering import titles
from vieval_plugin.prompts import packs

PROMPT = "a red cat on a blue mat"
NUMBERS = "12345"
GRAPH = [{"id": int(n), "question": f"Is it {n}?", "parents": []} for n in NUMBERS]
CHOICES = {"question": "What is it?", "choices": ["dog", "cat"], "answer": "cat"}
PAIR = {"question": "What is on the mat?", "answer": "a cat"}


def sample(uid="1"):
    images = {"output": Image(Path(f"{uid}.png"))}
    texts = {"prompt": PROMPT}
    return Sample(SampleId("b", "tig", "m", uid), images, texts, kind="tig")


def judged(setting, questions, answer="yes", uid="1", **options):
    """The played judge, whose model lists these questions and answers all alike."""

    def reply(ask):
        if isinstance(ask, Likelihood):
            return Probabilities((0.5,) * 6, (0.5,) * 6)
        is_first = ask.path == ("questions",)
        told = {"questions": questions} if is_first else {"answer": answer}
        return Text(json.dumps(told))

    judge = prepared("question_answering", setting, **options)
    return play(judge.program(sample(uid)), answer=reply)


def test_an_answer_is_a_choice_or_a_probability():
    choice = judged("tifa", [CHOICES], "cat").asked("answers/1")
    assert choice.schema["properties"]["answer"]["enum"] == ("dog", "cat")
    played = judged("vq2a", [PAIR])
    assert [type(ask) for ask in played.asks] == [Chat, Likelihood]
    asked = 'Look at this picture. To the question "What is on the mat?", is "a cat"'
    assert played.text("answers/1").startswith(asked)


def chain(count):
    """Questions of which each depends on the one before."""
    return [
        {"id": n, "question": f"Is it {n}?", "parents": [n - 1] if n > 1 else []}
        for n in range(1, count + 1)
    ]


def test_questions_are_asked_of_the_prompt_alone_and_answers_of_the_image():
    first, second = (judged("dsg", GRAPH, uid=uid) for uid in "12")
    questions, answers = first.rounds
    assert (len(questions), len(answers)) == (1, 5)
    # all images of a prompt ask the same first question, which a store therefore answers once
    assert questions == second.rounds[0]
    assert images_of(questions[0]) == []
    for ask in answers:
        assert [image.source for image in images_of(ask)] == [Path("1.png")]
        assert PROMPT not in text_of(ask)


def test_each_stage_may_have_a_backbone_and_titles_are_the_questions():
    played = judged("dsg", GRAPH, backbones={"questions": "strong"})
    assert [ask.backbone for ask in played.asks] == ["strong", *["judge"] * 5]
    found = titles(played.verdict.trace)
    assert found["answers", "5"] == "Is it 5?"


def there(numbers):
    choices = {"choices": ["yes", "no"], "answer": "yes"}
    return [{**choices, "question": f"Is there {n}?"} for n in numbers]


@pytest.mark.parametrize(
    ("setting", "items"),
    [
        ("dsg", chain(98)),
        ("tifa", there(n % 140 for n in range(150))),
        ("tifa", there(n // 2 for n in range(150))),
    ],
)
def test_of_too_many_questions_the_first_are_asked_once_each(setting, items):
    played = judged(setting, items)
    first, second, *_ = played.verdict.trace
    assert (first.status, second.status) == (Status.PARSE_FAILURE, Status.REPAIRED)
    assert f"at most 24 questions, got {len(items)}" in first.reason
    assert played.calls == 26
    assert len(set(map(text_of, played.rounds[2]))) == 24
    assert played.verdict.scores == {"SC": 1.0}
    assert played.verdict.findings == ("first 24 questions only",)


def test_a_pack_without_words_for_the_setting_is_refused():
    pack = packs.load("question_answering/v1")
    worded = {key: one for key, one in pack.questions.items() if key != "tifa_answer"}
    options = question_answering.QuestionAnsweringOptions()
    lacking = "has no question 'tifa_answer', which tifa requires"
    fewer = replace(pack, questions=worded)
    refuses(lacking, question_answering.build, options, fewer, "tifa")
