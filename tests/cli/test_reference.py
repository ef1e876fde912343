"""Generators beside a reference: the whole road of `vieval rank --reference`, on real crops."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from tests.stored_results import read_lines, write_lines

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
    """80 crops: OLD, its model again, an equal build, a noisy one, one with eight black images."""
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


def ranked(vieval, builds, first, second, *flags, code=None):
    line = (
        f"rank {builds / first} {builds / second} --prompts {builds}/prompts.csv "
        f"--reference {builds}/old --judge ssim --margin 0.05"
    )
    return vieval(line, *flags, code=code).out


@pytest.mark.parametrize(
    ("build", "answers"),
    [("equal", ("PASS",)), ("strong", ("FAIL",)), ("black", ("FAIL", "INCONCLUSIVE"))],
)
def test_a_build_is_gated_by_likeness(build, answers, builds, vieval):
    printed = ranked(vieval, builds, build, "rerun")
    assert printed.startswith(answers)
    assert "Similarity to the reference images" in printed
    assert re.search(rf"{build} +psnr +\d+\.\d \[", printed)


def test_the_page_shows_the_most_different_pairs(builds, tmp_path, vieval):
    page = tmp_path / "page.html"
    ranked(vieval, builds, "black", "old", "--html", page)
    text = page.read_text()
    assert "The 10 most different pairs" in text
    assert text.count("<b>difference ×4</b>") == 10
    section = text[text.index("Similarity to the references") :]
    assert "<td>old</td>" not in section[: section.index("</table>")]


def test_verdicts_of_another_judge_have_the_likeness_beside_them(builds, vieval):
    folders = (builds / "strong", builds / "old", "--prompts", builds / "prompts.csv")
    flags = ("--judge", "sharpness", "--reference", builds / "old")
    printed = vieval("rank", *folders, *flags).out
    assert printed.startswith("sharpness finds")
    assert re.search(r"ssim +0\.\d+ \[", printed)


def test_a_reference_must_be_one_folder_and_needs_prompts(builds, tmp_path, vieval):
    told = tmp_path / "new"
    told.mkdir()
    Image.new("RGB", (20, 20)).save(told / "p0.png")
    (told / "p0.txt").write_text("a cat")
    several = f"{builds}/equal --prompts {builds}/prompts.csv --reference {builds}"
    for arguments, message in (
        (f"{told} --reference {told}", "--reference requires --prompts"),
        (several, "must be one image folder, got 5 folders"),
        (several.partition(" --reference")[0], "(it supports mie, tie, sdie); pass"),
    ):
        assert message in vieval(f"rank {arguments} --judge ssim", code=1).err


def test_a_samples_file_may_have_references_of_any_kind(builds, tmp_path, vieval):
    roles = {"output": "rerun", "reference": "old"}
    rows = []
    for n, kind in enumerate(("tig", "cig", "own")):
        files = {role: str(builds / name / f"p{n}.png") for role, name in roles.items()}
        row = {"uid": f"p{n}", "kind": kind, "images": files}
        rows.append({**row, "texts": {"prompt": "a photograph"}})
    samples, out = tmp_path / "samples.jsonl", tmp_path / "out.jsonl"
    write_lines(samples, rows)
    vieval("score", samples, "--judge", "ssim", "--out", out)
    assert all(0.8 < verdict["scores"]["SC"] < 1 for verdict in read_lines(out))
