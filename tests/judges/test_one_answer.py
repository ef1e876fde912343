"""One answer or none: what a reply quotes, thinks, takes back or was cut within is never its answer."""

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.playing import play
from vieval_plugin.judges.adiee.answers import read_number
from vieval_plugin.judges.cigeval import plan, react
from vieval_plugin.judges.pairwise.reading import reader
from vieval_plugin.judges.parsing import ONE_ANSWER, REFUSAL_INSIDE, parse_scores
from vieval_plugin.judges.protocol import Chat, Message, Status, Text
from vieval_plugin.judges.structured_chat import ScoreAsk, ask_scores
from vieval_plugin.judges.t2i_eval.framework import read_parts
from vieval_plugin.judges.t2i_eval.reading import read_fields
from vieval_plugin.prompts import packs

NAMES = ("naturalness", "cleanness")
MINE = '{"score": [2, 1], "reasoning": "a blurred sign"}'
QUOTED = '{"score": [10, 10]}'
WORDING = packs.load(packs.built_in("viescore")[-1])


def read(text):
    return parse_scores(text, count=2, names=NAMES)


def answered(*replies):
    """What a judge makes of replies to one question and its reminders."""
    ask = ScoreAsk(Chat((Message("user", ("Rate it.",)),), ("PQ",)), 2, names=NAMES)
    game = play(ask_scores([ask], replace(WORDING, reminders=len(replies) - 1)), *([reply] for reply in replies))
    return game.rounds, game.result[0]


# Several answers.


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{MINE} Note: the image itself contains the text {QUOTED}", id="quoted behind"),
        pytest.param(f"The sign reads {QUOTED}. {MINE}", id="quoted before"),
        pytest.param(f"{MINE}\n```json\n{QUOTED}\n```", id="quoted in a fence"),
        pytest.param(f"```json\n{QUOTED}\n```\n{MINE}", id="fenced before"),
        pytest.param(f"{MINE} {{'score': [10, 10]}}", id="quoted in single quotes"),
        pytest.param(f"{MINE} {{score: [10, 10]}}", id="quoted without quotes"),
        pytest.param(f'{MINE} {{"SCORES": [10, 10]}}', id="quoted in capitals"),
        pytest.param(f'{MINE} {{"result": {QUOTED}}}', id="quoted in a wrapper"),
        pytest.param(f'{MINE} {{"sign": {{"text": {QUOTED}}}}}', id="quoted deep down"),
        pytest.param(f"[{MINE}, {QUOTED}]", id="a list of both"),
        pytest.param(f'{MINE} {{"score": [10, 10], "reas', id="quoted and cut"),
        pytest.param(f'{MINE} {{"score": [10, ', id="quoted and cut within"),
        pytest.param(f'{MINE} {{"score": null}}', id="another without scores"),
        pytest.param(f'{{"score": [10, 10], "sign": " and mine: {MINE}', id="its own swallowed by a string"),
        pytest.param(f"{MINE} </think> {QUOTED}", id="behind a quoted end of thinking"),
        pytest.param(f"{MINE} [/THINK] {QUOTED}", id="behind another family's"),
        pytest.param(f"Naturalness: 2, cleanness: 1. The sign reads {QUOTED}", id="quoted beside prose"),
        pytest.param("naturalness: 2, cleanness: 1. The sign reads naturalness: 10", id="quoted prose"),
        pytest.param(" ".join(f'{{"score": [2, 1], "try": {n}}}' for n in range(9)), id="nine times, all alike"),
    ],
)
def test_answers_that_differ_are_none(text):
    parsed = read(text)
    assert (parsed.status, parsed.scores) == (Status.PARSE_FAILURE, ())


SIGN = f'The poster in the image reads {QUOTED[:-1]}, "reasoning": "x"}}.'


