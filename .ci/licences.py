#!/usr/bin/env python3
"""Licences of what is shipped, installed by an extra, or fetched, as Markdown on stdout; exits with 1 where one is not allowed.

usage: .ci/licences.py [PYTHON]      the Python of the environment to look at (default: this one)

What an extra needs and this environment lacks is named, and is no failure: run it where everything is installed.
"""

from __future__ import annotations

import configparser
import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
ALLOWED = frozenset(
    """
    0bsd|3-clause bsd license|apache 2.0|apache 2.0 license|apache license 2.0|apache license, version 2.0|apache software license
    |apache-2.0|apache-2.0 with llvm-exception|bsd|bsd 3-clause license|bsd license|bsd-2-clause|bsd-3-clause|bsl-1.0|cc0-1.0
    |cnri-python|freebsd|isc|isc license|mit|mit license|mit-0|mit-cmu|mozilla public license 2.0|mpl-2.0|psf-2.0
    |public domain|python software foundation license|the unlicense|unlicense|zlib
    """.replace("\n    ", "").split("|")
)
NVIDIA = (
    "NVIDIA's own terms; PyTorch's builds for GPUs bring it, and those for CPUs do not"
)
# packages whose metadata states no licence, a vague one, or one that is not allowed: the licence, and why it may be there
EXCEPTIONS = {
    "chardet": "LGPL-2.1-or-later: a library that lmms-eval's tables bring, used unchanged and not by VIEval",
    "docutils": "public domain, BSD-2-Clause and PSF; one file for Emacs, which nothing imports, is GPL",
    "hf-transfer": "Apache-2.0, by its licence file",
    "math-verify": "none stated in the package; lmms-eval brings it, and VIEval does not use it",
    "pycocoevalcap": "none stated in the package; lmms-eval brings it, and VIEval does not use it",
    "pytest-timeout": "MIT, by its licence file",
    "setuptools": "MIT, by its licence file",
    "zss": "BSD-3-Clause, by its licence file",
}
SHIPPED = {
    "code, prompt templates, task files, pages": "Apache-2.0",
    "`published/*.csv`": "Apache-2.0; digests of published files and numbers from papers",
}
WEIGHTS = {
    "openai/clip-vit-base-patch32 (`clip_score`, `clip_i`)": "MIT, by OpenAI's repository; the hub's card states none",
    "facebook/dino-vits16 (`dino`)": "Apache-2.0, by the hub's card",
    "torchvision's AlexNet (`lpips`)": "BSD-3-Clause, as torchvision; its linear weights come in torchmetrics",
    "IDEA-Research/grounding-dino-base (`cigeval`)": "Apache-2.0, by the hub's card",
}


@dataclass(frozen=True)
class Package:
    """An installed package: its licence as stated or known, and whether it is allowed."""

    name: str
    version: str
    licence: str
    allowed: bool


def is_allowed(licence: str) -> bool:
    """Whether an expression, or a list of names, has nothing but what is allowed; of alternatives one will do."""
    parts = [part.split(" or ") for part in re.split(r"; | and ", licence.lower())]
    return all(
        any(_plain(name) in ALLOWED for name in alternatives) for alternatives in parts
    )


def _plain(name: str) -> str:
    """A name without parentheses around it or an abbreviation in parentheses behind it."""
    return re.sub(r" \([^()]*\)$", "", name.strip()).strip("() ")


def judged(name: str, version: str, stated: str) -> Package:
    """A package by what its metadata states, of which a whole text counts by its first line."""
    name, licence = canonicalize_name(name), stated.strip().partition("\n")[0]
    if name in EXCEPTIONS:
        return Package(name, version, EXCEPTIONS[name], True)
    if name.startswith("nvidia-") or name == "cuda-toolkit":
        return Package(name, version, NVIDIA, True)
    return Package(name, version, licence, is_allowed(licence))


