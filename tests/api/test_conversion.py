"""Images and samples as people have them."""

import io
import itertools
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from tests.builders import a_contest, a_sample
from tests.pictures import encoded, noise
from tests.refusals import refuses
from vieval_plugin import Image, images
from vieval_plugin.api import conversion
from vieval_plugin.judges.protocol import SampleId

PIXELS = np.random.RandomState(0).randint(0, 256, (5, 7, 3)).astype(np.uint8)
PICTURE = PIL.Image.fromarray(PIXELS)
OPAQUE = np.concatenate([PIXELS, np.full((5, 7, 1), 255, np.uint8)], -1)
FILES = [encoded(PICTURE), bytearray(encoded(PICTURE)), Image(encoded(PICTURE))]
ARRAYS = [PIXELS, PIXELS / 255, OPAQUE, PIXELS[:, ::-1][:, ::-1]]
FLOATS = [(PIXELS / 255).astype(kind) for kind in (np.float32, np.float16)]


@pytest.mark.parametrize(
    "value",
    [*FILES, PICTURE, PICTURE.convert("RGBA"), *ARRAYS, *FLOATS],
    ids=lambda value: type(value).__name__,
)
def test_the_pixels_are_those_given(value):
    assert np.array_equal(images.pixels(conversion.image(value)), PIXELS)


def test_a_tensor_is_an_array():
    torch = pytest.importorskip("torch")
    shown = torch.from_numpy(PIXELS)
    assert np.array_equal(images.pixels(conversion.image(shown)), PIXELS)
    refuses("permute", conversion.image, shown.permute(2, 0, 1))


def test_paths(tmp_path):
    file = tmp_path / "a:b.png"
    file.write_bytes(encoded(PICTURE))
    assert conversion.image(str(file)) == conversion.image(file) == Image(file)


def test_grey_and_masks():
    converted = lambda value: images.pixels(conversion.image(value))
    for grey in (PIXELS[..., 0], PIXELS[..., :1]):
        assert converted(grey)[..., 1].tolist() == PIXELS[..., 0].tolist()
    assert set(converted(PIXELS[..., 0] > 128).ravel()) == {0, 255}


def test_what_is_transparent_is_white_and_what_a_camera_turned_is_upright():
    clear = PIL.Image.new("RGBA", (2, 2), (9, 9, 9, 0))
    assert images.pixels(conversion.image(clear)).min() == 255
    turned = PICTURE.copy()
    turned.getexif()[0x0112] = 6
    assert images.pixels(conversion.image(turned)).shape == (7, 5, 3)


def test_jpeg_keeps_all_colours():
    smooth = PIL.Image.linear_gradient("L").convert("RGB")
    held = conversion.image(smooth, "jpeg")
    assert held.source.startswith(b"\xff\xd8")
    # no channel is halved
    assert PIL.Image.open(io.BytesIO(held.source)).layer[0][1:3] == (1, 1)
    away = np.abs(images.pixels(held).astype(int) - np.asarray(smooth))
    assert away.max() <= 2


SECRETIVE = "https://me:secret@example.org/a.png?key=secret"
DATA_URL = f"data:image/png;base64,{'A' * 5000}"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (3, "int 3 is not an image; pass a path"),
        (None, "NoneType is not an image"),
        ([PIXELS], "list is not an image"),
        (np.zeros((0, 4, 3), np.uint8), "at least one pixel"),
        (np.zeros((4, 4, 2), np.uint8), r"shape \(4, 4, 2\) is not an image"),
        (np.zeros((3, 5, 6)), r"transpose\(1, 2, 0\)"),
        (np.zeros((4, 4, 3), np.int64), "array of int64"),
        (np.full((4, 4, 3), np.nan), "must be between 0 and 1"),
        (np.full((4, 4, 3), -0.5), "from -1 to 1"),
        (np.full((4, 4, 3), "a"), "array of <U1"),
        (PIL.Image.new("F", (4, 4), 300), "no standard range"),
        (PIL.Image.new("RGB", (0, 4)), "at least one pixel"),
        (DATA_URL, "must be a local file, got data:image/png"),
        (SECRETIVE, "got https://example.org/a.png; download"),
        (np.ma.masked_array(PIXELS, PIXELS > 9), "masked pixels"),
    ],
)
def test_what_is_no_image_is_told_in_one_line(value, told):
    refuses(told, conversion.image, value)


