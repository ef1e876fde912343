"""`report.html`: one page that says which judge is best, whether that is significant, where it fails and what it cost.

It is one file that loads nothing: pictures are part of it, charts are inline SVG, and its policy forbids everything
else. Every word that others wrote is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from markupsafe import Markup
from tqdm import tqdm

from vieval_plugin import __version__
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.media.thumbnails import Thumbnails
from vieval_plugin.meta_evaluation.findings import Findings, Leaderboard
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.records import OWN, YOUR_IMAGES, Run
from vieval_plugin.report.answer import Answer
from vieval_plugin.report.own_samples import is_rated
from vieval_plugin.report.page.charts import ScatterRow, forest, scatter_rows
from vieval_plugin.report.page.disagreement import GalleryItem, answer, items_of
from vieval_plugin.report.page.gallery import by_benchmark_in_turn, order, select_items, tile_limits
from vieval_plugin.report.page.glossary import GLOSSARY
from vieval_plugin.report.page.strip import Highlight, StripPicture, best_and_worst, largest_disagreements, strip
from vieval_plugin.report.page.tiles import GalleryTile, GalleryVerdict, Samples, said_once, text_room, tile_of
from vieval_plugin.report.tables import leaderboard_table, mark_notes, pairs_table
from vieval_plugin.report.words import ASPECTS, breakdown_words, task_type
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.html_page import policy, style_sheet, template

MOST_LISTED = 30_000
"""Number of verdicts on samples without a tile that a page lists at most."""

_FOLDER = Path(__file__).parent
STYLE = _FOLDER / "page.css"
"""The style sheet of pages with charts and tables, beside the design that all pages share."""


PICTURES_SCRIPT = "pictures.js"
"""Script of pages with cards: some at first, one prompt at a time, pictures as large as the window."""


@dataclass(frozen=True, eq=False)
class PageSection:
    """A benchmark with the runs on it and what was found in them."""

    #: The benchmark.
    benchmark: Benchmark
    #: One a judge.
    runs: Sequence[Run]
    #: All numbers.
    findings: Findings
    #: Tables beside leaderboards.
    tables: tuple[Table, ...]
    #: Leaderboards, the default first.
    boards: tuple[Leaderboard, ...]
    #: Their answers.
    answers: tuple[Answer, ...]

    @property
    def title(self) -> str:
        """Name of the benchmark as a heading has it."""
        return YOUR_IMAGES.capitalize() if self.benchmark.name == OWN else self.benchmark.title or self.benchmark.name

    def in_page_words(self, text: str) -> str:
        """A text on the statistics in the page's words: of drawn images no people are said to have rated them."""
        return text.replace("people", "the known defects") if self.benchmark.synthetic else text

    @property
    def leaderboard_tables(self) -> list[Table]:
        """The leaderboards as tables of text."""
        return [
            leaderboard_table(board, name=f"headline_{number}") for number, board in enumerate(self.boards, start=1)
        ]

    @cached_property
    def scatters(self) -> list[ScatterRow]:
        """Charts of judges' scores against people's, for the default leaderboard."""
        return scatter_rows(self.boards[0], self.runs) if self.boards else []


@dataclass(frozen=True)
class _Row:
    """A sample without a tile."""

    id: str
    annotators: str
    judges: str
    disagreement: str


def subject(sections: Sequence[PageSection]) -> str:
    """The subject of a page, in a line: whose agreement with whom, or whose images were judged by which judges."""
    runs = [run for section in sections for run in section.runs]
    if not runs:
        return "Results without verdicts"
    shown_sections = [section for section in sections if is_rated(section.runs) or not is_rated(runs)]
    titles = ", ".join(section.title for section in shown_sections)
    if not is_rated(runs):
        judges = list(dict.fromkeys(str(run.name) for run in runs))
        return f"{titles}, judged by {', '.join(judges) if len(judges) < 4 else f'{len(judges)} judges'}"
    if all(section.benchmark.synthetic for section in shown_sections):
        return f"Agreement of judges with the known, drawn defects of {titles}"
    return f"Agreement of judges with annotators on {titles}"


