"""Files of people's ratings in which something is no rating: each ends the command in one line, and none is a number."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .checks import Row
from .clients import Client, all_ended

if TYPE_CHECKING:
    from .scenarios import Attack

_HEADER = "benchmark,part,uid,generator,draw,rater,aspect,value"
_ROW = "own,tig,s00000,m0,{draw},me,SC,{value}"
FILES = {
    "an underscore": f"{_HEADER}\n{_ROW.format(draw=0, value='0_1')}\n",
    "digits of another script": f"{_HEADER}\n{_ROW.format(draw=0, value='٠.٥')}\n",
    "no number": f"{_HEADER}\n{_ROW.format(draw=0, value='nan')}\n",
    "more than any number": f"{_HEADER}\n{_ROW.format(draw=0, value='1e999')}\n",
    "a draw with an underscore": f"{_HEADER}\n{_ROW.format(draw='1_0', value=1)}\n",
    "two columns of values": f"{_HEADER},value\n{_ROW.format(draw=0, value=1)},0\n",
}
"""Files of ratings by what is wrong with them."""


def hostile_labels(attack: Attack) -> Row:
    """Ratings that Python would read and a person did not mean are refused, with the line or the column."""
    row, folder = Row("hostile labels"), attack.folder("labels")
    verdicts, written = attack.folder("healthy") / "out.jsonl", attack.options(folder)
    clients, names = list[Client](), [*FILES, "minus zero"]
    for place, what in enumerate(names):
        path = folder / f"labels{place}.csv"
        path.write_text(FILES.get(what, f"{_HEADER}\n{_ROW.format(draw=0, value='-0.0')}\n"), encoding="utf-8")
        command = [sys.executable, "-m", "vieval_plugin", "rank", verdicts, "--human", path]
        clients.append(attack.workshop.start(command, written))
    bound = 10.0 + 3 * len(clients) * attack.begin  # they share the machine
    for place, (what, ended) in enumerate(zip(names, all_ended(clients, bound), strict=True)):
        row.samples += 1
        row.ended(ended, what, bound, (1,) if what in FILES else (0,))
        if what in FILES and (f"labels{place}.csv" not in ended.last_line or len(ended.err.strip().splitlines()) != 1):
            row.blame(f"{what}: no line that names the file ({ended.last_line})")
        if "-0.0" in ended.out:
            row.blame(f"{what}: a zero with a sign was printed")
    return row
