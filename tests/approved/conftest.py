"""Whole outputs of commands, each held by a text file that a person has read.

A case runs commands as a user types them, in an empty folder, and compares the terminal with its
file::

    def test_worse(approve):
        a_verdict_file(aurora=some_scores(mean=0.4), borealis=some_scores())
        approve("vieval rank v.jsonl --margin 0.05")

`make approve` writes the files anew; the difference is read in the commit that brings it.
"""

import contextlib
import io
import re
import shlex
import shutil
import tempfile
from pathlib import Path

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

import vieval_plugin
from tests.brightness import by_brightness
from tests.builders import a_server
from tests.documents import require_valid
from tests.report.pages import Page
from vieval_plugin.cli import main

# what differs from run to run and from machine to machine, and what stands for it
VARYING = (
    (re.compile(r"\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?Z?)?"), "DATE"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), "HOST:PORT"),
    (re.compile(r"\b\d+(\.\d+)?( ?)(s|ms|seconds?|minutes?)\b"), r"N\2\3"),
    (re.compile(rf"\b{re.escape(vieval_plugin.__version__)}\b"), "VERSION"),
    (re.compile(r"\b([0-9a-f]{64}|[0-9a-f]{16})\b"), "HASH"),
    (re.compile(r"\b\d+\.\d (Mi?B)\b"), r"N \1"),
    (re.compile(r"Python 3\.\d+\.\d+"), "Python VERSION"),
    # seconds of calls
    (
        re.compile(r"(?m)(combinations of task type and image model \|.*\| )\d+ \|$"),
        r"\1N |",
    ),
    (re.compile(r"(?<=seconds: about )[\d.,]+"), "N"),
    # which questions meet one another depends on threads
    (re.compile(r"(?<=calls: ).*"), "N"),
    (re.compile(r"(?m)(?<=^seconds: )\d.*"), "N"),
)
PROGRESS = re.compile(r"^(Judging|Generating|Pilot)[^\n]*\n", re.MULTILINE)


class TextFile(SingleFileSnapshotExtension):
    """A text file a case, in a folder named after the module."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    @classmethod
    def dirname(cls, *, test_location):
        return str(Path(test_location.filepath).with_suffix(""))


def constant(text, folder):
    """A text with a name in place of all that varies."""
    text = PROGRESS.sub("", text.replace("\r", "\n").replace(str(folder), "FOLDER"))
    for pattern, name in VARYING:
        text = pattern.sub(name, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def transcript(command, servers=()):
    """A command line with all that it prints, the files that it makes and its exit code; `cat`
    shows a file's text.

    Beside fake servers it says where none of them was asked anything.
    """
    name, *arguments = shlex.split(command)
    if name == "cat":
        return f"$ {command}\n{text_of(Path(*arguments))}\n"
    before, asked = present_files(), requests_to(servers)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
    text = f"$ {command}\n{out.getvalue()}"
    # a progress bar leaves as many blank lines as it was drawn
    lines = err.getvalue().replace("\r", "\n").split("\n")
    said = [f"{line}\n" for line in lines if line.strip()]
    if said:
        text += "".join(["[stderr]\n", *said])
    files = sorted(map(str, present_files() - before))
    if files:
        text += f"[new files: {', '.join(files[:10])}]\n"
    if servers and requests_to(servers) == asked:
        text += "[nothing was asked]\n"
    if code:
        text += f"[exit code {int(code)}]\n"
    return text


def requests_to(servers):
    return sum(server.stats()["requests"] for server in servers)


def present_files():
    """Files of the working folder, without those of a cache."""
    paths = filter(Path.is_file, Path().rglob("*"))
    return {path for path in paths if path.parts[0] != ".cache"}


def text_of(path):
    """The text of a file; of a page its words, an element a line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".html":
        return text
    words = (" ".join(element.split()) for element in Page(text).words)
    return "\n".join(filter(None, words))


@pytest.fixture
def started():
    """The fake servers that a case has started."""
    return []


@pytest.fixture
def judge_server(monkeypatch, started):
    """Starts a fake server that scores brightness, which commands use from then on."""
    with contextlib.ExitStack() as servers:

        def start(**settings):
            fake = a_server(**{"reply": by_brightness(), **settings})
            server = servers.enter_context(fake)
            monkeypatch.setenv("VIEVAL_MODEL", "fake")
            monkeypatch.setenv("VIEVAL_BASE_URL", server.base_url)
            started.append(server)
            return server

        yield start


@pytest.fixture
def tmp_path():
    """A folder whose path is as long in every run, as tables break long paths."""
    folder = Path(tempfile.mkdtemp(prefix="vieval-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def approve(tmp_path, monkeypatch, snapshot, started):
    """Runs commands and compares all that they print with the case's file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vieval.yaml").write_text("statistics: {draws: 200}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def compared(*commands):
        text = "\n".join(transcript(command, started) for command in commands)
        assert constant(text, tmp_path) == snapshot(extension_class=TextFile)
        for folder in (tmp_path, *filter(Path.is_dir, tmp_path.iterdir())):
            require_valid(folder)

    return compared


@pytest.fixture
def approve_text(snapshot):
    """Compares texts by name with the case's file."""

    def compared(texts):
        text = ""
        for name, lines in texts.items():
            listed = [lines] if isinstance(lines, str) else lines
            text += "\n".join([f"# {name}", *listed, "", ""])
        assert text == snapshot(extension_class=TextFile)

    return compared
