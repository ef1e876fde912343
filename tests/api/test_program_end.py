"""Judges that are open when the program ends, however it does."""

import sys

import pytest

from tests.work import run_process

# measures without weights, as a network would: with something to close in the thread that opened it
HEAD = """
import multiprocessing, os, sys, threading, time
import numpy as np
from vieval_plugin import Judge
from vieval_plugin.backends.metrics.batcher import PreparedMeasure
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.judges.protocol import Measurement

class Network:
    by, batch = "network", 8

    def look(self, ask):
        return PreparedMeasure(str(ask.images) + str(ask.texts), ask)

    def compute(self, contents):
        time.sleep(SECONDS)
        self.thread = threading.current_thread()
        return [Measurement(30.0) for _ in contents]

    def close(self):
        assert self.thread is threading.current_thread()
        os.write(1, b"closed\\n")

SECONDS = 0
Scorers.find = lambda self, ask, usage: Network()
PIXELS = np.zeros((5, 8, 8, 3), np.uint8)

def opened():
    return Judge("clip_score", options={"store": {"use": False}})

def scored(judge):
    # in one piece, as several processes write
    os.write(1, b"scores %d\\n" % len(judge.score(PIXELS, "x")))

judge = opened()
"""
ENDS = {
    "at_the_end_of_a_script": "scored(judge)",
    "in_a_function": "def main():\n    scored(opened())\nmain()",
    "several": "other = opened(); scored(judge); scored(other)",
    "in_a_thread_that_outlives_the_main_thread": """
def later():
    threading.main_thread().join(); scored(judge)
threading.Thread(target=later).start()""",
    "in_a_thread_that_is_scoring_when_the_main_thread_ends": """
SECONDS = 0.5
threading.Thread(target=scored, args=(judge,)).start()""",
    "asked_again_at_the_end": """
import atexit; scored(judge); atexit.register(lambda: os.write(1, b"last\\n"))""",
    "in_a_pool_of_processes": """
scored(judge)
def ask(n):
    scored(judge)
with multiprocessing.get_context('fork').Pool(2) as pool:
    pool.map(ask, range(2), 1)""",
    "in_forked_processes_that_end_by_themselves": """
scored(judge)
child = multiprocessing.get_context('fork').Process(target=scored, args=(judge,))
child.start(); child.join()""",
}
LINES = {
    "several": ["scores 5", "scores 5", "closed", "closed"],
    "asked_again_at_the_end": ["scores 5", "last", "closed"],
    "in_a_pool_of_processes": ["scores 5", "scores 5", "scores 5", "closed"],
    "in_forked_processes_that_end_by_themselves": ["scores 5", "scores 5", "closed"],
}


def ended(*command):
    return run_process([sys.executable, *command], timeout=120)


@pytest.mark.parametrize(
    ("name", "code"),
    [*((name, "script") for name in ENDS), ("in_a_function", "-c"), ("several", "-c")],
)
def test_a_program_ends_without_a_word(name, code, tmp_path):
    file = tmp_path / "script.py"
    file.write_text(HEAD + ENDS[name])
    process = ended(file) if code == "script" else ended("-c", HEAD + ENDS[name])
    assert (process.stderr, process.returncode) == ("", 0)
    lines = LINES.get(name, ["scores 5", "closed"])
    assert process.stdout.splitlines() == lines


MEASURED = """
import numpy as np
from vieval_plugin import Judge
images = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), np.uint8)
print(Judge("sharpness").score(images, "a red cube").shape)
"""


@pytest.mark.slow
def test_a_program_that_measures_with_weights_ends_without_a_traceback():
    remedy = 'torch is not installed: pip install ".[scorers]"'
    pytest.importorskip("torch", reason=remedy)
    process = ended("-c", MEASURED)
    assert (process.stdout, process.returncode) == ("(2,)\n", 0)
    assert "Traceback" not in process.stderr
