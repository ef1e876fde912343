"""Several images of one prompt are told apart by their number, and a prompt without an image is
no zero in disguise.
"""

import json
from shlex import split

import numpy as np
import PIL.Image
import pytest

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.observations import Observation, apply_failure_policy
from vieval_plugin.results import rows as own
from vieval_plugin.stats.options import StatisticsOptions


def write(folder, rows):
    for number in range(3):
        dtype = np.uint8
        noise = np.random.default_rng(number).integers(0, 256, (32, 32, 3), dtype=dtype)
        PIL.Image.fromarray(noise).save(folder / f"{number}.png")
    path = folder / "s.jsonl"
    path.write_text("".join(f"{json.dumps({'kind': 'tig', **row})}\n" for row in rows))
    return path


def test_two_images_of_one_prompt_are_two_samples(tmp_path, vieval):
    about = {"tags": ["red", "blue"], "category": "colours"}
    rows = [
        {
            "uid": "1",
            "image_model": "m",
            "draw": n,
            "images": {"output": f"{n}.png"},
            **(about if n else {}),
        }
        for n in (0, 1)
    ]
    path, out = write(tmp_path, rows), tmp_path / "v.jsonl"
    vieval(f"score {path} --judge sharpness --out {out}")
    first, second = own.records_of(out)
    assert (first.id.draw, second.id.draw) == (0, 1)
    assert str(second.id) == "own/tig/m/1/draw 1"
    assert second.group == first.group == "1"
    assert (second.tags, second.category) == (("red", "blue"), "colours")
    assert first.verdict.scores != second.verdict.scores
    assert "draw" not in json.loads(
        out.read_text().splitlines()[0]
    )  # a file without draws stays as it was


def test_rows_that_agree_in_uid_generator_and_draw_are_refused(tmp_path, vieval):
    rows = [
        {"uid": "1", "image_model": "m", "draw": 1, "images": {"output": f"{n}.png"}}
        for n in (0, 1)
    ]
    printed = vieval(
        "score",
        write(tmp_path, rows),
        *split(f"--judge sharpness --out {tmp_path}/v"),
        code=1,
    ).err
    assert (
        "line 1 and line 2 both have uid '1' of m (tig); use a different uid for each, or a draw"
        in printed
    )


@pytest.mark.parametrize(
    ("policy", "scores"),
    [("drop", {}), ("random", {}), ("worst", {"SC": 0.0, "PQ": 0.0, "O": 0.0})],
)
def test_no_image_is_dropped_or_worst_and_never_a_drawn_number(policy, scores):
    [one] = apply_failure_policy(
        [Observation("m", "1", {}, {}, Status.NO_IMAGE)],
        ("SC", "PQ", "O"),
        StatisticsOptions(policy),
    )
    assert dict(one.scores) == scores


def test_the_penalty_of_a_second_image_is_drawn_for_itself():
    failed = [Observation("m", "1", {}, {}, Status.REFUSAL, draw=n) for n in range(40)]
    drawn = [
        o.scores["SC"]
        for o in apply_failure_policy(failed, ("SC",), StatisticsOptions("random"))
    ]
    assert len(set(drawn)) > 5
