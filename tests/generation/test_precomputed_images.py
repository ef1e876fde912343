"""Images made elsewhere are found by uid or by prompt."""

import json
from pathlib import Path

import pytest

from vieval_plugin.generation.precomputed_images import PrecomputedImages
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.readers.image_names import expected_name
from vieval_plugin.text.errors import VievalError


def wanted(uid, prompt="x", part="tig", images=1, turn=0):
    return ImageRequest(
        Sample(SampleId("b", part, "", uid), {}, {"prompt": prompt}),
        prompt,
        images,
        turn,
    )


def found(made, *asked):
    return [
        [Path(path).name for path in json.loads(made.answer(one))["images"]]
        for one in asked
    ]


def test_a_folder_is_read_by_uid_by_the_number_of_the_image_and_by_part(tmp_path):
    for name in ("1.png", "1_1.jpg", "sample_2.jpg", "notes.txt", "tie/1.webp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    made = PrecomputedImages(tmp_path)
    assert found(made, wanted("1"), wanted("1", turn=1), wanted("1", images=2)) == [
        ["1.png"],
        ["1_1.jpg"],
        ["1.png", "1_1.jpg"],
    ]
    # a uid that is a file's name, as ImagenHub's are, and one with a number at its end
    assert found(
        made, wanted("sample_2.jpg"), wanted("sample_2"), wanted("1", part="tie")
    ) == [
        ["sample_2.jpg"],
        ["sample_2.jpg"],
        ["1.webp"],
    ]
    assert found(made, wanted("3")) == [[]]


def test_of_several_image_models_in_folders_the_one_that_is_named_is_meant(tmp_path):
    for name in (
        "tie/mine/a_1-773232ab.png",
        "tie/theirs/2.png",
        "tie/theirs/1.avif",
        "tie/mine/1.png",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    for place in (tmp_path, tmp_path / "tie"):
        mine = PrecomputedImages(place, "mine")
        # a uid that cannot be the name of a file has the one that expected.csv says
        asked = (
            wanted("1", part="tie"),
            wanted("2", part="tie"),
            wanted("a/1", part="tie"),
        )
        assert found(mine, *asked) == [["1.png"], [], [expected_name("a/1")]]
    assert found(PrecomputedImages(tmp_path, "theirs"), wanted("1", part="tie")) == [
        ["1.avif"]
    ]


def test_a_file_is_read_in_either_form_by_uid_or_prompt(tmp_path):
    sample = {
        "uid": "2",
        "kind": "tig",
        "images": {"output": "c.png"},
        "texts": {"prompt": "y"},
        "draw": 1,
    }
    forms = (
        [{"uid": 1, "image": "a.png"}, {"prompt": "a red cube", "image": "b.png"}],
        [sample],
    )
    made = []
    for number, rows in enumerate(forms):
        file = tmp_path / f"{number}.jsonl"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        made.append(PrecomputedImages(file))
    assert found(made[0], wanted("1"), wanted("9", "a red cube"), wanted("b")) == [
        ["a.png"],
        ["b.png"],
        [],
    ]
    assert found(
        made[1], wanted("2", turn=1), wanted("2"), wanted("8", "y", turn=1)
    ) == [["c.png"], [], ["c.png"]]


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([{"uid": "1"}], "no column of images"),
        ([{"image": "a.png"}], "line 1: an image and a uid or prompt are required"),
        (
            [{"uid": "1", "image": "a.png", "image_model": m} for m in "xy"],
            "several image models; choose one",
        ),
    ],
)
def test_what_will_not_do_is_one_line(tmp_path, rows, line):
    file = tmp_path / "made.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(VievalError, match=line):
        PrecomputedImages(file)
