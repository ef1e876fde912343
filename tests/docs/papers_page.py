"""docs/reference/papers.md as its tests read it: its commands, and the judge in its file."""

import re
import shlex

import pytest

from tests.docs import pages
from vieval_plugin.judges import registry

PAGE = pages.DOCS / "reference" / "papers.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = r"^```yaml gpt4v_eval\.yaml\n(.*?)^```$"
[FILE] = re.findall(BLOCK, TEXT, re.MULTILINE | re.DOTALL)
SHELL = [m[3] for m in pages.FENCE.finditer(TEXT) if m[2] == "bash"]
BLOCKS = "\n".join(SHELL).replace("\\\n", " ").splitlines()
INLINE = pages.INLINE.findall(pages.FENCE.sub("", TEXT))
SPLIT = [
    [word for word in shlex.split(command) if not re.match(r"[A-Z_]+=", word)]
    for command in (*BLOCKS, *INLINE)
]
COMMANDS = [c for c in SPLIT if len(c) > 1 and c[0] in ("lmms-eval", "vieval")]
OF_HOST = [command for command in COMMANDS if command[0] == "lmms-eval"]


@pytest.fixture
def judge_file(tmp_path):
    """The judge of the page; afterwards the process knows it no more."""
    path = tmp_path / "gpt4v_eval.yaml"
    path.write_text(FILE)
    registry.judge(str(path))
    yield path
    del registry.judges()["gpt4v_eval"]
