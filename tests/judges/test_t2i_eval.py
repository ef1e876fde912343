"""T2I-Eval driven by canned replies: what is asked at each step, of whom, and what the verdict
says.
"""

import json
from dataclasses import replace

import pytest

from tests.fake_server import FakeServer, Rejected
from tests.pictures import plain
from tests.playing import label_of, play
from tests.scripted_t2i_eval import Scene, Script, entity, over_http
from tests.tables import table
from vieval_plugin import Backbone, evaluate
from vieval_plugin.config import Config, StoreOptions
from vieval_plugin.judges import t2i_eval
from vieval_plugin.judges.protocol import Chat, Failure, Image, Status
from vieval_plugin.judges.t2i_eval import T2IEvalOptions as Options
from vieval_plugin.judges.t2i_eval.reading import read_fields
from vieval_plugin.judges.t2i_eval.schemas import EXPLANATION_AND_SCORE
from vieval_plugin.judges.t2i_eval.structure import Relation
from vieval_plugin.prompts import packs

PACK = packs.load("t2i_eval/v1")
ONCE = replace(PACK, reminders=0)
PLAIN = Options()


PICTURE = plain("green", (32, 32))

CAT = Scene(
    "a red cat on a blue mat beside a dog",
    (entity("cat", color="red"), entity("mat", color="blue"), entity("dog")),
    (Relation(("cat", "mat"), "on"), Relation(("cat", "dog"), "beside")),
)
TREE = Scene("a lonely tree", (entity("tree", mood="lonely"),), (), 9.0)
APPLES = Scene(
    "three green apples in a bowl",
    (entity("apples", "three", color="green"), entity("bowl")),
    (Relation(("apples", "bowl"), "in"),),
    4.0,
)
SCENES = (CAT, TREE, APPLES)


def played(sample, model, options=PLAIN, ablation="full", pack=PACK):
    """T2I-Eval of a sample, which asks nothing but chats."""
    found = play(t2i_eval.build(options, pack, ablation)(sample), answer=model)
    assert all(isinstance(ask, Chat) for ask in found.asks)
    return found


def run(scene, options=PLAIN, ablation="full", pack=PACK, **faults):
    """T2I-Eval of a scene by a model that knows it; `faults` are replies by label, `__` for `/`."""
    return played(
        scene.sample,
        Script((scene,), {k.replace("__", "/"): v for k, v in faults.items()}),
        options,
        ablation,
        pack,
    )


def outcome(played):
    return played.verdict, played.rounds


def implied(scene):
    """Calls of individual mode, from the structure alone."""
    looks, attributes, relations = scene.counts
    return 1 + 2 * looks + 3 * (attributes + relations) + 2 * (2 + bool(relations)) + 2


@pytest.mark.parametrize(
    "scene", SCENES, ids=["three entities", "no relations", "a number"]
)
def test_individual_mode_costs_the_calls_that_the_structure_implies_and_eight_waves(
    scene,
):
    verdict, waves = outcome(run(scene))
    print(
        f"{scene.prompt}: questions {scene.counts}, calls {sum(map(len, waves))}, depth "
        f"{len(waves)}"
    )
    assert sum(map(len, waves)) == implied(scene)
    assert len(waves) == 8
    assert verdict.status is Status.OK
    assert verdict.findings == ()


def test_nine_questions_of_which_three_are_on_looks_cost_33_calls():
    nine = Scene(
        "a cat with a dog and a hat", (entity("cat"), entity("dog"), entity("hat")), ()
    )
    # two attributes each would make nine without relations: drop one quantity for a relation, so
    # that all dimensions ask
    trimmed = tuple(
        replace(e, attributes=e.attributes[: 1 if e.name == "hat" else 2])
        for e in nine.entities
    )
    verdict, waves = outcome(
        run(
            replace(
                nine, entities=trimmed, relations=(Relation(("cat", "dog"), "with"),)
            )
        )
    )
    assert [len(wave) for wave in waves] == [1, 9, 9, 6, 3, 3, 1, 1]
    assert sum(map(len, waves)) == 33
    assert verdict.findings == ("structure: entity without quantity",)


@pytest.mark.parametrize("scene", SCENES)
def test_framework_mode_costs_three_calls(scene):
    verdict, waves = outcome(run(scene, Options(mode="framework")))
    assert [[label_of(chat) for chat in wave] for wave in waves] == [
        ["extraction"],
        ["answers"],
        ["evaluation"],
    ]
    assert (
        verdict.scores["O"]
        == verdict.scores["appearance"]
        == pytest.approx(scene.quality / 10)
    )


