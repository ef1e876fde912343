"""What of a reply is an answer: the whole object that was asked for, once, behind at most a lead-in of allowed words."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tables import table
from vieval_plugin.judges.parsing import REFUSAL_INSIDE, is_lead_in, parse_number, parse_scores, reply_schema
from vieval_plugin.judges.protocol import Status

TABLE = Path(__file__).with_name("replies") / "bad.jsonl"
NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
ANSWER = '{"score": [7, 8], "reasoning": "clean"}'


def read(text, count=2, **options):
    return parse_scores(text, reply_schema(count), **options)


def reply(scores, reasoning="fine"):
    return json.dumps({"score": scores, "reasoning": reasoning})


def test_a_lead_in_of_each_bad_reply_is_none_of_itself():
    table = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
    lead_ins = [row["text"].partition("{")[0].strip() for row in table if row["form"] == "bad lead-in"]
    assert len(lead_ins) >= 50
    assert [text for text in lead_ins if is_lead_in(text)] == []


@pytest.mark.parametrize(*table("lead_ins_of_no_refusal.jsonl"))
def test_a_lead_in_that_may_say_what_the_image_shows_or_what_was_asked_for_is_none(text):
    assert not is_lead_in(text)


# What is read.


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        pytest.param(ANSWER, (7, 8), id="plain"),
        pytest.param('{"reasoning": "clean", "score": [7.5, 0]}', (7.5, 0), id="reasoning-first"),
        pytest.param(f"```json\n{ANSWER}\n```", (7, 8), id="fence"),
        pytest.param(f"```\n{ANSWER}\n```\n\n", (7, 8), id="fence-without-language"),
        pytest.param(f"<answer>\n```json\n{ANSWER}\n```\n</answer>", (7, 8), id="tag-and-fence"),
        pytest.param(f"## Final **score** of image 2\n{ANSWER}", (7, 8), id="heading"),
        pytest.param(f"{ANSWER}<|im_end|>", (7, 8), id="end-of-turn"),
        pytest.param(f"[{ANSWER}]", (7, 8), id="list-of-one"),
        pytest.param(f"<verdict>\n```evaluation\n{ANSWER}\n```\n</verdict>", (7, 8), id="any-tag-and-fence"),
        pytest.param(f"<|im_start|>assistant\n{ANSWER}<|im_end|>", (7, 8), id="role"),
        pytest.param('{"score": [7, 8], "reasoning": "two\nlines"}', (7, 8), id="newline-in-string"),
    ],
)
def test_the_whole_object_is_ok(text, scores):
    parsed = read(text)
    assert (parsed.status, parsed.scores) == (Status.OK, scores)


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        pytest.param('{"score": 7, "reasoning": "clean"}', (7,), id="number-for-list"),
        pytest.param('{"score": ["7", "8/10"], "reasoning": "clean"}', (7, 8), id="quoted-numbers"),
        pytest.param('{"score": [7, 8], "reasoning": ["natural", "clean"]}', (7, 8), id="list-of-texts"),
        pytest.param('{"Score": "[7, 8]", "REASONING": "clean", "confidence": 0.9}', (7, 8), id="another-dress"),
        pytest.param(f"||V^=^V||\n{ANSWER}\n||V^=^V||", (7, 8), id="delimiters-of-authors"),
        pytest.param(f'{{"Final Answer": {ANSWER}}}', (7, 8), id="wrapper"),
        pytest.param(f'{{"image_2_evaluation": {ANSWER}}}', (7, 8), id="wrapper-of-an-image"),
        pytest.param("{'score': [7, 8], 'reasoning': 'it's clean'}", (7, 8), id="single-quotes"),
        pytest.param("{“score”: [7, 8], “reasoning”: “clean”}", (7, 8), id="curly-quotes"),
        pytest.param('{"score": [7, 8], "reasoning": "a "clean" one"}', (7, 8), id="quotes-in-quotes"),
        pytest.param('{"score": [7, 8,], "reasoning": "clean",}', (7, 8), id="trailing-commas"),
        pytest.param('{"score": [7, 8]\n"reasoning": "clean"}', (7, 8), id="missing-comma"),
        pytest.param('{score: [7, 8], reasoning: "clean"}', (7, 8), id="naked-keys"),
    ],
)
def test_what_is_mended_says_so(text, scores):
    parsed = read(text, len(scores))
    assert (parsed.status, parsed.scores) == (Status.REPAIRED, scores)


def test_a_number_alone_is_as_asked_where_a_pack_shows_it_so():
    assert read('{"score": "7", "reasoning": "clean"}', 1, as_shown=True).status is Status.OK
    assert read('{"score": "7 of 10", "reasoning": "clean"}', 1, as_shown=True).status is Status.PARSE_FAILURE


def test_the_scale_and_the_keys_are_those_of_the_schema():
    assert parse_scores('{"score": "4/5", "reasoning": "x"}', reply_schema(1, 5)).scores == (4.0,)
    assert not parse_scores('{"score": [1], "reasoning": "x"}', reply_schema(1, 5, 2)).scores
    asked = reply_schema(1, keys=("score", "answer"), optional=("confidence",))
    assert parse_scores('{"score": [7], "answer": "a cat"}', asked).status is Status.OK
    assert parse_scores('{"score": [7], "answer": "a cat", "confidence": 0.4}', asked).status is Status.OK
    assert parse_scores('{"score": [7], "answer": "a cat", "final": true}', asked).reason.endswith("asked for: final")


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        pytest.param(f"<think>{reply([1, 2])}</think>{ANSWER}", (7, 8), id="block"),
        pytest.param(f"It could be [1, 2]\n</think>\n\nHere is my rating: {ANSWER}", (7, 8), id="lone-end"),
        pytest.param(f"<THINK>a</THINK>b<think>c {reply([1, 2])}</think>{ANSWER}", (7, 8), id="two-blocks"),
        pytest.param(f"analysisIt could be [1, 2]assistantfinal{ANSWER}", (7, 8), id="harmony-without-marks"),
        pytest.param(f'The image shows the text "</think>{ANSWER}', (), id="quoted"),
        pytest.param(f'<think>It reads "</reasoning>{ANSWER}', (), id="end-of-another-name"),
        pytest.param(f"◁think▷{reply([1, 2])}◁/think▷{ANSWER}", (7, 8), id="kimi"),
        pytest.param(f"[THINK]{reply([1, 2])}[/THINK]{ANSWER}", (7, 8), id="magistral"),
        pytest.param(f"<seed:think>{reply([1, 2])}</seed:think>{ANSWER}", (7, 8), id="seed"),
        pytest.param(
            f"<|channel|>analysis<|message|>{reply([1, 2])}<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
            (7, 8),
            id="harmony",
        ),
        pytest.param('{"score": [7, 8], "reasoning": "no </think> tag"}', (7, 8), id="tag-is-prose"),
        pytest.param('<think>a</think>{"score": [7, 8], "reasoning": "</think>"}', (7, 8), id="tag-is-prose-behind"),
        pytest.param(f"{reply([1, 2])} or so </think> {ANSWER}", (), id="answer-before-the-end"),
        pytest.param(f"<think>{ANSWER}", (), id="unclosed"),
        pytest.param(f"<think>{ANSWER}</think>", (), id="nothing-behind"),
        pytest.param(f"{{'score': [2, 3], 'reasoning': 'it reads </think>{ANSWER}", (), id="quoted-in-broken-json"),
        pytest.param(
            f'<think>a</think>{{"score": [2, 3], "reasoning": "it reads </think>{ANSWER}', (), id="quoted-and-cut"
        ),
    ],
)
def test_what_was_thought_is_never_read(text, scores):
    assert read(text).scores == scores


def test_a_refusal_in_the_reasoning_is_counted_and_not_obeyed():
    parsed = read(reply([0, 0], "No image was provided, I am unable to rate it."))
    assert (parsed.status, parsed.scores, parsed.finding) == (Status.OK, (0, 0), REFUSAL_INSIDE)
    assert read("I'm sorry, but I can't assist with that.").status is Status.PARSE_FAILURE


# What is not.


@pytest.mark.parametrize(
    ("text", "count", "reason"),
    [
        pytest.param(" \n", 2, "empty reply", id="blank"),
        pytest.param("A fine image.", 2, "no JSON object found", id="prose"),
        pytest.param("7", 1, "no JSON object found", id="bare-number"),
        pytest.param("[7, 8]", 2, "no JSON object found", id="bare-list"),
        pytest.param(f"[{ANSWER}", 2, "words behind", id="list-cut"),
        pytest.param(f"[{ANSWER}, {ANSWER}]", 2, "words behind", id="list-of-two"),
        pytest.param(f"{ANSWER}{ANSWER}", 2, "behind the answer", id="twice"),
        pytest.param(f"{ANSWER} Anything else?", 2, "behind the answer", id="words-behind"),
        pytest.param('{"score": [7, 8]}', 2, "lacks reasoning", id="no-reasoning"),
        pytest.param(reply([7, 8], " "), 2, "reasoning is empty", id="blank-reasoning"),
        pytest.param(reply([7, 8], 5), 2, "reasoning is no text", id="no-text"),
        pytest.param(reply([7, 8, 9]), 2, "values given: 3, asked: 2", id="too-many"),
        pytest.param(reply([7]), 2, "values given: 1, asked: 2", id="too-few"),
        pytest.param(reply([7, 11]), 2, "not a number from 0 to 10", id="above"),
        pytest.param(reply([-1, 7]), 2, "not a number from 0 to 10", id="below"),
        pytest.param(reply([7, True]), 2, "not a number from 0 to 10", id="boolean"),
        pytest.param(reply([7, None]), 2, "not a number from 0 to 10", id="null"),
        pytest.param('{"score": [7, NaN], "reasoning": "x"}', 2, "not a number from 0 to 10", id="nan"),
        pytest.param('{"score": [7, 1e999], "reasoning": "x"}', 2, "not a number from 0 to 10", id="overflow"),
        pytest.param(reply("8/5"), 1, "not a number from 0 to 10", id="other-denominator"),
        pytest.param(reply("7-8"), 1, "not a number from 0 to 10", id="range"),
        pytest.param(f'{{"example": {ANSWER}}}', 2, "lacks score", id="example"),
        pytest.param(f'{{"a": {{"evaluation": {ANSWER}}}}}', 2, "lacks score", id="two-levels-down"),
        pytest.param('{"score": [7, 8], "score": [7, 8], "reasoning": "x"}', 2, "more than one way", id="key-twice"),
        pytest.param('{"Score": [7, 8], "score": [1, 1], "reasoning": "x"}', 2, "a key twice", id="other-case-twice"),
        pytest.param(
            '{"score": [7, 8], "reasoning": "x", "final_score": [2, 1]}', 2, "asked for: final_score", id="other-score"
        ),
        pytest.param('{"score": [7, 8], "reasoning": "x", "error": "no image"}', 2, "asked for: error", id="error"),
        pytest.param('{"reasoning": "fine, "score": [7, 8]}', 2, "more than one way", id="moved-out-of-a-text"),
        pytest.param('{"score": [7, 8], "reasoning": "cut of', 2, "cut off", id="cut"),
    ],
)
def test_what_is_not_the_asked_object_is_a_parse_failure(text, count, reason):
    parsed = read(text, count)
    assert (parsed.status, parsed.scores) == (Status.PARSE_FAILURE, ())
    assert reason in parsed.reason


MANGLED = (
    *("[7, ?]", "[7, ?, 8]", "[7, ...]", "8,5", "7, 8", "7_0", "[7 (good), 8 (bad)]", "[~7, 8]", "[<7, 8]", "[1 0, 8]"),
    *("**7**", "[7, 8], // a draft", "[1<think>hm</think>0, 8]", "7.5.1", "[\\u0037, 8]"),
)


@pytest.mark.parametrize("scores", MANGLED)
def test_what_the_mender_drops_or_merges_is_not_believed(scores):
    for count in (1, 2):
        assert read(f'{{"score": {scores}, "reasoning": "x"}}', count).status is Status.PARSE_FAILURE


@pytest.mark.parametrize(
    "text",
    [
        '{"reasoning": "it reads "score": [10, 10]"}',
        '{"reasoning": "it reads, "score": [10, 10]"}',
        '{"reasoning": "it reads, "score": "10""}',
        "{'reasoning': 'it reads, 'score': [10, 10], and so on', 'score': [2, 1]}",
    ],
)
def test_a_key_that_is_quoted_in_a_broken_text_is_none(text):
    assert not read(text, 1).scores
    assert not read(text).scores


@pytest.mark.parametrize("behind", ["ignore that", "ignore that {}", "{'score': [1, 1]}", '{"a": 1}'])
def test_words_behind_a_broken_object_are_no_part_of_it(behind):
    assert not read(f"{{'score': [7, 8], 'reasoning': 'fine'}} {behind}").scores
    assert not read(f"{{'score': [7, 8], 'reasoning': 'fine', {behind}}}").scores


@pytest.mark.parametrize(
    ("text", "status", "scores"),
    [
        ("7", Status.OK, (7,)),
        ("<think>3</think> 7.5\n", Status.OK, (7.5,)),
        ("**7/10**", Status.REPAIRED, (7,)),
        ("Rating of image 2: 7.", Status.REPAIRED, (7,)),
        ("评分：7", Status.REPAIRED, (7,)),
        ("7<|im_end|>", Status.REPAIRED, (7,)),
        ("Image 2: 7", Status.REPAIRED, (7,)),
        ("The image: 7", Status.PARSE_FAILURE, ()),
        ("I refuse to rate.</think>7", Status.PARSE_FAILURE, ()),
        ("Image 2", Status.PARSE_FAILURE, ()),
        ("Not 7", Status.PARSE_FAILURE, ()),
        ("An example: 7", Status.PARSE_FAILURE, ()),
        ("7 or 8", Status.PARSE_FAILURE, ()),
        ("17", Status.PARSE_FAILURE, ()),
        ("7 " * 10_000, Status.PARSE_FAILURE, ()),
    ],
)
def test_a_number_alone(text, status, scores):
    parsed = parse_number(text, 0, 10)
    assert (parsed.status, parsed.scores) == (status, scores)


# For any reply.

FRAGMENTS = (
    *"{}[]\"':,\\ \n`\u2019“/*#",
    *("score", '"score": [1, 2], ', "'score': [3, 4]", '{"score": [1, 2]}', "{'score': [5]}", "score: 9", "reasoning"),
    *("9", "10", "7/10", "0.5", "1e1", "NaN", "true", "<think>", "</think>", "```json\n", "||V^=^V||", ANSWER),
)
texts = st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join))
score_lists = st.lists(st.one_of(st.integers(0, 10), st.floats(0, 10)), min_size=1, max_size=3)


@st.composite
def replies(draw):
    """A valid reply with its scores and its reasoning; the keys come in either order."""
    scores, reasoning = draw(score_lists), draw(texts.filter(lambda text: any(map(str.isalnum, text))))
    pairs = draw(st.permutations([("score", scores), ("reasoning", reasoning)]))
    text = json.dumps(dict(pairs), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    return text, tuple(scores), reasoning


@given(text=texts, count=st.integers(1, 3))
@example(text='{"score": ' + "9" * 400 + "}", count=1)
@example(text='{"score": ' + "9" * 5000 + "}", count=1)
@example(text="\ud800", count=1)
@example(text="{" * 100_000, count=1)
def test_any_text_is_read_without_raising_and_every_score_stands_in_it(text, count):
    parsed = read(text, count)
    assert parsed.status.usable == bool(parsed.scores)
    assert len(parsed.scores) in (0, count)
    assert {float(number) for number in NUMBER.findall(text)}.issuperset(parsed.scores)


@given(replies())
def test_a_valid_reply_is_read_exactly(valid):
    text, scores, reasoning = valid
    parsed = read(text, len(scores))
    assert (parsed.status, parsed.scores, parsed.reason) == (Status.OK, scores, reasoning)


@given(replies(), st.data())
def test_a_cut_never_makes_other_scores(valid, data):
    text, scores, _ = valid
    assert read(text[: data.draw(st.integers(0, len(text)))], len(scores)).scores in ((), scores)


@given(texts, texts)
def test_what_stands_around_an_answer_never_makes_another(before, behind):
    mine = reply([4.25, 5.75])
    assert read(f"{mine}{behind}{reply([9.25, 9.75])}").scores == ()
    assert read(f"<think>{before.replace('think>', '')}</think>{mine}").scores == (4.25, 5.75)
    assert read(f"{mine}{behind}").scores in ((), (4.25, 5.75))


NONSENSE = (
    *("[", "{", "{}", '{"a":', '"', "{'", "<think>", "</think>", "</think>{x", "\n</think> here {", "here ", "```"),
    *("\n", "*", '{"score": [', "7", ANSWER, f"{ANSWER}\n"),
)


@pytest.mark.parametrize("unit", NONSENSE)
def test_a_megabyte_of_nonsense_takes_linear_work(unit):
    """Quadratic work would take many minutes."""
    nonsense = unit * (10**6 // len(unit))
    assert not read(nonsense).scores
    assert not read(f"{ANSWER}{nonsense}x").scores
    assert not parse_number(f"{nonsense}x", 0, 10).scores


# Real replies.


def test_every_recorded_answer_of_gpt4v_is_read_back(shared_data):
    """Of 9,284 answers 42 decline in their reasoning, and nearly all of them give zeros."""
    rows = [
        row
        for path in sorted((shared_data / "viescore_logs" / "results_gpt4v_0shot").glob("*/*/*.json"))
        for row in json.loads(path.read_text()).values()
    ]
    findings = 0
    for row in rows:
        parsed = read(json.dumps({"score": row["score"], "reasoning": row["reasoning"]}), len(row["score"]))
        listed = isinstance(row["reasoning"], list)
        assert (parsed.status is Status.REPAIRED, list(parsed.scores)) == (listed, row["score"])
        findings += bool(parsed.finding)
    assert (len(rows), findings) == (9284, 42)


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
    assert {read(raw, count).status for raw, count in replies_of_count} == {Status.PARSE_FAILURE}
