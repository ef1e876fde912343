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
    listed = subprocess.run(
        ["fc-list", f":lang={language}", "file", "style"],
        capture_output=True,
        text=True,
        check=True,
    )
    files = {line.partition(":")[0] for line in listed.stdout.splitlines()}
    files = {file for file in files if Path(file).suffix in (".ttf", ".otf", ".ttc")}
    return sorted(
        file for file in files if not any(part in file for part in NO_LETTERS)
    )


def edit_distance(first: str, second: str) -> int:
    row = list(range(len(second) + 1))
    for number, letter in enumerate(first, start=1):
        diagonal, row[0] = row[0], number
        for index, other in enumerate(second, start=1):
            diagonal, row[index] = (
                row[index],
                min(row[index] + 1, row[index - 1] + 1, diagonal + (letter != other)),
            )
    return row[-1]


def spoilt(text: str, kind: str, strength: int, rng: random.Random) -> str:
    alphabet = (
        "".join(CHINESE)
        if ord(text[0]) > 255
        else "ABCDEFGHKLMNPRSTUVXYZ"
        if text.isupper()
        else "abcdefghkmnprstuvxyz"
    )
    if kind == "word_lost":
        pieces = text.split() if " " in text else list(text)
        for _ in range(min(strength, len(pieces) - 1)):
            del pieces[rng.randrange(len(pieces))]
        return (" " if " " in text else "").join(pieces)
    letters = list(text)
    indexes = [index for index, letter in enumerate(letters) if letter != " "]
    for index in sorted(
        rng.sample(indexes, min(strength, len(indexes) - 1)), reverse=True
    ):
        letter = letters[index]
        other = rng.choice(
            [new for new in alphabet if new.casefold() != letter.casefold()]
        )
        if kind == "changed":
            letters[index] = other
        elif kind == "lost":
            del letters[index]
        elif kind == "added":
            letters.insert(index, other)
        else:
            near = [
                n
                for n in (index + 1, index - 1)
                if 0 <= n < len(letters) and letters[n] not in (" ", letter)
            ]
            if near:
                letters[index], letters[near[0]] = letters[near[0]], letter
    return "".join(letters)


def poster(
    texts: list[str], font_file: str, on_photograph: bool, rng: random.Random
) -> tuple[Image.Image, dict]:
    if on_photograph:
        name = rng.choice(PHOTOGRAPHS)
        picture = (
            Image.fromarray(getattr(skimage.data, name)())
            .convert("RGB")
            .resize((SIDE, SIDE))
        )
        ink = "white"
        outline = "black"
    else:
        name = "drawn"
        hue = rng.randrange(256)
        picture = Image.new(
            "HSV", (SIDE, SIDE), (hue, 140, rng.choice((70, 230)))
        ).convert("RGB")
        ink, outline = (
            ("white", None) if np.asarray(picture).mean() < 110 else ("black", None)
        )
    pen = ImageDraw.Draw(picture)
    for number, text in enumerate(texts):
        size = 90
        width = lambda line, size: pen.textlength(
            line, ImageFont.truetype(font_file, size)
        )
        lines = [text]
        if " " in text and width(text, 40) > SIDE - 80:
            middle = min(
                (i for i, c in enumerate(text) if c == " "),
                key=lambda i: abs(i - len(text) / 2),
            )
            lines = [text[:middle], text[middle + 1 :]]
        while size > 24 and max(width(line, size) for line in lines) > SIDE - 80:
            size -= 2
        font = ImageFont.truetype(font_file, size)
        for row, line in enumerate(lines):
            y = 60 + number * 330 + row * 1.25 * size
            x = (SIDE - pen.textlength(line, font)) / 2
            pen.text(
                (x, y),
                line,
                ink,
                font,
                stroke_width=2 if outline else 0,
                stroke_fill=outline,
            )
    noise = rng.choice((0, 0, 12))
    perspective = rng.choice((False, False, True))
    if perspective:
        shift = [rng.uniform(-0.06, 0.06) * SIDE for _ in range(8)]
        corners = [
            (shift[0], shift[1]),
            (shift[2], SIDE + shift[3]),
            (SIDE + shift[4], SIDE + shift[5]),
            (SIDE + shift[6], shift[7]),
        ]
        picture = picture.transform(
            (SIDE, SIDE),
            Image.Transform.QUAD,
            [v for c in corners for v in c],
            Image.Resampling.BICUBIC,
        )
    if noise:
        pixels = np.asarray(picture, float) + np.random.default_rng(
            rng.randrange(2**32)
        ).normal(0, noise, (SIDE, SIDE, 3))
        picture = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    return picture, {"background": name, "noise": noise, "perspective": perspective}