def installed(python: str) -> dict[str, Package]:
    """The packages of an environment, by name."""
    command = [
        sys.executable,
        "-m",
        "piplicenses",
        "--python",
        python,
        "--format=json",
        "--from=mixed",
        "--with-system",
    ]
    rows = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    packages = [judged(row["Name"], row["Version"], row["License"]) for row in rows]
    return {package.name: package for package in packages}


def extras() -> dict[str, list[Requirement]]:
    """What VIEval itself ("") and each of its extras ask for."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lists = {
        "": setup["options"]["install_requires"],
        **setup["options.extras_require"],
    }
    return {
        extra: [
            Requirement(line)
            for line in text.splitlines()
            if line.strip() and not line.strip().startswith("#")
        ]
        for extra, text in lists.items()
    }


def brought(
    requirements: Iterable[Requirement], needs: Mapping[str, list[str]]
) -> Iterator[str]:
    """The names of all that requirements bring, by what each package of an environment needs."""
    waiting, seen = [*requirements], set[tuple[str, frozenset[str]]]()
    while waiting:
        requirement = waiting.pop()
        wanted = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if wanted in seen:
            continue
        seen.add(wanted)
        yield wanted[0]
        for line in needs.get(wanted[0], ()):
            further = Requirement(line)
            if any(
                further.marker is None or further.marker.evaluate({"extra": e})
                for e in ("", *wanted[1])
            ):
                waiting.append(further)


def needs_of(python: str) -> dict[str, list[str]]:
    """What each package of an environment requires, by its name."""
    ask = "import json, sys; print(json.dumps(sys.path))"
    paths = json.loads(
        subprocess.run(
            [python, "-c", ask], capture_output=True, text=True, check=True
        ).stdout
    )
    found = importlib.metadata.distributions(path=paths)
    return {
        canonicalize_name(each.metadata["Name"]): list(each.requires or ())
        for each in found
    }


def data_licences() -> Iterator[tuple[str, str, bool]]:
    """Each benchmark with its licence, and whether it may train a model."""
    from vieval_plugin.benchmarks import registry

    for name, benchmark in registry.benchmarks().items():
        yield name, benchmark.licence, benchmark.trainable


def report(
    packages: Mapping[str, Package], needs: Mapping[str, list[str]]
) -> Iterator[str]:
    """The lines of the report."""
    yield from ("# Licences", "", "## Shipped", "", "| what | licence |", "|---|---|")
    yield from (f"| {what} | {licence} |" for what, licence in SHIPPED.items())
    yield from (
        "",
        "## Installed",
        "",
        "| package | version | licence | brought by |",
        "|---|---|---|---|",
    )
    by = {
        extra: set(brought(requirements, needs))
        for extra, requirements in extras().items()
    }
    for name in sorted(set().union(*by.values())):
        extras_of = (
            "all"
            if name in by[""]
            else ", ".join(extra for extra in by if name in by[extra])
        )
        package = packages.get(name, Package(name, "", "not installed here", True))
        mark = "" if package.allowed else "**NOT ALLOWED** "
        yield f"| {name} | {package.version} | {mark}{package.licence} | {extras_of} |"
    yield from (
        "",
        "## Fetched when you ask for it: weights",
        "",
        "| weights | licence |",
        "|---|---|",
    )
    yield from (f"| {what} | {licence} |" for what, licence in WEIGHTS.items())
    yield from (
        "",
        "## Fetched when you ask for it: benchmarks",
        "",
        "| benchmark | licence | may train |",
        "|---|---|---|",
    )
    yield from (
        f"| {name} | {licence} | {'yes' if trains else 'no'} |"
        for name, licence, trains in data_licences()
    )


def main() -> None:
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    lines = list(report(installed(python), needs_of(python)))
    print("\n".join(lines))
    if refused := [line for line in lines if "NOT ALLOWED" in line]:
        sys.exit("\n".join(["", "not allowed:", *refused]))


if __name__ == "__main__":
    main()
