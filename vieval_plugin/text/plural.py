"""Counts in words: a number and its noun, singular for 1."""


def plural(number: int, noun: str) -> str:
    """A number with its noun, which takes an s for all numbers but 1.

    >>> plural(1, "file"), plural(0, "file"), plural(1200, "image")
    ('1 file', '0 files', '1,200 images')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
