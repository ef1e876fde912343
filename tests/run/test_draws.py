"""Several images of one prompt differ by number; a prompt without an image is not a zero."""

import numpy as np
import PIL.Image
import pytest

from tests.builders import a_sample_row
from tests.stored_results import read_lines, write_lines
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.observations import Observation, apply_failure_policy
from vieval_plugin.results import rows as own
from vieval_plugin.stats.options import StatisticsOptions


def write(folder, *rows):
    """A samples file of images of one prompt, each with its own draw unless a row has one."""
    for number in range(3):
        pixels = np.random.default_rng(number).integers(0, 256, (32, 32, 3), np.uint8)
        PIL.Image.fromarray(pixels).save(folder / f"{number}.png")
    drawn = [{"draw": n, **row} for n, row in enumerate(rows)]
    listed = [
        {**a_sample_row("1", f"{n}.png", image_model="m", **row), "texts": {}}
        for n, row in enumerate(drawn)
    ]
    return write_lines(folder / "s.jsonl", listed)


def test_two_images_of_one_prompt_are_two_samples(tmp_path, vieval):
    about = {"tags": ["red", "blue"], "category": "colours"}
    path, out = write(tmp_path, {}, about), tmp_path / "v.jsonl"
    vieval(f"score {path} --judge sharpness --out {out}")
    first, second = own.records_of(out)
    assert (first.id.draw, second.id.draw) == (0, 1)
    assert str(second.id) == "own/tig/m/1/draw 1"
    assert second.group == first.group == "1"
    assert (second.tags, second.category) == (("red", "blue"), "colours")
    assert first.verdict.scores != second.verdict.scores
    # a file without draws stays as it was
    assert "draw" not in read_lines(out)[0]


WORST = {"SC": 0.0, "PQ": 0.0, "O": 0.0}


@pytest.mark.parametrize("policy", ["drop", "random", "worst"])
def test_no_image_is_dropped_or_worst_and_never_a_drawn_number(policy):
    failed = [Observation("m", "1", {}, {}, Status.NO_IMAGE)]
    [one] = apply_failure_policy(failed, tuple(WORST), StatisticsOptions(policy))
    assert dict(one.scores) == (WORST if policy == "worst" else {})


def test_the_penalty_of_a_second_image_is_drawn_for_itself():
    failed = [Observation("m", "1", {}, {}, Status.REFUSAL, draw=n) for n in range(40)]
    filled = apply_failure_policy(failed, ("SC",), StatisticsOptions("random"))
    assert len({one.scores["SC"] for one in filled}) > 5
