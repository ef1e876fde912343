"""Test question answering by a backbone that answers from a known graph."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.playing import images_of, play, prepared, text_of
from tests.refusals import refuses
from tests.tables import table
from vieval_plugin import Image, Sample, SampleId, Status
from vieval_plugin.judges import question_answering
from vieval_plugin.judges.protocol import Chat, Failure, Likelihood, Probabilities, Text
from vieval_plugin.judges.question_answering import titles
from vieval_plugin.prompts import packs

PROMPT = "a red cat on a blue mat"
GRAPH = [
    {"id": 1, "question": "Is there a cat?", "parents": []},
    {"id": 2, "question": "Is there a mat?", "parents": []},
    {"id": 3, "question": "Is the cat red?", "parents": [1]},
    {"id": 4, "question": "Is the mat blue?", "parents": [2]},
    {"id": 5, "question": "Is the cat on the mat?", "parents": [1, 2]},
]
CHOICES = [
    {"question": question, "choices": choices, "answer": answer}
    for question, choices, answer in (
        ("What animal is there?", ["dog", "cat", "bird"], "cat"),
        ("What colour is the animal?", ["red", "black"], "red"),
        ("Is there a mat?", ["yes", "no"], "yes"),
        ("Where is the animal?", ["on the mat", "in a tree"], "on the mat"),
    )
]
PAIRS = [
    {"question": "What is on the mat?", "answer": "a cat"},
    {"question": "What colour is it?", "answer": "red"},
]


def sample(uid="1"):
    images = {"output": Image(Path(f"{uid}.png"))}
    texts = {"prompt": PROMPT}
    return Sample(SampleId("b", "tig", "m", uid), images, texts, kind="tig")


def answering(questions, answers):
    """A backbone that lists these questions and answers each by its number."""

    def reply(ask):
        if ask.path == ("questions",):
            return Text(json.dumps({"questions": questions}))
        answer = answers[int(ask.path[1]) - 1]
        is_word = isinstance(answer, str)
        return Text(json.dumps({"answer": answer})) if is_word else answer

    return reply


def probable(low, high=None):
    return Probabilities((low, *[0.0] * 5), (low if high is None else high, *[0.0] * 5))


def judged(setting, questions, answers, **options):
    judge = prepared("question_answering", setting, **options)
    return play(judge.program(sample()), answer=answering(questions, answers))


@pytest.mark.parametrize(
    ("answers", "score", "without"),
    [
        (["yes"] * 5, 1.0, 1.0),
        # the cat's colour and place depend on the cat
        (["no", "yes", "yes", "yes", "yes"], 2 / 5, 4 / 5),
        (["yes", "no", "no", "yes", "no"], 1 / 5, 2 / 5),
        (["no"] * 5, 0.0, 0.0),
    ],
)
def test_a_question_that_depends_on_a_no_counts_as_no(answers, score, without):
    verdict = judged("dsg", GRAPH, answers).verdict
    assert verdict.scores == {"SC": pytest.approx(score)}
    alone = judged("dsg", GRAPH, answers, dependencies=False).verdict
    assert alone.scores == {"SC": pytest.approx(without)}


def chain(count):
    """Questions of which each depends on the one before."""
    return [
        {"id": n, "question": f"Is it {n}?", "parents": [n - 1] if n > 1 else []}
        for n in range(1, count + 1)
    ]


def test_a_question_depends_on_what_its_parents_were_answered():
    """The released code: a grandchild of a no is a no only if its own parent was answered no."""
    verdict = judged("dsg", chain(3), ["no", "yes", "yes"]).verdict
    assert verdict.scores == {"SC": pytest.approx(1 / 3)}


def test_the_share_of_choices_that_are_as_expected():
    played = judged("tifa", CHOICES, ["cat", "black", "yes", "On the mat"])
    assert played.verdict.scores == {"SC": 0.75}
    wrong = "What colour is the animal? (answered differently)"
    assert played.verdict.rationale == f"3 of 4 as expected; not: {wrong}"
    answer = played.asked("answers/1").schema["properties"]["answer"]
    assert answer["enum"] == ("dog", "cat", "bird")


def test_the_mean_probability_of_yes_and_its_interval():
    played = judged("vq2a", PAIRS, [probable(0.5, 0.7), probable(0.3)])
    assert played.verdict.scores == {"SC": pytest.approx(0.45)}
    assert played.verdict.bounds == {"SC": pytest.approx((0.4, 0.5))}
    assert [type(ask) for ask in played.asks] == [Chat, Likelihood, Likelihood]
    asked = 'Look at this picture. To the question "What is on the mat?", is "a cat"'
    assert played.text("answers/1").startswith(asked)


def test_questions_are_asked_of_the_prompt_alone_and_answers_of_the_image():
    program = prepared("question_answering", "dsg").program
    reply = answering(GRAPH, ["yes"] * 5)
    first, second = (play(program(sample(uid)), answer=reply) for uid in "12")
    questions, answers = first.rounds
    assert (len(questions), len(answers)) == (1, 5)
    # all images of a prompt ask the same first question, which a store therefore answers once
    assert questions == second.rounds[0]
    assert images_of(questions[0]) == []
    for ask in answers:
        assert [image.source for image in images_of(ask)] == [Path("1.png")]
        assert PROMPT not in text_of(ask)


def test_each_stage_may_have_a_backbone_and_titles_are_the_questions():
    played = judged("dsg", GRAPH, ["yes"] * 5, backbones={"questions": "strong"})
    assert [ask.backbone for ask in played.asks] == ["strong", *["judge"] * 5]
    found = titles(played.verdict.trace)
    assert found["answers", "5"] == "Is the cat on the mat?"


@pytest.mark.parametrize(*table("useless_questions.jsonl"))
def test_useless_questions_are_asked_for_again(setting, questions, reason):
    played = judged(setting, questions, [])
    assert [[label] for label in ("questions", "questions")] == played.labels
    assert (played.verdict.status, played.verdict.scores) == (Status.PARSE_FAILURE, {})
    assert reason in played.verdict.reason
    assert played.verdict.findings == ("unreadable answer",)


def there(numbers):
    return [{**CHOICES[2], "question": f"Is there {n}?"} for n in numbers]


@pytest.mark.parametrize(
    ("setting", "items"),
    [
        ("dsg", chain(98)),
        ("tifa", there(n % 140 for n in range(150))),
        ("tifa", there(n // 2 for n in range(150))),
    ],
)
def test_of_too_many_questions_the_first_are_asked_once_each(setting, items):
    played = judged(setting, items, ["yes"] * 150)
    first, second, *_ = played.verdict.trace
    assert (first.status, second.status) == (Status.PARSE_FAILURE, Status.REPAIRED)
    assert f"at most 24 questions, got {len(items)}" in first.reason
    assert played.calls == 26
    assert len(set(map(text_of, played.rounds[2]))) == 24
    assert played.verdict.scores == {"SC": 1.0}
    assert played.verdict.findings == ("first 24 questions only",)


GONE = Failure(Status.API_ERROR, "gone")
DECLINED = Failure(Status.REFUSAL, "declined")


@pytest.mark.parametrize(
    ("setting", "questions", "answers", "status", "calls"),
    [
        ("dsg", GRAPH, ["yes", "yes", GONE, "yes", "yes"], "api_error", 6),
        # what depends on it is not known to count
        ("dsg", GRAPH, [DECLINED, "yes", "yes", "yes", "yes"], "refusal", 6),
        # the answer that could not be read was asked for again
        ("dsg", GRAPH, ["yes", "yes", "maybe", "yes", "yes"], "parse_failure", 7),
        ("vq2a", PAIRS, [GONE, probable(0.5)], "api_error", 3),
    ],
)
def test_an_answer_that_is_not_there_leaves_no_score(
    setting, questions, answers, status, calls
):
    played = judged(setting, questions, answers)
    assert (played.verdict.status, played.verdict.scores) == (status, {})
    assert played.calls == calls


def test_questions_that_were_saved_by_asking_again_leave_the_sample_repaired():
    replies = iter([Text("no list"), Text(json.dumps({"questions": PAIRS}))])
    answer = lambda ask: next(replies) if isinstance(ask, Chat) else probable(0.5)
    program = prepared("question_answering", "vq2a").program(sample())
    verdict = play(program, answer=answer).verdict
    assert (verdict.status, verdict.scores) == (Status.REPAIRED, {"SC": 0.5})


def test_a_pack_without_words_for_the_setting_is_refused():
    pack = packs.load("question_answering/v1")
    worded = {key: one for key, one in pack.questions.items() if key != "tifa_answer"}
    options = question_answering.QuestionAnsweringOptions()
    lacking = "has no question 'tifa_answer', which tifa requires"
    fewer = replace(pack, questions=worded)
    refuses(lacking, question_answering.build, options, fewer, "tifa")
