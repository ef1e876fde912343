"""Runs the code blocks of a page in order, as its reader would; tests and pictures of README and
the tutorials use it.

A comment before a block says why it is not run as it stands: `<!-- needs: a server -->` runs it
against a server that the caller names, and `<!-- not run: REASON -->` leaves it out. A ```text
block after a block is what that prints, with `...` for what varies.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(
    r"(?:^<!-- (?P<note>(?:needs|not run): .*?) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```\n"
    r"(?:\n*^```text\n(?P<printed>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
ANYTHING = "..."


@dataclass(frozen=True)
class Block:
    """A code block of a page, the comment before it, and the text that it prints, where the page
    shows that.
    """

    language: str
    code: str
    note: str
    printed: str | None

    @property
    def runs(self) -> bool:
        return self.language in ("bash", "python") and not self.note.startswith(
            "not run"
        )


def blocks(page: Path) -> list[Block]:
    """The code blocks of a page in order, but for those that are another block's output."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [
        Block(block["language"], block["code"], block["note"] or "", block["printed"])
        for block in found
    ]


def run(
    page_blocks: list[Block], folder: Path, environment: Mapping[str, str]
) -> tuple[int, list[str], str]:
    """Run bash and Python blocks in one shell, in which variables, folders and background jobs last
    from block to block.

    Args:
        page_blocks: those to run.
        folder: the working folder.
        environment: what is set for them, on top of this process's own.

    Returns:
        The exit status of the shell, which stops at the first block that fails; the standard output
        of each block that began; the standard error of the last.
    """
    script = ["set -eo pipefail", "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"]
    for number, block in enumerate(page_blocks):
        python = f"python - <<'END OF BLOCK'\n{block.code}END OF BLOCK\n"
        script += [
            f"exec > .{number}.out 2> .{number}.err",
            python if block.language == "python" else block.code,
        ]
    path = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    )
    shell = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        stdin=subprocess.DEVNULL,
        timeout=900,
    )
    printed = [
        file.read_text()
        for number in range(len(page_blocks))
        if (file := folder / f".{number}.out").is_file()
    ]
    return shell.returncode, printed, (folder / f".{len(printed) - 1}.err").read_text()


def matches(shown: str, printed: str) -> bool:
    """Is `printed` what a page shows? `...` stands for anything; decimals may differ by 0.005 or by
    one in their last digit, as libraries round.
    """
    shown, printed = (
        "".join(f"\n{line.rstrip()}" for line in text.strip().splitlines())
        for text in (shown, printed)
    )
    parts = re.split(r"(\n\.\.\.(?=\n|$)|\.\.\.|\d*\.\d+)", shown)
    anything = [part.strip() == ANYTHING for part in parts]
    pattern = "".join(
        ".*" if anything[place] else r"(\d*\.\d+)" if place % 2 else re.escape(part)
        for place, part in enumerate(parts)
    )
    found = re.fullmatch(pattern, printed, re.DOTALL)
    decimals = [
        part for place, part in enumerate(parts) if place % 2 and not anything[place]
    ]
    return found is not None and all(map(_nearly, decimals, found.groups()))


def _nearly(shown: str, printed: str) -> bool:
    unit = 10.0 ** -len(shown.partition(".")[2])
    return abs(float(shown) - float(printed)) <= max(0.005, unit) + 1e-9


def main() -> None:
    """Run a page in an empty folder and print what each block printed: `python docs/run_page.py
    PAGE FOLDER`.
    """
    page, folder = map(Path, sys.argv[1:])
    folder.mkdir()
    chosen = [block for block in blocks(page) if block.runs and not block.note]
    status, printed, errors = run(chosen, folder, {})
    for block, text in zip(chosen, printed, strict=False):
        print(f"--- {block.language}\n{block.code}--- printed\n{text}")
    print(errors, file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