def make(folder: Path, count: int, seed: int) -> list[dict]:
    rng = random.Random(seed)
    rows = []
    by_language = {"en": fonts("en"), "zh": fonts("zh-cn")}
    by_language["en"] = [file for file in by_language["en"] if "CJK" not in file]
    errors = [(kind, strength) for kind in KINDS for strength in STRENGTHS]
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        is_chinese = number % 4 == 3 and bool(by_language["zh"])
        language, texts = ("zh", CHINESE) if is_chinese else ("en", ENGLISH)
        wanted = rng.sample(texts, rng.choice((1, 1, 2)))
        kind, strength = (
            ("right", 0) if number // 4 % 4 == 0 else errors[rng.randrange(len(errors))]
        )
        drawn = list(wanted)
        if strength:
            index = rng.randrange(len(wanted))
            drawn[index] = spoilt(wanted[index], kind, strength, rng)
        font = by_language[language][number % len(by_language[language])]
        picture, facts = poster(drawn, font, number % 2 == 0, rng)
        picture.save(folder / f"{number:03}.png")
        folded = [
            tuple("".join(text.casefold().split()) for text in pair)
            for pair in zip(wanted, drawn, strict=True)
        ]
        similarity = 1 - sum(edit_distance(*pair) for pair in folded) / sum(
            max(map(len, pair)) for pair in folded
        )
        prompt = "a poster that says " + " and ".join(f'"{text}"' for text in wanted)
        changed = edit_distance(*folded[index]) if strength else 0
        rows.append(dict(facts, file=f"{number:03}.png", prompt=prompt, drawn=drawn, language=language, kind=kind,
                         strength=strength, edits=changed, font=Path(font).name, similarity=similarity))  # fmt: skip
    return rows


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
    if options.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    rows = make(options.folder, options.posters, options.seed)
    print(
        f"{len(rows)} posters, {len({row['font'] for row in rows})} fonts, seed {options.seed}"
    )
    judge = Judge("text_rendering", options={"store": {"use": False}})
    began = time.monotonic()
    cpu = time.process_time()
    verdicts = judge(
        {
            "kind": "tig",
            "images": {"output": options.folder / row["file"]},
            "texts": {"prompt": row["prompt"]},
        }
        for row in rows
    )
    took = time.monotonic() - began
    cpu = time.process_time() - cpu
    for row, verdict in zip(rows, verdicts, strict=True):
        row |= {
            "scores": dict(verdict.scores),
            "status": str(verdict.status),
            "reason": verdict.rationale or verdict.reason,
        }
    (options.folder / "rows.json").write_text(
        json.dumps(rows, indent=1, ensure_ascii=False)
    )
    cores = len(os.sched_getaffinity(0))
    print(
        f"{len(rows) / took:.2f} images a second on {cores} cores, {cpu / len(rows):.2f} CPU "
        "seconds an image"
    )
    report(rows)
    show_worst(options.folder, rows)


def show_worst(folder: Path, rows: list[dict]) -> None:
    """Write a sheet of the posters on which the score is furthest from the known similarity,
    with what was read.
    """
    worst = sorted(
        rows, key=lambda row: -abs(row["scores"].get("SC", 0) - row["similarity"])
    )[:WORST]
    side = 400
    line = 22
    sheet = Image.new(
        "RGB", (4 * side, -(-len(worst) // 4) * (side + 4 * line)), "white"
    )
    pen = ImageDraw.Draw(sheet)
    [cjk] = fonts("zh-cn")[:1] or [fonts("en")[0]]
    font = ImageFont.truetype(cjk, 15)
    for number, row in enumerate(worst):
        x = number % 4 * side
        y = number // 4 * (side + 4 * line)
        sheet.paste(
            Image.open(folder / row["file"]).resize((side - 8, side - 8)), (x, y)
        )
        facts = (
            f"{row['file']}: SC {row['scores'].get('SC', 0):.2f}, known "
            f"{row['similarity']:.2f}; {row['font']}"
        )
        lines = [
            facts,
            "drawn " + " / ".join(row["drawn"]),
            row["reason"][:50],
            row["reason"][50:100],
        ]
        for index, text in enumerate(lines):
            pen.text((x + 2, y + side - 6 + index * line), text, "black", font)
    sheet.save(folder / "worst.png")


def report(rows: list[dict]) -> None:
    groups = defaultdict(list)
    for row in rows:
        for name in ("all", row["language"], "drawn" if row["background"] == "drawn" else "photograph",
                     "noise" if row["noise"] else "no noise", "perspective" if row["perspective"] else "flat"):  # fmt: skip
            groups[name].append(row)
    for name, members in groups.items():
        known = [row["similarity"] for row in members]
        scores = [row["scores"].get("SC", 0) for row in members]
        right = [
            row["scores"].get("words", 0) == 1
            for row in members
            if row["similarity"] == 1
        ]
        near = [
            row["scores"].get("words", 0) < 1
            for row in members
            if row["edits"] == 1 and row["strength"]
        ]
        shares = [
            f"{sum(cases)} of {len(cases)} ({np.mean(cases):.1%})" if cases else "none"
            for cases in (right, near)
        ]
        print(f"{name:12} n {len(members):3}  Spearman {spearmanr(known, scores)[0]:.3f}  "
              f"words 1 on right {shares[0]}, below 1 with one letter wrong {shares[1]}")  # fmt: skip


if __name__ == "__main__":
    main()
