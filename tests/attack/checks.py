"""What became of every sample, held against what the server did: lost, invented, unaccounted
for.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .clients import LIMITS, Ended
from .fault_server import Asked, FaultServer
from .faults import PAYLOAD
from .files import Known

_USABLE = ("ok", "repaired")
_LONGEST_VERDICT = 200_000  # characters of a line
_SHOWN = 5


@dataclass
class Row:
    """A line of the table: what one scenario tried and what was found.

    Every `wrong` entry is one broken promise in words. `seconds` stands beside the `bound` it must
    not pass.
    """

    scenario: str
    samples: int = 0
    requests: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    lost: int = 0
    invented: int = 0
    again: int = 0
    failed: int = 0
    unaccounted: int = 0
    tracebacks: int = 0
    leaks: int = 0
    seconds: float = 0.0
    bound: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.wrong

    def blame(self, what: str) -> None:
        self.wrong.append(what)

    def ended(
        self, ended: Ended, what: str, bound: float, codes: Sequence[int] | None = None
    ) -> None:
        """Take note of how a process ended, within its bound and by these exit codes."""
        self.seconds, self.bound = self.seconds + ended.seconds, self.bound + bound
        if ended.timed_out:
            self.blame(
                f"{what}: had not ended after {ended.seconds:.0f} s, bound {bound:.0f} s "
                f"({ended.last_line})"
            )
        elif ended.seconds > bound:
            self.blame(f"{what}: took {ended.seconds:.0f} s, bound {bound:.0f} s")
        elif codes is not None and ended.code not in codes:
            self.blame(
                f"{what}: exit code {ended.code}, expected {' or '.join(map(str, codes))} "
                f"({ended.last_line})"
            )
        if ended.tracebacks:
            self.tracebacks += ended.tracebacks
            self.blame(f"{what}: {ended.tracebacks} tracebacks: {_traceback(ended)}")
        if PAYLOAD[:4] in ended.said or "\x1b[31m" in ended.said:
            self.leaks += 1
            self.blame(f"{what}: an escape sequence of the server was printed")

    def counted(self, server: FaultServer, allowed_again: int = 0) -> None:
        """Take note of what the server saw since it forgot what was before; once, as it will
        count all again.
        """
        log = server.asked.copy()
        self.requests += len(log) + server.probes
        self.faults.update(one.fault.name for one in log if one.fault.name != "none")
        found = server.asked_again()
        self.again += len(found)
        if len(found) > allowed_again:
            replies = dict(Counter(one.reply for one in found))
            self.blame(
                f"{len(found)} questions asked after their reply was delivered, {allowed_again} "
                f"may: {replies}"
            )
        if server.redirected:
            self.blame(f"{server.redirected} requests followed a redirect")
        tries = Counter((one.conversation, one.session) for one in log)
        # its tries begin anew while nobody is answered, and a reply 429 is half a try, none while
        # most are told to wait
        most = 3 * (LIMITS.retries + 1) * (LIMITS.retries + 2)
        if tries and max(tries.values()) > most:
            often = tries.most_common(1)[0][0]
            kinds = Counter(
                one.fault.name
                for one in log
                if (one.conversation, one.session) == often
            )
            self.blame(
                f"one question asked {max(tries.values())} times in a run, at most {most}: "
                f"{dict(kinds)}"
            )
        if server.probes > 50 + len(log) / 4:
            self.blame(f"{server.probes} probes for {len(log)} questions")
        for crash in server.crashes:
            self.blame(f"the fault server itself broke: {crash}")
        server.crashes.clear()

    def merge(self, later: Row, what: str) -> None:
        """Take over what a second look at the same samples found."""
        self.lost, self.invented = (
            self.lost + later.lost,
            self.invented + later.invented,
        )
        self.unaccounted += later.unaccounted
        self.wrong += [f"{what}: {one}" for one in later.wrong]


def _traceback(ended: Ended) -> str:
    """The last line of the first traceback: which error it was."""
    after = ended.said[ended.said.find("Traceback (most") :].splitlines()[1:]
    return next(
        (line for line in after if line and not line.startswith((" ", "\t"))), "?"
    )[:200]


def verdicts_of(path: Path) -> dict[str, dict[str, Any]]:
    """The verdicts of `vieval score` by uid; ValueError for what is no JSON."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} in {path.name}")

    found = {}
    for line in path.read_text().splitlines():
        verdict = json.loads(line, parse_constant=refuse)
        found[verdict["uid"]] = {**verdict, "characters": len(line)}
    return found