def page(
    answers: Sequence[Answer],
    sections: Sequence[PageSection],
    options: StatisticsOptions,
    protocol: str,
    over_benchmarks: Table | None = None,
    notes: Sequence[str] = (),
) -> str:
    """The page as HTML.

    Args:
        answers: those of its leaderboards, of which the first gives the title.
        sections: one a benchmark.
        options: how many draws, the seed, which also decides the cards that are drawn at random.
        protocol: how the numbers came about, in words.
        over_benchmarks: the judges over all benchmarks, where there are several.
        notes: lines that stand above all numbers.
    """
    runs = [run for section in sections for run in section.runs]
    items = [item for section in sections for item in items_of(section.runs)]
    highlights = _highlights(items, sections)
    tile_count, sampled = tile_limits(items)
    selected = select_items(items, options.seed, tile_count, sampled)
    selected_ids = {item.id for item in selected}
    selected += [highlight.item for highlight in highlights if highlight.item.id not in selected_ids]
    tiles, thumbnails = _gallery_tiles(selected, Samples())
    tiles, repeated = said_once(tiles)
    pictured_ids = {tile.id for tile in tiles}
    unpictured = sorted((item for item in items if item.id not in pictured_ids), key=order)
    most_rows = MOST_LISTED // max((len(item.judgements) for item in unpictured), default=1)
    filters = _Filters(tiles)
    style = style_sheet(STYLE)
    script = "".join((_FOLDER / name).read_text(encoding="utf-8") for name in (PICTURES_SCRIPT, "page.js"))
    order_text = _order_text(runs)
    return template(_FOLDER / "page.html.jinja").render(
        subject=subject(sections),
        title=answers[0].title if answers else "No judge has a number here.",
        answers=[line for line in [*(a.evidence for a in answers[:1]), *(a.title for a in answers[1:])] if line],
        next=next((a.next for a in answers if a.next), ""),
        strip=strip(_strip_title(sections, highlights), _strip_pictures(highlights, tiles)),
        order_text=order_text,
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        sections=sections,
        protocol=protocol,
        over_benchmarks=over_benchmarks,
        notes=notes,
        repeated=repeated,
        table_of=leaderboard_table,
        pairs_of=pairs_table,
        marks=mark_notes,
        aspect_words=ASPECTS,
        task_type=task_type,
        breakdown_words=breakdown_words,
        annotators=_annotators,
        chart=chart,
        labels=_labels,
        heat=_heat,
        tiles=tiles,
        paired=any(len(tile.pictures) > 1 for tile in tiles),
        filters=filters.choices(),
        indices=filters.indices,
        judges_of=filters.judges_of,
        judge_index=filters.judge_index,
        disagreement_by_judge=filters.disagreement_by_judge,
        prompt=filters.prompt,
        unpictured=[_row(item) for item in unpictured[:most_rows]],
        gallery=_gallery_texts(len(items), len(tiles), len(unpictured), most_rows, sampled, options.seed, order_text)
        | left_out_text(thumbnails),
        glossary=GLOSSARY,
        mentions=lambda text, terms: any(term.strip() in text for term in terms.split(",")),
        thumbnails=thumbnails.rendered,
        version=__version__,
    )


def _gallery_tiles(items: Sequence[GalleryItem], samples: Samples) -> tuple[list[GalleryTile], Thumbnails]:
    thumbnails = Thumbnails()
    room = text_room(sum(len(item.judgements) for item in items))
    progress = tqdm(items, desc="cards of the page", unit="card", disable=None)
    return [tile_of(item, samples, thumbnails, room) for item in progress], thumbnails


def _annotators(sections: Sequence[PageSection]) -> str:
    """The origin of the ratings, in a word: people, or defects that are known because they were drawn."""
    return "known" if all(section.benchmark.synthetic for section in sections) else "annotators"


def _highlights(items: Sequence[GalleryItem], sections: Sequence[PageSection]) -> list[Highlight]:
    """Samples of the first screen: where ratings are, those that judges are furthest from, else the best and worst."""
    if is_rated([run for section in sections for run in section.runs]):
        return largest_disagreements(by_benchmark_in_turn(items), _annotators(sections))
    generators = [n.system for section in sections for board in section.boards[:1] for n in board.numbers]
    return best_and_worst(items, generators)


def _strip_title(sections: Sequence[PageSection], highlights: Sequence[Highlight]) -> str:
    """Title of the strip, with the aspects that it names in words."""
    values = [value for highlight in highlights for value in highlight.values]
    texts = [f"{code} is {name}" for code, name in ASPECTS.items() if any(f": {code} " in value for value in values)]
    legend = f" ({', '.join(texts)})" if texts else ""
    return f"{_strip_subject(sections)}{legend}"


def _strip_subject(sections: Sequence[PageSection]) -> str:
    runs = [run for section in sections for run in section.runs]
    if not runs:
        return ""
    if is_rated(runs):
        raters = "the known defects" if _annotators(sections) == "known" else "annotators"
        return f"Where judges and {raters} are furthest apart"
    if all(record.candidates for run in runs for rows in run.records.values() for (record, *_) in rows):
        return f"What {runs[0].name} prefers"
    return f"The best and the worst of each generator, by {runs[0].name}"


def _strip_pictures(highlights: Sequence[Highlight], tiles: Sequence[GalleryTile]) -> list[StripPicture]:
    cards = {tile.id: (f"card{number}", tile.outputs[:2]) for number, tile in enumerate(tiles, start=1)}
    return [StripPicture(*cards[h.item.id], h.name, h.values) for h in highlights]


