"""Files of unknown origin become upright RGB pixels, or one line that names the file."""

import contextlib
import hashlib
import io
import random
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import PIL.features
import PIL.Image
import PIL.ImageFile
import PIL.PngImagePlugin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import refusals
from tests.pictures import encoded, noise, png_of
from vieval_plugin import images
from vieval_plugin.images import MAX_BYTES, decode, digest, read_bytes
from vieval_plugin.judges.protocol import Image
from vieval_plugin.text.errors import VievalError

RED, WHITE = (255, 0, 0), (255, 255, 255)


def file(picture, format="PNG", **options):
    return Image(encoded(picture, format, **options))


def refusal(image):
    return refusals.refusal(decode, image)


def greys(picture, format="PNG"):
    """The values of the first channel in the first row."""
    return np.asarray(decode(file(picture, format)))[0, :, 0].tolist()


@pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "PPM"])
def test_rgb_comes_out_as_it_went_in(format):
    assert decode(file(noise(), format)).tobytes() == noise().tobytes()


@pytest.mark.skipif(not PIL.features.check("avif"), reason="this Pillow reads no AVIF")
def test_avif_is_read_within_the_limits_of_all_images():
    whole = encoded(noise(), "AVIF")
    assert decode(Image(whole)).size == noise().size
    assert images.examine(Image(whole)).digest == digest(Image(whole))
    assert "cannot be decoded" in refusal(Image(whole[:-5]))
    assert "is not an image in a supported format" in refusal(Image(whole[:300]))
    few = "more than 0 megapixels"
    refusals.refuses(few, images.upright, Image(whole), most_pixels=100)


def test_avif_and_heic_name_what_reading_them_needs(monkeypatch):
    monkeypatch.setattr(PIL.features, "check", lambda name: False)
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    head = lambda brand: b"\0\0\0\x18ftyp" + brand + bytes(4) + b"mif1" + bytes(80)
    avif = "is AVIF; install Pillow 11.3 or newer, or save it as PNG"
    heic = "is HEIC; install pillow-heif, or save it as PNG"
    for brand, said in ((b"avif", avif), (b"heic", heic), (b"mif1", heic)):
        assert said in refusal(Image(head(brand)))


def test_heic_is_read_by_pillow_heif_where_it_is_installed(monkeypatch):
    """By a class of its name here: what it would read is a PNG behind the head of a HEIC."""
    head = b"\0\0\0\x18ftypheic" + bytes(4) + b"mif1heic"

    class HeifImageFile(PIL.PngImagePlugin.PngImageFile):
        def _open(self):
            self.fp = io.BytesIO(self.fp.read()[len(head) :])
            super()._open()

    reader = types.SimpleNamespace(HeifImageFile=HeifImageFile)
    monkeypatch.setitem(sys.modules, "pillow_heif", reader)
    assert decode(Image(head + encoded(noise()))).tobytes() == noise().tobytes()
    assert "cannot be opened" in refusal(Image(head + b"nothing"))


@pytest.mark.parametrize(
    ("format", "options"), [("JPEG", {}), ("JPEG", {"progressive": True}), ("WEBP", {})]
)
def test_lossy_formats_are_read(format, options):
    pixels = decode(file(PIL.Image.new("RGB", (32, 24), RED), format, **options))
    assert (pixels.mode, pixels.size) == ("RGB", (32, 24))
    assert np.allclose(np.asarray(pixels), RED, atol=8)


def test_transparency_is_over_white():
    layer = PIL.Image.new("RGBA", (2, 1), (255, 0, 0, 255))
    layer.putpixel((1, 0), (255, 0, 0, 51))
    pixels = decode(file(layer))
    assert pixels.getpixel((0, 0)) == RED
    assert pixels.getpixel((1, 0)) == (255, 204, 204)


DEEP = PIL.Image.fromarray(np.array([[300]], dtype=np.uint16))
CLEAR = {
    "grey with alpha": (PIL.Image.new("LA", (1, 1), (0, 0)), {}),
    "a colour key": (PIL.Image.new("RGB", (1, 1), RED), {"transparency": RED}),
    "a grey key of 16 bits": (DEEP, {"transparency": 300}),
    "one bit": (PIL.Image.new("1", (2, 2), 1), {}),
    "grey": (PIL.Image.new("L", (2, 2), 255), {}),
}


