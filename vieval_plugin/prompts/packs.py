"""Prompt packs: folders of Jinja templates with a manifest, named and hashed.

A manifest (`manifest.yaml`) says for each question which template asks it, which images it is shown
in which order, and what the sub-scores of its answer mean::

    judge: viescore
    name: viescore/v1
    settings: [0shot, 1shot]
    questions:
      SC_tie: {template: SC_tie.jinja, images: [source, output], scores: [editing success,
          over-editing]}
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import vieval_plugin.prompt_templates
from vieval_plugin.media.files import write_whole
from vieval_plugin.prompts.pack import REMINDER, Pack, PackQuestion
from vieval_plugin.prompts.sandbox import PackEnvironment, PromptTemplateError
from vieval_plugin.prompts.schema import Manifest, P, parsed
from vieval_plugin.text.errors import VievalError, docs_url, system_reason
from vieval_plugin.text.untrusted import exists, is_below, isfile, path_of
from vieval_plugin.text.yaml_json import read_yaml

MANIFEST = "manifest.yaml"
SHARED = "shared"
_REMINDERS: Mapping[str, str] = {
    "number": (
        "That answer could not be used: {{ reason }}. Please answer the question again, "
        "with one number alone."
    ),
    "labelled_lines": (
        "That answer could not be used: {{ reason }}. Please answer the question again, "
        "with each label once on a line of its own and its number behind it."
    ),
}
_MOST_BYTES = 1 << 20
_NAME = re.compile(r"^name:.*$", re.MULTILINE)


def built_in(judge: str = "*") -> list[str]:
    """Names of the packs that come with VIEval, of one judge or of all."""
    root = Path(vieval_plugin.prompt_templates.__path__[0])
    return sorted(
        str(path.parent.relative_to(root))
        for path in root.glob(f"{judge}/*/{MANIFEST}")
    )


def load(name_or_folder: str) -> Pack:
    """Load a pack by its built-in name (`viescore/v1`), from a user's folder, or from one file.

    Raises:
        VievalError: what is wrong with it, such as other words under the name of a built-in pack.
    """
    root = Path(vieval_plugin.prompt_templates.__path__[0])
    file = _file(name_or_folder)
    folder = file.parent
    manifest = _read_manifest(file)
    texts = _read_texts(root / SHARED, folder, manifest)
    try:
        environment = PackEnvironment(texts)
    except PromptTemplateError as error:
        raise VievalError(
            f"{folder}/{error}; see {docs_url('guides/extending.md#templates')}"
        ) from None
    templates = {question.template for question in manifest.questions.values()}
    missing = templates - {*texts, ""}
    if missing:
        raise VievalError(f"{file}: the template {min(missing)} is not in the folder")
    questions = {
        key: PackQuestion(
            question.template or key,
            question.images,
            question.scores,
            question.order or manifest.order,
        )
        for key, question in manifest.questions.items()
    }
    pack = Pack(
        manifest.name,
        manifest.judge or manifest.name,
        manifest.settings,
        "",
        questions,
        environment,
        file,
        manifest,
        manifest.replies,
        manifest.tools,
    )
    pack.check_order()
    pack = replace(pack, hash=_hash(pack, texts))
    is_namesake = folder != root / pack.name and pack.name in built_in()
    if is_namesake and load(pack.name).hash != pack.hash:
        raise VievalError(
            f"{file}: {pack.name} is the name of a built-in pack with different "
            "wording; choose another name, or use `vieval prompts copy`, which names a "
            "pack after its folder"
        )
    return pack


def _read_texts(shared: Path, folder: Path, manifest: Manifest) -> dict[str, str]:
    """The templates that a pack can use, by name; its own come before shared ones of that name."""
    texts = {
        path.name: read_text(shared, path.name)
        for path in sorted(shared.glob("*.jinja"))
    }
    if manifest.replies in _REMINDERS:
        texts[REMINDER] = _REMINDERS[manifest.replies]
    for path in sorted(folder.glob("*.jinja")):
        texts[path.name] = read_text(folder, path.name)
    for key, question in manifest.questions.items():
        if question.text:
            texts[key] = question.text
    return texts


def _hash(pack: Pack, texts: Mapping[str, str]) -> str:
    used = list(texts)
    if pack.path.name != MANIFEST:
        # files of one folder share templates, and a change of another's words is none of this one's
        used = [question.template for question in pack.questions.values()]
    digest = hashlib.sha256(pack.path.read_bytes())
    for name in dict.fromkeys((*used, *chain(*map(pack.parts, used)))):
        digest.update(name.encode() + b"\0" + texts[name].encode() + b"\0")
    return digest.hexdigest()[:16]


def copy(name_or_folder: str, folder: Path) -> Pack:
    """Copy a pack under a name of its own, that of the new folder, with the shared templates that
    it uses.

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
        raise VievalError(f"{folder} already exists; choose a new folder for the copy")
    manifest = read_text(pack.path.parent, pack.path.name, "manifest")
    for file, text in pack.environment.texts.items():
        if file.endswith(".jinja"):
            write_whole(folder / file, [text])
    name = json.dumps(folder.name, ensure_ascii=False)
    # a function, as a name may hold what a replacement text would read as an escape
    renamed = _NAME.sub(lambda _: f"name: {name}", manifest, count=1)
    write_whole(folder / MANIFEST, [renamed])
    return load(str(folder))


