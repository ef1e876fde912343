"""The hub as tests of benchmarks would have it: rows in memory, with the bytes of images where
theirs are; and a few rows of each benchmark that it has.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import datasets

from tests.pictures import plain

COLOURS = {"one": "red", "two": "green", "three": "blue"}
LETTERS = dict(zip("ABCD", ("red", "green", "blue", "white"), strict=True))


def stored(colour, form="PNG"):
    """An image as a cell of a row."""
    return {"bytes": plain(colour, form=form), "path": None}


def hub_with(monkeypatch, *published):
    """Rows by configuration, and the configurations asked for, of a repository and split; one
    without rows is not to be had.
    """
    rows, asked = defaultdict(list), []

    def load_dataset(name, config, split, **options):
        assert (name, split) == published
        asked.append(config)
        if not rows[config]:
            raise ConnectionError("no\nroute to the hub")
        table = datasets.Dataset.from_list(rows[config])
        names = table.column_names
        features = {name: feature(name, table.features[name]) for name in names}
        return table.cast(datasets.Features(features))

    def feature(column, found):
        if column.endswith("_images"):
            return [datasets.Image()]
        is_image = re.fullmatch(r".*_image|candidate_\d", column)
        return datasets.Image() if is_image else found

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return rows, asked


def genai_rows():
    """Three votes on the edits of three models."""
    texts = {"source": "a cat", "target": "a cat in a hat", "instruct": "add a hat"}
    shown = [
        ("one", "two", "leftvote"),
        ("two", "three", "bothbad_vote"),
        ("one", "three", "tievote"),
    ]
    return [
        {
            **{f"{name}_prompt": text for name, text in texts.items()},
            "source_image": stored("grey", "JPEG"),
            "left_output_image": stored(COLOURS[left]),
            "right_output_image": stored(COLOURS[right]),
            "left_model": left,
            "right_model": right,
            "vote_type": vote,
        }
        for left, right, vote in shown
    ]


def editscore_row(number, dimension, **cells):
    """A pair of edits, the better one first."""
    return {
        "key": [f"{number}_a", f"{number}_b"],
        "instruction": f"edit {number}",
        "input_image": stored("grey"),
        "output_images": [stored((number, 0, 0)), stored((0, number, 9))],
        "task_type": "style_change",
        "dimension": dimension,
        **cells,
    }


def editreward_rows(name, of, said, **cells):
    """A row a pair of a group; `said` has what people say of each, such as `AvsB: B>A`."""
    return [
        {
            "id": f"{name}_{number}",
            "instruction": f"edit {name}",
            "source_image": stored("grey"),
            "candidate_1": stored(LETTERS[compared[0]]),
            "candidate_2": stored(LETTERS[compared[-1]]),
            "model_1": f"model {compared[0]}",
            "model_2": f"model {compared[-1]}",
            "ranking": ranking,
            "comparison_type": compared,
            "dataset": f"{of}pair",
            "num_candidates": of,
            **cells,
        }
        for number, (compared, ranking) in enumerate(said.items())
    ]


def mmrb2_row(name, text, sources, **cells):
    """A pair of responses, the second in two images, with three annotations."""
    responses = {"a": ("one", ["red"]), "b": ("two", ["blue", "green"])}
    row = {
        "pair_id": name,
        "prompt_text": text,
        "prompt_images": [stored(colour) for colour in sources],
        "chosen": "a",
        "human_annotations": json.dumps([5, 2, 6]),
        "prompt_source": "emu-edit",
        "prompt_metadata": json.dumps({"id": 7, "task": "local", "split": "test"}),
    }
    for side, (model, colours) in responses.items():
        images = [stored(colour) for colour in colours]
        row[f"response_{side}_text"] = ""
        row[f"response_{side}_images"] = images
        row[f"response_{side}_model"] = model
    return row | cells


@dataclass(frozen=True)
class HubCase:
    """A benchmark of the hub, and what preparing it from a few rows is to say."""

    name: str
    repository: tuple[str, str]
    config: str | None
    part: str
    rows: Callable[[], list]
    ready: str


HUB = [
    HubCase(
        "genai_bench_tiger",
        ("TIGER-Lab/GenAI-Bench", "test_v1"),
        "image_edition",
        "edit",
        genai_rows,
        "3 contests (the published set has 919)",
    ),
    HubCase(
        "editscore_bench",
        ("EditScore/EditReward-Bench", "train"),
        None,
        "overall",
        lambda: [editscore_row(1, "overall"), editscore_row(2, "consistency")],
        "1 contest (the published set has 1238)",
    ),
    HubCase(
        "editreward_bench_tiger",
        ("TIGER-Lab/EditReward-Bench", "train"),
        None,
        "all",
        lambda: editreward_rows("7", 2, {"AvsB": "A=B=Good"}),
        "1 contest (the published set has 484)",
    ),
    HubCase(
        "mmrb2",
        ("rl-research/multimodal-rewardbench-2", "test"),
        "edit",
        "edit",
        lambda: [mmrb2_row("x", "<image_0> Add a hat", ["grey"])],
        "1 contest (the published set has 1000)",
    ),
]
