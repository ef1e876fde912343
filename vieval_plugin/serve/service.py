"""The service behind all protocols: entries of a request in, reward values out."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from vieval_plugin.errors import VievalError
from vieval_plugin.images import digest
from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import Image, Status, Verdict, worst
from vieval_plugin.records import unjudged
from vieval_plugin.rewards.reward import Reward, RewardValue, averaged, imputed, reward_values
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.run.session import Session
from vieval_plugin.serve.health import Health, probe
from vieval_plugin.serve.jobs import KeyedJob, RunLoop
from vieval_plugin.serve.metrics import Metrics
from vieval_plugin.serve.options import ServeOptions
from vieval_plugin.serve.protocols.protocol import RequestEntry

_log = logging.getLogger("vieval")
_NO_GROUP = "this reward compares the members of a group, and the sample names none"


@dataclass(frozen=True)
class _Batch:
    """Samples of a request that one reward takes together: their places, and where the jobs of each term begin and end."""

    reward: Reward
    places: tuple[int, ...]
    judged: tuple[Judged, ...]
    spans: tuple[tuple[int, int], ...]


class Service:
    """Rewards that are open: one session, one run loop, and the health of each judge."""

    def __init__(self, rewards: Sequence[Reward], session: Session, progress: Progress, options: ServeOptions) -> None:
        self.rewards = {reward.name: reward for reward in rewards}
        self.options, self.progress, self.metrics = options, progress, Metrics()
        self._session = session
        judges = {id(term.judge): term.judge for reward in rewards for term in reward.terms}
        live = max(session.live(judge) for judge in judges.values())
        # some prepare their images while others wait for the backbone, which bounds its requests itself
        self.loop = RunLoop(self._judge, live + live // 4)
        self._health = {key: Health(partial(self._probe, judge)) for key, judge in judges.items()}

    async def close(self) -> None:
        """End what is under way."""
        await self.loop.close()
        for health in self._health.values():
            await health.close()

    async def fault(self, rewards: Sequence[Reward], within: float) -> str:
        """Reason that some of these rewards cannot be had, empty where all can."""
        keys = dict.fromkeys(id(term.judge) for reward in rewards for term in reward.terms)
        faults = await asyncio.gather(*(self._health[key].fault(within) for key in keys))
        return next(filter(None, faults), "")

    async def values(
        self, entries: Sequence[RequestEntry], rewards: Sequence[Reward], within: float
    ) -> list[dict[str, RewardValue]]:
        """The values of each entry, by the name of the reward.

        Args:
            entries: of one request.
            rewards: those that an entry is given which names none.
            within: the seconds after which what is not judged yet has failed.
        """
        start = time.monotonic()
        results: list[dict[str, RewardValue]] = [{} for _ in entries]
        batches, jobs = await asyncio.to_thread(self._planned, entries, rewards, results)
        outcomes = await self.loop.outcomes(jobs, within - (time.monotonic() - start))
        found: dict[tuple[int, str], list[RewardValue]] = {}
        for batch in batches:
            for place, value in zip(batch.places, _values_of(batch, outcomes), strict=True):
                found.setdefault((place, batch.reward.name), []).append(value)
        for (place, name), repeats in found.items():
            results[place][name] = averaged(repeats)
        if self.options.on_failure == "neutral":
            _impute(entries, results, self.options.max_imputed)
        for by_name in results:
            for name, value in by_name.items():
                outcome = "imputed" if value.imputed else "failed" if value.value is None else "ok"
                self.metrics.rewards[name, outcome] += 1
        for name, tied in _tied_groups(entries, results):
            self.metrics.groups[name, "tied" if tied else "apart"] += 1
        return results

    def _planned(
        self, entries: Sequence[RequestEntry], rewards: Sequence[Reward], results: list[dict[str, RewardValue]]
    ) -> tuple[list[_Batch], list[KeyedJob]]:
        """The batches of a request and their jobs; what cannot be judged gets its value here."""
        batches: list[_Batch] = []
        jobs: list[KeyedJob] = []
        digests: dict[int, str] = {}
        for reward in self.rewards.values():
            places = [n for n, entry in enumerate(entries) if reward.name in _named(entry, rewards)]
            for group in self._taken_together(reward, entries, places, results):
                judged = [item for place in group if (item := entries[place].judged) is not None]
                for repeat in range(self.options.repeats):
                    spans = []
                    for term in reward.terms:
                        start = len(jobs)
                        keyed = ((_key(item, digests), item) for item in term.to_judge(judged))
                        jobs += [
                            KeyedJob((id(term.judge), repeat, key), item, term.judge, repeat) for key, item in keyed
                        ]
                        spans.append((start, len(jobs)))
                    batches.append(_Batch(reward, tuple(group), tuple(judged), tuple(spans)))
        return batches, jobs

    def _taken_together(
        self,
        reward: Reward,
        entries: Sequence[RequestEntry],
        places: Sequence[int],
        results: list[dict[str, RewardValue]],
    ) -> Iterator[list[int]]:
        """The places of entries that can be judged, in batches: groups, or contests one by one, or all samples at once."""
        pooled: list[int] = []
        by_group: dict[str, list[int]] = {}
        for place in places:
            entry = entries[place]
            if entry.judged is None:
                results[place][reward.name] = entry.failure
            elif isinstance(entry.judged, Contest):
                yield [place]
            elif not reward.groupwise:
                pooled.append(place)
            elif not entry.group:
                results[place][reward.name] = RewardValue(None, Status.NOT_APPLICABLE, _NO_GROUP)
            else:
                by_group.setdefault(entry.group, []).append(place)
        if pooled:
            yield pooled
        for group, members in by_group.items():
            if len(members) > 1:
                yield members
            else:
                reason = f"nothing of group {group!r} is left to compare it with"
                results[members[0]][reward.name] = RewardValue(None, Status.NOT_APPLICABLE, reason)

    async def _judge(self, job: KeyedJob) -> Outcome:
        calls_before = self.progress.usage.calls
        try:
            outcome = await self._session.outcome(
                job.judged, job.judge, self.options.attempts, job.repeat, self.options.repeats
            )
        except VievalError as error:
            outcome = Outcome(unjudged(Status.API_ERROR, str(error)))
        self.metrics.verdicts[job.judge.spec.name, str(outcome.verdict.status)] += 1
        # a verdict from the store alone does not show that a backbone is well
        stored = job.judge.asks_a_model and self.progress.usage.calls == calls_before and outcome.verdict.status.usable
        if outcome.verdict.status is not Status.NOT_APPLICABLE and not stored:
            self._health[id(job.judge)].note(outcome.verdict)
        return outcome

    async def _probe(self, judge: PreparedJudge) -> Verdict:
        """The verdict on images of noise, which no store has seen."""
        try:
            return (await self._session.outcome(probe(judge, self.options.conditions.kind), judge)).verdict
        except VievalError as error:
            return unjudged(Status.API_ERROR, str(error))
        except Exception as error:  # a server that cannot be asked how it is would be the worse for it
            _log.exception("a judgement broke")
            return unjudged(Status.TOOL_ERROR, f"the judgement broke: {type(error).__name__}")


def _named(entry: RequestEntry, rewards: Sequence[Reward]) -> tuple[str, ...]:
    return tuple(reward.name for reward in rewards) if entry.rewards is None else entry.rewards


def _values_of(batch: _Batch, outcomes: Sequence[Outcome]) -> list[RewardValue]:
    verdicts = [[outcome.verdict for outcome in outcomes[first:last]] for first, last in batch.spans]
    if isinstance(batch.judged[0], Contest):
        own = tuple(itertools.chain.from_iterable(verdicts))
        status = worst([verdict.status for verdict in own])
        return [RewardValue(None, status, next((v.reason for v in own if v.status is status), ""), own)]
    return reward_values(batch.reward, len(batch.judged), verdicts)


def _impute(entries: Sequence[RequestEntry], results: list[dict[str, RewardValue]], most: float) -> None:
    """Give failed members of groups the mean of the others; where that is not allowed they stay failed, and say why."""
    for name, places in _groups(entries, results):
        own = [results[place][name] for place in places]
        try:
            values = imputed(own, most)
        except VievalError as error:
            values = [replace(value, reason=str(error)) if value.value is None else value for value in own]
        for place, value in zip(places, values, strict=True):
            results[place][name] = value


def _groups(
    entries: Sequence[RequestEntry], results: Sequence[Mapping[str, RewardValue]]
) -> Iterator[tuple[str, list[int]]]:
    """For each group of a request and each of its rewards, the places of its members."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, (entry, by_name) in enumerate(zip(entries, results, strict=True)):
        for name in by_name if entry.group else ():
            groups.setdefault((entry.group, name), []).append(place)
    yield from ((name, places) for (_, name), places in groups.items())


