"""A progress bar says that no answer comes, and stops saying so when one does."""

import time

from vieval_plugin.run import runner
from vieval_plugin.run.progress import Progress


def test_a_bar_says_for_how_long_no_answer_came(monkeypatch, capsys):
    monkeypatch.setattr(runner, "SILENCE", 0.0)
    monkeypatch.setattr(runner, "_LOOKS_EVERY", 0.01)
    shown = ""
    with runner.judging_bar(Progress(), 3, is_shown=True) as update:
        while "no answer for 0 s" not in shown:
            time.sleep(0.01)
            shown += capsys.readouterr().err
        update()
    with runner.judging_bar(Progress(), 3, is_shown=False) as update:
        capsys.readouterr()
        time.sleep(0.05)
        update()
    assert capsys.readouterr().err == ""
