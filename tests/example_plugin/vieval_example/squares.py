"""Squares: eight images of one colour each, with a rating that says how red they are. Drawn
here, no data needed.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark, known_part
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.meta_evaluation.image_models import ByImageModel

NAME, PARTS, SIDE = "squares", {"red": 8}, 32


def load(root: Path, part: str) -> list[Sample]:
    """Eight samples; SC is the share of red, from 0 to 1."""
    known_part(NAME, PARTS, part)
    return [
        Sample(
            SampleId(NAME, part, "brush", f"square_{level}"),
            {"output": Image(_png(level * 36))},
            {"prompt": "a red square"},
            {"SC": (level / 7,)},
            kind="tig",
        )
        for level in range(8)
    ]


def _png(red: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + name
            + data
            + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = (b"\0" + bytes((red, 0, 0)) * SIDE) * SIDE
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


BENCHMARK = Benchmark(
    name=NAME,
    parts=PARTS,
    load=load,
    missing=lambda root, part: [],
    report=ByImageModel(),
    source="drawn by this package",
    licence="Apache-2.0",
    trainable=True,
    note="Synthetic: eight squares. No human rated these.",
)
