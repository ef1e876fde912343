"""CIGEval, played through with scripted replies: a plan, tools, a rating for each sub-question."""

import dataclasses
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
from vieval_plugin.judges.cigeval import plan as planned
from vieval_plugin.judges.cigeval import react
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


def use(tool, *phrases, scores=()):
    """A turn that calls a tool or rates."""
    call = {"thought": "hm", "tool": tool, "phrases": phrases, "score": scores}
    return json.dumps({**call, "reasoning": "because" if scores else ""})


RATED = use("none", scores=[5])


def said(reply):
    """A reply as a table writes it: a rating, a text, a result or a failure."""
    if not isinstance(reply, dict):
        return reply if isinstance(reply, str) else score(reply)
    if "failure" in reply:
        return Failure(Status.TOOL_ERROR, reply["failure"])
    return ToolResult(tuple(Box(*sides) for sides in reply.get("boxes", ())))


def played(task, entries=(), *improvements, graphs=(), turns=None, **case):
    """CIGEval on a case: each sub-question is rated 5 unless `replies` or `turns` say else."""
    about = {key: case[key] for key in ("only", "reminders") if key in case}
    judge = built(*improvements, form=planned if turns is None else react, **about)
    replies = {"plan": entries if isinstance(entries, str) else plan(*entries)}
    for name in ASKED[task][0]:
        replies |= {f"{name}/rating": score(5), f"{name}/turn 1": RATED}
    for role in ("source", "output"):
        replies |= {f"{name}/scene_graph {role}": GRAPH for name in graphs}
    for name, answers in (turns or {}).items():
        for number, answer in enumerate(answers, start=1):
            is_call = isinstance(answer, list)
            turn = use(*answer) if is_call else use("none", scores=[answer])
            replies[f"{name}/turn {number}"] = turn
    given = {label: said(reply) for label, reply in case.get("replies", {}).items()}
    return play(judge(sample(task, case.get("without", ()))), {**replies, **given})


def shown(game, label):
    return names(game.shown(label))


def steps(game):
    return {step.label: step for step in game.verdict.trace}


def as_json(arguments):
    """Arguments of a tool as a table writes them."""
    sides = dataclasses.astuple
    plain = lambda one: sides(one) if isinstance(one, Box) else str(one.source)
    return json.loads(json.dumps(arguments, default=plain))


@pytest.mark.parametrize(*table("cigeval_plays.jsonl"))
def test_a_case_is_played_as_written(case):
    improvements = case.get("improvements", ())
    inputs = {"graphs", "turns", "only", "reminders", "replies", "without"}
    chosen = {key: value for key, value in case.items() if key in inputs}
    game = played(case["task"], case.get("plan", ()), *improvements, **chosen)
    verdict = game.verdict
    assert verdict.scores == case.get("scores", {"SC": 0.5})
    assert verdict.status == case.get("status", "ok")
    assert list(verdict.findings) == case["findings"]
    assert verdict.rationale == case.get("rationale", verdict.rationale)
    assert game.labels == case.get("labels", game.labels)
    assert game.labels[0] == case.get("first", game.labels[0])
    for label, images in case.get("shown", {}).items():
        assert shown(game, label) == images
    for label, words in case.get("told", {}).items():
        assert words in game.text(label)
    for label, arguments in case.get("arguments", {}).items():
        assert as_json(game.asked(label).arguments) == arguments
    for label, offered in case.get("offered", {}).items():
        assert game.asked(label).schema["properties"]["tool"]["enum"] == offered
    for label, reason in case.get("reasons", {}).items():
        assert steps(game)[label].reason.endswith(reason)
        assert steps(game)[label].status.usable is (not reason)


def counted(task):
    """How many entries a plan has by the released code: mcic's concepts share one."""
    return 2 if task == "mcic" else len(ASKED[task][0])


@pytest.mark.parametrize("task", ASKED)
def test_each_call_gets_its_images_in_order(task):
    names, seen_by_planner = ASKED[task]
    game = played(task, [None] * counted(task))
    assert game.labels == [["plan"], [f"{name}/rating" for name in names]]
    assert shown(game, "plan") == seen_by_planner
    turns = played(task, turns={})
    assert turns.labels == [[f"{name}/turn 1" for name in names]]
    for name, images in names.items():
        assert shown(game, f"{name}/rating") == images
        assert shown(turns, f"{name}/turn 1") == images


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


@pytest.mark.parametrize("task", PHRASES)
def test_grounding_looks_for_what_the_released_code_looks_for(task):
    game = played(task, ["grounding"] * counted(task))
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


