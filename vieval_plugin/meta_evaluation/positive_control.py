"""Outcome of a positive control: whether a judge saw images that were spoilt on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from vieval_plugin.stats.estimate import Estimate

#: Ways to spoil images: each gets the image of another prompt, or each is degraded.
Spoiling: TypeAlias = Literal["exchanged", "degraded"]


@dataclass(frozen=True)
class ControlResult:
    """Verdicts on spoilt images beside those on the build's own."""

    #: The way in which they were spoilt.
    spoiling: Spoiling
    #: Number of prompts with both verdicts, or of prompts that could be spoilt where those were too few.
    n: int
    #: Change of the score, or share of contests that the build's own images won; None where nothing was judged.
    estimate: Estimate | None = None
    #: True where the judge saw a fall by more than the margin.
    seen: bool = False
    #: True where images were compared in contests.
    contests: bool = False
