"""Compare the verdict on each sample with what the server did."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .clients import LIMITS, Ended
from .fault_server import Asked, FaultServer
from .faults import PAYLOAD

_USABLE = ("ok", "repaired")
_LONGEST_VERDICT = 200_000  # characters of a line
_SHOWN = 5


@dataclass
class Row:
    """A line of the table: what one scenario tried, and each broken promise in words (`wrong`)."""

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

    def ended(self, ended, what, bound, codes=None):
        """Take note of how a process ended, within its bound and by these exit codes."""
        self.seconds += ended.seconds
        self.bound += bound
        took = f"{ended.seconds:.0f} s, bound {bound:.0f} s"
        if ended.timed_out:
            self.blame(f"{what}: had not ended after {took} ({ended.last_line})")
        elif ended.seconds > bound:
            self.blame(f"{what}: took {took}")
        elif codes is not None and ended.code not in codes:
            expected = " or ".join(map(str, codes))
            wrong = f"exit code {ended.code}, expected {expected}"
            self.blame(f"{what}: {wrong} ({ended.last_line})")
        if ended.tracebacks:
            self.tracebacks += ended.tracebacks
            self.blame(f"{what}: {ended.tracebacks} tracebacks: {_traceback(ended)}")
        if PAYLOAD[:4] in ended.said or "\x1b[31m" in ended.said:
            self.leaks += 1
            self.blame(f"{what}: an escape sequence of the server was printed")

    def counted(self, server: FaultServer, allowed_again: int = 0) -> None:
        """Note what the server saw; call it once, as it counts everything again."""
        log = server.asked.copy()
        self.requests += len(log) + server.probes
        self.faults.update(one.fault.name for one in log if one.fault.name != "none")
        found = server.asked_again()
        self.again += len(found)
        if len(found) > allowed_again:
            replies = dict(Counter(one.reply for one in found))
            late = f"asked after their reply was delivered, {allowed_again} may"
            self.blame(f"{len(found)} questions {late}: {replies}")
        if server.redirected:
            self.blame(f"{server.redirected} requests followed a redirect")
        tries = Counter((one.conversation, one.session) for one in log)
        # its tries begin anew while nobody is answered, and a reply 429 is half a try, none while
        # most are told to wait
        most = 3 * (LIMITS.retries + 1) * (LIMITS.retries + 2)
        if tries and max(tries.values()) > most:
            often = tries.most_common(1)[0][0]
            named = lambda one: (one.conversation, one.session)
            kinds = Counter(one.fault.name for one in log if named(one) == often)
            asked = f"asked {max(tries.values())} times in a run, at most {most}"
            self.blame(f"one question {asked}: {dict(kinds)}")
        if server.probes > 50 + len(log) / 4:
            self.blame(f"{server.probes} probes for {len(log)} questions")
        for crash in server.crashes:
            self.blame(f"the fault server itself broke: {crash}")
        server.crashes.clear()

    def merge(self, later, what):
        """Take over what a second look at the same samples found."""
        self.lost += later.lost
        self.invented += later.invented
        self.unaccounted += later.unaccounted
        self.wrong += [f"{what}: {one}" for one in later.wrong]


def _traceback(ended: Ended) -> str:
    """The last line of the first traceback: which error it was."""
    after = ended.said[ended.said.find("Traceback (most") :].splitlines()[1:]
    errors = (line for line in after if line and not line.startswith((" ", "\t")))
    return next(errors, "?")[:200]


def verdicts_of(path: Path) -> dict[str, dict[str, Any]]:
    """The verdicts of `vieval score` by uid; ValueError for what is no JSON."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} in {path.name}")

    found = {}
    for line in path.read_text().splitlines():
        verdict = json.loads(line, parse_constant=refuse)
        found[verdict["uid"]] = {**verdict, "characters": len(line)}
    return found


def check(row, known, verdicts, judge, log, session=None):
    """Hold every sample's verdict against the right one, and what is missing against what the
    server did.

    `session` is the client's key, where others asked the same questions at the same time.
    """
    asked = defaultdict[str, list[Asked]](list)
    for one in log:
        asked[one.question].append(one)
    wrong = {"lost": [], "invented": [], "unaccounted": []}
    known = list(known)
    names = (q for sample in known for q, _ in sample.questions(judge).values())
    # the same question of two samples: the second may be asked when the first was given up
    twice = {question for question, number in Counter(names).items() if number > 1}
    for sample in known:
        row.samples += 1
        verdict = verdicts.get(sample.uid)
        if verdict is None:
            wrong["lost"].append(sample.uid)
            continue
        row.failed += verdict["status"] not in _USABLE
        found = {"invented": _invented(sample, verdict, judge)}
        told = (sample, verdict, judge, asked, session, twice)
        found["unaccounted"] = _unaccounted(*told)
        for what, said in found.items():
            if said is not None:
                faults = _faults(sample, judge, asked)
                wrong[what].append(f"{sample.uid} {said}, after {faults}")
        if (length := verdict.get("characters", 0)) > _LONGEST_VERDICT:
            row.blame(f"the verdict of {sample.uid} has {length:,} characters")
    row.lost += len(wrong["lost"])
    row.invented += len(wrong["invented"])
    row.unaccounted += len(wrong["unaccounted"])
    for what, names in wrong.items():
        if names:
            row.blame(f"{what} {len(names)}: {'; '.join(names[:_SHOWN])}")


def _faults(sample, judge, asked):
    questions = sample.questions(judge).items()
    seen = {aspect: [a.fault.name for a in asked[q]] for aspect, (q, _) in questions}
    return ", ".join(f"{aspect}: {names}" for aspect, names in seen.items())


def _invented(sample, verdict, judge):
    """What a verdict says that its right answer does not."""
    right = sample.scores(judge)
    for aspect, score in verdict["scores"].items():
        is_number = aspect in right and isinstance(score, float | int)
        if not is_number or not abs(score - right[aspect]) < 1e-6:
            return f"{aspect} {score}, right is {right.get(aspect)}"
    if verdict["status"] == "ok" and set(verdict["scores"]) != set(right):
        return f"ok with the scores {sorted(verdict['scores'])} alone"
    return None


def _unaccounted(sample, verdict, judge, asked, session, twice):
    """Why the absence of a score cannot be explained by what the server did; None where it can."""
    status, scores = verdict["status"], verdict["scores"]
    if status in _USABLE:
        absent = set(sample.scores(judge)) - set(scores)
        return f"{status} without {sorted(absent)}" if absent else None
    failed = (step for step in verdict["trace"] if step["status"] not in _USABLE)
    if not any(step["reason"] for step in failed):
        return f"{status} without a reason"
    questions = sample.questions(judge).items()
    log = {aspect: asked.get(question, ()) for aspect, (question, _) in questions}
    may = {may for seen in log.values() for one in seen for may in one.fault.may}
    if status not in may:
        return f"{status}, which none of its faults explains"
    for aspect, seen in log.items():
        if aspect in scores:
            continue
        if not seen:
            return f"{status} and {aspect} was never asked"
        own = [one for one in seen if session in (None, one.session)]
        last = (own or seen)[-1]
        fault = last.fault
        if fault.right and last.delivered and last.question not in twice:
            return f"{status} although the last answer about {aspect} was right"
        tries = sum(one.conversation == last.conversation for one in seen)
        if not fault.final and not fault.kept and tries <= LIMITS.retries:
            due = f"{LIMITS.retries + 1} were due"
            return f"{status} after {tries} tries about {aspect}, {due}"
    return None
