"""What scripts do with a `Judge`: values that are none, arrays larger than memory, images without end, any way to end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .checks import Row
from .clients import Ended, all_ended

if TYPE_CHECKING:
    from .scenarios import Attack

_BOUND = 60.0

_HEAD = """
import itertools, pickle, sys, threading
import numpy as np
from vieval_plugin import Backbone, Contest, Image, Judge, Sample, SampleId, VievalError, evaluate, score_matrix
PIXELS = np.random.RandomState(0).randint(0, 256, (5, 16, 16, 3)).astype(np.uint8)
"""
_VALUES = """
judge = Judge("sharpness", options={"store": {"use": False}})
identity = SampleId("own", "tig", "m", "1")
sample = Sample(identity, {"output": Image(b"x")}, {"prompt": "x"})
broadcast = lambda shape, kind: np.broadcast_to(kind(0), shape)
images = [
    broadcast((10**6, 10**6, 3), np.uint8), broadcast((10**5, 10**5), np.float64), broadcast((10**4, 10**4, 3), np.int64),
    broadcast((2, 10**6, 10**6, 3, 1), np.uint8), np.array(None), None, 3, {}, [[PIXELS[0]]], PIXELS[0].astype(object),
]
calls = [lambda one=one: judge.score([one] * 3, "x") for one in images]
calls += [lambda one=one: judge.compare([PIXELS[0]], [one], "x") for one in images]
calls += [lambda one=one: Sample(identity, {"output": one}) for one in images]
calls += [lambda one=one: Image(one) for one in images]
calls += [lambda one=one: judge.score(one, "x") for one in images]
calls += [lambda one=one: evaluate([one], judge="sharpness") for one in images]
calls += [lambda one=one: Judge(one) for one in images]
calls += [lambda one=one: Judge(model="m", base_url=one) for one in (*images[4:8], [], [""], "x", "ftp://x")]
calls += [
    lambda: judge.score(itertools.repeat(PIXELS[0]), ["a", "b", "c"]),
    lambda: judge.score(PIXELS, itertools.repeat("a")),
    lambda: judge.compare(PIXELS, itertools.repeat(PIXELS[0]), "x"),
    lambda: Sample(images={"output": "x.png"}),
    lambda: Contest(identity, sample),
    lambda: score_matrix("x.png", "x"),
    lambda: Backbone("m"),
]
for number, call in enumerate(calls):
    try:
        call()
        print(f"call {number} was taken")
    except VievalError as error:
        if "\\n" in str(error):
            print(f"call {number}: more than a line")
    except BaseException as error:
        print(f"call {number}: {type(error).__name__}: {error}")
print(f"{len(calls)} calls")
"""
_ENDS = {
    "open at the end": 'judge = Judge("viescore"); print(judge.score(PIXELS, "x").shape)',
    "open in a thread that outlives the main thread": (
        'def later():\n    threading.main_thread().join(); print(Judge("sharpness").score(PIXELS, "x").shape)\n'
        "threading.Thread(target=later).start()"
    ),
    "open after an exception": 'judge = Judge("sharpness"); print(judge.score(PIXELS, "x").shape); sys.exit(0)',
    "pickled while open": (
        'judge = Judge("sharpness"); judge.score(PIXELS, "x")\n'
        'print(pickle.loads(pickle.dumps(judge)).score(PIXELS, "x").shape)'
    ),
}


def python_calls(attack: Attack) -> Row:
    """Mistakes in Python are one line each, before any work, and a program with an open judge ends without a word."""
    row, folder = Row("calls from Python"), attack.folder("python")
    attack.plan(row.scenario)
    options = attack.options(folder)
    scripts = {"values": _VALUES, **_ENDS}
    clients = [attack.workshop.start([sys.executable, "-c", _HEAD + body], options) for body in scripts.values()]
    bound = _BOUND + len(clients) * attack.begin  # they share the machine
    for what, ended in zip(scripts, all_ended(clients, bound), strict=True):
        row.ended(ended, what, bound, (0,))
        _check(row, what, ended)
    row.counted(attack.server)
    return row


def _check(row: Row, what: str, ended: Ended) -> None:
    *wrong, last = ended.out.strip().splitlines() or [""]
    if what != "values":
        row.samples += 5
        row.lost += 5 * (last != "(5,)")
        wrong += [] if last == "(5,)" else [f"printed {last!r}"]
        wrong += [ended.last_line] if ended.err else []
    elif not last.endswith(" calls"):
        wrong.append(f"ended at {ended.last_line}")
    else:
        row.samples += int(last.partition(" ")[0])
    for one in wrong:
        row.blame(f"{what}: {one}")
