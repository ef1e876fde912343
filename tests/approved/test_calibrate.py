"""`vieval calibrate`, and what a calibration does to other commands."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.builders import a_label_file, a_verdict_file
from vieval_plugin.cli import main

pytest.importorskip("duckdb")
CALIBRATE = "vieval calibrate v.jsonl --human labels.csv --out cal.json"


@pytest.fixture
def labelled(approve):
    """Writes verdicts on 240 images of a generator (or more), and people's labels of some: the
    cube of the score.
    """

    def write(
        count,
        *,
        noise=0.05,
        generators=("aurora",),
        aspect="O",
        label=lambda score: score**3,
    ):
        rng = np.random.default_rng(count)
        scores = {name: rng.uniform(size=240).round(4).tolist() for name in generators}
        a_verdict_file(generators=scores)
        a_label_file(
            labels=[
                {"uid": f"p{n:03}", "generator": name, "aspect": aspect}
                | {
                    "value": round(
                        float(
                            np.clip(label(scores[name][n]) + rng.normal(0, noise), 0, 1)
                        ),
                        3,
                    )
                }
                for name in generators
                for n in range(count)
            ]
        )

    return write


def test_accepted(approve, labelled):
    labelled(200)
    approve(
        CALIBRATE,
        "vieval report v.jsonl --calibration cal.json --out r",
        "vieval rank v.jsonl",
    )


def test_two_generators(approve, labelled):
    labelled(100, generators=("aurora", "borealis"))
    approve(CALIBRATE)


def test_too_few_labels(approve, labelled):
    labelled(20)
    approve(CALIBRATE)


def test_no_gain(approve, labelled):
    labelled(50, noise=5)
    approve(CALIBRATE, f"{CALIBRATE} --anyway")


def test_more_labels_are_needed(approve, labelled):
    labelled(40, noise=0.5, label=lambda score: score)
    approve(CALIBRATE)


def test_labels_of_another_aspect(approve, labelled):
    labelled(40, aspect="beauty")
    approve(CALIBRATE)


CHANGES = (
    {"judge": "ssim"}, {"backbone": "other"}, {"setting": "1shot"}, {"aspect": "text"}, {"pack_hash": "def"},
    {"knots": {"tie": [[0], [0]]}}, {"knots": {"tig": [[0.5, 0.1], [0, 1]]}}, {"knots": {"tig": [[0.1, 0.5], [0]]}},
    {"knots": {"tig": [[0.1, 0.5], [0, 1e300]]}}, {"knots": "all"}, {"labels": None},
)  # fmt: skip


def test_refused(approve, labelled):
    labelled(60)
    main(CALIBRATE.split()[1:])
    accepted = json.loads(Path("cal.json").read_text())
    for number, change in enumerate(CHANGES):
        Path(f"{number}.json").write_text(json.dumps({**accepted, **change}))
    approve(
        *(
            f"vieval report v.jsonl --calibration {number}.json --out r"
            for number in range(len(CHANGES))
        )
    )
