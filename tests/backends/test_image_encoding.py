"""Test how images are sent to a server: unchanged where possible, in bounded memory."""

import asyncio
import base64
import hashlib
import io
import struct
import threading

import numpy as np
import PIL.Image
import pytest

from tests.pictures import encoded, noise, png_of
from vieval_plugin.backends.http import image_encoding
from vieval_plugin.backends.http.image_encoding import ImageEncoder, encode
from vieval_plugin.judges.protocol import Image
from vieval_plugin.text.errors import VievalError


def picture(mode="RGB", size=(9, 7), seed=0):
    return noise(seed, size).convert(mode)


def opened(data):
    return PIL.Image.open(io.BytesIO(data))


def file_of(kind, pixels=None, **options):
    return encoded(picture() if pixels is None else pixels, kind, **options)


def sent(encoded):
    """Media type and bytes of a data URL."""
    head, data = encoded.url.split(",", 1)
    media = head.removeprefix("data:").removesuffix(";base64")
    return media, base64.b64decode(data, validate=True)


def sent_data(data, max_pixels=None):
    return sent(encode(Image(data), max_pixels))


PLAIN = {
    "jpeg": file_of("JPEG", quality=40),
    "grey jpeg": file_of("JPEG", picture("L")),
    "png": file_of("PNG"),
    "palette png": file_of("PNG", picture("P")),
    "opaque png with alpha": file_of("PNG", picture("RGBA")),
}


def media_of(name):
    return "image/jpeg" if "jpeg" in name else "image/png"


@pytest.mark.parametrize("name", PLAIN)
def test_jpeg_and_png_files_pass_byte_for_byte(name, tmp_path):
    data = PLAIN[name]
    (tmp_path / "named.wrongly").write_bytes(data)
    for source in (data, tmp_path / "named.wrongly"):
        encoded = encode(Image(source))
        assert sent(encoded) == (media_of(name), data)
        assert encoded.digest == hashlib.sha256(data).hexdigest()


HALF = picture("RGBA", (2, 1))
HALF.putdata([(0, 0, 0, 0), (255, 0, 0, 255)])
GREY = np.array([[0, 32896, 65535]], np.uint16)
FLOATS = np.array([[0, 0.5, 1]], np.float32)
INTEGERS = np.array([[0, 128, 255]], np.int32)
INDEXED = HALF.convert("P")
CLEAR = {"transparency": INDEXED.getpixel((0, 0))}
INKS = PIL.Image.new("CMYK", (8, 8), (0, 255, 255, 0))
BLACK = file_of("PNG", HALF.convert("RGB"), transparency=(0, 0, 0))
DEEP = png_of(1, 1, b"\0" + struct.pack(">3H", 32896, 0, 65535), bits=16)
RAMP, WHITE = [0, 128, 255], [255, 255]
RARE = {
    "16-bit grey": (file_of("PNG", PIL.Image.fromarray(GREY)), RAMP),
    "16 bits a colour": (DEEP, [128]),
    "transparent": (file_of("PNG", HALF), WHITE),
    "palette with alpha": (file_of("PNG", INDEXED, **CLEAR), WHITE),
    "transparent colour": (BLACK, WHITE),
    "four inks": (file_of("JPEG", INKS), None),
    "floats": (file_of("TIFF", PIL.Image.fromarray(FLOATS)), RAMP),
    "32-bit integers": (file_of("TIFF", PIL.Image.fromarray(INTEGERS)), RAMP),
}


@pytest.mark.parametrize(("data", "red"), RARE.values(), ids=RARE)
def test_unusual_pixels_are_sent_as_rgb_with_8_bits_on_white(data, red):
    for max_pixels in (None, 10_000):
        media, body = sent_data(data, max_pixels)
        made = opened(body)
        assert (media, made.mode, body[24]) == ("image/png", "RGB", 8)
        if red:
            assert np.asarray(made)[0, :, 0].tolist() == red


