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
    """Tables of a benchmark that have a row.

    Args:
        numbers: what `numbers_by_image_model` found.
    """
    aspects = _aspects(numbers)
    everywhere = (ALL_PARTS,)
    corrected, published = "Spearman, Fisher average [95% interval]", "the published averaging"
    tables = [
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
    return [table for table in tables if table.rows]


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
    rated_aspects = {aspect for _, _, aspect in numbers.agreement}
    return (*(a for a in ORDER if a in rated_aspects), *sorted(rated_aspects - set(ORDER)))


def _averages(numbers: Numbers, aspects: Sequence[str], parts: Sequence[str], name: str, title: str) -> Table:
    rows = []
    for part in parts:
        for label in numbers.labels:
            agreements = [numbers.agreement.get((label, part, aspect)) for aspect in aspects]
            if any(agreements):
                n = max(a.count for a in agreements if a)
                intervals = ("" if a is None else _with_interval(a) for a in agreements)
                rows.append((part, label, str(n), *intervals))
    return Table(name, title, ("task", "judge", "n", *aspects), tuple(rows))


def _with_interval(agreement: Agreement) -> str:
    return with_interval(agreement.fisher, agreement.low, agreement.high, because(agreement.reasons), digits=3)


def _cell_text(numbers: Numbers, key: Key, digits: int = 4) -> str:
    return number(numbers.cells.get(key), digits, numbers.reasons.get(key, ""))


def _left_out(numbers: Numbers) -> Table:
    """Image models without a value, and those that count as 0 because all scores are the same."""
    aspects: dict[tuple[str, str, str, str], list[str]] = {}
    for (label, part, aspect), agreement in numbers.agreement.items():
        zero = [f"{reason}, which counts as 0" for reason in agreement.constant]
        for reason in (*agreement.reasons, *zero) if part != ALL_PARTS else ():
            model, _, why = reason.partition(": ")
            aspects.setdefault((part, label, why, model), []).append(aspect)
    models: dict[tuple[str, str, str, str], list[str]] = {}
    for (part, label, why, model), several in aspects.items():
        models.setdefault((part, label, ", ".join(several), why), []).append(model)
    rows = tuple(
        (part, label, several, ", ".join(model_names), why)
        for (part, label, several, why), model_names in models.items()
    )
    header = ("task", "judge", "aspects", "image models", "why")
    return Table("left_out", "Image models without a value in the averages, or with 0", header, rows)


def _paper(numbers: Numbers, aspects: Sequence[str], table: str, parts: Sequence[str], name: str, title: str) -> Table:
    rows = []
    for part in parts:
        for label in numbers.labels:
            keys = [Key(table, part, "", label, "spearman", aspect) for aspect in aspects]
            if any(key in numbers.cells for key in keys):
                rows.append((part, label, *(_cell_text(numbers, key) for key in keys)))
    return Table(name, title, ("task", "judge", *aspects), tuple(rows))


def _rankings(numbers: Numbers) -> Table:
    rows = []
    for (label, part), ranking in sorted(numbers.rankings.items(), key=lambda item: numbers.parts.index(item[0][1])):
        ranked = [
            " ".join(f"{model}:{rank:g}" for model, rank in _by_rank(side)) for side in (ranking.human, ranking.judge)
        ]
        footrule, rho = (Key("T5", part, "", label, statistic, "O") for statistic in ("footrule", "rho"))
        rows.append((part, label, *ranked, f"{numbers.cells[footrule]:g}", _cell_text(numbers, rho, 2)))
    header = ("task", "judge", "rank by humans", "rank by judge", "footrule", "rho")
    return Table("table_5", "Table 5. Ranking image models by mean O", header, tuple(rows))


def _by_rank(side: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(side.items(), key=lambda item: (item[1], item[0]))


def _places(numbers: Numbers, table: str) -> list[tuple[str, str]]:
    """The parts and image models of a table's cells, in the order of rows."""
    places = {(k.task, k.image_model) for k in numbers.cells if k.table == table}
    return sorted(places, key=lambda place: (numbers.parts.index(place[0]), place[1]))


def _tables_by_model(numbers: Numbers) -> list[str]:
    """The tables of correlations by image model: the common one, then those that print a judge's apart."""
    tables = {key.table for key in numbers.cells if key.image_model and key.judge != HUMAN}
    return sorted(tables, key=lambda table: (table != BY_MODEL, len(table), table))


def _by_image_model(numbers: Numbers, aspects: Sequence[str], table: str) -> Table:
    rows = []
    for part, model in _places(numbers, table):
        for label in (label for label in numbers.labels if label != HUMAN):
            keys = [Key(table, part, model, label, "spearman", aspect) for aspect in aspects]
            if any(key in numbers.cells for key in keys):
                rows.append((part, model, label, *(_cell_text(numbers, key) for key in keys)))
    place, header = table.removeprefix("T"), ("task", "image model", "judge", *aspects)
    return Table(f"table_{place}", f"Table {place}. Spearman by image model", header, tuple(rows))


def _humans(numbers: Numbers, aspects: Sequence[str]) -> Table:
    kinds = [(coefficient, aspect) for coefficient in ("pearson", "spearman", "kendall") for aspect in aspects]
    rows = tuple(
        (part, model, *(_cell_text(numbers, Key("T7", part, model, HUMAN, *kind)) for kind in kinds))
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