def network_settings(pack: Pack, model: type[P]) -> P:
    """The settings under `network`, as its form has them; VievalError names an unknown key and
    the nearest known one.
    """
    settings = {**pack.manifest.network}
    settings.pop("form", None)
    return parsed(pack.path, model, settings, ("network",))


def is_pack(path: str) -> bool:
    """Return whether a text names a manifest: a YAML file, or a folder that has one."""
    return path_of(path).suffix in (".yaml", ".yml") or isfile(path_of(path) / MANIFEST)


def _file(name_or_path: str) -> Path:
    """The manifest that is meant: of a built-in pack, of a folder, or the file itself."""
    inside = Path(vieval_plugin.prompt_templates.__path__[0]) / name_or_path / MANIFEST
    if name_or_path.count("/") == 1 and isfile(inside):
        return inside
    path = path_of(name_or_path)
    return path if path.suffix in (".yaml", ".yml") else path / MANIFEST


def _read_manifest(file: Path) -> Manifest:
    if not exists(file) and file.name != MANIFEST:
        raise VievalError(f"{file}: no such file")
    if not exists(file):
        raise VievalError(
            f"{file.parent}: not a prompt pack ({MANIFEST} is missing); "
            "`vieval prompts list` lists the built-in packs"
        )
    page = docs_url("guides/extending.md#a-judge-in-one-file")
    return parsed(file, Manifest, read_mapping(file, "manifest", page))


def read_mapping(file: Path, what: str, page: str) -> dict[Any, Any]:
    """Return the mapping in a YAML file that others wrote; VievalError for any other, with the
    page that has its keys.
    """
    try:
        document = read_yaml(read_text(file.parent, file.name, what))
    except ValueError as error:
        lines = map(str.strip, str(error).splitlines()[:3])
        raise VievalError(f"{file}: not a {what} ({' '.join(lines)})") from None
    if not isinstance(document, dict):
        raise VievalError(f"{file}: a {what} must be a mapping; see {page}")
    return document


def read_text(folder: Path, file: str, what: str = "template") -> str:
    """Return a text of a folder that others wrote; it lies there: a link could show a server any
    file of this machine.
    """
    path = folder / file
    try:
        if not is_below(path, folder):
            raise VievalError(
                f"{path}: the {what} must be inside {folder}; copy it there"
            )
        if not isfile(path):
            raise VievalError(f"{path}: the {what} is not a file")
        if path.stat().st_size > _MOST_BYTES:
            raise VievalError(
                f"{path}: too large for a {what} (limit {_MOST_BYTES} bytes)"
            )
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(
            f"{path}: the {what} cannot be read ({system_reason(error)})"
        ) from None
