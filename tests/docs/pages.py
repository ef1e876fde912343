"""What the hand-written pages name: commands, options, targets of make, files of the repository,
links.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.docs import pages
from vieval_plugin import cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = (
    "reference/commands",
    "reference/options",
    "reference/judges",
    "reference/metrics",
    "reference/api/",
)
GENERATED += ("reference/benchmarks_table",)
FENCE = re.compile(
    r"^[ ]*(```+)(\S*)[^\n]*\n(.*?)^[ ]*\1\s*$", re.MULTILINE | re.DOTALL
)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
SHELL = ("", "bash", "sh", "console", "shell")


def written():
    """The hand-written pages of the site, and those of the repository that are written alike."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def commands(text):
    """The commands of `vieval` and `make` in blocks of a shell and in backticks, each as its
    words.
    """
    blocks = [m[3].replace("\\\n", " ") for m in FENCE.finditer(text) if m[2] in SHELL]
    inline = [
        m[1]
        for m in INLINE.finditer(FENCE.sub("", text))
        if m[1].startswith(("vieval ", "make "))
    ]
    for line in [line for block in blocks for line in block.splitlines()] + inline:
        for words in split(line):
            place = next(
                (
                    n
                    for n, word in enumerate(words)
                    if Path(word).name in ("vieval", "make")
                ),
                len(words),
            )
            if not any(
                word.startswith("-") or word in ("pip", "cd") for word in words[:place]
            ):
                yield from (
                    [[Path(words[place]).name, *words[place + 1 :]]]
                    if place < len(words)
                    else []
                )


def split(line):
    """The simple commands of a line of a shell, each as its words."""
    lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = [[]]
    try:
        for word in lexer:
            words += [[]] if set(word) <= set("();<>|&") else []
            words[-1] += [] if set(word) <= set("();<>|&") else [word]
    except ValueError:  # of a quote that ends on another line
        pass
    return filter(None, words)


@cache
def parser():
    return cli.build_parser()


def fault(words):
    """What is wrong with a command, in words; empty where nothing is."""
    if words[0] == "make":
        targets = set(
            re.findall(
                r"^([\w-]+):",
                (ROOT / "Makefile").read_text(encoding="utf-8"),
                re.MULTILINE,
            )
        )
        unknown = [
            word
            for word in words[1:2]
            if re.fullmatch(r"[a-z-]+", word) and word not in targets
        ]
        return f"make has no target {unknown[0]}" if unknown else ""
    at, name = parser(), "vieval"
    options = set()
    for word in words[1:]:
        subparsers = [
            action
            for action in at._actions
            if isinstance(action, argparse._SubParsersAction)
        ]
        options |= {
            option for action in at._actions for option in action.option_strings
        }
        if subparsers and not word.startswith("-"):
            if word.isupper() or not re.match(r"\w", word):
                return ""
            if word not in subparsers[0].choices:
                return f"{name} has no command {word}"
            at, name = subparsers[0].choices[word], f"{name} {word}"
            options |= {
                option for action in at._actions for option in action.option_strings
            }
        elif (
            word.startswith("--")
            and word.partition("=")[0] not in options
            and at.allow_abbrev  # what another command takes is not abbreviated
        ):
            return f"{name} has no option {word}"
    return ""


def files(text):
    """Paths in backticks that begin in a folder of the repository, but for those that the page's
    own blocks write.
    """
    folders = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    } - {"out"}
    blocks = "\n".join(m[0] for m in FENCE.finditer(text))
    for named in INLINE.findall(FENCE.sub("", text)):
        if (
            re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?|[\w.-]+/", named)
            and named.split("/")[0] in folders
            and named not in blocks
        ):
            yield named


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#{1,6} (.+?)\s*$", FENCE.sub("", text), re.MULTILINE)
    shown = [
        re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        for heading in headings
    ]
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in shown
    }


def build(
    folder,
    demo="<!doctype html><title>the demo's page, which `make docs` makes</title>",
):
    """The site in a folder, as `make docs` builds it but for the demo's page."""
    (source := folder / "source").mkdir()
    (source / "demo.html").write_text(demo, encoding="utf-8")
    flags = [
        "-W",
        "-n",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "-d",
        folder / "trees",
        "-c",
        pages.DOCS,
    ]
    command = [sys.executable, "-m", "sphinx", *flags, source, folder / "site"]
    environment = {
        **os.environ,
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=900, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    return folder / "site"
