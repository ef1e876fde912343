"""A card in its three files: `card.json` for programs, `card.md` and `card.html` for people."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from operator import attrgetter
from pathlib import Path

from markupsafe import Markup

from vieval_plugin.card.card import CARD_HTML, CARD_MD, Card
from vieval_plugin.card.placing import PlacedJudge
from vieval_plugin.card.read import json_text
from vieval_plugin.card.sentences import (
    audit_text,
    constant_words,
    fooled_text,
    limits,
    repeats_text,
)
from vieval_plugin.card.tables import tables_of, tables_of_all
from vieval_plugin.media.files import write_whole
from vieval_plugin.media.thumbnails import Thumbnails
from vieval_plugin.meta_evaluation.tables import markdown
from vieval_plugin.report.page.disagreement import items_of
from vieval_plugin.report.page.page import STYLE
from vieval_plugin.report.page.scale import ScaleRow, scale
from vieval_plugin.report.page.tiles import Samples, tile_of
from vieval_plugin.report.words import (
    breakdown_words,
    short_number,
    statistic_words,
    task_type,
)
from vieval_plugin.results.host_samples import CARD_JSON
from vieval_plugin.text import escaping
from vieval_plugin.text.html_page import policy, style_sheet, template
from vieval_plugin.text.versions import VERSION

PROTOCOL = (
    "All judges are measured on the same samples, "
    "which the seed spreads evenly over task types and image models. "
    "Intervals are 95% bootstrap intervals over instructions. "
    "Judges are compared in pairs by permutation tests on the samples that "
    "both scored. "
    "p is Holm-adjusted over the pairs of the card's model, "
    "and separately over the pairs of the other judges. "
    "A rank such as 2-4 means that no significant difference separates these places. "
    "A card does not apply to other kinds of samples."
)
#: Samples on which the judge erred most that the page shows.
_WORST = 6
_TEMPLATE = Path(__file__).with_name("card.html.jinja")


def write_card(card: Card, judges: Sequence[PlacedJudge], folder: Path) -> None:
    """Write a card to the folder of its verdicts; `card.json` comes last, so that its
    presence means a complete card.

    Args:
        card: in full.
        judges: of its entries, in their order.
        folder: of the verdicts.
    """
    texts = {
        CARD_MD: markdown_text(card, judges),
        CARD_HTML: page(card, judges),
        CARD_JSON: json_text(card),
    }
    for name, text in texts.items():
        write_whole(folder / name, [text])


def markdown_text(card: Card, judges: Sequence[PlacedJudge]) -> str:
    """Render the text of `card.md`."""
    first, *further = map(escaping.markdown_sentence, card.answers)
    further_lines = (f"{text}\n" for text in further)
    parts = [f"# {first}\n", *further_lines]
    parts += [f"- {escaping.markdown_sentence(line)}" for line in limits(judges, card)]
    for judge in judges:
        parts.append(f"\n## {escaping.markdown(judge.heading)}\n")
        parts += map(markdown, tables_of(judge))
    parts.append("\n## The judge itself\n")
    parts += map(markdown, tables_of_all(card, judges))
    parts += [f"Note: {escaping.markdown_sentence(line)}\n" for line in card.left_out]
    return "\n".join([*parts, f"{PROTOCOL}\n"])


def page(card: Card, judges: Sequence[PlacedJudge]) -> str:
    """Render the text of `card.html`, a single file without external resources."""
    style = style_sheet(STYLE)
    first, *further = card.answers
    items = [
        item
        for judge in judges
        for item in items_of([judge.run])
        if item.judgements[0].disagreement > 0
    ]
    samples = Samples()
    thumbnails = Thumbnails()
    truths = {judge.benchmark.name: judge.benchmark.truth for judge in judges}
    worst = nlargest(_WORST, items, key=lambda item: item.judgements[0].disagreement)
    return template(_TEMPLATE).render(
        policy=policy(style, ""),
        style=Markup(style),
        card=card,
        title=first,
        answers=further,
        limits=limits(judges, card),
        repeats_text=repeats_text,
        audit_text=audit_text,
        fooled_text=fooled_text,
        short=short_number,
        constant_words=constant_words,
        statistic_words=statistic_words,
        task_type=task_type,
        sections=[
            (judge.heading, judge, _chart(judge), tables_of(judge)) for judge in judges
        ],
        worst=[
            (
                tile_of(item, samples, thumbnails),
                item.record.provenance.judge,
                truths[item.id.benchmark],
            )
            for item in worst
        ],
        thumbnails=thumbnails.rendered,
        tables=tables_of_all(card, judges),
        protocol=PROTOCOL,
        version=VERSION,
    )


def _chart(judge: PlacedJudge) -> Markup:
    """Chart of the card's judge among the published ones by name, then of its task
    types or parts with the published judges as ticks.
    """
    model = judge.run.label
    board = judge.board
    title = judge.benchmark.page_words(board.title)
    numbers = [number for number in board.numbers if number.estimate.defined]
    numbers.sort(key=attrgetter("estimate.value"), reverse=True)
    rows = [
        ScaleRow(n.system, n.estimate, "own" if n.system == model else "printed")
        for n in numbers
    ]
    chart = scale(f"{model} and published judges: {title}", rows, board)
    units = breakdown_words(judge.breakdown)
    parts_title = f"{model} by {units}: {title}"
    parts = scale(parts_title, _part_rows(judge), board)
    if not parts:
        return chart
    notes = [f"By {units}"]
    if judge.published:
        notes.append("Ticks: published judges on the same samples")
    if judge.useless:
        notes.append(f"Hollow: not shown to be better than {constant_words(judge)}")
    return chart + Markup('<p class="how">{}.</p>').format(". ".join(notes)) + parts


def _part_rows(judge: PlacedJudge) -> list[ScaleRow]:
    """Rows of the card's judge by task type or part, with the published judges as ticks."""
    model = judge.run.label
    by_value = judge.board.breakdowns.get(judge.breakdown, {})
    rows = []
    for value, estimate in judge.values_by_statistic(model).items():
        ticks = {
            label: other.value
            for label, other in by_value[value].items()
            if label != model and other.defined
        }
        kind = "unranked" if value in judge.useless else ""
        reason = estimate.reason.partition(":")[0]
        rows.append(ScaleRow(task_type(value), estimate, kind, reason, ticks))
    return rows
