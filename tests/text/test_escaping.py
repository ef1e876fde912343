"""Text of unknown origin is harmless in each medium, and ordinary text stays as it is."""

import csv
import io
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.tables import table
from vieval_plugin.text.escaping import (
    announce,
    console,
    csv_cell,
    csv_text,
    html,
    markdown,
    say,
)

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
SIGNS = "\\`|[]()!#<>&*_-=~:/.w\n\r\t\x1b\u202ea "
anything = st.text(st.characters(), max_size=60) | st.text(SIGNS, max_size=60)


def steering(text):
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    steer = [c for c in text if unicodedata.category(c) in kinds]
    return [c for c in steer if c not in "\u200c\u200d"]


@given(anything)
def test_a_line_of_the_console_is_one_line_that_steers_nothing(text):
    assert steering(console(text)) == []
    assert console(console(text)) == console(text)


@given(anything)
def test_a_page_holds_text_and_no_tag(text):
    shown = str(html(text))
    assert not set(shown) & set("<>\"'")
    assert set(steering(shown)) <= {"\n", "\t"}


INLINE = {"text", "text_special", "em_open", "em_close", "strong_open", "strong_close"}


@given(anything)
def test_a_cell_of_markdown_is_one_cell_of_text(text):
    tokens = MARKDOWN.parse(f"| a | b |\n| --- | --- |\n| {markdown(text)} | end |\n")
    first, second, cell, end = (token for token in tokens if token.type == "inline")
    assert [first.content, second.content, end.content] == ["a", "b", "end"]
    assert {child.type for child in cell.children} <= INLINE


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


@pytest.mark.parametrize(*table("formulas.jsonl"))
def test_formulas_begin_with_an_apostrophe(formula):
    assert csv_cell(formula).startswith("'")


@pytest.mark.parametrize(*table("semicolon_cells.jsonl"))
def test_no_cell_is_a_formula_where_cells_end_at_a_semicolon(cell):
    """By the rules of CSV, and also where a quote within a line opens nothing."""
    line = csv_text([("first", cell)])
    assert '"' in line
    split = [*next(csv.reader(io.StringIO(line), delimiter=";")), *line.split(";")]
    signs = ("=", "+", "-", "@", "\uff1d")
    assert not [one for one in split if one.lstrip(' \t"').startswith(signs)]
    assert next(csv.reader(io.StringIO(line))) == ["first", csv_cell(cell)]


ORDINARY = ["viescore 0shot", "a_b-c.d/e", "0.51 [0.31, 0.62]", "Frage: schön?", "R*"]


@pytest.mark.parametrize("text", [*ORDINARY, "日本語　です", "👩\u200d👩"])
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
    told = ":\\:error::x\n :\\:stop-commands::y\na ##\\[error]z\na::b\n"
    assert capsys.readouterr().out == told
    say("d", file=sys.stderr)
    assert capsys.readouterr().err == "d\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("no_color", "bold", "dim", "end"),
    [("", "\x1b[1m", "\x1b[2m", "\x1b[0m"), ("1", "", "", "")],
)
def test_on_a_terminal_an_answer_is_bold(monkeypatch, no_color, bold, dim, end):
    """Its prose is wrapped."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", no_color)
    evidence, row = "word " * 20, "a  " + "0.1  " * 30
    lines = ("mine is best.", evidence.strip(), "", row, "note: nobody rated it")
    say(*lines, file=(terminal := Terminal()), answer=True)
    first, *wrapped, empty, table, note = terminal.getvalue().splitlines()
    assert (first, note) == (f"{bold}{lines[0]}{end}", f"{dim}{lines[-1]}{end}")
    assert max(map(len, wrapped)) <= 60 < len(table)
    assert (" ".join(wrapped), empty) == (lines[1], "")
    say(*lines, file=(pipe := io.StringIO()), answer=True)
    assert pipe.getvalue().splitlines() == list(lines)


def test_an_announcement_neither_draws_on_the_terminal_nor_commands_a_runner(capsys):
    announce("http://a: \x1b[2J\rHTTP 500\n::error::##[group]\u202e")
    printed = capsys.readouterr().err
    assert printed.startswith("vieval: http://a: \\x1b[2J")
    assert printed.count("\n") == 1
    assert printed.rstrip("\n").isprintable()
    assert "##[" not in printed
