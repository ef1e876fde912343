"""Counts of a server, in the text format of Prometheus (version 0.0.4 of its exposition format)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vieval_plugin.backends.http.server import Usage

CONTENT_TYPE = "text/plain; version=0.0.4"


@dataclass
class Metrics:
    """Counts of a server since it was started."""

    #: Requests by protocol and HTTP status.
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Verdicts by judge and status.
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Rewards by name and outcome.
    rewards: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Groups by reward, and by whether their values are tied.
    groups: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Seconds that POST requests took, all together.
    request_seconds: float = 0.0

    def text(self, usage: Usage, gauges: Mapping[str, float]) -> str:
        """The counts, those of `usage` and the levels of this moment, as lines of a page."""
        return "".join(f"{line}\n" for line in self._lines(usage, gauges))

    def _lines(self, usage: Usage, gauges: Mapping[str, float]) -> Iterator[str]:
        yield from _counter(
            "vieval_requests_total", ("protocol", "code"), self.requests
        )
        yield from _counter("vieval_verdicts_total", ("judge", "status"), self.verdicts)
        yield from _counter("vieval_rewards_total", ("reward", "outcome"), self.rewards)
        yield from _counter("vieval_groups_total", ("reward", "values"), self.groups)
        plain = {
            "vieval_backbone_calls_total": usage.calls,
            "vieval_store_hits_total": usage.cached + usage.repeated,
            "vieval_input_tokens_total": usage.input_tokens,
            "vieval_output_tokens_total": usage.output_tokens,
            "vieval_request_seconds_total": round(self.request_seconds, 6),
        }
        for name, number in plain.items():
            yield from (f"# TYPE {name} counter", f"{name} {number}")
        failures = {(kind,): number for kind, number in usage.failures.items()}
        yield from _counter("vieval_backbone_failures_total", ("kind",), failures)
        for name, level in gauges.items():
            yield from (f"# TYPE {name} gauge", f"{name} {level:g}")


def _counter(
    name: str, labels: Sequence[str], counts: Mapping[Any, int]
) -> Iterator[str]:
    yield f"# TYPE {name} counter"
    for values, number in sorted(counts.items()):
        escaped = (
            text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
            for text in values
        )
        pairs = ",".join(
            f'{label}="{text}"' for label, text in zip(labels, escaped, strict=True)
        )
        yield f"{name}{{{pairs}}} {number}"
