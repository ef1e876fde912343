"""Tables over all verdicts of folders of shards, beside those of a sample of their prompts."""

from __future__ import annotations

from collections.abc import Sequence

from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.records import YOUR_IMAGES
from vieval_plugin.results.shard_sample import BINS, FolderTotals

_EDGES = ("< 0", *(f"{n / BINS:g}-{(n + 1) / BINS:g}" for n in range(BINS)))


def totals_tables(folders: Sequence[FolderTotals]) -> list[Table]:
    """Means and histograms of scores, and counts of statuses, by image model; none where there is no folder."""
    if not folders:
        return []
    scores = [
        (
            str(folder.path),
            model or YOUR_IMAGES,
            name,
            str(score.scored),
            f"{score.sum / score.scored:.4f}" if score.scored else "",
            *map(str, score.histogram),
        )
        for folder in folders
        for model, totals in folder.by_model.items()
        for name, score in totals.scores.items()
    ]
    statuses = list(
        dict.fromkeys(s for folder in folders for totals in folder.by_model.values() for s in totals.statuses)
    )
    counts = [
        (
            str(folder.path),
            model or YOUR_IMAGES,
            str(totals.statuses.total()),
            *(str(totals.statuses[status]) for status in statuses),
        )
        for folder in folders
        for model, totals in folder.by_model.items()
    ]
    return [
        Table(
            "all_verdicts",
            "All verdicts, failed ones too, by status",
            ("folder", "image model", "verdicts", *statuses),
            tuple(counts),
        ),
        Table(
            "all_scores",
            "All scores: means over verdicts that have one, and how many are in each tenth",
            ("folder", "image model", "score", "n", "mean", *_EDGES),
            tuple(scores),
        ),
    ]
