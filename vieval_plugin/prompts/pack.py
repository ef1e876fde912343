"""A prompt pack as judges use it: questions, their words, and what answers are like."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jinja2 import UndefinedError, meta, nodes

from vieval_plugin.prompts.sandbox import PackEnvironment, PromptTemplateError
from vieval_plugin.prompts.scale import Order
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import exists, path_of

if TYPE_CHECKING:  # pydantic's, which no judge needs
    from vieval_plugin.prompts.schema import Manifest

#: The template by which a reply that cannot be read is asked again.
REMINDER = "reminder.jinja"
_KEY = re.compile(r"[\"']([A-Za-z_]\w*)[\"']\s*:")
_OPTIONAL = ("defined", "undefined", "d", "default")
_PICTURES_ABOVE = re.compile(
    r"\b(picture|image|photo)s? (shown |given )?above\b"
    r"|\babove\W+(\w+\W+){0,3}(picture|image|photo)s?\b",
    re.IGNORECASE,
)

Picture = TypeVar("Picture")


@dataclass(frozen=True)
class PackQuestion:
    """Question of a prompt pack."""

    #: Template that asks it.
    template: str
    #: Roles of its images, in order.
    images: tuple[str, ...]
    #: Meanings of its sub-scores.
    scores: tuple[str, ...]
    #: Place of its images, before its text or after it.
    order: Order = "images_first"

    def parts(self, images: Iterable[Picture], text: str) -> tuple[Picture | str, ...]:
        """The images and the text of its message, in its order."""
        return (text, *images) if self.order == "text_first" else (*images, text)


@dataclass(frozen=True)
class Pack:
    """Prompt pack that was loaded."""

    #: Name, which is that of its judge too where it describes one.
    name: str
    #: Judge that it words.
    judge: str
    #: Settings that it words; empty for all.
    settings: tuple[str, ...]
    #: Hash of the manifest and every template, so that a changed word shows in results.
    hash: str
    questions: Mapping[str, PackQuestion]
    #: Its templates.
    environment: PackEnvironment
    #: Path of its manifest.
    path: Path
    manifest: Manifest
    #: Name of the format of its answers.
    replies: str = "json"
    #: Names of tools by the names that it calls them.
    tools: Mapping[str, str] = field(default_factory=dict)
    #: Times that an unreadable reply is asked again, with the error: the user's option.
    reminders: int = 1

    @property
    def most_images(self) -> int:
        """The number of images of the question that shows most."""
        return max(len(question.images) for question in self.questions.values())

    @property
    def is_enforced(self) -> bool:
        """True where servers are asked to hold to the schemas of its answers."""
        return self.replies == "json"

    @property
    def asks_for_labels(self) -> bool:
        """True where answers are one of the labels of a published protocol, and no JSON."""
        return self.replies == "labels"

    @property
    def asks_for_markdown(self) -> bool:
        """True where answers are Markdown, and no JSON."""
        return self.replies == "markdown"

    @property
    def expects_answers(self) -> bool:
        """True where an answer's score is the probability of the expected one."""
        return self.replies == "expected"

    def require_questions(self, keys: Iterable[str], needed_by: str) -> None:
        """Raise VievalError for a question that the pack lacks, with what needs it."""
        for key in keys:
            if key not in self.questions:
                raise VievalError(
                    f"prompt pack {self.name} has no question {key!r}, which {needed_by} "
                    "requires; use another pack"
                )

    def text_first(self) -> Pack:
        """The pack with the text of each question before its images."""
        questions = {
            key: replace(question, order="text_first")
            for key, question in self.questions.items()
        }
        pack = replace(self, questions=questions)
        pack.check_order()
        return pack

    def require_images_first(self) -> None:
        """Raise VievalError for a pack whose judge does not support text before images."""
        if any(question.order == "text_first" for question in self.questions.values()):
            raise VievalError(
                f"{self.path}: {self.judge} does not support `order: text_first`; remove it"
            )

    def check_order(self) -> None:
        """Raise VievalError for a text before its images that speaks of images above
        it.
        """
        for key, question in self.questions.items():
            if question.order == "images_first":
                continue
            for template in (question.template, *self.parts(question.template)):
                if _PICTURES_ABOVE.search(self.wording(template)):
                    raise VievalError(
                        f"{self.path}: question {key} requires `order: images_first`, "
                        f"because {template} refers to images above it"
                    )

    def resolved(self, path_text: str) -> str:
        """A path that begins at the pack's folder, where there is something there; else the text
        as it is.
        """
        path = path_of(path_text, self.path.parent)
        return str(path) if path_text and exists(path) else path_text

    def wording(self, template: str) -> str:
        """A template as its author wrote it."""
        return self.environment.texts[template]

    def digest(self, template: str) -> str:
        """The SHA-256 of a template, in hexadecimal."""
        return hashlib.sha256(self.wording(template).encode()).hexdigest()

    @property
    def weights(self) -> str:
        """The name, path or address of the weights that its network was trained to."""
        network = self.manifest.network
        base = map(network.get, ("base", "revision"))
        trained = map(network.get, ("weights", "open_clip", "head"))
        return str(next(filter(None, trained), "@".join(filter(None, base))))

    def parts(self, template: str) -> tuple[str, ...]:
        """Return the templates that a template is built of, such as a frame around it."""
        names = [template]
        for name in names:  # which grow on the way
            tree = self.environment.parse(self.wording(name))
            for part in meta.find_referenced_templates(tree):
                if part and part in self.environment.texts and part not in names:
                    names.append(part)
        return tuple(names[1:])

    def variables(self, template: str) -> frozenset[str]:
        """The names that a template must be given; not those of which it asks whether they are
        there.
        """
        trees = [
            self.environment.parse(self.wording(name))
            for name in (template, *self.parts(template))
        ]
        known = {"self", "super"}
        for test in chain(
            *(tree.find_all((nodes.Test, nodes.Filter)) for tree in trees)
        ):
            if test.name in _OPTIONAL and isinstance(test.node, nodes.Name):
                known.add(test.node.name)
        return frozenset().union(*map(meta.find_undeclared_variables, trees)) - known

    def keys_shown(self, template: str) -> tuple[str, ...]:
        """The keys of the JSON that a template asks for: as it shows them where answers are
        `free_json`, else ours.
        """
        keys = []
        if self.replies == "free_json":
            for name in (template, *self.parts(template)):
                keys += _KEY.findall(self.wording(name))
        return tuple(dict.fromkeys(keys if "score" in keys else ("score", "reasoning")))

    def render(self, template: str, variables: Mapping[str, Any]) -> str:
        """The text of a template. VievalError names the template and what is wrong, or what the
        sample lacked for it.
        """
        try:
            return self.environment.text(template, variables).strip()
        except PromptTemplateError as error:
            names = [name for name in variables if isinstance(variables[name], str)]
            texts = ", ".join(names) or "none"
            hint = f"; the sample's texts are {texts} (`vieval prepare` adds a benchmark's texts)"
            is_absent = isinstance(error.__cause__, UndefinedError)
            raise VievalError(
                f"prompt pack {self.name}, template {error}{hint if is_absent else ''}"
            ) from None
