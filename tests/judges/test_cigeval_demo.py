"""CIGEval on the drawn benchmark, its tools run for real and a backbone that knows what is wrong
with each sample.
"""

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
WANTED = {
    "edit": "difference",
    "restraint": "difference",
    "subject": "grounding",
    "background": "grounding",
}


@pytest.fixture(autouse=True)
def detector(monkeypatch):
    """A detector that always finds the middle of the image."""

    def middle(rows):
        return [Detection(0.9, grounding.Box(64, 64, 192, 192)) for _ in rows]

    found = Grounder(middle)
    monkeypatch.setattr(grounding, "grounder", lambda *_: found)


def answering(samples):
    """Answers for the samples by number; ratings follow from the truth about each, given to the
    sub-question it concerns.
    """

    def answer(number, ask):
        if not isinstance(ask, Chat):
            return backend.run(ask)
        truth = vieval_demo.defects(samples[number].id)
        name = label_of(ask).split("/")[0]
        if label_of(ask) == "plan":
            count = ask.schema["properties"]["plan"]["minItems"]
            names = {
                key.partition("/")[2]
                for key in PACK.questions
                if key.startswith(f"{samples[number].id.part}/")
            }
            tool = next((WANTED[one] for one in sorted(names) if one in WANTED), "none")
            entries = [
                {"task_id": n + 1, "used": True, "tool": tool, "reasoning": ""}
                for n in range(count)
            ]
            return Text(json.dumps({"plan": entries}))
        if (
            label_of(ask).endswith("/turn 1")
            and "grounding" in ask.schema["properties"]["tool"]["enum"]
        ):
            return Text(
                json.dumps(
                    {
                        "thought": "",
                        "tool": "grounding",
                        "phrases": [],
                        "score": [],
                        "reasoning": "",
                    }
                )
            )
        fault = truth.content_strength if name in ASKED_ABOUT[truth.content] else 0
        turn = (
            {"thought": "", "tool": "none", "phrases": []}
            if "turn" in label_of(ask)
            else {}
        )
        return Text(
            json.dumps(
                {**turn, "score": [round(10 * (1 - fault), 2)], "reasoning": "known"}
            )
        )

    return lambda asked: [answer(number, ask) for number, ask in asked]


@pytest.mark.parametrize("form", [planned, react])
@pytest.mark.parametrize("task", TASKS)
def test_with_a_backbone_that_is_right_what_is_worse_ranks_lower(task, form):
    samples = vieval_demo.load(Path(), task)[::2]
    judge = built(
        *(["mask"] if task == "mie" else []),
        form=form,
        only=("difference", "grounding"),
    )
    outcomes = run_in_batches([judge(sample) for sample in samples], answering(samples))
    verdicts = [outcome.verdict for outcome in outcomes]
    assert {verdict.status for verdict in verdicts} == {Status.OK}
    assert not [
        finding
        for verdict in verdicts
        for finding in verdict.findings
        if "failed" in finding
    ]
    truths = [vieval_demo.defects(sample.id) for sample in samples]
    good = [
        v.scores["SC"]
        for v, t in zip(verdicts, truths, strict=True)
        if t.content_strength == 0
    ]
    assert good
    for kind in {truth.content for truth in truths}:
        bad = [
            v.scores["SC"]
            for v, t in zip(verdicts, truths, strict=True)
            if t.content == kind and t.content_strength
        ]
        assert max(bad, default=0) < min(good)
    order = sorted(
        zip(truths, verdicts, strict=True), key=lambda pair: pair[0].content_strength
    )
    scores = [verdict.scores["SC"] for _, verdict in order]
    assert scores == sorted(scores, reverse=True)
