"""Tables for a terminal: they fit its window, cut no number and say nothing twice."""

import os
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vieval_plugin.text import tables
from vieval_plugin.text.tables import text_table

LONG = "0.115 [-0.056, 0.321] on 3 of 7 task types, 9 of 21 image models"
ONE = "0.645 [0.402, 0.849] on 1 of 7 task types, 3 of 21 image models"
WIDE = [
    ("judge", "kinds", "SC [95%]", "n", "marks", "p", "seconds"),
    ("edge_f1", "cig", ONE, "48", "", ".625", "12.5"),
    ("ssim", "mie tie sdie", LONG, "144", "not shown to beat a constant answer", "< .001", "7.0"),
]  # fmt: skip


def columns(line):
    """What a terminal takes for a line."""
    signs = [sign for sign in line if not unicodedata.combining(sign)]
    return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in signs)


NUMBER = r"^[<.\d][ .\d]*(?: \[.*?\])?"


@pytest.mark.parametrize("window", [1, 24, 40, 60, 80, 100, 250])
def test_a_table_fits_its_window_and_cuts_no_number(monkeypatch, window):
    monkeypatch.setenv("COLUMNS", str(window))
    lines = text_table(WIDE, "report.md has them")
    assert max(map(columns, lines)) <= max(20, min(window, 100))
    shown = "\n".join(lines)
    left_out = " ".join(" ".join(lines).partition("omitted to fit ")[2].split())
    for place, name in enumerate(WIDE[0]):
        found = (re.findall(NUMBER, row[place]) for row in WIDE[1:])
        numbers = {number for several in found for number in several}
        assert name in left_out or all(number in shown for number in numbers)
    assert not left_out or left_out.endswith("report.md has them")


def test_where_no_window_is_known_a_table_has_a_hundred_columns(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(tables.shutil, "get_terminal_size", os.terminal_size)
    lines = text_table(WIDE)
    assert 90 < max(map(columns, lines)) <= 100
    assert not any(line.startswith("left out") for line in lines)


def test_what_all_rows_have_is_said_once_above_and_what_none_has_not_at_all():
    rows = [("judge", "failed", "marks", "n"), ("ssim", "0", "", "144")]
    lines = ["in all rows: failed = 0", "judge    n", "ssim   144", "psnr    48"]
    assert text_table([*rows, ("psnr", "0", "", "48")]) == lines


def test_one_row_rows_that_are_all_alike_and_no_rows_are_tables():
    lines = ["judge  failed", "ssim        0"]
    assert text_table([("judge", "failed"), ("ssim", "0")]) == lines
    assert text_table([("a", "b"), ("x", "y"), ("x", "y")]) == ["a  b", "x  y", "x  y"]
    assert text_table([("a", "b")]) == ["a  b"]


def test_words_are_wrapped_between_words_and_the_widest_column_gives_way(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    long = " ".join(["reason"] * 20)
    rows = [("judge", "not ranked because"), ("short", long), ("other", "")]
    _, first, second, last = text_table(rows)
    assert first == "short  " + " ".join(["reason"] * 13)
    assert second == "       " + " ".join(["reason"] * 7)
    assert last == "other"


HOSTILE = ["red \x1b[31m", "\u202eleft", "模型" * 70, "n" * 200_000, "0" * 5000, "a\nb"]


def test_names_of_others_stay_in_their_cells(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = [*HOSTILE, "e\u0301" * 90]
    cells = [f"0.{n}00 [0.1, 0.2]" for n in range(len(names))]
    rows = list(zip(names, cells, strict=True))
    lines = text_table([("generator", "O [95%]"), *rows])
    assert max(map(columns, lines)) <= 80
    assert len(lines) < 100
    assert all(cell in "\n".join(lines) for cell in cells)
    assert all(line.isprintable() for line in lines)


CELLS = st.text(max_size=60) | st.floats(0, 1).map("{:.3f}".format)
ROWS = lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=1, max_size=8)


@given(st.integers(1, 9).flatmap(ROWS), st.integers(30, 130))
def test_any_table_fits(rows, window):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(window))
        assert all(columns(line) <= min(window, 100) for line in text_table(rows))
