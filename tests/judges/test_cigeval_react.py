"""Test CIGEval's second form: the model calls tools itself, in turns, then rates."""

import json

import pytest

from tests import playing
from tests.cigeval_script import ASKED, BOX, GRAPH, built, names, picture, play, sample
from vieval_plugin.judges.cigeval import react
from vieval_plugin.judges.protocol import Failure, Status, Text, ToolResult


def turn(tool="none", phrases=(), scores=(), thought="hm"):
    answer = {"thought": thought, "tool": tool, "phrases": phrases, "score": scores}
    return json.dumps({**answer, "reasoning": "because" if scores else ""})


def use(tool, *phrases):
    return turn(tool, phrases)


def rate(value):
    return turn(scores=[value])


def played(task, *, reminders=1, **of_names):
    """Replies in turn by sub-question, others are rated 5; `also` has replies by label."""
    also = of_names.pop("also", {})
    replies = {f"{name}/turn 1": rate(5) for name in ASKED[task][0]}
    for name, said in of_names.items():
        turns = enumerate(said, start=1)
        replies |= {f"{name}/turn {number}": text for number, text in turns}
    judge = built(form=react, reminders=reminders)
    return play(judge(sample(task)), {**replies, **also})


def shown(game, label):
    return names(game.shown(label))


@pytest.mark.parametrize("task", ASKED)
def test_each_sub_question_is_a_conversation_that_begins_with_its_images(task):
    names = ASKED[task][0]
    game = played(task)
    assert game.labels == [[f"{name}/turn 1" for name in names]]
    for name, images in names.items():
        assert shown(game, f"{name}/turn 1") == images
    assert game.verdict.scores == {"SC": 0.5}
    assert game.verdict.findings == ()


def test_a_tool_is_called_and_what_it_found_is_shown_in_the_next_turn():
    edit = [use("grounding", "hat"), use("Scene Graph"), rate(8)]
    roles = ("source", "output")
    graphs = {f"edit/turn 2/scene_graph {role}": GRAPH for role in roles}
    game = played("tie", edit=edit, also=graphs)
    assert game.asked("edit/turn 1/grounding source").arguments["phrases"] == ("hat",)
    highlighted = [f"edit/turn 1/highlight {role}" for role in roles]
    assert shown(game, "edit/turn 2") == ["source", "output", *highlighted]
    assert shown(game, "edit/turn 3") == ["source", "output", *highlighted]
    last = game.asked("edit/turn 3").messages
    turns = ["user", "assistant", "user", "assistant", "user"]
    assert [message.role for message in last] == turns
    assert last[1].parts == (use("grounding", "hat"),)
    assert GRAPH in last[4].parts[0]
    assert game.verdict.scores == {"SC": 0.5}
    assert game.verdict.rationale == "edit: because\nrestraint: because"
    assert game.verdict.findings == ("action: grounding", "action: scene_graph")


def test_without_phrases_of_its_own_the_text_of_the_question_is_looked_for():
    game = played("tie", edit=[use("grounding"), rate(8)])
    asked = game.asked("edit/turn 1/grounding source").arguments
    assert asked["phrases"] == ("make the hat red",)


def test_after_the_last_tool_call_only_a_score_is_taken():
    game = played("sdig", prompt=[use("ocr"), use("ocr"), use("ocr"), rate(3)])
    assert "use a tool (1 time more)" in game.text("prompt/turn 3")
    assert "No more tools can be used" in game.text("prompt/turn 4")
    enum = game.asked("prompt/turn 4").schema["properties"]["tool"]["enum"]
    assert enum == ["none"]
    assert game.verdict.scores == {"SC": 0.3}


def test_a_model_that_goes_on_calling_tools_is_not_rated():
    game = played("sdig", reminders=0, prompt=[use("ocr")] * 4)
    assert (game.verdict.scores, game.verdict.status) == ({}, Status.PARSE_FAILURE)
    assert "number of values must be 1, got 0" in game.verdict.trace[-1].reason


NOT_HERE = "difference does not apply to this task"


@pytest.mark.parametrize(
    ("tool", "finding", "told"),
    [
        ("magnifier", "action: unknown tool", "unknown tool 'magnifier'"),
        ("difference", "action: forbidden tool", NOT_HERE),
    ],
)
def test_a_bad_call_is_counted_and_told_to_the_model(tool, finding, told):
    game = played("tie", edit=[use(tool), rate(6)])
    assert f"could not be used: {told}" in game.text("edit/turn 2")
    assert shown(game, "edit/turn 2") == ["source", "output"]
    [step] = [step for step in game.verdict.trace if step.label == "edit/turn 1/action"]
    assert (step.status, step.reason) == (Status.PARSE_FAILURE, told)
    assert game.verdict.findings == (finding,)
    assert game.verdict.scores == {"SC": 0.5}


def test_on_a_control_image_no_tool_is_offered():
    game = played("cig", reminders=0, control=[use("grounding")])
    assert "grounding" not in game.text("control/turn 1")
    assert game.asked("control/turn 1").schema["properties"]["tool"]["enum"] == ["none"]
    assert game.verdict.status is Status.PARSE_FAILURE
    assert "grounding" in game.text("prompt/turn 1")


def test_a_tool_that_fails_is_told_to_the_model_and_counted():
    lost = {"prompt/turn 1/ocr output": Failure(Status.TOOL_ERROR, "out of memory")}
    game = played("tig", prompt=[use("ocr"), rate(7)], also=lost)
    assert "could not be used: out of memory" in game.text("prompt/turn 2")
    assert game.verdict.findings == ("action: ocr", "tool failed: ocr")
    assert game.verdict.scores == {"SC": 0.7}


def test_an_unreadable_turn_is_asked_for_again_and_left_out_of_the_conversation():
    program = built(form=react)(sample("tig"))
    found = ToolResult((BOX,), "EXIT")
    said = [Text("let me see")], [Text(use("ocr"))], [found], [Text(rate(5))]
    _, [again], [tool], [after] = playing.play(program, *said).rounds
    assert "could not be used" in again.messages[-1].parts[0]
    assert tool.arguments == {"image": picture("output")}
    assert [message.role for message in after.messages] == ["user", "assistant", "user"]
    assert after.messages[1].parts == (use("ocr"),)
    assert "Text in the output picture: EXIT" in after.messages[2].parts[-1]


def test_conversations_of_different_sub_questions_go_on_at_once():
    game = played("sdig", subject=[use("ocr"), rate(8)], prompt=[use("ocr"), rate(8)])
    first, calls, second = game.labels
    assert first == ["subject/turn 1", "prompt/turn 1"]
    subject = ["subject/turn 1/ocr subject", "subject/turn 1/ocr output"]
    assert calls == [*subject, "prompt/turn 1/ocr output"]
    assert second == ["subject/turn 2", "prompt/turn 2"]


def test_the_setting_comes_from_the_options_and_the_limit_is_said():
    ready = playing.prepared("cigeval", "react", removed=("grounding", "ocr"))
    assert ready.provenance.settings == ("react",)
    [ask] = playing.first_asks(ready.judge(sample("tig")))
    assert "3 times at most" in ask.messages[0].parts[-1]
