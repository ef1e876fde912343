"""How a model's reply is read: what counts as scores, and what each way of going wrong is called."""

import json
import re
import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vieval_plugin.judges.parsing import Parsed, parse_scores
from vieval_plugin.judges.protocol import Status

NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
ANSWER = '{"score": [7, 8], "reasoning": "clean"}'
REFUSED = "I'm sorry, but I can't assist with that."


def reply(scores, reasoning="fine"):
    return json.dumps({"score": scores, "reasoning": reasoning})


# What is read.


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        pytest.param(ANSWER, (7, 8), id="plain"),
        pytest.param('{"reasoning": "clean", "score": [7, 8]}', (7, 8), id="reasoning-first"),
        pytest.param('{"score": [7.5, 0]}', (7.5, 0), id="decimals"),
        pytest.param('{"score": 7}', (7,), id="bare-number-for-one"),
        pytest.param('{"score": [7]}', (7,), id="list-for-one"),
        pytest.param(f"```json\n{ANSWER}\n```", (7, 8), id="fence"),
        pytest.param(f"```\n{ANSWER}\n```", (7, 8), id="fence-without-language"),
        pytest.param(f"||V^=^V||\n{ANSWER}\n||V^=^V||", (7, 8), id="two-delimiters"),
        pytest.param(f"||V^=^V||\n{ANSWER}", (7, 8), id="one-delimiter"),
        pytest.param(f"Here is my {{honest}} view: {ANSWER} Anything else?", (7, 8), id="text-around"),
        pytest.param(f"[{ANSWER}]", (7, 8), id="list-of-one"),
        pytest.param(f'[{{"note": "done"}}, {ANSWER}]', (7, 8), id="list-in-which-one-has-scores"),
        pytest.param(
            '{"score": [7, 8], "reasoning": "as an AI-generated image; sorry"}', (7, 8), id="refusal-in-reasoning"
        ),
        pytest.param('{"score": [0, 0], "reasoning": "I cannot evaluate this."}', (0, 0), id="refusal-with-scores"),
    ],
)
def test_strict_json_in_the_asked_shape_is_ok(text, scores):
    parsed = parse_scores(text, count=len(scores))
    assert (parsed.status, parsed.scores, parsed.reason) == (Status.OK, scores, "")


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        pytest.param("{'score': [7, 8], 'reasoning': 'clean'}", (7, 8), id="single-quotes"),
        pytest.param("{'score': [7, 8], 'reasoning': 'it's clean'}", (7, 8), id="single-quotes-and-apostrophe"),
        pytest.param("{“score”: [7, 8], “reasoning”: “clean”}", (7, 8), id="curly-quotes"),
        pytest.param('{"score": [7, 8], "reasoning": "a "clean" one"}', (7, 8), id="quotes-in-quotes"),
        pytest.param('{"score": [7, 8], "reasoning": "two\nlines"}', (7, 8), id="newline-in-string"),
        pytest.param('{"score": [7, 8,], "reasoning": "clean",}', (7, 8), id="trailing-commas"),
        pytest.param('{"score": [7, 8]\n"reasoning": "clean"}', (7, 8), id="missing-comma"),
        pytest.param('{"score": [7, 8}', (7, 8), id="missing-bracket"),
        pytest.param("{score: [7, 8]}", (7, 8), id="naked-key"),
        pytest.param('{"score": **7**, "reasoning": "clean"}', (7,), id="markdown"),
        pytest.param("[7, 8]", (7, 8), id="bare-list"),
        pytest.param("```json\n[7, 8]\n```", (7, 8), id="bare-list-in-fence"),
        pytest.param("||V^=^V|| [7/10, '8'] ||V^=^V||", (7, 8), id="bare-list-in-delimiters"),
        pytest.param("7", (7,), id="bare-number"),
        pytest.param(" 7.5\n", (7.5,), id="bare-decimal"),
        pytest.param("8/10", (8,), id="bare-fraction"),
        pytest.param('{"score": 8/10}', (8,), id="fraction"),
        pytest.param('{"score": "8 / 10"}', (8,), id="fraction-string"),
        pytest.param('{"score": [7/10, "8/10"]}', (7, 8), id="fractions-in-list"),
        pytest.param('{"score": ["7", 8]}', (7, 8), id="string"),
        pytest.param('{"Score": [7, 8]}', (7, 8), id="key-in-other-case"),
        pytest.param('{"scores": [7, 8]}', (7, 8), id="key-in-plural"),
        pytest.param('{"evaluation": {"score": [7, 8]}}', (7, 8), id="one-level-down"),
    ],
)
def test_mended_replies_say_so(text, scores):
    parsed = parse_scores(text, count=len(scores))
    assert (parsed.status, parsed.scores) == (Status.REPAIRED, scores)
    assert parsed.reason


