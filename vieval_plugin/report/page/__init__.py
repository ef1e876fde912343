"""`report.html`: one page that says which judge is best, whether that is significant, where it fails and what it cost.

It is one file that loads nothing: pictures are part of it, charts are inline SVG, and its policy forbids everything else.
Every word that others wrote is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from markupsafe import Markup
from tqdm import tqdm

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.meta_evaluation.headline import Breakdown, HeadlineNumber
from vieval_plugin.meta_evaluation.tables import Table, Tables, p_text
from vieval_plugin.records import Run
from vieval_plugin.report.headlines.leaderboards import Leaderboard
from vieval_plugin.report.headlines.tables import headline_table
from vieval_plugin.report.headlines.words import sentences
from vieval_plugin.report.page.charts import forest
from vieval_plugin.report.page.disagreement import GalleryItem, answer, items_of
from vieval_plugin.report.page.gallery import SAMPLED, chosen, order
from vieval_plugin.report.page.glossary import GLOSSARY
from vieval_plugin.report.page.scatters import ScatterRow, scatter_rows
from vieval_plugin.report.page.thumbnails import Thumbnails
from vieval_plugin.report.page.tiles import Card, Samples, ShownVerdict, card_of
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.html_page import policy, template

MOST_ROWS = 10_000
"""Of the samples without a card, how many a page lists."""

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class PageSection:
    """A benchmark with the runs on it, what its report made of them, and its headlines with ranks, the default first."""

    benchmark: Benchmark
    runs: Sequence[Run]
    tables: Tables
    boards: Sequence[Leaderboard]

    @property
    def headlines(self) -> list[Table]:
        """The boards as tables of text."""
        return [headline_table(one, f"headline_{number}") for number, one in enumerate(self.boards, start=1)]


@dataclass(frozen=True)
class _Section:
    name: str
    note: str
    boards: tuple[Leaderboard, ...]
    scatters: tuple[ScatterRow, ...]
    tables: tuple[Table, ...]
    paper: str


@dataclass(frozen=True)
class _Row:
    """A sample without a card."""

    id: str
    people: str
    judges: str
    apart: str


def page(
    sections: Sequence[PageSection],
    options: StatisticsOptions,
    protocol: str,
    samples: Path | None = None,
    over: Table | None = None,
    notes: Sequence[str] = (),
) -> str:
    """The page as HTML.

    Args:
        sections: one a benchmark.
        options: how many draws, the seed, which also decides the cards that are drawn at random.
        protocol: how the numbers came about, in words.
        samples: the samples file of what `vieval score` judged.
        over: the judges over all benchmarks, where there are several.
        notes: lines that stand above all numbers.
    """
    shown = [_section(one) for one in sections]
    items = [item for one in sections for item in items_of(one.runs)]
    cards, thumbnails = _cards(chosen(items, options.seed), Samples(samples))
    kept = {card.id for card in cards}
    rest = sorted((item for item in items if item.id not in kept), key=order)
    words = _Words(cards)
    style, script = (_HERE.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return template(_HERE / "page.html.jinja").render(
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        sections=shown,
        protocol=protocol,
        over=over,
        notes=notes,
        said=sentences,
        chart=_chart,
        labels=_labels,
        of=_of,
        p_text=p_text,
        heat=_heat,
        cards=cards,
        filters=words.filters(),
        indices=words.indices,
        judges_of=words.judges_of,
        judge_index=words.judge_index,
        aparts=words.aparts,
        prompt=words.prompt,
        rest=[_row(item) for item in rest[:MOST_ROWS]],
        told=_told(len(items), len(cards), len(rest), options.seed),
        glossary=GLOSSARY,
        thumbnails=thumbnails.made,
        version=metadata.version("vieval"),
    )


def _section(one: PageSection) -> _Section:
    scatters = tuple(scatter_rows(one.boards[0], one.runs)) if one.boards else ()
    return _Section(
        one.benchmark.name, one.benchmark.note, tuple(one.boards), scatters, one.tables.tables, one.tables.paper
    )


def _cards(items: Sequence[GalleryItem], samples: Samples) -> tuple[list[Card], Thumbnails]:
    thumbnails = Thumbnails()
    told = tqdm(items, desc="cards of the page", unit="card", disable=None)
    return [card_of(item, samples, thumbnails) for item in told], thumbnails


def _chart(board: Leaderboard) -> Markup:
    headline = board.headline
    return forest(
        [row.number for row in board.rows], headline.references, headline.ends, f"Intervals: {headline.number}"
    )


def _labels(words: Breakdown) -> list[str]:
    return list(dict.fromkeys(one.label for several in words.values() for one in several))


def _of(several: Sequence[HeadlineNumber], label: str) -> HeadlineNumber | None:
    return next((one for one in several if one.label == label), None)


def _heat(value: float, ends: tuple[float, float]) -> int:
    """How dark a cell is, from 0 to 7; what is below 0 is no better than nothing."""
    return round(7 * min(max(value / ends[1], 0.0), 1.0))


def _told(items: int, cards: int, rest: int, seed: int) -> Mapping[str, Any]:
    if rest:
        told = (
            f"{cards} of {items} samples and contests are shown: those on which judges and people are furthest apart, failures "
            f"of each judge among them, and {SAMPLED} drawn at random (seed {seed}). The other {rest} are listed below without "
            "pictures."
        )
    else:
        told = f"All {items} samples and contests, those on which judges and people are furthest apart first."
    cut = f"Of these the {MOST_ROWS} furthest apart are listed." if rest > MOST_ROWS else ""
    return {"cards": told, "rest": rest, "cut": cut}


def _row(item: GalleryItem) -> _Row:
    record = item.record
    vote = record.votes.vote if record.votes else ""
    given = {a: [v for v in values if not math.isnan(v)] for a, values in record.ratings.items()}
    people = [vote] if vote else [f"{a} {math.fsum(v) / len(v):.2f}" for a, v in given.items() if v]
    judges = []
    for one in item.judgements:
        verdict = one.record.verdict
        scores = ", ".join(f"{aspect} {value:.2f}" for aspect, value in verdict.scores.items())
        judges.append(f"{one.label}: {scores or answer(one.record) or verdict.status}")
    return _Row(str(item.id), ", ".join(people), "; ".join(judges), f"{item.apart:.2f}")


class _Words:
    """What cards are filtered by, as numbers: names are other people's words, and stay in the options of a list."""

    def __init__(self, cards: Sequence[Card]) -> None:
        sources: Mapping[str, Callable[[Card], Iterable[str]]] = {
            "judge": lambda card: [one.judge for one in card.verdicts],
            "benchmark": lambda card: [card.id.benchmark],
            "kind": lambda card: [card.kind],
            "model": lambda card: card.models,
            "tag": lambda card: card.tags,
            "status": lambda card: card.statuses,
        }
        self._places = {
            name: {word: n for n, word in enumerate(sorted({word for card in cards for word in words(card)}))}
            for name, words in sources.items()
        }
        self._prompts = {word: n for n, word in enumerate(dict.fromkeys(card.prompt for card in cards))}

    def filters(self) -> list[tuple[str, str, list[str]]]:
        """The name, the heading and the words of each filter that tells cards apart, and of the judge always."""
        headings = {"model": "image model"}
        held = [(name, headings.get(name, name), list(words)) for name, words in self._places.items()]
        return [one for one in held if len(one[2]) > 1 or one[0] == "judge"]

    def indices(self, name: str, words: Iterable[str]) -> str:
        return " ".join(str(self._places[name][word]) for word in words)

    def judges_of(self, card: Card) -> str:
        return self.indices("judge", (one.judge for one in card.verdicts))

    def judge_index(self, verdict: ShownVerdict) -> int:
        return self._places["judge"][verdict.judge]

    def aparts(self, card: Card) -> str:
        """How far each judge is from people, by the judge's number; -1 for judges that did not judge it."""
        own = {one.judge: one.order for one in card.verdicts}
        return " ".join(f"{own.get(judge, -1):.3g}" for judge in self._places["judge"])

    def prompt(self, card: Card) -> int:
        return self._prompts[card.prompt]
