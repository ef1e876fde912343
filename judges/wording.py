"""What a judge needs of a prompt pack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class PackQuestion:
    """One question of a prompt pack: its template, the roles of its images in order, what its sub-scores mean."""

    template: str
    images: tuple[str, ...]
    scores: tuple[str, ...]


class Wording(Protocol):
    """What a judge needs of a prompt pack; `replies` says what its answers look like, `settings` what it words."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> tuple[str, ...]: ...

    @property
    def replies(self) -> Literal["json", "markdown", "labels", "lines"]: ...

    @property
    def questions(self) -> Mapping[str, PackQuestion]: ...

    def render(self, template: str, variables: Mapping[str, Any]) -> str: ...