@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        pytest.param(ANSWER, "clean", id="strict"),
        pytest.param("{'score': [7, 8], 'Reasoning': 'clean'}", "clean", id="mended"),
        pytest.param('{"score": [7, 8], "reasoning": ["natural", "clean"]}', "natural\nclean", id="list"),
        pytest.param('{"score": [7, 8], "reasoning": "cle', "cle", id="cut-off"),
        pytest.param('{"score": [7, 8]}', "", id="none"),
        pytest.param('{"score": [7, 8], "reasoning": 5}', "", id="no-text"),
    ],
)
def test_reasoning_comes_along(text, reasoning):
    assert parse_scores(text, count=2).reasoning == reasoning


def test_the_scale_is_the_callers():
    assert parse_scores('{"score": "4/5"}', count=1, high=5).scores == (4.0,)


# What is not.


@pytest.mark.parametrize(
    ("text", "count", "reason"),
    [
        pytest.param("", 2, "empty reply", id="empty"),
        pytest.param(" \n", 2, "empty reply", id="blank"),
        pytest.param("A fine image.", 2, "no score found", id="prose"),
        pytest.param("I would give it 7.", 1, "no score found", id="number-in-prose"),
        pytest.param("7", 2, "scores given: 1, asked: 2", id="one-number-for-two"),
        pytest.param(reply([7, 8, 9]), 2, "scores given: 3, asked: 2", id="too-many"),
        pytest.param(reply([7]), 2, "scores given: 1, asked: 2", id="too-few"),
        pytest.param("{'score': [7, 8, 9]}", 2, "scores given: 3, asked: 2", id="too-many-mended"),
        pytest.param("[7, 8, 9]", 2, "scores given: 3, asked: 2", id="too-many-bare"),
        pytest.param("[7, 8], [7, 8]", 2, "no score found", id="two-bare-lists"),
        pytest.param("7, 8", 2, "no score found", id="two-bare-numbers"),
        pytest.param(reply([7, 11]), 2, "not a number from 0 to 10", id="above"),
        pytest.param(reply([-1, 7]), 2, "not a number from 0 to 10", id="below"),
        pytest.param(reply([7, True]), 2, "not a number from 0 to 10", id="boolean"),
        pytest.param(reply([True, False]), 2, "no score found", id="booleans"),
        pytest.param('{"score": [7, NaN]}', 2, "not a number from 0 to 10", id="nan"),
        pytest.param('{"score": [7, Infinity]}', 2, "not a number from 0 to 10", id="infinity"),
        pytest.param('{"score": [7, 1e999]}', 2, "not a number from 0 to 10", id="overflow"),
        pytest.param(reply([7, None]), 2, "not a number from 0 to 10", id="null"),
        pytest.param(reply([7, "good"]), 2, "not a number from 0 to 10", id="word"),
        pytest.param(reply("8/5"), 1, "not a number from 0 to 10", id="other-denominator"),
        pytest.param("8/5", 1, "not a number from 0 to 10", id="other-denominator-bare"),
        pytest.param('{"score": [7, 8/100]}', 2, "not a number from 0 to 10", id="other-denominator-in-list"),
        pytest.param(reply([[7, 8]]), 2, "no score found", id="nested-list"),
        pytest.param('{"a": {"score": 7}, "b": {"score": 8}}', 1, "no score found", id="two-inside"),
        pytest.param('{"naturalness": 7, "artifacts": 8}', 2, "no score found", id="other-keys"),
        pytest.param('{"score": ["\\u0037", 8]}', 2, "unclear", id="escaped-digit"),
        pytest.param("[score1, score2]", 2, "no score found", id="placeholders"),
    ],
)
def test_what_is_not_the_asked_scores_is_a_parse_failure(text, count, reason):
    parsed = parse_scores(text, count=count)
    assert (parsed.status, parsed.scores) == (Status.PARSE_FAILURE, ())
    assert re.search(reason, parsed.reason)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param('{"score": [7, ?]}', 1, id="mark-dropped"),
        pytest.param('{"score": [7, ?, 8]}', 2, id="mark-dropped-between"),
        pytest.param('{"score": [7, ...]}', 1, id="dots-dropped"),
        pytest.param('{"score": [7 8]}', 2, id="no-comma"),
        pytest.param('{"score": 7 8}', 1, id="second-number-dropped"),
        pytest.param('{"score": 7, 8}', 1, id="second-number-after-comma"),
        pytest.param('{"score": 8,5}', 1, id="decimal-comma"),
        pytest.param('{"score": 7_0}', 1, id="underscore-dropped"),
        pytest.param('{"score": [7 (good), 8 (bad)]}', 2, id="remarks"),
        pytest.param('{"score": 7-8}', 1, id="range"),
        pytest.param('{"score": 7.5.1}', 1, id="two-points"),
        pytest.param("{'score': [1, 2], 'score': [7, 8]}", 2, id="two-lists-in-one-object"),
    ],
)
def test_what_the_mender_drops_or_merges_is_not_believed(text, count):
    assert parse_scores(text, count=count).status is Status.PARSE_FAILURE


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param('{"score": [1, 2], "score": [7, 8]}', "unclear", id="key-twice"),
        pytest.param('{"score": [1, 2], "Scores": [7, 8]}', "unclear", id="key-twice-folded"),
        pytest.param('{"evaluation": {"score": [1, 2], "score": [7, 8]}}', "unclear", id="key-twice-inside"),
        pytest.param(f"[{reply([1, 2])}, {ANSWER}]", "one answer", id="list"),
        pytest.param(f"{reply([1, 2])},\n{ANSWER}", "one answer", id="list-without-brackets"),
        pytest.param(f"I can't rate this. The form is {ANSWER}.", "decline", id="quoted-before-refusal"),
        pytest.param(f"The form is {ANSWER}, but I am unable to evaluate this.", "decline", id="quoted-after-refusal"),
    ],
)
def test_scores_of_which_it_is_not_clear_that_they_are_the_answer_are_not_read(text, reason):
    parsed = parse_scores(text, count=2)
    assert (parsed.status, parsed.scores) == (Status.PARSE_FAILURE, ())
    assert reason in parsed.reason


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"score": [7, 8], "score": [7, 8]}', id="key-twice-alike"),
        pytest.param('{"score": [7, 8], "Score": [7, 8], "reasoning": "clean"}', id="key-twice-alike-folded"),
    ],
)
def test_what_leaves_no_doubt_is_repaired(text):
    parsed = parse_scores(text, count=2)
    assert (parsed.status, parsed.scores) == (Status.REPAIRED, (7, 8))