def check(
    row: Row,
    known: Iterable[Known],
    verdicts: Mapping[str, Any],
    judge: str,
    log: Sequence[Asked],
    session: str | None = None,
) -> None:
    """Hold every sample's verdict against the right one, and what is missing against what the
    server did.

    `session` is the client's key, where others asked the same questions at the same time.
    """
    asked = defaultdict[str, list[Asked]](list)
    for one in log:
        asked[one.question].append(one)
    lost, invented, unaccounted = list[str](), list[str](), list[str]()
    known = list(known)
    times = Counter(
        question for sample in known for question, _ in sample.questions(judge).values()
    )
    # the same question of two samples: the second may be asked when the first was given up
    twice = {question for question, number in times.items() if number > 1}
    for sample in known:
        row.samples += 1
        verdict = verdicts.get(sample.uid)
        if verdict is None:
            lost.append(sample.uid)
            continue
        row.failed += verdict["status"] not in _USABLE
        if (said := _invented(sample, verdict, judge)) is not None:
            invented.append(
                f"{sample.uid} {said}, after {_faults(sample, judge, asked)}"
            )
        if (
            said := _unaccounted(sample, verdict, judge, asked, session, twice)
        ) is not None:
            unaccounted.append(
                f"{sample.uid} {said}, after {_faults(sample, judge, asked)}"
            )
        if verdict.get("characters", 0) > _LONGEST_VERDICT:
            row.blame(
                f"the verdict of {sample.uid} has {verdict['characters']:,} characters"
            )
    row.lost, row.invented = row.lost + len(lost), row.invented + len(invented)
    row.unaccounted += len(unaccounted)
    for what, names in (
        ("lost", lost),
        ("invented", invented),
        ("unaccounted", unaccounted),
    ):
        if names:
            row.blame(f"{what} {len(names)}: {'; '.join(names[:_SHOWN])}")


def _faults(sample: Known, judge: str, asked: Mapping[str, Sequence[Asked]]) -> str:
    seen = [
        f"{aspect}: {[a.fault.name for a in asked[q]]}"
        for aspect, (q, _) in sample.questions(judge).items()
    ]
    return ", ".join(seen)


def _invented(sample: Known, verdict: Mapping[str, Any], judge: str) -> str | None:
    """What a verdict says that its right answer does not."""
    right = sample.scores(judge)
    for aspect, score in verdict["scores"].items():
        if (
            aspect not in right
            or not isinstance(score, float | int)
            or not abs(score - right[aspect]) < 1e-6
        ):
            return f"{aspect} {score}, right is {right.get(aspect)}"
    if verdict["status"] == "ok" and set(verdict["scores"]) != set(right):
        return f"ok with the scores {sorted(verdict['scores'])} alone"
    return None


def _unaccounted(
    sample: Known,
    verdict: Mapping[str, Any],
    judge: str,
    asked: Mapping[str, Sequence[Asked]],
    session: str | None,
    twice: Collection[str],
) -> str | None:
    """Why the absence of a score cannot be explained by what the server did; None where it can."""
    if verdict["status"] in _USABLE:
        absent = set(sample.scores(judge)) - set(verdict["scores"])
        return f"{verdict['status']} without {sorted(absent)}" if absent else None
    if not any(
        step["reason"] for step in verdict["trace"] if step["status"] not in _USABLE
    ):
        return f"{verdict['status']} without a reason"
    log = {
        aspect: asked.get(question, ())
        for aspect, (question, _) in sample.questions(judge).items()
    }
    may = {status for seen in log.values() for one in seen for status in one.fault.may}
    if verdict["status"] not in may:
        return f"{verdict['status']}, which none of its faults explains"
    for aspect, seen in log.items():
        if aspect in verdict["scores"]:
            continue
        if not seen:
            return f"{verdict['status']} and {aspect} was never asked"
        last = (
            seen[-1]
            if session is None
            else next((a for a in reversed(seen) if a.session == session), seen[-1])
        )
        if last.fault.right and last.delivered and last.question not in twice:
            return (
                f"{verdict['status']} although the last answer about {aspect} was right"
            )
        tries = [one for one in seen if one.conversation == last.conversation]
        if (
            not last.fault.final
            and not last.fault.kept
            and len(tries) <= LIMITS.retries
        ):
            return (
                f"{verdict['status']} after {len(tries)} tries about {aspect}, "
                f"{LIMITS.retries + 1} were due"
            )
    return None
