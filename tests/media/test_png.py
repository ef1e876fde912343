import io

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vieval_plugin.media.png import encode


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from((1, 3))).flatmap(
        lambda shape: arrays(np.uint8, shape)
    )
)
def test_pillow_reads_the_same_pixels(pixels):
    require_same(pixels)


def require_same(pixels):
    picture = PIL.Image.open(io.BytesIO(encode(pixels)))
    assert np.array_equal(np.asarray(picture).reshape(pixels.shape), pixels)


@pytest.mark.parametrize("shape", [(300, 1, 3), (1, 3000, 3), (640, 480, 3)])
def test_any_shape(shape):
    pixels = np.random.RandomState(0).randint(0, 256, shape).astype(np.uint8)
    require_same(pixels)
    require_same(pixels[:, ::-1])