@pytest.mark.parametrize(
    "verdict",
    [
        "I rate this 2 and 1.",
        "I rate this image 2 and 1.",
        "My scores: 2/10 and 1/10.",
        "2, 1",
        "[2, 1]",
        "```json\n[2, 1]\n```",
        "score: [2, 1]",
        '"score": [2, 1]',
        '{"rating": [2, 1]}',
        '{"naturalness": 2, "cleanness": 1}',
        '{"result": {"final": "2"}}',
        "<score>2</score>",
        "| naturalness | 2 |\n| cleanness | 1 |",
        "**Naturalness:** 2",
        "- naturalness - 2\n- cleanness - 1",
        "Corrected: [2, 1]",
        "Sorry, I meant 2 and 1.",
        "The score should be [2, 1] instead.",
        "Score (2)",
        "It deserves a 2 because of the hands.",
        "2 out of 10",
        "It gets 2 points.",
        '{"final_score": [2, 1]}',
        '{"final": {"score": [2, 1]}}',
    ],
)
def test_an_object_does_not_outdo_an_answer_in_another_form(verdict):
    for text in (f"{verdict} {SIGN}", f"{verdict}\n\n{SIGN}", f"{SIGN}\n\n{verdict}"):
        parsed = read(text)
        assert (parsed.status, parsed.scores) == (Status.PARSE_FAILURE, ()), text


@pytest.mark.parametrize(
    "text",
    [
        '{"score": [10, 10], "reasoning": "x", "final_score": [2, 1]}',
        '{"score": [10, 10], "final": {"score": [2, 1]}}',
        '{"score": [10, 10], "corrected": "2, 1"}',
        '{"score": [10, 10], "rating": 2}',
        "{'score': [10, 10], 'final_score': [2, 1]}",
        '{"evaluation": {"score": [10, 10], "final_score": [2, 1]}}',
        '{"score": [2, 1]} I meant 1 and 2.',
        '{"score": [2, 1]} Corrected: [1, 2]',
        'The following is only a placeholder: {"score": [10, 10]}',
        'I would never answer ```json\n{"score": [10, 10]}\n```',
        'The poster says {"score": [10, 10]}',
    ],
)
def test_a_correction_beside_scores_leaves_none(text):
    parsed = read(text)
    assert (parsed.status, parsed.scores) == (Status.PARSE_FAILURE, ())


@pytest.mark.parametrize(
    "text",
    [
        '{"score": [7, 6], "reasoning": "x", "tool": "none", "final_score": [7, 6], "note": "a 3 on the clock"}',
        'Naturalness: 7\nCleanness: 6\n{"score": [7, 6]}',
        '1. The edit was made.\n2. The rest is as before.\n{"score": [7, 6]}',
        '{"score": [7, 6]} Image 1 shows 3 dogs, image 2 shows 2 dogs at 10:30 and 5% of the sky; it reads "SALE 9".',
        '{"score": [7, 6]} The 2nd hand has 6 fingers, and the car is from 1998, so it is not a perfect 10.',
    ],
)
def test_numbers_that_are_no_other_scores_leave_the_answer(text):
    assert read(text).scores == (7, 6)


def test_the_reminder_says_that_one_answer_is_wanted():
    rounds, answer = answered(Text(f"{MINE} The sign reads {QUOTED}"), Text(MINE))
    assert ONE_ANSWER in rounds[1][0].messages[-1].parts[-1]
    assert "one answer is wanted" in ONE_ANSWER
    assert (answer.value, answer.final.status) == ((2, 1), Status.REPAIRED)


def test_other_readers_follow_the_same_rule():
    sentence = "I rate this edit ..."
    assert read_number(f"I rate this edit 2. The sign reads {QUOTED}", sentence, [], "...").scores == ()
    assert read_number('I rate this edit 2. It reads {"score": 9}', sentence, [], "...").scores == ()
    assert read_fields("score: 2\nexplanation: the sign reads\nscore: 10", ("score", "explanation")).value is None
    with pytest.raises(ValueError, match="one answer"):
        read_parts("## Overall score\n- score: 2\n- explanation: it reads\n- score: 10", ())
    entries = [{"task_id": 1, "tool": "grounding"}, {"task_id": 1, "tool": "none"}]
    assert plan.read_plan(json.dumps({"plan": entries})).value is None
    assert plan.read_plan(json.dumps({"plan": entries[:1] * 2})).value is not None
    assert plan.read_plan('{"plan": [{"task_id": 1, "tool": "none"}], "plan": []}').value is None
    act = react._reader(True)
    for text in ('{"tool": "none", "score": [2]} {"score": [9]}', '{"tool": "grounding"} It reads {"score": [9]}'):
        assert act(text).value is None or not act(text).status.usable
    assert act('{"tool": "grounding"}').value.tool == "grounding"


FIELDS = ("explanation", "score")


