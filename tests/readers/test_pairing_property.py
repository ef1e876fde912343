"""Random folders and tables: no image is ever paired with another's prompt, and no image or row is
lost without a line.

The test writes into each image what it was made of, and counts files and rows itself.
"""

import csv
import itertools
import random
import re
from dataclasses import dataclass, field
from shlex import split

import pytest

from tests.stored_results import write_lines
from vieval_plugin.readers.image_folder import read_folders
from vieval_plugin.text.errors import VievalError

ID_NAMES = (*split("index idx id number uid image_id prompt_idx case_number Index"), "")
OTHER_NAMES = ("place", "seed", "file")
NAMES = ("{}", "{:0>5}", "image_{:0>3}", "cfg3.5_{:0>4}")


@dataclass
class Folder:
    """A random folder of images and its table of prompts."""

    #: Id of each row, in order.
    ids: list[str]
    #: Name of the column of ids.
    column: str
    #: Name of each image, with the id of what it was made of; "" for one that no row is the prompt
    #: of.
    images: dict[str, str]
    #: What is odd about it.
    oddities: set[str] = field(default_factory=set)


def random_folder(seed):
    noise = random.Random(seed)
    count = noise.randint(4, 12)
    form = noise.choice(NAMES)
    first = noise.choice([0, 1, 1, 100])
    numbers = list(range(first, first + count))
    names = ("gaps in ids", "text ids", "twice", "missing", "foreign", "draws", "dots")
    oddities = {name for name in names if noise.random() < 0.2}
    if "gaps in ids" in oddities:
        numbers = sorted(noise.sample(range(first, first + 3 * count), count))
    ids = [str(number) for number in numbers]
    if "text ids" in oddities:
        form = "{}"
        sign = "." if "dots" in oddities else "-"
        ids = [f"{noise.choice('abc')}{sign}{number}." for number in ids]
    if noise.random() < 0.8:
        noise.shuffle(ids)
        oddities.add("shuffled")
    whole = list(ids)
    if "twice" in oddities:
        ids[noise.randrange(count)] = noise.choice(ids)
    is_whole = "missing" not in oddities
    made = [uid for uid in whole if is_whole or noise.random() < 0.7] or ids[:1]
    images = {f"{form.format(uid)}.png": uid for uid in made}
    if "draws" in oddities:
        drawn = itertools.product(made, (1, 2))
        images |= {f"{form.format(uid)}_{draw}.png": uid for uid, draw in drawn}
    if "foreign" in oddities:
        beyond = f"{form.format(max(numbers) + 1)}.png"
        images[noise.choice(["grid.png", "sheet_99.jpg", beyond])] = ""
    images = {name: uid if uid in ids else "" for name, uid in images.items()}
    is_other = noise.random() < 0.2 and "twice" not in oddities
    column = noise.choice(OTHER_NAMES if is_other else ID_NAMES)
    return Folder(ids, column, images, oddities)


def written(folder, path, seed):
    (path / "m").mkdir()
    for name, uid in folder.images.items():
        (path / "m" / name).write_text(uid)
    (path / "m" / "._0.png").write_text("macOS")
    rows = [{folder.column: uid, "prompt": f"made of {uid}"} for uid in folder.ids]
    if seed % 2 and folder.column:
        write_lines(path / "p.jsonl", rows)
        return path / "p.jsonl"
    with (path / "p.csv").open("w", newline="") as file:
        sign = random.Random(seed).choice(",;\t|")
        listed = [list(rows[0]), *(list(row.values()) for row in rows)]
        csv.writer(file, delimiter=sign).writerows(listed)
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
        rows = list(source)
        case = (seed, folder, source.notes)
        judged = [row.sample for row in rows if row.verdict is None]
        pairs = [(one.texts["prompt"], one.images["output"].source) for one in judged]
        assert all(text == f"made of {file.read_text()}" for text, file in pairs), case
        expected = {f"made of {uid}" for uid in folder.ids}
        assert {row.sample.texts["prompt"] for row in rows} == expected, case
        assert len(rows) >= len(folder.ids), case
        paired = {file.name for _, file in pairs}
        assert len(paired) == len(pairs), case
        notes = "\n".join(source.notes)
        told = re.findall(r"ignored (\d+) images? with no prompt", notes)
        assert len(folder.images) == len(paired) + sum(map(int, told)), case
    assert len(refused) < 60
    plain = {"shuffled", "gaps in ids", "text ids", "dots", "missing"}
    plain_only = [folder for folder in refused if folder.oddities <= plain]
    assert not [one for one in plain_only if one.column not in OTHER_NAMES]
