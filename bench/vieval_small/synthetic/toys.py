"""Animals, patterns and garments that are in no picture of vieval_demo, beside those that are."""

from __future__ import annotations

from vieval_plugin.benchmarks.vieval_demo.toys import BELLIES, EARS, WEAR

EARS |= {
    "rabbit": (("ellipse", "main", (28, -4, 42, 26)), ("ellipse", "main", (58, -4, 72, 26))),
    "mouse": (("ellipse", "main", (8, 0, 40, 30)), ("ellipse", "main", (60, 0, 92, 30))),
    "dragon": (("polygon", "second", (32, 16, 42, -3, 50, 14)), ("polygon", "second", (50, 14, 58, -3, 68, 16))),
    "owl": (("polygon", "main", (22, 30, 16, -2, 48, 12)), ("polygon", "main", (78, 30, 84, -2, 52, 12))),
    "cow": (("polygon", "white", (28, 16, 8, 2, 24, 24)), ("polygon", "white", (72, 16, 92, 2, 76, 24))),
    "snowman": (("rectangle", "ink", (36, -4, 64, 12)),),
}
BELLIES |= {
    "banded": tuple(("plain", "second", (30, y, 70, y + 6)) for y in (56, 66, 76)),
    "square": (("rectangle", "second", (36, 58, 64, 86)),),
    "checked": tuple(
        ("plain", "second", (34 + 8 * column, 56 + 8 * row, 42 + 8 * column, 64 + 8 * row))
        for row in range(4)
        for column in range(row % 2, 4, 2)
    ),
    "pointed": (("wedge", "second", (50, 52, 70, 72, 50, 92, 30, 72)),),
}
WEAR |= {
    "tie": (("polygon", "third", (46, 48, 54, 48, 60, 72, 50, 82, 40, 72)),),
    "belt": (("rectangle", "third", (25, 76, 75, 84)), ("rectangle", "white", (45, 74, 55, 86))),
    "crown": (("polygon", "third", (30, 12, 28, -4, 42, 5, 50, -5, 58, 5, 72, -4, 70, 12)),),
    "boots": (("rectangle", "third", (24, 88, 49, 100)), ("rectangle", "third", (51, 88, 76, 100))),
}
ANIMALS, PATTERNS, GARMENTS = tuple(EARS), tuple(BELLIES), tuple(WEAR)
