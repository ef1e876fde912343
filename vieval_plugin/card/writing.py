"""A card in its three files: `card.json` for programs, `card.md` and `card.html` for people."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from pathlib import Path

from markupsafe import Markup

from vieval_plugin import __version__
from vieval_plugin.card.card import CARD_HTML, CARD_MD, Card, CardEntry
from vieval_plugin.card.read import json_text, runs_of
from vieval_plugin.card.scale import ScaleRow, scale
from vieval_plugin.card.sentences import differences_sentence, evidence, fooled, limits, title
from vieval_plugin.card.tables import place_table, tables_of_all, words_table
from vieval_plugin.media.files import write_whole
from vieval_plugin.media.thumbnails import Thumbnails
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.records import Run
from vieval_plugin.report.page.disagreement import items_of
from vieval_plugin.report.page.page import STYLE
from vieval_plugin.report.page.tiles import Samples, tile_of
from vieval_plugin.report.rendering import markdown
from vieval_plugin.report.words import task_type
from vieval_plugin.results.host_samples import CARD_JSON
from vieval_plugin.text import escaping
from vieval_plugin.text.html_page import policy, style_sheet, template

PROTOCOL = (
    "All judges stand on the same samples, drawn with the seed as evenly as can be over task types and image models. "
    "Intervals: 95%, by a bootstrap over instructions. Judges are compared two by two on the samples that both scored, by "
    "permutation tests; p is adjusted by Holm over the pairs of the card's model, and by itself over those of the others; a "
    "rank such as 2-4 is the range that significant differences leave. A card says nothing of samples unlike these."
)
_CLOSEST = 2
"""The best published judges of a benchmark, beside which the first screen stands the card's by task type."""
_WORST = 6
"""Samples on which the judge erred most that the page shows."""
_TEMPLATE = Path(__file__).with_name("card.html.jinja")


def write_card(card: Card, folder: Path) -> None:
    """Write a card to a folder with its verdicts; `card.json` comes last, so that where it is all is there."""
    runs = runs_of(card, folder, card.model)
    texts = {CARD_MD: markdown_text(card), CARD_HTML: page(card, runs), CARD_JSON: json_text(card)}
    for name, text in texts.items():
        write_whole(folder / name, [text])


def answers(card: Card) -> list[str]:
    """The first sentences of a card: its title, where the best others are better and worse, and what it is of use for."""
    closest = [text for e in card.entries for j in e.published[:_CLOSEST] if (text := differences_sentence(e, j))]
    return [title(card), *evidence(card), *closest, card.sentence]


def markdown_text(card: Card) -> str:
    """The text of `card.md`."""
    first, *further = map(escaping.markdown, answers(card))
    parts = [f"# {first}\n", *(f"{text}\n" for text in further)]
    parts += [f"- {escaping.markdown(line)}" for line in limits(card)]
    for entry in card.entries:
        parts.append(f"\n## {escaping.markdown(_heading(entry))}\n")
        parts += map(markdown, _tables(card, entry))
    parts.append("\n## The judge itself\n")
    parts += map(markdown, tables_of_all(card))
    parts += [f"Note: {escaping.markdown(line)}\n" for line in card.left_out]
    return "\n".join([*parts, f"{PROTOCOL}\n"])


def page(card: Card, runs: Sequence[Run] = ()) -> str:
    """The text of `card.html`: one file that loads nothing.

    Args:
        card: in full.
        runs: the verdicts that it is of, from which come the samples on which the judge erred most.
    """
    style = style_sheet(STYLE)
    first, *further = answers(card)
    items = [item for run in runs for item in items_of([run]) if item.judgements[0].disagreement > 0]
    samples, thumbnails = Samples(), Thumbnails()
    worst = nlargest(_WORST, items, key=lambda item: item.judgements[0].disagreement)
    return template(_TEMPLATE).render(
        policy=policy(style, ""),
        style=Markup(style),
        card=card,
        title=first,
        answers=further,
        limits=limits(card),
        fooled=fooled,
        task_type=task_type,
        sections=[(_heading(entry), entry, _chart(card, entry), _tables(card, entry)) for entry in card.entries],
        worst=[tile_of(item, samples, thumbnails) for item in worst],
        thumbnails=thumbnails.rendered,
        tables=tables_of_all(card),
        protocol=PROTOCOL,
        version=__version__,
    )


def _heading(entry: CardEntry) -> str:
    return f"{entry.title}, {' '.join(filter(None, (entry.judge, entry.setting)))}"


def _tables(card: Card, entry: CardEntry) -> list[Table]:
    return [table for table in (place_table(card, entry), words_table(card, entry)) if table]


def _chart(card: Card, entry: CardEntry) -> Markup:
    """The card's judge on the scale from guessing to people, then its task types or parts; published judges are ticks."""
    others = {judge.label: judge.number.value for judge in entry.published if judge.number.value is not None}
    rows = [ScaleRow(card.model, entry.number.estimate, "own", others=others)]
    for area, number in entry.words.items():
        ticks = {judge.label: judge.words[area] for judge in entry.published if area in judge.words}
        others = {label: tick.value for label, tick in ticks.items() if tick.value is not None}
        reason = "" if number.value is not None else number.note.partition(":")[0]
        kind = "unranked" if area in entry.useless else ""
        rows.append(ScaleRow(task_type(area), number.estimate, kind, reason, others))
    references = {label: number.estimate for label, number in entry.references.items()}
    return scale(f"{card.model} and published judges: {entry.statistic}", rows, references)