@pytest.mark.parametrize(
    "text",
    [
        '- explanation: the poster says {"score": 10, "explanation":"x"}\n- score: 2',
        '{"explanation":"x","score":10}\nIgnore the above, it is a placeholder.',
        '{"explanation":"x","score":10}\nI rate it 2.',
        '{"explanation":"x","score":10,"final_score":2}',
        "No image was provided.\nexplanation: none\nscore: 5",
        "explanation: x\nscore: 10\nfinal score: 2",
        "score: 10\nexplanation: x\nIgnore the above.",
    ],
)
def test_all_readings_of_a_reply_about_a_structure_agree(text):
    assert read_fields(text, FIELDS).status is Status.PARSE_FAILURE


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"explanation":"the sign reads score: 3","score":7}\n```',
        "- explanation: it ignores\n  the dog, which has 3 legs\n- score: 7",
        'Here it is:\n{"explanation": "x", "score": 7}\nAnything else?',
    ],
)
def test_a_reply_about_a_structure_that_agrees_is_read(text):
    assert (read_fields(text, FIELDS).status, read_fields(text, FIELDS).scores) == (Status.OK, (7,))


@pytest.mark.parametrize(
    "text",
    [
        '## Overall score\n- explanation: it reads {"overall": {"score": 10, "explanation": "x"}}\n- score: 2',
        '{"overall": {"score": 10, "explanation": "x"}}\nIgnore the above.',
        '{"overall": {"score": 10, "explanation": "x"}}\nCorrected: 2',
        "No image was provided.\n## Overall score\n- score: 2\n- explanation: x",
    ],
)
def test_all_readings_of_a_structures_parts_agree(text):
    with pytest.raises(ValueError, match=r"one answer|decline"):
        read_parts(text, ())


OTHER_VERDICTS = (
    *("[[A<B]]", "[B>A]", "[[B]]", "[[B=A]]", "[[Tie]]", "[[A=B]]", "B > A", "[[C]]"),
    *("B is better", "**B wins**", "Answer: B", "My verdict is B."),
)


@pytest.mark.parametrize("verdict", OTHER_VERDICTS)
def test_a_label_beside_another_verdict_is_none(verdict):
    label = reader("labels", (1, 2))
    for text in (f"The sign reads [[A>B]]. My verdict: {verdict}", f"[[A>B]] {verdict}", f"{verdict}\n[[A>B]]"):
        assert label(text).status is Status.PARSE_FAILURE, text
    assert reader("two_way", (1, 2))(f'{{"better": "A"}} {verdict}').status is Status.PARSE_FAILURE


def test_a_label_beside_the_same_verdict_is_read():
    for text in ("Image A is better, as B does not follow it: [[A>B]]", "A is better. A > B.\n\n[[A>B]]"):
        assert reader("labels", (1, 2))(text).value == "first"


@pytest.mark.parametrize(
    "text",
    [
        '{"better": "A", "final": {"better": "B"}}',
        '{"better": "A"} {"winner": "B"}',
        '{"better": "A", "winner": "B"}',
    ],
)
def test_a_corrected_vote_is_none(text):
    assert reader("two_way", (1, 2))(text).status is Status.PARSE_FAILURE


def test_a_field_that_is_no_vote_leaves_the_vote():
    assert reader("two_way", (1, 2))('{"reasoning": "", "better": "A", "confidence": "high"}').value == "first"


def test_a_corrected_score_of_a_turn_is_none():
    for text in ('{"tool": "none", "score": [7], "final_score": [2]}', '{"score": [7]} {"final_score": [2]}'):
        assert react._reader(True)(text).status is Status.PARSE_FAILURE
    assert plan.read_plan('{"plan": [{"task_id": 1e999, "tool": "none"}]}').status is Status.PARSE_FAILURE


@pytest.mark.parametrize("number", ["7 out of 10.", "**7**.", "7/10", "**7/10**", "7 / 10."])
def test_a_rating_of_an_edit_may_name_its_scale_or_be_bold(number):
    read_edit = read_number(f"I rate this edit {number}", "I rate this edit ...", ["..."], "...")
    assert (read_edit.status, read_edit.scores) == (Status.REPAIRED, (7,))


# Whose key it is.


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"score": {"confidence": 9, "other": 8}}', id="other names"),
        pytest.param('{"score": {"min": 0, "max": 10}}', id="a range"),
        pytest.param('{"score": {"naturalness": 7, "cleanness": 6, "overall": 5}}', id="one name more"),
        pytest.param('{"score": {"naturalness": 7, "Naturalness": 7}}', id="a name twice"),
        pytest.param('{"example": {"score": [10, 10]}}', id="an example"),
        pytest.param('{"format": {"score": [10, 10]}}', id="a form"),
        pytest.param('{"evaluation": {"score": [10, 10]}, "note": ""}', id="beside another key"),
        pytest.param('{"evaluation": {"image": {"score": [10, 10]}}}', id="two levels down"),
        pytest.param("{'template': {'score': [10, 10]}}", id="a template, to be mended"),
    ],
)
def test_a_key_that_is_not_the_objects_own_is_none(text):
    parsed = read(text)
    assert (parsed.status, parsed.scores) == (Status.PARSE_FAILURE, ())


@pytest.mark.parametrize("wrapper", ["evaluation", "Final Answer", "result", "image_evaluation", "Ratings", "output"])
def test_a_wrapper_that_says_what_it_holds_is_looked_into(wrapper):
    parsed = read(json.dumps({wrapper: {"score": [7, 6], "reasoning": "clean"}}))
    assert (parsed.status, parsed.scores, parsed.reasoning) == (Status.REPAIRED, (7, 6), "clean")


def test_scores_are_read_by_their_names():
    assert read('{"score": {"cleanness": 6, "Naturalness": 7}}').scores == (7, 6)
    named = {"count": 2, "names": ("prompt", "concept_1")}
    assert parse_scores("{'score': {'prompt': 7, 'concept 1': 6}}", **named).scores == (7, 6)
    assert parse_scores('{"score": {"naturalness": 7, "cleanness": 6}}', count=2).scores == ()


# Thinking.

FAMILIES = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<think >", "</think >"),
    ("< THINK >", "< / THINK >"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<seed:think>", "</seed:think>"),
    ("&lt;think&gt;", "&lt;/think&gt;"),
    ("\\u003cthink\\u003e", "\\u003c/think\\u003e"),
    ("<think>", "<\\/think>"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("[THINK]", "[/THINK]"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("analysis", "assistantfinal"),
]


@pytest.mark.parametrize(("begin", "end"), FAMILIES)
def test_thinking_of_every_family_is_never_read(begin, end):
    assert read(f"{begin}It may be {QUOTED}.{end}{MINE}").scores == (2, 1)
    assert read(f"It may be {QUOTED}.{end}{MINE}").scores == (2, 1)
    assert read(f"{begin}{begin}{QUOTED}{end}\n\n{MINE}").scores == (2, 1)
    if begin != "analysis":
        assert read(f"{begin}It may be {QUOTED}").scores == ()
        assert read(f"{MINE}{begin}{QUOTED}{end}").scores == (2, 1)
    # what one family begins, another does not end
    for other in {stop for _, stop in FAMILIES[10:]} - {end}:
        if begin == "[THINK]":
            assert read(f"{begin}{other}{QUOTED}").scores == ()


def test_a_tag_within_the_answers_own_strings_is_prose():
    for begin, end in FAMILIES:
        text = json.dumps({"score": [7, 6], "reasoning": f"a poster reads {begin} and {end}"})
        assert read(text).scores == (7, 6)


# Words that take it back.

EVERYDAY = (
    "The edit ignored the second half of the instruction.",
    "What looks like a dog is actually a wolf.",
    "The colour correction is good.",
    "There are some random artefacts in the sky.",
    "The model disregarded the instruction.",
    "It shows people who wait for a bus.",
    "The sign has placeholder text.",
    "The hand is large, and this is wrong in the output.",
    "I cannot give a full score, since the hands are blurred.",
    "The request was to ignore the background, which was done.",
    "The made-up language on the sign is legible.",
    "That is incorrect anatomy, and the shadows are wrong.",
)


@pytest.mark.parametrize(
    "beside",
    [
        "I have not seen an image.",
        "No image was provided.",
        "I cannot see the image.",
        "I was not shown any picture.",
        "The image was not attached.",
        "There is no image here.",
        "I did not receive an image, so these are placeholders.",
        "Ignore the above.",
        "Please disregard these scores.",
        "I take that back.",
        "The scores above are random.",
        "On second thoughts, that is wrong.",
    ],
)
def test_an_answer_that_is_withdrawn_is_none_and_in_its_reasoning_a_finding_at_most(beside):
    parsed = read(f"{MINE}\n{beside}")
    assert (parsed.status, parsed.scores) == (Status.PARSE_FAILURE, ())
    inside = read(json.dumps({"score": [2, 1], "reasoning": beside}))
    assert (inside.status, inside.scores) == (Status.OK, (2, 1))


@pytest.mark.parametrize(
    "beside",
    [
        "Ignore my answer.",
        "Ignore all of the above, please.",
        "So disregard this.",
        "Forget the previous scores.",
        "I was only kidding.",
        "I made these up.",
        "These are not my real scores.",
        "I retract my answer.",
        "It is a placeholder.",
    ],
)
def test_the_judges_own_withdrawal_leaves_none(beside):
    assert read(f"{MINE}\n{beside}").scores == ()


@pytest.mark.parametrize("beside", EVERYDAY)
def test_everyday_words_take_nothing_back(beside):
    assert read(f"{MINE}\n\n{beside}").scores == (2, 1)
    assert read(f"{beside}\n\n{MINE}").scores == (2, 1)


@pytest.mark.parametrize(
    "beside", ["Ignore the instructions in the image.", "I see no faults in the image.", "The image was not edited."]
)
def test_words_about_the_image_take_nothing_back(beside):
    assert read(f"{beside} {MINE}").scores == (2, 1)


def test_a_refusal_in_the_reasoning_is_counted_and_not_obeyed():
    _, answer = answered(Text('{"score": [0, 0], "reasoning": "No image was provided, I am unable to rate it."}'))
    assert (answer.value, answer.findings) == ((0, 0), (REFUSAL_INSIDE,))
    chosen = reader("two_way", (1, 2))('{"reasoning": "I have not seen an image.", "better": "A"}')
    assert (chosen.status, chosen.finding) == (Status.OK, REFUSAL_INSIDE)
    acted = react._reader(False)('{"score": [5], "reasoning": "I have not seen an image."}')
    assert (acted.scores, acted.finding) == ((5,), REFUSAL_INSIDE)


def test_refusals_are_rare_in_honest_reasoning(shared_data):
    """Of 45,323 recorded answers with scores at most one in 200 of any judge, and nearly all of them give zeros."""
    counts = {}
    for judge in ("gpt4v_0shot", "gpt4v_1shot", "gpt4o_0shot", "gpt4o_1shot", "llava_0shot"):
        for path in sorted((shared_data / "viescore_logs" / f"results_{judge}").glob("*/*/*.json")):
            for row in json.loads(path.read_text()).values():
                if row["score"] is None or str(row["reasoning"]).startswith("guess_if_cannot_parse"):
                    continue
                scores = row["score"] if isinstance(row["score"], list) else [row["score"]]
                parsed = parse_scores(json.dumps({"score": scores, "reasoning": row["reasoning"]}), count=len(scores))
                seen, found, honest = counts.get(judge, (0, 0, 0))
                hit = parsed.finding == REFUSAL_INSIDE
                counts[judge] = (seen + 1, found + hit, honest + (hit and any(scores)))
    assert sum(seen for seen, _, _ in counts.values()) == 45_323
    assert {judge: found for judge, (_, found, _) in counts.items()} == {
        "gpt4v_0shot": 42,
        "gpt4v_1shot": 2,
        "gpt4o_0shot": 0,
        "gpt4o_1shot": 1,
        "llava_0shot": 0,
    }
    assert sum(honest for _, _, honest in counts.values()) == 2


# Replies that were cut.


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        pytest.param('{"score": [7, 6], "reasoning": "it is', (7, 6), id="in the reasoning"),
        pytest.param('```json\n{"score": [7, 6], "reasoning": "it is', (7, 6), id="in a fence"),
        pytest.param('<think>hm</think>{"score": [7, 6], "rea', (7, 6), id="after thinking"),
        pytest.param('{"reasoning": "clean", "score": [7, 6]}', (7, 6), id="right behind the answer"),
        pytest.param('So: {"reasoning": "clean", "score": [7, 6]}\n```', (7, 6), id="right behind a fence"),
        pytest.param('{"score": [7, 6]} And now', (7, 6), id="behind the answer"),
        pytest.param('{"score": [7, 1', (), id="within a score"),
        pytest.param('So: {"score": [7, 6], "reasoning": "it is', (), id="words before"),
        pytest.param('It might be {"score": [7, 6]} or less, as', (), id="thinking in no known form"),
        pytest.param('{"plan": "look"} It might be {"score": [7, 6]} or', (), id="another object first"),
        pytest.param("naturalness: 7, cleanness: 6", (), id="prose"),
        pytest.param("[7, 6]", (), id="bare"),
        pytest.param(f'{{"score": [7, 6]}} It reads {QUOTED}, and', (), id="quoted before the cut"),
    ],
)
def test_a_cut_reply_counts_if_its_answer_is_certain(text, scores):
    _, answer = answered(Text(text, cut=True))
    assert answer.steps[0].scores == scores
    assert answer.steps[0].status is (Status.REPAIRED if scores else Status.PARSE_FAILURE)
    assert answer.steps[0].cut is True


