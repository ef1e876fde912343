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
from vieval_plugin.judges import tools
from vieval_plugin.judges.cigeval.plan import read_plan
from vieval_plugin.judges.protocol import (
    Box,
    Failure,
    Status,
    Text,
    ToolResult,
    UseTool,
    Verdict,
)
from vieval_plugin.judges.tools import Tool, from_json
from vieval_plugin.text.errors import VievalError

# what the detector looks for by the released code
PHRASES = {
    ("tig", "prompt"): "two cats",
    ("tie", "edit"): "make the hat red",
    ("tie", "restraint"): "make the hat red",
    ("mie", "edit"): "put a hat here",
    ("mie", "restraint"): "put a hat here",
    ("cig", "prompt"): "a room",
    ("sdig", "subject"): "a dog on a beach",
    ("sdig", "prompt"): "a dog on a beach",
    ("sdie", "subject"): "vase",
    ("sdie", "background"): "background",
    ("mcic", "concept_1"): "cat",
    ("mcic", "concept_2"): "vase",
    ("mcic", "prompt"): "a cat and a vase",
}


def planned(task):
    """How many entries a plan has by the released code: mcic's concepts share one."""
    return 2 if task == "mcic" else len(ASKED[task][0])


def ratings(task, *values):
    names = ASKED[task][0]
    return {
        f"{name}/rating": score(value)
        for name, value in zip(names, values or [5] * len(names), strict=True)
    }


def played(task, entries, *improvements, replies=(), without=(), only=None):
    judge = built(*improvements, only=only)
    given = {
        "plan": entries if isinstance(entries, str) else plan(*entries),
        **ratings(task),
        **dict(replies),
    }
    return play(judge(sample(task, without)), given)


def shown(game, label):
    return names(game.shown(label))


def step(played, label):
    [found] = [step for step in played.verdict.trace if step.label == label]
    return found


# Without tools.


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
    assert (
        game.verdict.rationale
        == "concept_1: because\nconcept_2: because\nprompt: because"
    )
    assert step(game, "concept_2/rating").scores == (2.5,)


def test_the_planner_reads_the_sub_questions_the_texts_and_the_tools():
    text = played("mcic", [None, None]).text("plan")
    assert "a cat and a vase" in text
    assert "1. Is the cat (and likewise the vase)" in text
    assert "2. Does the generated picture show" in text
    assert "3. " not in text
    assert all(
        tool.description in text and tool.name in text for tool in tools.planned()
    )
    schema = played("mcic", [None, None]).asked("plan").schema
    assert schema["properties"]["plan"]["minItems"] == 2


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


def test_a_sample_without_an_image_is_not_applicable_and_the_image_named():
    game = playing.play(
        playing.prepared("cigeval", "no_grounding").program(sample("sdie", ("source",)))
    )
    assert game.verdict.status is Status.NOT_APPLICABLE
    assert game.verdict.trace[0].reason == "the sample has no source image"
    assert game.asks == []


# Grounding.


@pytest.mark.parametrize(("task", "name"), PHRASES)
def test_grounding_looks_for_what_the_released_code_looks_for_and_shows_it_highlighted(
    task, name
):
    game = played(task, ["grounding"] * planned(task))
    roles = ASKED[task][0][name]
    for role in roles:
        asked = game.asked(f"{name}/grounding {role}")
        assert asked.arguments == {
            "image": picture(role),
            "phrases": (PHRASES[task, name],),
            "detector": "a detector",
        }
        highlight = game.asked(f"{name}/highlight {role}")
        assert highlight.arguments == {"image": picture(role), "boxes": (BOX,)}
    assert shown(game, f"{name}/rating") == [
        f"{name}/highlight {role}" for role in roles
    ]
    assert tools.registry()["grounding"].note in game.text(f"{name}/rating")


def test_tools_of_different_sub_questions_run_at_once():
    game = played("tie", ["grounding", "grounding"])
    assert game.labels[1] == [
        f"{name}/grounding {role}"
        for name in ("edit", "restraint")
        for role in ("source", "output")
    ]
    assert len(game.labels) == 4


