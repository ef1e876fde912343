"""Input and outcome of filling a data folder with ImagenHub: where the sources are, and what came of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from vieval_plugin.readers.download import Download, Failed

Fetch: TypeAlias = Callable[[Sequence[Download]], Awaitable[list[Failed]]]


@dataclass(frozen=True)
class Hosts:
    """Base URLs of the three sources; a mirror with the same paths below them serves as well.

    The ratings are pinned to a commit, as they have moved within their repository before.
    """

    ratings: str = (
        "https://raw.githubusercontent.com/TIGER-AI-Lab/VIEScore/a35f13fa20e5930a14a1901e6659a987d43bf69b"
        "/paper_implementation/_human_annotations/ImagenHub_human_eval_results"
    )
    hub: str = "https://datasets-server.huggingface.co"
    museum: str = "https://chromaica.github.io/Museum"


@dataclass(frozen=True)
class KindReport:
    """Outcome of one kind of file (`ratings`, `conditions`, `images`) of one part of the benchmark.

    `present` files were there before, `downloaded` files are new; `note` tells when another source than usual had to
    serve.
    """

    part: str
    kind: str
    present: int = 0
    downloaded: int = 0
    failed: tuple[Failed, ...] = ()
    note: str = ""

    @property
    def total(self) -> int:
        """Files there should be."""
        return self.present + self.downloaded + len(self.failed)


def address(base: str, *names: str) -> str:
    """The address of a file below a base."""
    return "/".join((base.rstrip("/"), *(quote(name) for name in names)))