def test_half_a_file_opened_by_pillow_is_told(tmp_path, monkeypatch):
    # which harnesses switch on
    monkeypatch.setattr("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", False)
    whole, file = encoded(noise(0, (64, 64))), tmp_path / "half.png"
    file.write_bytes(whole[: len(whole) // 2])
    refuses("cannot read the PIL image", conversion.image, PIL.Image.open(file))


HUGE = np.broadcast_to(np.uint8(0), (10**6, 10**6, 3))


class Unread:
    """An array that lies elsewhere, such as in a file: to make it an array reads it."""

    def __init__(self, shape, dtype="uint8"):
        self.shape, self.dtype = shape, np.dtype(dtype)

    def __array__(self, *arguments, **named):
        raise AssertionError("it was read")


CUBE = np.broadcast_to(np.uint8(0), (10**6, 10**6, 10**3))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (HUGE, "at most 100 megapixels, got 1000000x1000000 pixels"),
        (np.broadcast_to(np.False_, (10**6, 10**6)), "1000000x1000000 pixels"),
        (np.broadcast_to(np.float16(0), (10**5, 10**4, 3)), "10000x100000 pixels"),
        (np.broadcast_to(np.int64(0), (10**3, 10**3, 3)), "array of int64"),
        (CUBE, r"shape \(1000000, 1000000, 1000\) is not an image"),
        (Unread((10**6, 10**6, 3)), "1000000x1000000 pixels"),
        (Unread((2, 4, 5, 6, 3)), r"shape \(2, 4, 5, 6, 3\) is not an image"),
        (Unread((4, 5, 3), "int32"), "array of int32"),
    ],
)
def test_the_shape_is_looked_at_before_any_pixel(value, message, monkeypatch):
    monkeypatch.setattr(conversion, "_pixels", None)
    refuses(message, conversion.image, value)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (Unread((3, 10**6, 10**6, 3)), "1000000x1000000 pixels"),
        (Unread((3, 3, 8, 9)), r"shape \(3, 8, 9\) is not an image; .* permute"),
        (Unread((3, 8, 8, 3), "int64"), "array of int64"),
        (Unread((3, 8, 8, 3, 1)), r"got an array of shape \(3, 8, 8, 3, 1\)"),
    ],
)
def test_the_shape_of_a_batch_is_looked_at_before_any_of_it(batch, message):
    refuses(message, conversion.columns, {"images": batch}, "x")


INTEGERS, ABSENT = (
    {"images": [PIXELS] * 7 + [PIXELS.astype(int)]},
    {"images a": [PIXELS]},
)
ABSENT |= {"images b": [None]}


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        (INTEGERS, r"images\[7\]: an array of int"),
        (ABSENT, r"images b\[0\]: NoneType is not an"),
    ],
)
def test_nothing_is_converted_where_one_is_no_image(given, wrong, monkeypatch):
    monkeypatch.setattr(conversion, "_pixels", None)
    refuses(f"^{wrong}", conversion.columns, given, "x")


def test_which_of_several_holds_wrong_values():
    given = {"images": [PIXELS] * 5 + [PIXELS * 1.0]}
    wrong = r"^images\[5\]: .* must be between 0 and 1"
    refuses(wrong, conversion.columns, given, "x")


ALONE = ["a.png", b"x", PICTURE, Path("a.png"), Image(b"x"), 3, PIXELS, {b"x"}]


@pytest.mark.parametrize("values", [*ALONE, PIXELS[None, None], {"output": PIXELS}])
def test_one_image_is_not_several(values):
    several = "^images .* list of images"
    refuses(several, conversion.columns, {"images": values}, "x")


def test_a_batch_is_several_in_order():
    batch = np.random.RandomState(1).randint(0, 256, (9, 4, 4, 3)).astype(np.uint8)
    [shown], prompts = conversion.columns({"images": batch}, "x")
    assert np.array_equal([images.pixels(one) for one in shown], batch)
    assert prompts == ["x"] * 9


