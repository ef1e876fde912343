"""What of a reply is an answer: the whole object that was asked for, once, behind at most a
lead-in of allowed words.
"""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tables import table
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
    table = [
        json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()
    ]
    lead_ins = [
        row["text"].partition("{")[0].strip()
        for row in table
        if row["form"] == "bad lead-in"
    ]
    assert len(lead_ins) >= 50
    assert [text for text in lead_ins if is_lead_in(text)] == []


@pytest.mark.parametrize(*table("lead_ins_of_no_refusal.jsonl"))
def test_a_lead_in_that_may_say_what_the_image_shows_or_what_was_asked_for_is_none(
    text,
):
    assert not is_lead_in(text)


# What is read.


@pytest.mark.parametrize(*table("rubric_replies.jsonl"))
def test_a_reply_has_its_status_and_scores_or_its_reason(
    text, count, status, scores, reason
):
    parsed = read(text, count)
    assert (parsed.status, parsed.scores) == (status, tuple(scores))
    assert reason in parsed.reason


def test_a_number_alone_is_as_asked_where_a_pack_shows_it_so():
    assert (
        read('{"score": "7", "reasoning": "clean"}', 1, as_shown=True).status
        is Status.OK
    )
    assert (
        read('{"score": "7 of 10", "reasoning": "clean"}', 1, as_shown=True).status
        is Status.PARSE_FAILURE
    )


def test_the_scale_and_the_keys_are_those_of_the_schema():
    assert parse_scores(
        '{"score": "4/5", "reasoning": "x"}', reply_schema(1, 5)
    ).scores == (4.0,)
    assert not parse_scores(
        '{"score": [1], "reasoning": "x"}', reply_schema(1, 5, 2)
    ).scores
    asked = reply_schema(1, keys=("score", "answer"), optional=("confidence",))
    assert parse_scores('{"score": [7], "answer": "a cat"}', asked).status is Status.OK
    assert (
        parse_scores(
            '{"score": [7], "answer": "a cat", "confidence": 0.4}', asked
        ).status
        is Status.OK
    )
    assert parse_scores(
        '{"score": [7], "answer": "a cat", "final": true}', asked
    ).reason.endswith("unknown keys: final")


def test_a_refusal_in_the_reasoning_is_counted_and_not_obeyed():
    parsed = read(reply([0, 0], "No image was provided, I am unable to rate it."))
    assert (parsed.status, parsed.scores, parsed.finding) == (
        Status.OK,
        (0, 0),
        REFUSAL_INSIDE,
    )
    assert (
        read("I'm sorry, but I can't assist with that.").status is Status.PARSE_FAILURE
    )


# What is not.


MANGLED = (
    *(
        "[7, ?]",
        "[7, ?, 8]",
        "[7, ...]",
        "8,5",
        "7, 8",
        "7_0",
        "[7 (good), 8 (bad)]",
        "[~7, 8]",
        "[<7, 8]",
        "[1 0, 8]",
    ),
    *(
        "**7**",
        "[7, 8], // a draft",
        "[1<think>hm</think>0, 8]",
        "7.5.1",
        "[\\u0037, 8]",
    ),
)


@pytest.mark.parametrize("scores", MANGLED)
def test_what_the_mender_drops_or_merges_is_not_believed(scores):
    for count in (1, 2):
        assert (
            read(f'{{"score": {scores}, "reasoning": "x"}}', count).status
            is Status.PARSE_FAILURE
        )


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


@pytest.mark.parametrize(
    "behind", ["ignore that", "ignore that {}", "{'score': [1, 1]}", '{"a": 1}']
)
def test_words_behind_a_broken_object_are_no_part_of_it(behind):
    assert not read(f"{{'score': [7, 8], 'reasoning': 'fine'}} {behind}").scores
    assert not read(f"{{'score': [7, 8], 'reasoning': 'fine', {behind}}}").scores


@pytest.mark.parametrize(*table("numbers_alone.jsonl"))
def test_a_number_alone(text, status, scores):
    parsed = parse_number(text, 0, 10)
    assert (parsed.status, parsed.scores) == (status, tuple(scores))


