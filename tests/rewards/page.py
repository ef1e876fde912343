"""Code blocks of docs/tutorials/reward.md, with a test's server in the place of the reader's."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "reward.md"


def blocks_of(heading, base_url):
    """The Python blocks below a heading."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    blocks = re.findall(r"```python\n(.*?)```", text.partition("\n## ")[0], re.DOTALL)
    address = ("http://127.0.0.1:8000/v1", base_url)
    return [block.replace("NAME", "fake").replace(*address) for block in blocks]