def test_the_scores_are_the_models_own_numbers():
    verdict = run(APPLES, overall__score='{"score": 2}').verdict
    assert verdict.scores == {
        "appearance": 0.3,
        "intrinsic": 0.4,
        "relationship": 0.4,
        "O": 0.2,
    }
    assert verdict.rationale == "overall/explanation is worth 4"


def test_an_answer_is_given_without_the_prompt_and_what_was_extracted_from_it():
    for options in (Options(), Options(mode="framework")):
        waves = run(APPLES, options).rounds
        answers = [chat for chat in waves[1] if "appearance" not in label_of(chat)]
        assert answers
        for chat in answers:
            words = "\n".join(
                part
                for message in chat.messages
                for part in message.parts
                if isinstance(part, str)
            )
            assert APPLES.prompt not in words
            assert "three" not in words.replace("one to three", "")
            assert "- color" not in words
            assert [p for p in chat.messages[0].parts if isinstance(p, Image)] == [
                APPLES.picture
            ]


def test_the_first_call_of_individual_mode_shows_the_picture_and_that_of_framework_mode_does_not():
    for mode, ablation, shown in (
        ("individual", "full", [CAT.picture]),
        ("framework", "full", []),
        ("individual", "no_captioning", []),
    ):
        waves = run(CAT, Options(mode=mode), ablation).rounds
        assert [
            part for part in waves[0][0].messages[0].parts if isinstance(part, Image)
        ] == shown


def test_an_explanation_and_a_score_are_the_next_turns_of_the_answers_conversation():
    waves = run(CAT).rounds
    answer = next(
        chat for chat in waves[1] if label_of(chat) == "relationship/1/answer"
    )
    explanation = next(
        chat for chat in waves[2] if label_of(chat) == "relationship/1/explanation"
    )
    score = next(chat for chat in waves[3] if label_of(chat) == "relationship/1/score")
    assert explanation.messages[:1] == answer.messages
    assert [m.role for m in explanation.messages] == ["user", "assistant", "user"]
    assert explanation.messages[1].parts == (
        '{"answer": "relationship/1/answer is worth 7"}',
    )
    assert "- entities involved: cat, mat\n- value: on" in str(
        explanation.messages[2].parts[0]
    )
    assert score.messages[:3] == explanation.messages
    assert len(score.messages) == 5


def test_a_summary_reads_its_own_dimension_and_the_overall_one_reads_all_three():
    waves = run(CAT).rounds
    by_label = {
        label_of(chat): str(chat.messages[0].parts[-1])
        for wave in waves[4:]
        for chat in wave
    }
    assert "How do cat and mat relate?" in by_label["relationship/explanation"]
    assert "look real" not in by_label["relationship/explanation"]
    assert "relationship/explanation is worth 7" in by_label["overall/explanation"]
    assert by_label["overall/explanation"].count("- score: 7") == 8 + 2 + 2


@pytest.mark.parametrize(
    ("reply", "reason", "finding"),
    [
        (
            "I'm sorry, but I can't assist with extracting that.",
            "no JSON object found",
            "unreadable answer",
        ),
        (
            '{"entities": [{"name": "cat", "attributes": [{"na',
            "expected one complete JSON object",
            "unreadable answer",
        ),
        (
            '{"entities": [], "relations": []}',
            "entities: the number of values must be 1, got 0",
            "unreadable answer",
        ),
        (
            "The cat is on the mat. " + "And the cat is red. " * 60,
            "endless repetition",
            "endless repetition",
        ),
    ],
    ids=["refused", "cut off", "empty", "repeating"],
)
@pytest.mark.parametrize("mode", ["individual", "framework"])
def test_a_sample_without_an_extraction_is_a_parse_failure_with_its_reason(
    mode, reply, reason, finding
):
    verdict, waves = outcome(run(CAT, Options(mode=mode), extraction=reply))
    assert verdict.status is Status.PARSE_FAILURE
    assert verdict.scores == {}
    assert verdict.findings == (finding,)
    assert verdict.trace[0].reason == reason
    assert len(waves) == 2, "asked once more and given up"


def test_a_failed_call_is_not_taken_for_a_parse_failure():
    verdict = played(
        CAT.sample, lambda _: Failure(Status.API_ERROR, "HTTP 500")
    ).verdict
    assert verdict.status is Status.API_ERROR


@pytest.mark.parametrize("mode", ["individual", "framework"])
def test_a_call_that_failed_is_the_samples_status_though_the_rest_was_scored(mode):
    model = Script((CAT,))
    broken = {"individual": "intrinsic/2/answer", "framework": "answers"}[mode]

    def answer(ask):
        failed = isinstance(ask, Chat) and label_of(ask) == broken
        return Failure(Status.API_ERROR, "HTTP 500: gone") if failed else model(ask)

    verdict = played(CAT.sample, answer, Options(mode=mode)).verdict
    assert verdict.status is Status.API_ERROR
    assert verdict.scores.get("O") == {"individual": 0.7, "framework": None}[mode]
    assert not any("HTTP" in finding for finding in verdict.findings)


