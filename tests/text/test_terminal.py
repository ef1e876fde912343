"""Answers on a terminal."""

import io

import pytest

from vieval_plugin.text.escaping import announce, say


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
