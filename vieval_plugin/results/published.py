"""Scores of published image models from recorded verdicts: those among which a generator is given its place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.results.runs import load_runs


def published_scores(
    results: Sequence[Path], benchmark: str, part: str, source: Provenance, aspect: str
) -> dict[str, dict[str, float]]:
    """The scores of a part's image models that the same judge gave, by image model and uid.

    Args:
        results: what runs left behind.
        benchmark, part: whose image models.
        source: the judge, its setting, its prompt pack and its backbone; others' verdicts do not count.
        aspect: the score.

    Raises:
        VievalError: results that cannot be read.
    """
    scores_by_model: dict[str, dict[str, float]] = {}
    for run in _runs(tuple(results)) if results else ():
        if run.benchmark != benchmark:
            continue
        for record in (repeats[0] for repeats in run.records.get(part, ()) if repeats):
            if _is_of_source(record, source) and aspect in record.verdict.scores:
                scores_by_model.setdefault(record.id.image_model, {})[record.id.uid] = record.verdict.scores[aspect]
    return dict(sorted(scores_by_model.items()))


def _is_of_source(record: Record, source: Provenance) -> bool:
    p = record.provenance
    return (p.judge, p.settings, p.pack_hash, p.backbone) == (
        *(source.judge, tuple(source.settings)),
        *(source.pack_hash, source.backbone),
    )


@lru_cache(maxsize=4)
def _runs(results: tuple[Path, ...]) -> tuple[Run, ...]:
    return tuple(load_runs(results))
