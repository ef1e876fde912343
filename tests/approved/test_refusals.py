"""What wrong input is refused with, where no command is needed to see it: an input, and its
line.
"""

import json
import re

import pytest

from tests.benchmarks import folders
from tests.benchmarks.folders import PAIRS, SIGNS, rating_rows, vote_rows
from tests.refusals import refusal
from vieval_plugin.benchmarks import in_folder, registry

write = folders.write  # a fixture
SIGN_CHANGES = (
    {"scal": [1, 5]}, {"scale": [5, 1]}, {"ratings": {"SC": ["rater1", "ratr2"]}}, {"columns": {"output": "imag"}},
    {"ratings": {"XX": ["rater1"]}}, {"ratings": None}, {"kind": "tgi"}, {"name": "Street Signs"},
    {"statistics": ["pearsn"]}, {"table": "../../secret.csv"}, {"split": {"imag": "{a}.png"}},
    {"split": {"image": "{caption}.png"}}, {"split": {"image": "{a}_{a}.png"}}, {"split": {"image": "{a}{b}.png"}},
    {"split": {"image": "x.png"}}, {"group": "{captoin} {model}"}, {"columns": {"output": "images/{imag}"}},
)  # fmt: skip
PAIR_CHANGES = (
    {"candidates": PAIRS["candidates"][:1]}, {"candidates": [{"output": "left", "model": "x"}] * 2},
    {"vote": {"column": "choice", "scheme": "two_way", "words": {"A": "left"}}},
    {"vote": {"column": "chioce", "scheme": "two_way"}}, {"scale": [1, 5]}, {"statistics": ["auroc"]},
)  # fmt: skip
CELLS = (
    {"rater2": 6}, {"rater2": "nan"}, {"rater1": "", "rater2": "", "rater3": ""}, {"image": "../../x.png"}, {"model": "painter"},
)  # fmt: skip
KEYS = (
    "lmms_eval: {task: imgedit, text: instruction, image: source, uid: key}\ntable: x.csv",
    "lmms_eval: {task: imgedit, text: instruction, image: source, uid: key}\ntwo_by_two: x.jsonl",
    "lmms_eval: {task: ../gedit, text: instruction, image: source, uid: key}", "lmms_eval: {tasks: x}",
)  # fmt: skip


@pytest.fixture
def approve_refusals(approve_text, tmp_path):
    """Compares the lines with which calls end, by name, with the case's file."""

    def compared(calls):
        lines = {}
        for name, call in calls:
            print(name)  # which one, where it is not refused
            lines[name] = refusal(*call).replace(str(tmp_path), "FOLDER")
        approve_text({name: re.sub(r"\s+", " ", line) for name, line in lines.items()})

    return compared


def test_benchmark_in_a_folder(approve_refusals, write, tmp_path):
    read, calls = in_folder.read_benchmark, []
    for number, change in enumerate(SIGN_CHANGES):
        calls.append(
            (
                json.dumps(change),
                (read, write(SIGNS, rating_rows(4), f"signs{number}", **change)),
            )
        )
    for number, change in enumerate(PAIR_CHANGES):
        calls.append(
            (
                json.dumps(change),
                (read, write(PAIRS, vote_rows(4), f"pairs{number}", **change)),
            )
        )
    for number, cells in enumerate(CELLS):
        first, second, *others = rating_rows(4)
        benchmark = read(
            write(SIGNS, [first, {**second, **cells}, *others], f"cells{number}")
        )
        calls.append((json.dumps(cells), (benchmark.load, tmp_path, "all")))
    for number, keys in enumerate(KEYS):
        (tmp_path / f"keys{number}").mkdir()
        (tmp_path / f"keys{number}" / in_folder.FILE).write_text(
            f"name: mine\nkind: tie\n{keys}"
        )
        calls.append((keys, (read, tmp_path / f"keys{number}")))
    first, *others = vote_rows(4)
    calls.append(
        (
            "vote",
            (
                read(write(PAIRS, [{**first, "choice": "C"}, *others], "vote")).load,
                tmp_path,
                "all",
            ),
        )
    )
    benchmark = read(
        write(SIGNS, rating_rows(4), "form", split={"image": "images/1{number}.png"})
    )
    calls.append(("form of a name", (benchmark.load, tmp_path, "all")))
    parts = write(
        SIGNS,
        [{**row, "split": "a/b"} for row in rating_rows(2)],
        "parts",
        parts={"column": "split"},
    )
    approve_refusals(
        [
            *calls,
            ("part", (read, parts)),
            ("no description", (registry.benchmark, str(tmp_path))),
        ]
    )
