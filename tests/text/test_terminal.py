"""Answers on a terminal."""

import io

import pytest

from vieval_plugin.text.escaping import announce, say


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("colour", [True, False])
def test_on_a_terminal_the_answer_is_bold_and_prose_is_wrapped(monkeypatch, colour):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "" if colour else "1")
    evidence, row = "word " * 20, "a  " + "0.1  " * 30
    lines = ("mine is best.", evidence.strip(), "", row, "note: nobody rated it")
    say(*lines, file=(terminal := Terminal()), answer=True)
    first, *wrapped, empty, table, note = terminal.getvalue().splitlines()
    assert (first, note) == (
        ("\x1b[1mmine is best.\x1b[0m", "\x1b[2mnote: nobody rated it\x1b[0m")
        if colour
        else (lines[0], lines[-1])
    )
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
