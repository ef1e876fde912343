"""Judges by name: ours, and those of other packages.

Ours are the modules of `judges/`. Other packages name theirs in an entry point of the group
`vieval.judges`, which leads to a `JudgeSpec`, to several of them, or to a module that holds them as
`SPEC` or `SPECS`. A judge may also be described in a file, which is named, or lies in the folder
that VIEVAL_JUDGES names. Benchmarks and hosts' networks are looked up by the same functions.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

import vieval_plugin.judges
from vieval_plugin.judges import in_file
from vieval_plugin.judges.spec import JudgeSpec
from vieval_plugin.prompts import packs
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.prompts.schema import About
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import say
from vieval_plugin.text.suggestions import did_you_mean
from vieval_plugin.text.untrusted import path_of, real

ENTRY_POINTS = "vieval.judges"
FOLDER_VARIABLE = "VIEVAL_JUDGES"

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T", bound="HasName")


class HasName(Protocol):
    """A description with a name."""

    @property
    def name(self) -> str: ...


@cache
def judges() -> dict[str, JudgeSpec]:
    """Return all judges by name, ours first; then those in files, of a folder that is named or
    named one by one, and those of our files whose name no other has.
    """
    names = ("SPEC", "SPECS")
    specs = descriptions(
        vieval_plugin.judges,
        names,
        ENTRY_POINTS,
        JudgeSpec,
    )
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        entries = path_of(folder).glob("*")
        files = sorted(entry for entry in entries if packs.is_pack(str(entry)))
        if not files:
            _warn(
                f"{FOLDER_VARIABLE} must be a folder with YAML files of judges, got "
                f"{folder}"
            )
        for file in files:
            try:
                _add(str(file), specs)
            except VievalError as error:
                _warn(f"{error}; skipping this judge")
    for name, file in shipped().items():
        if name not in specs:
            _add(str(file), specs)
    return specs


def judge(name: str, files: Iterable[object] = ()) -> JudgeSpec:
    """Return a judge.

    Args:
        name: its name, or the file that describes it.
        files: in which a judge of a name that is not known is described.

    Raises:
        VievalError: there is none, with the nearest name; or what is wrong with the file.
    """
    specs = judges()
    if name not in specs and packs.is_pack(name):
        return _add(name, specs)
    for file in files if name not in specs or is_shipped(specs[name]) else ():
        _add(str(file), specs)
    return find_entry(name, specs, "judge")


@cache
def shipped() -> Mapping[str, Path]:
    """Return the files of judges in one file that come with VIEval, by name."""
    folder = Path(vieval_plugin.judges.__path__[0]) / "described"
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def described_networks() -> list[tuple[Pack, About]]:
    """Return the judges in one file that say what their network is."""
    files = [spec.file for spec in judges().values() if spec.file]
    return [(pack, about) for pack in files if (about := pack.manifest.about)]


def is_shipped(spec: JudgeSpec) -> bool:
    """Return whether a judge is in a file that comes with VIEval."""
    return spec.file is not None and spec.file.path == shipped().get(spec.name)


def judge_of_results(name: str, options: Mapping[str, Any]) -> JudgeSpec | None:
    """Return the judge of results that carry these options; None where neither it nor its file
    is there.
    """
    try:
        return judge(name, options.get("judge_files") or ())
    except (VievalError, TypeError):
        return None


def _add(file: str, specs: dict[str, JudgeSpec]) -> JudgeSpec:
    """The judge of a file, known by its name from now on; VievalError where that is another's."""
    spec = in_file.spec_of(packs.load(file))
    namesake = specs.get(spec.name)
    if spec.file and namesake and not is_shipped(namesake):
        path = spec.file.path
        other = namesake.file.path if namesake.file else None
        if not other or real(other) != real(path):
            holder = f"in {other}" if other else namesake.title
            raise VievalError(
                f"{path}: name: {spec.name} is already the name of the judge {holder}; "
                "choose another name"
            )
    specs[spec.name] = spec
    return spec


def find_entry(name: str, entries: Mapping[str, V], what: str) -> V:
    """Return the entry of a name; VievalError, with the nearest name, if there is none."""
    if name in entries:
        return entries[name]
    hint = did_you_mean(name, entries, 0.6)
    names = ", ".join(entries)
    raise VievalError(f"unknown {what} {name!r}{hint or ';'} known {what}s: {names}")


def load_entry_points(group: str, names: tuple[str, ...], kind: type[K]) -> list[K]:
    """Return the descriptions of other packages under an entry point group; a broken one is left
    out with one line.
    """
    return [
        description
        for _, description in _iter_entry_points(
            group,
            names,
            kind,
        )
    ]


def _iter_entry_points(
    group: str, names: tuple[str, ...], kind: type[K]
) -> Iterator[tuple[str, K]]:
    for entry in importlib.metadata.entry_points(group=group):
        package = entry.dist.name if entry.dist else "an unknown package"
        origin = f"{package} (entry point {entry.name} of {group})"
        try:
            loaded = list(_descriptions_in(entry.load(), names, kind))
        except Exception as error:  # whatever another package does, the rest must work
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            _warn(f"skipping {origin}, which cannot be loaded ({reason})")
            continue
        if not loaded:
            _warn(f"skipping {origin}, which does not define a {kind.__name__}")
        yield from ((origin, description) for description in loaded)


def descriptions(
    package: ModuleType,
    names: tuple[str, ...],
    group: str,
    kind: type[T],
) -> dict[str, T]:
    """Return the descriptions of a kind by name: those in the modules of a package, and those of
    other packages.

    One that cannot be loaded, or whose name is taken, is left out with one line.
    """
    entries = {}
    for module in _modules(package):
        for entry in _descriptions_in(module, names, kind):
            entries[entry.name] = entry
    for origin, description in _iter_entry_points(group, names, kind):
        if description.name in entries:
            _warn(
                f"skipping {description.name!r} from {origin}: the name is already taken"
            )
        else:
            entries[description.name] = description
    return entries


def description_in_module(
    package: ModuleType,
    name: str,
    names: tuple[str, ...],
    kind: type[T],
) -> T | None:
    """Return the description of a name from the module of the same name, without importing the
    other modules of a package; None where it is elsewhere.
    """
    if name not in {module.name for module in pkgutil.iter_modules(package.__path__)}:
        return None
    module = importlib.import_module(f"{package.__name__}.{name}")
    described = _descriptions_in(module, names, kind)
    return next((entry for entry in described if entry.name == name), None)


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not module.name.rpartition(".")[2].startswith("_"):
            yield importlib.import_module(module.name)


def _descriptions_in(holder: Any, names: tuple[str, ...], kind: type[K]) -> Iterator[K]:
    """Yield the descriptions that a module holds under one of the names, or that the object is
    itself.
    """
    values = [holder]
    if isinstance(holder, ModuleType):
        values = [getattr(holder, name, None) for name in names]
    for value in values:
        members = value if isinstance(value, (tuple, list)) else [value]
        yield from (member for member in members if isinstance(member, kind))


def _warn(text: str) -> None:
    say(f"vieval: {text}", file=sys.stderr)
