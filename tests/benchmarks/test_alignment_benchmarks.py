"""Alignment benchmarks as samples, what is said when their files are wrong, and what preparing
them makes.
"""

import json
import re
from collections import Counter
from shlex import split

import numpy as np
import pytest
from PIL import Image

from tests.benchmarks.alignment_files import FILES
from tests.refusals import refusal
from vieval_plugin import images
from vieval_plugin.benchmarks import registry
from vieval_plugin.benchmarks.benchmark import Preparing

NAMES = split(
    "winoground eqben_mini genai_bench_t2i tifa160 seetrue pickapic flickr8k t2vscore "
    "stanfordt23d t2i_eval_bench"
)
BENCHMARKS = {name: registry.benchmark(name) for name in NAMES}
TIFA_MODELS = ("mini_dalle", "vq_diffusion")

PARTS = {"genai_bench_t2i": "527", "seetrue": "drawbench", "t2i_eval_bench": "tig"}


@pytest.fixture
def root(tmp_path):
    """A data folder with a few rows of every benchmark and no images."""
    for benchmark, files in FILES.items():
        for name, text in files.items():
            path = tmp_path / benchmark / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return tmp_path


def samples(root, benchmark):
    return BENCHMARKS[benchmark].load(root, PARTS.get(benchmark, "all"))


def missing(root, benchmark):
    return BENCHMARKS[benchmark].missing(root, PARTS.get(benchmark, "all"))


def prepare(benchmark, root, **asked):
    return BENCHMARKS[benchmark].prepare(root, Preparing(**asked))


def draw(root, benchmark, suffix=None):
    """Draws every image that a benchmark's samples name."""
    for sample in samples(root, benchmark):
        for image in sample.images.values():
            path = image.source.with_suffix(suffix or image.source.suffix)
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), "teal").save(path)


def test_eqben_is_read_as_its_authors_packed_it_and_its_arrays_become_images(root):
    folder = root / "eqben_mini"
    (folder / "examples.jsonl").unlink()
    files = {"image0": "youcook2/a.npy", "image1": "sd/b.jpg"}
    example = {**files, "caption0": "a pan", "caption1": "a pot"}
    (folder / "all_select.json").write_text(json.dumps([example]))
    blue_first = np.zeros((4, 6, 3), np.uint8)
    blue_first[:, :, 2] = 200
    array = folder / "images" / "youcook2" / "a.npy"
    array.parent.mkdir(parents=True)
    np.save(array, blue_first)
    found = samples(root, "eqben_mini")
    assert [(s.id.uid, s.tags) for s in found][:2] == [
        ("0#i0t0", ("youcook2",)),
        ("0#i0t1", ("youcook2",)),
    ]

    report = prepare("eqben_mini", root)
    assert not report.complete
    expected = "images: 1 of 2 images missing (first: sd/b.jpg); put all_select.json"
    assert expected in report.lines[0]
    assert images.decode(found[0].images["output"]).getpixel((0, 0)) == (200, 0, 0)

    np.save(array, np.zeros(3))
    array.with_suffix(".png").unlink()
    (folder / "images" / "sd").mkdir()
    Image.new("RGB", (4, 4)).save(folder / "images" / "sd" / "b.jpg")
    line = prepare("eqben_mini", root).lines[0]
    assert re.search(r"a.npy: must be an image .* got float64 of shape \(3,\)", line)
    array.write_bytes(b"no array")
    line = prepare("eqben_mini", root).lines[0]
    assert "a.npy: not a readable NumPy array" in line


def test_fewer_views_are_taken_where_fewer_were_prepared(root):
    prepare("stanfordt23d", root, count=2)
    views = list(samples(root, "stanfordt23d")[0].images)
    assert views == ["view_0", "view_1", "output"]


@pytest.mark.parametrize(
    ("benchmark", "suffix"), [("t2vscore", ".png"), ("stanfordt23d", ".jpg")]
)
def test_frames_and_views_are_taken_in_the_other_format_too(root, benchmark, suffix):
    draw(root, benchmark, suffix)
    shown = [image for s in samples(root, benchmark) for image in s.images.values()]
    assert {image.source.suffix for image in shown} == {suffix}
    assert missing(root, benchmark) == []


