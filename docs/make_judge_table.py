"""Writes README's table of judges from their specs: `make tasks`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.spec import JudgeSpec
from vieval_plugin.media.files import write_whole

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- judges: written by `make tasks` -->", "<!-- end of judges -->"


def table(specs: list[JudgeSpec]) -> str:
    """Markdown rows of judges; those that differ by their name and aspects alone share a row."""
    by_method: defaultdict[tuple[str, str], list[JudgeSpec]] = defaultdict(list)
    for spec in sorted(
        specs, key=lambda spec: spec.pack is None
    ):  # those that ask a model first
        by_method[spec.method, spec.calls(spec.options(), spec.plain)].append(spec)
    rows = [
        "| judge | aspects | how it scores | calls for a sample |",
        "|---|---|---|---|",
    ]
    for (method, calls), same in by_method.items():
        names = ", ".join(f"`{spec.name}`" for spec in same)
        aspects = ", ".join((*same[0].aspects, *same[0].dimensions)) or "votes on pairs"
        rows.append(
            f"| {names} | {aspects if len(same) == 1 else 'one each'} | {method} | {calls} |"
        )
    return "\n".join(rows)


def filled(readme: str) -> str:
    """README with the table in its place."""
    head, _, rest = readme.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{table(list(judge_registry.judges().values()))}\n\n{END}{tail}"


if __name__ == "__main__":
    write_whole(README, filled(README.read_text(encoding="utf-8")).encode())
