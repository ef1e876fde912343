"""The first sentence of a leaderboard is the answer, and true for one system and for twelve."""

import pytest

from tests.boards import board_of
from vieval_plugin.judges.protocol import SampleId, Status, Verdict
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.report.answer import _ends_differ, answer
from vieval_plugin.report.tables import cost_table, leaderboard_table
from vieval_plugin.stats.estimate import Estimate


def said(*args, **kwargs):
    """The sentences on a leaderboard of `board_of`, the title first."""
    return answer(board_of(*args, **kwargs)).lines


def test_an_interval_without_width_is_left_out():
    same, other = (
        leaderboard_table(board_of({"a": 0.5}, references=(), width=width))
        for width in (0, 0.1)
    )
    assert same.rows[0][2] == "0.500"
    assert other.rows[0][2] == "0.500 [0.400, 0.600]"
    assert said({"a": 0.5}, references=(), width=0)[1] == "Accuracy 0.50."


@pytest.mark.parametrize(
    ("recorded", "tokens", "expected"),
    [(True, None, "replay"), (False, 7, "12 (alone)")],
)
def test_what_verdicts_took_is_a_table_of_its_own(recorded, tokens, expected):
    by = Provenance("pairwise", (), (), "m", recorded=recorded)
    verdict = Verdict({"O": 0.5}, Status.OK)
    records = [
        (Record(SampleId("b", "p", "", str(n)), verdict, by, {}, tokens=tokens),)
        for n in range(3)
    ]
    runs = [Run("m", "b", "pairwise", (), {"p": records})]
    table = cost_table(runs, {("b", "m"): "12 (alone)"})
    spent = "21" if tokens else "not known"
    header = ("judge", "verdicts", "failed", "answers", "tokens", "seconds")
    assert table.header == header
    assert table.rows == (("m", "3", "0", "0", spent, expected),)


@pytest.mark.parametrize(
    ("halves", "said"), [((0.1, 0.1), True), ((0.3, 0.3), False), ((0.0, 0.1), False)]
)
def test_task_types_are_named_where_they_differ(halves, said):
    low, high = (
        Estimate(value, value - half, value + half, n=40)
        for value, half in zip((0.2, 0.6), halves, strict=True)
    )
    assert _ends_differ([high, low, Estimate(0.4, 0.2, 0.6, n=40)]) == said
