"""Images made elsewhere are found by uid or by prompt."""

import json
from pathlib import Path

import pytest

from tests.builders import a_sample_row
from tests.refusals import refuses
from tests.stored_results import write_lines
from vieval_plugin.generation.precomputed_images import PrecomputedImages
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.readers.image_names import expected_name


def wanted(uid, prompt="x", part="tig", images=1, turn=0):
    sample = Sample(SampleId("b", part, "", uid), {}, {"prompt": prompt})
    return ImageRequest(sample, prompt, images, turn)


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def found(made, *asked):
    paths = [json.loads(made.answer(one))["images"] for one in asked]
    return [[Path(path).name for path in several] for several in paths]


def test_a_folder_is_read_by_uid_by_the_number_of_the_image_and_by_part(tmp_path):
    touch(tmp_path, "1.png", "1_1.jpg", "sample_2.jpg", "notes.txt", "tie/1.webp")
    cases = [
        (wanted("1"), ["1.png"]),
        (wanted("1", turn=1), ["1_1.jpg"]),
        (wanted("1", images=2), ["1.png", "1_1.jpg"]),
        # a uid that is a file's name, as ImagenHub's are, and one with a number at its end
        (wanted("sample_2.jpg"), ["sample_2.jpg"]),
        (wanted("sample_2"), ["sample_2.jpg"]),
        (wanted("1", part="tie"), ["1.webp"]),
        (wanted("3"), []),
    ]
    asked, names = zip(*cases, strict=True)
    assert found(PrecomputedImages(tmp_path), *asked) == [*names]


def test_of_several_image_models_in_folders_the_one_that_is_named_is_meant(tmp_path):
    touch(tmp_path, "tie/mine/a_1-773232ab.png", "tie/mine/1.png")
    touch(tmp_path, "tie/theirs/2.png", "tie/theirs/1.avif")
    # a uid that cannot be the name of a file has the one that expected.csv says
    asked = [wanted(uid, part="tie") for uid in ("1", "2", "a/1")]
    for place in (tmp_path, tmp_path / "tie"):
        mine = PrecomputedImages(place, "mine")
        assert found(mine, *asked) == [["1.png"], [], [expected_name("a/1")]]
    assert found(PrecomputedImages(tmp_path, "theirs"), asked[0]) == [["1.avif"]]


def test_a_file_is_read_in_either_form_by_uid_or_prompt(tmp_path):
    rows = [{"uid": 1, "image": "a.png"}, {"prompt": "a red cube", "image": "b.png"}]
    made = PrecomputedImages(write_lines(tmp_path / "0.jsonl", rows))
    asked = wanted("1"), wanted("9", "a red cube"), wanted("b")
    assert found(made, *asked) == [["a.png"], ["b.png"], []]
    sample = a_sample_row("2", "c.png", "y", draw=1)
    made = PrecomputedImages(write_lines(tmp_path / "1.jsonl", [sample]))
    asked = wanted("2", turn=1), wanted("2"), wanted("8", "y", turn=1)
    assert found(made, *asked) == [["c.png"], [], ["c.png"]]


SEVERAL = [{"uid": "1", "image": "a.png", "image_model": model} for model in "xy"]


WRONG = [
    ([{"uid": "1"}], "no column of images"),
    ([{"image": "a.png"}], "line 1: an image and a uid or prompt are required"),
    (SEVERAL, "several image models; choose one"),
]


@pytest.mark.parametrize(("rows", "line"), WRONG)
def test_what_will_not_do_is_one_line(tmp_path, rows, line):
    refuses(line, PrecomputedImages, write_lines(tmp_path / "made.jsonl", rows))
