"""Several images of one prompt are told apart by their number, and a prompt without an image is
no zero in disguise.
"""

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


def test_rows_that_agree_in_uid_generator_and_draw_are_refused(tmp_path, vieval):
    path = write(tmp_path, {"draw": 1}, {"draw": 1})
    command = f"score {path} --judge sharpness --out {tmp_path}/v"
    said = (
        "line 1 and line 2 both have uid '1' of m (tig); use a different uid for each"
    )
    assert f"{said}, or a draw" in vieval(command, code=1).err


@pytest.mark.parametrize(
    ("policy", "scores"),
    [("drop", {}), ("random", {}), ("worst", {"SC": 0.0, "PQ": 0.0, "O": 0.0})],
)
def test_no_image_is_dropped_or_worst_and_never_a_drawn_number(policy, scores):
    failed = [Observation("m", "1", {}, {}, Status.NO_IMAGE)]
    [one] = apply_failure_policy(failed, ("SC", "PQ", "O"), StatisticsOptions(policy))
    assert dict(one.scores) == scores


def test_the_penalty_of_a_second_image_is_drawn_for_itself():
    failed = [Observation("m", "1", {}, {}, Status.REFUSAL, draw=n) for n in range(40)]
    filled = apply_failure_policy(failed, ("SC",), StatisticsOptions("random"))
    assert len({one.scores["SC"] for one in filled}) > 5
