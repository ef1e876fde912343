"""Checks what a run would need: options, packages, data, store, servers and keys; says what to do."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass

from vieval_plugin import config, registry
from vieval_plugin.backends.openai import OpenAIBackend
from vieval_plugin.backends.server import Usage, server_options
from vieval_plugin.backends.store import Store
from vieval_plugin.config import Backbone, Config
from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.vlmevalkit import guard, hook_files
from vieval_plugin.judges.protocol import Chat, Failure, Likelihood, Message, Probabilities
from vieval_plugin.redaction import redacted

_PACKAGES = ("vieval", "lmms-eval", "torch", "transformers", "aiohttp", "scikit-image", "vllm", "numpy", "scipy")
_SECONDS = 20.0
_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*\(?>=\s*([0-9.]+)")


@dataclass(frozen=True)
class Check:
    """One check: whether it is fine, and a line that says what was found and what to do."""

    fine: bool
    text: str

    def __str__(self) -> str:
        return f"{'ok     ' if self.fine else 'PROBLEM'}  {self.text}"


def examine() -> Iterator[Check]:
    """All checks, in order; an option file that cannot be read ends them."""
    yield Check(True, f"Python {sys.version.split()[0]}; {', '.join(_versions())}")
    if older := list(_older_than_tested()):
        yield Check(False, f"older than tested: {', '.join(older)}; upgrade: pip install --upgrade {_names(older)}")
    try:
        options = config.current()
    except VievalError as error:
        yield Check(False, str(error))
        return
    named = os.environ.get(config.FILE_VARIABLE)
    yield Check(True, f"options: {named or 'defaults'} ({config.FILE_VARIABLE}), hash {options.hash}")
    yield from _vlmevalkit()
    yield from _data(options)
    yield _store(options)
    if not options.backbones:
        yield Check(True, "backbones: none in the options; vieval_openai then needs --model_args")
    for name, backbone in options.backbones.items():
        yield from asyncio.run(_server(name, backbone))


def _versions() -> Iterator[str]:
    for package in _PACKAGES:
        try:
            yield f"{package} {importlib.metadata.version(package)}"
        except importlib.metadata.PackageNotFoundError:
            yield f"{package} absent"


def _older_than_tested() -> Iterator[str]:
    """Installed packages below the lower bounds of setup.cfg, which are the oldest versions that tests ran with."""
    try:
        needed = importlib.metadata.requires("vieval") or []
    except importlib.metadata.PackageNotFoundError:  # a checkout that is not installed
        needed = []
    for required in needed:
        bound = _BOUND.match(required)
        if bound is None:
            continue
        package, oldest = bound.groups()
        try:
            installed = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        if _release(installed) < _release(oldest):
            yield f"{package} {installed} (tested from {oldest})"


def _release(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with, so many that two versions compare."""
    numbers = re.match(r"[0-9.]*", version)
    found = [int(part) for part in (numbers[0] if numbers else "").split(".") if part]
    return (*found, *[0] * (4 - len(found)))


def _names(older: Iterable[str]) -> str:
    return " ".join(one.split()[0] for one in older)


def _vlmevalkit() -> Iterator[Check]:
    """The second host, where it is installed, and whether its hook is this version's."""
    state = hook_files.state()
    if state == "old":
        yield Check(False, "VLMEvalKit: its hook is another version's; run `vieval vlmevalkit --install-hook` again")
    try:
        yield Check(True, f"VLMEvalKit: {guard.found().name}; hook {state}")
    except VievalError as error:
        absent = importlib.util.find_spec("vlmeval") is None
        yield Check(absent, "VLMEvalKit: absent" if absent else str(error))


def _data(options: Config) -> Iterator[Check]:
    root = options.data_folder()
    for name, benchmark in registry.benchmarks().items():
        if benchmark.prepare is None:
            continue
        lacking = {part: lines for part in benchmark.parts if (lines := benchmark.missing(root, part))}
        if not lacking:
            yield Check(True, f"{name}: ready in {root}")
            continue
        first = next(iter(lacking.values()))[0]
        yield Check(
            False, f"{name}: not complete for {', '.join(lacking)}; run `vieval prepare {name}` (first: {first})"
        )


def _store(options: Config) -> Check:
    path = options.store_path()
    if path is None:
        return Check(True, "store: not used (store.use)")
    try:
        store = Store(path)
        count = sum(row[1] for row in store.info())
        store.close()
    except VievalError as error:
        return Check(False, str(error))
    return Check(True, f"store: {path}, {count} replies")


async def _server(name: str, backbone: Backbone) -> list[Check]:
    return [finding async for finding in _ask_server(name, backbone)]


async def _ask_server(name: str, backbone: Backbone) -> AsyncIterator[Check]:
    """A short chat, a schema and log-probabilities, from each address of a backbone."""
    for url in backbone.base_url:
        where = f"backbone {name}: {backbone.model} at {redacted(url)}"
        short = {"base_url": (url,), "timeout": _SECONDS, "patience": _SECONDS / 4, "retries": 0}
        try:
            options = server_options(name, backbone.model_copy(update=short))
            async with OpenAIBackend(backbone.model, options, usage=Usage()) as backend:
                said = (Message("user", ("Say hello.",)),)
                reply = await backend.answer(Chat(said, ("hello",), max_tokens=8))
                if isinstance(reply, Failure):
                    yield Check(False, f"{where}: {reply.reason}")
                    continue
                enforced = "enforced" if await backend.takes_schemas() else "not enforced, asked for in words"
                likelihood = await backend.answer(Likelihood(said, ("Yes",), ("logprobs",)))
                logprobs = (
                    "given"
                    if isinstance(likelihood, Probabilities)
                    else "not given (judges that ask for probabilities need them)"
                )
                yield Check(True, f"{where}: answers; schemas {enforced}; log-probabilities {logprobs}")
        except VievalError as error:
            yield Check(False, f"{where}: {error}")