@pytest.mark.parametrize("task", [task for task in ROLES if task != "mie"])
def test_difference_is_for_mask_guided_edits_alone_by_the_released_code(task):
    game = played(task, ["difference"] * counted(task))
    assert not [ask for ask in game.asks if isinstance(ask, UseTool)]
    assert game.verdict.scores == {"SC": 0.5}
    assert set(game.verdict.findings) == {"plan: forbidden tool"}


def test_a_scene_graph_is_asked_of_its_own_backbone_for_each_image_with_the_same_words():
    game = played("tie", ["scene_graph"] * 2, graphs=["edit", "restraint"])
    asked = [ask for ask in game.asks if "scene_graph" in playing.label_of(ask)]
    assert {ask.backbone for ask in asked} == {"scene_graph"}
    assert len({ask.messages[0].parts[1] for ask in asked}) == 1
    # the same image is asked about in the same words, so that stores and backends answer it once
    assert asked[0].messages == asked[2].messages
    assert shown(game, "edit/scene_graph source") == ["source"]
    assert shown(game, "edit/rating") == ["source", "output"]
    assert f"Scene graph of the source picture: {GRAPH}" in game.text("edit/rating")


def test_an_unreadable_plan_is_asked_for_again_and_then_done_without():
    unread = [Text("use everything")], [Text("I would rather not plan.")]
    game = playing.play(built()(sample("tie")), *unread, [Text(score(5))] * 2)
    assert game.labels == [["plan"], ["plan"], ["edit/rating", "restraint/rating"]]
    assert "could not be used" in game.rounds[1][0].messages[-1].parts[0]
    verdict = game.verdict
    assert (verdict.scores, verdict.status) == ({"SC": 0.5}, Status.OK)
    assert verdict.findings == ("plan: unreadable", "plan: unreadable")
    plans = [s.status for s in verdict.trace if s.label.startswith("plan")]
    assert plans == [Status.PARSE_FAILURE] * 4


UNREADABLE = ["{" * 5000, "[1, 2]", '{"plan": {"task_id": 1}}']


@pytest.mark.parametrize("entries", [*UNREADABLE, '{"plan": [{"tool": "ocr"}]}'])
def test_a_plan_of_another_shape_is_unreadable(entries):
    assert planned.read_plan(entries).status is Status.PARSE_FAILURE


def test_every_call_has_a_step_of_its_label_with_the_reply_word_for_word():
    tools_used = ("grounding", "scene_graph")
    game = played("tie", tools_used, graphs=["restraint"])
    answers = {label: step.answer for label, step in steps(game).items()}
    assert len(answers) == len(game.verdict.trace)
    assert {label for wave in game.labels for label in wave} <= set(answers)
    assert answers["plan"] == plan(*tools_used)
    assert answers["restraint/scene_graph source"] == GRAPH
    assert answers["edit/rating"] == score(5)
    assert from_json(answers["edit/grounding output"]) == ToolResult((BOX,))


# The second form: the model calls tools itself, in turns, then rates.


def test_a_call_and_what_it_found_are_turns_of_the_conversation():
    turns = {"edit": [["grounding", "hat"], ["Scene Graph"], 8]}
    game = played("tie", turns=turns, graphs=["edit/turn 2"])
    last = game.asked("edit/turn 3").messages
    roles = ["user", "assistant", "user", "assistant", "user"]
    assert [message.role for message in last] == roles
    assert last[1].parts == (use("grounding", "hat"),)
    assert GRAPH in last[4].parts[0]


def test_an_unreadable_turn_is_asked_for_again_and_left_out_of_the_conversation():
    program = built(form=react)(sample("tig"))
    found = ToolResult((BOX,), "EXIT")
    replies = [Text("let me see")], [Text(use("ocr"))], [found], [Text(RATED)]
    _, [again], [tool], [after] = playing.play(program, *replies).rounds
    assert "could not be used" in again.messages[-1].parts[0]
    assert tool.arguments == {"image": picture("output")}
    assert [message.role for message in after.messages] == ["user", "assistant", "user"]
    assert after.messages[1].parts == (use("ocr"),)
    assert "Text in the output picture: EXIT" in after.messages[2].parts[-1]


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
    in_turns = prepared("react", removed=("grounding", "ocr"))
    [ask] = playing.first_asks(in_turns.judge(sample("tig")))
    assert "3 times at most" in ask.messages[0].parts[-1]


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
