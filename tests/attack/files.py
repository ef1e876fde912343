"""Sound samples whose verdicts are known, and hostile ones with their permitted statuses."""

import io
import json
import math
import os
import random
import struct
import zlib
from dataclasses import dataclass, replace

import PIL.Image

from .fault_server import picture_name, question_name, right_probability, right_scores

# what a sample of each kind shows, how many scores its question about the conditions asks for, and
# where its text stands
KINDS = {
    "tig": (("output",), 1, "prompt"),
    "tie": (("source", "output"), 2, "instruction"),
    "mie": (("source", "output"), 2, "instruction"),
    "cig": (("control", "output"), 2, "prompt"),
    "sdig": (("subject", "output"), 2, "prompt"),
    "sdie": (("source", "subject", "output"), 2, "subject"),
    "mcic": (("concepts", "output"), 3, "prompt"),
}


PROMPTED = tuple(kind for kind, (_, _, text) in KINDS.items() if text == "prompt")
"""The kinds that VQAScore can ask about."""


@dataclass(frozen=True)
class Known:
    """A sample whose right verdict follows from its pictures by role and its marker."""

    uid: str
    kind: str
    pictures: dict[str, str]
    marker: str = ""

    def questions(self, judge: str) -> dict[str, tuple[str, int]]:
        """The question that decides each aspect, and its number of scores (0: a probability)."""
        if judge == "vqascore":
            return {"SC": (question_name(self.marker, [self.pictures["output"]], 0), 0)}
        roles, count, _ = KINDS[self.kind]
        shown = [self.pictures[role] for role in roles]
        sc = question_name(self.marker, shown, count)
        # the question of quality does not tell the prompt, and so has no marker
        pq = question_name("", shown[-1:], 2)
        return {"SC": (sc, count), "PQ": (pq, 2)}

    def scores(self, judge: str) -> dict[str, float]:
        """The right verdict: the worst sub-score counts, and O is the geometric mean of SC and PQ."""
        asked = self.questions(judge)
        if judge == "vqascore":
            return {"SC": right_probability(asked["SC"][0])}
        worst = {name: min(right_scores(*it)) / 10 for name, it in asked.items()}
        return {**worst, "O": math.sqrt(worst["SC"] * worst["PQ"])}


def png(draw: random.Random, width: int = 12, height: int = 8) -> bytes:
    """A small PNG of noise, so that no two are alike."""
    rows = b"".join(b"\0" + draw.randbytes(3 * width) for _ in range(height))
    return png_of(width, height, zlib.compress(rows, 1))


def png_of(width: int, height: int, packed: bytes) -> bytes:
    """A PNG with this header and these packed rows, whether they fit each other or not."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pieces = ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    chunk = lambda k, b: struct.pack(">I", len(b)) + k + b
    check = lambda k, b: struct.pack(">I", zlib.crc32(k + b))
    chunks = [chunk(kind, body) + check(kind, body) for kind, body in pieces]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def sound_samples(folder, number, seed, markers=(), kinds=tuple(KINDS)):
    """A samples file of sound samples of these kinds; every tenth repeats the one before it under
    another uid.

    The first ones get the `markers` given, all others one of their own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(f"samples {seed}")
    rows, known = [], []
    for place in range(number):
        uid = f"s{place:05d}"
        if place % 10 == 9 and place >= len(markers):
            rows.append({**rows[-1], "uid": uid})
            known.append(replace(known[-1], uid=uid))
            continue
        kind = kinds[place % len(kinds)]
        roles, _, text = KINDS[kind]
        marker = markers[place] if place < len(markers) else f"{seed}.{place}"
        drawn = {role: png(draw) for role in roles}
        images = {role: f"{uid}-{role}.png" for role in roles}
        for role, data in drawn.items():
            (folder / images[role]).write_bytes(data)
        row = {"uid": uid, "image_model": f"m{place % 3}", "kind": kind}
        texts = {text: f"a red cube, number [[{marker}]]"}
        rows.append({**row, "images": images, "texts": texts})
        pictures = {role: picture_name(data) for role, data in drawn.items()}
        known.append(Known(uid, kind, pictures, marker))
    path = folder / "samples.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path, known


@dataclass(frozen=True)
class HostileLine:
    """A line of a samples file, and the statuses of its verdict; empty for a sound one."""

    what: str
    line: str
    may: tuple[str, ...]
    uid: str


_BROKEN, _ABSENT = ("tool_error", "no_image"), ("not_applicable", "no_image")
_UNREADABLE = ("parse_failure",)


