"""A folder in the format of T2I-Eval-Bench, with three annotators who mostly agree."""

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
    rated = lambda: np.round(2 * (worth + rng.normal(0, 1.2, (3, count)))) / 2
    return {aspect: np.clip(rated(), 0, 10).round(1) for aspect in ASPECTS}


def pair(number: int) -> dict:
    """A row of t2i-eval-bench.json."""
    image = {"gt_image": f"made/{number}.jpg", "ref_image": None}
    image |= {"ref_image": "ref/0.png"} if number == 0 else {}
    asked = lambda text: [{"question": text, "entity": "cup"}]
    questions = {"appearance_questions": asked("Does the cup look real?")}
    questions["intrinsic_questions"] = asked("Which colour is the cup?")
    questions["relationship_questions"] = [{"question": "Where is the cup?"}]
    row = {"id": str(number), "image_caption": prompt(number), **image, **questions}
    return {**row, "structured_info_str": "# Structure Information\n..."}


def scores(number: int, given: dict[str, np.ndarray]) -> dict:
    """A row of scores.json."""
    rated = {aspect: values[:, number] for aspect, values in given.items()}
    manual = {name: [*it.tolist(), float(it.mean())] for name, it in rated.items()}
    overall = {name: {"score": 5, "manual_score": it} for name, it in manual.items()}
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
    pairs = [pair(number) for number in range(count)]
    rated = [scores(number, given) for number in range(count)]
    (folder / "t2i-eval-bench.json").write_text(json.dumps(pairs))
    (folder / "scores.json").write_text(json.dumps(rated))
    (folder / "images.tar.gz").write_bytes(archive(images(count)))
    return folder


def _drawn(shade: int, form: str) -> bytes:
    return plain((shade % 256, 255 - shade % 256, 90), (16, 12), form=form)
