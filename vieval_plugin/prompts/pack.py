"""A prompt pack as judges use it: questions, their words, and what answers are like."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from jinja2 import UndefinedError, meta, nodes

from vieval_plugin.errors import VievalError
from vieval_plugin.prompts.sandbox import PackEnvironment, PromptTemplateError
from vieval_plugin.text.untrusted import exists, path_of

if TYPE_CHECKING:  # pydantic's, which no judge needs
    from vieval_plugin.prompts.schema import Manifest

REMINDER = "reminder.jinja"
"""The template by which a reply that cannot be read is asked again."""
_KEY = re.compile(r"[\"']([A-Za-z_]\w*)[\"']\s*:")
_OPTIONAL = ("defined", "undefined", "d", "default")

Replies: TypeAlias = Literal[
    "json", "free_json", "markdown", "labels", "lines", "number", "expected", "two_way", "four_way"
]
"""What the answers to a pack look like: `json` is as the judge's schemas have it, `free_json` as the pack itself says."""
Combination: TypeAlias = Literal["min", "mean", "product", "geometric_mean"]


@dataclass(frozen=True)
class Scale:
    """Mapping of a number to a score in [0, 1] that is better the higher it is.

    `linear`: from 0 at `low` to 1 at `high`, and no further, so that numbers beyond are alike. `sigmoid`: a half at
    `low`, and 0.73 at `high`; no two numbers are alike. With `better` "lower", less is better.

    >>> Scale("linear", 0, 8)(6), Scale("linear", 0, 8, "lower")(6)
    (0.75, 0.25)
    >>> Scale("sigmoid", 0, 1)(0)
    0.5
    """

    kind: Literal["linear", "sigmoid"]
    low: float
    high: float
    better: Literal["higher", "lower"] = "higher"

    def __call__(self, value: float) -> float:
        position = (value - self.low) / (self.high - self.low)
        if self.better == "lower":
            position = 1 - position if self.kind == "linear" else -position
        if self.kind == "linear":
            return min(max(position, 0.0), 1.0)
        # the same either way, and neither overflows
        return 1 / (1 + math.exp(-position)) if position >= 0 else math.exp(position) / (1 + math.exp(position))


@dataclass(frozen=True)
class PackQuestion:
    """Question of a prompt pack: its template, the roles of its images in order, what its sub-scores mean."""

    template: str
    images: tuple[str, ...]
    scores: tuple[str, ...]


@dataclass(frozen=True)
class Pack:
    """A loaded pack. `hash` covers the manifest and every template, so that a changed word shows in results.

    `name` is that of its judge too, where it describes one. `settings` are those that it words, empty for all. `replies`
    says what its answers look like: servers are asked to enforce JSON only where they are `json`. `tools` maps the names
    by which it calls tools to theirs. `path` is its manifest's. `reminders` is the user's option of that name: how often a
    reply that cannot be read is asked again, with the error.
    """

    name: str
    judge: str
    settings: tuple[str, ...]
    hash: str
    questions: Mapping[str, PackQuestion]
    environment: PackEnvironment
    path: Path
    manifest: Manifest
    replies: Replies = "json"
    tools: Mapping[str, str] = field(default_factory=dict)
    reminders: int = 1

    @property
    def most_images(self) -> int:
        """The number of images of the question that shows most."""
        return max(len(question.images) for question in self.questions.values())

    def resolved(self, path_text: str) -> str:
        """A path that begins at the pack's folder, where there is something there; else the text as it is."""
        path = path_of(path_text, self.path.parent)
        return str(path) if path_text and exists(path) else path_text

    def wording(self, template: str) -> str:
        """A template as its author wrote it."""
        return self.environment.texts[template]

    def parts(self, template: str) -> tuple[str, ...]:
        """Return the templates that a template is built of, such as a frame around it."""
        names = [template]
        for name in names:  # which grow on the way
            for part in filter(None, meta.find_referenced_templates(self.environment.parse(self.wording(name)))):
                if part in self.environment.texts and part not in names:
                    names.append(part)
        return tuple(names[1:])

    def variables(self, template: str) -> frozenset[str]:
        """The names that a template must be given; not those of which it asks whether they are there."""
        trees = [self.environment.parse(self.wording(name)) for name in (template, *self.parts(template))]
        tests = [test for tree in trees for test in tree.find_all((nodes.Test, nodes.Filter))]
        optional = {test.node.name for test in tests if test.name in _OPTIONAL and isinstance(test.node, nodes.Name)}
        return frozenset().union(*map(meta.find_undeclared_variables, trees)) - optional - {"self", "super"}

    def keys_shown(self, template: str) -> tuple[str, ...]:
        """The keys of the JSON that a template asks for: as it shows them where answers are `free_json`, else ours."""
        texts = map(self.wording, (template, *self.parts(template))) if self.replies == "free_json" else ()
        keys = tuple(dict.fromkeys(key for text in texts for key in _KEY.findall(text)))
        return keys if "score" in keys else ("score", "reasoning")

    def render(self, template: str, variables: Mapping[str, Any]) -> str:
        """The text of a template. VievalError names the template and what is wrong, or what the sample lacked for it."""
        try:
            return self.environment.text(template, variables).strip()
        except PromptTemplateError as error:
            texts = ", ".join(name for name, value in variables.items() if isinstance(value, str)) or "none"
            hint = f"; the sample's texts are {texts} (a benchmark's come with `vieval prepare`)"
            is_absent = isinstance(error.__cause__, UndefinedError)
            raise VievalError(f"prompt pack {self.name}, template {error}{hint if is_absent else ''}") from None