def hostile_samples(folder, seed):
    """A samples file of mostly bad lines, with a byte order mark and CRLF, and its sound ones."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(f"hostile {seed}")
    sound = png(draw, 64, 64)
    noise = io.BytesIO()
    PIL.Image.effect_noise((64, 64), 90).save(noise, "JPEG")
    jpeg = noise.getvalue()
    (folder / "sound.png").write_bytes(sound)
    (folder / "a folder.png").mkdir()
    (folder / "loop.png").symlink_to("loop.png")
    (folder / "ring_a.png").symlink_to("ring_b.png")
    (folder / "ring_b.png").symlink_to("ring_a.png")
    os.mkfifo(folder / "pipe.png")
    header = lambda side: png_of(side, side, zlib.compress(b"\0\1\2\3"))
    bomb = png_of(64, 64, zlib.compress(bytes(300 << 20), 9))
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>'
    written = {
        "png cut in its pixels": sound[: len(sound) // 2],
        "png cut before its end chunk": sound[:-12],
        "png of a header alone": sound[:33],
        "png with a broken checksum": sound[:100] + b"\xff" + sound[101:],
        "png of one pixel that says 60000x60000": header(60_000),
        "png of one pixel that says 9000x9000": header(9_000),
        "png of no pixel": png_of(0, 0, zlib.compress(b"")),
        "png that unpacks to 300 MB": bomb,
        "jpeg cut in its pixels": jpeg[: len(jpeg) * 2 // 3],
        "jpeg of a header alone": jpeg[: jpeg.index(b"\xff\xda")],
        "an empty file": b"",
        "a text": b"I am a picture, trust me.",
        "a shell script": b"#!/bin/sh\nrm -rf /\n",
        "an SVG": svg,
        "an EPS": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n",
    }
    # a cut behind the last pixel, a checksum that few look at, rows that nobody needs: a matter of
    # taste
    harmless = {"png cut before its end chunk", "png with a broken checksum"}
    harmless.add("png that unpacks to 300 MB")
    lines = []
    for place, (what, data) in enumerate(written.items()):
        (folder / f"h{place}.png").write_bytes(data)
        lines.append(
            (what, f"h{place}.png", (*_BROKEN, "ok")[: 2 + (what in harmless)])
        )
    places = {
        "a folder": "a folder.png",
        "a link to itself": "loop.png",
        "two links in a ring": "ring_a.png",
        "a pipe": "pipe.png",
        "an endless device": "/dev/zero",
        "a file that is not there": "nowhere/at/all.png",
        "a path of 5,000 characters": "d/" * 2_500 + "x.png",
        "a path with a zero byte": "so\0und.png",
        "an address": "http://127.0.0.1:1/x.png",
        "an address of a file": "file:///etc/passwd",
        "an empty path": "",
    }
    lines += [(what, path, _BROKEN) for what, path in places.items()]
    unread = ("a data address that is none", "data:image/png;base64,!!!!")
    lines.append((*unread, (*_UNREADABLE, *_BROKEN)))
    rows = [(what, _row("", path), may) for what, path, may in lines]
    good = _row("", "sound.png")
    half = json.dumps(good).replace("red", "\\ud800red")
    nested = '{"texts":' * 50_000 + "1" + "}" * 50_000
    unkind = {name: value for name, value in good.items() if name != "kind"}
    odd_image = (*_UNREADABLE, *_ABSENT, *_BROKEN)
    odd_text = (*_UNREADABLE, *_ABSENT)
    rows += [
        ("no image of the output", {**good, "images": {}}, _ABSENT),
        ("no text", {**good, "texts": {}}, _ABSENT),
        ("an unknown kind", {**good, "kind": "mystery"}, _ABSENT),
        ("no kind, which its texts tell", unkind, ("ok",)),
        ("a list", [1, 2], _UNREADABLE),
        ("a number", 7, _UNREADABLE),
        ("null", None, _UNREADABLE),
        ("half a line", json.dumps(good)[:40], _UNREADABLE),
        ("no JSON", "this is no JSON", _UNREADABLE),
        ("100,000 brackets", "[" * 100_000, _UNREADABLE),
        ("a text nested 50,000 deep", nested, _UNREADABLE),
        ("half a character", half, _UNREADABLE),
        ("images that are a list", {**good, "images": ["sound.png"]}, odd_image),
        ("an image that is a number", {**good, "images": {"output": 7}}, odd_image),
        ("a text that is a list", {**good, "texts": {"prompt": [[1]]}}, odd_text),
        ("a number of 5,000 digits", f'{{"uid": {"9" * 5_000}}}', odd_text),
    ]
    found, known = [], []
    for number, (what, row, may) in enumerate(rows, start=1):
        # a line that cannot be read has no name but its number
        named = isinstance(row, dict)
        uid = f"h{number}" if named else f"line {number}"
        whole = {**row, "uid": uid} if named else row
        text = row if isinstance(row, str) else json.dumps(whole)
        found.append(HostileLine(what, text, may, uid))
    for number in range(5):
        uid, marker = f"sound{number}", f"sound {number}"
        row = _row(uid, "sound.png", marker)
        found.append(HostileLine("a sound line", json.dumps(row), (), uid))
        known.append(Known(uid, "tig", {"output": picture_name(sound)}, marker))
    path = folder / "samples.jsonl"
    lines = "\r\n".join([*(one.line for one in found), ""])
    path.write_bytes(b"\xef\xbb\xbf" + lines.encode())
    return path, found, known


def _row(uid, image, marker="hostile"):
    row = {"uid": uid, "image_model": "m", "kind": "tig", "images": {"output": image}}
    return {**row, "texts": {"prompt": f"a red cube [[{marker}]]"}}