def test_a_number_over_and_over_is_not_read():
    assert parse_number("7 " * 10_000, 0, 10).status is Status.PARSE_FAILURE


# For any reply.

FRAGMENTS = (
    *"{}[]\"':,\\ \n`\u2019“/*#",
    *(
        "score",
        '"score": [1, 2], ',
        "'score': [3, 4]",
        '{"score": [1, 2]}',
        "{'score': [5]}",
        "score: 9",
        "reasoning",
    ),
    *(
        "9",
        "10",
        "7/10",
        "0.5",
        "1e1",
        "NaN",
        "true",
        "<think>",
        "</think>",
        "```json\n",
        "||V^=^V||",
        ANSWER,
    ),
)
texts = st.one_of(
    st.text(), st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join)
)
score_lists = st.lists(
    st.one_of(st.integers(0, 10), st.floats(0, 10)), min_size=1, max_size=3
)


@st.composite
def replies(draw):
    """A valid reply with its scores and its reasoning; the keys come in either order."""
    scores, reasoning = (
        draw(score_lists),
        draw(texts.filter(lambda text: any(map(str.isalnum, text)))),
    )
    pairs = draw(st.permutations([("score", scores), ("reasoning", reasoning)]))
    text = json.dumps(
        dict(pairs),
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 1])),
    )
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
    assert (parsed.status, parsed.scores, parsed.reason) == (
        Status.OK,
        scores,
        reasoning,
    )


@given(replies(), st.data())
def test_a_cut_never_makes_other_scores(valid, data):
    text, scores, _ = valid
    assert read(text[: data.draw(st.integers(0, len(text)))], len(scores)).scores in (
        (),
        scores,
    )


@given(texts, texts)
def test_what_stands_around_an_answer_never_makes_another(before, behind):
    mine = reply([4.25, 5.75])
    assert read(f"{mine}{behind}{reply([9.25, 9.75])}").scores == ()
    assert read(f"<think>{before.replace('think>', '')}</think>{mine}").scores == (
        4.25,
        5.75,
    )
    assert read(f"{mine}{behind}").scores in ((), (4.25, 5.75))


NONSENSE = (
    *(
        "[",
        "{",
        "{}",
        '{"a":',
        '"',
        "{'",
        "<think>",
        "</think>",
        "</think>{x",
        "\n</think> here {",
        "here ",
        "```",
    ),
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
        for path in sorted(
            (shared_data / "viescore_logs" / "results_gpt4v_0shot").glob("*/*/*.json")
        )
        for row in json.loads(path.read_text()).values()
    ]
    findings = 0
    for row in rows:
        parsed = read(
            json.dumps({"score": row["score"], "reasoning": row["reasoning"]}),
            len(row["score"]),
        )
        listed = isinstance(row["reasoning"], list)
        assert (parsed.status is Status.REPAIRED, list(parsed.scores)) == (
            listed,
            row["score"],
        )
        findings += bool(parsed.finding)
    assert (len(rows), findings) == (9284, 42)


def test_what_the_authors_could_not_parse_is_not_read_as_scores(shared_data):
    """BLIP-2 echoes the prompt (`naturalness 10 artifacts 0`, `[score1, score2]`, `[1, 10], [1,
    10]`) or captions.
    """
    prefix = "guess_if_cannot_parse | "
    counts = {"ImagenHub_Text-Guided_IG": 1, "ImagenHub_Multi-Concept_IC": 3}
    replies_of_count = Counter()
    for path in sorted(
        (shared_data / "viescore_logs" / "results_blip2_0shot").glob("*/*/*.json")
    ):
        count = 2 if path.stem == "PQ" else counts.get(path.parts[-3], 2)
        for row in json.loads(path.read_text()).values():
            raw = row["reasoning"] or ""
            if raw.startswith(prefix):
                replies_of_count[raw.removeprefix(prefix), count] += 1
    assert replies_of_count.total() == 5334
    assert {read(raw, count).status for raw, count in replies_of_count} == {
        Status.PARSE_FAILURE
    }
