"""Candidates for one prompt, best first by a judge's score: several images of one generator, of
several, or both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.meta_evaluation.findings import preferred
from vieval_plugin.records import Record
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import natural


@dataclass(frozen=True)
class Candidate:
    """An image with the judge's score of it."""

    record: Record
    score: float


def candidates_by_prompt(
    records: Iterable[Record],
) -> Mapping[tuple[str, ...], list[Candidate]]:
    """The images of each prompt that have a score, best first by `best_first`.

    The score is O where the judge rates it, else SC, else what it rates.

    Args:
        records: of one judge.

    Returns:
        By benchmark, part, and what the images of a prompt have in common.

    Raises:
        VievalError: nothing has a score, or several judges gave them.
    """
    scored = [record for record in records if record.verdict.scores]
    judges = dict.fromkeys(map(_judge_text, scored))
    if len(judges) != 1:
        judge_names = ", ".join(judges) or "none"
        raise VievalError(
            f"verdicts must have scores from one judge, got scores from {judge_names}"
        )
    aspects = {aspect for record in scored for aspect in record.verdict.scores}
    aspect = preferred([*aspects])[0]
    prompt_candidates = []
    for record in scored:
        scores = record.verdict.scores
        if aspect in scores:
            identity = record.id
            group = record.group or identity.uid
            prompt = (identity.benchmark, identity.part, group)
            candidate = Candidate(record, scores[aspect])
            prompt_candidates.append((prompt, candidate))
    by_prompt = grouped(prompt_candidates)
    return {
        prompt: sorted(candidates, key=_place)
        for prompt, candidates in by_prompt.items()
    }


def _place(candidate: Candidate) -> tuple[Any, ...]:
    return best_first(candidate.score, candidate.record.id)


def _judge_text(record: Record) -> str:
    """The judge of a record with its settings and its model."""
    provenance = record.provenance
    return " ".join((provenance.judge, *provenance.settings, provenance.backbone))


def best_first(score: float, identity: SampleId) -> tuple[Any, ...]:
    """The place of an image among others, the best first: of equal scores by its name, in whatever
    order they were read.

    >>> ids = [SampleId("own", "tig", "mine", uid) for uid in ("p10", "p9")]
    >>> min(ids, key=lambda identity: best_first(0.5, identity)).uid
    'p9'
    """
    return -score, natural(identity.uid), identity.image_model, identity.draw
