"""The service behind all protocols: entries of a request in, reward values out."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from vieval_plugin.images import digest
from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import Image, Status, Verdict, worst
from vieval_plugin.rewards.reward import (
    Reward,
    RewardValue,
    averaged,
    imputed,
    reward_values,
)
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.run.session import Session
from vieval_plugin.serve.health import Health, probe
from vieval_plugin.serve.jobs import KeyedJob, RunLoop, outcome_or_failure
from vieval_plugin.serve.metrics import Metrics
from vieval_plugin.serve.options import ServeOptions
from vieval_plugin.serve.protocols.protocol import RequestEntry
from vieval_plugin.text.errors import VievalError

#: The values of each entry so far, by the name of the reward.
Results: TypeAlias = list[dict[str, RewardValue]]
_NO_GROUP = "this reward compares samples in a group, but the sample has no group"


@dataclass(frozen=True)
class _Batch:
    """Samples of a request that one reward takes together."""

    reward: Reward
    #: Positions of the samples in the request.
    positions: tuple[int, ...]
    #: The samples, or one contest.
    judged: tuple[Judged, ...]
    #: Where the jobs of each term begin and end.
    spans: tuple[tuple[int, int], ...]


class Service:
    """Rewards that are open: one session, one run loop, and the health of each judge."""

    def __init__(
        self,
        rewards: Sequence[Reward],
        session: Session,
        progress: Progress,
        options: ServeOptions,
    ) -> None:
        self.rewards = {reward.name: reward for reward in rewards}
        self.options = options
        self.progress = progress
        self.metrics = Metrics(progress.usage)
        self._session = session
        judges = _judges(rewards)
        live = max(map(session.live, judges))
        # some prepare their images while others wait for the backbone, which bounds its requests
        # itself
        self.loop = RunLoop(self._judge, live + live // 4)
        self._health = {judge: Health(partial(self._probe, judge)) for judge in judges}

    async def close(self) -> None:
        """Stop running work."""
        await self.loop.close()
        for health in self._health.values():
            await health.close()

    async def fault(self, rewards: Sequence[Reward], timeout: float) -> str:
        """Reason that some of these rewards cannot be had, empty where all can."""
        health = [self._health[judge] for judge in _judges(rewards)]
        faults = await asyncio.gather(*(judge.fault(timeout) for judge in health))
        return next(filter(None, faults), "")

    async def values(
        self,
        entries: Sequence[RequestEntry],
        rewards: Sequence[Reward],
        timeout: float,
    ) -> Results:
        """The values of each entry, by the name of the reward.

        Args:
            entries: of one request.
            rewards: those that an entry is given which names none.
            timeout: the seconds after which what is not judged yet has failed.
        """
        start = time.monotonic()
        results: Results = [{} for _ in entries]
        batches, jobs = await asyncio.to_thread(
            self._planned,
            entries,
            rewards,
            results,
        )
        outcomes = await self.loop.outcomes(jobs, timeout - (time.monotonic() - start))
        repeats: dict[tuple[int, str], list[RewardValue]] = {}
        for batch in batches:
            for position, value in zip(
                batch.positions,
                _values_of(batch, outcomes),
                strict=True,
            ):
                repeats.setdefault((position, batch.reward.name), []).append(value)
        for (position, name), values in repeats.items():
            results[position][name] = averaged(values)
        if self.options.on_failure == "neutral":
            _impute(entries, results, self.options.max_imputed)
        self._count(entries, results)
        return results

    def _count(self, entries: Sequence[RequestEntry], results: Results) -> None:
        """Count rewards and groups in the metrics by their outcome."""
        for by_name in results:
            for name, value in by_name.items():
                outcome = "failed" if value.value is None else "ok"
                if value.imputed:
                    outcome = "imputed"
                self.metrics.rewards.labels(name, outcome).inc()
        for name, positions in _groups(entries, results):
            numbers = [
                n
                for position in positions
                if (n := results[position][name].value) is not None
            ]
            if len(numbers) > 1:  # of a tied group no member has an advantage
                outcome = "tied" if len(set(numbers)) == 1 else "apart"
                self.metrics.groups.labels(name, outcome).inc()

    def _planned(
        self,
        entries: Sequence[RequestEntry],
        rewards: Sequence[Reward],
        results: Results,
    ) -> tuple[list[_Batch], list[KeyedJob]]:
        """The batches of a request and their jobs; what cannot be judged gets its value here."""
        batches = []
        jobs: list[KeyedJob] = []
        digests: dict[Image, str] = {}
        names = tuple(reward.name for reward in rewards)
        for reward in self.rewards.values():
            positions = [
                position
                for position, entry in enumerate(entries)
                if reward.name in (names if entry.rewards is None else entry.rewards)
            ]
            for group in _batched(reward, entries, positions, results):
                judged = tuple(
                    item for position in group if (item := entries[position].judged)
                )
                for repeat in range(self.options.repeats):
                    spans = []
                    for term in reward.terms:
                        start = len(jobs)
                        for item in term.to_judge(judged):
                            jobs.append(
                                KeyedJob(
                                    (term.judge, repeat, _key(item, digests)),
                                    item,
                                    term.judge,
                                    repeat,
                                )
                            )
                        spans.append((start, len(jobs)))
                    batches.append(
                        _Batch(
                            reward,
                            tuple(group),
                            judged,
                            tuple(spans),
                        )
                    )
        return batches, jobs

    async def _judge(self, job: KeyedJob) -> Outcome:
        calls_before = self.progress.usage.calls
        judging = self._session.outcome(
            job.judged,
            job.judge,
            self.options.attempts,
            job.repeat,
            self.options.repeats,
        )
        outcome = await outcome_or_failure(judging)
        self.metrics.verdicts.labels(
            job.judge.spec.name, str(outcome.verdict.status)
        ).inc()
        # a verdict from the store alone does not show that a backbone is well
        stored = (
            job.judge.asks_a_model
            and self.progress.usage.calls == calls_before
            and outcome.verdict.status.usable
        )
        if outcome.verdict.status is not Status.NOT_APPLICABLE and not stored:
            self._health[job.judge].note(outcome.verdict)
        return outcome

    async def _probe(self, judge: PreparedJudge) -> Verdict:
        """The verdict on images of noise, which no store has seen."""
        sample = probe(judge, self.options.conditions.kind)
        return (await outcome_or_failure(self._session.outcome(sample, judge))).verdict


def _judges(rewards: Sequence[Reward]) -> dict[PreparedJudge, None]:
    """The judges of rewards, each once, in order."""
    return dict.fromkeys(term.judge for reward in rewards for term in reward.terms)


def _batched(
    reward: Reward,
    entries: Sequence[RequestEntry],
    positions: Sequence[int],
    results: Results,
) -> Iterator[list[int]]:
    """The positions of entries that can be judged, in batches: groups, contests one by one, or
    all samples at once.
    """

    def refuse(position: int, status: Status, reason: str) -> None:
        results[position][reward.name] = RewardValue(None, status, reason)

    pooled = []
    by_group: dict[str, list[int]] = {}
    for position in positions:
        entry = entries[position]
        if entry.judged is None:
            refuse(position, Status.TOOL_ERROR, entry.fault)
        elif isinstance(entry.judged, Contest):
            yield [position]
        elif not reward.groupwise:
            pooled.append(position)
        elif not entry.group:
            refuse(position, Status.NOT_APPLICABLE, _NO_GROUP)
        else:
            by_group.setdefault(entry.group, []).append(position)
    if pooled:
        yield pooled
    for group, members in by_group.items():
        if len(members) > 1:
            yield members
        else:
            reason = f"group {group!r} must have at least 2 samples to compare, got 1"
            refuse(members[0], Status.NOT_APPLICABLE, reason)


def _values_of(batch: _Batch, outcomes: Sequence[Outcome]) -> list[RewardValue]:
    verdicts = [
        [outcome.verdict for outcome in outcomes[first:last]]
        for first, last in batch.spans
    ]
    if isinstance(batch.judged[0], Contest):
        judged = tuple(itertools.chain.from_iterable(verdicts))
        status = worst([verdict.status for verdict in judged])
        reasons = (verdict.reason for verdict in judged if verdict.status is status)
        return [
            RewardValue(
                None,
                status,
                next(reasons, ""),
                judged,
            )
        ]
    return reward_values(batch.reward, len(batch.judged), verdicts)


def _impute(
    entries: Sequence[RequestEntry],
    results: Results,
    max_share: float,
) -> None:
    """Give failed members of groups the mean of the others; where that is not allowed they stay
    failed, and say why.
    """
    for name, positions in _groups(entries, results):
        values = [results[position][name] for position in positions]
        try:
            values = imputed(values, max_share)
        except VievalError as error:
            values = [
                replace(value, reason=str(error)) if value.value is None else value
                for value in values
            ]
        for position, value in zip(positions, values, strict=True):
            results[position][name] = value


def _groups(
    entries: Sequence[RequestEntry], results: Results
) -> list[tuple[str, list[int]]]:
    """For each group of a request and each of its rewards, the positions of its members."""
    groups: dict[tuple[str, str], list[int]] = {}
    for position, (entry, by_name) in enumerate(zip(entries, results, strict=True)):
        for name in by_name if entry.group else ():
            groups.setdefault((entry.group, name), []).append(position)
    return [(name, positions) for (_, name), positions in groups.items()]


def _key(judged: Judged, digests: dict[Image, str]) -> str:
    """Content of what is judged: kind, texts and images of each candidate."""
    parts = []
    for sample in candidates_of(judged):
        texts = [f"{name}={text}" for name, text in sorted(sample.texts.items())]
        for image in sample.images.values():
            if image not in digests:  # one that a request has many times is hashed once
                digests[image] = digest(image)
        images = [
            f"{role}={digests[image]}" for role, image in sorted(sample.images.items())
        ]
        parts += [sample.kind, *texts, *images]
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()