def test_one_unanswered_question_is_not_the_end_of_a_sample():
    loop = "the mat is the mat is " * 50
    verdict, waves = outcome(run(CAT, pack=ONCE, intrinsic__2__answer=loop))
    assert verdict.status is Status.REPAIRED
    assert verdict.scores["O"] == 0.7
    assert verdict.findings == ("endless repetition",)
    assert sum(map(len, waves)) == implied(CAT) - 2, (
        "it is neither explained nor scored"
    )
    summary = next(
        chat for chat in waves[4] if label_of(chat) == "intrinsic/explanation"
    )
    assert "- not answered" in str(summary.messages[0].parts[-1])


@pytest.mark.parametrize(
    ("step", "change", "reason"),
    [
        ("answers", {"question_4": None}, "the answer lacks question_4"),
        (
            "evaluation",
            {"overall": {"explanation": "fine", "score": "high"}},
            "score must be a number from 0 to 10",
        ),
    ],
)
def test_what_a_call_of_framework_mode_lacks_is_asked_for_again(step, change, reason):
    model = Script((CAT,))

    def answer(ask):
        reply = model(ask)
        if label_of(ask) != step or len(ask.messages) > 1:
            return reply
        document = json.loads(reply.text) | change
        return replace(
            reply,
            text=json.dumps(
                {key: value for key, value in document.items() if value is not None}
            ),
        )

    played_ = played(CAT.sample, answer, Options(mode="framework"))
    assert [len(wave) for wave in played_.rounds] == [1, 1, 1, 1]
    [again] = [
        ask for ask in played_.asks if label_of(ask) == step and len(ask.messages) > 1
    ]
    assert reason in str(again.messages[-1].parts[-1])
    verdict = played_.verdict
    assert (verdict.status, verdict.scores["O"], verdict.findings) == (
        Status.REPAIRED,
        0.7,
        (),
    )


def test_without_an_overall_score_the_sample_failed_and_keeps_its_dimensions():
    verdict = run(CAT, pack=ONCE, overall__score="as good as it gets").verdict
    assert verdict.status is Status.PARSE_FAILURE
    assert set(verdict.scores) == {"appearance", "intrinsic", "relationship"}


@pytest.mark.parametrize(
    ("ablation", "calls", "depth"),
    [
        ("no_extraction", 2 + 3 * 2 + 6 + 2, 7),
        ("no_captioning", 1 + 2 * 3 + 3 * (8 + 2) + 6 + 2, 8),
        ("no_answering", 1 + 2 * (3 + 8 + 2) + 6 + 2, 7),
        ("merged", 1 + (3 + 8 + 2) + 6 + 2, 6),
        ("no_decomposition", 1, 1),
    ],
)
def test_an_ablation_asks_less(ablation, calls, depth):
    verdict, waves = outcome(run(CAT, ablation=ablation))
    assert (sum(map(len, waves)), len(waves)) == (calls, depth)
    assert verdict.status is Status.OK
    assert verdict.scores["O"] == 0.7


@pytest.mark.parametrize(
    ("ablation", "calls"),
    [
        ("no_extraction", 2),
        ("no_captioning", 3),
        ("no_answering", 2),
        ("merged", 2),
        ("no_decomposition", 1),
    ],
)
def test_an_ablation_of_framework_mode_asks_less(ablation, calls):
    verdict, waves = outcome(run(CAT, Options(mode="framework"), ablation=ablation))
    assert sum(map(len, waves)) == calls
    assert verdict.status is Status.OK
    assert verdict.scores["O"] == 0.7


def test_without_captioning_no_caption_is_shown():
    waves = run(CAT, ablation="no_captioning").rounds
    assert not any(
        "caption" in str(p).lower()
        for wave in waves
        for chat in wave
        for m in chat.messages
        for p in m.parts
        if "Image Caption" in str(p)
    )
    waves = run(CAT).rounds
    assert "- caption: a cat seen" in str(
        next(c for c in waves[2] if label_of(c) == "intrinsic/1/explanation")
        .messages[2]
        .parts[0]
    )


