"""CIGEval, played through with scripted replies: a plan, tools, a rating for each sub-question."""

import json

import pytest

from tests import playing
from tests.cigeval_script import (
    ASKED,
    BOX,
    GRAPH,
    ROLES,
    built,
    names,
    picture,
    plan,
    play,
    sample,
    score,
)
from tests.refusals import refuses
from tests.tables import table
from vieval_plugin import Status
from vieval_plugin.judges import tools
from vieval_plugin.judges.cigeval.plan import read_plan
from vieval_plugin.judges.protocol import Box, Failure, Text, ToolResult, UseTool
from vieval_plugin.judges.tools import Tool, from_json

# what the detector looks for by the released code
PHRASES = {
    "tig": {"prompt": "two cats"},
    "tie": dict.fromkeys(("edit", "restraint"), "make the hat red"),
    "mie": dict.fromkeys(("edit", "restraint"), "put a hat here"),
    "cig": {"prompt": "a room"},
    "sdig": dict.fromkeys(("subject", "prompt"), "a dog on a beach"),
    "sdie": {"subject": "vase", "background": "background"},
    "mcic": {"concept_1": "cat", "concept_2": "vase", "prompt": "a cat and a vase"},
}


def planned(task):
    """How many entries a plan has by the released code: mcic's concepts share one."""
    return 2 if task == "mcic" else len(ASKED[task][0])


def ratings(task, *values):
    names = ASKED[task][0]
    rated = zip(names, values or [5] * len(names), strict=True)
    return {f"{name}/rating": score(value) for name, value in rated}


def graphs(*names):
    """The scene graph of the source and the output, for sub-questions."""
    roles = ("source", "output")
    return {f"{name}/scene_graph {role}": GRAPH for name in names for role in roles}


def played(task, entries, *improvements, replies=(), without=(), only=None):
    judge = built(*improvements, only=only)
    planned = entries if isinstance(entries, str) else plan(*entries)
    given = {"plan": planned, **ratings(task), **dict(replies)}
    return play(judge(sample(task, without)), given)


def shown(game, label):
    return names(game.shown(label))


def step(played, label):
    [found] = [step for step in played.verdict.trace if step.label == label]
    return found


@pytest.mark.parametrize("task", ASKED)
def test_each_call_gets_its_images_in_order(task):
    names, seen_by_planner = ASKED[task]
    game = played(task, [None] * planned(task))
    assert game.labels == [["plan"], [f"{name}/rating" for name in names]]
    assert shown(game, "plan") == seen_by_planner
    for name, images in names.items():
        assert shown(game, f"{name}/rating") == images


def test_the_lowest_sub_score_over_ten_is_sc():
    game = played("mcic", [None, None], replies=ratings("mcic", 9, 2.5, 7))
    assert game.verdict.scores == {"SC": 0.25}
    assert game.verdict.status is Status.OK
    told = "concept_1: because\nconcept_2: because\nprompt: because"
    assert game.verdict.rationale == told
    assert step(game, "concept_2/rating").scores == (2.5,)


def test_the_planner_reads_the_sub_questions_the_texts_and_the_tools():
    game = played("mcic", [None, None])
    text = game.text("plan")
    assert "a cat and a vase" in text
    assert "1. Is the cat (and likewise the vase)" in text
    assert "2. Does the generated picture show" in text
    assert "3. " not in text
    for tool in tools.planned():
        assert tool.description in text
        assert tool.name in text
    assert game.asked("plan").schema["properties"]["plan"]["minItems"] == 2


def test_without_any_tools_nothing_is_planned():
    game = played("tie", [], only=())
    assert game.labels == [["edit/rating", "restraint/rating"]]
    assert game.verdict.scores == {"SC": 0.5}
    assert game.verdict.findings == ()


