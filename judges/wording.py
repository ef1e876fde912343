"""Interface of a prompt pack to a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Replies: TypeAlias = Literal["json", "free_json", "markdown", "labels", "lines"]
"""What the answers to a pack look like: `json` is as the judge's schemas have it, `free_json` as the pack itself says."""


@dataclass(frozen=True)
class PackQuestion:
    """Question of a prompt pack: its template, the roles of its images in order, what its sub-scores mean."""

    template: str
    images: tuple[str, ...]
    scores: tuple[str, ...]


class Wording(Protocol):
    """Prompt pack, as far as a judge needs it; `replies` says what its answers look like, `settings` what it words.

    `reminders` says how often a reply that cannot be read is asked again, with the error.
    `tools` are the names by which the pack itself calls tools, where it does, and whose they are.
    """

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> tuple[str, ...]: ...

    @property
    def replies(self) -> Replies: ...

    @property
    def reminders(self) -> int: ...

    @property
    def tools(self) -> Mapping[str, str]: ...

    @property
    def questions(self) -> Mapping[str, PackQuestion]: ...

    def render(self, template: str, variables: Mapping[str, Any]) -> str: ...
