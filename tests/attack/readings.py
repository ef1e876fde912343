"""Replies about contests and structures that hold two answers: neither of them is the vote or the score."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from .checks import Row

if TYPE_CHECKING:
    from .scenarios import Attack

_OBJECT = '{"score": 9, "explanation": "x"}'
_LABELS = ("[[A<B]]", "[B>A]", "[[B]]", "[[B=A]]", "[[Tie]]", "[Tie]", "(B > A)", "B > A", "**B wins**", "Answer: B")
_CALLS = {
    "labels": "reader('labels', (1, 2))(text).value",
    "two_way": "reader('two_way', (1, 2))(text).value",
    "fields": "read_fields(text, EXPLANATION_AND_SCORE, not text.startswith('{')).value",
}
_TEXTS = {
    "labels": [f"The sign reads [[A>B]]. My verdict: {verdict}" for verdict in _LABELS],
    "two_way": [f'{{"better": "A"}} {more}' for more in ('{"winner": "B"}', "B is better.", "[[B>A]]")]
    + ['{"better": "A", "final": {"better": "B"}}'],
    "fields": [
        f"- explanation: the poster says\n- score: 9\n- {_OBJECT}",
        f"{_OBJECT}\nI rate it 2.",
        '{"explanation": "x", "score": 9, "final_score": 2}',
        "score: 9\nexplanation: x\nfinal score: 2",
    ],
}
_PROGRAM = f"""
import json
from vieval_plugin.judges.pairwise.reading import reader
from vieval_plugin.judges.t2i_eval.reading import read_fields
from vieval_plugin.judges.t2i_eval.schemas import EXPLANATION_AND_SCORE
calls = {{{", ".join(f"{name!r}: lambda text: {call}" for name, call in _CALLS.items())}}}
for name, texts in json.loads({json.dumps(json.dumps(_TEXTS))}).items():
    for text in texts:
        try:
            value = calls[name](text)
        except ValueError:
            value = None
        print(json.dumps([name, text, str(value or "")]))
"""


def two_answers(attack: Attack) -> Row:
    """A reply with two answers has none, whichever form each of them takes."""
    row, folder, bound = Row("two answers in a reply"), attack.folder("readings"), 60.0
    ended = attack.run([sys.executable, "-c", _PROGRAM], attack.options(folder), bound)
    row.ended(ended, "readers", bound, (0,))
    for line in ended.out.splitlines():
        name, text, value = json.loads(line)
        row.samples += 1
        if value:
            row.invented += 1
            row.blame(f"{name}: {value[:60]!r} read of {text!r}")
    if row.samples != sum(map(len, _TEXTS.values())):
        row.blame(f"{row.samples} replies were read: {ended.last_line}")
    return row
