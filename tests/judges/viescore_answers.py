"""Samples of VIEScore and answers to its questions."""

import json
from pathlib import Path

from vieval_plugin.judges.protocol import Image, Sample, SampleId, Text

ROLES = ("output", "source", "mask", "subject", "control", "concepts")


ORDER = {
    "tig": ["output"],
    "tie": ["source", "output"],
    "mie": ["source", "output"],
    "cig": ["control", "output"],
    "sdig": ["subject", "output"],
    "sdie": ["source", "subject", "output"],
    "mcic": ["concepts", "output"],
}


SUB_SCORES = {"tig": 1, "tie": 2, "mie": 2, "cig": 2, "sdig": 2, "sdie": 2, "mcic": 3}


def sample(task):
    images = {role: Image(Path(f"{role}.png")) for role in ROLES}
    texts = {"prompt": 'a "red" {{cat}}', "instruction": "add a hat"}
    texts["subject"] = "dog toy"
    return Sample(SampleId("imagenhub", task, "M", "u"), images, texts)


def answer(*scores, reasoning="because"):
    return Text(json.dumps({"score": list(scores), "reasoning": reasoning}))
