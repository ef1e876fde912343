"""Asking for scores: a reply that cannot be read is asked again with the error told, and nothing
else is.
"""

from pathlib import Path

import pytest

from tests.playing import label_of, play
from vieval_plugin.judges.parsing import parse_number, reply_schema
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Image,
    Measurement,
    Message,
    Probabilities,
    Status,
    Text,
    Verdict,
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
    return [
        score_request(
            Chat(
                (Message("user", (PICTURE, "Rate it.")),), (label,), reply_schema(count)
            )
        )
        for label in labels
    ]


def played(asked, *rounds, reminders=1):
    """The chats of each round, and what the program returns."""
    game = play(ask_all(asked, Pack(reminders)), *rounds)
    return game.rounds, game.result


def test_a_readable_reply_is_asked_for_once():
    chats, [scored] = played(asks("SC"), [GOOD])
    assert chats == [[asks("SC")[0].chat]]
    assert scored.final.scores == (7, 8)
    assert scored.final.status is Status.OK
    assert scored.steps == (scored.final,)


def test_an_unreadable_reply_is_asked_again_and_then_repaired():
    _, [scored] = played(asks("SC"), [BAD], [GOOD])
    assert (scored.final.path, scored.final.attempt) == (("SC",), 1)
    assert (scored.final.status, scored.final.scores) == (Status.REPAIRED, (7, 8))
    assert [(step.label, step.status, step.answer) for step in scored.steps] == [
        ("SC", Status.PARSE_FAILURE, BAD.text),
        ("SC (reminder 1)", Status.REPAIRED, GOOD.text),
    ]
    assert scored.steps[0].reason == "no JSON object found"


def test_the_reminder_shows_the_whole_conversation_the_answer_and_the_reason():
    [[first], [again]], _ = played(asks("SC"), [BAD], [GOOD])
    assert again.messages[:-2] == first.messages
    assert again.messages[-2:] == (
        Message("assistant", (BAD.text,)),
        Message("user", ("Wrong: no JSON object found",)),
    )
    assert (again.schema, again.max_tokens, again.backbone) == (
        first.schema,
        first.max_tokens,
        first.backbone,
    )


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_answer_is_not_put_into_the_models_mouth(text):
    [_, [again]], [scored] = played(asks("SC"), [Text(text)], [GOOD])
    [message] = (
        again.messages
    )  # servers refuse an empty turn of the assistant, and two turns of the user in a row
    assert message == Message("user", (PICTURE, "Rate it.", "Wrong: empty reply"))
    assert scored.final.status is Status.REPAIRED


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"score": [7], "reasoning": "x"}', "number of values must be 2, got 1"),
        ('{"score": [7, 80], "reasoning": "x"}', "score must be a number from 0 to 10"),
        ('{"score": [7,', "expected one complete JSON object"),
    ],
)
def test_the_reminder_says_what_was_wrong(answer, reason):
    [_, [again]], _ = played(asks("SC"), [Text(answer)], [GOOD])
    assert reason in again.messages[-1].parts[-1]


def test_a_long_answer_is_quoted_in_part():
    [_, [again]], [scored] = played(asks("SC"), [Text("bla " * 5000)], [GOOD])
    assert len(again.messages[-2].parts[0]) == 2000
    assert scored.steps[0].answer == "bla " * 5000


def test_unreadable_twice_is_a_parse_failure_after_exactly_two_calls():
    chats, [scored] = played(asks("SC"), [BAD], [Text("Still lovely.")])
    assert [len(round_) for round_ in chats] == [1, 1]
    assert (scored.final.label, scored.final.status, scored.final.scores) == (
        "SC",
        Status.PARSE_FAILURE,
        (),
    )
    assert [step.answer for step in scored.steps] == [BAD.text, "Still lovely."]


def test_without_reminders_there_is_one_call():
    chats, [scored] = played(asks("SC"), [BAD], reminders=0)
    assert len(chats) == 1
    assert scored.final.status is Status.PARSE_FAILURE


