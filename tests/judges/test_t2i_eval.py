"""Test T2I-Eval with canned replies: what is asked, of whom, and the verdict."""

import json
from dataclasses import replace

import pytest

from tests.fake_server import FakeServer, Rejected
from tests.pictures import plain
from tests.playing import images_of, label_of, play, text_of
from tests.scripted_t2i_eval import Scene, Script, entity, over_http
from tests.tables import table
from vieval_plugin import Backbone, evaluate
from vieval_plugin.config import Config, StoreOptions
from vieval_plugin.judges import t2i_eval
from vieval_plugin.judges.protocol import Chat, Failure, Image, Status, Text
from vieval_plugin.judges.t2i_eval import T2IEvalOptions as Options
from vieval_plugin.judges.t2i_eval.reading import read_fields
from vieval_plugin.judges.t2i_eval.schemas import EXPLANATION_AND_SCORE
from vieval_plugin.judges.t2i_eval.structure import Relation
from vieval_plugin.prompts import packs

PACK = packs.load("t2i_eval/v1")
PLAIN = Options()


PICTURE = plain("green", (32, 32))

CAT = Scene(
    "a red cat on a blue mat beside a dog",
    (entity("cat", color="red"), entity("mat", color="blue"), entity("dog")),
    (Relation(("cat", "mat"), "on"), Relation(("cat", "dog"), "beside")),
)
TREE = Scene("a lonely tree", (entity("tree", mood="lonely"),), (), 9.0)
BOWL = (entity("apples", "three", color="green"), entity("bowl"))
IN_BOWL = (Relation(("apples", "bowl"), "in"),)
APPLES = Scene("three green apples in a bowl", BOWL, IN_BOWL, 4.0)
DOG, HAT = entity("dog"), entity("hat")
NINE = Scene(
    "a cat with a dog and a hat",
    (entity("cat"), DOG, replace(HAT, attributes=HAT.attributes[:1])),
    (Relation(("cat", "dog"), "with"),),
)
SCENES = {"cat": CAT, "tree": TREE, "apples": APPLES, "nine": NINE}


def played(sample, model, options=PLAIN, ablation="full", pack=PACK):
    """T2I-Eval of a sample, which asks nothing but chats."""
    found = play(t2i_eval.build(options, pack, ablation)(sample), answer=model)
    assert all(isinstance(ask, Chat) for ask in found.asks)
    return found


def run(scene, options=PLAIN, ablation="full", pack=PACK, **faults):
    """T2I-Eval of a scene by a model that knows it; `faults` are its texts, or the reasons of
    its failures, by label.
    """
    model = Script((scene,))

    def answer(ask):
        fault = faults.get(label_of(ask))
        if isinstance(fault, dict):
            return Failure(Status.API_ERROR, fault["failure"])
        return Text(fault) if fault else model(ask)

    return played(scene.sample, answer, options, ablation, pack)


def words_of(chat):
    """The last part of the first message of a chat."""
    return str(chat.messages[0].parts[-1])


@pytest.mark.parametrize(*table("t2i_eval_plays.jsonl"))
def test_a_scene_is_judged_as_written(case):
    options = Options(**case.get("options", {}))
    pack = replace(PACK, reminders=case.get("reminders", 1))
    ablation, faults = case.get("ablation", "full"), case.get("faults", {})
    found = run(SCENES[case["scene"]], options, ablation, pack, **faults)
    verdict = found.verdict
    assert [len(asks) for asks in found.rounds] == case["calls"]
    assert verdict.status == case["status"]
    assert verdict.scores == pytest.approx(case["scores"])
    assert list(verdict.findings) == case["findings"]
    reason = verdict.trace[0].reason
    assert reason == case.get("reason", reason)


@pytest.mark.parametrize("mode", ["individual", "framework"])
def test_an_answer_is_given_without_the_prompt_and_what_was_extracted_from_it(mode):
    waves = run(APPLES, Options(mode=mode)).rounds
    answers = [chat for chat in waves[1] if "appearance" not in label_of(chat)]
    assert answers
    for chat in answers:
        words = text_of(chat)
        assert APPLES.prompt not in words
        assert "three" not in words.replace("one to three", "")
        assert "- color" not in words
        assert images_of(chat) == [APPLES.picture]


