"""Clocks that are wrong, leases that nobody lets go, and a store that another process keeps locked."""

from __future__ import annotations

import sqlite3
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

from . import files
from .checks import Row, check, verdicts_of
from .clients import Ended, score

if TYPE_CHECKING:
    from .scenarios import Attack

_YEAR = 365 * 86400
_SHIFTED = (
    "import runpy, sys, time; real, shift = time.time, float(sys.argv.pop(1)); time.time = lambda: real() + shift; "
    "runpy.run_module('vieval_plugin', run_name='__main__', alter_sys=True)"
)


def clocks(attack: Attack) -> Row:
    """The clock is years off from run to run: a fresh run asks everything, any other nothing, and no lease blocks."""
    row, folder = Row("clocks"), attack.folder("clocks")
    samples, known = files.sound_samples(folder, 40, attack.size.seed + 6)
    written, out, bound = attack.options(folder), folder / "out.jsonl", attack.bound(2 * len(known))
    attack.plan(row.scenario)
    questions = len({name for one in known for name, _ in one.questions("viescore").values()})

    def run(what: str, shift: int, asked: int, *more: str) -> Ended:
        attack.server.forget()
        command = [sys.executable, "-c", _SHIFTED, str(shift), *score(samples, out, "viescore", *more)[3:]]
        ended = attack.run(command, written, bound)
        row.ended(ended, what, bound, (0,))
        row.requests += len(attack.server.asked)
        if len(attack.server.asked) != asked:
            row.blame(f"{what}: {len(attack.server.asked)} questions asked, expected {asked}")
        check(row, known, verdicts_of(out) if out.exists() else {}, "viescore", attack.server.asked.copy())
        return ended

    run("a year ahead", _YEAR, questions)
    run("fresh, at the right time", 0, questions, "--fresh")
    run("a year behind", -_YEAR, 0)
    run("fresh, a year behind", -_YEAR, questions, "--fresh")
    run("ahead again", _YEAR, 0)
    with closing(sqlite3.connect(folder / "replies.sqlite")) as database:
        waits = min(attack.begin, 15.0) + 8.0  # a lease that lasts until after the start of a process
        for what, ahead in (("a lease until next year", _YEAR), ("a lease of a machine that is gone", waits)):
            database.execute(
                "INSERT OR REPLACE INTO claims SELECT key, 'elsewhere 1 x', ? FROM replies", (time.time() + ahead,)
            )
            database.execute("DELETE FROM replies")
            database.commit()
            ended = run(what, 0, questions)
            if (ahead == _YEAR) == ("waiting for another process" in ended.said):
                row.blame(f"{what}: {'a wait that nobody needs' if ahead == _YEAR else 'it waits in silence'}")
    return row


def locked_store(attack: Attack) -> Row:
    """Another process keeps the store locked: the run ends all the same, says why, and what it was told is kept."""
    row, folder = Row("locked store"), attack.folder("locked")
    samples, known = files.sound_samples(folder, 60, attack.size.seed + 7)
    attack.plan(row.scenario, pause=0.1)
    bound, concurrent = attack.bound(2 * len(known)), 8

    def interrupted(what: str, kill: bool) -> None:
        home = attack.folder(f"locked/{what}")
        written, out = attack.options(home, concurrent=concurrent), home / "out.jsonl"
        attack.server.forget()
        client = attack.workshop.start(score(samples, out), written)
        attack.watch(client, 20, bound)
        with closing(sqlite3.connect(home / "replies.sqlite", isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            if kill:
                attack.watch(client, 60, bound)
                client.kill()
                row.kills += 1
            ended = client.wait(bound)
            row.ended(ended, what, bound, None if kill else (0,))
            database.execute("ROLLBACK")
        if "locked by another process" not in ended.said:
            row.blame(f"{what}: it does not say that the store is locked ({ended.last_line})")
        if not kill:
            check(row, known, verdicts_of(out) if out.exists() else {}, "viescore", attack.server.asked.copy())
        row.ended(attack.run(score(samples, out), written, bound), f"{what}, then free", bound, (0,))
        check(row, known, verdicts_of(out) if out.exists() else {}, "viescore", attack.server.asked.copy())
        row.counted(attack.server, allowed_again=concurrent if kill else 0)
        if left := [path.name for path in home.glob("*.spool-*")]:
            row.blame(f"{what}: {left[0]} was left")

    interrupted("locked to the end", False)
    interrupted("locked, and killed", True)
    return row
