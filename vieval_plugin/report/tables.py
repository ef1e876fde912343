"""Tables of a benchmark's results, in the shape of the VIEScore paper's, as rows that become Markdown or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation import Agreement
from vieval_plugin.report.cells import HUMAN, Key, Results

ORDER = ("SC", "PQ", "O")


@dataclass(frozen=True)
class Table:
    """A table under a title; `name` is the stem of its CSV."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        lines = [
            f"### {self.title}",
            "",
            _row(self.header),
            _row(["---"] * len(self.header)),
            *map(_row, self.rows),
            "",
        ]
        return "\n".join(lines)

    def csv(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.header, *self.rows])
        return text.getvalue()


def tables(results: Results) -> list[Table]:
    """All tables of a benchmark that have a row."""
    aspects = _aspects(results)
    made = [
        _averages(
            results, aspects, ("all",), "corrected_all", "Over all tasks: Spearman, Fisher average [95% interval]"
        ),
        _averages(
            results, aspects, results.tasks, "corrected_tasks", "By task: Spearman, Fisher average [95% interval]"
        ),
        _paper(results, aspects, "T1", ("all",), "table_1", "Table 1. Over all tasks, the published averaging"),
        _paper(
            results, aspects, "T2/3", results.tasks, "table_2_3", "Tables 2 and 3. By task, the published averaging"
        ),
        _rankings(results),
        _by_image_model(results, aspects),
        _humans(results, aspects),
        _alpha(results, aspects),
        _statuses(results),
    ]
    return [table for table in made if table.rows]


def _aspects(results: Results) -> tuple[str, ...]:
    found = {aspect for _, _, aspect in results.agreement}
    return (*(a for a in ORDER if a in found), *sorted(found - set(ORDER)))


def _averages(results: Results, aspects: Sequence[str], tasks: Sequence[str], name: str, title: str) -> Table:
    rows = []
    for task in tasks:
        for label in results.labels:
            found = [results.agreement.get((label, task, aspect)) for aspect in aspects]
            if any(found):
                n = max(a.count for a in found if a)
                rows.append((task, label, str(n), *(_with_interval(a) for a in found)))
    return Table(name, title, ("task", "judge", "n", *aspects), tuple(rows))


def _paper(results: Results, aspects: Sequence[str], table: str, tasks: Sequence[str], name: str, title: str) -> Table:
    rows = []
    for task in tasks:
        for label in results.labels:
            keys = [Key(table, task, "", label, "spearman", aspect) for aspect in aspects]
            if any(key in results.cells for key in keys):
                rows.append((task, label, *(_number(results.cells.get(key)) for key in keys)))
    return Table(name, title, ("task", "judge", *aspects), tuple(rows))


def _rankings(results: Results) -> Table:
    rows = []
    for (label, task), ranking in sorted(results.rankings.items(), key=lambda item: results.tasks.index(item[0][1])):
        ranked = [
            " ".join(f"{model}:{rank:g}" for model, rank in _sorted(side)) for side in (ranking.human, ranking.judge)
        ]
        values = [results.cells[Key("T5", task, "", label, statistic, "O")] for statistic in ("footrule", "rho")]
        rows.append((task, label, *ranked, f"{values[0]:g}", _number(values[1], 2)))
    header = ("task", "judge", "rank by humans", "rank by judge", "footrule", "rho")
    return Table("table_5", "Table 5. Ranking image models by mean O", header, tuple(rows))


def _by_image_model(results: Results, aspects: Sequence[str]) -> Table:
    places = sorted(
        {(k.task, k.image_model) for k in results.cells if k.table == "T6"},
        key=lambda p: (results.tasks.index(p[0]), p[1]),
    )
    judges = [label for label in results.labels if label != HUMAN]
    rows = []
    for task, model in places:
        for label in judges:
            keys = [Key("T6", task, model, label, "spearman", aspect) for aspect in aspects]
            if any(key in results.cells for key in keys):
                rows.append((task, model, label, *(_number(results.cells.get(key)) for key in keys)))
    return Table("table_6", "Table 6. Spearman by image model", ("task", "image model", "judge", *aspects), tuple(rows))


def _humans(results: Results, aspects: Sequence[str]) -> Table:
    kinds = ("pearson", "spearman", "kendall")
    places = sorted(
        {(k.task, k.image_model) for k in results.cells if k.table == "T7"},
        key=lambda p: (results.tasks.index(p[0]), p[1]),
    )
    rows = tuple(
        (
            task,
            model,
            *(_number(results.cells.get(Key("T7", task, model, HUMAN, kind, a))) for kind in kinds for a in aspects),
        )
        for task, model in places
    )
    header = ("task", "image model", *(f"{kind} {a}" for kind in kinds for a in aspects))
    return Table("table_7", "Table 7. Human raters, leave one out, the published averaging", header, rows)


def _alpha(results: Results, aspects: Sequence[str]) -> Table:
    rows = tuple(
        (task, *(_number(results.alpha.get((task, a))) for a in aspects))
        for task in results.tasks
        if any((task, a) in results.alpha for a in aspects)
    )
    return Table("krippendorff", "Human raters: Krippendorff's alpha (ordinal)", ("task", *aspects), rows)


def _statuses(results: Results) -> Table:
    rows = []
    for label, counts in results.statuses.items():
        replies = results.replies[label]
        rows.append((label, "samples", *(str(counts[s]) for s in Status)))
        rows.append((label, "answers", *(str(replies[s]) for s in Status)))
    header = ("judge", "of", *map(str, Status))
    return Table("statuses", "How verdicts and the answers behind them came out", header, tuple(rows))


def _with_interval(found: Agreement | None) -> str:
    if found is None:
        return ""
    if found.fisher != found.fisher:
        return "undefined"
    return f"{found.fisher:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _number(value: float | None, digits: int = 4) -> str:
    if value is None:
        return ""
    return "undefined" if value != value else f"{value:.{digits}f}"


def _sorted(side: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(side.items(), key=lambda item: (item[1], item[0]))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