@pytest.mark.parametrize(
    "beside",
    [
        "Sorry for the confusion.",
        "I apologize for the wrong format.",
        "As an AI language model I look at pixels.",
        "The model was not able to complete the edit.",
        "I cannot see any faults.",
    ],
)
def test_words_that_do_not_decline_leave_scores_as_they_are(beside):
    assert parse_scores(f"{beside} {ANSWER}", count=2).status is Status.OK


# Several answers, thinking, a cut.


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        pytest.param(ANSWER + ' {"note": "done"} {}', (7, 8), id="later-object-without-scores"),
        pytest.param(ANSWER + ANSWER, (7, 8), id="twice-the-same"),
        pytest.param(ANSWER + reply([7, 8], "otherwise said"), (7, 8), id="twice-the-same-scores"),
        pytest.param(reply([7, 8]) + " {'score': [7, 8]}", (7, 8), id="once-more-mended"),
        pytest.param(f"```json\n{ANSWER}\n```\nIn short: {ANSWER}", (7, 8), id="fenced-and-not"),
        pytest.param(f"I scored the naturalness. {ANSWER}" * 3, (7, 8), id="three-times"),
    ],
)
def test_answers_that_agree_are_one(text, scores):
    assert parse_scores(text, count=2).scores == scores


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        pytest.param(f"<think>{reply([1, 2])}</think>{ANSWER}", (7, 8), id="block"),
        pytest.param(f"{ANSWER}<think>{reply([1, 2])}</think>", (7, 8), id="block-after"),
        pytest.param(f"<THINK>a</THINK>b<think>c {reply([1, 2])}</think>{ANSWER}", (7, 8), id="two-blocks"),
        pytest.param(f"It could be {reply([1, 2])} </think> {ANSWER}", (7, 8), id="lone-end"),
        pytest.param(f"{reply([1, 2])} or so </think> {ANSWER}", (), id="lone-end-after-object"),
        pytest.param(f"{reply([1, 2])}</think>", (), id="lone-end-and-nothing"),
        pytest.param(f"<think>{reply([1, 2])}</think> A fine image.", (), id="block-and-prose"),
        pytest.param(f"<think>{reply([1, 2])}", (), id="unclosed"),
        pytest.param(f"{ANSWER}<think>{reply([1, 2])}", (7, 8), id="unclosed-after"),
        pytest.param('{"score": [1<think>hm</think>0, 8]}', (), id="block-inside-a-number"),
        pytest.param('{"score": [7, 8], "reasoning": "no </think> tag"}', (7, 8), id="tag-is-prose"),
        pytest.param(
            """{'score': [7, 8], 'reasoning': "a </think> {'score': [1, 2]}",}""", (), id="tag-in-broken-json"
        ),
    ],
)
def test_thinking_is_never_read(text, scores):
    parsed = parse_scores(text, count=2)
    assert parsed.scores == scores
    assert parsed.status in ((Status.OK,) if scores else (Status.PARSE_FAILURE,))


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        pytest.param('{"score": [7, 10], "reasoning": "it is', (7, 10), id="in-reasoning"),
        pytest.param("{'score': [7, 10], 'reasoning': 'it's", (7, 10), id="in-mended-reasoning"),
        pytest.param('{"reasoning": "fine", "score": [7, 10]', (7, 10), id="before-brace"),
        pytest.param('```json\n{"score": [7, 10],\n', (7, 10), id="in-fence"),
        pytest.param('{"score": [7, 10], "reasoning": "' + "on and on " * 2000, (7, 10), id="runaway"),
        pytest.param('{"score": [7, 10', (), id="before-bracket"),
        pytest.param('{"score": [7, 1', (), id="in-number"),
        pytest.param('{"score": [7, ', (), id="between"),
        pytest.param('{"score": {"naturalness": 7, "artifacts": 1', (), id="in-named-number"),
        pytest.param('{"score": "7/1', (), id="in-fraction"),
        pytest.param('{"score": [7, "1', (), id="in-string"),
        pytest.param("[7, 1", (), id="in-bare-list"),
        pytest.param("""{"reasoning": "unlike {'score': [1, 2]} it""", (), id="in-reasoning-before-scores"),
        pytest.param("""{"reasoning": "it's, 'score': [1, 2] as\\"#", "sco""", (), id="after-reasoning-before-scores"),
    ],
)
def test_a_cut_reply_counts_if_its_scores_were_complete(text, scores):
    parsed = parse_scores(text, count=2)
    assert (parsed.status, parsed.scores) == (Status.REPAIRED if scores else Status.PARSE_FAILURE, scores)