def test_concepts_that_come_side_by_side_are_taken_apart():
    game = played("mcic", [None, None], without=("concept_1", "concept_2"))
    assert game.labels[0] == ["half concept_1", "half concept_2"]
    asked = game.asked("half concept_2")
    assert asked.arguments == {"image": picture("concepts"), "side": "right"}
    assert shown(game, "plan") == ["half concept_1", "half concept_2", "output"]
    assert shown(game, "concept_2/rating") == ["half concept_2", "output"]


@pytest.mark.parametrize("task", PHRASES)
def test_grounding_looks_for_what_the_released_code_looks_for(task):
    game = played(task, ["grounding"] * planned(task))
    for name, phrase in PHRASES[task].items():
        roles = ASKED[task][0][name]
        for role in roles:
            asked, found = {"image": picture(role)}, {"phrases": (phrase,)}
            grounding = game.asked(f"{name}/grounding {role}").arguments
            assert grounding == {**asked, **found, "detector": "a detector"}
            highlight = game.asked(f"{name}/highlight {role}").arguments
            assert highlight == {**asked, "boxes": (BOX,)}
        highlighted = [f"{name}/highlight {role}" for role in roles]
        assert shown(game, f"{name}/rating") == highlighted
        assert tools.registry()["grounding"].note in game.text(f"{name}/rating")


def test_tools_of_different_sub_questions_run_at_once():
    game = played("tie", ["grounding", "grounding"])
    assert game.labels[1] == [
        *("edit/grounding source", "edit/grounding output"),
        *("restraint/grounding source", "restraint/grounding output"),
    ]
    assert len(game.labels) == 4


def test_an_image_in_which_nothing_is_found_stays_as_it_is():
    nothing = {"subject/grounding subject": ToolResult()}
    game = played("sdig", ["grounding", None], replies=nothing)
    assert shown(game, "subject/rating") == ["subject", "subject/highlight output"]
    assert "In the subject picture it found nothing" in game.text("subject/rating")


def test_difference_shows_its_largest_box_in_both_images_at_the_size_of_the_first():
    boxes = (Box(0, 0, 9, 9), Box(20, 20, 22, 22))
    replies = {"edit/difference": ToolResult(boxes)}
    game = played("mie", ["difference", None], replies=replies)
    source, output = picture("source"), picture("output")
    asked = game.asked("edit/difference").arguments
    assert asked == {"first": source, "second": output}
    for role, image in (("source", source), ("output", output)):
        asked = game.asked(f"edit/highlight {role}").arguments
        assert asked == {"image": image, "boxes": boxes[:1], "like": source}
    assert shown(game, "edit/rating") == HIGHLIGHTED
    assert shown(game, "restraint/rating") == ["source", "output"]
    assert from_json(step(game, "edit/difference").answer) == ToolResult(boxes)
    every = played("mie", ["difference", None], "all_differences", replies=replies)
    assert every.asked("edit/highlight output").arguments["boxes"] == boxes


HIGHLIGHTED = ["edit/highlight source", "edit/highlight output"]


def test_no_difference_leaves_both_images_and_says_so():
    replies = {"edit/difference": ToolResult()}
    game = played("mie", ["difference", None], replies=replies)
    assert shown(game, "edit/rating") == ["source", "output"]
    assert "No region was found" in game.text("edit/rating")


def test_with_the_mask_success_is_looked_for_inside_and_over_editing_outside():
    game = played("mie", ["difference", "difference"], "mask")
    for name, side in (("edit", "inside"), ("restraint", "outside")):
        asked = game.asked(f"{name}/difference").arguments
        assert (asked["side"], asked["mask"]) == (side, picture("mask"))


@pytest.mark.parametrize("task", [task for task in ROLES if task != "mie"])
def test_difference_is_for_mask_guided_edits_alone_by_the_released_code(task):
    game = played(task, ["difference"] * planned(task))
    assert not [ask for ask in game.asks if isinstance(ask, UseTool)]
    assert game.verdict.scores == {"SC": 0.5}
    assert set(game.verdict.findings) == {"plan: forbidden tool"}


def test_difference_serves_text_guided_edits_where_that_is_chosen():
    game = played("tie", ["difference", None], "difference_on_tie")
    assert shown(game, "edit/rating") == HIGHLIGHTED


