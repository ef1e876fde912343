"""The image tools: what they find in pictures whose answer is known, pixel by pixel."""

import sys

import numpy as np
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
import pytest

from tests.extras import needs
from tests.refusals import refuses
from tests.tool_pictures import edited, file, photograph
from vieval_plugin.backends.image_tools import tools as backend
from vieval_plugin.images import decode
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import Box, Status, ToolResult, UseTool
from vieval_plugin.judges.tools import Tool, planned, registry, require
from vieval_plugin.judges.tools import difference as difference_module
from vieval_plugin.judges.tools.difference import area_that_counts, difference, merged
from vieval_plugin.judges.tools.half import half
from vieval_plugin.judges.tools.highlight import highlight
from vieval_plugin.text.errors import install_advice


def result_of(tool, **arguments):
    reply = backend.run(UseTool(tool, arguments, ("t",)))
    assert isinstance(reply, ToolResult), reply
    return reply


def shown(image):
    return np.asarray(decode(image))


def near(box, left, top, right, bottom, reach=3):
    """Whether a box is these edges, give or take what the blur (2) and the dilation (1) add."""
    found = (box.left, box.top, box.right, box.bottom)
    wanted = (left, top, right, bottom)
    return all(abs(a - b) <= reach for a, b in zip(found, wanted, strict=True))


PLANNED = ["difference", "grounding", "ocr", "scene_graph"]


def test_the_tools_of_a_plan_are_known_with_what_a_planner_and_a_rater_need():
    assert [tool.name for tool in planned()] == PLANNED
    assert all(tool.description and tool.cost and tool.note for tool in planned())
    assert registry()["highlight"].use is None


SAW = """
from vieval_plugin.judges.tools import Tool
use = lambda request: iter(())
TOOL = Tool('saw', 'cuts', 'a second', 'It was cut.', use=use, run=dict)
"""


def test_a_new_tool_is_one_new_file(tmp_path, monkeypatch):
    known = [tool.name for tool in planned()]
    (tmp_path / "saw.py").write_text(SAW)
    monkeypatch.setattr(tools, "__path__", [*tools.__path__, str(tmp_path)])
    registry.cache_clear()
    try:
        assert [tool.name for tool in planned()] == sorted([*known, "saw"])
        assert registry()["saw"].run is dict
    finally:
        registry.cache_clear()
        sys.modules.pop("vieval_plugin.judges.tools.saw", None)


def test_a_package_that_is_missing_is_named_with_the_command_to_install_it():
    saw = Tool("saw", needs=("no_such_package",))
    lacking = r'saw requires no_such_package; run pip install "\.\[tools\]"'
    refuses(lacking, require, [saw], install_advice("tools"))
    require([Tool("saw", needs=("numpy",))], "")


