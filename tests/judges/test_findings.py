"""Findings are words of ours: what a server or a model says is detail, and never counted as a
finding.
"""

import json

import pytest

from tests.playing import play
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.config import Config, StoreOptions
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import Failure, Status, Text
from vieval_plugin.judges.stages import MISSING, REFUSED, REPEATED, UNREADABLE
from vieval_plugin.judges.t2i_eval import structure
from vieval_plugin.judges.t2i_eval.asker import UNANSWERED
from vieval_plugin.run.prepare import prepare

SAID = "Spoken by a server: \x1b[31m# it"
RULES = (
    *(
        "entity without existence",
        "entity without quantity",
        "position as an attribute",
    ),
    *(
        "attributes and questions differ in number",
        "entity without an appearance question",
    ),
    *("relation with an unknown entity", "relations and questions differ in number"),
)
T2I_EVAL = {
    UNANSWERED,
    UNREADABLE,
    REFUSED,
    MISSING,
    REPEATED,
    *(f"structure: {rule}" for rule in RULES),
}
CIGEVAL = {
    *(
        "plan: unreadable",
        "plan: no entry",
        "plan: no tool",
        "plan: tool not offered",
        "plan: unknown tool",
    ),
    *("plan: forbidden tool", "action: forbidden tool", "action: unknown tool"),
    *(
        f"{what}: {tool}"
        for what in ("plan", "action", "tool failed")
        for tool in tools.registry()
    ),
}

REPLIES = {
    "refused by the server": lambda ask: Failure(Status.REFUSAL, SAID),
    "a failed call": lambda ask: Failure(Status.API_ERROR, SAID),
    "prose": lambda ask: Text(SAID),
    "refused in words": lambda ask: Text(
        f"I'm sorry, I can't assist with that. {SAID}"
    ),
    "an unknown tool": lambda ask: Text(
        json.dumps({"tool": SAID, "plan": [{"task_id": 1, "tool": SAID}], "score": 7})
    ),
    "a structure of its own": lambda ask: Text(
        json.dumps(
            {
                "entities": [
                    {
                        "name": SAID,
                        "attributes": [{"name": SAID, "value": SAID, "question": SAID}],
                    }
                ]
            }
        )
    ),
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
        verdict = play(made(sample), answer=lambda ask: reply(ask)).verdict
        assert set(verdict.findings) <= words


def test_the_rules_of_a_structure_are_all_listed():
    found = {*structure.violations.__code__.co_consts} - {structure.violations.__doc__}
    assert {
        one
        for one in found
        if isinstance(one, str) and " " in one and not one.startswith("Which")
    } <= set(RULES)
