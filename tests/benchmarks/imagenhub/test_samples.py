"""Ratings files as samples, and what is said when they are wrong."""

import re

import pytest

from tests.refusals import refusal
from vieval_plugin.benchmarks import imagenhub
from vieval_plugin.benchmarks.imagenhub.ratings import read_ratings
from vieval_plugin.benchmarks.imagenhub.samples import _texts

RATER_2 = (
    "imagenhub/human_ratings/ImagenHub_Control-Guided_IG/Control-Guided_IG_rater2.tsv"
)


def test_samples_come_in_uid_order_across_image_models(ratings_folder):
    samples = imagenhub.load(ratings_folder, "cig")
    assert [(s.id.uid, s.id.image_model) for s in samples] == [
        ("sample_2.jpg", "ControlNet"),
        ("sample_2.jpg", "UniControl"),
        ("sample_10.jpg", "ControlNet"),
        ("sample_10.jpg", "UniControl"),
    ]
    assert {(s.kind, s.group == s.id.uid) for s in samples} == {("cig", True)}
    assert samples[1].ratings == {
        "SC": (0.5,) * 3,
        "PQ": (1.0,) * 3,
        "O": (0.5**0.5,) * 3,
    }


def test_nothing_but_ratings_is_needed_to_name_images(ratings_folder):
    sample = imagenhub.load(ratings_folder, "cig")[0]
    museum = ratings_folder / "imagenhub" / "museum" / "ImagenHub_Control-Guided_IG"
    assert sample.images["control"].source == museum / "input" / "sample_2.jpg"
    assert sample.images["output"].source == museum / "ControlNet" / "sample_2.jpg"


CONTROL_NET = "line 3, column ControlNet"
NO_HEADER = "its first line must contain the column names uid, ControlNet, UniControl; "
DIFFER = "raters 1 and 2 must rate the same uids (first difference: sample_10.jpg)"


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        (
            *("UniControl", "Other"),
            [
                "rater2.tsv: column 'UniControl' is missing (found: uid, ControlNet, Other)"
            ],
        ),
        (
            *("[0, 1]", "[0.7, x]"),
            [f"rater2.tsv: {CONTROL_NET}: must be [SC, PQ] ", "got '[0.7, x]'"],
        ),
        ("[0, 1]", "[0.7, 1]", [f"{CONTROL_NET}: must be [SC, PQ] ", "got '[0.7, 1]'"]),
        ("[0, 1]", "[true, 1]", [CONTROL_NET]),
        ("[0, 1]\t", "", ["line 3: 2 cells, but the header has 3"]),
        ("sample_10", "sample_2", ["line 3 repeats uid sample_2.jpg"]),
        ("sample_10", "sample_11", [DIFFER]),
        (None, "", [f"rater2.tsv: no header; {NO_HEADER}"]),
    ],
)
def test_malformed_ratings_are_located(ratings_folder, old, new, messages):
    path = ratings_folder / RATER_2
    text = path.read_text()
    path.write_text(text.replace(old or text, new))
    line = refusal(read_ratings, ratings_folder, "cig")
    assert all(message in line for message in messages)


def test_an_absent_ratings_file_says_how_to_get_it(tmp_path):
    line = refusal(read_ratings, tmp_path, "tie")
    assert "no such file; run `vieval prepare imagenhub`, or set VIEVAL_DATA" in line


def test_missing_lists_conditions_and_images(ratings_folder):
    lines = imagenhub.missing(ratings_folder, "cig")
    assert re.search(r"dataset_lookup.json: no conditions for 2 of 2 uids", lines[0])
    assert re.search(r"input: 2 of 2 images missing \(first: sample_2.jpg\)", lines[1])
    assert len(lines) == 4


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"sample_2.jpg": "a street"}', "[" * 100_000]
)
def test_malformed_conditions_say_how_to_get_them(ratings_folder, text):
    path = (
        ratings_folder
        / "imagenhub"
        / "museum"
        / "ImagenHub_Control-Guided_IG"
        / "dataset_lookup.json"
    )
    path.parent.mkdir(parents=True)
    path.write_text(text)
    line = refusal(imagenhub.load, ratings_folder, "cig")
    assert re.search(
        r"dataset_lookup.json: .*; run `vieval prepare imagenhub` again", line
    )
    assert imagenhub.missing(ratings_folder, "cig") == [line]


def test_an_unknown_part_is_told_with_the_seven(tmp_path):
    assert (
        "unknown part 'tei' of imagenhub; known parts: tig, mie, tie, sdig, sdie, mcic, cig"
        in refusal(imagenhub.load, tmp_path, "tei")
    )


def test_conditions_are_cleaned_as_the_authors_do():
    sdig, sdie = imagenhub.TASKS["sdig"], imagenhub.TASKS["sdie"]
    assert _texts("sdig", {"prompt": "a <token> dog"}, sdig) == {"prompt": "a dog"}
    found = _texts("sdie", {"subject": "bear_plushie"}, sdie)
    assert found == {"subject": "bear plushie"}
    found = _texts("cig", {"text": "a street"}, imagenhub.TASKS["cig"])
    assert found == {"prompt": "a street"}


def test_the_public_ratings_are_all_there(shared_data):
    counts = {task: len(imagenhub.load(shared_data, task)) for task in imagenhub.TASKS}
    assert counts == {
        "tig": 985,
        "mie": 716,
        "tie": 1432,
        "sdig": 600,
        "sdie": 462,
        "mcic": 306,
        "cig": 300,
    }
    assert counts == imagenhub.BENCHMARK.parts
