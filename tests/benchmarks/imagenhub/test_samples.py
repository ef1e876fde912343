"""Ratings files as samples, and what is said when they are wrong."""

import re

from tests.refusals import refusal, refuses
from vieval_plugin.benchmarks import imagenhub
from vieval_plugin.benchmarks.imagenhub.samples import _texts

FOLDER = "ImagenHub_Control-Guided_IG"


def test_missing_lists_conditions_and_images(ratings_folder):
    lines = imagenhub.missing(ratings_folder, "cig")
    assert re.search(r"dataset_lookup.json: no conditions for 2 of 2 uids", lines[0])
    assert re.search(r"input: 2 of 2 images missing \(first: sample_2.jpg\)", lines[1])
    assert len(lines) == 4


def test_conditions_nested_too_deeply_are_one_line(ratings_folder):
    path = ratings_folder / "imagenhub" / "museum" / FOLDER / "dataset_lookup.json"
    path.parent.mkdir(parents=True)
    path.write_text("[" * 100_000)
    advice = "dataset_lookup.json: .*; run `vieval prepare imagenhub` again"
    refuses(advice, imagenhub.load, ratings_folder, "cig")


def test_an_unknown_part_is_told_with_the_seven(tmp_path):
    line = refusal(imagenhub.load, tmp_path, "tei")
    known = "known parts: tig, mie, tie, sdig, sdie, mcic, cig"
    assert f"unknown part 'tei' of imagenhub; {known}" in line


def test_conditions_are_cleaned_as_the_authors_do():
    assert _texts("sdig", {"prompt": "a <token> dog"}) == {"prompt": "a dog"}
    assert _texts("sdie", {"subject": "bear_plushie"}) == {"subject": "bear plushie"}
    assert _texts("cig", {"text": "a street"}) == {"prompt": "a street"}