def test_samples_of_mappings_have_the_keys_of_a_samples_file():
    row = {"uid": "u", "image_model": "m", "kind": "tie", "tags": ["a"]}
    row["images"] = {"output": PIXELS, "source": "s.png"}
    [sample] = conversion.samples([{**row, "texts": {"instruction": "add a hat"}}])
    assert sample.id == SampleId("own", "tie", "m", "u")
    assert (sample.kind, sample.tags) == ("tie", ("a",))
    assert sample.images["source"] == Image(Path("s.png"))
    assert sample.texts == {"instruction": "add a hat"}
    both = {"images": {"output": PIXELS}, "texts": {"prompt": ["a", "b"]}}
    two = conversion.samples([both], kind="tig")
    found = [(one.id.uid, one.kind, one.texts["prompt"]) for one in two]
    assert found == [("0#0", "tig", "a"), ("0#1", "tig", "b")]


def test_samples_and_contests_stay_what_they_are():
    given = [a_sample(), a_contest()]
    assert conversion.samples(given) == given


UNKNOWN = [{"images": {"output": PIXELS}, "text": {}}]
NO_TEXT = [{"images": {}, "texts": {"prompt": 3}}]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ("x", "samples is str 'x'; pass a list of samples"),
        ({"images": {}}, "samples is dict; pass"),
        (None, "samples is NoneType; pass"),
        ([3], "sample 0: int 3 is not a sample; pass"),
        (UNKNOWN, "sample 0: unknown key 'text'; known keys: "),
        ([{"images": PIXELS}], "sample 0: images must map roles"),
        ([{"images": {"output": 3}}], "sample 0: int 3 is not an image"),
        (NO_TEXT, "sample 0: `texts` must map names"),
        ([{"images": {}, 3: 4}], "sample 0: unknown key '3'"),
    ],
)
def test_what_is_no_sample_is_told_with_its_number(values, told):
    refuses(told, conversion.samples, values)


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        (["a"], "must have the same length, got 2 images and 1 prompt"),
        (["a", "b", "c"], "2 images and 3 prompts"),
        ([1, 2], "prompts must be strings, got int 1"),
        ([], "2 images and 0 prompts"),
        (None, "prompts is NoneType; pass a list of strings, or one string"),
        ({"a": 1, "b": 2}, "prompts is dict; pass"),
        (itertools.repeat("a"), "2 images and more prompts"),
    ],
)
def test_texts_are_as_many_as_images(prompts, message):
    refuses(message, conversion.columns, {"images": [PIXELS, PIXELS]}, prompts)


class Counted:
    """Images without an end, and how many of them were taken."""

    taken = 0

    def __iter__(self):
        while True:
            self.taken += 1
            yield PIXELS


def test_images_without_an_end_are_taken_as_far_as_there_are_prompts():
    endless, other = Counted(), Counted()
    columns = conversion.columns
    refuses("more images and 3 prompts", columns, {"images": endless}, list("abc"))
    assert endless.taken == 4
    more = "more images a and more images b and 2 prompts"
    refuses(more, columns, {"images a": Counted(), "images b": other}, iter("ab"))
    assert other.taken == 3
    given = {"images a": [PIXELS], "images b": other}
    refuses("1 images a and more images b", columns, given, "x")
    assert other.taken == 3 + 2


def test_generators_of_both_are_read_to_their_common_end():
    [shown], prompts = conversion.columns({"images": iter([PIXELS] * 3)}, iter("abc"))
    assert (len(shown), prompts) == (3, ["a", "b", "c"])
    assert conversion.columns({"images": iter(())}, iter(())) == ([[]], [])


def test_the_kind_of_a_mapping_is_told_by_its_images_and_texts():
    images = {"output": PIL.Image.new("RGB", (8, 8))}
    edit = {
        "images": {**images, "source": images["output"]},
        "texts": {"instruction": "a"},
    }
    judged = conversion.samples([{"images": images, "texts": {"prompt": "a"}}, edit])
    assert [sample.kind for sample in judged] == ["tig", "tie"]


def test_one_image_of_a_file_has_many_prompts(tmp_path):
    """Pillow reads a file when it is first used, and not in several threads at once."""
    noise(size=(600, 600)).save(tmp_path / "a.png")
    for _ in range(5):
        with PIL.Image.open(tmp_path / "a.png") as picture:
            [converted], _ = conversion.columns({"images": [picture] * 16}, "a")
        assert len({id(image) for image in converted}) == 1
