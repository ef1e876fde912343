"""Write leaderboards to files: a single page without external resources, and its data
as CSV and JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from markupsafe import Markup

from vieval_plugin.leaderboard.board import BenchmarkBoard, View
from vieval_plugin.leaderboard.making import POLICIES
from vieval_plugin.leaderboard.printed import PrintedNumber, printed_elsewhere
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.findings import Number
from vieval_plugin.meta_evaluation.rows import (
    NumberRow,
    PairRow,
    number_row,
    pair_rows,
    row_table,
)
from vieval_plugin.meta_evaluation.tables import csv_text
from vieval_plugin.report.page.page import STYLE
from vieval_plugin.report.page.scale import ScaleRow, scale
from vieval_plugin.report.tables import failures_of, marks_of, rank_text
from vieval_plugin.report.words import (
    ASPECTS,
    number_word,
    protocol,
    reason_words,
    short_number,
    task_type,
)
from vieval_plugin.results.published.files import NAME
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import docs_url
from vieval_plugin.text.html_page import policy, style_sheet, template
from vieval_plugin.text.versions import VERSION
from vieval_plugin.text.wording import enumeration

PAGE = "index.html"
CSV = "leaderboard.csv"
JSON = "leaderboard.json"
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
    "0shot": "zero-shot",
    "1shot": "one-shot",
    "four_way": "four-way",
    "three_way": "three-way",
    "decisive": "decided votes only",
}
#: Version of the form of `leaderboard.json`.
FORM_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow(NumberRow):
    """Number of a leaderboard, with its choice and the printed number."""

    setting: str
    ties: str
    #: Version of the judge's model.
    version: str
    #: Month or day of its verdicts.
    date: str
    #: Printed number with its original decimals; empty without one.
    printed: str
    recomputed_as_printed: str
    marks: str


@dataclass(frozen=True, kw_only=True)
class LeaderboardDocument:
    """Content of `leaderboard.json`."""

    #: Version of its form.
    leaderboard: int = FORM_VERSION
    statistics: StatisticsOptions
    numbers: tuple[LeaderboardRow, ...]
    pairs: tuple[PairRow, ...]
    #: Printed numbers by benchmark.
    printed: Mapping[str, Sequence[PrintedNumber]]
    #: Titles of judges without verdicts, by benchmark.
    absent: Mapping[str, Sequence[str]]


def write_boards(
    boards: Sequence[BenchmarkBoard], folder: Path, options: StatisticsOptions
) -> None:
    """Write the page of leaderboards and its data to a folder.

    Raises:
        VievalError: a file cannot be written there.
    """
    texts = {
        CSV: csv_text(row_table("leaderboard", LeaderboardRow, rows_of(boards))),
        JSON: json_text(boards, options),
        PAGE: page(boards, options),
    }
    for name, text in texts.items():
        write_whole(folder / name, [text])


def rows_of(boards: Sequence[BenchmarkBoard]) -> list[LeaderboardRow]:
    """Rows of all tables."""
    return [
        _row(board, view, number)
        for board in boards
        for view in board.views
        for number in view.numbers
    ]


def _row(board: BenchmarkBoard, view: View, number: Number) -> LeaderboardRow:
    judge = board.judges.get(number.system)
    printed = next(
        (n for n in board.printed_of(view, number.system) if n.task == view.part), None
    )
    row = number_row(board.benchmark, number, view.choice.get("failures", ""))
    fields = asdict(replace(row, part=view.part))
    return LeaderboardRow(
        **fields,
        setting=view.choice.get("setting", ""),
        ties=view.choice.get("ties", ""),
        version=judge.version if judge else "",
        date=judge.date if judge else "",
        printed=printed.digits(printed.printed) if printed else "",
        recomputed_as_printed=printed.digits(printed.computed) if printed else "",
        marks="; ".join(notes_of(view, number)),
    )


def json_text(boards: Sequence[BenchmarkBoard], options: StatisticsOptions) -> str:
    """Serialise the leaderboards as JSON."""
    default_boards = [
        view.board for board in boards for view in board.views if view.is_default
    ]
    document = LeaderboardDocument(
        statistics=options,
        numbers=tuple(rows_of(boards)),
        pairs=tuple(pair_rows(default_boards)),
        printed={board.benchmark: board.printed for board in boards},
        absent={
            board.benchmark: [judge.title for judge in board.absent] for board in boards
        },
    )
    return json.dumps(asdict(document), indent=1, allow_nan=False)


def page(boards: Sequence[BenchmarkBoard], options: StatisticsOptions) -> str:
    """Render the page as HTML."""
    style = style_sheet(STYLE)
    script = (_HOME / "leaderboard.js").read_text(encoding="utf-8")
    style += (_HOME / "leaderboard.css").read_text(encoding="utf-8")
    text: str = template(_HOME / "leaderboard.html.jinja").render(
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        title=title(boards),
        answers=[line for board in boards for line in board.views[0].lines[1:2]],
        age=_age(boards),
        boards=boards,
        chart=_chart,
        choices=_choices,
        choice_words=_CHOICES,
        words=lambda value: _TEXTS.get(value, value),
        agreement=_agreement,
        method=lambda board: protocol(options, board.unit, board.entrants),
        notes_of=notes_of,
        failures_of=failures_of,
        rank_text=rank_text,
        task_type=task_type,
        short=short_number,
        elsewhere=printed_elsewhere(),
        options=options,
        published=NAME,
        adding=docs_url("guides/comparing.md#the-leaderboard"),
        version=VERSION,
    )
    return text


def title(boards: Sequence[BenchmarkBoard]) -> str:
    """Title of each leaderboard's answer, or that all its judges agree with people less
    than people agree with each other.
    """
    return " ".join(
        _none_as_people(board) or board.views[0].lines[0] for board in boards
    )


def _none_as_people(benchmark_board: BenchmarkBoard) -> str:
    """Sentence on a first table in which all judges are below the human ceiling; empty
    for other tables.
    """
    board = benchmark_board.views[0].board
    ceilings = [
        board.ceiling(n.system) if board.ceiling else None for n in board.defined
    ]
    if len(ceilings) < 2 or not all(
        ceiling and ceiling.high < 0 for ceiling in ceilings
    ):
        return ""
    first = [n.system for n in board.ranked if n.ranks and n.ranks[0] == 1]
    closest = ""
    if first:
        verb = "come" if first[1:] else "comes"
        closest = f" {enumeration(first)} {verb} closest."
    judges = f"{number_word(len(ceilings))} judges recomputed here"
    return (
        f"All {judges} agree with people on {benchmark_board.title} less than people agree "
        f"with each other.{closest}"
    )


def notes_of(view: View, number: Number) -> tuple[str, ...]:
    """Notes on a number: why it has no rank, its coverage, marks, and failures."""
    unranked = f"not ranked: {reason_words(number.unranked)}" if number.unranked else ""
    has_coverage = number.role != "judge" and str(number.estimate.coverage)
    cost = view.board.costs.get(number.system)
    marks = marks_of(view.board, number.system) if cost else ()
    coverage = f"on {number.estimate.coverage}" if has_coverage else ""
    warning = cost.warning if cost else ""
    notes = (unranked, coverage, *marks, warning)
    return tuple(filter(None, notes))


def _age(boards: Sequence[BenchmarkBoard]) -> str:
    """Sentence on the years of the available judges."""
    years = sorted(
        {
            judge.date[:4]
            for board in boards
            for title, judge in board.judges.items()
            if title not in board.submitted
        }
    )
    span = " and ".join(years) if len(years) < 3 else f"{years[0]} to {years[-1]}"
    return (
        f"All published judges date from {span}; newer models appear only if their "
        "verdicts were submitted."
    )


def _choices(board: BenchmarkBoard) -> Mapping[str, list[str]]:
    """Values of each choice, those of the first table first."""
    return {
        name: list(dict.fromkeys(view.choice[name] for view in board.views))
        for name in board.views[0].choice
    }


def _agreement(board: BenchmarkBoard) -> str:
    """Sentence on how many printed numbers are reproduced."""
    computed = [number for number in board.printed if number.computed is not None]
    errata_count = len(board.errata)
    errata = f"; the other {errata_count} are errata" if errata_count else ""
    return (
        f"{len(board.printed)} numbers were printed ({board.printed_source}), "
        f"{len(computed)} of them for judges whose logs are available. "
        f"With the authors' own protocol, {len(computed) - errata_count} match to within "
        f"one unit of the last printed digit{errata}."
    )


def _chart(board: BenchmarkBoard, view: View) -> Markup:
    """Chart of the judges of a table, and of printed numbers without available logs,
    from guessing to people.
    """
    rows = [
        ScaleRow(number.system, number.estimate, "printed") for number in view.baselines
    ]
    for number in view.board.numbers:
        kind = ""
        note = ""
        if not number.ranks:
            kind = "unranked"
            note = next(iter(notes_of(view, number)), "")
        elif number.ranks[0] > 1:
            kind = "worse"
        rows.append(ScaleRow(number.system, number.estimate, kind, note))
    in_percent = any(number.printed > 1 for number in board.printed)
    for judge in board.absent:
        for n in (
            n for n in board.printed_of(view, judge.title) if n.task == view.part
        ):
            value = Estimate(n.printed / (100 if in_percent else 1))
            rows.append(
                ScaleRow(
                    judge.title,
                    value,
                    "printed",
                    "printed, not recomputed",
                )
            )
    rows.sort(key=lambda row: (not row.estimate.defined, -row.estimate.value))
    chart_title = f"{board.title}: {view.board.title}"
    return scale(chart_title, rows, view.board)
