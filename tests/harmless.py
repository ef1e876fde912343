"""A hostile name, and what shows that an output steers nothing."""

import re

NAME = (
    "=1+1 \x1b[31mred\x07\x9b2J \u202eback\u2066\u200f\u061c\u2028\n# Heading | `code` "
)
NAME += "<img src=x onerror=alert(1)>"
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\u200e\u200f\u061c\ud800-\udfff\ufeff]"
)


def harmless_console(text):
    assert STEERING.search(text) is None, ascii(STEERING.search(text))