@pytest.mark.parametrize(
    ("mode", "ablation", "shown"),
    [
        ("individual", "full", [CAT.picture]),
        ("framework", "full", []),
        ("individual", "no_captioning", []),
    ],
)
def test_the_first_call_of_individual_mode_shows_the_picture(mode, ablation, shown):
    [[extraction], *_] = run(CAT, Options(mode=mode), ablation).rounds
    assert images_of(extraction) == shown


def test_an_explanation_and_a_score_are_the_next_turns_of_the_answers_conversation():
    played = run(CAT)
    steps = ("answer", "explanation", "score")
    asked = (played.asked(f"relationship/1/{step}") for step in steps)
    answer, explanation, score = asked
    said = '{"answer": "relationship/1/answer is worth 7"}'
    assert explanation.messages[:1] == answer.messages
    assert [m.role for m in explanation.messages] == ["user", "assistant", "user"]
    assert explanation.messages[1].parts == (said,)
    structure = "- entities involved: cat, mat\n- value: on"
    assert structure in str(explanation.messages[2].parts[0])
    assert score.messages[:3] == explanation.messages
    assert len(score.messages) == 5


def test_a_summary_reads_its_own_dimension_and_the_overall_one_reads_all_three():
    played = run(CAT)
    relationship = words_of(played.asked("relationship/explanation"))
    assert "How do cat and mat relate?" in relationship
    assert "look real" not in relationship
    overall = words_of(played.asked("overall/explanation"))
    assert "relationship/explanation is worth 7" in overall
    assert overall.count("- score: 7") == 8 + 2 + 2


HIGH = {"overall": {"explanation": "fine", "score": "high"}}


@pytest.mark.parametrize(
    ("step", "change", "reason"),
    [
        ("answers", {"question_4": None}, "the answer lacks question_4"),
        ("evaluation", HIGH, "score must be a number from 0 to 10"),
    ],
)
def test_what_a_call_of_framework_mode_lacks_is_asked_for_again(step, change, reason):
    model = Script((CAT,))

    def answer(ask):
        reply = model(ask)
        if label_of(ask) != step or len(ask.messages) > 1:
            return reply
        changed = json.loads(reply.text) | change
        kept = {key: value for key, value in changed.items() if value is not None}
        return replace(reply, text=json.dumps(kept))

    found = played(CAT.sample, answer, Options(mode="framework"))
    assert [len(wave) for wave in found.rounds] == [1, 1, 1, 1]
    [_, again] = [ask for ask in found.asks if label_of(ask) == step]
    assert reason in str(again.messages[-1].parts[-1])
    verdict = found.verdict
    assert (verdict.status, verdict.findings) == (Status.REPAIRED, ())
    assert verdict.scores["O"] == 0.7


def test_without_captioning_no_caption_is_shown():
    bare = run(CAT, ablation="no_captioning")
    assert not any("Image Caption" in text_of(chat) for chat in bare.asks)
    explanation = run(CAT).asked("intrinsic/1/explanation")
    assert "- caption: a cat seen" in str(explanation.messages[2].parts[0])


INFO = """## Intrinsic Attributes
### cat
- existence: yes
- color: red
## Relationship Attributes
### Relation 1
- entities involved: cat, mat
- value: on"""
GIVEN = {
    "structured_info": INFO,
    "appearance_questions": [{"question": "Pretty?", "entity": "cat"}],
    "intrinsic_questions": ["Is it red?"],
    "relationship_questions": [{"question": "On the mat?", "entity": "cat, mat"}],
}


def test_a_given_extraction_is_taken_as_it_is():
    options, model = Options(extraction="given"), Script((CAT,))
    sample = replace(CAT.sample, annotations={"extraction": GIVEN})
    found = played(sample, model, options)
    answers = ["intrinsic/1/answer", "relationship/1/answer"]
    assert found.labels[0] == ["appearance/1/explanation", *answers]
    assert "- color: red" in str(found.rounds[1][1].messages[-1].parts[0])
    assert found.verdict.status is Status.OK
    assert found.calls == 2 + 3 * 2 + 6 + 2
    without = played(CAT.sample, model, options)
    assert (without.verdict.status, without.calls) == (Status.NOT_APPLICABLE, 0)