def test_more_reminders_each_answer_the_last_reply():
    [_, [second], [third]], [scored] = played(
        asks("SC"), [BAD], [Text("{}")], [GOOD], reminders=3
    )
    assert second.messages[-2].parts == (BAD.text,)
    assert third.messages[-2].parts == ("{}",)
    assert len(third.messages) == 3
    assert [step.label for step in scored.steps] == [
        "SC",
        "SC (reminder 1)",
        "SC (reminder 2)",
    ]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Failure(Status.REFUSAL, "the filter"), Status.REFUSAL),
        (Failure(Status.API_ERROR, "HTTP 500, 6 times"), Status.API_ERROR),
        (Failure(Status.TOOL_ERROR, "a.png is cut off"), Status.TOOL_ERROR),
        (Probabilities((0.5,), (0.5,)), Status.API_ERROR),
        (Measurement(1.0), Status.API_ERROR),
    ],
)
def test_only_what_could_not_be_read_is_asked_again(reply, status):
    chats, [scored] = played(asks("SC"), [reply], reminders=3)
    assert len(chats) == 1
    assert scored.final.status is status
    assert scored.final.scores == ()
    assert scored.final.reason


def test_only_the_unreadable_of_several_are_asked_again():
    chats, scored = played(
        asks("a", "b", "c", "d"),
        [GOOD, BAD, Failure(Status.API_ERROR, "x"), BAD],
        [BAD, GOOD],
    )
    assert [label_of(chat) for chat in chats[1]] == ["b", "d"]
    assert [one.final.status for one in scored] == [
        Status.OK,
        Status.PARSE_FAILURE,
        Status.API_ERROR,
        Status.REPAIRED,
    ]


def test_a_reminder_whose_call_fails_is_a_failed_call():
    _, [scored] = played(
        asks("SC"), [BAD], [Failure(Status.API_ERROR, "HTTP 500, 6 times")]
    )
    assert (scored.final.label, scored.final.status, scored.final.reason) == (
        "SC (reminder 1)",
        Status.API_ERROR,
        "HTTP 500, 6 times",
    )
    assert scored.steps[0].status is Status.PARSE_FAILURE


def test_a_mended_reply_to_a_reminder_is_repaired_too():
    _, [scored] = played(
        asks("SC"), [BAD], [Text("Sure! {'score': [7, 8], 'reasoning': 'clean'}")]
    )
    assert scored.final.status is Status.REPAIRED


@pytest.mark.parametrize("pack", packs.built_in("viescore"))
def test_the_reminder_of_a_pack_names_the_reason(pack):
    assert "no JSON object found" in packs.load(pack).render(
        REMINDER, {"reason": "no JSON object found"}
    )


def test_a_refusal_in_words_is_asked_again_and_its_beginning_is_listed():
    refusal = "I'm sorry, but I can't assist with that. " * 9
    _, [scored] = played(asks("SC"), [Text(refusal)], [Text(refusal)])
    assert scored.final.status is Status.PARSE_FAILURE
    failure = Verdict({}, Status.PARSE_FAILURE, trace=scored.steps).reason
    assert failure == f"no JSON object found; the reply: {refusal[:120]!r}"


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        pytest.param(GOOD.text, (7, 8), id="right behind the answer"),
        pytest.param(
            f"Here is my rating:\n```json\n{GOOD.text}\n```",
            (7, 8),
            id="right behind a fence",
        ),
        pytest.param(f"<think>hm</think>{GOOD.text}", (7, 8), id="after thinking"),
        pytest.param(
            '{"score": [7, 8], "reasoning": "it is', (), id="in the reasoning"
        ),
        pytest.param(f"{GOOD.text} And now", (), id="text after the answer"),
        pytest.param('{"score": [7, 1', (), id="within a score"),
    ],
)
def test_a_cut_reply_counts_if_its_answer_is_whole(text, scores):
    _, [scored] = played(asks("PQ"), [Text(text, cut=True)], reminders=0)
    assert scored.final.scores == scores
    assert scored.final.status is (Status.REPAIRED if scores else Status.PARSE_FAILURE)
    assert scored.final.cut is True


def test_a_cut_number_is_none():
    chat = Chat((Message("user", ("Rate it.",)),), ("PQ",))
    asked = [ChatRequest(chat, lambda text: parse_number(text, 0, 10))]
    assert played(asked, [Text("7")], reminders=0)[1][0].value == (7,)
    assert played(asked, [Text("7", cut=True)], reminders=0)[1][0].value is None


ANALYSIS = "The light is fine, the left hand is warped."


