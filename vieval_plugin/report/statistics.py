"""Tables of benchmarks that have statistics of their own: one row a task and judge, and one a skill where there are tags."""

from __future__ import annotations

from vieval_plugin.alignment import by_tag, summarise
from vieval_plugin.data.benchmarks import BENCHMARKS
from vieval_plugin.meta_evaluation import Estimate, Observation, Options, Summary, observe
from vieval_plugin.report.cells import Key
from vieval_plugin.report.load import Run
from vieval_plugin.report.tables import Table

Found = dict[tuple[str, str], Summary]


def compute(benchmark: str, runs: list[Run], options: Options) -> tuple[Found, dict[tuple[str, str, str], Summary]]:
    """Summaries by (task, judge), and by (task, judge, tag) for tagged samples."""
    statistics = BENCHMARKS[benchmark].statistics
    whole: Found = {}
    tagged: dict[tuple[str, str, str], Summary] = {}
    for run in runs:
        for task, rows in run.records.items():
            observed: tuple[Observation, ...] = tuple(observe(records) for records in rows)
            name = f"{benchmark}/{task}"
            whole[task, run.label] = summarise(observed, statistics, name, options)
            for tag, summary in by_tag(observed, statistics, name, options).items():
                tagged[task, run.label, tag] = summary
    return whole, tagged


def tables(benchmark: str, runs: list[Run], options: Options) -> tuple[list[Table], dict[Key, float]]:
    """The tables of such a benchmark, and its numbers as cells (table `statistics`, aspect SC)."""
    statistics = BENCHMARKS[benchmark].statistics
    whole, tagged = compute(benchmark, runs, options)
    header = ("scored", "exact", *statistics)
    rows = tuple((task, label, *_cells(summary)) for (task, label), summary in whole.items())
    by_skill = tuple((task, label, tag, *_cells(summary)) for (task, label, tag), summary in tagged.items())
    made = [
        Table("statistics", "Statistics [95% interval]", ("task", "judge", *header), rows),
        Table("skills", "By skill", ("task", "judge", "skill", *header), by_skill),
    ]
    cells = {
        Key("statistics", task, "", label, name, "SC"): estimate.value
        for (task, label), summary in whole.items()
        for name, estimate in summary.estimates.items()
    }
    return [table for table in made if table.rows], cells


def _cells(summary: Summary) -> list[str]:
    return [str(summary.scored), str(summary.exact), *map(_with_interval, summary.estimates.values())]


def _with_interval(estimate: Estimate) -> str:
    if estimate.value != estimate.value:
        return f"undefined ({estimate.reason})"
    return f"{estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"
