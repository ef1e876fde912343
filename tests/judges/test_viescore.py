"""VIEScore driven by a for loop and canned replies: no backend, no host."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.judges.viescore_answers import ORDER, SUB_SCORES, answer, sample
from tests.playing import first_asks, play
from vieval_plugin.judges import viescore
from vieval_plugin.judges.protocol import Failure, Status
from vieval_plugin.prompts import packs
from vieval_plugin.text.errors import VievalError

JUDGE = viescore.build(viescore.VIEScoreOptions(), packs.load("viescore/v1"))


@pytest.mark.parametrize("task", ORDER)
def test_each_task_asks_once_with_its_own_images_in_order(task):
    scores = [9.0, 4.0, 7.0][: SUB_SCORES[task]]
    played = play(JUDGE(sample(task)), [answer(*scores), answer(6, 8)])
    verdict, (sc, pq) = played.verdict, played.asks
    assert [part.source.stem for part in sc.messages[0].parts[:-1]] == ORDER[task]
    assert [part.source.stem for part in pq.messages[0].parts[:-1]] == ["output"]
    assert sc.schema["properties"]["score"]["minItems"] == SUB_SCORES[task]
    assert verdict.scores == {
        "SC": min(scores) / 10,
        "PQ": 0.6,
        "O": (min(scores) / 10 * 0.6) ** 0.5,
    }
    assert verdict.status is Status.OK
    assert verdict.rationale == "SC: because\nPQ: because"


@pytest.mark.parametrize(
    ("task", "words"),
    [("tig", 'a "red" {{cat}}'), ("mie", "add a hat"), ("sdie", "dog toy")],
)
def test_a_condition_stands_in_the_question_as_it_is(task, words):
    [sc, pq] = first_asks(JUDGE(sample(task)))
    assert words in sc.messages[0].parts[-1]
    assert words not in pq.messages[0].parts[-1]


def test_a_failed_reply_leaves_its_aspect_out():
    verdict = play(
        JUDGE(sample("tig")),
        [answer(5), Failure(Status.REFUSAL, "the content filter declined")],
    ).verdict
    assert (verdict.scores, verdict.status) == ({"SC": 0.5}, Status.REFUSAL)
    assert [step.status for step in verdict.trace] == [Status.OK, Status.REFUSAL]
    assert verdict.trace[1].reason == "the content filter declined"


def test_zero_in_one_aspect_makes_the_overall_score_zero():
    assert viescore.RUBRIC.scores({"SC": [0, 9], "PQ": [10]}) == {
        "SC": 0.0,
        "PQ": 1.0,
        "O": 0.0,
    }


def test_one_shot_shows_the_example_first_and_tells_its_scores():
    example = viescore.OneShotExample(
        (Path("ex_a.png"), Path("ex_b.png")), (3.0, 7.0), "half done"
    )
    pack = packs.load("viescore/v1")
    judge = viescore.build(
        viescore.VIEScoreOptions(examples=dict.fromkeys(pack.questions, example)),
        pack,
        "1shot",
    )
    [sc, _] = first_asks(judge(sample("tie")))
    *images, text = sc.messages[0].parts
    assert [image.source.stem for image in images] == [
        "ex_a",
        "ex_b",
        "source",
        "output",
    ]
    assert '{"score": [3.0, 7.0], "reasoning": "half done"}' in text


def test_quality_may_be_asked_about_with_the_conditions_shown():
    judge = viescore.build(
        viescore.VIEScoreOptions(), packs.load("viescore/v1"), "pq_inputs"
    )
    for task, roles in ORDER.items():
        sc, pq = first_asks(judge(sample(task)))
        assert [part.source.stem for part in pq.messages[0].parts[:-1]] == roles
        assert sc == first_asks(JUDGE(sample(task)))[0]
        assert "the last picture" in pq.messages[0].parts[-1]
        assert "add a hat" not in pq.messages[0].parts[-1]
    played = play(judge(sample("tie")), [answer(9, 8), answer(6, 8)])
    assert played.verdict.scores["PQ"] == 0.6


def test_a_pack_that_does_not_word_it_is_refused():
    pack = packs.load("viescore/v1")
    others = replace(
        pack,
        questions={key: q for key, q in pack.questions.items() if key != "pq_inputs"},
    )
    with pytest.raises(VievalError, match="viescore/v1 has no question 'pq_inputs'"):
        viescore.build(viescore.VIEScoreOptions(), others, "pq_inputs")
