"""Folders of images judged side by side: as samples or, by a judge of contests, as contests
between each two folders.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import (
    FAILED_CALLS,
    Sample,
    SampleId,
    Status,
    Verdict,
)
from vieval_plugin.readers.samples import SampleRow, SampleSource
from vieval_plugin.records import OWN, Provenance
from vieval_plugin.run.evaluate import outcomes_of, provenance_of
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.text.errors import VievalError


async def judge_folders(
    source: SampleSource,
    prepared: PreparedJudge,
    options: Config,
    backbone: Backbone | None,
    progress: Progress,
    label: str = "",
) -> tuple[list[Judged], list[Verdict], Provenance]:
    """Judge the images of several folders, paired by prompt; what a call or a tool failed on is
    judged once more.

    Args:
        source: of `read_folders`.
        prepared: the judge.
        options: those in force.
        backbone: the model that a command names.
        progress: counts calls and failures.
        label: what reports call these verdicts (default: the backbone's model).

    Returns:
        Samples or contests, their verdicts, and who gave these.

    Raises:
        VievalError: a judge of contests has no two image models with an image of one prompt.
    """
    rows = list(source)
    contests = contests_between(rows) if prepared.spec.rates == "contest" else []
    if prepared.spec.rates == "contest" and not contests:
        raise VievalError(
            f"{prepared.spec.name} compares image models, and {source.name} has no two with an "
            "image of one prompt"
        )
    judged: list[Judged] = list(contests) or [row.sample for row in rows]
    # whose image a contest lacks is looked up in the contest
    by_sample = {
        r.sample.id: r.verdict
        for r in rows
        if r.verdict and r.verdict.status is not Status.NO_IMAGE
    }
    decided = {
        number: by_sample[sample.id]
        for number, item in enumerate(judged)
        for sample in candidates_of(item)
        if sample.id in by_sample
    }
    outcomes = await outcomes_of(
        judged, prepared, options, backbone, progress, True, decided
    )
    failed = [
        n
        for n, o in enumerate(outcomes)
        if o.verdict.status in FAILED_CALLS and n not in decided
    ]
    if failed:
        progress.statuses -= Counter(
            outcomes[number].verdict.status for number in failed
        )
        again = await outcomes_of(
            [judged[number] for number in failed],
            prepared,
            options,
            backbone,
            progress,
            True,
        )
        for number, outcome in zip(failed, again, strict=True):
            outcomes[number] = outcome
    verdicts = [outcome.verdict for outcome in outcomes]
    if not contests:
        noted = zip(rows, verdicts, strict=True)
        verdicts = [
            replace(verdict, findings=(*verdict.findings, *row.findings))
            for row, verdict in noted
        ]
    return (
        judged,
        verdicts,
        replace(provenance_of(prepared, options, backbone), label=label),
    )


def contests_between(rows: Sequence[SampleRow]) -> list[Contest]:
    """Contests between each two image models: the n-th image of a prompt by one against the n-th
    by the other.
    """
    by_prompt = defaultdict(list)
    for sample in (row.sample for row in rows if isinstance(row.sample, Sample)):
        by_prompt[sample.kind, sample.id.uid, sample.id.draw].append(sample)
    return [
        Contest(
            SampleId(
                OWN,
                kind,
                "",
                f"{uid} {first.id.image_model} {second.id.image_model}",
                draw,
            ),
            (first, second),
            group=first.group,
            tags=first.tags,
        )
        for (kind, uid, draw), candidates in by_prompt.items()
        for first, second in combinations(candidates, 2)
    ]
