"""Counts of a run so far, which are printed at its end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from vieval_plugin.backends.http.server import Usage
from vieval_plugin.judges.protocol import FAILED_CALLS, Status, Verdict
from vieval_plugin.judges.structured_chat import CONFIRMED
from vieval_plugin.text.errors import docs_url
from vieval_plugin.text.wording import plural

_REASON = 160
_UNREAD = (Status.PARSE_FAILURE, Status.GUESSED)
_ENOUGH_UNREAD = (
    20  # replies that could not be read, to say that most of them are the same words
)
_FEWEST_VERDICTS = 5  # to say how many could not be read, or only by a second reply
_MOST_UNREAD = 0.2
_MOST_CONFIRMED = 0.05
_SCHEMAS = "use a server that enforces JSON schemas"
_LONGER = (
    "most answers were cut off: raise `--max-tokens` (`max_tokens` of the backbone)"
)
_COMPARED, _SHOWN = 200, 60  # characters of a reply
#: The option that ignores cached answers.
MAX_AGE = "the option store: {max_age: 0}"
IGNORE_CACHE = f"use --fresh, or {MAX_AGE},"


@dataclass
class Progress:
    """Counts of a run so far."""

    #: Calls and tokens.
    usage: Usage = field(default_factory=Usage)
    #: Verdicts by status.
    statuses: Counter[Status] = field(default_factory=Counter)
    #: Findings of verdicts.
    findings: Counter[str] = field(default_factory=Counter)
    #: Reasons why a judge was not asked at all.
    not_asked: Counter[str] = field(default_factory=Counter)
    #: Questions that were left out, by reason.
    left_out: Counter[str] = field(default_factory=Counter)
    #: Replies that could not be read, by judge.
    unread: Counter[str] = field(default_factory=Counter)
    #: The same by judge and words.
    wordings: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Unread verdicts with a reply that the token limit cut.
    cut: int = 0

    @property
    def failed_calls(self) -> int:
        """Verdicts that lack a score because a call or a tool failed; unreadable answers and
        refusals are findings.
        """
        return sum(self.statuses[status] for status in FAILED_CALLS)

    @property
    def answers(self) -> int:
        """Answers so far, from a model, the cache or a measurement, and failed calls."""
        u = self.usage
        answers = u.calls + u.cached + u.repeated + u.measured
        return answers + u.retries.total() + self.statuses.total()

    def __add__(self, progress: Progress) -> Progress:
        return Progress(
            **{
                name: value + getattr(progress, name)
                for name, value in vars(self).items()
            }
        )

    def count(self, verdict: Verdict, judge: str = "") -> None:
        """Record how a verdict of a judge came out."""
        self.statuses[verdict.status] += 1
        self.findings.update(verdict.findings)
        self.left_out.update(
            step.reason for step in verdict.trace if step.status is Status.NOT_ASKED
        )
        if verdict.status is Status.NOT_APPLICABLE:
            self.not_asked[verdict.reason] += 1
        self.cut += verdict.status is Status.PARSE_FAILURE and any(
            step.cut for step in verdict.trace
        )
        for step in verdict.trace:
            if step.status in _UNREAD and step.answer.strip():
                self.unread[judge] += 1
                self.wordings[judge, _wording(step.answer)] += 1

    def failures(self) -> dict[str, int]:
        """Verdicts without a score, by status."""
        return {
            str(key): n for key, n in self.statuses.items() if not Status(key).usable
        }

    def lines(self, remedy: str = IGNORE_CACHE) -> list[str]:
        """Closing lines of a run: cost and failures; `remedy` is how to ignore the cache."""
        u = self.usage
        repeated = f", duplicates not asked: {u.repeated}" if u.repeated else ""
        probes = f", including probes: {u.probes}" if u.probes else ""
        cached = ""
        if u.cached_tokens:
            cached = f" ({u.cached_tokens / u.input_tokens:.0%} cached)"
        price = f", price: {u.price:.4g}" if u.price else ""
        verdicts, *noted = self.verdict_lines()
        lines = [verdicts]
        # a metric of pixels is free
        if u.calls or u.cached or u.repeated or u.retries or u.failures:
            calls = f"calls: {u.calls}{probes}, from the cache: {u.cached}{repeated}"
            tokens = f"tokens in: {u.input_tokens}{cached}, out: {u.output_tokens}"
            lines += [f"{calls}, {tokens}{price}", *self._savings()]
        lines += noted
        if failed := list(self.failures()):
            anchor = failed[0] if len(failed) == 1 else "statuses"
            page = docs_url(f"reference/results.md#{anchor}")
            lines.append(f"about {' and '.join(failed)}: {page}")
        if u.cached and not (u.calls or u.measured or u.retries or u.failures):
            answers = "the only answer" if u.cached == 1 else f"all {u.cached} answers"
            lines.append(f"{answers} came from the cache; {remedy} to ask again")
        if u.retries:
            lines.append(f"tried again: {_listing(u.retries)}")
        if u.failures:
            lines.append(f"FAILED CALLS: {_listing(u.failures)}")
        return lines

    def _savings(self) -> list[str]:
        """Lines on questions that were left out, for each reason, and on batches."""
        u = self.usage
        mean_price = u.price / u.calls if u.calls else 0.0
        total = u.calls + u.cached + u.repeated + self.left_out.total()
        lines = []
        for reason, number in self.left_out.items():
            price = ""
            if mean_price:
                price = f", about {number * mean_price:.4g} at the mean price per call"
            lines.append(
                f"{reason}: {plural(number, 'question')}, {number / total:.0%} of "
                f"all{price}"
            )
        if u.saved_by_batches:
            lines.append(f"saved by batches: {u.saved_by_batches:.4g}")
        return lines

    def verdict_lines(self) -> list[str]:
        """Lines on statuses and findings, and on a judge whose unreadable replies have
        one wording.
        """
        lines = [f"verdicts: {_listing(self.statuses) or 'none'}"]
        for reason, times in self.not_asked.most_common(1):
            other_reasons = len(self.not_asked) - 1
            further = f" (and {other_reasons} other reasons)" if other_reasons else ""
            lines.append(f"not asked: {times}, because {reason[:_REASON]}{further}")
        if self.findings:
            lines.append(f"findings: {_listing(self.findings)}")
        lines += self._reading_lines()
        for (judge, wording), times in self.wordings.items():
            unread = self.unread[judge]
            judge_words = f" of {judge}" if judge else ""
            if unread >= _ENOUGH_UNREAD and times > unread / 2:
                lines.append(
                    f"SAME WORDING: {times} of {unread} unreadable replies{judge_words} "
                    f"have the same wording: {wording[:_SHOWN]!r}"
                )
        return lines

    def _reading_lines(self) -> list[str]:
        """Lines on a judge that cannot be read, or whose answers have text around them."""
        verdicts = self.statuses.total()
        unread = self.statuses[Status.PARSE_FAILURE]
        confirmed = self.findings[CONFIRMED]
        lines = []
        if verdicts >= _FEWEST_VERDICTS and unread > _MOST_UNREAD * verdicts:
            remedy = (
                _LONGER if self.cut > unread / 2 else f"{_SCHEMAS}, or a stronger model"
            )
            lines.append(
                f"UNREADABLE REPLIES: {unread} of {plural(verdicts, 'verdict')}; "
                f"{remedy}"
            )
        if verdicts >= _FEWEST_VERDICTS and confirmed > _MOST_CONFIRMED * verdicts:
            lines.append(
                f"ASKED TWICE: {plural(confirmed, 'answer')} had text around the "
                f"JSON object; {_SCHEMAS}"
            )
        return lines


def _wording(text: str) -> str:
    """The words of a reply without case, spaces and punctuation; of a long one its beginning.

    >>> _wording("Naturalness : 10,\\n artifacts 0")
    'naturalness 10 artifacts 0'
    """
    beginning = text.strip()[: 4 * _COMPARED].lower()
    wording = " ".join(re.findall(r"\w+", beginning))
    return wording[:_COMPARED] or beginning[:_COMPARED]


def _listing(counts: Mapping[Status, int] | Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {n}" for name, n in ordered)
