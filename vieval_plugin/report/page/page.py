"""`report.html`, and the page of `vieval rank`: the answer, pictures side by side, charts, a
gallery and all tables.

It is one file that loads nothing but, to enlarge a picture, the image's own file beside it:
pictures are part of it, charts are inline SVG, and its policy forbids everything else. Every word
that others wrote is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup
from tqdm import tqdm

from vieval_plugin.images import thumbnail
from vieval_plugin.media.thumbnails import Thumbnails
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.records import OWN, Record
from vieval_plugin.report.own_samples import is_rated
from vieval_plugin.report.page.charts import scatter_rows
from vieval_plugin.report.page.disagreement import (
    GalleryItem,
    answer,
    items_of,
    largest_disagreements,
)
from vieval_plugin.report.page.gallery import (
    alternate_benchmarks,
    order,
    select_items,
    tile_limits,
)
from vieval_plugin.report.page.glossary import Glossary
from vieval_plugin.report.page.prompts import PromptRows, prompt_rows
from vieval_plugin.report.page.scale import chart, gate_axis
from vieval_plugin.report.page.tiles import (
    GalleryTile,
    GalleryVerdict,
    Picture,
    Samples,
    mean_ratings,
    repeated_rationales,
    scores_text,
    text_room,
    tile_of,
)
from vieval_plugin.report.sections import Report, Section
from vieval_plugin.report.tables import (
    corrected_rows,
    corrected_tables,
    drop_shared_columns,
    leaderboard_table,
    mark_notes,
    pairs_table,
)
from vieval_plugin.report.words import ASPECTS, breakdown_words, task_type
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.html_page import policy, style_sheet, template
from vieval_plugin.text.versions import VERSION
from vieval_plugin.text.wording import plural, possessive, rounded

if TYPE_CHECKING:
    from vieval_plugin.report.gate import Gate

#: Number of verdicts on samples without a tile that a page lists at most.
MOST_LISTED = 30_000

_FOLDER = Path(__file__).parent
#: The style sheet of pages with charts and tables, beside the design that all pages share.
STYLE = _FOLDER / "page.css"


def subject(report: Report) -> str:
    """The subject of a page, in a line: whose agreement with whom, or whose images were judged
    by which judges.
    """
    runs = report.runs
    if not runs:
        return "Results without verdicts"
    judged = list[Section]()
    if report.which != "generators":
        judged = [section for section in report.sections if section.headlines]
    sections = judged or report.sections
    titles = ", ".join(section.title for section in sections)
    if report.generators or not judged:
        names = (str(run.name) for run in runs)
        judges = list(dict.fromkeys(names))
        corrected = ""
        if any(section.corrections for section in report.sections):
            corrected = ", corrected by ratings"
        judge_names = f"{len(judges)} judges"
        if len(judges) < 4:
            judge_names = ", ".join(judges)
        return f"{titles}, judged by {judge_names}{corrected}"
    if all(section.benchmark.synthetic for section in sections):
        return f"Agreement of judges with {sections[0].benchmark.truth} of {titles}"
    return f"Agreement of judges with annotators on {titles}"


def page(
    report: Report,
    options: StatisticsOptions,
    folder: Path,
    tables: Sequence[Sequence[Table]],
    protocols: Sequence[str],
    over_benchmarks: Table | None = None,
    gate: Gate | None = None,
) -> str:
    """The page as HTML.

    Args:
        report: of which the first answer gives the title.
        options: how many draws, the seed, which also decides the cards that are drawn at random.
        folder: the page's, from which the files of images are named.
        tables: all tables of each section.
        protocols: how the numbers came about, in words.
        over_benchmarks: the judges over all benchmarks, where there are several.
        gate: decides, where there is one: the page begins with it, and with the prompts on which
            its generator fell most.
    """
    by_prompt = {s for s in report.sections if _is_by_prompt(report, s)}
    items_by_section = {s: items_of(s.runs, s in by_prompt) for s in report.sections}
    items = [*chain(*items_by_section.values())]
    rows = _board_rows(report, items_by_section, gate)
    prompts = [shown for _, _, shown in rows]
    annotators = _annotators(report.sections)
    highlights = {}
    if not prompts:
        highlights = largest_disagreements(alternate_benchmarks(items), annotators)
    tile_count, sampled = tile_limits(items)
    selected = select_items(items, options.seed, tile_count, sampled)
    missing = {*highlights, *chain(*(shown.ids for shown in prompts))}
    missing -= {item.id for item in selected}
    selected += [item for item in items if item.id in missing]
    thumbnails = Thumbnails(folder=folder)
    samples = Samples()
    repeated = repeated_rationales(selected)
    room = text_room(sum(len(item.judgements) for item in selected))
    names = chain(*(shown.generators for shown in prompts))
    generators = [*dict.fromkeys(names)]
    prompt_ids = {item.id for s in by_prompt for item in items_by_section[s]}
    tiles = [
        tile_of(
            item,
            samples,
            thumbnails,
            room,
            item.id in prompt_ids,
            generators,
            repeated,
        )
        for item in tqdm(selected, desc="cards of the page", unit="card", disable=None)
    ]
    by_id = {tile.id: tile for tile in tiles}
    unpictured = sorted((item for item in items if item.id not in by_id), key=order)
    notes = {tile.note for tile in tiles}
    style = style_sheet(STYLE)
    script = _script()
    has_files = any(thumbnail.original for thumbnail in thumbnails.rendered)
    answers = [gate.answer] if gate else report.answers
    title = "No judge has a result."
    leads = list[str]()
    if answers:
        title = answers[0].title
        leads = [answers[0].evidence, *(a.title for a in answers[1:])]
    axis = ""
    if gate and rows:
        axis = gate_axis(gate, report.generators[0][1].unit)
    repeated_lines = [
        f"{judge} on every sample: {text}"
        for judge, text in repeated.items()
        if text not in judge
    ]
    return template(_FOLDER / "page.html.jinja").render(
        subject=subject(report),
        title=title,
        answers=[*filter(None, leads)],
        gate=gate,
        gate_axis=axis,
        limits=answers[0].limits if gate else (),
        next=next(filter(None, (a.next for a in answers)), ""),
        strip_title=_strip_title(annotators, chain(*highlights.values())),
        strip=[
            (by_id[sample], lines)
            for sample, lines in highlights.items()
            if by_id[sample].outputs
        ],
        order_text=_order_text(report),
        policy=policy(style, script, has_files),
        style=Markup(style),
        script=Markup(script),
        report=report,
        rows=rows,
        tables=tables,
        protocols=protocols,
        over_benchmarks=over_benchmarks,
        repeated=repeated_lines,
        note_of_all=notes.pop() if len(tiles) > 1 == len(notes) else "",
        table_of=_board_table,
        corrected_rows=corrected_rows,
        pairs_of=pairs_table,
        marks=mark_notes,
        scatters=scatter_rows,
        aspect_words=ASPECTS,
        task_type=task_type,
        breakdown_words=breakdown_words,
        plural=plural,
        possessive=possessive,
        annotators=_annotators,
        chart=chart,
        labels=_labels,
        heat=_heat,
        tiles=tiles,
        reference_pairs=_reference_pairs(report, thumbnails),
        cards={tile.id: f"card{number}" for number, tile in enumerate(tiles, start=1)},
        filters=_Filters(tiles, _judges(report)),
        unpictured=_unpictured(unpictured, annotators),
        unpictured_count=len(unpictured),
        sampled=sampled,
        seed=options.seed,
        left_out=thumbnails.left_out,
        glossary=Glossary(),
        thumbnails=thumbnails.rendered,
        version=VERSION,
    )


def _board_rows(
    report: Report,
    items_by_section: Mapping[Section, Sequence[GalleryItem]],
    gate: Gate | None,
) -> list[tuple[Section, Leaderboard, PromptRows]]:
    """The content about each leaderboard of generators."""
    falls = list[str]()
    challenger = ""
    if gate:
        falls = [fall.prompt for fall in gate.falls]
        challenger = gate.challenger
    rows = []
    for section, board in report.generators:
        items = items_by_section[section]
        shown = prompt_rows(section, board, items, challenger, falls)
        rows.append((section, board, shown))
    return rows


def _script() -> str:
    return "".join(
        (_FOLDER / name).read_text(encoding="utf-8")
        for name in ("pictures.js", "page.js")
    )


def _reference_pairs(
    report: Report, thumbnails: Thumbnails
) -> list[tuple[str, list[Picture]]]:
    """The pictures that are least like their references, each with its title."""
    if report.likeness is None:
        return []
    titled_pictures = []
    for pair in report.likeness.pairs:
        pictures = [
            Picture(role, thumbnail(image, thumbnails))
            for role, image in pair.images.items()
        ]
        titled_pictures.append((pair.title, pictures))
    return titled_pictures


def _is_by_prompt(report: Report, section: Section) -> bool:
    """True where a card is a prompt with all its images: where generators are compared, and not
    judges with annotators.
    """
    if not section.generators:
        return False
    if report.which == "generators" or section.benchmark.name == OWN:
        return True
    return not section.headlines


def _judges(report: Report) -> list[str]:
    """The judges in the order of their agreement with people, or as they come."""
    ranked = [number.system for _, board in report.judges for number in board.numbers]
    labels = [run.label for run in report.runs]
    return list(dict.fromkeys([*ranked, *labels]))


def _annotators(sections: Sequence[Section]) -> str:
    """The origin of the ratings, in a word: annotators, or what was planted."""
    truths = [s.benchmark.truth for s in sections if s.benchmark.synthetic]
    if len(truths) == len(sections) > 0:
        return truths[0]
    return "annotators"


def _strip_title(annotators: str, lines: Iterable[str]) -> str:
    """Title of the strip, with the aspects that it names in words."""
    text = " ".join(lines)
    texts = []
    for code, name in ASPECTS.items():
        if f": {code} " in text:
            texts.append(f"{code} is {name}")
    title = f"Where judges and {annotators} disagree most"
    if texts:
        title += f" ({', '.join(texts)})"
    return title


def _board_table(board: Leaderboard, section: Section) -> tuple[Table, str]:
    if board.measure.uses_ratings:
        table, *_ = corrected_tables(section.corrections[board.judge])
    else:
        table = leaderboard_table(board, section.beside(board))
    return drop_shared_columns(table)


def _labels(estimates_by_value: Mapping[str, Mapping[str, Estimate]]) -> list[str]:
    return [*dict.fromkeys(chain(*estimates_by_value.values()))]


def _heat(value: float, ends: tuple[float, float]) -> int:
    """Shade of a cell, from 0 to 7; a value below 0 is no better than nothing."""
    share = value / ends[1]
    return round(7 * min(max(share, 0.0), 1.0))


def _order_text(report: Report) -> str:
    """The order of the gallery: by disagreement with annotators, else of judges, else by the
    score of the one judge.
    """
    if is_rated(report.runs):
        return "largest disagreement between judges and ratings first"
    if all(
        record.candidates
        for run in report.runs
        for (record, *_) in run.records_by_sample
    ):
        return ""
    if len({run.label for run in report.runs}) > 1:
        return "largest disagreement between judges first"
    return "lowest scores first"


def _answered(record: Record) -> str:
    verdict = record.verdict
    return scores_text(verdict.scores) or answer(record) or str(verdict.status)


def _unpictured(items: Sequence[GalleryItem], annotators: str) -> Table:
    """Table of annotators' and judges' answers on samples without a tile, up to
    `MOST_LISTED`.
    """
    most_judges = max((len(item.judgements) for item in items), default=1)
    most_rows = MOST_LISTED // most_judges
    rows = []
    for item in items[:most_rows]:
        votes = item.record.votes
        judges = [
            f"{judgement.label}: {_answered(judgement.record)}"
            for judgement in item.judgements
        ]
        rating = votes.vote if votes else ""
        if not rating:
            rating = mean_ratings(item.record)
        disagreement = rounded(item.disagreement, 2)
        rows.append((str(item.id), rating, "; ".join(judges), disagreement))
    header = ("sample", annotators, "judges", "disagreement")
    return Table("rest", "Samples without pictures", header, tuple(rows))


class _Filters:
    """Filters of tiles, as numbers: names are other people's words, and stay in the options of a
    list.
    """

    def __init__(
        self,
        tiles: Sequence[GalleryTile],
        judges: Sequence[str],
    ) -> None:
        sources: Mapping[str, Callable[[GalleryTile], Iterable[str]]] = {
            "judge": lambda tile: [verdict.judge for verdict in tile.verdicts],
            "benchmark": lambda tile: [tile.id.benchmark],
            "kind": lambda tile: [tile.kind],
            "model": lambda tile: tile.models,
            "tag": lambda tile: tile.tags,
            "status": lambda tile: tile.statuses,
        }
        values = {
            name: {value for tile in tiles for value in source(tile)}
            for name, source in sources.items()
        }
        ordered = {name: sorted(options) for name, options in values.items()}
        ordered["judge"].sort(key=judges.index)
        self._indices = {
            name: {value: n for n, value in enumerate(options)}
            for name, options in ordered.items()
        }
        self._sources = sources
        self._spreads = dict[str, list[float]]()
        for tile in tiles:
            self._spreads.setdefault(tile.prompt, []).extend(tile.values)

    def choices(self) -> list[tuple[str, str, list[str]]]:
        """The name, the heading and the words of each filter that has several values."""
        headings = {"model": "image model"}
        return [
            (name, headings.get(name, breakdown_words(name)), list(values))
            for name, values in self._indices.items()
            if len(values) > 1
        ]

    def data(self, tile: GalleryTile) -> dict[str, str]:
        """The values of a tile by which it is filtered and ordered."""
        data = {}
        for name, source in self._sources.items():
            indices = self._indices[name]
            data[name] = " ".join(str(indices[value]) for value in source(tile))
        # the furthest apart comes last
        judge_orders = sorted(
            (verdict.judge, verdict.order) for verdict in tile.verdicts
        )
        by_judge = dict(judge_orders)
        orders = []
        for judge in self._indices["judge"]:
            orders.append(f"{by_judge.get(judge, -1):.3g}")
        scores = self._spreads[tile.prompt]
        spread = ""
        if scores:
            spread = f"{max(scores) - min(scores):.4f}"
        prompt_index = list(self._spreads).index(tile.prompt)
        return {
            **data,
            "prompt": str(prompt_index),
            "apart": " ".join(orders),
            "score": tile.score,
            "spread": spread,
        }

    def judge_index(self, verdict: GalleryVerdict) -> int:
        """Number of the judge of a verdict."""
        return self._indices["judge"][verdict.judge]
