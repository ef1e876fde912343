"""Refusals of benchmarks in folders: an input, and its line."""

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
    read = in_folder.read_benchmark
    calls = []
    for number, change in enumerate(SIGN_CHANGES):
        folder = write(SIGNS, rating_rows(4), f"signs{number}", **change)
        calls.append((json.dumps(change), (read, folder)))
    for number, change in enumerate(PAIR_CHANGES):
        folder = write(PAIRS, vote_rows(4), f"pairs{number}", **change)
        calls.append((json.dumps(change), (read, folder)))

    def loading(*described, **changes):
        return (read(write(*described, **changes)).load, tmp_path, "all")

    for number, cells in enumerate(CELLS):
        first, second, *others = rating_rows(4)
        rows = [first, {**second, **cells}, *others]
        calls.append((json.dumps(cells), loading(SIGNS, rows, f"cells{number}")))
    for number, keys in enumerate(KEYS):
        folder = tmp_path / f"keys{number}"
        folder.mkdir()
        (folder / in_folder.FILE).write_text(f"name: mine\nkind: tie\n{keys}")
        calls.append((keys, (read, folder)))
    first, *others = vote_rows(4)
    votes = [{**first, "choice": "C"}, *others]
    form = {"split": {"image": "images/1{number}.png"}}
    named = [{**row, "split": "a/b"} for row in rating_rows(2)]
    parts = write(SIGNS, named, "parts", parts={"column": "split"})
    calls += [
        ("vote", loading(PAIRS, votes, "vote")),
        ("form of a name", loading(SIGNS, rating_rows(4), "form", **form)),
        ("part", (read, parts)),
        ("no description", (registry.benchmark, str(tmp_path))),
    ]
    approve_refusals(calls)