def test_a_scene_graph_is_asked_of_its_own_backbone_for_each_image_with_the_same_words():
    replies = graphs("edit", "restraint")
    game = played("tie", ["scene_graph", "scene_graph"], replies=replies)
    asked = [game.asked(label) for label in replies]
    assert {ask.backbone for ask in asked} == {"scene_graph"}
    assert len({ask.messages[0].parts[1] for ask in asked}) == 1
    # the same image is asked about in the same words, so that stores and backends answer it once
    assert asked[0].messages == asked[2].messages
    assert shown(game, "edit/scene_graph source") == ["source"]
    assert shown(game, "edit/rating") == ["source", "output"]
    assert f"Scene graph of the source picture: {GRAPH}" in game.text("edit/rating")


def test_text_in_the_images_is_told():
    game = played("sdig", [None, "ocr"])
    assert "Text in the output picture: EXIT" in game.text("prompt/rating")
    assert shown(game, "prompt/rating") == ["output"]


def test_a_named_entity_takes_the_place_of_the_whole_text():
    entry = {"used": True, "tool": "grounding", "reasoning": ""}
    first = {"task_id": 1, **entry, "entities": ["hat", " "]}
    second = {"task_id": 2, **entry, "entities": []}
    entries = json.dumps({"plan": [first, second]})
    whole = ("make the hat red",)
    for improvements, phrases in ((("named_entity",), ("hat",)), ((), whole)):
        game = played("tie", entries, *improvements)
        assert game.asked("edit/grounding output").arguments["phrases"] == phrases
        assert game.asked("restraint/grounding output").arguments["phrases"] == whole


def test_both_subjects_share_an_entry_unless_each_is_planned():
    shared = played("mcic", ["grounding", None])
    first, second = (f"concept_{n}/grounding output" for n in (1, 2))
    assert {first, second} <= set(shared.labels[1])
    each = played("mcic", ["grounding", None, None], "plan_each_subject")
    assert first in each.labels[1]
    assert not any(second in wave for wave in each.labels)
    assert "3. " in each.text("plan")


# Bad plans: the rating goes on without a tool, and what was wrong is a step and is counted.


@pytest.mark.parametrize(*table("bad_plan_entries.jsonl"))
def test_a_bad_entry_is_counted_and_rated_without_a_tool(entries, finding, reason):
    game = played("tie", entries, only=("grounding", "difference", "scene_graph"))
    assert game.labels == [["plan"], ["edit/rating", "restraint/rating"]]
    assert (game.verdict.scores, game.verdict.status) == ({"SC": 0.5}, Status.OK)
    assert game.verdict.findings == ("plan: no tool", finding)
    bad = step(game, "plan/restraint")
    assert (bad.status, bad.reason) == (Status.PARSE_FAILURE, reason)
    assert step(game, "plan/edit").status is Status.OK


@pytest.mark.parametrize("tool", ["grounding", "difference", "scene_graph", "ocr"])
def test_no_tool_is_used_on_a_control_image(tool):
    game = played("cig", [tool, None])
    assert game.labels == [["plan"], ["control/rating", "prompt/rating"]]
    assert shown(game, "control/rating") == ["control", "output"]
    assert game.verdict.findings == ("plan: forbidden tool", "plan: no tool")
    assert step(game, "plan/control").reason == "tools do not support guidance maps"


def test_an_unreadable_plan_is_asked_for_again_and_then_done_without():
    unread = [Text("use everything")], [Text("I would rather not plan.")]
    ratings = [Text(score(5)), Text(score(5))]
    game = playing.play(built()(sample("tie")), *unread, ratings)
    assert game.labels == [["plan"], ["plan"], ["edit/rating", "restraint/rating"]]
    assert "could not be used" in game.rounds[1][0].messages[-1].parts[0]
    verdict = game.verdict
    assert (verdict.scores, verdict.status) == ({"SC": 0.5}, Status.OK)
    assert verdict.findings == ("plan: unreadable", "plan: unreadable")
    plans = [s.status for s in verdict.trace if s.label.startswith("plan")]
    assert plans == [Status.PARSE_FAILURE] * 4


