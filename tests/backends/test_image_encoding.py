"""Test how images are sent: unchanged where possible, whole, without metadata, in bounded memory."""

import asyncio
import base64
import hashlib
import io
import struct
import threading
import zlib

import numpy as np
import PIL.Image
import PIL.ImageCms
import PIL.ImageFile
import PIL.PngImagePlugin
import pytest

from tests.fake_server import FakeServer
from tests.pictures import encoded, noise, png_chunk, png_of
from tests.refusals import refuses
from vieval_plugin import Backbone, Image, Sample, SampleId, Status, evaluate, images
from vieval_plugin.backends.http import image_encoding
from vieval_plugin.backends.http.image_encoding import (
    SHRUNK,
    TURNED,
    ImageEncoder,
    encode,
    remove_metadata,
)
from vieval_plugin.config import Config, StoreOptions
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
    """Media type and bytes of what is sent for a file, and the notes on it."""
    made = encode(Image(data), max_pixels)
    return *sent(made), made.notes


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
        media, body, _ = sent_data(data, max_pixels)
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
    media, data, _ = sent_data(file_of("JPEG", picture(size=size)), limit)
    made = opened(data)
    assert media == "image/png"
    assert 0.5 * limit < made.width * made.height <= limit
    assert made.width / made.height == pytest.approx(size[0] / size[1], rel=0.35)


def test_a_line_is_made_shorter_and_an_image_within_max_pixels_passes_untouched():
    line = file_of("PNG", picture(size=(5000, 1)))
    assert opened(sent_data(line, 100)[1]).size == (100, 1)
    data = file_of("JPEG", picture(size=(40, 30)))
    assert sent_data(data, 1200) == ("image/jpeg", data, ())
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
    several = [image(number) for number in range(120)]
    wanted = [several[(7 * i) % 120] for i in range(360)]
    results = await asyncio.gather(*map(encoder.encode, wanted))
    assert [sent(result)[1] for result in results] == [one.source for one in wanted]
    assert not encoder._under_way._tasks
    kept = sum(len(one.url) for one in encoder._recent.values())
    assert 0 < encoder._recent_bytes == kept <= room


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


# Files hold the picture alone, decoded whole.


SECRET = b"taken at 52.52 N, 13.40 E by Jane Doe"
PROFILE = PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("sRGB")).tobytes()


def exif(orientation=None):
    made = PIL.Image.Exif()
    made[0x010E] = SECRET.decode()
    if orientation is not None:
        made[0x0112] = orientation
    return made


def pixels(data):
    return np.asarray(opened(data).convert("RGBA"))


def in_png(data, *chunks):
    return data[:33] + b"".join(chunks) + data[33:]


def in_jpeg(data, *segments):
    return data[:2] + b"".join(segment(*one) for one in segments) + data[2:]


def segment(code, body):
    return b"\xff" + bytes([code]) + struct.pack(">H", len(body) + 2) + body


def png(**options):
    return encoded(noise(), "PNG", **options)


def jpeg(**options):
    return encoded(noise(), "JPEG", quality=90, **options)


