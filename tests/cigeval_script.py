"""Drives CIGEval with scripted replies by label and writes down what each call was shown."""

import json
from dataclasses import replace
from pathlib import Path

from tests import playing
from tests.playing import label_of
from vieval_plugin import Image, Sample, SampleId
from vieval_plugin.judges import tools
from vieval_plugin.judges.cigeval import plan as planned
from vieval_plugin.judges.cigeval.questions import CIGEvalOptions, Setup
from vieval_plugin.judges.protocol import Box, Chat, Failure, Text, ToolResult
from vieval_plugin.prompts import packs

PACK = packs.load("cigeval/v1")
ROLES = {
    "tig": ("output",),
    "tie": ("source", "output"),
    "mie": ("source", "mask", "output"),
    "cig": ("control", "output"),
    "sdig": ("subject", "output"),
    "sdie": ("source", "subject", "output"),
    "mcic": ("concepts", "concept_1", "concept_2", "output"),
}
TEXTS = {
    "tig": {"prompt": "two cats"},
    "tie": {"instruction": "make the hat red"},
    "mie": {"instruction": "put a hat here"},
    "cig": {"prompt": "a room", "control_type": "canny"},
    "sdig": {"prompt": "a dog on a beach", "subject": "dog"},
    "sdie": {"subject": "vase"},
    "mcic": {"prompt": "a cat and a vase", "concept_1": "cat", "concept_2": "vase"},
}
GRAPH = json.dumps(
    {"objects": [{"name": "cat", "attributes": ["red"]}], "relations": []}
)

OUTPUT, EDIT = ["output"], ["source", "output"]
CONTROL, SUBJECT = ["control", "output"], ["subject", "output"]
CONCEPTS = {role: [role, "output"] for role in ("concept_1", "concept_2")}
# task -> sub-questions with their images in order, and the planner's images
ASKED = {
    "tig": ({"prompt": OUTPUT}, OUTPUT),
    "tie": ({"edit": EDIT, "restraint": EDIT}, EDIT),
    "mie": ({"edit": EDIT, "restraint": EDIT}, EDIT),
    "cig": ({"control": CONTROL, "prompt": OUTPUT}, CONTROL),
    "sdig": ({"subject": SUBJECT, "prompt": OUTPUT}, SUBJECT),
    "sdie": ({"subject": SUBJECT, "background": EDIT}, ["source", *SUBJECT]),
    "mcic": ({**CONCEPTS, "prompt": OUTPUT}, [*CONCEPTS, "output"]),
}
BOX = Box(1, 2, 3, 4)


def picture(name):
    return Image(Path(name))


def sample(task, without=()):
    images = {role: picture(role) for role in ROLES[task] if role not in without}
    return Sample(SampleId("imagenhub", task, "m", "1"), images, TEXTS[task])


def built(*improvements, form=planned, only=None, reminders=1, **more):
    """The judge with these departures from the released code, and all tools or `only` some."""
    planned_tools = tools.planned()
    offered = tuple(t for t in planned_tools if only is None or t.name in only)
    options = CIGEvalOptions(improvements=improvements, detector="a detector", **more)
    return form.judge(Setup(replace(PACK, reminders=reminders), options, offered))


def plan(*entries):
    """A plan whose entries name these tools, None for none."""
    tasks = []
    for number, tool in enumerate(entries, start=1):
        task = {"task_id": number, "used": tool is not None, "tool": tool or "none"}
        tasks.append({**task, "reasoning": f"why {number}"})
    return json.dumps({"plan": tasks})


def score(value, reasoning="because"):
    return json.dumps({"score": [value], "reasoning": reasoning})


def play(program, replies):
    """Run a program; tools without a scripted reply find BOX or give a picture named by label."""
    played = playing.play(program, answer=lambda ask: _reply(ask, replies))
    labels = [label for wave in played.labels for label in wave]
    assert len(set(labels)) == len(labels), f"asked twice: {labels}"
    return played


def names(images):
    """What images are called; a highlighted one has the label of the call that made it."""
    return [str(image.source) for image in images]


def _reply(ask, replies):
    label = label_of(ask)
    if label in replies:
        given = replies[label]
        return given if isinstance(given, (ToolResult, Failure)) else Text(given)
    assert not isinstance(ask, Chat), f"no reply for {label}"
    if ask.tool in ("highlight", "half"):
        return ToolResult(ask.arguments.get("boxes", ()), image=picture(label))
    return ToolResult((BOX,), "EXIT" if ask.tool == "ocr" else "")
