"""`vieval rank` of folders of images."""

from pathlib import Path

import pytest

from tests.brightness import by_brightness, images, levels_of, prompts, rough
from tests.fake_server import Fault

HERE = Path()
RANK = "vieval rank mine theirs --prompts prompts.csv --judge"


@pytest.fixture
def folders(approve, judge_server):
    """Writes prompts and folders of images, each by its brightness (or its mean); a judge takes
    the brighter.
    """

    def write(number=24, draws=1, **levels):
        for seed, (name, level) in enumerate(
            (levels or {"mine": 0.6, "theirs": 0.5}).items(), start=1
        ):
            images(
                HERE,
                name,
                level if callable(level) else rough(level, seed),
                number,
                draws,
            )
        prompts(HERE, number)

    judge_server(reply=by_brightness())
    return write


def test_pairs_in_both_orders(approve, folders):
    folders()
    approve(
        f"{RANK} pairwise --out v.jsonl",
        "vieval rank v.jsonl",
        "vieval report v.jsonl --out r",
        "cat r/report.md",
    )


def test_plan(approve, folders):
    folders()
    approve(f"{RANK} viescore --plan")


def test_position_bias(approve, folders, judge_server):
    folders()
    judge_server(reply=by_brightness(bias=0.15))
    approve(f"{RANK} pairwise")


def test_contradictions_decide_nothing(approve, folders, judge_server):
    folders(mine=0.2, theirs=0.8)
    judge_server(reply=by_brightness(bias=2))
    approve(
        f"{RANK} pairwise --margin 0.02 --out v.jsonl",
        f"{RANK} pairwise --judge viescore",
        "vieval report v.jsonl --out r",
        "cat r/report.md",
    )


def test_scores_with_images_that_are_missing_or_broken(approve, folders):
    folders(mine=0.7, theirs=0.5)
    Path("mine/p3.png").unlink()
    Path("mine/p4.png").write_text("no image")
    approve(f"{RANK} viescore")


@pytest.mark.parametrize(("level", "lost"), [(0.1, 0), (0.1, 3), (0.9, 3)])
def test_missing_images_of_a_gate(approve, folders, level, lost):
    folders(40, mine=lambda *_: 0.9, theirs=lambda *_: level)
    for name in [
        *(f"theirs/p{n}.png" for n in range(5)),
        *(f"mine/p{n}.png" for n in range(5, 5 + lost)),
    ]:
        Path(name).unlink()
    approve(
        f"{RANK} pairwise --margin 0.2 --out v.jsonl",
        "vieval rank v.jsonl --margin 0.2",
    )


def test_three_and_five_folders(approve, folders):
    folders(a=0.8, b=0.5, c=0.5, d=0.25, e=0.5)
    approve(
        *(
            f"vieval rank {names} --prompts prompts.csv --judge pairwise"
            for names in ("a b c", "b c e", "a b c d e")
        )
    )


def test_equal_images(approve, folders):
    folders(
        mine=lambda prompt, _: 0.5 + prompt / 100,
        theirs=lambda prompt, _: 0.5 + prompt / 100,
    )
    approve(f"{RANK} pairwise", f"{RANK} viescore", f"{RANK} viescore --margin 0")


def test_one_prompt(approve, folders):
    folders(1, mine=lambda *_: 0.5, theirs=lambda *_: 0.4)
    approve(
        f"{RANK} pairwise",
        f"{RANK} viescore",
        "vieval rank theirs mine --prompts prompts.csv --judge pairwise",
    )


def test_folders_of_one_name(approve, folders):
    for run in ("runA", "runB"):
        Path(run).mkdir()
    folders(8, **{"runA/images": 0.9, "runB/images": 0.1})
    approve(
        *(
            f"vieval rank runA/images {other}/images --prompts prompts.csv --judge viescore"
            for other in ("runB", "runA")
        )
    )


@pytest.mark.parametrize("number", [5, 12])
def test_gate_on_few_prompts(approve, folders, number):
    folders(number, mine=lambda *_: 0.9, theirs=lambda *_: 0.1)
    approve(f"{RANK} pairwise --margin 0.02")


def test_gate_in_the_order_of_the_command(approve, folders):
    folders(mine=0.47, theirs=0.5)
    approve(f"{RANK} viescore --margin 0.2", f"{RANK} pairwise")


def test_gate_of_nearly_equal_scores(approve, folders):
    folders(mine=lambda *_: 0.5, theirs=lambda *_: 0.51)
    approve(f"{RANK} viescore --margin 0.02")


def test_several_images_a_prompt(approve, folders):
    folders(10, draws=2)
    approve(
        f"{RANK} pairwise",
        "vieval rank mine --prompts prompts.csv --judge viescore --best-of",
    )


def test_equal_win_rates(approve, folders):
    folders(a=lambda *_: 0.5, b=lambda *_: 0.5, c=lambda *_: 0.5)
    approve("vieval rank a b c --prompts prompts.csv --judge pairwise")


def test_refused(approve, folders):
    folders(3)
    Path("wording.csv").write_text("name,wording\np0,a grey square\n")
    approve(
        "vieval rank v.jsonl --judge pairwise",
        "vieval rank v.jsonl --columns uid=key",
        "vieval rank v.jsonl --out x.jsonl",
        "vieval rank mine --prompts prompts.csv --judge pairwise",
        "vieval rank mine --prompts prompts.csv --judge sharpness --margin 0.1",
        (
            "vieval rank mine theirs --prompts prompts.csv --judge sharpness --judge histogram "
            "--margin 0.1"
        ),
        "vieval rank mine theirs --judge sharpness",
        (
            "vieval rank mine theirs --prompts wording.csv --columns uid=nam,prompt=wording "
            "--judge sharpness"
        ),
        "vieval rank mine/p0.png",
    )


def test_failed_calls(approve, folders, judge_server):
    folders(8)
    level = (
        round(255 * rough(0.6, 1)(3, 0)) / 255
    )  # of one image, asked about as often as it may be
    faults = lambda number, body: (
        Fault("overlong") if level in levels_of(body) else None
    )
    judge_server(reply=by_brightness(), faults=faults)
    approve(
        f"{RANK} pairwise",
        f"{RANK} pairwise --margin 0.05 --out v.jsonl",
        "vieval rank v.jsonl --margin 0.05",
    )


def test_replies_that_cannot_be_read(approve, folders, judge_server):
    folders(3)
    judge_server(reply=lambda body: "I cannot say.")
    approve(f"{RANK} viescore")


def test_prompts_in_the_folder(approve, folders):
    folders(3)
    Path("prompts.csv").rename("mine/prompts.csv")
    approve("vieval rank mine theirs --judge viescore")
