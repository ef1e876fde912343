"""What `vieval score` leaves: the lines of verdicts, and their run file."""

import json

from vieval_plugin.run.verdict_lines import run_file


def runs_of(path):
    """The runs of a file of verdicts, by their hash."""
    return json.loads(run_file(path).read_text())["runs"]


def provenance_of(path, row):
    """Who judged a line of a file of verdicts, and how."""
    return runs_of(path)[row["run"]]["provenance"]


def copied(source, target, change=lambda text: text):
    """A copy of a file of verdicts and of what stands beside it; `change` is done to its text."""
    target.write_text(change(source.read_text()))
    run_file(target).write_text(run_file(source).read_text())
    return target


def write_rows(path, *rows):
    """Write lines as `vieval score` does, of rows that each say in `provenance` who judged."""
    runs = {f"run{n}": {"provenance": it["provenance"]} for n, it in enumerate(rows)}
    lines = []
    for run, row in zip(runs, rows, strict=True):
        fields = {name: value for name, value in row.items() if name != "provenance"}
        lines.append(json.dumps({"images": {}, "texts": {}, **fields, "run": run}))
    path.write_text("".join(f"{line}\n" for line in lines))
    run_file(path).write_text(json.dumps({"runs": runs}))
