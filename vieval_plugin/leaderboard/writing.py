"""Leaderboards in their files: one page that loads nothing, and its data as CSV and JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from markupsafe import Markup

from vieval_plugin import __version__
from vieval_plugin.errors import docs_url
from vieval_plugin.leaderboard.board import REFERENCE, Board, BoardRow, BoardView, PrintedNumber
from vieval_plugin.leaderboard.views import POLICIES
from vieval_plugin.media.files import write_whole
from vieval_plugin.published.files import NAME
from vieval_plugin.report.page.charts import forest
from vieval_plugin.report.page.page import STYLE
from vieval_plugin.report.words import ASPECTS, short_number, task_type
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text import escaping
from vieval_plugin.text.html_page import policy, style_sheet, template

PAGE, CSV, JSON = "index.html", "leaderboard.csv", "leaderboard.json"
_HOME = Path(__file__).parent
_CHOICES = {
    "aspect": "what is rated",
    "failures": "failed verdicts are",
    "setting": "setting",
    "part": "part",
    "ties": "ties",
}
_TEXTS: Mapping[str, str] = {
    **{aspect: f"{aspect} ({meaning})" for aspect, meaning in ASPECTS.items()},
    **{str(policy): meaning for policy, meaning in POLICIES.items()},
    **{"0shot": "zero-shot", "1shot": "one-shot"},
    **{"four_way": "four-way", "three_way": "three-way", "decisive": "decided votes alone"},
}
_COLUMNS = (
    *("benchmark", "part", "ties", "aspect", "failures", "setting", "kind", "rank", "judge", "version", "date"),
    *("value", "low", "high", "n", "printed", "recomputed_as_printed", "notes"),
)


def write_boards(boards: Sequence[Board], folder: Path, options: StatisticsOptions) -> None:
    """Write the page of leaderboards and its data to a folder.

    Raises:
        VievalError: a file cannot be written there.
    """
    texts = {CSV: csv_text(boards), JSON: json_text(boards, options), PAGE: page(boards, options)}
    for name, text in texts.items():
        write_whole(folder / name, [text])


def json_text(boards: Sequence[Board], options: StatisticsOptions) -> str:
    """The leaderboards for programs."""
    document = {"statistics": asdict(options), "boards": [asdict(board) for board in boards]}
    return json.dumps(document, indent=1, allow_nan=False)


def csv_text(boards: Sequence[Board]) -> str:
    """The rows of all tables, a line each."""
    return escaping.csv_text([_COLUMNS, *(line for board in boards for line in _lines(board))])


def _lines(board: Board) -> list[tuple[str, ...]]:
    judges = {judge.label: judge for judge in board.judges}
    lines = []
    for view in board.views:
        for row in view.rows:
            judge = judges.get(row.label)
            printed = next((number for number in board.printed_of(view, row.label) if number.task == view.part), None)
            cells = {
                **view.choice,
                **{"benchmark": board.benchmark, "part": view.part, "aspect": view.aspect},
                **{"kind": row.kind, "rank": row.rank, "judge": row.label, "n": str(row.n)},
                **({"version": judge.version, "date": judge.date} if judge else {}),
                **{name: _digits(end) for name, end in (("value", row.value), ("low", row.low), ("high", row.high))},
                **({"printed": printed.digits(printed.printed)} if printed else {}),
                **({"recomputed_as_printed": printed.digits(printed.computed)} if printed else {}),
                "notes": "; ".join(row.notes),
            }
            lines.append(tuple(cells.get(column, "") for column in _COLUMNS))
    return lines


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def page(boards: Sequence[Board], options: StatisticsOptions) -> str:
    """The page as HTML."""
    style, script = style_sheet(STYLE), (_HOME / "leaderboard.js").read_text(encoding="utf-8")
    style += (_HOME / "leaderboard.css").read_text(encoding="utf-8")
    text: str = template(_HOME / "leaderboard.html.jinja").render(
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        title=title(boards),
        answers=[finding for board in boards for finding in board.views[0].findings[:1]],
        age=_age(boards),
        boards=boards,
        judges={board.benchmark: {judge.label: judge for judge in board.judges} for board in boards},
        charts={board.benchmark: _chart(board) for board in boards},
        choices=_choices,
        choice_words=_CHOICES,
        words=_text,
        in_words=_in_words,
        agreement=_agreement,
        place=_cell_name,
        task_type=task_type,
        short=lambda row: short_number(_estimate(row)),
        how=_how(options),
        adding=docs_url("guides/comparing.md#the-leaderboard"),
        version=__version__,
    )
    return text


def title(boards: Sequence[Board]) -> str:
    """A sentence on the leaders of each leaderboard.

    >>> title([Board("b", "Mine", (), (), (), "", "", "GPT-4o is the best published judge")])
    'On Mine, GPT-4o is the best published judge.'
    """
    text = "; ".join(f"on {board.title}, {board.leader}" for board in boards)
    return f"{text[:1].upper()}{text[1:]}."


def _age(boards: Sequence[Board]) -> str:
    """Sentence on the years of the judges that are here."""
    published = [judge for board in boards for judge in board.judges if not (judge.absent or judge.submitted)]
    years = sorted({judge.date[:4] for judge in published})
    span = " and ".join(years) if len(years) < 3 else f"{years[0]} to {years[-1]}"
    return f"The published judges are of {span}. A newer model is here only where somebody submitted its verdicts."


def _choices(board: Board) -> Mapping[str, list[str]]:
    """The values of each choice, those of the first table first."""
    return {name: list(dict.fromkeys(view.choice[name] for view in board.views)) for name in board.views[0].choice}


def _text(value: str) -> str:
    return _TEXTS.get(value, value)


def _in_words(view: BoardView) -> str:
    """The choice that a table is of."""
    return "; ".join(f"{_CHOICES[name]}: {_text(value)}" for name, value in view.choice.items())


def _cell_name(number: PrintedNumber) -> str:
    return ", ".join(filter(None, (number.aspect, task_type(number.task), number.image_model)))


def _agreement(board: Board) -> str:
    """Sentence on how many printed numbers come out."""
    computed = [number for number in board.printed if number.computed is not None]
    errata_count = len(board.errata)
    errata = f"; the other {errata_count} are errata" if errata_count else ""
    return (
        f"{len(board.printed)} printed numbers ({board.printed_source}), {len(computed)} of them of judges whose logs are here. "
        f"By the authors' own protocol {len(computed) - errata_count} come out to within one unit of the last printed digit{errata}."
    )


def _chart(board: Board) -> Markup:
    """The judges of the first table with their intervals, beside baselines and the ceiling."""
    view = board.views[0]
    judges, references = (
        {row.label: _estimate(row) for row in view.rows if (row.kind == REFERENCE) == is_reference}
        for is_reference in (False, True)
    )
    unranked = [row.label for row in view.rows if not row.rank]
    worse = [row.label for row in view.rows if row.rank and not re.match(r"1\b", row.rank)]
    return forest(judges, references, (-1.0, 1.0), f"{board.title}: {view.title}", worse, unranked)


def _estimate(row: BoardRow) -> Estimate:
    value, low, high = (math.nan if end is None else end for end in (row.value, row.low, row.high))
    return Estimate(value, low, high)


def _how(options: StatisticsOptions) -> list[str]:
    return [
        "Every number is computed from the authors' own logs, each file checked by its SHA-256 at one commit of their "
        f"repository (vieval prepare {NAME}), by the statistics that vieval report uses. Intervals are 95%, of "
        f"{options.draws:,} bootstrap draws of instructions with seed {options.seed}.",
        "Printed numbers are recomputed by the authors' own averages and their own reading of answers, with what they "
        "recorded for answers that nobody can read (failures: as_recorded). An erratum is a printed number that differs from "
        "that by more than one unit of its last digit; its reason is computed from the other numbers.",
    ]
