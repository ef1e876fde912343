"""Tables of agreement by image model, in the shape of the VIEScore paper's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.image_model_cells import ALL_PARTS, BY_MODEL, HUMAN, Numbers
from vieval_plugin.meta_evaluation.observations import Agreement
from vieval_plugin.meta_evaluation.tables import Key, Table, because, number, with_interval

ORDER = ("SC", "PQ", "O")


def image_model_tables(numbers: Numbers) -> list[Table]:
    """All tables of a benchmark that have a row.

    Args:
        numbers: what `numbers_by_image_model` found.
    """
    aspects = _aspects(numbers)
    everywhere = (ALL_PARTS,)
    corrected, published = "Spearman, Fisher average [95% interval]", "the published averaging"
    made = [
        _averages(numbers, aspects, everywhere, "corrected_all", f"Over all tasks: {corrected}"),
        _averages(numbers, aspects, numbers.parts, "corrected_tasks", f"By task: {corrected}"),
        _paper(numbers, aspects, "T1", everywhere, "table_1", f"Table 1. Over all tasks, {published}"),
        _paper(numbers, aspects, "T2/3", numbers.parts, "table_2_3", f"Tables 2 and 3. By task, {published}"),
        _left_out(numbers),
        _rankings(numbers),
        *(_by_image_model(numbers, aspects, table) for table in _tables_by_model(numbers)),
        _humans(numbers, aspects),
        _alpha(numbers, aspects),
        _statuses(numbers),
    ]
    return [table for table in made if table.rows]


def agreement_document(agreement: Mapping[tuple[str, str, str], Agreement]) -> list[dict[str, object]]:
    """Every agreement once more for programs, as JSON values; an undefined number is null, with its reason.

    Args:
        agreement: by (judge, part or `all`, aspect).
    """
    return [
        {
            "judge": judge,
            "task": part,
            "aspect": aspect,
            "fisher": _or_null(a.fisher),
            "ci_low": _or_null(a.low),
            "ci_high": _or_null(a.high),
            "paper": _or_null(a.paper),
            "count": a.count,
            "undefined": list(a.reasons),
            "counted_as_0": list(a.constant),
            "rests_on": str(a.coverage),
        }
        for (judge, part, aspect), a in agreement.items()
    ]


def _or_null(value: float) -> float | None:
    return None if math.isnan(value) else value


def _aspects(numbers: Numbers) -> tuple[str, ...]:
    found = {aspect for _, _, aspect in numbers.agreement}
    return (*(a for a in ORDER if a in found), *sorted(found - set(ORDER)))


def _averages(numbers: Numbers, aspects: Sequence[str], parts: Sequence[str], name: str, title: str) -> Table:
    rows = []
    for part in parts:
        for label in numbers.labels:
            found = [numbers.agreement.get((label, part, aspect)) for aspect in aspects]
            if any(found):
                n = max(a.count for a in found if a)
                shown = ("" if a is None else _with_interval(a) for a in found)
                rows.append((part, label, str(n), *shown))
    return Table(name, title, ("task", "judge", "n", *aspects), tuple(rows))


def _with_interval(found: Agreement) -> str:
    return with_interval(found.fisher, found.low, found.high, because(found.reasons), digits=3)


def _shown(numbers: Numbers, key: Key, digits: int = 4) -> str:
    return number(numbers.cells.get(key), digits, numbers.reasons.get(key, ""))


def _left_out(numbers: Numbers) -> Table:
    """Image models without a value, and those that count as 0 because all scores are the same."""
    aspects: dict[tuple[str, str, str, str], list[str]] = {}
    for (label, part, aspect), found in numbers.agreement.items():
        zero = [f"{reason}, which counts as 0" for reason in found.constant]
        for reason in (*found.reasons, *zero) if part != ALL_PARTS else ():
            who, _, why = reason.partition(": ")
            aspects.setdefault((part, label, why, who), []).append(aspect)
    models: dict[tuple[str, str, str, str], list[str]] = {}
    for (part, label, why, who), several in aspects.items():
        models.setdefault((part, label, ", ".join(several), why), []).append(who)
    rows = tuple((part, label, several, ", ".join(whose), why) for (part, label, several, why), whose in models.items())
    header = ("task", "judge", "aspects", "image models", "why")
    return Table("left_out", "Image models without a value in the averages, or with 0", header, rows)


def _paper(numbers: Numbers, aspects: Sequence[str], table: str, parts: Sequence[str], name: str, title: str) -> Table:
    rows = []
    for part in parts:
        for label in numbers.labels:
            keys = [Key(table, part, "", label, "spearman", aspect) for aspect in aspects]
            if any(key in numbers.cells for key in keys):
                rows.append((part, label, *(_shown(numbers, key) for key in keys)))
    return Table(name, title, ("task", "judge", *aspects), tuple(rows))


def _rankings(numbers: Numbers) -> Table:
    rows = []
    for (label, part), ranking in sorted(numbers.rankings.items(), key=lambda item: numbers.parts.index(item[0][1])):
        ranked = [
            " ".join(f"{model}:{rank:g}" for model, rank in _by_rank(side)) for side in (ranking.human, ranking.judge)
        ]
        footrule, rho = (Key("T5", part, "", label, statistic, "O") for statistic in ("footrule", "rho"))
        rows.append((part, label, *ranked, f"{numbers.cells[footrule]:g}", _shown(numbers, rho, 2)))
    header = ("task", "judge", "rank by humans", "rank by judge", "footrule", "rho")
    return Table("table_5", "Table 5. Ranking image models by mean O", header, tuple(rows))


def _by_rank(side: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(side.items(), key=lambda item: (item[1], item[0]))


def _places(numbers: Numbers, table: str) -> list[tuple[str, str]]:
    """The parts and image models of a table's cells, in the order of rows."""
    found = {(k.task, k.image_model) for k in numbers.cells if k.table == table}
    return sorted(found, key=lambda place: (numbers.parts.index(place[0]), place[1]))


