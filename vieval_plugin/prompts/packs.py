"""Prompt packs: folders of Jinja templates with a manifest, named and hashed.

A manifest (`manifest.yaml`) says for each question which template asks it, which images it is shown in which order, and
what the sub-scores of its answer mean::

    judge: viescore
    name: viescore/v1
    settings: [0shot, 1shot]
    questions:
      SC_tie: {template: SC_tie.jinja, images: [source, output], scores: [editing success, over-editing]}
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError, meta
from pydantic import BaseModel, ConfigDict

import vieval_plugin.prompt_templates
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.wording import PackQuestion, Replies
from vieval_plugin.media.files import write_whole
from vieval_plugin.prompts.sandbox import PackEnvironment, PromptTemplateError
from vieval_plugin.text.untrusted import exists, is_below, isfile, path_of
from vieval_plugin.text.yaml_json import read_yaml

MANIFEST = "manifest.yaml"
SHARED = "shared"
_MOST_BYTES = 1 << 20
_NAME = re.compile(r"^name:.*$", re.MULTILINE)


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid")
    template: str
    images: tuple[str, ...]
    scores: tuple[str, ...]


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    judge: str
    name: str
    settings: tuple[str, ...] = ()
    replies: Replies = "json"
    tools: dict[str, str] = {}
    questions: dict[str, _Question]


@dataclass(frozen=True)
class Pack:
    """A loaded pack. `hash` covers the manifest and every template, so that a changed word shows in results.

    `replies` says what its answers look like: servers are asked to enforce JSON only where they are `json`. `tools`
    maps the names by which it calls tools to theirs. `reminders` is the user's option of that name.
    """

    name: str
    judge: str
    settings: tuple[str, ...]
    hash: str
    questions: Mapping[str, PackQuestion]
    environment: PackEnvironment
    replies: Replies = "json"
    tools: Mapping[str, str] = field(default_factory=dict)
    reminders: int = 1

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

    def render(self, template: str, variables: Mapping[str, Any]) -> str:
        """The text of a template. VievalError names the template and what is wrong, or what the sample lacked for it."""
        try:
            return self.environment.text(template, variables).strip()
        except PromptTemplateError as error:
            texts = ", ".join(name for name, value in variables.items() if isinstance(value, str)) or "none"
            hint = f"; the sample's texts are {texts} (a benchmark's come with `vieval prepare`)"
            is_absent = isinstance(error.__cause__, UndefinedError)
            raise VievalError(f"prompt pack {self.name}, template {error}{hint if is_absent else ''}") from None


def built_in(judge: str = "*") -> list[str]:
    """Names of the packs that come with VIEval, of one judge or of all."""
    root = Path(vieval_plugin.prompt_templates.__path__[0])
    return sorted(str(path.parent.relative_to(root)) for path in root.glob(f"{judge}/*/{MANIFEST}"))


def load(name_or_folder: str) -> Pack:
    """Load a pack by its built-in name (`viescore/v1`) or from a user's folder.

    Raises:
        VievalError: what is wrong with it, such as other words under the name of a built-in pack.
    """
    root, folder = Path(vieval_plugin.prompt_templates.__path__[0]), _folder(name_or_folder)
    manifest = _read_manifest(folder)
    shared = {path.name: read_text(root / SHARED, path.name) for path in sorted((root / SHARED).glob("*.jinja"))}
    texts = shared | {path.name: read_text(folder, path.name) for path in sorted(folder.glob("*.jinja"))}
    try:
        environment = PackEnvironment(texts)
    except PromptTemplateError as error:
        raise VievalError(f"{folder}/{error}; docs/extending/judge.md has what templates may use") from None
    digest = hashlib.sha256((folder / MANIFEST).read_bytes())
    for file, text in texts.items():
        digest.update(file.encode() + b"\0" + text.encode() + b"\0")
    if missing := {q.template for q in manifest.questions.values()} - set(texts):
        raise VievalError(f"{folder / MANIFEST}: names the template {min(missing)}, which is not in the folder")
    questions = {key: PackQuestion(q.template, q.images, q.scores) for key, q in manifest.questions.items()}
    named = manifest.name, manifest.judge, manifest.settings, digest.hexdigest()[:16]
    pack = Pack(*named, questions, environment, manifest.replies, manifest.tools)
    if folder != root / pack.name and pack.name in built_in() and load(pack.name).hash != pack.hash:
        raise VievalError(
            f"{folder / MANIFEST}: {pack.name} is the name of a built-in pack with other words; give this one a name of its own "
            "(`vieval prompts copy` does)"
        )
    return pack


def copy(name_or_folder: str, folder: Path) -> Pack:
    """Copy a pack under a name of its own, that of the new folder, with the shared templates that it uses.

    Args:
        name_or_folder: as for `load`.
        folder: a folder that is not there yet.

    Returns:
        The copy.

    Raises:
        VievalError: there is no such pack, or the folder is there.
    """
    pack = load(name_or_folder)
    if exists(folder):
        raise VievalError(f"{folder} is there; name a new folder for the copy")
    manifest = read_text(_folder(name_or_folder), MANIFEST, "manifest")
    for file, text in pack.environment.texts.items():
        write_whole(folder / file, [text])
    name = json.dumps(folder.name, ensure_ascii=False)
    # a function, as a name may hold what a replacement text would read as an escape
    write_whole(folder / MANIFEST, [_NAME.sub(lambda _: f"name: {name}", manifest, count=1)])
    return load(str(folder))


def _folder(name_or_folder: str) -> Path:
    inside = Path(vieval_plugin.prompt_templates.__path__[0]) / name_or_folder
    return inside if name_or_folder.count("/") == 1 and isfile(inside / MANIFEST) else path_of(name_or_folder)


def _read_manifest(folder: Path) -> _Manifest:
    path = folder / MANIFEST
    if not exists(path):
        raise VievalError(
            f"{folder}: no prompt pack there ({MANIFEST} is missing); `vieval prompts list` shows the built-in ones"
        )
    try:
        return _Manifest.model_validate(read_yaml(read_text(folder, MANIFEST, "manifest")))
    except ValueError as error:
        first = str(error).splitlines()
        raise VievalError(f"{path}: not a manifest ({' '.join(line.strip() for line in first[:3])})") from None


def read_text(folder: Path, file: str, what: str = "template") -> str:
    """Return a text of a folder that others wrote; it lies there: a link could show a server any file of this machine."""
    path = folder / file
    try:
        if not is_below(path, folder):
            raise VievalError(f"{path}: outside its folder; copy the {what} there")
        if not isfile(path):
            raise VievalError(f"{path}: the {what} is not a file")
        if path.stat().st_size > _MOST_BYTES:
            raise VievalError(f"{path}: larger than {_MOST_BYTES} bytes, no {what} is")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(f"{path}: the {what} cannot be read ({error})") from None
