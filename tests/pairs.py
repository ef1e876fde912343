"""A folder of T2I-Eval-Bench's shape: drawn images, prompts that name them, and three annotators
who mostly agree.
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np

from tests.pictures import plain

ASPECTS = ("appearance", "intrinsic", "relationship", "overall")


def prompt(number: int) -> str:
    return f"picture number {number}: a red cup on a table"


def ratings(count: int = 30) -> dict[str, np.ndarray]:
    """Ratings of shape (3, count) by aspect, 0 to 10 in halves."""
    rng = np.random.default_rng(5)
    worth = rng.uniform(1, 9, count)
    return {
        aspect: np.clip(
            np.round(2 * (worth + rng.normal(0, 1.2, (3, count)))) / 2, 0, 10
        ).round(1)
        for aspect in ASPECTS
    }


def pair(number: int) -> dict:
    """A row of t2i-eval-bench.json."""
    return {
        "id": str(number),
        "image_caption": prompt(number),
        "gt_image": f"made/{number}.jpg",
        "ref_image": "ref/0.png" if number == 0 else None,
        "appearance_questions": [
            {"question": "Does the cup look real?", "entity": "cup"}
        ],
        "intrinsic_questions": [
            {"question": "Which colour is the cup?", "entity": "cup"}
        ],
        "relationship_questions": [{"question": "Where is the cup?"}],
        "structured_info_str": "# Structure Information\n...",
    }


def scores(number: int, given: dict[str, np.ndarray]) -> dict:
    """A row of scores.json."""
    overall = {
        aspect: {
            "score": 5,
            "manual_score": [
                *values[:, number].tolist(),
                float(values[:, number].mean()),
            ],
        }
        for aspect, values in given.items()
    }
    return {"id": str(number), "overall": overall}


def images(count: int = 30) -> dict[str, bytes]:
    """Every image by its name, no two alike."""
    found = {"images/ref/0.png": _drawn(255, "PNG")}
    return found | {f"images/made/{n}.jpg": _drawn(n * 8, "JPEG") for n in range(count)}


def archive(files: dict[str, bytes]) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return body.getvalue()


def write(root: Path, count: int = 30) -> Path:
    """The hub's three files below `root`; returns their folder."""
    folder = root / "t2i_eval_bench"
    folder.mkdir()
    given = ratings(count)
    (folder / "t2i-eval-bench.json").write_text(
        json.dumps([pair(n) for n in range(count)])
    )
    (folder / "scores.json").write_text(
        json.dumps([scores(n, given) for n in range(count)])
    )
    (folder / "images.tar.gz").write_bytes(archive(images(count)))
    return folder


def _drawn(shade: int, form: str) -> bytes:
    return plain((shade % 256, 255 - shade % 256, 90), (16, 12), form=form)