@pytest.mark.parametrize("wanted", [False, True])
def test_the_reference_image_stands_beside_questions_of_looks_only(wanted):
    reference = Image(b"photograph")
    sample = replace(CAT.sample, images={**CAT.sample.images, "reference": reference})
    found = played(sample, Script((CAT,)), Options(reference=wanted))
    shown = {label_of(ask) for ask in found.asks if reference in images_of(ask)}
    sub_tasks = {label.split("/")[0] for label in shown}
    assert sub_tasks == ({"appearance"} if wanted else set())
    assert ("second picture" in words_of(found.rounds[1][0])) is wanted


def test_each_step_goes_to_its_own_backbone():
    options = Options(backbones={"extraction": "strong", "score": "small"})
    waves = run(TREE, options).rounds
    asks = [chat for wave in waves[:4] for chat in wave]
    used = {label_of(ask).rsplit("/")[-1]: ask.backbone for ask in asks}
    others = {"explanation": "judge", "answer": "judge"}
    assert used == {"extraction": "strong", "score": "small", **others}


def test_explanations_are_graded_against_the_annotators():
    questions = {"Does the tree look real?": "It does.", "never asked?": "x"}
    references = {"overall": "A fine tree.", "questions": questions}
    sample = replace(TREE.sample, annotations={"reference_explanations": references})
    options, model = Options(backbones={"quality": "grader"}), Script((TREE,))
    found = played(sample, model, options)
    assert found.labels[8] == ["appearance/1/quality", "overall/quality"]
    assert {chat.backbone for chat in found.rounds[8]} == {"grader"}
    scores = found.verdict.scores
    assert scores["explanation_quality_overall"] == 0.8
    assert scores["explanation_quality_questions"] == 0.8
    assert "A fine tree." in words_of(found.rounds[8][1])
    without = played(TREE.sample, model, options)
    assert len(without.rounds) == 8
    assert without.verdict.findings == ("no explanation has a reference",)


@pytest.mark.parametrize(*table("scores_in_markdown.jsonl"))
def test_a_score_in_markdown_stands_last_and_among_the_layouts_own_items(text, score):
    read = read_fields(text, EXPLANATION_AND_SCORE, markdown=True)
    assert read.scores == (() if score is None else (score,))
    is_object = text == '{"explanation": "x", "score": 7}'
    as_json = read_fields(text, EXPLANATION_AND_SCORE, markdown=False)
    assert bool(as_json.scores) is is_object


def test_a_pack_with_markdown_replies_asks_for_no_schema():
    pack = replace(PACK, replies="markdown")
    asks = played(TREE.sample, Script((TREE,)), pack=pack).asks
    assert all(chat.schema is None and chat.stop_repeating for chat in asks)
    assert all(chat.schema is not None for chat in run(TREE).asks)


def test_a_server_that_shows_no_sign_of_bounding_lengths_is_asked_without_them():
    bounded = []

    def reply(request):
        bounded.append("maxLength" in json.dumps(request["response_format"]))
        if bounded[-1]:
            raise Rejected("Invalid schema: 'maxLength' is not permitted.")
        return model(request)

    with FakeServer(reply=reply) as server:
        backbone = Backbone(model="m", base_url=server.base_url, num_concurrent=1)
        sample = replace(TREE.sample, images={"output": Image(PICTURE)})
        model = over_http(Script((replace(TREE, drawn=PICTURE),)))
        about = {"judge": "t2i_eval", "backbone": backbone}
        unstored = Config(store=StoreOptions(use=False))
        [verdict] = evaluate([sample], **about, options=unstored)
    assert verdict.status is Status.OK
    assert not any(bounded)
    assert len(bounded) == 1 + run(TREE).calls  # and the probe
