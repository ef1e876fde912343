"""Leaderboards in their files: one page that loads nothing, and its data as CSV and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from markupsafe import Markup

from vieval_plugin import __version__
from vieval_plugin.card.scale import ScaleRow, scale
from vieval_plugin.leaderboard.board import BASELINE, REFERENCE, Board, BoardView
from vieval_plugin.leaderboard.printed import printed_elsewhere
from vieval_plugin.leaderboard.views import POLICIES
from vieval_plugin.media.files import write_whole
from vieval_plugin.report.page.page import STYLE
from vieval_plugin.report.words import ASPECTS, short_number, task_type
from vieval_plugin.results.published.files import NAME
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text import escaping
from vieval_plugin.text.errors import docs_url
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
        answers=[finding for board in boards for finding in board.views[0].findings[1:2]],
        age=_age(boards),
        boards=boards,
        judges={board.benchmark: {judge.label: judge for judge in board.judges} for board in boards},
        chart=_chart,
        choices=_choices,
        choice_words=_CHOICES,
        words=lambda value: _TEXTS.get(value, value),
        agreement=_agreement,
        task_type=task_type,
        short=short_number,
        elsewhere=printed_elsewhere(),
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
    return " ".join(f"On {board.title}, {board.leader}." for board in boards)


def _age(boards: Sequence[Board]) -> str:
    """Sentence on the years of the judges that are here."""
    published = [judge for board in boards for judge in board.judges if not (judge.absent or judge.submitted)]
    years = sorted({judge.date[:4] for judge in published})
    span = " and ".join(years) if len(years) < 3 else f"{years[0]} to {years[-1]}"
    return f"The published judges are of {span}. A newer model is here only where somebody submitted its verdicts."


def _choices(board: Board) -> Mapping[str, list[str]]:
    """The values of each choice, those of the first table first."""
    return {name: list(dict.fromkeys(view.choice[name] for view in board.views)) for name in board.views[0].choice}


def _agreement(board: Board) -> str:
    """Sentence on how many printed numbers come out."""
    computed = [number for number in board.printed if number.computed is not None]
    errata_count = len(board.errata)
    errata = f"; the other {errata_count} are errata" if errata_count else ""
    return (
        f"{len(board.printed)} printed numbers ({board.printed_source}), {len(computed)} of them of judges whose logs are here. "
        f"By the authors' own protocol {len(computed) - errata_count} come out to within one unit of the last printed digit{errata}."
    )


def _chart(board: Board, view: BoardView) -> Markup:
    """The judges of a table, and those whose numbers are printed alone, on the scale from guessing to people."""
    rows = []
    for row in (row for row in view.rows if row.kind != REFERENCE):
        kind = "printed" if row.kind == BASELINE else "unranked" if not row.rank else ""
        kind = kind or ("" if re.match(r"1\b", row.rank) else "worse")
        note = "a metric or random answers" if row.kind == BASELINE else (row.notes or ("",))[0]
        rows.append(ScaleRow(row.label, row.estimate, kind, note if kind in ("printed", "unranked") else ""))
    in_percent = any(number.printed > 1 for number in board.printed)
    for judge in board.judges_without_logs:
        for number in board.printed_of(view, judge.label):
            if number.task == view.part:
                printed = Estimate(number.printed / (100 if in_percent else 1))
                rows.append(ScaleRow(judge.label, printed, "printed", "printed, not recomputed"))
    rows.sort(key=lambda row: (not row.estimate.defined, -row.estimate.value))
    references = {row.label: row.estimate for row in view.rows if row.kind == REFERENCE}
    return scale(f"{board.title}: {view.title}", rows, references)


def _how(options: StatisticsOptions) -> list[str]:
    return [
        "Every number is computed from the authors' own logs, each file checked by its SHA-256 at one commit of their "
        f"repository (vieval prepare {NAME}), by the statistics that vieval report uses. Intervals are 95%, of "
        f"{options.draws:,} bootstrap draws of instructions with seed {options.seed}.",
        "Printed numbers are recomputed by the authors' own averages and their own reading of answers, with what they "
        "recorded for answers that nobody can read (failures: as_recorded). An erratum is a printed number that differs from "
        "that by more than one unit of its last digit; its reason is computed from the other numbers.",
    ]