@pytest.mark.parametrize("kind", ["WEBP", "BMP", "TIFF", "PPM"])
def test_other_formats_become_png_without_loss(kind):
    options = {"lossless": True} if kind == "WEBP" else {}
    encoded = encode(Image(file_of(kind, **options)))
    media, data = sent(encoded)
    assert media == "image/png"
    assert np.array_equal(np.asarray(opened(data)), np.asarray(picture()))
    assert encoded.digest == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("size", "limit"), [((40, 30), 300), ((1200, 30), 999), ((41, 29), 41 * 29 - 1)]
)
def test_an_image_over_max_pixels_is_made_smaller_and_keeps_its_shape(size, limit):
    media, data = sent_data(file_of("JPEG", picture(size=size)), limit)
    made = opened(data)
    assert media == "image/png"
    assert 0.5 * limit < made.width * made.height <= limit
    assert made.width / made.height == pytest.approx(size[0] / size[1], rel=0.35)


def test_a_line_is_made_shorter_and_an_image_within_max_pixels_passes_untouched():
    line = file_of("PNG", picture(size=(5000, 1)))
    assert opened(sent_data(line, 100)[1]).size == (100, 1)
    data = file_of("JPEG", picture(size=(40, 30)))
    assert sent_data(data, 1200) == ("image/jpeg", data)
    assert encode(Image(data), 100).digest != encode(Image(data)).digest


# The encoder: once, off the main thread, in bounded memory.


@pytest.fixture
def calls(monkeypatch):
    """Notes which image is encoded on which thread."""
    noted = []

    def noting(image, max_pixels=None):
        noted.append((image, threading.current_thread()))
        return encode(image, max_pixels)

    monkeypatch.setattr(image_encoding, "encode", noting)
    return noted


def image(number, size=(16, 16)):
    return Image(file_of("PNG", picture(size=size, seed=number)))


async def test_an_image_wanted_often_is_encoded_once_and_in_a_thread(calls):
    encoder, one = ImageEncoder(), image(0)
    copies = [Image(one.source) for _ in range(20)]
    results = await asyncio.gather(*map(encoder.encode, copies))
    assert len({result.url for result in results}) == 1
    assert await encoder.encode(one) == results[0]
    assert len(calls) == 1
    assert calls[0][1] is not threading.main_thread()


async def test_the_least_recently_wanted_image_is_forgotten_first(calls):
    images = [image(number) for number in range(3)]
    room = sum(len(encode(one).url) for one in images[:2]) + 100
    calls.clear()
    encoder = ImageEncoder(memory=room)
    for number in (0, 1, 0, 2, 0, 1):  # 2 pushes 1 out, for 0 was wanted since
        await encoder.encode(images[number])
    assert [images.index(one) for one, _ in calls] == [0, 1, 2, 1]


async def test_memory_stays_bounded_with_many_at_once():
    room = 8 * len(encode(image(0)).url)
    encoder = ImageEncoder(memory=room)
    images = [image(number) for number in range(120)]
    wanted = [images[(7 * i) % 120] for i in range(360)]
    results = await asyncio.gather(*map(encoder.encode, wanted))
    assert [sent(result)[1] for result in results] == [one.source for one in wanted]
    assert not encoder._under_way._tasks
    kept = sum(len(one.url) for one in encoder._recent.values())
    assert encoder._recent_bytes == kept
    assert 0 < encoder._recent_bytes <= room


async def test_an_image_beyond_the_memory_is_encoded_and_a_broken_one_can_be_mended(
    tmp_path,
):
    path, encoder = tmp_path / "late.png", ImageEncoder(memory=10)
    for number in range(3):
        assert sent(await encoder.encode(image(number)))[1] == image(number).source
    assert len(encoder._recent) == 1
    path.write_bytes(b"not yet")
    tries = (encoder.encode(Image(path)) for _ in range(3))
    for error in await asyncio.gather(*tries, return_exceptions=True):
        assert isinstance(error, VievalError)
        assert "late.png" in str(error)
    path.write_bytes(image(1).source)
    assert sent(await encoder.encode(Image(path)))[1] == image(1).source


async def test_who_stops_waiting_does_not_stop_the_others():
    encoder, one = ImageEncoder(), image(0)
    first, second = (asyncio.ensure_future(encoder.encode(one)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert sent(await second)[1] == one.source
