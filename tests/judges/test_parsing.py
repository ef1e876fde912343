"""Test what of a reply is an answer: one whole object, after an allowed lead-in."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tables import table
from vieval_plugin.judges.answer_formats import parse_labelled_lines
from vieval_plugin.judges.parsing import (
    REFUSAL_INSIDE,
    is_lead_in,
    parse_number,
    parse_scores,
    reply_schema,
)
from vieval_plugin.judges.protocol import Status

TABLE = Path(__file__).with_name("replies") / "bad.jsonl"
NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
ANSWER = '{"score": [7, 8], "reasoning": "clean"}'


def read(text, count=2, **options):
    return parse_scores(text, reply_schema(count), **options)


def reply(scores, reasoning="fine"):
    return json.dumps({"score": scores, "reasoning": reasoning})


def test_a_lead_in_of_each_bad_reply_is_none_of_itself():
    rows = [json.loads(line) for line in TABLE.open(encoding="utf-8")]
    bad = [row["text"] for row in rows if row["form"] == "bad lead-in"]
    lead_ins = [text.partition("{")[0].strip() for text in bad]
    assert len(lead_ins) >= 50
    assert [text for text in lead_ins if is_lead_in(text)] == []


@pytest.mark.parametrize(*table("lead_ins_of_no_refusal.jsonl"))
def test_a_lead_in_that_may_describe_the_image_is_none(text):
    assert not is_lead_in(text)


@pytest.mark.parametrize(*table("rubric_replies.jsonl"))
def test_a_reply_has_status_scores_and_reason(text, count, status, scores, reason):
    parsed = read(text, count)
    assert (parsed.status, parsed.scores) == (status, tuple(scores))
    assert reason in parsed.reason


@pytest.mark.parametrize(
    ("score", "status"), [("7", "ok"), ("7 of 10", "parse_failure")]
)
def test_a_number_alone_is_as_asked_where_a_pack_shows_it_so(score, status):
    text = f'{{"score": "{score}", "reasoning": "clean"}}'
    assert read(text, 1, as_shown=True).status == status


def test_the_scale_and_the_keys_are_those_of_the_schema():
    of_five = parse_scores('{"score": "4/5", "reasoning": "x"}', reply_schema(1, 5))
    assert of_five.scores == (4.0,)
    below = '{"score": [1], "reasoning": "x"}'
    assert not parse_scores(below, reply_schema(1, 5, 2)).scores
    asked = reply_schema(1, keys=("score", "answer"), optional=("confidence",))
    answered = '{"score": [7], "answer": "a cat"'
    for more in ("}", ', "confidence": 0.4}'):
        assert parse_scores(answered + more, asked).status is Status.OK
    unknown = parse_scores(f'{answered}, "final": true}}', asked)
    assert unknown.reason.endswith("unknown keys: final")


def test_a_refusal_in_the_reasoning_is_counted_and_not_obeyed():
    parsed = read(reply([0, 0], "No image was provided, I am unable to rate it."))
    assert (parsed.status, parsed.scores) == (Status.OK, (0, 0))
    assert parsed.finding == REFUSAL_INSIDE
    refused = read("I'm sorry, but I can't assist with that.")
    assert refused.status is Status.PARSE_FAILURE


@pytest.mark.parametrize(*table("unread_texts.jsonl"))
def test_what_could_be_mended_in_several_ways_is_not_read(text):
    for count in (1, 2):
        assert read(text, count).status is Status.PARSE_FAILURE


@pytest.mark.parametrize(*table("numbers_alone.jsonl"))
def test_a_number_alone(text, status, scores):
    parsed = parse_number(text, 0, 10)
    assert (parsed.status, parsed.scores) == (status, tuple(scores))


def test_a_number_over_and_over_is_not_read():
    assert parse_number("7 " * 10_000, 0, 10).status is Status.PARSE_FAILURE


NUMBERS = ["9", "10", "7/10", "0.5", "1e1", "NaN", "true"]
SCORES = ['"score": [1, 2], ', "'score': [3, 4]", '{"score": [1, 2]}', "{'score': [5]}"]
MARKS = [*"{}[]\"':,\\ \n`\u2019“/*#", "<think>", "</think>", "```json\n", "||V^=^V||"]
WORDS = ["score", "reasoning", "score: 9"]
FRAGMENTS = [*MARKS, *WORDS, *NUMBERS, *SCORES, ANSWER]
fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=25)
texts = st.one_of(st.text(), fragments.map("".join))
numbers = st.one_of(st.integers(0, 10), st.floats(0, 10))
score_lists = st.lists(numbers, min_size=1, max_size=3)


@st.composite
def replies(draw):
    """A valid reply with its scores and its reasoning; the keys come in either order."""
    scores = draw(score_lists)
    reasoning = draw(texts.filter(lambda text: any(map(str.isalnum, text))))
    pairs = draw(st.permutations([("score", scores), ("reasoning", reasoning)]))
    ascii, indent = draw(st.booleans()), draw(st.sampled_from([None, 1]))
    text = json.dumps(dict(pairs), ensure_ascii=ascii, indent=indent)
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
    assert (parsed.status, parsed.scores) == (Status.OK, scores)
    assert parsed.reason == reasoning


@given(replies(), st.data())
def test_a_cut_never_makes_other_scores(valid, data):
    text, scores, _ = valid
    cut = text[: data.draw(st.integers(0, len(text)))]
    assert read(cut, len(scores)).scores in ((), scores)


@given(texts, texts)
def test_what_stands_around_an_answer_never_makes_another(before, behind):
    mine, scores = reply([4.25, 5.75]), (4.25, 5.75)
    assert read(f"{mine}{behind}{reply([9.25, 9.75])}").scores == ()
    thought = before.replace("think>", "")
    assert read(f"<think>{thought}</think>{mine}").scores == scores
    assert read(f"{mine}{behind}").scores in ((), scores)


OPENINGS = ["[", "{", "{}", '{"a":', '"', "{'", "```", "\n", "*", '{"score": [', "7"]
THOUGHTS = ["<think>", "</think>", "</think>{x", "\n</think> here {", "here "]


@pytest.mark.parametrize("unit", [*OPENINGS, *THOUGHTS, ANSWER, f"{ANSWER}\n"])
def test_a_megabyte_of_nonsense_takes_linear_work(unit):
    """Quadratic work would take many minutes."""
    nonsense = unit * (10**6 // len(unit))
    assert not read(nonsense).scores
    assert not read(f"{ANSWER}{nonsense}x").scores
    assert not parse_number(f"{nonsense}x", 0, 10).scores


def recorded(shared_data, log):
    """The files of replies of a public log, with their rows."""
    files = sorted((shared_data / "viescore_logs" / log).glob("*/*/*.json"))
    return [(path, json.loads(path.read_text()).values()) for path in files]


def test_every_recorded_answer_of_gpt4v_is_read_back(shared_data):
    """Of 9,284 answers 42 decline in their reasoning, and nearly all of them give zeros."""
    files = recorded(shared_data, "results_gpt4v_0shot")
    rows = [row for _, rows in files for row in rows]
    findings = 0
    for row in rows:
        text = json.dumps({"score": row["score"], "reasoning": row["reasoning"]})
        parsed = read(text, len(row["score"]))
        is_listed = isinstance(row["reasoning"], list)
        assert (parsed.status is Status.REPAIRED) == is_listed
        assert list(parsed.scores) == row["score"]
        findings += bool(parsed.finding)
    assert (len(rows), findings) == (9284, 42)


def test_what_the_authors_could_not_parse_is_not_read_as_scores(shared_data):
    """BLIP-2 echoes the prompt (`[score1, score2]`, `[1, 10], [1, 10]`) or captions."""
    prefix = "guess_if_cannot_parse | "
    counts = {"ImagenHub_Text-Guided_IG": 1, "ImagenHub_Multi-Concept_IC": 3}
    found = Counter()
    for path, rows in recorded(shared_data, "results_blip2_0shot"):
        count = 2 if path.stem == "PQ" else counts.get(path.parts[-3], 2)
        texts = [row["reasoning"] or "" for row in rows]
        raw = [text for text in texts if text.startswith(prefix)]
        found.update((text.removeprefix(prefix), count) for text in raw)
    assert found.total() == 5334
    statuses = {read(text, count).status for text, count in found}
    assert statuses == {Status.PARSE_FAILURE}


@pytest.mark.parametrize(*table("labelled_lines.jsonl"))
def test_lines_are_read_only_as_they_were_asked_for(reply, scores):
    labels = ("Alignment Score", "Coherence Score")
    found = parse_labelled_lines(reply, labels, 1, 5)
    assert found.scores == tuple(scores or ())
    assert found.status.usable is bool(scores)
    assert found.reason or scores


def test_words_around_the_lines_are_the_reasoning_and_may_decline():
    found = parse_labelled_lines("I cannot rate this.\nScore: 1", ["Score"], 1, 5)
    assert (found.reason, found.finding) == ("I cannot rate this.", REFUSAL_INSIDE)