def test_outside_the_boxes_every_value_is_a_quarter_and_inside_it_is_untouched():
    image = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    inside = np.zeros((40, 60, 1), bool)
    inside[10:30, 5:20] = inside[25:40, 15:45] = True
    inside[:2, :3] = inside[38:, 58:] = True
    within = [Box(5, 10, 20, 30), Box(15, 25, 45, 40)]
    beyond = [Box(-5, -5, 3, 2), Box(58, 38, 99, 99), Box(-9, -9, -1, -1)]
    found = highlight(image, [*within, *beyond])
    assert (found == np.where(inside, image, image // 4)).all()


@needs("cv2")
def test_a_highlighted_image_is_resized_to_the_one_its_boxes_are_for():
    white = file(np.full((20, 40, 3), 255, np.uint8))
    about = {"boxes": (Box(0, 0, 5, 10),), "like": file(photograph(10))}
    found = shown(result_of("highlight", image=white, form="source", **about).image)
    assert found.shape == (10, 10, 3)
    assert (found[:, :5] == 255).all()
    assert (found[:, 5:] == 63).all()


def test_halves_of_an_odd_width_share_no_column():
    image = np.arange(7, dtype=np.uint8)[None, :, None].repeat(3, axis=2)
    assert half(image, "left")[0, :, 0].tolist() == [0, 1, 2]
    assert half(image, "right")[0, :, 0].tolist() == [4, 5, 6]


DIAGONAL = [(100 + step, 100 + step, 6, 6) for step in range(0, 300, 2)]
TWO_PATCHES = [(50, 50, 120, 120), (500, 500, 300, 200)]


@needs("cv2")
@pytest.mark.parametrize(
    ("patches", "boxes"),
    [
        pytest.param([(300, 400, 56, 56)], [], id="0.3% of the image"),
        pytest.param([(300, 400, 79, 79)], [(300, 400, 379, 479)], id="0.6%"),
        pytest.param([(300, 400, 229, 229)], [(300, 400, 529, 629)], id="5%"),
        pytest.param(DIAGONAL, [(100, 100, 404, 404)], id="thin, in a large box"),
        pytest.param(
            TWO_PATCHES,
            [(500, 500, 800, 700), (50, 50, 170, 170)],
            id="the largest first",
        ),
    ],
)
def test_a_change_is_found_if_its_box_is_above_half_a_percent(patches, boxes):
    other = photograph()
    for patch in patches:
        other = edited(other, *patch)
    found = difference(photograph(), other)
    assert len(found) == len(boxes)
    assert all(near(box, *sides) for box, sides in zip(found, boxes, strict=True))


@needs("cv2")
def test_a_change_of_no_more_than_45_grey_levels_is_none():
    grey = np.full((100, 100, 3), 100, np.uint8)
    assert difference(grey, grey) == []
    assert difference(grey, grey + 45) == []
    assert difference(grey, grey + 46) == [Box(0, 0, 100, 100)]


def test_overlapping_boxes_are_merged_until_none_overlap():
    # the third overlaps the first only once that has grown around the second
    chain = [Box(0, 0, 10, 10), Box(9, 0, 30, 4), Box(25, 3, 28, 20)]
    beside = [Box(50, 50, 60, 60), Box(60, 50, 70, 60)]
    found = sorted(merged([*chain, *beside]), key=lambda b: b.left)
    assert found == [Box(0, 0, 30, 20), *beside]
    frame_and_content = [Box(0, 0, 100, 100), Box(40, 40, 50, 50)]
    assert merged(frame_and_content) == [Box(0, 0, 100, 100)]


@needs("cv2")
def test_a_smaller_second_image_is_resized_and_boxes_are_in_pixels_of_the_first():
    other = PIL.Image.fromarray(edited(photograph(), 256, 512, 256, 128))
    [box] = difference(photograph(), np.asarray(other.resize((512, 512))))
    assert near(box, 256, 512, 512, 640, reach=5)


def as_mode(mode, pixels):
    """Pixels as a picture of a mode."""
    picture = PIL.Image.fromarray(pixels)
    if mode == "16 bit":
        grey = np.asarray(picture.convert("L")).astype(np.uint16)
        return PIL.Image.fromarray(grey * 257)
    return picture.quantize(256) if mode == "P" else picture.convert(mode)


@needs("cv2")
@pytest.mark.parametrize("mode", ["RGBA", "P", "L", "16 bit"])
def test_a_difference_is_found_in_images_of_any_mode(mode):
    plain = photograph(256)
    changed = edited(plain, 64, 96, 64, 32)
    before, after = (file(as_mode(mode, pixels)) for pixels in (plain, changed))
    [box] = result_of("difference", first=before, second=after).boxes
    assert near(box, 64, 96, 128, 128)


@needs("cv2")
def test_images_are_turned_upright_before_they_are_compared():
    upright = PIL.Image.fromarray(photograph(256))
    turned = upright.transpose(PIL.Image.Transpose.ROTATE_90)
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # to be shown turned by 90 degrees clockwise
    found = lambda image: result_of("difference", first=file(upright), second=image)
    assert found(file(turned, exif=exif)).boxes == ()
    assert found(file(turned)).boxes != ()


def square_mask():
    mask = np.zeros((256, 256), np.uint8)
    mask[30:110, 30:110] = 255
    return mask


def masked_difference(side, other, mask):
    images = {"first": file(photograph(256)), "second": file(other), "mask": file(mask)}
    return result_of("difference", **images, side=side).boxes


@needs("cv2")
def test_inside_and_outside_the_mask_each_finds_its_own_change():
    other = edited(edited(photograph(256), 40, 40, 60, 60), 160, 160, 50, 40)
    [inside] = masked_difference("inside", other, square_mask())
    [outside] = masked_difference("outside", other, square_mask())
    assert near(inside, 40, 40, 100, 100)
    assert near(outside, 160, 160, 210, 200)


@needs("cv2")
def test_the_rim_of_a_change_that_fills_the_mask_is_no_change_outside():
    other = edited(photograph(256), 30, 30, 80, 80)
    assert masked_difference("outside", other, square_mask()) == ()


@needs("cv2")
@pytest.mark.parametrize("opacity", [255, 0], ids=["painted white", "cut out"])
def test_a_source_with_its_area_painted_white_or_cut_out_is_a_mask_too(opacity):
    other = edited(photograph(256), 40, 40, 60, 60)
    mask = PIL.Image.fromarray(photograph(256)).convert("RGBA")
    mask.paste((255, 255, 255, opacity), (30, 30, 110, 110))
    [box] = masked_difference("inside", other, mask)
    assert near(box, 40, 40, 100, 100)


@needs("cv2")
def test_a_mask_of_another_size_is_resized():
    mask = np.zeros((64, 64, 3), np.uint8)
    mask[:, :32] = 255
    small = difference_module.resized(mask, photograph(256))
    area = area_that_counts(small, inside=True)
    assert area[:, :120].all()
    assert not area[:, 136:].any()


@needs("rapidocr")
def test_lines_of_text_are_read_in_order_with_their_boxes():
    picture = PIL.Image.new("RGB", (420, 160), "white")
    draw, font = PIL.ImageDraw.Draw(picture), PIL.ImageFont.load_default(40)
    draw.text((20, 15), "OPEN DAILY", fill="black", font=font)
    draw.text((20, 90), "fresh bread", fill="navy", font=font)
    found = result_of("ocr", image=file(picture))
    assert found.text == "OPEN DAILY\nfresh bread"
    above, below = found.boxes
    assert above.bottom <= below.top + 10
    assert abs(above.left - 20) < 15
    assert result_of("ocr", image=file(np.zeros((64, 64, 3), np.uint8))) == ToolResult()


@pytest.mark.parametrize(
    ("tool", "arguments"), [("saw", {}), ("scene_graph", {}), ("highlight", {})]
)
def test_what_cannot_be_run_is_a_failure_in_one_line(tool, arguments):
    reply = backend.run(UseTool(tool, arguments, ("t",)))
    assert reply.status is Status.TOOL_ERROR
    assert reply.reason
    assert "\n" not in reply.reason
