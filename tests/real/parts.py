"""Parts that `make test-real` installs by pip, each into an environment of its own."""

import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

import pytest

HOME = Path(__file__).parents[2] / ".venv-real"


def installed(part):
    """A mark that skips a test whose part is not installed, with the reason of pip."""
    return pytest.mark.skipif(
        not (HOME / part / "ready").exists(), reason=_reason(HOME / f"{part}.log")
    )


def program(part, name="python"):
    """A program of a part's environment."""
    return HOME / part / "bin" / name


@contextmanager
def logged(log, *command, **how):
    """The process of a command, with what it prints in a file."""
    with log.open("w") as output:
        pipes = {"stdout": output, "stderr": output}
        with subprocess.Popen(list(map(str, command)), **pipes, **how) as process:
            yield process


def answers(running, path):
    """Whether a server answers with 200 at a path."""
    try:
        return running.get(path)[0] == 200
    except URLError:
        return False


def report(part, begun, before, judged, rows):
    """Print how a run with a kill went."""
    rest = len(set(judged))
    took = f"{part}: {time.monotonic() - begun:.1f} s, {before} files at the kill"
    print(f"{took}, missing {rows - rest}, twice {len(judged) - rest}")


def _reason(log):
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return "not installed: make test-real"
    errors = [line for line in lines if re.search("error", line, re.IGNORECASE)]
    return f"does not install: {(errors or lines or ['stopped'])[-1][:200]}"