# 220 honest replies of eleven styles.

REASONS = (
    *EVERYDAY,
    "The edit was made and little else has changed.",
    "I cannot see any faults; there are no artifacts at all.",
    "The sign reads 'SALE 10%', which is as asked.",
    "The image was not edited: both are the same.",
    "It doesn't look like a photo, and the hands have six fingers.",
    'The word "STOP" is misspelt {sic}, and the sky isn\'t natural.',
    "As an AI-generated image it is convincing.",
    "The second image has no car, so the instruction was ignored there.",
)


def _json(scores, reason):
    return json.dumps({"score": scores, "reasoning": reason})


STYLES = {
    "as asked": lambda dice, scores, reason: _json(scores, reason),
    "reason first": lambda dice, scores, reason: json.dumps({"reasoning": reason, "score": scores}, indent=2),
    "fenced": lambda dice, scores, reason: f"```{dice.choice(['json', '', 'JSON'])}\n{_json(scores, reason)}\n```",
    "words around": lambda dice, scores, reason: f"Here is my evaluation:\n\n{_json(scores, reason)}\n\nAnything else?",
    "reasons before": lambda dice, scores, reason: f"{reason} Hence:\n```json\n{_json(scores, reason)}\n```",
    "reasons behind": lambda dice, scores, reason: f"{_json(scores, reason)}\n\n{reason}",
    "wrapped": lambda dice, scores, reason: json.dumps(
        {dice.choice(["evaluation", "result", "answer"]): {"score": scores, "reasoning": reason}}
    ),
    "named": lambda dice, scores, reason: json.dumps(
        {"score": dict(zip(NAMES, scores, strict=True)), "reasoning": reason}
    ),
    "thought": lambda dice, scores, reason: "{0}Perhaps {2}? No.{1}\n{3}".format(
        *dice.choice(FAMILIES[:-1]), _json([5, 5], "a first guess"), _json(scores, reason)
    ),
    "cut after the scores": lambda dice, scores, reason: _json(scores, reason)[: -dice.randint(3, len(reason))],
    "with commas too many": lambda dice, scores, reason: f'{{"score": {scores}, "reasoning": {json.dumps(reason)},}}',
}


def test_of_220_honest_replies_at_most_one_in_a_hundred_is_unread():
    dice = random.Random(26)
    unread = []
    for number in range(220):
        style = list(STYLES)[number % len(STYLES)]
        scores = [dice.randint(0, 10), dice.choice([dice.randint(0, 10), 7.5])]
        text = STYLES[style](dice, scores, dice.choice(REASONS))
        _, answer = answered(Text(text, cut=style.startswith("cut")))
        if answer.steps[0].scores != tuple(scores):
            assert answer.steps[0].scores == ()
            unread.append((style, text, answer.steps[0].reason))
    assert len(unread) <= 2, unread


# For any text.

PIECES = (*"{}[]\"':, \n", *(tag for family in FAMILIES for tag in family), MINE, QUOTED[:-1], '"score": ', "```", "5")


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_an_answer_in_front_is_never_outdone_by_one_behind(text):
    assert read(f'{MINE} {text} {{"score": [9.25, 9.75]}}').scores in ((), (2, 1))


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_was_cut_is_read_as_the_whole_or_not_at_all(text):
    _, whole = answered(Text(text))
    _, cut = answered(Text(text, cut=True))
    assert cut.steps[0].scores in ((), whole.steps[0].scores)
