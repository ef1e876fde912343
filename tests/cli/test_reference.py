"""Generators beside a reference: the whole road of `vieval rank --reference`, on real crops."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from tests.stored_results import read_lines, write_lines
from vieval_plugin.cli import main

skimage_data = pytest.importorskip("skimage.data")
SIDE = 96


def saved(pixels, noise, quality, seed):
    """A crop with noise, after JPEG."""
    drawn = np.random.default_rng(seed).normal(0, noise, pixels.shape)
    noisy = np.clip(pixels + drawn, 0, 255).astype("uint8")
    file = io.BytesIO()
    Image.fromarray(noisy).save(file, "JPEG", quality=quality)
    return Image.open(file)


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """80 crops: OLD, its model run again, an equal build, one with strong noise, one with eight
    black images.
    """
    root, rng = tmp_path_factory.mktemp("builds"), np.random.default_rng(0)
    photos = [skimage_data.astronaut(), skimage_data.coffee(), skimage_data.chelsea()]
    for name in ("old", "rerun", "equal", "strong", "black"):
        (root / name).mkdir()
    for n in range(80):
        photo = photos[n % 3]
        y, x = (rng.integers(length - SIDE) for length in photo.shape[:2])
        crop, name = photo[y : y + SIDE, x : x + SIDE].astype(float), f"p{n}.png"
        Image.fromarray(crop.astype("uint8")).save(root / "old" / name)
        saved(crop, 3, 90, n).save(root / "rerun" / name)
        saved(crop, 3, 90, 100 + n).save(root / "equal" / name)
        saved(crop, 15, 40, 200 + n).save(root / "strong" / name)
        black = Image.new("RGB", (SIDE, SIDE))
        path = root / "black" / name
        (black if n % 10 == 0 else saved(crop, 3, 90, 300 + n)).save(path)
    prompts = [f"p{n},photograph {n} of {n * n}" for n in range(80)]
    (root / "prompts.csv").write_text("\n".join(["uid,prompt", *prompts]) + "\n")
    return root


def ranked(builds, first, second, *flags):
    command = ["rank", str(builds / first), str(builds / second), "--prompts"]
    reference = [str(builds / "prompts.csv"), "--reference", str(builds / "old")]
    return main([*command, *reference, "--judge", "ssim", "--margin", "0.05", *flags])


@pytest.mark.parametrize(
    ("build", "codes"), [("equal", {0}), ("strong", {3}), ("black", {3, 4})]
)
def test_a_build_is_gated_by_likeness(build, codes, builds, capsys):
    assert ranked(builds, build, "rerun") in codes
    printed = capsys.readouterr().out
    assert "Similarity to the reference images" in printed
    assert re.search(rf"{build} +psnr +\d+\.\d \[", printed)


def test_the_page_shows_the_most_different_pairs(builds, tmp_path):
    page = tmp_path / "page.html"
    ranked(builds, "black", "old", "--html", str(page))
    text = page.read_text()
    assert "The 10 most different pairs" in text
    assert text.count("<b>difference ×4</b>") == 10
    section = text[text.index("Similarity to the references") :]
    assert "<td>old</td>" not in section[: section.index("</table>")]


def test_verdicts_of_another_judge_have_the_likeness_beside_them(builds, capsys):
    names = [str(builds / folder) for folder in ("strong", "old")]
    command = ["rank", *names, "--prompts", str(builds / "prompts.csv")]
    command += ["--judge", "sharpness", "--reference", str(builds / "old")]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("sharpness finds")
    assert re.search(r"ssim +0\.\d+ \[", printed)


def test_a_reference_must_be_one_folder_and_needs_prompts(builds, tmp_path, capsys):
    told = tmp_path / "new"
    told.mkdir()
    Image.new("RGB", (20, 20)).save(told / "p0.png")
    (told / "p0.txt").write_text("a cat")
    several = ["--prompts", str(builds / "prompts.csv"), "--reference", str(builds)]
    for folder, arguments, message in (
        (told, ["--reference", str(told)], "--reference requires --prompts"),
        (builds / "equal", several, "must be one image folder, got 5 folders"),
        (
            builds / "equal",
            several[:2],
            "kind 'tig' (it supports mie, tie, sdie); pass",
        ),
    ):
        assert main(["rank", str(folder), "--judge", "ssim", *arguments]) == 1
        assert message in capsys.readouterr().err


def test_a_samples_file_may_have_references_of_any_kind(builds, tmp_path, vieval):
    rows = [
        {
            "uid": f"p{n}",
            "kind": kind,
            "images": {
                "output": str(builds / "rerun" / f"p{n}.png"),
                "reference": str(builds / "old" / f"p{n}.png"),
            },
            "texts": {"prompt": "a photograph"},
        }
        for n, kind in enumerate(("tig", "cig", "own"))
    ]
    samples, out = tmp_path / "samples.jsonl", tmp_path / "out.jsonl"
    write_lines(samples, rows)
    vieval("score", samples, "--judge", "ssim", "--out", out)
    verdicts = read_lines(out)
    assert all(0.8 < verdict["scores"]["SC"] < 1 for verdict in verdicts)
