"""docs/reference/papers.md as its tests read it: its commands, and the judge in its file."""

import re
import shlex

import pytest

from tests.docs import pages
from vieval_plugin.judges import registry

PAGE = pages.DOCS / "reference" / "papers.md"
TEXT = PAGE.read_text(encoding="utf-8")
[FILE] = re.findall(
    r"^```yaml gpt4v_eval\.yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL
)
BLOCKS = "\n".join(
    m[3].replace("\\\n", " ") for m in pages.FENCE.finditer(TEXT) if m[2] == "bash"
).splitlines()
INLINE = pages.INLINE.findall(pages.FENCE.sub("", TEXT))
COMMANDS = [
    words
    for command in (*BLOCKS, *INLINE)
    if (
        words := [
            word for word in shlex.split(command) if not re.match(r"[A-Z_]+=", word)
        ]
    )
    and words[0] in ("lmms-eval", "vieval")
    and len(words) > 1
]
OF_HOST = [command for command in COMMANDS if command[0] == "lmms-eval"]


@pytest.fixture
def judge_file(tmp_path):
    """The judge of the page; afterwards the process knows it no more."""
    path = tmp_path / "gpt4v_eval.yaml"
    path.write_text(FILE)
    registry.judge(str(path))
    yield path
    del registry.judges()["gpt4v_eval"]
