"""Test that a reply is asked for again, with its error told, only if it is unreadable."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.playing import label_of, play
from tests.tables import table
from vieval_plugin import Image, Status, Verdict
from vieval_plugin.judges.parsing import parse_number, reply_schema
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Measurement,
    Message,
    Probabilities,
    Text,
)
from vieval_plugin.judges.structured_chat import (
    CONFIRMED,
    REMINDER,
    ChatRequest,
    ask_all,
    score_request,
)
from vieval_plugin.prompts import packs

PICTURE = Image(Path("a.png"))
GOOD = Text('{"score": [7, 8], "reasoning": "clean"}')
BAD = Text("Lovely picture, well done.")


class Pack:
    """The reminder is the reason alone."""

    questions, asks_for_labels = None, False

    def __init__(self, reminders=1):
        self.reminders = reminders

    def render(self, template, variables):
        assert template == REMINDER
        return f"Wrong: {variables['reason']}"


def asks(*labels, count=2):
    message = Message("user", (PICTURE, "Rate it."))
    chats = (Chat((message,), (label,), reply_schema(count)) for label in labels)
    return list(map(score_request, chats))


def played(asked, *rounds, reminders=1):
    """The chats of each round, and what the program returns."""
    game = play(ask_all(asked, Pack(reminders)), *rounds)
    return game.rounds, game.result


def scored(*replies, reminders=1):
    """What becomes of one question that is answered so."""
    _, [found] = played(asks("SC"), *([one] for one in replies), reminders=reminders)
    return found


MENDED = Text("Sure! {'score': [7, 8], 'reasoning': 'clean'}")
LOST = Failure(Status.API_ERROR, "HTTP 500, 6 times")
LOVELY = Text("Still lovely.")
#: By name: replies, reminders at most, statuses of the steps, the attempt that counts, and scores.
ENDS = {
    "readable": ([GOOD], 1, ["ok"], 0, (7, 8)),
    "unreadable once": ([BAD, GOOD], 1, ["parse_failure", "repaired"], 1, (7, 8)),
    "mended": ([BAD, MENDED], 1, ["parse_failure", "repaired"], 1, (7, 8)),
    "unreadable twice": ([BAD, LOVELY], 1, ["parse_failure", "parse_failure"], 0, ()),
    "without reminders": ([BAD], 0, ["parse_failure"], 0, ()),
    "a call that fails": ([BAD, LOST], 1, ["parse_failure", "api_error"], 1, ()),
}


@pytest.mark.parametrize(
    ("replies", "reminders", "statuses", "attempt", "scores"), ENDS.values(), ids=ENDS
)
def test_each_reply_is_a_step(replies, reminders, statuses, attempt, scores):
    found = scored(*replies, reminders=reminders)
    assert [step.status for step in found.steps] == statuses
    assert [step.attempt for step in found.steps] == list(range(len(replies)))
    said = [getattr(reply, "text", "") for reply in replies]
    assert [step.answer for step in found.steps] == said
    assert found.final == found.steps[attempt]
    assert (found.final.path, found.final.scores) == (("SC",), scores)
    reasons = {GOOD: "clean", MENDED: "clean", LOST: LOST.reason}
    wanted = [reasons.get(reply, "no JSON object found") for reply in replies]
    assert [step.reason for step in found.steps] == wanted


def test_the_reminder_shows_the_whole_conversation_the_answer_and_the_reason():
    [[first], [again]], _ = played(asks("SC"), [BAD], [GOOD])
    told = Message("user", ("Wrong: no JSON object found",))
    messages = (*first.messages, Message("assistant", (BAD.text,)), told)
    assert again == replace(first, messages=messages)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_answer_is_not_put_into_the_models_mouth(text):
    """Servers refuse an empty turn of the assistant, and two turns of the user in a row."""
    [_, [again]], [found] = played(asks("SC"), [Text(text)], [GOOD])
    [message] = again.messages
    assert message == Message("user", (PICTURE, "Rate it.", "Wrong: empty reply"))
    assert found.final.status is Status.REPAIRED


def test_a_long_answer_is_quoted_in_part():
    [_, [again]], [scored] = played(asks("SC"), [Text("bla " * 5000)], [GOOD])
    assert len(again.messages[-2].parts[0]) == 2000
    assert scored.steps[0].answer == "bla " * 5000


def test_more_reminders_each_answer_the_last_reply():
    replies = [BAD], [Text("{}")], [GOOD]
    [_, [second], [third]], [found] = played(asks("SC"), *replies, reminders=3)
    assert second.messages[-2].parts == (BAD.text,)
    assert third.messages[-2].parts == ("{}",)
    assert len(third.messages) == 3
    labels = ["SC", "SC (reminder 1)", "SC (reminder 2)"]
    assert [step.label for step in found.steps] == labels


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Failure(Status.REFUSAL, "the filter"), Status.REFUSAL),
        (Failure(Status.TOOL_ERROR, "a.png is cut off"), Status.TOOL_ERROR),
        (Probabilities((0.5,), (0.5,)), Status.API_ERROR),
        (Measurement(1.0), Status.API_ERROR),
    ],
)
def test_only_what_could_not_be_read_is_asked_again(reply, status):
    final = scored(reply, reminders=3).final
    assert (final.status, final.scores) == (status, ())
    assert final.reason


def test_only_the_unreadable_of_several_are_asked_again():
    first = [GOOD, BAD, Failure(Status.API_ERROR, "x"), BAD]
    chats, found = played(asks("a", "b", "c", "d"), first, [BAD, GOOD])
    assert [label_of(chat) for chat in chats[1]] == ["b", "d"]
    statuses = ["ok", "parse_failure", "api_error", "repaired"]
    assert [one.final.status for one in found] == statuses


@pytest.mark.parametrize("pack", packs.built_in("viescore"))
def test_the_reminder_of_a_pack_names_the_reason(pack):
    reason = "no JSON object found"
    assert reason in packs.load(pack).render(REMINDER, {"reason": reason})


def test_a_refusal_in_words_is_asked_again_and_its_beginning_is_listed():
    refusal = "I'm sorry, but I can't assist with that. " * 9
    found = scored(Text(refusal), Text(refusal))
    assert found.final.status is Status.PARSE_FAILURE
    failure = Verdict({}, Status.PARSE_FAILURE, trace=found.steps).reason
    assert failure == f"no JSON object found; the reply: {refusal[:120]!r}"


@pytest.mark.parametrize(*table("answers_within_text.jsonl"))
def test_an_answer_counts_if_it_is_whole_and_alone_or_if_two_replies_agree(
    replies, reminders, scores, status, is_confirmed
):
    found = scored(*(Text(**reply) for reply in replies), reminders=reminders)
    assert (found.final.scores, found.final.status) == (tuple(scores), status)
    assert found.steps[0].cut is replies[0].get("cut")
    assert (CONFIRMED in found.findings) is is_confirmed


def number_of(*replies, reminders=1):
    """The number that is read of a reply that comes again and again."""
    chat = Chat((Message("user", ("Rate it.",)),), ("PQ",))
    asked = [ChatRequest(chat, lambda text: parse_number(text, 0, 10))]
    rounds = ([reply] for reply in replies)
    return played(asked, *rounds, reminders=reminders)[1][0].value


ANALYSIS = "The light is fine, the left hand is warped."


def test_a_number_counts_unless_it_is_cut_or_two_replies_differ():
    assert number_of(Text("7"), reminders=0) == (7,)
    assert number_of(Text("7", cut=True), reminders=0) is None
    first = Text(f"{ANALYSIS}\nScore: 7")
    assert number_of(first, first) == (7,)
    assert number_of(first, Text(f"{ANALYSIS}\nScore: 8")) is None


@pytest.mark.parametrize(
    ("name", "scores"), [("Image 1", ()), ("画像1", ()), ("**Image 2**", (7, 8))]
)
def test_the_number_of_an_image_that_is_not_judged_is_not_read(name, scores):
    message = Message("user", (PICTURE, PICTURE, "Rate the edit."))
    asked = [score_request(Chat((message,), ("SC",), reply_schema(2)))]
    reply = [Text(f"{name}:\n{GOOD.text}")]
    [found] = played(asked, reply, *([] if scores else [reply]))[1]
    assert found.final.scores == scores


LONG = "on and on " * 3_000_000


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        ('{"score": [7, 8], "reasoning": "' + LONG + '"}', (7, 8)),
        ('{"reasoning": "' + LONG + '", "score": [7, 8]}', (7, 8)),
        (f"<think>{LONG}</think>" + GOOD.text, (7, 8)),
        (LONG, ()),
    ],
    ids=["scores first", "scores last", "thinking", "no scores"],
)
def test_of_a_reply_that_ran_on_all_is_read_and_its_ends_are_kept(text, scores):
    final = scored(Text(text), reminders=0).final
    assert final.scores == scores
    assert len(final.answer) + len(final.reason) < 2 * 66_000
    assert "characters left out" in final.answer
    assert final.answer[:1000] == text[:1000]
    assert final.answer[-1000:] == text[-1000:]
    # what is kept reads as the whole did
    assert scored(Text(final.answer), reminders=0).final.scores == scores


def test_a_reply_that_is_not_too_long_is_kept_word_for_word():
    text = GOOD.text + " " * 60_000
    assert scored(Text(text)).final.answer == text
