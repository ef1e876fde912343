"""VIEScore driven by a for loop and canned replies: no backend, no host."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.judges.viescore_answers import ORDER, SUB_SCORES, answer, sample
from tests.playing import first_asks, images_of, play
from tests.refusals import refuses
from vieval_plugin.judges import viescore
from vieval_plugin.judges.protocol import Status
from vieval_plugin.prompts import packs

JUDGE = viescore.build(viescore.VIEScoreOptions(), packs.load("viescore/v1"))


@pytest.mark.parametrize("task", ORDER)
def test_each_task_asks_once_with_its_own_images_in_order(task):
    scores = [9.0, 4.0, 7.0][: SUB_SCORES[task]]
    played = play(JUDGE(sample(task)), [answer(*scores), answer(6, 8)])
    verdict, (sc, pq) = played.verdict, played.asks
    assert stems(sc) == ORDER[task]
    assert stems(pq) == ["output"]
    assert sc.schema["properties"]["score"]["minItems"] == SUB_SCORES[task]
    least = min(scores) / 10
    assert verdict.scores == {"SC": least, "PQ": 0.6, "O": (least * 0.6) ** 0.5}
    assert verdict.status is Status.OK
    assert verdict.rationale == "SC: because\nPQ: because"


def stems(ask):
    return [image.source.stem for image in images_of(ask)]


@pytest.mark.parametrize(
    ("task", "words"),
    [("tig", 'a "red" {{cat}}'), ("mie", "add a hat"), ("sdie", "dog toy")],
)
def test_a_condition_stands_in_the_question_as_it_is(task, words):
    [sc, pq] = first_asks(JUDGE(sample(task)))
    assert words in sc.messages[0].parts[-1]
    assert words not in pq.messages[0].parts[-1]


def test_one_shot_shows_the_example_first_and_tells_its_scores():
    images = (Path("ex_a.png"), Path("ex_b.png"))
    example = viescore.OneShotExample(images, (3.0, 7.0), "half done")
    pack = packs.load("viescore/v1")
    examples = dict.fromkeys(pack.questions, example)
    options = viescore.VIEScoreOptions(examples=examples)
    [sc, _] = first_asks(viescore.build(options, pack, "1shot")(sample("tie")))
    assert stems(sc) == ["ex_a", "ex_b", "source", "output"]
    told = '{"score": [3.0, 7.0], "reasoning": "half done"}'
    assert told in sc.messages[0].parts[-1]


def test_quality_may_be_asked_about_with_the_conditions_shown():
    options, pack = viescore.VIEScoreOptions(), packs.load("viescore/v1")
    judge = viescore.build(options, pack, "pq_inputs")
    for task, roles in ORDER.items():
        sc, pq = first_asks(judge(sample(task)))
        assert stems(pq) == roles
        assert sc == first_asks(JUDGE(sample(task)))[0]
        assert "the last picture" in pq.messages[0].parts[-1]
        assert "add a hat" not in pq.messages[0].parts[-1]
    played = play(judge(sample("tie")), [answer(9, 8), answer(6, 8)])
    assert played.verdict.scores["PQ"] == 0.6
    others = {key: q for key, q in pack.questions.items() if key != "pq_inputs"}
    lacking = "viescore/v1 has no question 'pq_inputs'"
    fewer = replace(pack, questions=others)
    refuses(lacking, viescore.build, options, fewer, "pq_inputs")
