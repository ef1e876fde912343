"""Ratings files as samples, and what is said when they are wrong."""

import re

import pytest

from tests.refusals import refusal
from vieval_plugin.benchmarks import imagenhub
from vieval_plugin.benchmarks.imagenhub.ratings import read_ratings
from vieval_plugin.benchmarks.imagenhub.samples import _texts

FOLDER = "ImagenHub_Control-Guided_IG"
RATER_2 = f"imagenhub/human_ratings/{FOLDER}/Control-Guided_IG_rater2.tsv"


def test_samples_come_in_uid_order_across_image_models(ratings_folder):
    samples = imagenhub.load(ratings_folder, "cig")
    found = [(s.id.uid, s.id.image_model) for s in samples]
    models = ("ControlNet", "UniControl")
    assert found == [(f"sample_{n}.jpg", model) for n in (2, 10) for model in models]
    assert {(s.kind, s.group == s.id.uid) for s in samples} == {("cig", True)}
    rated = {"SC": 0.5, "PQ": 1.0, "O": 0.5**0.5}
    assert samples[1].ratings == {
        aspect: (value,) * 3 for aspect, value in rated.items()
    }


def test_nothing_but_ratings_is_needed_to_name_images(ratings_folder):
    sample = imagenhub.load(ratings_folder, "cig")[0]
    museum = ratings_folder / "imagenhub" / "museum" / FOLDER
    assert sample.images["control"].source == museum / "input" / "sample_2.jpg"
    assert sample.images["output"].source == museum / "ControlNet" / "sample_2.jpg"


CONTROL_NET = "line 3, column ControlNet"
CELL = f"{CONTROL_NET}: must be [SC, PQ] "
LACKS = "column 'UniControl' is missing (found: uid, ControlNet, Other)"
NO_HEADER = "its first line must contain the column names uid, ControlNet, UniControl; "
DIFFER = "raters 1 and 2 must rate the same uids (first difference: sample_10.jpg)"


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        ("UniControl", "Other", [f"rater2.tsv: {LACKS}"]),
        ("[0, 1]", "[0.7, x]", [f"rater2.tsv: {CELL}", "got '[0.7, x]'"]),
        ("[0, 1]", "[0.7, 1]", [CELL, "got '[0.7, 1]'"]),
        ("[0, 1]", "[true, 1]", [CONTROL_NET]),
        ("[0, 1]\t", "", ["line 3: 2 cells, but the header has 3"]),
        ("sample_10", "sample_2", ["line 3: sample_2.jpg is already in"]),
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


def test_missing_lists_conditions_and_images(ratings_folder):
    lines = imagenhub.missing(ratings_folder, "cig")
    assert re.search(r"dataset_lookup.json: no conditions for 2 of 2 uids", lines[0])
    assert re.search(r"input: 2 of 2 images missing \(first: sample_2.jpg\)", lines[1])
    assert len(lines) == 4


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"sample_2.jpg": "a street"}', "[" * 100_000]
)
def test_malformed_conditions_say_how_to_get_them(ratings_folder, text):
    path = ratings_folder / "imagenhub" / "museum" / FOLDER / "dataset_lookup.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    line = refusal(imagenhub.load, ratings_folder, "cig")
    assert re.search(
        r"dataset_lookup.json: .*; run `vieval prepare imagenhub` ag", line
    )
    assert imagenhub.missing(ratings_folder, "cig") == [line]


def test_an_unknown_part_is_told_with_the_seven(tmp_path):
    line = refusal(imagenhub.load, tmp_path, "tei")
    known = "known parts: tig, mie, tie, sdig, sdie, mcic, cig"
    assert f"unknown part 'tei' of imagenhub; {known}" in line


def test_conditions_are_cleaned_as_the_authors_do():
    assert _texts("sdig", {"prompt": "a <token> dog"}) == {"prompt": "a dog"}
    assert _texts("sdie", {"subject": "bear_plushie"}) == {"subject": "bear plushie"}
    assert _texts("cig", {"text": "a street"}) == {"prompt": "a street"}
