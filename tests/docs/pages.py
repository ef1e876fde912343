"""What the hand-written pages name: commands, options, make targets, files and links."""

import argparse
import os
import re
import shlex
import sys
from functools import cache
from pathlib import Path

from tests.work import run_process
from vieval_plugin import cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = (
    *("reference/commands", "reference/options", "reference/judges"),
    *("reference/metrics", "reference/api/", "reference/benchmarks_table"),
)
BLOCK = r"^[ ]*(```+)(\S*)[^\n]*\n(.*?)^[ ]*\1\s*$"
FENCE = re.compile(BLOCK, re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
SHELL = ("", "bash", "sh", "console", "shell")


def written():
    """The hand-written pages of the site, and those of the repository that are written alike."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def commands(text):
    """The `vieval` and `make` commands in shell blocks and in backticks, each as its words."""
    blocks = [m[3].replace("\\\n", " ") for m in FENCE.finditer(text) if m[2] in SHELL]
    words = INLINE.findall(FENCE.sub("", text))
    lines = [line for block in blocks for line in block.splitlines()]
    lines += [line for line in words if line.startswith(("vieval ", "make "))]
    for command in (words for line in lines for words in split(line)):
        names = [Path(word).name for word in command]
        place = next((n for n, w in enumerate(names) if w in ("vieval", "make")), None)
        other = lambda word: word.startswith("-") or word in ("pip", "cd")
        if place is not None and not any(map(other, command[:place])):
            yield [names[place], *command[place + 1 :]]


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
        text = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = set(re.findall(r"^([\w-]+):", text, re.MULTILINE))
        named = [word for word in words[1:2] if re.fullmatch(r"[a-z-]+", word)]
        return "".join(f"make has no target {n}" for n in named if n not in targets)
    at, name = parser(), "vieval"
    options = set()
    for word in words[1:]:
        below = [a for a in at._actions if isinstance(a, argparse._SubParsersAction)]
        options |= options_of(at)
        if below and not word.startswith("-"):
            if word.isupper() or not re.match(r"\w", word):
                return ""
            if word not in below[0].choices:
                return f"{name} has no command {word}"
            at, name = below[0].choices[word], f"{name} {word}"
            options |= options_of(at)
        # what another command takes is not abbreviated
        elif (
            word.startswith("--")
            and at.allow_abbrev
            and word.partition("=")[0] not in options
        ):
            return f"{name} has no option {word}"
    return ""


def options_of(at):
    return {option for action in at._actions for option in action.option_strings}


def files(text):
    """Paths in backticks below a folder of the repository, except files that the page writes."""
    folders = {path.name for path in ROOT.glob("[!.]*") if path.is_dir()} - {"out"}
    blocks = "\n".join(m[0] for m in FENCE.finditer(text))
    for named in INLINE.findall(FENCE.sub("", text)):
        is_path = re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?|[\w.-]+/", named)
        if is_path and named.split("/")[0] in folders and named not in blocks:
            yield named


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#{1,6} (.+?)\s*$", FENCE.sub("", text), re.MULTILINE)
    without_links = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", it) for it in headings)
    words = (re.sub(r"[^\w\- ]", "", it.lower()) for it in without_links)
    return {it.replace(" ", "-") for it in words}


DEMO = "<!doctype html><title>the demo's page, which `make docs` makes</title>"


def build(folder, demo=DEMO):
    """The site in a folder, as `make docs` builds it but for the demo's page."""
    (source := folder / "source").mkdir()
    (source / "demo.html").write_text(demo, encoding="utf-8")
    flags = ["-W", "-n", "--keep-going", "-q", "-b", "html", "-d", folder / "trees"]
    places = ["-c", DOCS, source, folder / "site"]
    proxies = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    command = [sys.executable, "-m", "sphinx", *flags, *places]
    ran = run_process(command, timeout=900, env={**os.environ, **proxies})
    assert ran.returncode == 0, ran.stderr
    return folder / "site"
