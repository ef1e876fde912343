"""Test the files of highlighted images: exact, or nearly so where the source is a JPEG."""

import io

import numpy as np
import PIL.Image
import PIL.JpegImagePlugin
import pytest

from tests.tool_pictures import file, photograph
from vieval_plugin import images
from vieval_plugin.backends.image_tools.tools import run
from vieval_plugin.images import pixels
from vieval_plugin.judges.protocol import Box, ToolResult, UseTool
from vieval_plugin.judges.tools.highlight import highlight

BOXES = (Box(40, 60, 200, 180),)
MOST = 40
"""How far a value of a photograph may be off: the edge of a box against the dark is the hardest for a JPEG."""


def highlighted(image, boxes=BOXES, **more):
    reply = run(UseTool("highlight", {"image": image, "boxes": boxes, **more}, ("t",)))
    assert isinstance(reply, ToolResult), reply
    return reply.image


def kind(image):
    with PIL.Image.open(io.BytesIO(image.source)) as picture:
        return picture.format


def apart(image, source, boxes=BOXES):
    return np.abs(pixels(image).astype(int) - highlight(pixels(source), boxes))


@pytest.fixture(scope="module")
def photo():
    return file(photograph(256), "JPEG", quality=90)


@pytest.mark.parametrize("source", ["PNG", "WEBP", "GIF", "BMP", "TIFF"])
def test_what_is_no_jpeg_is_highlighted_exactly(source):
    image = file(photograph(256), source)
    found = highlighted(image)
    assert kind(found) == "PNG"
    assert apart(found, image).max() == 0


def test_a_jpeg_stays_one_with_all_its_colours_at_quality_95(photo):
    found = highlighted(photo)
    known = file(photograph(16), "JPEG", quality=95)
    opened = (PIL.Image.open(io.BytesIO(image.source)) for image in (found, known))
    picture, like = opened
    assert picture.format == "JPEG"
    assert PIL.JpegImagePlugin.get_sampling(picture) == 0, "4:4:4"
    assert picture.quantization == like.quantization
    off = apart(found, photo)
    assert 0 < off.mean() < 1
    assert off.max() <= MOST
    released = file(highlight(pixels(photo), BOXES), "JPEG", quality=75)
    assert off.max() < apart(released, photo).max()
    assert off.mean() < apart(released, photo).mean() / 2


@pytest.mark.parametrize("source", ["JPEG", "PNG", "WEBP"])
def test_an_image_that_is_not_changed_is_sent_as_it_is(source):
    image = file(photograph(64), source)
    assert highlighted(image, boxes=(Box(0, 0, 64, 64),)) is image
    assert highlighted(image, boxes=(Box(0, 0, 64, 63),)) is not image


def test_a_turned_photograph_is_highlighted_upright():
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    turned = file(photograph(64)[:32], "JPEG", quality=95, exif=exif)
    found = highlighted(turned, boxes=(Box(0, 0, 16, 32),))
    assert pixels(found).shape == (64, 32, 3)
    assert apart(found, turned, (Box(0, 0, 16, 32),)).max() <= MOST


def test_what_was_encoded_here_is_not_decoded_to_be_sent(photo, monkeypatch):
    for image in (photo, file(photograph(64), "PNG")):
        found = highlighted(image)
        with monkeypatch.context() as patch:
            patch.setattr(images, "load_strictly", lambda *_: pytest.fail("decoded"))
            assert not images.examine(found).turned


def test_an_image_that_is_resized_stays_a_jpeg_up_to_the_sides_that_jpegs_have(photo):
    found = highlighted(photo, boxes=(Box(0, 0, 128, 128),), like=file(photograph(128)))
    assert kind(found) == "JPEG"
    assert pixels(found).shape == (128, 128, 3)
    long = file(np.zeros((2, 65_501, 3), np.uint8))
    assert kind(highlighted(photo, (Box(0, 0, 2, 2),), like=long)) == "PNG"
