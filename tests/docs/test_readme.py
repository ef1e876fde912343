"""README's generated part is what its script writes, and its numbers are those of the code and
the leaderboard.
"""

import csv
import runpy
from pathlib import Path

from vieval_plugin.benchmarks import registry

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_judges_is_that_of_their_specs():
    script = runpy.run_path(str(DOCS / "make_judge_table.py"))
    readme = script["README"].read_text(encoding="utf-8")
    assert script["filled"](readme) == readme
    assert readme.count("`viescore` | SC, PQ, O |") == 1


def test_the_number_of_benchmarks_is_that_of_the_registry():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert f"`vieval tasks` lists {len(registry.benchmarks())} benchmarks" in readme


def test_what_people_and_gpt_4o_reach_is_what_the_leaderboard_has():
    with open(
        DOCS / "leaderboard" / "leaderboard.csv", encoding="utf-8", newline=""
    ) as file:
        rows = list(csv.DictReader(file))
    place = {
        "failure_policy": "drop",
        "setting": "all",
        "benchmark": "imagenhub",
        "part": "all",
        "aspect": "O",
    }
    place |= {"statistic": "spearman", "breakdown": ""}
    found = [
        row for row in rows if all(row[name] == value for name, value in place.items())
    ]
    [people] = [row for row in found if row["role"] == "ceiling"]
    [gpt_4o] = [row for row in found if row["system"] == "GPT-4o zero-shot"]
    values = [f"{float(row['value']):.2f}".lstrip("0") for row in (people, gpt_4o)]
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert (
        f"people reach {values[0]} with one another, and the published GPT-4o {values[1]}"
        in readme
    )
    assert f"On {int(people['n']):,} images of ImagenHub" in readme
