"""Common parts of the importers of authors' wording. An importer is the module of its judge's name,
with `import_wording`; a judge in one file names the texts of its network under `wording`.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import yaml

import vieval_plugin.importers
from vieval_plugin.importers import python_texts
from vieval_plugin.importers.python_texts import Texts
from vieval_plugin.judges.registry import shipped
from vieval_plugin.prompts.pack import Pack, PackQuestion
from vieval_plugin.prompts.packs import MANIFEST, load, read_mapping
from vieval_plugin.text.errors import VievalError, docs_url
from vieval_plugin.text.yaml_json import JsonObject

_PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")
_PAGE_BREAK = "\f"  # between the texts of several heads
#: Given the authors' files, a folder to write to and a context file's name, if any: the folders of
#: the packs.
Importer: TypeAlias = Callable[[Path, Path, "str | None"], list[Path]]


def importers() -> dict[str, Importer]:
    """Importers by judge."""
    package = vieval_plugin.importers
    modules = {
        module.name: importlib.import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    }
    described = {
        name: partial(_import_described, pack)
        for name, file in shipped().items()
        if (pack := load(str(file))).manifest.wording
    }
    return described | {
        name: module.import_wording
        for name, module in modules.items()
        if hasattr(module, "import_wording")
    }


def _import_described(
    pack: Pack, source: Path, to: Path, context: str | None = None
) -> list[Path]:
    """Write a judge in one file with the wording that its network was trained with, in a folder of
    its name below `to`.

    Raises:
        VievalError: `source` has no checkout of the authors' repository, or one of other texts.
    """
    require_checkout(source, context)
    wording = pack.manifest.wording
    assert wording
    author_texts = dict[str, str]()
    for name in wording.files:
        _, author_texts = python_texts.read(source / name, author_texts)
    document = read_mapping(pack.path, "manifest", "")
    [(key, question)] = document["questions"].items()
    question["template"] = f"{key}.jinja"
    variables = {wording.place: question.pop("text")}
    try:
        pages = ["".join(map(author_texts.__getitem__, n)) for n in wording.texts]
    except KeyError as error:
        raise unexpected(source, f"lacks the text {error}") from None
    text = _PAGE_BREAK.join(page.strip("\n") for page in pages)
    template, _ = jinja_template(source, text, _PLACE, variables)
    found = hashlib.sha256(template.encode()).hexdigest()
    if found != wording.digest:
        raise unexpected(
            source,
            f"SHA-256 mismatch in its text: expected {wording.digest}, got {found}",
        )
    return [
        write_pack(
            to / pack.name,
            document,
            {key: template},
        )
    ]


def require_checkout(source: Path, context: str | None) -> None:
    """Raise VievalError for a context file of wording that has none, and for a source
    that is not a folder.
    """
    if context is not None:
        raise VievalError("--context does not apply to this wording; remove it")
    if not source.is_dir():
        raise VievalError(
            f"{source}: no such folder; pass a checkout of the authors' repository; see "
            f"{docs_url('guides/judges.md#use-the-authors-own-wording')}"
        )


def question_of(ours: PackQuestion, template: str) -> JsonObject:
    """The manifest's entry of a question that shows and rates as ours does, in another template."""
    return {
        "template": f"{template}.jinja",
        "images": list(ours.images),
        "scores": list(ours.scores),
    }


def raw(text: str) -> str:
    """Text as Jinja source that renders to itself, also with an expression after it."""
    return re.sub(
        r"\{(?:[{%#]|\Z)",
        lambda match: "{{ '" + match.group() + "' }}",
        text,
    )


def jinja_template(
    where: object, text: str, places: re.Pattern[str], variables: Texts
) -> tuple[str, list[str]]:
    """A text as a Jinja template, in which each place is the variable of its name; and the names of
    its places.

    Args:
        where: what an error names.
        text: the text as its authors wrote it.
        places: pattern of a place, with its name as the one group.
        variables: expressions by name.

    Raises:
        VievalError: it has a place of another name.
    """
    pieces = places.split(text)
    names = pieces[1::2]
    unknown = [name for name in names if name not in variables]
    if unknown:
        raise unexpected(where, f"has an unknown placeholder {unknown[0][:40]!r}")
    return "".join(
        variables[piece] if number % 2 else raw(piece)
        for number, piece in enumerate(pieces)
    ), names


def unexpected(where: object, what: str) -> VievalError:
    """The error for a file that differs from the one that its importer was written for."""
    return VievalError(f"{where}: {what}; the repository may have changed")


def write_pack(folder: Path, manifest: JsonObject, texts: Texts) -> Path:
    """Write a manifest and a template for each text; VievalError if the folder is
    already there or the pack is invalid.
    """
    if folder.exists():
        raise VievalError(f"{folder} already exists; remove it, or choose another --to")
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        (staging / MANIFEST).write_text(
            yaml.safe_dump(dict(manifest), sort_keys=False),
            encoding="utf-8",
        )
        for key, text in texts.items():
            (staging / f"{key}.jinja").write_text(text, encoding="utf-8")
        load(str(staging))
        staging.chmod(0o755)
        staging.replace(folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return folder