GAMMA = png_chunk(b"gAMA", struct.pack(">I", 100_000))
PRIMARIES = png_chunk(b"cHRM", struct.pack(">8I", *[30_000] * 8))
UNTOUCHED = {
    "JPEG": file_of("JPEG", quality=40),
    "JPEG, grey": file_of("JPEG", picture("L")),
    "JPEG, profile": jpeg(icc_profile=PROFILE),
    "JPEG, a profile in pieces": jpeg(icc_profile=PROFILE * 50),
    "PNG": file_of("PNG"),
    "PNG, palette": file_of("PNG", picture("P")),
    "PNG, opaque with alpha": file_of("PNG", picture("RGBA")),
    "PNG, profile": png(icc_profile=PROFILE),
    "PNG, gamma": in_png(png(), GAMMA, PRIMARIES),
    "PNG, sRGB": in_png(png(), png_chunk(b"sRGB", b"\0")),
    "PNG, cICP": in_png(png(), png_chunk(b"cICP", b"\x09\x10\0\x01")),
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_files_with_nothing_but_the_picture_pass_byte_for_byte(name, tmp_path):
    data, media = UNTOUCHED[name], f"image/{name.split(',')[0].lower()}"
    (tmp_path / "named.wrongly").write_bytes(data)
    for source in (data, tmp_path / "named.wrongly"):
        made = encode(Image(source))
        assert (*sent(made), made.notes) == (media, data, ())
        assert made.digest == hashlib.sha256(data).hexdigest()


TEXTS = PIL.PngImagePlugin.PngInfo()
TEXTS.add_text("a", SECRET.decode())
TEXTS.add_itxt("b", SECRET.decode())
SQUEEZED = png_chunk(b"zTXt", b"a\0\0" + zlib.compress(SECRET))
UNKNOWN = ((0xEB, SECRET), (0xEF, SECRET), (0xE2, b"MPF\0" + SECRET))
PREVIEW = b"JFIF\0\x01\x01\0\0\x01\0\x01\x04\x03" + SECRET[:36]
TOLD = {"exif": exif(), "comment": SECRET}
XMP = b"http://ns.adobe.com/xap/1.0/\0" + SECRET
TALKATIVE = {
    "JPEG, EXIF": jpeg(exif=exif()),
    "JPEG, EXIF upright": jpeg(exif=exif(1)),
    "JPEG, comment": jpeg(comment=SECRET),
    "JPEG, XMP": in_jpeg(jpeg(), (0xE1, XMP)),
    "JPEG, Photoshop": in_jpeg(jpeg(), (0xED, b"Photoshop 3.0\0" + SECRET)),
    "JPEG, unknown": in_jpeg(jpeg(), *UNKNOWN),
    "JPEG, progressive": encoded(noise(), "JPEG", progressive=True, **TOLD),
    "JPEG, a preview": in_jpeg(jpeg()[:2] + jpeg()[20:], (0xE0, PREVIEW)),
    "JPEG, behind the picture": jpeg() + SECRET,
    "PNG, texts": png(pnginfo=TEXTS),
    "PNG, squeezed text": in_png(png(), SQUEEZED),
    "PNG, EXIF": png(exif=exif()),
    "PNG, time": in_png(png(), png_chunk(b"tIME", b"\x07\xea\x01\x02\x03\x04\x05")),
    "PNG, unknown": in_png(png(), png_chunk(b"prVt", SECRET)),
    "PNG, behind the picture": png() + SECRET,
    "PNG, transparent": encoded(noise().convert("RGBA"), "PNG", exif=exif()),
    "PNG, palette": encoded(noise().quantize(16), "PNG", exif=exif()),
}  # fmt: skip


@pytest.mark.parametrize("data", TALKATIVE.values(), ids=TALKATIVE.keys())
def test_metadata_is_removed_without_touching_a_pixel(data):
    media, body, notes = sent_data(data)
    assert media == ("image/jpeg" if data.startswith(b"\xff\xd8") else "image/png")
    for told in (b"Jane Doe", b"tIME", b"zTXt", b"Exif", b"prVt", SECRET[:20]):
        assert told not in body
    assert len(body) < len(data)
    assert np.array_equal(pixels(body), pixels(data))
    assert notes == ()
    assert sent_data(body)[1] == body


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_turned_picture_is_encoded_with_its_profile_and_noted(kind, orientation):
    options = {"JPEG": {"quality": 95}, "WEBP": {"lossless": True}}.get(kind, {})
    options |= {"exif": exif(orientation), "icc_profile": PROFILE}
    data = encoded(noise(), kind, **options)
    media, body, notes = sent_data(data)
    assert (media, notes) == ("image/png", (TURNED,))
    made = opened(body)
    assert made.getexif() == {}
    assert made.info["icc_profile"] == PROFILE
    assert np.array_equal(np.asarray(made), np.asarray(images.decode(Image(data))))
    assert b"Jane Doe" not in body


def test_gamma_goes_along_and_a_profile_for_other_inks_does_not():
    _, body, notes = sent_data(in_png(png(exif=exif(6)), GAMMA), 1000)
    assert notes == (TURNED, SHRUNK)
    assert GAMMA in body
    width, height = opened(body).size
    assert width < height
    inks = PROFILE[:16] + b"CMYK" + PROFILE[20:]
    data = encoded(noise().convert("CMYK"), "JPEG", icc_profile=inks, exif=exif(3))
    assert "icc_profile" not in opened(sent_data(data)[1]).info


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_more_pixels_than_are_decoded_are_made_fewer_where_that_is_asked():
    large = encoded(PIL.Image.new("1", (11_000, 11_000)), "PNG")
    refuses("more than 100 megapixels", encode, Image(large))
    _, body, notes = sent_data(large, 10_000)
    assert notes == (SHRUNK,)
    assert opened(body).size == (100, 100)
    refuses("pixels", encode, Image(png_of(60_000, 60_000)), 10)


def test_a_jpeg_whose_parts_cannot_be_told_apart_is_encoded_anew():
    data = jpeg()
    odd = data[:2] + b"\xff\x00" + data[2:]  # which decoders skip
    assert remove_metadata(odd) is None
    media, body, _ = sent_data(odd)
    assert media == "image/png"
    assert np.array_equal(pixels(body), pixels(data))


PROGRESSIVE = encoded(noise(), "JPEG", progressive=True)
BROKEN = {
    "a cut PNG": png()[:-500],
    "a cut JPEG": jpeg()[:-500],
    "a cut progressive JPEG": PROGRESSIVE[:-500],
    "a JPEG's header": jpeg()[:300],
    "a PNG's header": png()[:45],
    "a PNG without pixels": png_of(8, 8),
    "a PNG cut in the middle of a length": png()[:-14],
    "a PNG with damaged pixels": png()[:2000] + bytes(64) + png()[2064:],
}  # fmt: skip


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("data", [b"", b"no image", *BROKEN.values()])
def test_an_image_that_cannot_be_decoded_whole_is_not_sent(data, lenient, monkeypatch):
    # as harnesses set it
    monkeypatch.setattr(PIL.ImageFile, "LOAD_TRUNCATED_IMAGES", lenient)
    refuses(r"cannot be decoded|is cut off|opened|not an image", encode, Image(data))


@pytest.fixture
def loads(monkeypatch):
    """Notes how often pixels are decoded."""
    noted, load = [], images.load_strictly
    monkeypatch.setattr(
        images, "load_strictly", lambda *given: noted.append(1) or load(*given)
    )
    monkeypatch.setattr(images, "_examined", type(images._examined)())
    return noted


async def test_an_image_is_decoded_once_however_often_it_is_wanted(loads, tmp_path):
    shown = [Image(encoded(noise(seed), "JPEG")) for seed in range(4)]
    path = tmp_path / "same.jpg"
    path.write_bytes(shown[0].source)
    encoder = ImageEncoder(memory=1)
    for _ in range(3):
        await asyncio.gather(*map(encoder.encode, [*shown, Image(path)]))
    # the same bytes under two names may be decoded at the same time
    assert 4 <= len(loads) <= 5


def test_images_remembered_are_few(loads, monkeypatch):
    monkeypatch.setattr(images, "_REMEMBERED", 2)
    for seed in range(4):
        images.examine(Image(encoded(noise(seed), "PNG")))
    assert len(images._examined) == 2


def sample(uid, data):
    identity = SampleId("own", "tig", "m", uid)
    return Sample(identity, {"output": Image(data)}, {"prompt": "noise"})


def judged(given, judge, store, server, **more):
    """Verdicts on samples by a judge with a store of replies."""
    options = Config(store=StoreOptions(path=store))
    backbone = Backbone(model="fake", base_url=server.base_url, **more)
    return evaluate(given, judge=judge, backbone=backbone, options=options)


@pytest.mark.parametrize("judge", ["viescore", "vqascore"])
def test_no_verdict_on_a_broken_image_is_ok(judge, tmp_path, monkeypatch):
    """Also where the store has replies on it, of the time when nothing was decoded."""
    given = [sample(name, data) for name, data in BROKEN.items()]
    store = tmp_path / "r.sqlite"
    unexamined = lambda image, data: images.Examined("", False)
    with FakeServer() as server:
        with monkeypatch.context() as patch:
            patch.setattr(image_encoding, "examine", unexamined)
            patch.setattr(image_encoding, "size", lambda *_: (1, 1))
            patch.setattr(image_encoding, "remove_metadata", lambda data: data)
            before = judged(given, judge, store, server)
        assert {verdict.status for verdict in before} == {Status.OK}
        after = judged(given, judge, store, server)
    assert {verdict.status for verdict in after} == {Status.NO_IMAGE}


def test_that_an_image_was_turned_or_shrunk_is_a_finding_of_its_verdict_once(tmp_path):
    large = encoded(noise(size=(100, 90)), "PNG")
    data = {"plain": jpeg(), "turned": jpeg(exif=exif(6)), "large": large}
    given = [sample(*one) for one in data.items()]
    with FakeServer() as server:
        # the last has its answers from the store
        for judge in ("viescore", "vqascore", "viescore"):
            verdicts = judged(
                given, judge, tmp_path / "r.sqlite", server, max_pixels=64 * 48
            )
            found = [verdict.findings for verdict in verdicts]
            assert found == [(), (TURNED,), (SHRUNK,)]
