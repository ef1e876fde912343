"""Benchmarks of one's own, each a folder."""

import PIL.Image
import pytest
import yaml

from tests.builders import a_table
from vieval_plugin.benchmarks import in_folder

SIGNS = {
    "name": "signs",
    "title": "Street signs",
    "table": "ratings.csv",
    "kind": "tig",
    "columns": {"output": "image", "prompt": "caption", "image_model": "model"}
    | {"uid": "id"},
    "ratings": {"SC": ["rater1", "rater2", "rater3"]},
    "scale": [1, 5],
    "tags": ["style"],
    "licence": "CC0-1.0",
}


PAIRS = {
    "name": "sign_pairs",
    "table": "votes.csv",
    "kind": "tig",
    "columns": {"prompt": "caption"},
    "candidates": [
        {"output": "left", "image_model": "left_model"},
        {"output": "right"},
    ],
    "vote": {
        "column": "choice",
        "scheme": "three_way",
        "annotators": ["a", "b"],
        "words": {"A": "first", "B": "second", "=": "tie"},
    },
}


def rating_rows(number=50):
    return [
        {
            "id": n // 2,
            "image": f"images/{n}.png",
            "caption": f"a sign that says {n // 2}",
            "model": ("painter", "printer")[n % 2],
            **{f"rater{k + 1}": 1 + (n * n + (n + k) % 3 // 2) % 5 for k in range(3)},
            "style": ("round", "square")[n % 3 % 2],
        }
        for n in range(number)
    ]


def vote_rows(number=20):
    answers = [("A", "B", "=")[n * n % 3] for n in range(number)]
    return [
        {
            "caption": f"a sign that says {n}",
            "left": f"images/{2 * n}.png",
            "right": f"images/{2 * n + 1}.png",
            "left_model": "painter",
            **dict.fromkeys(("choice", "a", "b"), answers[n]),
        }
        for n in range(number)
    ]


@pytest.fixture
def write(tmp_path):
    """Writes a folder with a description, with other keys (None: without), a table and images;
    its path.
    """

    def folder(description, rows, place="", **changes):
        path = tmp_path / "benchmarks" / (place or description["name"])
        (path / "images").mkdir(parents=True, exist_ok=True)
        for n in range(50):
            picture = PIL.Image.new("RGB", (8, 8), (5 * n, 10, 20))
            picture.save(path / "images" / f"{n}.png")
        keys = {**description, **changes}
        document = {key: value for key, value in keys.items() if value is not None}
        (path / in_folder.FILE).write_text(yaml.safe_dump(document, sort_keys=False))
        is_jsonl = document.get("table", "").endswith(".jsonl")
        a_table(path / (document if is_jsonl else description)["table"], rows)
        return path

    return folder
