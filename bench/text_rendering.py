"""The judge text_rendering on posters whose text is known: python -m bench.text_rendering FOLDER [--posters 400] [--seed 0] [--cores N].

A quarter of the posters shows the texts of its prompt; each of the others has one of five kinds of
error at one of three strengths: letters changed, lost, added or swapped, and words lost. Half are
drawn and half are on photographs of scikit-image, a quarter is Chinese where fonts for it are
installed (fonts-noto-cjk), and a third each has noise or perspective. Fonts are those of this
machine, as fc-list names them. The known similarity is computed from what was drawn.
FOLDER/worst.png shows the twelve posters on which the judge is furthest from it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import skimage.data
from PIL import Image, ImageDraw, ImageFont
from scipy.stats import spearmanr

from vieval_plugin import Judge

SIDE = 640
WORST = 12
# of symbols, or so thin that people cannot read them either
NO_LETTERS = ("D050000L", "Dingbats", "Symbol", "Emoji", "Math", "Hairline")
ENGLISH = (
    "GRAND OPENING", "Fresh Bread Daily", "SUMMER SALE", "Jazz Night", "Welcome Home", "Farmers Market", "Happy Birthday",
    "City Marathon", "Coffee and Cake", "Open House", "LOST CAT", "Book Fair", "Winter Concert", "Science Museum",
    "Garden Party", "Night Train to Lisbon", "Keep the Oceans Clean", "Road Closed Ahead", "Best Pizza in Town",
    "Live Music Tonight", "The Last Lighthouse", "Space Explorers Club", "Vintage Bicycles", "Harvest Festival",
)  # fmt: skip
CHINESE = (
    "盛大开业", "欢迎光临", "新年快乐", "今日特价", "图书馆", "夏季音乐节", "保护环境人人有责", "咖啡与蛋糕", "城市马拉松",
    "农夫市场", "科学博物馆", "小心地滑", "生日快乐", "自行车租赁", "现烤面包",
)  # fmt: skip
KINDS = ("changed", "lost", "added", "swapped", "word_lost")
STRENGTHS = (1, 2, 4)
PHOTOGRAPHS = (
    "astronaut",
    "camera",
    "chelsea",
    "coffee",
    "rocket",
    "hubble_deep_field",
    "brick",
    "grass",
)


def fonts(language: str) -> list[str]:
    command = ["fc-list", f":lang={language}", "file", "style"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    files = {line.partition(":")[0] for line in listed.stdout.splitlines()}
    return sorted(filter(has_letters, files))


def has_letters(file: str) -> bool:
    """True for a font file in which people can read letters."""
    is_font = Path(file).suffix in (".ttf", ".otf", ".ttc")
    return is_font and not any(part in file for part in NO_LETTERS)


def edit_distance(first: str, second: str) -> int:
    row = list(range(len(second) + 1))
    for number, letter in enumerate(first, start=1):
        diagonal = row[0]
        row[0] = number
        for index, other in enumerate(second, start=1):
            previous = row[index]
            substituted = diagonal + (letter != other)
            row[index] = min(previous + 1, row[index - 1] + 1, substituted)
            diagonal = previous
    return row[-1]


def alphabet_of(text: str) -> str:
    """The letters that a text may get instead of its own."""
    if ord(text[0]) > 255:
        return "".join(CHINESE)
    if text.isupper():
        return "ABCDEFGHKLMNPRSTUVXYZ"
    return "abcdefghkmnprstuvxyz"


def drop_words(text: str, strength: int, rng: random.Random) -> str:
    """A text without some of its words, or of its characters where it has one word."""
    separator = " " if " " in text else ""
    pieces = text.split() if separator else list(text)
    for _ in range(min(strength, len(pieces) - 1)):
        del pieces[rng.randrange(len(pieces))]
    return separator.join(pieces)


def swap(letters: list[str], index: int) -> None:
    """Exchange a letter with its neighbour, if another letter stands there."""
    letter = letters[index]
    for near in (index + 1, index - 1):
        if 0 <= near < len(letters) and letters[near] not in (" ", letter):
            letters[index] = letters[near]
            letters[near] = letter
            return


def spoilt(text: str, kind: str, strength: int, rng: random.Random) -> str:
    if kind == "word_lost":
        return drop_words(text, strength, rng)
    alphabet = alphabet_of(text)
    letters = list(text)
    indexes = [index for index, letter in enumerate(letters) if letter != " "]
    sampled = rng.sample(indexes, min(strength, len(indexes) - 1))
    for index in sorted(sampled, reverse=True):
        own_letter = letters[index].casefold()
        other = rng.choice(
            [letter for letter in alphabet if letter.casefold() != own_letter]
        )
        if kind == "changed":
            letters[index] = other
        elif kind == "lost":
            del letters[index]
        elif kind == "added":
            letters.insert(index, other)
        else:
            swap(letters, index)
    return "".join(letters)


@dataclass(frozen=True)
class Background:
    """A picture to draw on, and what is legible on it."""

    name: str
    picture: Image.Image
    ink: str
    outline: str | None = None


def photograph(rng: random.Random) -> Background:
    name = rng.choice(PHOTOGRAPHS)
    picture = Image.fromarray(getattr(skimage.data, name)())
    resized = picture.convert("RGB").resize((SIDE, SIDE))
    return Background(name, resized, "white", "black")


def coloured(rng: random.Random) -> Background:
    hue = rng.randrange(256)
    value = rng.choice((70, 230))
    picture = Image.new("HSV", (SIDE, SIDE), (hue, 140, value)).convert("RGB")
    is_dark = np.asarray(picture).mean() < 110
    return Background("drawn", picture, "white" if is_dark else "black")


def broken(text: str) -> list[str]:
    """The two lines of a text that is broken at the space nearest to its middle."""
    spaces = [index for index, letter in enumerate(text) if letter == " "]
    middle = min(spaces, key=lambda index: abs(index - len(text) / 2))
    return [text[:middle], text[middle + 1 :]]


def write(
    background: Background,
    pen: ImageDraw.ImageDraw,
    text: str,
    font_file: str,
    top: int,
) -> None:
    """Write a text as large as its picture allows, on two lines where one is too small."""

    def width(lines: list[str], size: int) -> float:
        font = ImageFont.truetype(font_file, size)
        return max(pen.textlength(line, font) for line in lines)

    size = 90
    lines = [text]
    if " " in text and width(lines, 40) > SIDE - 80:
        lines = broken(text)
    while size > 24 and width(lines, size) > SIDE - 80:
        size -= 2
    font = ImageFont.truetype(font_file, size)
    for row, line in enumerate(lines):
        y = top + row * 1.25 * size
        x = (SIDE - pen.textlength(line, font)) / 2
        pen.text(
            (x, y),
            line,
            background.ink,
            font,
            stroke_width=2 if background.outline else 0,
            stroke_fill=background.outline,
        )


def seen_aslant(picture: Image.Image, rng: random.Random) -> Image.Image:
    """A picture in a random perspective."""
    corners = (0, 0, 0, SIDE, SIDE, SIDE, SIDE, 0)
    skewed = [corner + rng.uniform(-0.06, 0.06) * SIDE for corner in corners]
    return picture.transform(
        (SIDE, SIDE), Image.Transform.QUAD, skewed, Image.Resampling.BICUBIC
    )


def add_noise(picture: Image.Image, spread: int, seed: int) -> Image.Image:
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, spread, (SIDE, SIDE, 3))
    pixels = np.asarray(picture, float) + noise
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def poster(
    texts: list[str], font_file: str, on_photograph: bool, rng: random.Random
) -> tuple[Image.Image, dict]:
    background = photograph(rng) if on_photograph else coloured(rng)
    picture = background.picture
    pen = ImageDraw.Draw(picture)
    for number, text in enumerate(texts):
        write(background, pen, text, font_file, 60 + number * 330)
    facts = {
        "background": background.name,
        "noise": rng.choice((0, 0, 12)),
        "perspective": rng.choice((False, False, True)),
    }
    if facts["perspective"]:
        picture = seen_aslant(picture, rng)
    if facts["noise"]:
        picture = add_noise(picture, facts["noise"], rng.randrange(2**32))
    return picture, facts


def folded(text: str) -> str:
    """A text without its case and spaces."""
    return "".join(text.casefold().split())


def similarity(wanted: list[str], drawn: list[str]) -> float:
    """How near what was drawn is to what a prompt asks for, from 0 to 1."""
    edits = 0
    letters = 0
    for prompt_text, text in zip(map(folded, wanted), map(folded, drawn), strict=True):
        edits += edit_distance(prompt_text, text)
        letters += max(len(prompt_text), len(text))
    return 1 - edits / letters


def make(folder: Path, count: int, seed: int) -> list[dict]:
    rng = random.Random(seed)
    english = [file for file in fonts("en") if "CJK" not in file]
    chinese = fonts("zh-cn")
    errors = [(kind, strength) for kind in KINDS for strength in STRENGTHS]
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(count):
        language = "en"
        texts = ENGLISH
        files = english
        if number % 4 == 3 and chinese:
            language = "zh"
            texts = CHINESE
            files = chinese
        wanted = rng.sample(texts, rng.choice((1, 1, 2)))
        drawn = list(wanted)
        kind = "right"
        strength = 0
        edits = 0
        if number // 4 % 4:
            kind, strength = errors[rng.randrange(len(errors))]
            index = rng.randrange(len(wanted))
            drawn[index] = spoilt(wanted[index], kind, strength, rng)
            edits = edit_distance(folded(wanted[index]), folded(drawn[index]))
        font = files[number % len(files)]
        picture, facts = poster(drawn, font, number % 2 == 0, rng)
        file = f"{number:03}.png"
        picture.save(folder / file)
        quoted = [f'"{text}"' for text in wanted]
        row = {
            **facts,
            "file": file,
            "prompt": f"a poster that says {' and '.join(quoted)}",
            "drawn": drawn,
            "language": language,
            "kind": kind,
            "strength": strength,
            "edits": edits,
            "font": Path(font).name,
            "similarity": similarity(wanted, drawn),
        }
        rows.append(row)
    return rows


def sample_of(folder: Path, row: dict) -> dict:
    """A poster as the judge takes it."""
    return {
        "kind": "tig",
        "images": {"output": folder / row["file"]},
        "texts": {"prompt": row["prompt"]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--posters", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--cores",
        type=int,
        help="processors to read on (default: all that this process may use)",
    )
    options = parser.parse_args()
    folder = options.folder
    if options.cores:
        available = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, available[: options.cores])
    rows = make(folder, options.posters, options.seed)
    used_fonts = {row["font"] for row in rows}
    print(f"{len(rows)} posters, {len(used_fonts)} fonts, seed {options.seed}")
    judge = Judge("text_rendering", options={"store": {"use": False}})
    began = time.monotonic()
    cpu_before = time.process_time()
    verdicts = judge(sample_of(folder, row) for row in rows)
    seconds = time.monotonic() - began
    cpu = time.process_time() - cpu_before
    for row, verdict in zip(rows, verdicts, strict=True):
        row["scores"] = dict(verdict.scores)
        row["status"] = str(verdict.status)
        row["reason"] = verdict.rationale or verdict.reason
    serialized = json.dumps(rows, indent=1, ensure_ascii=False)
    (folder / "rows.json").write_text(serialized)
    cores = len(os.sched_getaffinity(0))
    print(
        f"{len(rows) / seconds:.2f} images a second on {cores} cores, "
        f"{cpu / len(rows):.2f} CPU seconds an image"
    )
    report(rows)
    show_worst(folder, rows)


def score_of(row: dict) -> float:
    """The judge's score of a poster, 0 where it has none."""
    return row["scores"].get("SC", 0)


