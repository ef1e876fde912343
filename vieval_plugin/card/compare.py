"""Two cards side by side: their verdicts compared on the samples in common."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from vieval_plugin.card.card import number_of
from vieval_plugin.card.making import placement_of
from vieval_plugin.card.read import read_card, runs_of
from vieval_plugin.meta_evaluation.tables import p_text
from vieval_plugin.report.own_samples import benchmarks_with_runs
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.tables import text_table


def results_of_cards(paths: Sequence[Path], labels: Sequence[str]) -> Results:
    """The verdicts of cards as results, of the benchmarks and judges that all of them have.

    Args:
        paths: files or folders of cards.
        labels: what tables are to call them, one a card; empty for the names of their models.

    Raises:
        VievalError: a card cannot be read or is of another version, its verdicts are gone, two are of different samples,
            or they have nothing in common.
    """
    if labels and len(labels) != len(paths):
        raise VievalError(f"{len(labels)} labels for {len(paths)} cards; give --label once for each, in their order")
    cards = [read_card(path) for path in paths]
    names = [label or card.model for label, card in zip(labels or [""] * len(cards), cards, strict=True)]
    if len(set(names)) < len(names):
        raise VievalError(f"two cards are of {names[0]}; tell them apart with --label, once for each")
    entries = [{(entry.benchmark, entry.judge): entry for entry in card.entries} for card in cards]
    for path, card, further in zip(paths[1:], cards[1:], entries[1:], strict=True):
        for key, entry in further.items():
            first = entries[0].get(key, entry)
            if first.sample_digest != entry.sample_digest:
                raise VievalError(
                    f"{paths[0]} is of {first.samples} {first.unit} of {first.benchmark} (seed {cards[0].seed}) and {path} of other "
                    f"{entry.samples} (seed {card.seed}); make both with the same --samples and --seed"
                )
    common = set.intersection(*map(set, entries))
    if not common:
        raise VievalError(
            f"{paths[0]} and {paths[1]} have no benchmark in common that the same judge judged; make the cards alike"
        )
    runs = chain.from_iterable(runs_of(card, path, name) for card, path, name in zip(cards, paths, names, strict=True))
    return Results(tuple(run for run in runs if (run.benchmark, run.judge) in common))


def lines(results: Results, options: StatisticsOptions) -> list[str]:
    """A table of the numbers of two cards and their difference, by benchmark and judge; none of more than two."""
    labels = list(dict.fromkeys(run.label for run in results.runs))
    if len(labels) != 2:
        return []
    header = ("benchmark and judge", *labels, f"{labels[0]} is ahead by [95%]", "n", "p (Holm)")
    rows = []
    for benchmark, runs in benchmarks_with_runs(results.runs):
        for first in (run for run in runs if run.label == labels[0]):
            rivals = [run for run in runs if run.label == labels[1] and run.judge == first.judge]
            placement = placement_of(benchmark, first, rivals, options)
            if placement and placement.published:
                [rival] = placement.published
                number, ahead = number_of(placement.board.number_of(first.label).estimate), rival.difference
                cells = ("not compared", "", "")
                if ahead and ahead.p is not None:
                    cells = (str(ahead.number), str(ahead.number.n), p_text(ahead.p))
                rows.append((f"{benchmark.name} {first.judge}", str(number), str(rival.number), *cells))
    return [*text_table([header, *rows]), ""] if rows else []
