"""Two cards side by side: their verdicts compared on the samples in common."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from vieval_plugin.card.card import Card, CardEntry, Difference, number_of
from vieval_plugin.card.placement import placement_of
from vieval_plugin.card.read import read_card, runs_of
from vieval_plugin.errors import VievalError
from vieval_plugin.meta_evaluation.tables import p_text
from vieval_plugin.report.own_samples import benchmarks_with_runs
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.options import StatisticsOptions
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
    first, *further = cards
    for path, card in zip(paths[1:], further, strict=True):
        _require_same_samples(paths[0], first, path, card)
    common = set.intersection(*({_key(entry) for entry in card.entries} for card in cards))
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
                number = number_of(placement.board.number_of(first.label).estimate)
                difference, p, n = _difference_cells(rival.difference)
                rows.append((f"{benchmark.name} {first.judge}", str(number), str(rival.number), difference, n, p))
    return [*text_table([header, *rows]), ""] if rows else []


def _difference_cells(difference: Difference | None) -> tuple[str, str, str]:
    if difference is None or difference.p is None:
        return "not compared", "", ""
    return str(difference.number), p_text(difference.p), str(difference.number.n)


def _key(entry: CardEntry) -> tuple[str, str]:
    return entry.benchmark, entry.judge


def _require_same_samples(first_path: Path, first: Card, path: Path, second: Card) -> None:
    first_entries = {_key(entry): entry for entry in first.entries}
    for entry in second.entries:
        first_entry = first_entries.get(_key(entry))
        if first_entry and first_entry.sample_digest != entry.sample_digest:
            raise VievalError(
                f"{first_path} is of {first_entry.samples} {first_entry.unit} of {first_entry.benchmark} (seed {first.seed}) and {path} of other "
                f"{entry.samples} (seed {second.seed}); make both with the same --samples and --seed"
            )
