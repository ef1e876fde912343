"""Counts of a server, in the text format of Prometheus (version 0.0.4 of its exposition format)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from vieval_plugin.backends.http.server import Usage

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# seconds: an image metric takes a tenth, a model's answer a few, a queue of questions minutes
_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
# times at which counters began, for which this format has no place
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics(Collector):
    """Counts of a server since it was started, and those of `usage`."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._registry = CollectorRegistry()
        self.requests = self._counter("requests", "Requests", "protocol", "code")
        self.verdicts = self._counter("verdicts", "Verdicts", "judge", "status")
        self.rewards = self._counter("rewards", "Rewards", "reward", "outcome")
        self.groups = self._counter("groups", "Groups of rewards", "reward", "values")
        self._seconds = self._counter(
            "request_seconds",
            "Total duration of POST requests in seconds",
        )
        self._durations = Histogram(
            "vieval_request_duration_seconds",
            "Duration of a POST request in seconds",
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._registry.register(self)

    def add_level(self, name: str, text: str, level: Callable[[], float]) -> None:
        """Add a number that goes up and down, which is read for each page."""
        Gauge(f"vieval_{name}", text, registry=self._registry).set_function(level)

    def note_duration(self, seconds: float) -> None:
        """Count a POST request that took so long."""
        self._seconds.inc(seconds)
        self._durations.observe(seconds)

    def page(self) -> bytes:
        """The counts and levels of this moment."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The counts of `usage`."""
        usage = self._usage
        failures = CounterMetricFamily(
            "vieval_backbone_failures",
            "Failed calls to backbones",
            labels=("kind",),
        )
        for kind, number in usage.failures.items():
            failures.add_metric((kind,), number)
        yield failures
        for name, text, number in (
            ("backbone_calls", "Answered calls to backbones", usage.calls),
            ("store_hits", "Replies from the cache", usage.cached + usage.repeated),
            ("input_tokens", "Input tokens", usage.input_tokens),
            ("output_tokens", "Output tokens", usage.output_tokens),
        ):
            yield CounterMetricFamily(f"vieval_{name}", text, number)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(
            f"vieval_{name}",
            text,
            labels,
            registry=self._registry,
        )
