"""Test CIGEval with real tools and a backbone that knows what is wrong."""

import json
from pathlib import Path

import pytest

from tests.cigeval_script import PACK, built
from tests.extras import needs
from tests.playing import label_of
from vieval_plugin.backends.image_tools import grounding
from vieval_plugin.backends.image_tools import tools as backend
from vieval_plugin.backends.image_tools.grounding import Detection, Grounder
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.benchmarks.vieval_demo import TASKS
from vieval_plugin.judges.cigeval import plan as planned
from vieval_plugin.judges.cigeval import react
from vieval_plugin.judges.protocol import Chat, Status, Text
from vieval_plugin.run.scheduler import run_in_batches

pytestmark = needs("cv2")

# which sub-question a defect is a matter of, by task; of `tig` and others all else is a matter of
# the prompt
ASKED_ABOUT = {
    "edit_not_done": ("edit",),
    "over_edited": ("restraint", "background"),
    "ignored_control": ("control",),
    "wrong_subject": ("subject", "concept_1", "concept_2"),
    "wrong_colour": ("subject", "concept_1", "concept_2", "prompt"),
    "missing_object": ("concept_2", "prompt"),
    "wrong_count": ("prompt",),
}
WANTED = dict.fromkeys(("edit", "restraint"), "difference")
WANTED |= dict.fromkeys(("subject", "background"), "grounding")


@pytest.fixture(autouse=True)
def detector(monkeypatch):
    """A detector that always finds the middle of the image."""

    def middle(rows):
        return [Detection(0.9, grounding.Box(64, 64, 192, 192)) for _ in rows]

    found = Grounder(middle)
    monkeypatch.setattr(grounding, "grounder", lambda *_: found)


def answering(samples):
    """Answers by sample, with ratings that follow from the truth about each."""

    def answer(number, ask):
        if not isinstance(ask, Chat):
            return backend.run(ask)
        label = label_of(ask)
        name = label.split("/")[0]
        if label == "plan":
            return Text(plan_of(samples[number].id.part, ask))
        call = {"thought": "", "tool": "none", "phrases": [], "score": []}
        if label.endswith("/turn 1") and "grounding" in tools_of(ask):
            return Text(json.dumps({**call, "tool": "grounding", "reasoning": ""}))
        truth = vieval_demo.defects(samples[number].id)
        fault = truth.content_strength if name in ASKED_ABOUT[truth.content] else 0
        rated = {"score": [round(10 * (1 - fault), 2)], "reasoning": "known"}
        return Text(json.dumps({**(call if "turn" in label else {}), **rated}))

    return lambda asked: [answer(number, ask) for number, ask in asked]


def tools_of(ask):
    return ask.schema["properties"]["tool"]["enum"]


def plan_of(part, ask):
    """A plan that uses one tool for each question of a task."""
    own = (key for key in PACK.questions if key.startswith(f"{part}/"))
    names = sorted(key.partition("/")[2] for key in own)
    tool = next((WANTED[name] for name in names if name in WANTED), "none")
    count = ask.schema["properties"]["plan"]["minItems"]
    entry = {"used": True, "tool": tool, "reasoning": ""}
    return json.dumps({"plan": [{"task_id": n + 1, **entry} for n in range(count)]})


@pytest.mark.parametrize("form", [planned, react])
@pytest.mark.parametrize("task", TASKS)
def test_with_a_backbone_that_is_right_what_is_worse_ranks_lower(task, form):
    samples = vieval_demo.load(Path(), task)[::2]
    improvements = ["mask"] if task == "mie" else []
    judge = built(*improvements, form=form, only=("difference", "grounding"))
    outcomes = run_in_batches([judge(sample) for sample in samples], answering(samples))
    verdicts = [outcome.verdict for outcome in outcomes]
    assert {verdict.status for verdict in verdicts} == {Status.OK}
    findings = [finding for verdict in verdicts for finding in verdict.findings]
    assert not [finding for finding in findings if "failed" in finding]
    truths = [vieval_demo.defects(sample.id) for sample in samples]
    scored = [(t, v.scores["SC"]) for t, v in zip(truths, verdicts, strict=True)]
    good = [score for truth, score in scored if truth.content_strength == 0]
    assert good
    for kind in {truth.content for truth in truths}:
        bad = [s for t, s in scored if t.content == kind and t.content_strength]
        assert max(bad, default=0) < min(good)
    scored.sort(key=lambda pair: pair[0].content_strength)
    scores = [score for _, score in scored]
    assert scores == sorted(scores, reverse=True)
