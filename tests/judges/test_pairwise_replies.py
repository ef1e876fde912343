"""Test how replies on contests are read: letters, rankings and labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asked_contests import contest, not_applicable, own_pack, reply
from tests.playing import prepared
from tests.refusals import refuses
from tests.tables import table
from vieval_plugin.judges.contests import FIRST
from vieval_plugin.judges.pairwise.reading import plain_labels, reader


@pytest.mark.parametrize(*table("pairwise_replies.jsonl"))
def test_a_reply_is_read_as_written(form, order, text, value, status, reason, finding):
    read = reader(form, tuple(order))(text)
    assert (read.value, read.status) == (value, status)
    assert (read.reason, read.finding) == (reason, finding)


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


def test_options_that_labels_cannot_answer_are_refused(tmp_path):
    pack = own_pack(tmp_path / "pack", "x")
    manifest = tmp_path / "pack" / "manifest.yaml"
    manifest.write_text(manifest.read_text() + "replies: labels\n")
    for options in ({"answers": "two_way"}, {"mode": "expected"}):
        four = "mine requires four labels"
        refuses(four, prepared, "pairwise", pack=pack, **options)
    two = "prompt pack mine requires exactly 2 candidates, got 3"
    assert not_applicable(contest(3), pack=pack) == two
