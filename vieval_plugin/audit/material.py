"""What a judge is audited on: a random choice of the samples, or contests of two, that it can judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from vieval_plugin.errors import VievalError
from vieval_plugin.images import digest
from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import Sample, SampleId, outputs
from vieval_plugin.run.plan import to_ask
from vieval_plugin.run.prepare import PreparedJudge


def drawn(judged: Sequence[Judged], prepared: PreparedJudge, most: int, seed: int) -> list[Judged]:
    """At most so many samples that a judge can be asked about; of a judge of contests, contests of two.

    The candidates of contests are samples, and samples of one uid and kind by different image models are contests.

    Raises:
        VievalError: there is none.
    """
    of_contests = prepared.spec.rates == "contest"
    fit = to_ask(_contests(judged) if of_contests else _samples(judged), prepared)
    if not fit:
        what = "contests of two, or samples of one uid by two image models" if of_contests else "samples"
        raise VievalError(f"{prepared.spec.name} can judge none of these; it is audited on {what} that it knows")
    return [fit[number] for number in np.random.default_rng(seed).permutation(len(fit))[:most]]


def others(judged: Sequence[Judged], seed: int) -> list[Sample | None]:
    """For each sample another one of its kind and of another group, at random; None where there is none."""
    rng = np.random.default_rng([seed, 1])
    by_kind: dict[str, list[Sample]] = {}
    for one in judged:
        by_kind.setdefault(one.kind, []).extend(candidates_of(one))
    found: list[Sample | None] = []
    for one in judged:
        apart = [other for other in by_kind[one.kind] if other.group != one.group]
        found.append(apart[rng.integers(len(apart))] if apart else None)
    return found


def _samples(judged: Sequence[Judged]) -> list[Judged]:
    """All samples, one that is in several contests once."""
    return list({sample.id: sample for one in judged for sample in candidates_of(one)}.values())


def _contests(judged: Sequence[Judged]) -> list[Judged]:
    found: list[Judged] = [one for one in judged if isinstance(one, Contest) and len(one.candidates) == 2]
    by_uid: dict[tuple[str, ...], list[Sample]] = {}
    for one in judged:
        if isinstance(one, Sample):
            by_uid.setdefault((one.id.benchmark, one.id.part, one.kind, one.id.uid), []).append(one)
    for (benchmark, part, _, uid), samples in by_uid.items():
        for first, other in combinations(samples, 2):
            if first.id.image_model != other.id.image_model and (second := _under_conditions_of(first, other)):
                name = f"{uid}#{first.id.image_model}-{second.id.image_model}"
                found.append(Contest(SampleId(benchmark, part, "", name), (first, second), group=first.group))
    return found


def _under_conditions_of(first: Sample, second: Sample) -> Sample | None:
    """The second sample with the files of the first's conditions; None where they are not the same conditions."""
    made = {role for sample in (first, second) for role, _ in outputs(sample)}
    own, theirs = ({role: image for role, image in one.images.items() if role not in made} for one in (first, second))
    alike = own.keys() == theirs.keys() and all(digest(own[role]) == digest(theirs[role]) for role in own)
    return replace(second, images={**second.images, **own}) if alike and first.texts == second.texts else None