def test_a_given_extraction_is_taken_as_it_is():
    info = (
        "## Intrinsic Attributes\n### cat\n- existence: yes\n- color: red\n## Relationship "
        "Attributes\n### Relation 1\n- entities involved: cat, mat\n- value: on"
    )
    given = {
        "structured_info": info,
        "appearance_questions": [{"question": "Pretty?", "entity": "cat"}],
        "intrinsic_questions": ["Is it red?"],
        "relationship_questions": [{"question": "On the mat?", "entity": "cat, mat"}],
    }
    sample = replace(CAT.sample, annotations={"extraction": given})
    verdict, waves = outcome(
        played(sample, Script((CAT,)), Options(extraction="given"))
    )
    assert [label_of(chat) for chat in waves[0]] == [
        "appearance/1/explanation",
        "intrinsic/1/answer",
        "relationship/1/answer",
    ]
    assert "- color: red" in str(waves[1][1].messages[-1].parts[0])
    assert verdict.status is Status.OK
    assert sum(map(len, waves)) == 2 + 3 * 2 + 6 + 2
    verdict, waves = outcome(
        played(CAT.sample, Script((CAT,)), Options(extraction="given"))
    )
    assert verdict.status is Status.NOT_APPLICABLE
    assert waves == []


def test_the_reference_image_stands_beside_questions_of_looks_only_where_asked():
    reference = Image(b"photograph")
    sample = replace(CAT.sample, images={**CAT.sample.images, "reference": reference})
    for wanted in (False, True):
        waves = played(sample, Script((CAT,)), Options(reference=wanted)).rounds
        shown = {
            label_of(chat)
            for wave in waves
            for chat in wave
            if reference in [p for m in chat.messages for p in m.parts]
        }
        assert {label.split("/")[0] for label in shown} == (
            {"appearance"} if wanted else set()
        )
        words = str(waves[1][0].messages[0].parts[-1])
        assert ("second picture" in words) is wanted


def test_each_step_goes_to_its_own_backbone():
    options = Options(backbones={"extraction": "strong", "score": "small"})
    waves = run(TREE, options).rounds
    used = {
        (label_of(chat).rsplit("/")[-1], chat.backbone)
        for wave in waves[:4]
        for chat in wave
    }
    assert used == {
        ("extraction", "strong"),
        ("explanation", "judge"),
        ("answer", "judge"),
        ("score", "small"),
    }


def test_explanations_are_graded_against_the_annotators():
    references = {
        "overall": "A fine tree.",
        "questions": {"Does the tree look real?": "It does.", "never asked?": "x"},
    }
    sample = replace(TREE.sample, annotations={"reference_explanations": references})
    options = Options(backbones={"quality": "grader"})
    verdict, waves = outcome(played(sample, Script((TREE,)), options))
    assert [(label_of(chat), chat.backbone) for chat in waves[8]] == [
        ("appearance/1/quality", "grader"),
        ("overall/quality", "grader"),
    ]
    assert (
        verdict.scores["explanation_quality_overall"]
        == verdict.scores["explanation_quality_questions"]
        == 0.8
    )
    assert "A fine tree." in str(waves[8][1].messages[0].parts[-1])
    verdict, waves = outcome(played(TREE.sample, Script((TREE,)), options))
    assert len(waves) == 8
    assert verdict.findings == ("no explanation has a reference",)


@pytest.mark.parametrize(*table("scores_in_markdown.jsonl"))
def test_a_score_in_markdown_stands_last_and_among_the_layouts_own_items(text, score):
    read = read_fields(text, EXPLANATION_AND_SCORE, markdown=True)
    assert read.scores == (() if score is None else (score,))
    whole_object = text == '{"explanation": "x", "score": 7}'
    assert (
        bool(read_fields(text, EXPLANATION_AND_SCORE, markdown=False).scores)
        is whole_object
    )


def test_a_pack_with_markdown_replies_asks_for_no_schema():
    waves = played(
        TREE.sample, Script((TREE,)), pack=replace(PACK, replies="markdown")
    ).rounds
    assert all(
        chat.schema is None and chat.stop_repeating for wave in waves for chat in wave
    )
    waves = run(TREE).rounds
    assert all(chat.schema is not None for wave in waves for chat in wave)


def test_a_server_that_shows_no_sign_of_bounding_lengths_is_asked_without_them():
    bounded = []
    model = over_http(Script((TREE,)))

    def reply(request):
        bounded.append("maxLength" in json.dumps(request["response_format"]))
        if bounded[-1]:
            raise Rejected("Invalid schema: 'maxLength' is not permitted.")
        return model(request)

    with FakeServer(reply=reply) as server:
        backbone = Backbone(model="m", base_url=server.base_url, num_concurrent=1)
        sample = replace(TREE.sample, images={"output": Image(PICTURE)})
        script_scene = replace(TREE, drawn=PICTURE)
        model = over_http(Script((script_scene,)))
        [verdict] = evaluate(
            [sample],
            judge="t2i_eval",
            backbone=backbone,
            options=Config(store=StoreOptions(use=False)),
        )
    assert verdict.status is Status.OK
    assert not any(bounded)
    assert len(bounded) == 1 + implied(TREE)  # and the probe