def show_worst(folder: Path, rows: list[dict]) -> None:
    """Write a sheet of the posters on which the score is furthest from the known similarity,
    with what was read.
    """
    by_error = sorted(rows, key=lambda row: -abs(score_of(row) - row["similarity"]))
    worst = by_error[:WORST]
    side = 400
    line = 22
    height = side + 4 * line
    rows_of_sheet = -(-len(worst) // 4)
    sheet = Image.new("RGB", (4 * side, rows_of_sheet * height), "white")
    pen = ImageDraw.Draw(sheet)
    [font_file, *_] = fonts("zh-cn") or fonts("en")
    font = ImageFont.truetype(font_file, 15)
    for number, row in enumerate(worst):
        x = number % 4 * side
        y = number // 4 * height
        picture = Image.open(folder / row["file"])
        sheet.paste(picture.resize((side - 8, side - 8)), (x, y))
        lines = [
            f"{row['file']}: SC {score_of(row):.2f}, known {row['similarity']:.2f}; "
            f"{row['font']}",
            f"drawn {' / '.join(row['drawn'])}",
            row["reason"][:50],
            row["reason"][50:100],
        ]
        for index, text in enumerate(lines):
            pen.text((x + 2, y + side - 6 + index * line), text, "black", font)
    sheet.save(folder / "worst.png")


def groups_of(row: dict) -> list[str]:
    """The groups in which a poster counts."""
    is_drawn = row["background"] == "drawn"
    return [
        "all",
        row["language"],
        "drawn" if is_drawn else "photograph",
        "noise" if row["noise"] else "no noise",
        "perspective" if row["perspective"] else "flat",
    ]


def share(cases: list[bool]) -> str:
    if not cases:
        return "none"
    return f"{sum(cases)} of {len(cases)} ({np.mean(cases):.1%})"


def report(rows: list[dict]) -> None:
    groups = defaultdict(list)
    for row in rows:
        for name in groups_of(row):
            groups[name].append(row)
    for name, members in groups.items():
        known = [row["similarity"] for row in members]
        scores = [score_of(row) for row in members]
        right = []
        near = []
        for row in members:
            words = row["scores"].get("words", 0)
            if row["similarity"] == 1:
                right.append(words == 1)
            if row["edits"] == 1 and row["strength"]:
                near.append(words < 1)
        print(
            f"{name:12} n {len(members):3}  "
            f"Spearman {spearmanr(known, scores)[0]:.3f}  "
            f"words 1 on right {share(right)}, "
            f"below 1 with one letter wrong {share(near)}"
        )


if __name__ == "__main__":
    main()
