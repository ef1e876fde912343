"""What is said before a run: how many samples there are to judge, and how many calls of a model that takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from vieval_plugin import config
from vieval_plugin.judges.spec import lacking
from vieval_plugin.run.jobs import Apart, Job


def announced(jobs: Sequence[Job]) -> str:
    """One line, by judge and setting; a candidate of several contests counts once, as it is judged.

    Repeats are samples of their own, and what a judge does not apply to costs no call.
    """
    counts: Counter[tuple[str, str]] = Counter()
    asked: Counter[tuple[str, str]] = Counter()
    calls: dict[tuple[str, str], str] = {}
    for job in Apart(jobs).jobs:
        spec, setting = job.judge.spec, job.judge.setting
        key = spec.name, "" if setting == spec.plain else setting
        calls.setdefault(key, job.judge.calls)
        counts[key] += 1
        asked[key] += not lacking(spec, job.judged)
    told = [_of_judge(*key, number, asked[key], calls[key]) for key, number in counts.items()]
    stored = ", less what the store holds" if set(calls.values()) - {"0"} and config.current().store_path() else ""
    return f"to judge: {'; '.join(told)}{stored}"


def _of_judge(name: str, setting: str, number: int, asked: int, calls: str) -> str:
    named = f"{number:,} by {name}{f' ({setting})' if setting else ''}"
    return named if calls == "0" else f"{named}, {times(asked, calls)} calls"


def times(number: int, calls: str) -> str:
    """So many samples' calls, from those of one as `JudgeSpec.calls` has them in words.

    >>> times(10, "2 to 4"), times(10, "about 33"), times(1000, "2")
    ('20 to 40', 'about 330', '2,000')
    """
    return re.sub(r"\d+", lambda found: f"{number * int(found[0]):,}", calls)