def test_an_image_in_which_nothing_is_found_stays_as_it_is():
    game = played(
        "sdig", ["grounding", None], replies={"subject/grounding subject": ToolResult()}
    )
    assert shown(game, "subject/rating") == ["subject", "subject/highlight output"]
    assert "In the subject picture it found nothing" in game.text("subject/rating")


# Difference.


def test_difference_shows_its_largest_box_in_both_images_at_the_size_of_the_first():
    boxes = (Box(0, 0, 9, 9), Box(20, 20, 22, 22))
    game = played(
        "mie", ["difference", None], replies={"edit/difference": ToolResult(boxes)}
    )
    assert game.asked("edit/difference").arguments == {
        "first": picture("source"),
        "second": picture("output"),
    }
    for role in ("source", "output"):
        assert game.asked(f"edit/highlight {role}").arguments == {
            "image": picture(role),
            "boxes": boxes[:1],
            "like": picture("source"),
        }
    assert shown(game, "edit/rating") == [
        "edit/highlight source",
        "edit/highlight output",
    ]
    assert shown(game, "restraint/rating") == ["source", "output"]
    assert from_json(step(game, "edit/difference").answer) == ToolResult(boxes)


def test_all_differences_are_shown_where_that_is_chosen():
    boxes = (Box(0, 0, 9, 9), Box(20, 20, 22, 22))
    game = played(
        "mie",
        ["difference", None],
        "all_differences",
        replies={"edit/difference": ToolResult(boxes)},
    )
    assert game.asked("edit/highlight output").arguments["boxes"] == boxes


def test_no_difference_leaves_both_images_and_says_so():
    game = played(
        "mie", ["difference", None], replies={"edit/difference": ToolResult()}
    )
    assert shown(game, "edit/rating") == ["source", "output"]
    assert "No region was found" in game.text("edit/rating")


def test_with_the_mask_success_is_looked_for_inside_and_over_editing_outside():
    game = played("mie", ["difference", "difference"], "mask")
    sides = {
        name: game.asked(f"{name}/difference").arguments
        for name in ("edit", "restraint")
    }
    assert sides["edit"]["side"] == "inside"
    assert sides["restraint"]["side"] == "outside"
    assert sides["edit"]["mask"] == sides["restraint"]["mask"] == picture("mask")


@pytest.mark.parametrize("task", [task for task in ROLES if task != "mie"])
def test_difference_is_for_mask_guided_edits_alone_by_the_released_code(task):
    game = played(task, ["difference"] * planned(task))
    assert not [ask for ask in game.asks if isinstance(ask, UseTool)]
    assert game.verdict.scores == {"SC": 0.5}
    assert set(game.verdict.findings) == {"plan: forbidden tool"}


def test_difference_serves_text_guided_edits_where_that_is_chosen():
    game = played("tie", ["difference", None], "difference_on_tie")
    assert shown(game, "edit/rating") == [
        "edit/highlight source",
        "edit/highlight output",
    ]


# Scene graph and OCR.


def test_a_scene_graph_is_asked_of_its_own_backbone_for_each_image_with_the_same_words():
    graphs = {
        f"{name}/scene_graph {role}": GRAPH
        for name in ("edit", "restraint")
        for role in ("source", "output")
    }
    game = played("tie", ["scene_graph", "scene_graph"], replies=graphs)
    asked = [game.asked(label) for label in graphs]
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


# Improvements of the plan.


def test_a_named_entity_takes_the_place_of_the_whole_text():
    entries = json.dumps({
        "plan": [
            {"task_id": 1, "used": True, "tool": "grounding", "entities": ["hat", " "], "reasoning": ""},
            {"task_id": 2, "used": True, "tool": "grounding", "entities": [], "reasoning": ""},
        ]
    })  # fmt: skip
    game = played("tie", entries, "named_entity")
    assert game.asked("edit/grounding output").arguments["phrases"] == ("hat",)
    assert game.asked("restraint/grounding output").arguments["phrases"] == (
        "make the hat red",
    )
    plain = played("tie", entries)
    assert plain.asked("edit/grounding output").arguments["phrases"] == (
        "make the hat red",
    )


