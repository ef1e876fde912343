"""Random folders and tables: no image is ever paired with another's prompt, and no image or row is lost without a line.

The test knows what each image was made of, as it writes that into the file, and counts files and rows itself.
"""

import csv
import json
import random
import re
from dataclasses import dataclass, field

import pytest

from vieval_plugin.readers.image_folder import read_folders
from vieval_plugin.text.errors import VievalError

ID_NAMES = ("index", "idx", "id", "number", "uid", "image_id", "prompt_idx", "case_number", "Index", "")
OTHER_NAMES = ("place", "seed", "file")
NAMES = ("{}", "{:0>5}", "image_{:0>3}", "cfg3.5_{:0>4}")


@dataclass
class Folder:
    """A random folder of images and its table of prompts."""

    #: Id of each row, in order.
    ids: list[str]
    #: Name of the column of ids.
    column: str
    #: Name of each image, with the id of what it was made of; "" for one that no row is the prompt of.
    images: dict[str, str]
    #: What is odd about it.
    oddities: set[str] = field(default_factory=set)


def random_folder(seed: int) -> Folder:
    noise = random.Random(seed)
    count = noise.randint(4, 12)
    form = noise.choice(NAMES)
    first = noise.choice([0, 1, 1, 100])
    numbers = list(range(first, first + count))
    oddities = {
        name
        for name in ("gaps in ids", "text ids", "twice", "missing", "foreign", "draws", "dots")
        if noise.random() < 0.2
    }
    if "gaps in ids" in oddities:
        numbers = sorted(noise.sample(range(first, first + 3 * count), count))
    ids = [str(number) for number in numbers]
    if "text ids" in oddities:
        form, ids = "{}", [f"{noise.choice('abc')}{'.' if 'dots' in oddities else '-'}{number}." for number in ids]
    if noise.random() < 0.8:
        noise.shuffle(ids)
        oddities.add("shuffled")
    whole = list(ids)
    if "twice" in oddities:
        ids[noise.randrange(count)] = noise.choice(ids)
    made = [uid for uid in whole if "missing" not in oddities or noise.random() < 0.7] or ids[:1]
    images = {f"{form.format(uid)}.png": uid for uid in made}
    if "draws" in oddities:
        images |= {f"{form.format(uid)}_{draw}.png": uid for uid in made for draw in (1, 2)}
    if "foreign" in oddities:
        images |= {noise.choice(["grid.png", "sheet_99.jpg", f"{form.format(max(numbers) + 1)}.png"]): ""}
    images = {name: uid if uid in ids else "" for name, uid in images.items()}
    column = noise.choice(OTHER_NAMES if noise.random() < 0.2 and "twice" not in oddities else ID_NAMES)
    return Folder(ids, column, images, oddities)


def written(folder: Folder, path, seed: int):
    (path / "m").mkdir()
    for name, uid in folder.images.items():
        (path / "m" / name).write_text(uid)
    (path / "m" / "._0.png").write_text("macOS")
    rows = [{folder.column: uid, "prompt": f"made of {uid}"} for uid in folder.ids]
    if seed % 2 and folder.column:
        (path / "p.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return path / "p.jsonl"
    with (path / "p.csv").open("w", newline="") as file:
        sign = random.Random(seed).choice(",;\t|")
        csv.writer(file, delimiter=sign).writerows([list(rows[0]), *(list(row.values()) for row in rows)])
    return path / "p.csv"


@pytest.mark.parametrize("start", range(0, 1000, 100))
def test_no_pair_is_wrong_and_nothing_is_lost_in_silence(tmp_path, start):
    refused = []
    for seed in range(start, start + 100):
        path = tmp_path / str(seed)
        path.mkdir()
        folder = random_folder(seed)
        prompts = written(folder, path, seed)
        try:
            source = read_folders([path / "m"], prompts)
        except VievalError:
            refused.append(folder)
            continue
        rows = [(row.sample.texts["prompt"], row.verdict, row.sample.images["output"].source) for row in source]
        pairs = [(text, file) for text, verdict, file in rows if verdict is None]
        assert all(text == f"made of {file.read_text()}" for text, file in pairs), (seed, folder)
        assert sorted({text for text, _, _ in rows}) == sorted({f"made of {uid}" for uid in folder.ids}), (seed, folder)
        assert len(rows) >= len(folder.ids), (seed, folder)
        paired = {file.name for _, file in pairs}
        assert len(paired) == len(pairs), (seed, folder)
        told = sum(
            int(number) for note in source.notes for number in re.findall(r"are left out: (\d+), the first", note)
        )
        assert len(folder.images) == len(paired) + told, (seed, folder, source.notes)
    assert len(refused) < 60, f"of 100 folders from {start} these were not paired: {len(refused)}"
    plain = {"shuffled", "gaps in ids", "text ids", "dots", "missing"}
    assert not [folder for folder in refused if folder.oddities <= plain and folder.column not in OTHER_NAMES]
