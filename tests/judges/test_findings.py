"""Test that findings are words of ours, never those of a server or a model."""

import itertools
import json

import pytest

from tests.playing import play
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.config import Config, StoreOptions
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import Failure, Status, Text
from vieval_plugin.judges.stages import MISSING, REFUSED, REPEATED, UNREADABLE
from vieval_plugin.judges.t2i_eval.asker import UNANSWERED
from vieval_plugin.run.prepare import prepare

SAID = "Spoken by a server: \x1b[31m# it"
RULES = (
    "entity without existence",
    "entity without quantity",
    "position as an attribute",
    "attributes and questions differ in number",
    "entity without an appearance question",
    "relation with an unknown entity",
    "relations and questions differ in number",
)
T2I_EVAL = {UNANSWERED, UNREADABLE, REFUSED, MISSING, REPEATED}
T2I_EVAL |= {f"structure: {rule}" for rule in RULES}
PLANS = ("unreadable", "no entry", "no tool", "tool not offered")
CIGEVAL = {f"plan: {slip}" for slip in (*PLANS, "unknown tool", "forbidden tool")}
CIGEVAL |= {"action: forbidden tool", "action: unknown tool"}
USES = itertools.product(("plan", "action", "tool failed"), tools.registry())
CIGEVAL |= {f"{what}: {tool}" for what, tool in USES}

ATTRIBUTE = {"name": SAID, "value": SAID, "question": SAID}
STRUCTURE = {"entities": [{"name": SAID, "attributes": [ATTRIBUTE]}]}
UNKNOWN_TOOL = {"tool": SAID, "plan": [{"task_id": 1, "tool": SAID}], "score": 7}
REPLIES = {
    "refused by the server": Failure(Status.REFUSAL, SAID),
    "prose": Text(SAID),
    "refused in words": Text(f"I'm sorry, I can't assist with that. {SAID}"),
    "an unknown tool": Text(json.dumps(UNKNOWN_TOOL)),
    "a structure of its own": Text(json.dumps(STRUCTURE)),
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
@pytest.mark.parametrize(
    ("judge", "setting", "words"),
    [
        ("t2i_eval", "full", T2I_EVAL),
        ("cigeval", "paper", CIGEVAL),
        ("cigeval", "react", CIGEVAL),
    ],
)
def test_findings_are_of_a_fixed_list(judge, setting, words, reply):
    made = prepare(judge, setting, Config(store=StoreOptions(use=False))).judge
    for sample in vieval_demo.load(None, "tig")[:2]:
        verdict = play(made(sample), answer=lambda ask: reply).verdict
        assert set(verdict.findings) <= words
