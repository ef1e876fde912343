"""Material of an audit: a random choice of the samples, or contests of two candidates,
that a judge supports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from vieval_plugin.images import digest
from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import Sample, SampleId, outputs
from vieval_plugin.run.plan import to_ask
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.text.errors import VievalError


def random_judgeable_samples(
    judged: Sequence[Judged],
    prepared: PreparedJudge,
    n: int,
    seed: int,
) -> list[Judged]:
    """Choose at most n samples at random that a judge can be asked about; for a judge
    of contests, contests of two candidates.

    Candidates of contests count as samples. Samples with the same uid and kind from
    different image models form contests.

    Raises:
        VievalError: the judge supports no samples.
    """
    if prepared.spec.rates == "contest":
        material = _contests(judged)
        required = (
            "contests of two candidates, "
            "or samples with the same uid from two image models,"
        )
    else:
        material = _samples(judged)
        required = "samples"
    fit = to_ask(material, prepared)
    if not fit:
        raise VievalError(
            f"{prepared.spec.name} cannot judge any of these samples; "
            f"an audit requires {required} that it supports"
        )
    order = np.random.default_rng(seed).permutation(len(fit))
    return [fit[number] for number in order[:n]]


def partners_of(judged: Sequence[Judged], seed: int) -> list[Sample | None]:
    """For each sample, choose another one of its kind and of another group at random;
    None if there is none.
    """
    rng = np.random.default_rng([seed, 1])
    by_kind = grouped(
        (sample.kind, candidate)
        for sample in judged
        for candidate in candidates_of(sample)
    )
    partners = []
    for sample in judged:
        candidates = [
            partner for partner in by_kind[sample.kind] if partner.group != sample.group
        ]
        choice = None
        if candidates:
            choice = candidates[rng.integers(len(candidates))]
        partners.append(choice)
    return partners


def _samples(judged: Sequence[Judged]) -> list[Judged]:
    """Distinct samples, including candidates of several contests."""
    by_id = {
        candidate.id: candidate
        for sample in judged
        for candidate in candidates_of(sample)
    }
    return list(by_id.values())


def _contests(judged: Sequence[Judged]) -> list[Judged]:
    contests: list[Judged] = [
        sample
        for sample in judged
        if isinstance(sample, Contest) and len(sample.candidates) == 2
    ]
    by_uid = grouped(
        ((sample.id.benchmark, sample.id.part, sample.kind, sample.id.uid), sample)
        for sample in judged
        if isinstance(sample, Sample)
    )
    for (benchmark, part, _, uid), samples in by_uid.items():
        for first, rival in combinations(samples, 2):
            are_rivals = first.id.image_model != rival.id.image_model
            if are_rivals and (second := _share_conditions(first, rival)):
                models = f"{first.id.image_model}-{second.id.image_model}"
                contest_id = SampleId(benchmark, part, "", f"{uid}#{models}")
                contests.append(Contest(contest_id, (first, second), group=first.group))
    return contests


def _share_conditions(first: Sample, second: Sample) -> Sample | None:
    """Return the second sample with the first's condition files; None if their
    conditions differ.
    """
    output_roles = {role for sample in (first, second) for role, _ in outputs(sample)}
    conditions, other_condition_images = (
        {
            role: image
            for role, image in sample.images.items()
            if role not in output_roles
        }
        for sample in (first, second)
    )
    are_same = conditions.keys() == other_condition_images.keys() and all(
        digest(conditions[role]) == digest(other_condition_images[role])
        for role in conditions
    )
    are_shared = are_same and first.texts == second.texts
    if are_shared:
        return replace(second, images={**second.images, **conditions})
    return None