def test_both_subjects_share_an_entry_unless_each_is_planned():
    shared = played("mcic", ["grounding", None])
    assert {"concept_1/grounding output", "concept_2/grounding output"} <= set(
        shared.labels[1]
    )
    each = played("mcic", ["grounding", None, None], "plan_each_subject")
    assert "concept_1/grounding output" in each.labels[1]
    assert not any("concept_2/grounding output" in wave for wave in each.labels)
    assert "3. " in each.text("plan")


# Bad plans: the rating goes on without a tool, and what was wrong is a step and is counted.


@pytest.mark.parametrize(
    ("entries", "finding", "reason"),
    [
        (
            [None, "magnifier"],
            "plan: unknown tool",
            "the tool 'magnifier' does not exist",
        ),
        (
            [None, "highlight"],
            "plan: tool not offered",
            "the tool 'highlight' was not offered",
        ),
        ([None, "ocr"], "plan: tool not offered", "the tool 'ocr' was not offered"),
        (
            [None, "difference"],
            "plan: forbidden tool",
            "difference does not apply to this task",
        ),
        ([None], "plan: no entry", "the plan has no entry for this question"),
    ],
)
def test_a_bad_entry_is_counted_and_the_question_rated_without_a_tool(
    entries, finding, reason
):
    game = played("tie", entries, only=("grounding", "difference", "scene_graph"))
    assert game.labels == [["plan"], ["edit/rating", "restraint/rating"]]
    assert game.verdict == Verdict(
        {"SC": 0.5},
        Status.OK,
        game.verdict.rationale,
        game.verdict.trace,
        findings=("plan: no tool", finding),
    )
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
    program = built()(sample("tie"))
    game = playing.play(
        program,
        [Text("use everything")],
        [Text("I would rather not plan.")],
        [Text(score(5)), Text(score(5))],
    )
    assert game.labels == [["plan"], ["plan"], ["edit/rating", "restraint/rating"]]
    assert "could not be used" in game.rounds[1][0].messages[-1].parts[0]
    verdict = game.verdict
    assert (verdict.scores, verdict.status) == ({"SC": 0.5}, Status.OK)
    assert verdict.findings == ("plan: unreadable", "plan: unreadable")
    assert [s.status for s in verdict.trace if s.label.startswith("plan")] == [
        Status.PARSE_FAILURE
    ] * 4


@pytest.mark.parametrize(
    "entries",
    [
        (
            '[{"task_id": 1, "used": "yes", "tool": "Scene Graph"}, {"task_id": "2", "used": "no", '
            '"tool": "Grounding"}]'
        ),
        (
            'Sure!\n```json\n{"plan": [{"task_id": 1, "tool": "scene-graph"}, {"task_id": 2, '
            '"tool": '
            "null}]}\n```"
        ),
        (
            '<think>{"plan": []}</think>{"plan": [{"task_id": 1, "tool": "scene_graph"}, '
            '{"task_id": '
            '2, "tool": "None"}]}'
        ),
    ],
)
def test_a_plan_is_read_in_the_forms_that_models_write(entries):
    graphs = {f"edit/scene_graph {role}": GRAPH for role in ("source", "output")}
    game = played("tie", entries, replies=graphs)
    assert game.verdict.findings == ("plan: scene_graph", "plan: no tool")


@pytest.mark.parametrize(
    "entries",
    ["{" * 5000, "[1, 2]", '{"plan": [{"tool": "ocr"}]}', '{"plan": {"task_id": 1}}'],
)
def test_a_plan_of_another_shape_is_unreadable(entries):
    assert read_plan(entries).status is Status.PARSE_FAILURE