def test_a_lone_number_that_is_cut_is_not_read():
    assert parse_scores('{"score": 1', count=1).reason == "cut off before its scores were complete"
    assert parse_scores('{"score": 1, "rea', count=1).scores == (1.0,)


# Refusals.


@pytest.mark.parametrize(
    "text",
    [
        REFUSED,
        "I\u2019m sorry, but I can\u2019t assist with that.",
        "Sorry, no.",
        "I am unable to evaluate these images.",
        "I cannot provide a score for this picture.",
        "As an AI language model, I have no eyes.",
        "As an AI, I leave this to people.",
        "I apologize, this is beyond me.",
        "I do not have the ability to look at pictures.",
        "The evaluation cannot be conducted.",
        "I can't view images.",
        "I must decline to rate real persons.",
        "Without an image the evaluation is not possible.",
        '{"score": null, "reasoning": "I cannot evaluate this image."}',
        '{"score": [], "reasoning": "I\'m sorry, no image came."}',
        f"<think>They want scores.</think>{REFUSED}",
    ],
)
def test_refusals(text):
    parsed = parse_scores(text, count=2)
    assert (parsed.status, parsed.scores) == (Status.REFUSAL, ())
    assert parsed.reason


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("This looks as an AI-generated image does.", id="ai-generated"),
        pytest.param(f"<think>{REFUSED}</think> A fine image.", id="in-thinking"),
        pytest.param(reply([7, 8, 9], REFUSED), id="readable-list-of-another-length"),
    ],
)
def test_failures_that_are_no_refusals(text):
    assert parse_scores(text, count=2).status is Status.PARSE_FAILURE


# For any reply.

FRAGMENTS = (
    *"{}[]\"':,\\ \n`\u2019“/*#",
    *("score", '"score": [1, 2], ', "'score': [3, 4]", '{"score": [1, 2]}', "{'score': [5]}", "score: 9", "reasoning"),
    *("9", "10", "7/10", "0.5", "1e1", "NaN", "true", "<think>", "</think>", "```json\n", "||V^=^V||", REFUSED),
)
texts = st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join))
numbers = st.one_of(st.integers(0, 10), st.floats(0, 10))
score_lists = st.lists(numbers, min_size=1, max_size=3)


