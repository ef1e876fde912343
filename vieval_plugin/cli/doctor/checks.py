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

from vieval_plugin import config
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.openai import OpenAIBackend
from vieval_plugin.backends.http.responses import Refused
from vieval_plugin.backends.http.server import Server, Usage, server_options
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.config import Backbone, Config
from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.vlmevalkit import guard, hook_files
from vieval_plugin.judges.protocol import Chat, Failure, Likelihood, Message, Probabilities
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.versions import versions_of
from vieval_plugin.text.yaml_json import read_json

_PACKAGES = ("lmms-eval", "torch", "transformers", "aiohttp", "scikit-image", "vllm", "numpy", "scipy")
_SECONDS = 20.0
_LONGEST_LIST = 1 << 20
_FOR_TESTS = re.compile(r"""extra\s*==\s*["']test["']""")
_LOWER_BOUND_PATTERN = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?[^;]*?>=\s*([0-9.]+)")


@dataclass(frozen=True)
class Check:
    """A check's outcome: fine or not, and a line that says what was found and what to do.

    `model` is the backbone that answered, of a check of a server.
    """

    fine: bool
    text: str
    model: str = ""

    def __str__(self) -> str:
        return f"{'ok     ' if self.fine else 'PROBLEM'}  {self.text}"


def examine(server: Backbone | None = None) -> Iterator[Check]:
    """Run all checks, in order; an option file that cannot be read ends them.

    Data that is not there is no problem: who runs no task of a benchmark needs none of it. `server` is a server to ask in
    place of those of the options.
    """
    versions = {**dict.fromkeys(("vieval", *_PACKAGES), "absent"), **versions_of(*_PACKAGES)}
    yield Check(True, f"Python {sys.version.split()[0]}; {', '.join(map(' '.join, versions.items()))}")
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
    yield _data(options)
    yield _store(options)
    if server is not None:
        yield from asyncio.run(_server("judge", server))
        return
    if not options.backbones:
        yield Check(True, "backbones: none in the options; vieval_openai then needs --model_args")
    for name, backbone in options.backbones.items():
        yield from asyncio.run(_server(name, backbone))


def _older_than_tested() -> Iterator[str]:
    """Installed packages below the lower bounds of setup.cfg, which are the oldest versions that tests ran with."""
    try:
        needed = importlib.metadata.requires("vieval") or []
    except importlib.metadata.PackageNotFoundError:  # a checkout that is not installed
        needed = []
    for required in needed:
        requirement = _LOWER_BOUND_PATTERN.match(required)
        if requirement is None or _FOR_TESTS.search(required):
            continue
        package, oldest = requirement.groups()
        try:
            installed = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        if _release(installed) < _release(oldest):
            yield f"{package} {installed} (tested from {oldest})"


def _release(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with, so many that two versions compare."""
    numbers = re.match(r"[0-9.]*", version)
    parts = [int(part) for part in (numbers[0] if numbers else "").split(".") if part]
    return (*parts, *[0] * (4 - len(parts)))


def _names(older: Iterable[str]) -> str:
    return " ".join(package.split()[0] for package in older)


def _vlmevalkit() -> Iterator[Check]:
    """The second host, where it is installed, and whether its hook is this version's."""
    state = hook_files.state()
    if state == "old":
        yield Check(False, "VLMEvalKit: its hook is another version's; run `vieval vlmevalkit --install-hook` again")
    try:
        yield Check(True, f"VLMEvalKit: {guard.installation().name}; hook {state}")
    except VievalError as error:
        is_absent = importlib.util.find_spec("vlmeval") is None
        yield Check(is_absent, "VLMEvalKit: absent" if is_absent else str(error))


def _data(options: Config) -> Check:
    """Benchmarks that are there whole or in part; what the others lack is said by `vieval tasks`."""
    root = options.data_folder()
    complete, partial, not_there = list[str](), list[str](), list[str]()
    for name, benchmark in benchmark_registry.benchmarks().items():
        if benchmark.prepare is None:
            continue
        missing = [part for part in benchmark.parts if benchmark.missing(root, part)]
        if not missing:
            complete.append(name)
        elif len(missing) < len(benchmark.parts):
            partial.append(f"{name} (not {', '.join(missing)})")
        else:
            not_there.append(name)
    benchmarks_by_state = {"ready": complete, "in part": partial, "not there": not_there}
    states = "; ".join(f"{word}: {', '.join(names)}" for word, names in benchmarks_by_state.items() if names)
    return Check(
        True, f"data: {root}; {states}; `vieval tasks NAME` says what one lacks, `vieval prepare NAME` gets it"
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
                greeting = (Message("user", ("Say hello.",)),)
                reply = await backend.answer(Chat(greeting, ("hello",), max_tokens=8))
                if isinstance(reply, Failure):
                    yield Check(False, f"{where}: {reply.reason}")
                    continue
                enforced = "enforced" if await backend.takes_schemas() else "not enforced, asked for in words"
                likelihood = await backend.answer(Likelihood(greeting, ("Yes",), ("logprobs",)))
                logprobs = (
                    "given"
                    if isinstance(likelihood, Probabilities)
                    else "not given (judges that ask for probabilities need them)"
                )
                yield Check(True, f"{where}: answers; schemas {enforced}; log-probabilities {logprobs}", backbone.model)
        except VievalError as error:
            yield Check(False, f"{where}: {error}")


def listed_model(url: str) -> str:
    """The one model that a server lists; VievalError where it lists none or several, or does not answer."""
    try:
        document = read_json(asyncio.run(_model_list(url)).decode())
        names = [row["id"] for row in document["data"] if isinstance(row["id"], str)]
    except Refused as error:
        reason = " ".join(redacted(str(error)).split())[:200]
        raise VievalError(
            f"{redacted(url)} does not list its models ({reason}); start the server, or correct the address"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        reason = " ".join(redacted(str(error)).split())[:200]
        raise VievalError(
            f"{redacted(url)} lists no models ({reason}); an address ends in /v1, and --model names a model that is not listed"
        ) from None
    if len(names) != 1:
        raise VievalError(f"{redacted(url)} lists {len(names)} models ({', '.join(names[:20])}); name one with --model")
    return names[0]


async def _model_list(url: str) -> bytes:
    backbone = Backbone(model="", base_url=(url,), timeout=_SECONDS, retries=0)
    async with Server(server_options("judge", backbone), Usage(), 0) as server:
        return await server.fetch(f"{url.rstrip('/')}/models", _LONGEST_LIST)