@pytest.mark.parametrize(
    ("first", "second", "scores"),
    [
        pytest.param(
            f"{ANALYSIS}\n{GOOD.text}",
            f"{ANALYSIS}\n{GOOD.text}",
            (7, 8),
            id="the-same",
        ),
        pytest.param(
            f"{GOOD.text}\n{ANALYSIS}",
            f"{ANALYSIS}\n{GOOD.text}",
            (7, 8),
            id="elsewhere",
        ),
        pytest.param(GOOD.text, "unasked", (7, 8), id="at-once"),
        pytest.param(
            f"{ANALYSIS}\n{GOOD.text}",
            f'{ANALYSIS}\n{{"score": [7, 9], "reasoning": "x"}}',
            (),
            id="other-scores",
        ),
        pytest.param(
            BAD.text, f"{ANALYSIS}\n{GOOD.text}", (), id="first-without-scores"
        ),
        pytest.param("", f"{ANALYSIS}\n{GOOD.text}", (), id="first-empty"),
        pytest.param(
            f"{ANALYSIS} 7/10\n{GOOD.text}",
            f"{ANALYSIS} 7/10\n{GOOD.text}",
            (),
            id="digit-beside-a-slash",
        ),
        pytest.param(
            f"{ANALYSIS} [7, 3]\n{GOOD.text}",
            f"{ANALYSIS} [7, 3]\n{GOOD.text}",
            (),
            id="list-of-numbers",
        ),
        pytest.param(
            f"{GOOD.text} or {GOOD.text}",
            f"{GOOD.text} or {GOOD.text}",
            (),
            id="two-objects",
        ),
        pytest.param(
            f"The sign reads '{GOOD.text}'",
            f"The sign reads '{GOOD.text}'",
            (),
            id="quoted",
        ),
    ],
)
def test_an_answer_with_text_around_it_counts_if_two_replies_agree(
    first, second, scores
):
    _, [scored] = played(
        asks("SC"), [Text(first)], *([] if second == "unasked" else [[Text(second)]])
    )
    assert scored.final.scores == scores
    assert (CONFIRMED in scored.findings) is (bool(scores) and second != "unasked")


def test_a_cut_reply_confirms_nothing():
    text = f"{ANALYSIS}\n{GOOD.text}\n{ANALYSIS}"
    assert not played(asks("SC"), [Text(text, cut=True)], [Text(text)])[1][
        0
    ].final.scores
    assert not played(asks("SC"), [Text(text)], [Text(text, cut=True)])[1][
        0
    ].final.scores


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        (f"{ANALYSIS}\nScore: 7", f"{ANALYSIS}\nScore: 7", (7,)),
        (f"{ANALYSIS}\nScore: 7", f"{ANALYSIS}\nScore: 8", None),
    ],
)
def test_a_number_with_text_around_it_counts_if_two_replies_agree(first, second, value):
    chat = Chat((Message("user", ("Rate it.",)),), ("PQ",))
    asked = [ChatRequest(chat, lambda text: parse_number(text, 0, 10))]
    assert played(asked, [Text(first)], [Text(second)])[1][0].value == value


def test_the_number_of_an_image_that_is_not_judged_is_not_read():
    chat = Chat(
        (Message("user", (PICTURE, PICTURE, "Rate the edit.")),),
        ("SC",),
        reply_schema(2),
    )
    for name, scores in [("Image 1", ()), ("画像1", ()), ("**Image 2**", (7, 8))]:
        reply = Text(f"{name}:\n{GOOD.text}")
        assert (
            played([score_request(chat)], [reply], *([] if scores else [[reply]]))[1][
                0
            ].final.scores
            == scores
        )


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
    _, [scored] = played(asks("SC"), [Text(text)], reminders=0)
    assert scored.final.scores == scores
    assert len(scored.final.answer) + len(scored.final.reason) < 2 * 66_000
    assert "characters left out" in scored.final.answer
    assert (scored.final.answer[:1000], scored.final.answer[-1000:]) == (
        text[:1000],
        text[-1000:],
    )
    # what is kept reads as the whole did
    _, [again] = played(asks("SC"), [Text(scored.final.answer)], reminders=0)
    assert again.final.scores == scores


def test_a_reply_that_is_not_too_long_is_kept_word_for_word():
    text = GOOD.text + " " * 60_000
    assert played(asks("SC"), [Text(text)])[1][0].final.answer == text