def _tied_groups(
    entries: Sequence[RequestEntry], results: Sequence[Mapping[str, RewardValue]]
) -> Iterator[tuple[str, bool]]:
    """For each group whose members have values: its reward, and whether all have the same, so that none has an advantage."""
    for name, places in _groups(entries, results):
        known = [value.value for place in places if (value := results[place][name]).value is not None]
        if len(known) > 1:
            yield name, len(set(known)) == 1


def _key(judged: Judged, digests: dict[int, str]) -> str:
    """Content of what is judged: kind, texts and images of each candidate."""
    parts: list[str] = []
    for sample in candidates_of(judged):
        texts = [f"{name}={text}" for name, text in sorted(sample.texts.items())]
        images = [f"{role}={_digest(image, digests)}" for role, image in sorted(sample.images.items())]
        parts += [sample.kind, *texts, *images]
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()


def _digest(image: Image, digests: dict[int, str]) -> str:
    content = id(image.source)  # one that stands in many places of a request is hashed once
    if content not in digests:
        digests[content] = digest(image)
    return digests[content]


def gauges(service: Service, connections: int, requests: int) -> Mapping[str, float]:
    """The levels of a server at this moment, by their names in `/metrics`."""
    return {
        "vieval_jobs_waiting": service.loop.waiting,
        "vieval_jobs_under_way": service.loop.under_way,
        "vieval_requests_open": requests,
        "vieval_connections_open": connections,
    }
