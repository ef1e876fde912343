"""Jobs of a run, where a candidate of several contests is judged once."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from vieval_plugin import config
from vieval_plugin.judges.contests import Judged, candidates_of, contest_verdict
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.judges.spec import missing_inputs_reason
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.scheduler import Outcome, combined


@dataclass(frozen=True)
class Job:
    """A sample or contest to judge."""

    #: The sample or contest.
    judged: Judged
    judge: PreparedJudge
    #: Number among verdicts on the same, from 0.
    repeat: int = 0


class JobsSplitByCandidate:
    """Jobs with contests split into candidates, and their reassembly.

    `original` are the jobs as given, `jobs` those to run, `owners` the number of the first that
    each of these belongs to.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs: list[Job] = []
        self.owners: list[int] = []
        self.original = jobs
        self._parts: list[tuple[int, ...]] = []
        self._jobs_of_part: defaultdict[int, list[int]] = defaultdict(
            list
        )  # by part, the jobs that it belongs to
        self._outcomes: dict[int, Outcome] = {}
        self._parts_to_come: list[int] = []
        part_by_key: dict[Hashable, int] = {}
        for number, job in enumerate(jobs):
            judged: Sequence[Judged] = (job.judged,)
            if job.judge.takes_apart(job.judged):
                judged = candidates_of(job.judged)
            parts = tuple(
                self._part(part_by_key, number, job, candidate) for candidate in judged
            )
            self._parts.append(parts)
            self._parts_to_come.append(len(set(parts)))
            for part in dict.fromkeys(parts):
                self._jobs_of_part[part].append(number)

    def _part(
        self,
        part_by_key: dict[Hashable, int],
        number: int,
        job: Job,
        judged: Judged,
    ) -> int:
        key = _key(job, judged) if judged is not job.judged else number
        if key not in part_by_key:
            part_by_key[key] = len(self.jobs)
            self.jobs.append(Job(judged, job.judge, job.repeat))
            self.owners.append(number)
        return part_by_key[key]

    def assemble(self, part: int, outcome: Outcome) -> Iterator[tuple[int, Outcome]]:
        """Record the outcome of one of `jobs`; the numbers and outcomes of the jobs
        that are whole now.
        """
        self._outcomes[part] = outcome
        for number in self._jobs_of_part.pop(part):
            self._parts_to_come[number] -= 1
            if not self._parts_to_come[number]:
                yield number, self._assembled(number)

    def _assembled(self, number: int) -> Outcome:
        """A job's outcome; the tokens of a candidate are counted where it came first."""
        parts = self._parts[number]
        if self.jobs[parts[0]].judged is self.original[number].judged:
            return self._outcomes[parts[0]]
        owned_parts = [
            part for part in dict.fromkeys(parts) if self.owners[part] == number
        ]
        verdicts = [self._outcomes[part].verdict for part in parts]
        return combined(
            contest_verdict(verdicts),
            [self._outcomes[part] for part in owned_parts],
        )


def _key(job: Job, judged: Judged) -> Hashable:
    """The identity of a candidate among all contests: its id, images and texts, and who judges
    them.
    """
    assert isinstance(judged, Sample)
    images = tuple((role, image.source) for role, image in judged.images.items())
    return job.judge, job.repeat, judged.id, images, tuple(judged.texts.items())


def announced(jobs: Sequence[Job]) -> str:
    """The announcement of a run, by judge and setting; a candidate of several contests counts once,
    as it is judged.

    Repeats are samples of their own, and what a judge does not apply to costs no call.
    """
    counts: Counter[tuple[str, str]] = Counter()
    applicable_count: Counter[tuple[str, str]] = Counter()
    calls: dict[tuple[str, str], str] = {}
    for job in JobsSplitByCandidate(jobs).jobs:
        spec = job.judge.spec
        setting = job.judge.setting
        key = spec.name, "" if setting == spec.plain else setting
        calls.setdefault(key, job.judge.calls)
        counts[key] += 1
        applicable_count[key] += not missing_inputs_reason(spec, job.judged)
    lines = [
        _job_title(*key, number, applicable_count[key], calls[key])
        for key, number in counts.items()
    ]
    is_stored = (set(calls.values()) - {"0"}) and config.current().store_path()
    stored = ", minus cached answers" if is_stored else ""
    return f"to judge: {'; '.join(lines)}{stored}"


def _job_title(
    name: str,
    setting: str,
    number: int,
    applicable_count: int,
    calls: str,
) -> str:
    judge = f"{name} ({setting})" if setting else name
    samples = f"{number:,} by {judge}"
    if calls == "0":
        return samples
    return f"{samples}, {times(applicable_count, calls)} calls"


def times(number: int, calls: str) -> str:
    """The calls of a number of samples, from those of one as `JudgeSpec.calls` has them in words.

    >>> times(10, "2 to 4"), times(10, "about 33"), times(1000, "2")
    ('20 to 40', 'about 330', '2,000')
    """

    def multiplied(match: re.Match[str]) -> str:
        return f"{number * int(match[0]):,}"

    return re.sub(r"\d+", multiplied, calls)
