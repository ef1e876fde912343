"""Progress on stderr: a bar on a terminal, else a line each tenth; silence is told."""

import sys
import time

import pytest

from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.run import judging_bar
from vieval_plugin.run.progress import Progress


@pytest.fixture(autouse=True)
def outside_a_notebook(monkeypatch):
    # which another test may have imported
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


@pytest.mark.parametrize("on_terminal", [True, False])
def test_progress_says_for_how_long_no_answer_came(monkeypatch, capsys, on_terminal):
    monkeypatch.setattr(judging_bar, "SILENCE", 0.0)
    monkeypatch.setattr(judging_bar, "_LOOKS_EVERY", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: on_terminal)
    shown = ""
    with judging_bar.judging_bar(Progress(), 3, is_shown=True) as update:
        while "no answer for 0 s" not in shown:
            time.sleep(0.01)
            shown += capsys.readouterr().err
        update(1)
    assert ("\r" in shown) is on_terminal
    with judging_bar.judging_bar(Progress(), 3, is_shown=False) as update:
        capsys.readouterr()
        time.sleep(0.05)
        update(1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("total", "lines"), [(2000, 10), (7, 7), (None, 10)])
def test_a_file_gets_a_line_each_tenth(capsys, total, lines):
    progress = Progress()
    with judging_bar.judging_bar(progress, total, is_shown=True) as update:
        for number in range(total or 10_000):
            progress.count(Verdict({}, Status.API_ERROR if number == 0 else Status.OK))
            update(1)
    shown = capsys.readouterr().err
    assert "\r" not in shown
    assert len(shown.splitlines()) == lines
    assert all("sample/s, api_error 1]" in line for line in shown.splitlines())
