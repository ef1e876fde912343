"""Text of unknown origin is harmless in each medium, and ordinary text stays as it is."""

import csv
import io
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from vieval_plugin.text.escaping import console, csv_cell, csv_text, html, markdown, say

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
anything = st.text(st.characters(), max_size=60) | st.text(
    "\\`|[]()!#<>&*_-=~:/.w\n\r\t\x1b\u202ea ", max_size=60
)


def steering(text):
    return [
        c
        for c in text
        if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and c not in "\u200c\u200d"
    ]


@given(anything)
def test_a_line_of_the_console_is_one_line_that_steers_nothing(text):
    assert steering(console(text)) == []
    assert console(console(text)) == console(text)


@given(anything)
def test_a_page_holds_text_and_no_tag(text):
    shown = str(html(text))
    assert not set(shown) & set("<>\"'")
    assert set(steering(shown)) <= {"\n", "\t"}


@given(anything)
def test_a_cell_of_markdown_is_one_cell_of_text(text):
    tokens = MARKDOWN.parse(f"| a | b |\n| --- | --- |\n| {markdown(text)} | end |\n")
    inline = [token for token in tokens if token.type == "inline"]
    assert [token.content for token in inline[:2]] == ["a", "b"]
    assert len(inline) == 4
    assert inline[3].content == "end"
    allowed = {
        "text",
        "text_special",
        "em_open",
        "em_close",
        "strong_open",
        "strong_close",
    }
    assert {child.type for child in inline[2].children} <= allowed


@given(anything)
@example("~~~")
@example("-\r#")
def test_a_line_of_markdown_begins_no_heading_and_no_html(text):
    kinds = {token.type for token in MARKDOWN.parse(markdown(text))}
    assert not kinds & {"heading_open", "html_block", "fence", "table_open"}


@given(anything)
def test_a_cell_of_csv_is_no_formula(text):
    cell = csv_cell(text)
    assert steering(cell) == []
    file = io.StringIO()
    csv.writer(file).writerow([cell])
    assert next(csv.reader(io.StringIO(file.getvalue()))) == [cell]
    if cell.lstrip().startswith(("=", "+", "-", "@")):
        assert not any(c.isalpha() and c not in "eE" for c in cell)


@pytest.mark.parametrize(
    "number",
    ["-0.5", "+1", "-.5", "0.5123", "-1e-05", "-0.0108 [-0.0500, 0.0200]", "-3%", ""],
)
def test_numbers_stay_numbers(number):
    assert csv_cell(number) == number


@pytest.mark.parametrize(
    "formula",
    [
        "=1+1",
        "+cmd|' /C calc'!A0",
        "-2+3+cmd|' /C calc'!A0",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "  =1",
        "\uff1d1",
        "-",
    ],
)
def test_formulas_begin_with_an_apostrophe(formula):
    assert csv_cell(formula).startswith("'")


@pytest.mark.parametrize(
    "cell",
    [
        "a;=1+1",
        "tag; -cmd|x",
        'a;"=1+1"',
        "x\t;\t@SUM(A1)",
        'b",;=1',
        "c;\uff1d1",
        ";;+A1",
    ],
)
def test_no_cell_is_a_formula_where_cells_end_at_a_semicolon(cell):
    """By the rules of CSV, and also where a quote within a line opens nothing."""
    line = csv_text([("first", cell)])
    assert '"' in line
    split = [*next(csv.reader(io.StringIO(line), delimiter=";")), *line.split(";")]
    assert not [
        one
        for one in split
        if one.lstrip(' \t"').startswith(("=", "+", "-", "@", "\uff1d"))
    ]
    assert next(csv.reader(io.StringIO(line))) == ["first", csv_cell(cell)]


@pytest.mark.parametrize(
    "text",
    [
        "viescore 0shot",
        "a_b-c.d/e",
        "0.51 [0.31, 0.62]",
        "Frage: schön?",
        "日本語　です",
        "👩\u200d👩",
        "R*",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    assert (console(text), markdown(text), str(html(text))) == (text, text, text)


def test_a_terminal_that_lacks_a_letter_is_no_error():
    bytes_ = io.BytesIO()
    stream = io.TextIOWrapper(bytes_, encoding="ascii")
    say("schön \x1b[31m", "\ud800", file=stream)
    assert bytes_.getvalue() == b"sch\\xf6n \\x1b[31m\n\\ud800\n"


def test_lines_go_to_standard_output(capsys):
    say("a\nb", "c")
    assert capsys.readouterr().out == "a b\nc\n"
    say("::error::x", " ::stop-commands::y", "a ##[error]z", "a::b")
    assert (
        capsys.readouterr().out
        == ":\\:error::x\n :\\:stop-commands::y\na ##\\[error]z\na::b\n"
    )
    say("d", file=sys.stderr)
    assert capsys.readouterr().err == "d\n"