def chart(board: Leaderboard) -> Markup:
    """The systems of a leaderboard with their intervals, beside what they stand beside."""
    rows = {number.system: number.estimate for number in board.numbers}
    first, *lower = [number.system for number in board.ranked] or [""]
    worse = [label for label in lower if board.comparison.beats(first, label)]
    unranked = [number.system for number in board.numbers if number.estimate.defined and number.unranked]
    references = {reference.system: reference.estimate for reference in board.references}
    return forest(rows, references, board.ends, f"Intervals: {board.title}", worse, unranked)


def _labels(estimates_by_value: Mapping[str, Mapping[str, Estimate]]) -> list[str]:
    return list(dict.fromkeys(label for estimates in estimates_by_value.values() for label in estimates))


def _heat(value: float, ends: tuple[float, float]) -> int:
    """Shade of a cell, from 0 to 7; a value below 0 is no better than nothing."""
    return round(7 * min(max(value / ends[1], 0.0), 1.0))


def _order_text(runs: Sequence[Run]) -> str:
    """The order of the gallery: by disagreement with annotators, else of judges, else by the score of the one judge."""
    if is_rated(runs):
        return "largest disagreement of judges and ratings first"
    if all(record.candidates for run in runs for rows in run.records.values() for (record, *_) in rows):
        return "in no particular order"
    return "largest disagreement of judges first" if len({run.label for run in runs}) > 1 else "lowest scores first"


def _gallery_texts(
    items: int, tiles: int, unpictured: int, row_count: int, sampled: int, seed: int, order_text: str
) -> dict[str, Any]:
    if unpictured:
        text = (
            f"{tiles} of {items} samples and contests are shown, {order_text}: failures of each judge are among them, and "
            f"{sampled} drawn at random (seed {seed}). The other {unpictured} are listed below without pictures."
        )
    else:
        text = f"All {items} samples and contests, {order_text}."
    cut = f"Of these the first {row_count} are listed." if unpictured > row_count else ""
    return {"summary": text, "unpictured": unpictured, "cut": cut}


def left_out_text(thumbnails: Thumbnails) -> dict[str, str]:
    """Sentence on pictures that would have made the page too large, where there are any."""
    n = thumbnails.left_out
    return {"left_out": f"{n} pictures are left out, so that the page stays below 12 MB." if n else ""}


def _row(item: GalleryItem) -> _Row:
    record = item.record
    vote = record.votes.vote if record.votes else ""
    ratings = {a: [v for v in values if not math.isnan(v)] for a, values in record.ratings.items()}
    annotators = [vote] if vote else [f"{a} {math.fsum(v) / len(v):.2f}" for a, v in ratings.items() if v]
    judges = []
    for judgement in item.judgements:
        verdict = judgement.record.verdict
        scores = ", ".join(f"{aspect} {value:.2f}" for aspect, value in verdict.scores.items())
        judges.append(f"{judgement.label}: {scores or answer(judgement.record) or verdict.status}")
    return _Row(str(item.id), ", ".join(annotators), "; ".join(judges), f"{item.disagreement:.2f}")


class _Filters:
    """Filters of tiles, as numbers: names are other people's words, and stay in the options of a list."""

    def __init__(self, tiles: Sequence[GalleryTile]) -> None:
        sources: Mapping[str, Callable[[GalleryTile], Iterable[str]]] = {
            "judge": lambda tile: [verdict.judge for verdict in tile.verdicts],
            "benchmark": lambda tile: [tile.id.benchmark],
            "kind": lambda tile: [tile.kind],
            "model": lambda tile: tile.models,
            "tag": lambda tile: tile.tags,
            "status": lambda tile: tile.statuses,
        }
        self._indices = {
            name: {value: n for n, value in enumerate(sorted({value for tile in tiles for value in values_of(tile)}))}
            for name, values_of in sources.items()
        }
        self._prompts = {value: n for n, value in enumerate(dict.fromkeys(tile.prompt for tile in tiles))}

    def choices(self) -> list[tuple[str, str, list[str]]]:
        """The name, the heading and the words of each filter that has several values, and of the judge always."""
        headings = {"model": "image model"}
        return [
            (name, headings.get(name, breakdown_words(name)), list(values))
            for name, values in self._indices.items()
            if len(values) > 1 or name == "judge"
        ]

    def indices(self, name: str, values: Iterable[str]) -> str:
        return " ".join(str(self._indices[name][value]) for value in values)

    def judges_of(self, tile: GalleryTile) -> str:
        return self.indices("judge", (verdict.judge for verdict in tile.verdicts))

    def judge_index(self, verdict: GalleryVerdict) -> int:
        return self._indices["judge"][verdict.judge]

    def disagreement_by_judge(self, tile: GalleryTile) -> str:
        """Disagreement of each judge with people, in the order of judges; -1 for judges that did not judge it."""
        by_judge = {verdict.judge: verdict.order for verdict in tile.verdicts}
        return " ".join(f"{by_judge.get(judge, -1):.3g}" for judge in self._indices["judge"])

    def prompt(self, tile: GalleryTile) -> int:
        return self._prompts[tile.prompt]
