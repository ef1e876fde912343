"""Question answering by a scripted backbone that answers from a known graph: scores by hand,
calls, and bad graphs.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.playing import play, prepared
from tests.tables import table
from vieval_plugin.judges import question_answering
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Image,
    Likelihood,
    Probabilities,
    Sample,
    SampleId,
    Status,
    Text,
)
from vieval_plugin.judges.question_answering import titles
from vieval_plugin.prompts import packs
from vieval_plugin.results.lookup import conversation
from vieval_plugin.text.errors import VievalError

PROMPT = "a red cat on a blue mat"
GRAPH = [
    {"id": 1, "question": "Is there a cat?", "parents": []},
    {"id": 2, "question": "Is there a mat?", "parents": []},
    {"id": 3, "question": "Is the cat red?", "parents": [1]},
    {"id": 4, "question": "Is the mat blue?", "parents": [2]},
    {"id": 5, "question": "Is the cat on the mat?", "parents": [1, 2]},
]
CHOICES = [
    {
        "question": "What animal is there?",
        "choices": ["dog", "cat", "bird"],
        "answer": "cat",
    },
    {
        "question": "What colour is the animal?",
        "choices": ["red", "black"],
        "answer": "red",
    },
    {"question": "Is there a mat?", "choices": ["yes", "no"], "answer": "yes"},
    {
        "question": "Where is the animal?",
        "choices": ["on the mat", "in a tree"],
        "answer": "on the mat",
    },
]
PAIRS = [
    {"question": "What is on the mat?", "answer": "a cat"},
    {"question": "What colour is it?", "answer": "red"},
]


def sample(uid="1", prompt=PROMPT):
    return Sample(
        SampleId("b", "tig", "m", uid),
        {"output": Image(Path(f"{uid}.png"))},
        {"prompt": prompt},
        kind="tig",
    )


def answering(questions, answers):
    """A backbone that lists these questions and answers each by its number."""

    def reply(ask):
        if ask.path == ("questions",):
            return Text(json.dumps({"questions": questions}))
        answer = answers[int(ask.path[1]) - 1]
        return (
            answer
            if not isinstance(answer, str)
            else Text(json.dumps({"answer": answer}))
        )

    return reply


def judged(setting, questions, answers, **options):
    return play(
        prepared("question_answering", setting, **options).program(sample()),
        answer=answering(questions, answers),
    )


@pytest.mark.parametrize(
    ("answers", "score", "without"),
    [
        (["yes"] * 5, 1.0, 1.0),
        (
            ["no", "yes", "yes", "yes", "yes"],
            2 / 5,
            4 / 5,
        ),  # the cat's colour and place depend on the cat
        (["yes", "no", "no", "yes", "no"], 1 / 5, 2 / 5),
        (["no"] * 5, 0.0, 0.0),
    ],
)
def test_a_question_that_depends_on_a_no_counts_as_no(answers, score, without):
    assert judged("dsg", GRAPH, answers).verdict.scores == {"SC": pytest.approx(score)}
    assert judged("dsg", GRAPH, answers, dependencies=False).verdict.scores == {
        "SC": pytest.approx(without)
    }


def test_a_question_depends_on_what_its_parents_were_answered_and_not_on_what_they_count_as():
    """The released code: a grandchild of a no is a no only if its own parent was answered no."""
    chain = [
        {"id": n, "question": f"Is it {n}?", "parents": [n - 1] if n > 1 else []}
        for n in (1, 2, 3)
    ]
    assert judged("dsg", chain, ["no", "yes", "yes"]).verdict.scores == {
        "SC": pytest.approx(1 / 3)
    }


def test_the_share_of_choices_that_are_as_expected():
    played = judged("tifa", CHOICES, ["cat", "black", "yes", "On the mat"])
    assert played.verdict.scores == {"SC": 0.75}
    assert (
        played.verdict.rationale
        == "3 of 4 as expected; not: What colour is the animal? (answered differently)"
    )
    assert played.asked("answers/1").schema["properties"]["answer"]["enum"] == (
        "dog",
        "cat",
        "bird",
    )


def test_the_mean_probability_of_yes_and_its_interval():
    def probable(low, high):
        return Probabilities((low, *[0.0] * 5), (high, *[0.0] * 5))

    played = judged("vq2a", PAIRS, [probable(0.5, 0.7), probable(0.3, 0.3)])
    assert played.verdict.scores == {"SC": pytest.approx(0.45)}
    assert played.verdict.bounds == {"SC": pytest.approx((0.4, 0.5))}
    assert [type(ask) for ask in played.asks] == [Chat, Likelihood, Likelihood]
    assert played.text("answers/1").startswith(
        'Look at this picture. To the question "What is on the mat?", is "a cat"'
    )


def test_questions_are_asked_of_the_prompt_alone_and_answers_of_the_image_without_the_prompt():
    judge = prepared("question_answering", "dsg")
    reply = answering(GRAPH, ["yes"] * 5)
    first, second = (
        play(judge.program(sample(uid)), answer=reply) for uid in ("1", "2")
    )
    assert [len(asks) for asks in first.rounds] == [1, 5]
    # all images of a prompt ask the same first question, which a store therefore answers once
    assert first.rounds[0] == second.rounds[0]
    assert first.shown("questions") == []
    assert all(
        Path("1.png") == image.source
        for ask in first.rounds[1]
        for image in first.shown("/".join(ask.path))
    )
    assert all(PROMPT not in first.text("/".join(ask.path)) for ask in first.rounds[1])


def test_each_stage_may_have_a_backbone_of_its_own():
    played = judged("dsg", GRAPH, ["yes"] * 5, backbones={"questions": "strong"})
    assert [ask.backbone for ask in played.asks] == ["strong", *["judge"] * 5]


def test_titles_are_the_words_of_the_questions():
    verdict = judged("dsg", GRAPH, ["yes"] * 5).verdict
    assert titles(verdict.trace)["answers", "5"] == "Is the cat on the mat?"


@pytest.mark.parametrize(*table("useless_questions.jsonl"))
def test_questions_that_are_no_use_are_asked_for_again_and_then_a_status(
    setting, questions, reason
):
    played = judged(setting, questions, [])
    assert [[label] for label in ("questions", "questions")] == played.labels
    assert (played.verdict.status, played.verdict.scores) == (Status.PARSE_FAILURE, {})
    assert reason in played.verdict.reason
    assert played.verdict.findings == ("unreadable answer",)


@pytest.mark.parametrize(
    ("setting", "items"),
    [
        (
            "dsg",
            [
                {
                    "id": n,
                    "question": f"Is it {n % 140}?",
                    "parents": [n - 1] if n > 1 else [],
                }
                for n in range(1, 99)
            ],
        ),
        (
            "tifa",
            [{**CHOICES[2], "question": f"Is there {n % 140}?"} for n in range(150)],
        ),
        (
            "tifa",
            [{**CHOICES[2], "question": f"Is there {n // 2}?"} for n in range(150)],
        ),
    ],
)
def test_of_too_many_questions_the_first_are_asked_once_each_after_one_more_try(
    setting, items
):
    played = judged(setting, items, ["yes"] * 150)
    assert [step.status for step in played.verdict.trace[:2]] == [
        Status.PARSE_FAILURE,
        Status.REPAIRED,
    ]
    assert f"at most 24 questions, got {len(items)}" in played.verdict.trace[0].reason
    assert (
        played.calls,
        len({played.text("/".join(ask.path)) for ask in played.rounds[2]}),
    ) == (26, 24)
    assert played.verdict.scores == {"SC": 1.0}
    assert played.verdict.findings == ("first 24 questions only",)


def test_an_answer_that_is_not_there_leaves_no_score():
    failed = judged(
        "dsg", GRAPH, ["yes", "yes", Failure(Status.API_ERROR, "gone"), "yes", "yes"]
    ).verdict
    assert (failed.status, failed.scores, failed.reason) == (
        Status.API_ERROR,
        {},
        "gone",
    )
    parent = judged(
        "dsg", GRAPH, [Failure(Status.REFUSAL, "declined"), "yes", "yes", "yes", "yes"]
    ).verdict
    assert (parent.status, parent.scores) == (
        Status.REFUSAL,
        {},
    )  # what depends on it is not known to count
    unread = judged("dsg", GRAPH, ["yes", "yes", "maybe", "yes", "yes"])
    assert (unread.verdict.status, unread.verdict.scores) == (Status.PARSE_FAILURE, {})
    assert unread.calls == 7  # the answer that could not be read was asked for again
    beyond = judged(
        "vq2a",
        PAIRS,
        [
            Failure(Status.API_ERROR, "no log-probabilities"),
            Probabilities((0.5,) * 6, (0.5,) * 6),
        ],
    )
    assert (beyond.verdict.status, beyond.verdict.scores) == (Status.API_ERROR, {})


def test_questions_that_were_saved_by_asking_again_leave_the_sample_repaired():
    replies = iter([Text("no list"), Text(json.dumps({"questions": PAIRS}))])
    likely = Probabilities((0.5, *[0.0] * 5), (0.5, *[0.0] * 5))
    played = play(
        prepared("question_answering", "vq2a").program(sample()),
        answer=lambda ask: next(replies) if isinstance(ask, Chat) else likely,
    )
    assert (played.verdict.status, played.verdict.scores) == (
        Status.REPAIRED,
        {"SC": 0.5},
    )


@pytest.mark.parametrize(
    ("setting", "questions"),
    [("dsg", GRAPH[:2]), ("tifa", CHOICES[2:3]), ("vq2a", PAIRS)],
)
def test_a_verdict_leads_back_to_its_conversation(setting, questions):
    likely = Probabilities((0.5, *[0.0] * 5), (0.5, *[0.0] * 5))
    answers = [likely, likely] if setting == "vq2a" else ["yes", "no"]
    verdict = judged(setting, questions, answers).verdict
    exchanges = conversation(
        prepared("question_answering", setting).program, sample(), verdict
    )
    assert [exchange.ask.path[0] for exchange in exchanges] == [
        "questions",
        *["answers"] * len(questions),
    ]


def test_a_pack_without_words_for_the_setting_is_refused():
    pack = packs.load("question_answering/v1")
    worded = {
        key: question
        for key, question in pack.questions.items()
        if key != "tifa_answer"
    }
    with pytest.raises(
        VievalError, match="has no question 'tifa_answer', which tifa requires"
    ):
        question_answering.build(
            question_answering.QuestionAnsweringOptions(),
            replace(pack, questions=worded),
            "tifa",
        )
