"""`vieval calibrate`, and what a calibration does to other commands."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.builders import a_label_file, a_verdict_file
from vieval_plugin.cli import main

pytest.importorskip("duckdb")
CALIBRATE = "vieval calibrate v.jsonl --human labels.csv --out cal.json"
REPORT = "vieval report v.jsonl --calibration cal.json --out r"


def labelled(count, *, noise=0.05, generators=("aurora",), aspect="O", power=3):
    """Write verdicts on 240 images, and labels of some: the cube of the score."""
    rng = np.random.default_rng(count)
    scores = {name: rng.uniform(size=240).round(4).tolist() for name in generators}
    a_verdict_file(generators=scores)
    labels = []
    for name in generators:
        for n in range(count):
            label = scores[name][n] ** power + rng.normal(0, noise)
            value = round(float(np.clip(label, 0, 1)), 3)
            row = {"uid": f"p{n:03}", "generator": name, "aspect": aspect}
            labels.append({**row, "value": value})
    a_label_file(labels=labels)


#: Number of labels, and what else holds for them.
CASES = {
    "two_generators": (100, {"generators": ("aurora", "borealis")}),
    "too_few_labels": (20, {}),
    "no_gain": (50, {"noise": 5}, CALIBRATE, f"{CALIBRATE} --anyway"),
    "more_labels_are_needed": (40, {"noise": 0.5, "power": 1}),
    "labels_of_another_aspect": (40, {"aspect": "beauty"}),
    "accepted": (200, {}, CALIBRATE, REPORT, "vieval rank v.jsonl"),
}


@pytest.mark.parametrize("name", CASES)
def test_calibrate(approve, name):
    count, about, *commands = CASES[name]
    labelled(count, **about)
    approve(*(commands or [CALIBRATE]))


CHANGES = (
    {"judge": "ssim"}, {"backbone": "other"}, {"setting": "1shot"}, {"aspect": "text"}, {"pack_hash": "def"},
    {"knots": {"tie": [[0], [0]]}}, {"knots": {"tig": [[0.5, 0.1], [0, 1]]}}, {"knots": {"tig": [[0.1, 0.5], [0]]}},
    {"knots": {"tig": [[0.1, 0.5], [0, 1e300]]}}, {"knots": "all"}, {"labels": None},
)  # fmt: skip


def test_refused(approve):
    labelled(60)
    main(CALIBRATE.split()[1:])
    accepted = json.loads(Path("cal.json").read_text())
    for number, change in enumerate(CHANGES):
        Path(f"{number}.json").write_text(json.dumps({**accepted, **change}))
    numbers = range(len(CHANGES))
    approve(*(REPORT.replace("cal.json", f"{number}.json") for number in numbers))
