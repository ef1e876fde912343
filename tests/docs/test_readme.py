"""README's generated part is what its script writes."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_judges_is_that_of_their_specs():
    script = runpy.run_path(str(DOCS / "make_judge_table.py"))
    readme = script["README"].read_text(encoding="utf-8")
    assert script["filled"](readme) == readme
    assert readme.count("`viescore` | SC, PQ, O |") == 1