# Failures.


def test_a_tool_that_fails_is_counted_and_the_question_rated_without_it():
    lost = Failure(Status.TOOL_ERROR, "out of memory")
    game = played(
        "sdig", ["grounding", None], replies={"subject/grounding output": lost}
    )
    assert shown(game, "subject/rating") == ["subject", "output"]
    assert tools.registry()["grounding"].note not in game.text("subject/rating")
    assert game.verdict.scores == {"SC": 0.5}
    assert game.verdict.findings == (
        "plan: grounding",
        "tool failed: grounding",
        "plan: no tool",
    )
    assert step(game, "subject/grounding output").reason == "out of memory"


@pytest.mark.parametrize(
    "label", ["plan", "edit/scene_graph source", "restraint/rating"]
)
def test_a_call_that_fails_leaves_the_sample_unrated(label):
    graphs = {f"edit/scene_graph {role}": GRAPH for role in ("source", "output")}
    lost = {label: Failure(Status.API_ERROR, "gone")}
    game = played("tie", ["scene_graph", None], replies={**graphs, **lost})
    assert (game.verdict.scores, game.verdict.status) == ({}, Status.API_ERROR)


def test_a_rating_that_cannot_be_read_leaves_no_score():
    judge = built(only=(), reminders=0)
    game = play(
        judge(sample("tie")),
        {"edit/rating": score(9), "restraint/rating": "rather good"},
    )
    assert (game.verdict.scores, game.verdict.status) == ({}, Status.PARSE_FAILURE)


def test_every_call_has_a_step_of_its_label_with_the_reply_word_for_word():
    graphs = {f"restraint/scene_graph {role}": GRAPH for role in ("source", "output")}
    game = played("tie", ["grounding", "scene_graph"], replies=graphs)
    answers = {step.label: step.answer for step in game.verdict.trace}
    assert len(answers) == len(game.verdict.trace)
    assert {label for wave in game.labels for label in wave} <= set(answers)
    assert answers["plan"] == plan("grounding", "scene_graph")
    assert answers["restraint/scene_graph source"] == GRAPH
    assert answers["edit/rating"] == score(5)
    assert from_json(answers["edit/grounding output"]) == ToolResult((BOX,))


# Options.


def prepared(setting="paper", **options):
    return playing.prepared("cigeval", setting, **options)


def offered(judge):
    [ask] = playing.first_asks(judge(sample("tie")))
    return ask.schema["properties"]["plan"]["items"]["properties"]["tool"]["enum"]


def test_settings_remove_tools_and_the_released_code_knows_no_ocr():
    assert offered(prepared().judge) == [
        "none",
        "difference",
        "grounding",
        "scene_graph",
    ]
    assert offered(prepared("no_grounding").judge) == [
        "none",
        "difference",
        "scene_graph",
    ]
    assert offered(prepared(removed=()).judge) == [
        "none",
        "difference",
        "grounding",
        "ocr",
        "scene_graph",
    ]


def test_improvements_are_named_beside_the_setting():
    assert prepared(improvements=("named_entity", "mask")).provenance.settings == (
        "paper",
        "mask",
        "named_entity",
    )
    assert prepared().provenance.settings == ("paper",)


def test_unknown_names_are_refused():
    with pytest.raises(
        VievalError,
        match="unknown tool 'saw'; known tools: difference, grounding, ocr, scene_graph",
    ):
        prepared(removed=("saw",))
    with pytest.raises(VievalError, match="unknown setting 'no_saw'"):
        prepared("no_saw")


def test_a_package_that_is_missing_is_told_before_the_run(monkeypatch):
    lacking = Tool(
        "grounding", needs=("no_such_package",), use=tools.registry()["grounding"].use
    )
    monkeypatch.setattr(tools, "planned", lambda: (lacking, tools.registry()["ocr"]))
    with pytest.raises(VievalError, match="grounding requires no_such_package"):
        prepared()
    assert prepared(removed=("grounding", "ocr")).judge
