"""Changes of samples: what each makes of an image, and what it leaves alone."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from vieval_plugin.audit.changes import (
    bordered,
    brighter,
    changes,
    half_size,
    jpeg_image,
    praised,
)
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.images import decode

BY_NAME = {change.name: change for change in changes()}


@pytest.fixture(scope="module")
def samples():
    return vieval_demo.load(Path(), "tie")


@pytest.mark.parametrize("change", changes(), ids=lambda change: change.name)
def test_a_change_touches_what_it_says_and_is_the_same_each_time(samples, change):
    one, other = samples[0], samples[-1]
    made = change.make(one, other)
    assert made.images != one.images
    assert made == change.make(one, other)
    kept = "source" if change.modifies == "output" else "output"
    assert made.images[kept] is one.images[kept]
    assert (made.id, made.texts, made.kind) == (one.id, one.texts, one.kind)


def test_a_change_of_the_source_does_not_apply_without_one():
    [sample, other, *_] = vieval_demo.load(Path(), "tig")
    assert BY_NAME["source blank"].make(sample, other) is None
    assert BY_NAME["source of another"].make(sample, other) is None


def test_a_mask_stays_where_the_source_is_blank():
    sample = vieval_demo.load(Path(), "mie")[0]
    made = BY_NAME["source blank"].make(sample, None)
    assert made.images["mask"] is sample.images["mask"]
    assert np.ptp(np.asarray(decode(made.images["source"]))) == 0
    assert BY_NAME["source of another"].make(sample, None) is None


@pytest.mark.parametrize("size", [(64, 48), (1, 1), (3, 500), (900, 20)])
def test_pictures_of_any_size_can_be_changed(size):
    picture = PIL.Image.new("RGB", size, (100, 90, 80))
    assert decode(praised(picture)).size == size
    assert decode(half_size(picture)).size == tuple(max(1, side // 2) for side in size)
    edge = max(1, round(0.04 * max(size)))
    assert decode(bordered(picture)).size == (size[0] + 2 * edge, size[1] + 2 * edge)
    assert decode(brighter(picture)).getpixel((0, 0)) == (115, 103, 92)
    assert decode(jpeg_image(picture, 30)).size == size


def test_praise_is_written_large_and_within_the_picture():
    plain = PIL.Image.new("RGB", (400, 300), (128, 0, 0))
    changed = np.asarray(decode(praised(plain)).convert("L"))
    assert (changed[:190] == changed[0, 0]).all()
    white = np.argwhere(changed > 200)
    assert 0.6 < np.ptp(white[:, 1]) / 400 <= 0.92
    assert 0.15 < np.ptp(white[:, 0]) / 300 <= 0.34
