"""Checks the prose of README and the pages with proselint and a short list of ours: `make lint`.
It needs no network.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from proselint.checks import __register__
from proselint.config import DEFAULT, Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).parents[1]
OFF = (
    "typography",
)  # straight quotes and three dots are what a keyboard and code have
CODE_BLOCK = re.compile(r"^(`{3,}|~{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"(`+)[^`\n]+\1|(?<=\])\([^)\n]*\)|<!--.*?-->|\$[^$\n]+\$")

INSTALL = (
    r"pip install .*(?<![/\\w])vieval\[",
    "no package of that name is published: install from a checkout or release file",
)
OURS = (
    (r"\bhad again\b|\b(asked|judged|made|told) anew\b", "say who does it again"),
    (
        r"\bthat (none|nobody|nothing) (gains?|loses?)\b",
        "say what happens in place of a saying",
    ),
    (r"\b(is|are|be|was|were) (told|asked) of\b", "name what is reported"),
    (r"\bput right\b", "write: fix"),
    (
        (
            r"\bread, not run\b|\bhave not seen the\b|\bdeparts? from (its|the) "
            r"(specification|plan|first)"
        ),
        "history: leave it out",
    ),
    (r"\bwhat is (drawn|shown|told|held|had|said)\b", "name the thing"),
    (
        (
            r"\b(the|a|each|every|all|no) "
            r"(judged|asked|drawn|shown|told|answered|unread|failed)(?=[.,;:)]| "
            r"(is|are|has|have|of)\b)"
        ),
        "a participle as a noun: name the thing",
    ),
    (r"\bwhoever\b|\bthereof\b|\bwherein\b", "too formal: use a plain word"),
)
"""Regular expressions of turns that readers stumble over, with advice."""


def pages() -> list[Path]:
    """README, CONTRIBUTING and the hand-written pages."""
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def findings(page: str) -> Iterator[tuple[int, str]]:
    """Line and advice for each finding in a page's Markdown."""
    prose = prose_of(page)
    checks = DEFAULT["checks"] | dict.fromkeys(OFF, False)
    for finding in LintFile("page", prose).lint(Config(max_errors=100, checks=checks)):
        yield finding.pos[0], finding.check_result.message
    for text, (pattern, advice) in ((page, INSTALL), *((prose, ours) for ours in OURS)):
        for match in re.finditer(pattern, text, re.IGNORECASE):
            yield text.count("\n", 0, match.start()) + 1, f"{match[0]!r}: {advice}"


def prose_of(page: str) -> str:
    """A page with its lines as they are, a word for each piece of code and link, and nothing of
    code blocks.

    >>> prose_of("Run `a b` now.\\n\\n```\\ncode\\n```")
    'Run code1x now.\\n.\\n.\\n.\\n.'
    """
    number = count(1)
    text = CODE_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), page)
    text = INLINE_CODE.sub(lambda code: f"code{next(number)}x", text)
    return "\n".join(
        line or "." for line in text.split("\n")
    )  # a paragraph's end is one for proselint as well


def main() -> int:
    """Print all findings; returns 1 where there are any."""
    CheckRegistry().register_many(__register__)
    lines = [
        f"{page.relative_to(ROOT)}:{line}: {advice}"
        for page in pages()
        for line, advice in sorted(findings(page.read_text(encoding="utf-8")))
    ]
    print(*lines, sep="\n" if lines else "", end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