def _tables_by_model(numbers: Numbers) -> list[str]:
    """The tables of correlations by image model: the common one, then those that print a judge's apart."""
    found = {key.table for key in numbers.cells if key.image_model and key.judge != HUMAN}
    return sorted(found, key=lambda table: (table != BY_MODEL, len(table), table))


def _by_image_model(numbers: Numbers, aspects: Sequence[str], table: str) -> Table:
    rows = []
    for part, model in _places(numbers, table):
        for label in (label for label in numbers.labels if label != HUMAN):
            keys = [Key(table, part, model, label, "spearman", aspect) for aspect in aspects]
            if any(key in numbers.cells for key in keys):
                rows.append((part, model, label, *(_shown(numbers, key) for key in keys)))
    place, header = table.removeprefix("T"), ("task", "image model", "judge", *aspects)
    return Table(f"table_{place}", f"Table {place}. Spearman by image model", header, tuple(rows))


def _humans(numbers: Numbers, aspects: Sequence[str]) -> Table:
    kinds = [(coefficient, aspect) for coefficient in ("pearson", "spearman", "kendall") for aspect in aspects]
    rows = tuple(
        (part, model, *(_shown(numbers, Key("T7", part, model, HUMAN, *kind)) for kind in kinds))
        for part, model in _places(numbers, "T7")
    )
    header = ("task", "image model", *(f"{coefficient} {aspect}" for coefficient, aspect in kinds))
    return Table("table_7", "Table 7. Human raters, leave one out, the published averaging", header, rows)


def _alpha(numbers: Numbers, aspects: Sequence[str]) -> Table:
    rows = tuple(
        (part, *(number(numbers.alpha.get((part, a)), reason="all ratings are alike") for a in aspects))
        for part in numbers.parts
        if any((part, a) in numbers.alpha for a in aspects)
    )
    return Table("krippendorff", "Human raters: Krippendorff's alpha (ordinal)", ("task", *aspects), rows)


def _statuses(numbers: Numbers) -> Table:
    rows = []
    for label, counts in numbers.statuses.items():
        replies = numbers.replies[label]
        rows.append((label, "samples", *(str(counts[s]) for s in Status)))
        rows.append((label, "answers", *(str(replies[s]) for s in Status)))
    header = ("judge", "of", *map(str, Status))
    return Table("statuses", "How verdicts and the answers behind them came out", header, tuple(rows))