def test_without_images_preparing_makes_and_misses_none(root):
    (root / "t2vscore" / "videos").mkdir()
    report = prepare("t2vscore", root, images=False)
    said = "t2vscore/all: ready, 2 samples (the published set has 2543)"
    assert (report.complete, report.lines) == (True, (said,))
    left = sorted(path.name for path in (root / "t2vscore").iterdir())
    assert left == ["t2vscore_alignment_score.json", "videos"]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_absent_images_are_counted_with_what_to_do(root, benchmark):
    lacking = missing(root, benchmark)
    assert lacking
    form = r".+: (\d+) of \1 images missing \(first: .+\); (put|unpack|write) .+"
    assert all(re.fullmatch(form, line) for line in lacking)
    draw(root, benchmark)
    assert missing(root, benchmark) == []
    report = prepare(benchmark, root, parts=[PARTS.get(benchmark, "all")])
    assert report.complete
    said = f"{benchmark}/{PARTS.get(benchmark, 'all')}: ready, "
    said += rf"{len(samples(root, benchmark))} samples?"
    assert re.fullmatch(rf"{said}( \(the published set has \d+\))?", report.lines[-1])


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_without_its_files_preparing_is_not_complete(tmp_path, benchmark):
    assert not prepare(benchmark, tmp_path).complete


def test_wrong_requests_are_told(root):
    said = refusal(BENCHMARKS["seetrue"].load, root, "all")
    known = "known parts: drawbench, editbench, coco_t2i"
    assert f"unknown part 'all' of seetrue; {known}" in said
    for benchmark, asked, said in (
        ("seetrue", {"parts": ["all"]}, "unknown part 'all' of seetrue"),
        ("tifa160", {"count": 3}, "tifa160 has one image per sample"),
        ("t2vscore", {"count": 0}, "frames or views must be at least 1, got 0"),
    ):
        assert said in refusal(prepare, benchmark, root, **asked)
    (root / "winoground" / "examples.jsonl").write_text("\n")
    line = missing(root, "winoground")[0]
    assert "no samples of part all; put examples.jsonl" in line


@pytest.mark.parametrize(
    ("benchmark", "part", "models", "ratings"),
    [
        ("tifa160", "all", dict.fromkeys(TIFA_MODELS, 160), {5: 796, 4: 3, 3: 1}),
        ("seetrue", "drawbench", {"unnamed": 1312}, {1: 1312}),
        ("seetrue", "editbench", {"unnamed": 3827}, {1: 3827}),
        ("seetrue", "coco_t2i", {"unnamed": 1791}, {1: 1791}),
        ("t2vscore", "all", {"gen2": 495, "floor33": 512, "zeroscope": 512}, {1: 2543}),
        ("stanfordt23d", "all", dict.fromkeys(("shap-e", "mvdream"), 60), {3: 360}),
    ],
)
def test_published_models_and_ratings(
    shared_data, tmp_path, benchmark, part, models, ratings
):
    path = shared_data / "t2v_metrics"
    (tmp_path / benchmark).symlink_to(path, target_is_directory=True)
    found = BENCHMARKS[benchmark].load(tmp_path, part)
    assert Counter(len(s.ratings["SC"]) for s in found) == ratings
    assert models.items() <= Counter(s.id.image_model for s in found).items()
    assert {type(value) for s in found for value in s.ratings["SC"]} == {float}


def test_tifa160s_ratings_are_those_of_its_own_image(shared_data, tmp_path):
    path = shared_data / "t2v_metrics"
    (tmp_path / "tifa160").symlink_to(path, target_is_directory=True)
    by_id = {(s.id.uid, s.id.image_model): s for s in samples(tmp_path, "tifa160")}
    sample = by_id["partiprompt_366", "mini_dalle"]
    assert sample.ratings["SC"][:3] == (3.0, 5.0, 5.0)
    assert sample.images["output"].source.name == "partiprompt_366_mini_dalle.jpg"
