"""Test how replies on contests are read: letters, rankings and labels."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asked_contests import contest, not_applicable, own_pack, reply
from tests.playing import prepared
from tests.refusals import refuses
from tests.tables import table
from vieval_plugin.judges.contests import BOTH_BAD, FIRST, SECOND
from vieval_plugin.judges.pairwise.reading import plain_labels, reader
from vieval_plugin.judges.parsing import REFUSAL_INSIDE
from vieval_plugin.judges.protocol import Status


@pytest.mark.parametrize(*table("read_votes.jsonl"))
def test_what_is_read(text, status):
    read = reader("four_way", (1, 2))(text)
    assert (read.value, read.status) == (SECOND, status)
    assert reader("four_way", (2, 1))(text).value == FIRST


@pytest.mark.parametrize(*table("unread_votes.jsonl"))
def test_what_is_not_read(text):
    read = reader("four_way", (1, 2))(text)
    assert (read.value, read.status) == (None, Status.PARSE_FAILURE)
    assert read.reason


def test_a_refusal_in_the_reasoning_is_counted():
    text = '{"reasoning": "I have not seen an image.", "better": "A"}'
    chosen = reader("two_way", (1, 2))(text)
    assert (chosen.status, chosen.finding) == (Status.OK, REFUSAL_INSIDE)


@pytest.mark.parametrize(*table("wrong_rankings.jsonl"))
def test_what_is_no_ranking(places):
    text = json.dumps({"reasoning": "x", "places": places})
    read = reader("ranking", (1, 2, 3))(text)
    assert (read.value, read.status) == (None, Status.PARSE_FAILURE)


def test_a_candidate_with_two_places_has_none():
    text = '{"reasoning": "x", "places": {"A": 1, "B": 2, "A": 2}}'
    assert reader("ranking", (1, 2))(text).value is None


@pytest.mark.parametrize("length", [10**3, 10**6])
def test_a_reason_is_kept_short(length):
    read = reader("four_way", (1, 2))(reply("A", "word " * length).text)
    assert read.value == FIRST
    assert len(read.reason) < 700


@pytest.mark.parametrize(
    ("form", "order"),
    [("four_way", (2, 1)), ("ranking", (3, 2, 1)), ("labels", (1, 2))],
)
@given(text=st.text(alphabet='{}[]":, \n\\AB<>=betr', max_size=80))
def test_no_text_breaks_the_reader(form, order, text):
    read = reader(form, order)(text)
    assert (read.value is not None) is read.status.usable


@pytest.mark.parametrize(*table("plain_labels.jsonl"))
def test_labels_in_their_plain_form(text, labels):
    assert plain_labels(text) == set(labels)


@pytest.mark.parametrize(*table("labels_without_an_answer.jsonl"))
def test_labels_that_are_not_one_answer_are_none(text):
    read = reader("labels", (1, 2))(text)
    assert (read.value, read.status) == (None, Status.PARSE_FAILURE)


def test_a_label_in_thinking_is_no_second_one():
    assert reader("labels", (1, 2))("<think>[[A>B]]</think> [[B>A]]").value == SECOND
    assert reader("labels", (1, 2))("[[A > B]], as I said.\n[[A>>B]]").value == FIRST


@pytest.mark.parametrize(
    ("label", "vote"),
    [("A>B", SECOND), ("B>A", FIRST), ("A=B=Bad", BOTH_BAD), ("A=B", None)],
)
def test_labels_are_turned_round_and_a_bare_tie_is_no_vote_of_four(label, vote):
    read = reader("labels", (2, 1))(f"Sharper.\n[[{label}]]")
    assert read.value == vote
    assert vote is None or read.reason == "Sharper."


def test_options_that_labels_cannot_answer_are_refused(tmp_path):
    pack = own_pack(tmp_path / "pack", "x")
    manifest = tmp_path / "pack" / "manifest.yaml"
    manifest.write_text(manifest.read_text() + "replies: labels\n")
    for options in ({"answers": "two_way"}, {"mode": "expected"}):
        four = "mine requires four labels"
        refuses(four, prepared, "pairwise", pack=pack, **options)
    two = "prompt pack mine requires exactly 2 candidates, got 3"
    assert not_applicable(contest(3), pack=pack) == two
