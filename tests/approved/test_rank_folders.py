"""`vieval rank` of folders of images."""

from pathlib import Path

import pytest

from tests.brightness import by_brightness, images, levels_of, prompts, rough
from tests.fake_server import Fault

HERE = Path()
WITH = "--prompts prompts.csv --judge"
RANK = f"vieval rank mine theirs {WITH}"
REPORT = ("vieval report v.jsonl --out r", "cat r/report.md")


def even(level):
    """The same brightness for all prompts."""
    return lambda *_: level


def rising(prompt, _):
    return 0.5 + prompt / 100


@pytest.fixture
def folders(approve, judge_server):
    """Writes prompts and folders of images by their brightness."""

    def write(number=24, draws=1, **levels):
        named = levels or {"mine": 0.6, "theirs": 0.5}
        for seed, (name, level) in enumerate(named.items(), start=1):
            brightness = level if callable(level) else rough(level, seed)
            images(HERE, name, brightness, number, draws)
        prompts(HERE, number)

    judge_server(reply=by_brightness())
    return write


#: Number of prompts, folders by their brightness, and commands.
CASES = {
    "pairs_in_both_orders": (24, {}, f"{RANK} pairwise --out v.jsonl", "vieval rank v.jsonl", *REPORT),
    "plan": (24, {}, f"{RANK} viescore --plan"),
    "equal_images": (
        24, {"mine": rising, "theirs": rising},
        f"{RANK} pairwise", f"{RANK} viescore", f"{RANK} viescore --margin 0",
    ),
    "one_prompt": (
        1, {"mine": even(0.5), "theirs": even(0.4)},
        f"{RANK} pairwise", f"{RANK} viescore", f"vieval rank theirs mine {WITH} pairwise",
    ),
    "gate_on_5_prompts": (5, {"mine": even(0.9), "theirs": even(0.1)}, f"{RANK} pairwise --margin 0.02"),
    "gate_on_12_prompts": (12, {"mine": even(0.9), "theirs": even(0.1)}, f"{RANK} pairwise --margin 0.02"),
    "gate_in_the_order_of_the_command": (
        24, {"mine": 0.47, "theirs": 0.5}, f"{RANK} viescore --margin 0.2", f"{RANK} pairwise",
    ),
    "gate_of_nearly_equal_scores": (
        24, {"mine": even(0.5), "theirs": even(0.51)}, f"{RANK} viescore --margin 0.02",
    ),
    "equal_win_rates": (24, dict.fromkeys("abc", even(0.5)), f"vieval rank a b c {WITH} pairwise"),
    "three_and_five_folders": (
        24, {"a": 0.8, "b": 0.5, "c": 0.5, "d": 0.25, "e": 0.5},
        *(f"vieval rank {names} {WITH} pairwise" for names in ("a b c", "b c e", "a b c d e")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_folders(approve, folders, name):
    number, levels, *commands = CASES[name]
    folders(number, **levels)
    approve(*commands)


def test_position_bias(approve, folders, judge_server):
    folders()
    judge_server(reply=by_brightness(bias=0.15))
    approve(f"{RANK} pairwise")


def test_contradictions_decide_nothing(approve, folders, judge_server):
    folders(mine=0.2, theirs=0.8)
    judge_server(reply=by_brightness(bias=2))
    gate = f"{RANK} pairwise --margin 0.02 --out v.jsonl"
    approve(gate, f"{RANK} pairwise --judge viescore", *REPORT)


def test_scores_with_images_that_are_missing_or_broken(approve, folders):
    folders(mine=0.7, theirs=0.5)
    Path("mine/p3.png").unlink()
    Path("mine/p4.png").write_text("no image")
    approve(f"{RANK} viescore")


@pytest.mark.parametrize(("level", "lost"), [(0.1, 0), (0.1, 3), (0.9, 3)])
def test_missing_images_of_a_gate(approve, folders, level, lost):
    folders(40, mine=even(0.9), theirs=even(level))
    for n in range(5 + lost):
        Path(f"{'theirs' if n < 5 else 'mine'}/p{n}.png").unlink()
    again = "vieval rank v.jsonl --margin 0.2"
    approve(f"{RANK} pairwise --margin 0.2 --out v.jsonl", again)


def test_folders_of_one_name(approve, folders):
    for run in ("runA", "runB"):
        Path(run).mkdir()
    folders(8, **{"runA/images": 0.9, "runB/images": 0.1})
    rank = f"vieval rank runA/images {{}}/images {WITH} viescore"
    approve(rank.format("runB"), rank.format("runA"))


def test_several_images_a_prompt(approve, folders):
    folders(10, draws=2)
    approve(f"{RANK} pairwise", f"vieval rank mine {WITH} viescore --best-of")


def test_refused(approve, folders):
    folders(3)
    Path("wording.csv").write_text("name,wording\np0,a grey square\n")
    columns = "--prompts wording.csv --columns uid=nam,prompt=wording"
    approve(
        "vieval rank v.jsonl --judge pairwise",
        "vieval rank v.jsonl --columns uid=key",
        "vieval rank v.jsonl --out x.jsonl",
        f"vieval rank mine {WITH} pairwise",
        f"vieval rank mine {WITH} sharpness --margin 0.1",
        f"{RANK} sharpness --judge histogram --margin 0.1",
        "vieval rank mine theirs --judge sharpness",
        f"vieval rank mine theirs {columns} --judge sharpness",
        "vieval rank mine/p0.png",
    )


def test_failed_calls(approve, folders, judge_server):
    folders(8)
    # of one image, asked about as often as it may be
    level = round(255 * rough(0.6, 1)(3, 0)) / 255

    def faults(number, body):
        return Fault("overlong") if level in levels_of(body) else None

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