@pytest.mark.parametrize(*table("plans_as_written.jsonl"))
def test_a_plan_is_read_in_the_forms_that_models_write(entries):
    game = played("tie", entries, replies=graphs("edit"))
    assert game.verdict.findings == ("plan: scene_graph", "plan: no tool")


UNREADABLE = ["{" * 5000, "[1, 2]", '{"plan": {"task_id": 1}}']


@pytest.mark.parametrize("entries", [*UNREADABLE, '{"plan": [{"tool": "ocr"}]}'])
def test_a_plan_of_another_shape_is_unreadable(entries):
    assert read_plan(entries).status is Status.PARSE_FAILURE


def test_a_tool_that_fails_is_counted_and_the_question_rated_without_it():
    lost = {"subject/grounding output": Failure(Status.TOOL_ERROR, "out of memory")}
    game = played("sdig", ["grounding", None], replies=lost)
    assert shown(game, "subject/rating") == ["subject", "output"]
    assert tools.registry()["grounding"].note not in game.text("subject/rating")
    assert game.verdict.scores == {"SC": 0.5}
    failed = "tool failed: grounding"
    assert game.verdict.findings == ("plan: grounding", failed, "plan: no tool")
    assert step(game, "subject/grounding output").reason == "out of memory"


def test_a_rating_that_cannot_be_read_leaves_no_score():
    replies = {"edit/rating": score(9), "restraint/rating": "rather good"}
    verdict = play(built(only=(), reminders=0)(sample("tie")), replies).verdict
    assert (verdict.scores, verdict.status) == ({}, Status.PARSE_FAILURE)


def test_every_call_has_a_step_of_its_label_with_the_reply_word_for_word():
    replies = graphs("restraint")
    game = played("tie", ["grounding", "scene_graph"], replies=replies)
    answers = {step.label: step.answer for step in game.verdict.trace}
    assert len(answers) == len(game.verdict.trace)
    assert {label for wave in game.labels for label in wave} <= set(answers)
    assert answers["plan"] == plan("grounding", "scene_graph")
    assert answers["restraint/scene_graph source"] == GRAPH
    assert answers["edit/rating"] == score(5)
    assert from_json(answers["edit/grounding output"]) == ToolResult((BOX,))


def prepared(setting="paper", **options):
    return playing.prepared("cigeval", setting, **options)


def offered(judge):
    [ask] = playing.first_asks(judge(sample("tie")))
    return ask.schema["properties"]["plan"]["items"]["properties"]["tool"]["enum"]


def test_settings_remove_tools_and_the_released_code_knows_no_ocr():
    every = ["none", "difference", "grounding", "ocr", "scene_graph"]
    assert offered(prepared(removed=()).judge) == every
    every.remove("ocr")
    assert offered(prepared().judge) == every
    every.remove("grounding")
    assert offered(prepared("no_grounding").judge) == every


def test_improvements_are_named_beside_the_setting():
    improved = prepared(improvements=("named_entity", "mask")).provenance
    assert improved.settings == ("paper", "mask", "named_entity")
    assert prepared().provenance.settings == ("paper",)


def test_unknown_names_are_refused():
    known = "unknown tool 'saw'; known tools: difference, grounding, ocr, scene_graph"
    refuses(known, prepared, removed=("saw",))
    refuses("unknown setting 'no_saw'", prepared, "no_saw")


def test_a_package_that_is_missing_is_told_before_the_run(monkeypatch):
    known = tools.registry()
    use = known["grounding"].use
    lacking = Tool("grounding", needs=("no_such_package",), use=use)
    monkeypatch.setattr(tools, "planned", lambda: (lacking, known["ocr"]))
    refuses("grounding requires no_such_package", prepared)
    assert prepared(removed=("grounding", "ocr")).judge
