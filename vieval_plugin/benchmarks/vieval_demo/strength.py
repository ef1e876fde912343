"""Strengths of defects that are there in whole things only; nothing is drawn here."""

from __future__ import annotations


def quarters(strength: float) -> int:
    """A strength in [0, 1] as 0 to 4 quarters; halfway goes up."""
    return int(strength * 4 + 0.5)