@pytest.mark.parametrize(("picture", "options"), CLEAR.values(), ids=CLEAR)
def test_transparent_and_white_pixels_of_any_mode_are_white(picture, options):
    assert decode(file(picture, **options)).getpixel((0, 0)) == WHITE


def test_a_palette_is_looked_up_and_its_transparent_entry_is_white():
    picture = PIL.Image.new("P", (2, 1), 0)
    picture.putpalette([255, 0, 0, 0, 0, 255])
    picture.putpixel((1, 0), 1)
    pixels = decode(file(picture, transparency=1))
    assert [pixels.getpixel((x, 0)) for x in (0, 1)] == [RED, WHITE]


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_16_bit_grey_keeps_its_range(format):
    samples = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    assert greys(PIL.Image.fromarray(samples), format) == [0, 1, 128, 255]


def test_cmyk_becomes_rgb():
    pixels = decode(file(PIL.Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG"))
    assert pixels.mode == "RGB"
    assert np.allclose(np.asarray(pixels), RED, atol=12)


@pytest.mark.parametrize("kind", [np.int32, np.float32])
@pytest.mark.parametrize(
    ("samples", "grey"), [([0, 1], [0, 255]), ([0, 128, 255], [0, 128, 255])]
)
def test_wide_samples_from_0_to_1_or_to_255_are_read(kind, samples, grey):
    picture = PIL.Image.fromarray(np.array([samples], kind))
    assert greys(picture, "TIFF") == grey


WIDE = [np.int32([[256]]), np.int32([[-1]])]
WIDE += [np.float32([[number]]) for number in (-0.1, 255.5, np.nan)]


@pytest.mark.parametrize("samples", WIDE)
def test_samples_without_an_agreed_range_are_refused(samples):
    assert "no standard range" in refusal(file(PIL.Image.fromarray(samples), "TIFF"))


def test_floats_a_little_above_1_are_refused_in_place_of_black():
    picture = PIL.Image.fromarray(np.float32([[0, 0.5, 1.001]]))
    clip = "clip them to 1, or save the image with 8 or 16 bits"
    ambiguous = f"are ambiguous (0 to 1, or 0 to 255?); {clip}"
    assert ambiguous in refusal(file(picture, "TIFF"))


def test_pixels_that_all_threads_decode_are_bounded_and_an_image_of_more_has_them_alone():
    under_way, most = [0], []

    def decode_beside_others(pixels):
        with images.decoding(pixels):
            under_way[0] += pixels
            most.append(under_way[0])
            time.sleep(0.001)
            under_way[0] -= pixels

    with ThreadPoolExecutor(16) as pool:
        sizes = [33_000_000, 4_000_000, 150_000_000, 1_000_000]
        list(pool.map(decode_beside_others, sizes * 16))
    assert {pixels for pixels in most if pixels > images.MAX_DECODING} == {150_000_000}


@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_camera_held_sideways_gives_an_upright_picture(format, orientation):
    upright = np.zeros((16, 32, 3), np.uint8)
    upright[:8, :8], upright[:8, 24:] = RED, (0, 255, 0)
    turned = upright if orientation < 5 else upright.swapaxes(0, 1)
    rows = slice(None, None, -1 if orientation in (3, 4, 6, 7) else 1)
    columns = slice(None, None, -1 if orientation in (2, 3, 7, 8) else 1)
    stored = PIL.Image.fromarray(np.ascontiguousarray(turned[rows, columns]))
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    exact = {"JPEG": {"quality": 95, "subsampling": 0}, "WEBP": {"lossless": True}}
    pixels = decode(file(stored, format, exif=exif, **exact.get(format, {})))
    assert np.allclose(np.asarray(pixels), upright, atol=40)


def test_a_damaged_camera_note_is_ignored():
    picture = decode(file(noise(), "JPEG", exif=b"Exif\x00\x00XX*\x00garbage"))
    assert picture.size == noise().size


def test_of_an_animation_the_first_frame_counts():
    frames = [PIL.Image.new("RGB", (4, 4), colour) for colour in (RED, WHITE)]
    moving = file(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decode(moving).getpixel((0, 0)) == RED


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("kept", [0.2, 0.6, 0.99])
@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM"])
def test_half_a_file_is_refused_whatever_a_harness_told_pillow(
    format, kept, lenient, monkeypatch
):
    monkeypatch.setattr(PIL.ImageFile, "LOAD_TRUNCATED_IMAGES", lenient)
    whole = read_bytes(file(noise(size=(200, 150)), format))
    decode(Image(whole))
    refusal(Image(whole[: int(len(whole) * kept)]))


def outcome(check, data):
    try:
        check(Image(bytes(data)))
    except VievalError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "options",
    [{}, {"progressive": True}, {"restart_marker_blocks": 4}, {"subsampling": 0}],
)
def test_a_jpeg_that_is_looked_through_without_its_pixels_is_refused_like_one_that_is_decoded(
    options,
):
    whole, rng = read_bytes(file(noise(), "JPEG", **options)), random.Random(0)
    digested = hashlib.sha256(whole).hexdigest()
    examined = images.examine(Image(whole))
    assert examined == images.Examined(digested, turned=False)
    refused = 0
    for case in range(400):
        damaged, at = bytearray(whole), rng.randrange(2, len(whole))
        if case % 4 == 0:
            damaged = damaged[:at]
        elif case % 4 == 1:
            damaged[at] = rng.randrange(256)
        elif case % 4 == 2:
            damaged[at : at + 30] = rng.randbytes(30)
        else:
            del damaged[at : at + rng.randrange(1, 300)]
        outcomes = [outcome(check, damaged) for check in (images.examine, decode)]
        assert bool(outcomes[0]) == bool(outcomes[1]), (case, outcomes)
        refused += bool(outcomes[0])
    assert refused > 100


def test_what_is_no_image_is_named(tmp_path):
    path = tmp_path / "notes.png"
    path.write_text("not an image")
    assert refusal(Image(path)).startswith(f"{path} is not an image")
    assert "12 bytes" in refusal(Image(b"not an image"))
    assert "0 bytes" in refusal(Image(b""))


def test_formats_whose_readers_start_programs_are_not_read():
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n"
    assert "is not an image" in refusal(Image(script))


def test_a_missing_file_a_folder_and_a_strange_name_are_one_line_each(tmp_path):
    absent = tmp_path / "none.png"
    assert refusal(Image(absent)) == f"{absent} does not exist"
    assert refusal(Image(tmp_path)) == f"{tmp_path} is not a file"
    assert "cannot be read" in refusal(Image(tmp_path / ("x" * 300)))
    assert r"two\nlines" in refusal(Image(tmp_path / "two\nlines.png"))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [10_001, 60_000])
def test_too_many_pixels_are_refused_from_the_header_alone(side, monkeypatch):
    def no_decoding(*_):
        raise AssertionError("pixels were decoded")

    monkeypatch.setattr(PIL.ImageFile.ImageFile, "load", no_decoding)
    assert "pixels" in refusal(Image(png_of(side, side)))


def test_too_large_files_are_refused(tmp_path):
    path = tmp_path / "large.png"
    with path.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    large = "larger than 64 MiB"
    assert large in refusal(Image(path))
    assert large in refusal(Image(bytes(MAX_BYTES + 1)))
    refusals.refuses(large, digest, Image(path))


def test_pillows_own_settings_stay():
    before = (PIL.Image.MAX_IMAGE_PIXELS, PIL.ImageFile.LOAD_TRUNCATED_IMAGES)
    decode(file(noise()))
    refusal(Image(png_of(60_000, 60_000)))
    assert before == (PIL.Image.MAX_IMAGE_PIXELS, PIL.ImageFile.LOAD_TRUNCATED_IMAGES)


def test_the_digest_is_of_the_file_not_of_its_name(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"abc")
    expected = hashlib.sha256(b"abc").hexdigest()
    assert digest(Image(path)) == digest(Image(b"abc")) == expected


FORMATS = ["PNG", "JPEG", "GIF", "TIFF", "WEBP", "BMP", "PPM"]


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=300)
@given(data=st.data(), format=st.sampled_from(FORMATS))
def test_a_damaged_file_gives_pixels_or_one_line(data, format):
    broken = bytearray(read_bytes(file(noise(size=(16, 16)), format)))
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(broken) - 1))
        broken[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(VievalError):
        picture = decode(Image(bytes(broken)))
        assert picture.mode == "RGB"
        assert picture.width * picture.height <= images.MAX_PIXELS


def test_a_file_that_says_it_is_empty_is_not_opened(tmp_path, monkeypatch):
    (tmp_path / "empty.png").touch()
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("it was opened"))
    refusals.refuses("is empty", images.read_bytes, Image(tmp_path / "empty.png"))