@st.composite
def replies(draw):
    """A valid reply with its scores and its reasoning; the keys come in either order."""
    scores, reasoning = draw(score_lists), draw(texts)
    value = scores[0] if len(scores) == 1 and draw(st.booleans()) else scores
    pairs = draw(st.permutations([("score", value), ("reasoning", reasoning)]))
    text = json.dumps(dict(pairs), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    return text, tuple(scores), reasoning


@given(text=texts, count=st.integers(1, 3))
@example(text='{"score": ' + "9" * 400 + "}", count=1)
@example(text='{"score": ' + "9" * 5000 + "}", count=1)
@example(text="\ud800", count=1)
def test_any_text_is_read_without_raising_and_usable_means_scores(text, count):
    parsed = parse_scores(text, count=count)
    assert parsed.status.usable == bool(parsed.scores)
    assert len(parsed.scores) in (0, count)
    assert all(0 <= score <= 10 for score in parsed.scores)
    assert (parsed.reason == "") == (parsed.status is Status.OK)


@given(text=texts, count=st.integers(1, 3))
def test_every_score_stands_in_the_text(text, count):
    standing = {float(number) for number in NUMBER.findall(text)}
    assert standing.issuperset(parse_scores(text, count=count).scores)


@given(replies())
def test_a_valid_reply_is_read_exactly(valid):
    text, scores, reasoning = valid
    parsed = parse_scores(text, count=len(scores))
    assert replace(parsed, finding="") == Parsed(Status.OK, scores, reasoning)


@given(replies(), st.data())
def test_a_cut_never_makes_other_scores(valid, data):
    text, scores, _ = valid
    kept = data.draw(st.integers(0, len(text)))
    assert parse_scores(text[:kept], count=len(scores)).scores in ((), scores)


@given(text=texts.filter(lambda text: "think>" not in text), count=st.integers(1, 3))
def test_what_is_thought_changes_nothing(text, count):
    scores = (4.25, 5.75, 6.5)[:count]
    assert parse_scores(f"<think>{text}</think>{reply(scores)}", count=count).scores == scores
    assert parse_scores(f"{text}</think>{reply(scores)}", count=count).scores in ((), scores)


@pytest.mark.parametrize(
    "unit", ["[", "{", "{}", '{"a":', '"', "{'", "<think>", "</think>", '{"score": [', "7", "can't "]
)
def test_a_megabyte_of_nonsense_takes_linear_work(unit):
    start = time.process_time()
    assert not parse_scores((unit * 10**6)[: 10**6], count=2).scores
    # Seconds of this process alone, some 0.7 at most; quadratic work would be many minutes.
    assert time.process_time() - start < 60


# Real replies.


def test_every_recorded_answer_of_gpt4v_is_read_back(shared_data):
    rows = [
        row
        for path in sorted((shared_data / "viescore_logs" / "results_gpt4v_0shot").glob("*/*/*.json"))
        for row in json.loads(path.read_text()).values()
    ]
    assert len(rows) == 9284
    for row in rows:
        text = json.dumps({"score": row["score"], "reasoning": row["reasoning"]})
        parsed = parse_scores(text, count=len(row["score"]))
        assert (parsed.status, list(parsed.scores)) == (Status.OK, row["score"])


def test_what_the_authors_could_not_parse_is_not_read_as_scores(shared_data):
    """BLIP-2 echoes the prompt (`naturalness 10 artifacts 0`, `[score1, score2]`, `[1, 10], [1, 10]`) or captions."""
    prefix = "guess_if_cannot_parse | "
    counts = {"ImagenHub_Text-Guided_IG": 1, "ImagenHub_Multi-Concept_IC": 3}
    replies_of_count = Counter()
    for path in sorted((shared_data / "viescore_logs" / "results_blip2_0shot").glob("*/*/*.json")):
        count = 2 if path.stem == "PQ" else counts.get(path.parts[-3], 2)
        for row in json.loads(path.read_text()).values():
            raw = row["reasoning"] or ""
            if raw.startswith(prefix):
                replies_of_count[raw.removeprefix(prefix), count] += 1
    assert replies_of_count.total() == 5334
    statuses = {parse_scores(raw, count=count).status for raw, count in replies_of_count}
    assert statuses == {Status.PARSE_FAILURE}
