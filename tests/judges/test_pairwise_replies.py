"""How replies of a judge of contests are read: letters, rankings, and the labels of
GenAI-Bench's authors.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asked_contests import contest, not_applicable, own_pack, reply
from tests.playing import prepared
from tests.tables import table
from vieval_plugin.judges.contests import BOTH_BAD, FIRST, SECOND
from vieval_plugin.judges.pairwise.reading import plain_labels, reader
from vieval_plugin.judges.parsing import REFUSAL_INSIDE
from vieval_plugin.judges.protocol import Status
from vieval_plugin.text.errors import VievalError


@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param('{"reasoning": "x", "better": "B"}', Status.OK, id="as asked"),
        pytest.param(
            'Here is my answer: {"better": "B", "reasoning": "x"}',
            Status.OK,
            id="lead-in, another order",
        ),
        pytest.param(
            '{"reasoning": "x", "better": "b"}',
            Status.REPAIRED,
            id="case of the letter",
        ),
        pytest.param(
            '{"reasoning": "the "left" one", "better": "B"}',
            Status.REPAIRED,
            id="quotes in the reasoning",
        ),
    ],
)
def test_what_is_read(text, status):
    read = reader("four_way", (1, 2))(text)
    assert (read.value, read.status) == (SECOND, status)
    assert reader("four_way", (2, 1))(text).value == FIRST


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"better": "B"}', id="no reasoning"),
        pytest.param(
            '{"reasoning": "x", "better": "A", "winner": "B"}', id="a further key"
        ),
        pytest.param('{"reasoning": "x", "better": ["B"]}', id="a list of one"),
        pytest.param('{"reasoning": "x", "better": null}', id="nothing"),
        pytest.param('{"reasoning": "x", "better": "A or B"}', id="two letters"),
        pytest.param('{"reasoning": "x", "better": "C"}', id="another letter"),
        pytest.param("[[A>B]]", id="somebody else's label"),
        pytest.param("**B**", id="bare"),
    ],
)
def test_what_is_not_read(text):
    read = reader("four_way", (1, 2))(text)
    assert (read.value, read.status) == (None, Status.PARSE_FAILURE)
    assert read.reason


def test_a_refusal_in_the_reasoning_is_counted():
    chosen = reader("two_way", (1, 2))(
        '{"reasoning": "I have not seen an image.", "better": "A"}'
    )
    assert (chosen.status, chosen.finding) == (Status.OK, REFUSAL_INSIDE)


@pytest.mark.parametrize(
    "places",
    [
        {"A": 1, "B": 2},
        {"A": 1, "B": 2, "C": 4},
        {"A": 0, "B": 1, "C": 2},
        {"A": 1, "B": 2, "C": True},
        {"A": 1, "B": 2, "C": 1.5},
        {"A": 1, "B": 2, "C": 3, "D": 3},
        ["A", "B", "C"],
        "A>B>C",
    ],
)
def test_what_is_no_ranking(places):
    read = reader("ranking", (1, 2, 3))(
        json.dumps({"reasoning": "x", "places": places})
    )
    assert (read.value, read.status) == (None, Status.PARSE_FAILURE)


def test_a_candidate_with_two_places_has_none():
    assert (
        reader("ranking", (1, 2))(
            '{"reasoning": "x", "places": {"A": 1, "B": 2, "A": 2}}'
        ).value
        is None
    )


@pytest.mark.parametrize("length", [10**3, 10**6])
def test_a_reason_is_kept_short(length):
    read = reader("four_way", (1, 2))(reply("A", "word " * length).text)
    assert read.value == FIRST
    assert len(read.reason) < 700


@given(st.text(alphabet='{}[]":, \n\\AB<>=betr', max_size=80))
def test_no_text_breaks_the_reader(text):
    for form, order in (
        ("four_way", (2, 1)),
        ("ranking", (3, 2, 1)),
        ("labels", (1, 2)),
    ):
        read = reader(form, order)(text)
        assert (read.value is not None) is read.status.usable


# The labels of GenAI-Bench's authors.


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("[[A>B]]", {"A>B"}),
        ("[[A>>B]] or so", {"A>B"}),
        ("[[B >> A]]", {"B>A"}),
        ("[[A=B=Good]]", {"A=B=Good"}),
        ("[[A=B]]", {"A=B"}),
        ("1. [[A>B]] 2. [[B>A]] so: [[A=B=Bad]]", {"A>B", "B>A", "A=B=Bad"}),
        ("[[A>B]] [[C]] [[a >> b]]", {"A>B"}),
        ("[A>B]", set()),
        ("[[B>B]] [[A=Good]] [[]]", set()),
    ],
)
def test_labels_in_their_plain_form(text, labels):
    assert plain_labels(text) == labels


@pytest.mark.parametrize(*table("labels_without_an_answer.jsonl"))
def test_labels_that_are_not_one_answer_are_none(text):
    read = reader("labels", (1, 2))(text)
    assert (read.value, read.status) == (None, Status.PARSE_FAILURE)


def test_a_label_in_thinking_is_no_second_one():
    assert reader("labels", (1, 2))("<think>[[A>B]]</think> [[B>A]]").value == SECOND
    assert reader("labels", (1, 2))("[[A > B]], as I said.\n[[A>>B]]").value == FIRST


def test_labels_are_turned_round_and_a_bare_tie_is_no_vote_of_four():
    votes = {
        label: reader("labels", (2, 1))(f"Well.\n[[{label}]]").value
        for label in ("A>B", "B>A", "A=B=Bad", "A=B")
    }
    assert votes == {"A>B": SECOND, "B>A": FIRST, "A=B=Bad": BOTH_BAD, "A=B": None}
    assert reader("labels", (1, 2))("Sharper.\n[[A>B]]").reason == "Sharper."


def test_options_that_labels_cannot_answer_are_refused(tmp_path):
    pack = own_pack(tmp_path / "pack", "x")
    (tmp_path / "pack" / "manifest.yaml").write_text(
        (tmp_path / "pack" / "manifest.yaml").read_text() + "replies: labels\n"
    )
    for options in ({"answers": "two_way"}, {"mode": "expected"}):
        with pytest.raises(VievalError, match="mine requires four labels"):
            prepared("pairwise", pack=pack, **options)
    assert (
        not_applicable(contest(3), pack=pack)
        == "prompt pack mine requires exactly 2 candidates, got 3"
    )
