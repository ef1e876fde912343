"""Metrics that are a network with a number at its end: how one describes itself, how all are found,
and how one is run.

A metric is a `NetworkMetric` in a module of `networks/`, or in one that another package names under
the entry point group `vieval.networks`: `METRIC`, or `METRICS` for several that are alike. Such a
module imports its libraries where it loads. Which of a sample's images and texts a metric is given,
and what its number means as a score, is said by its judge.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeAlias

import PIL.Image

from vieval_plugin.backends.cache.store import key_of
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.batch import run_or_halve
from vieval_plugin.backends.metrics import networks
from vieval_plugin.backends.metrics.batcher import Instrument, PreparedMeasure
from vieval_plugin.backends.weights import Origin, Tensors, is_out_of_memory
from vieval_plugin.config import Scorer
from vieval_plugin.images import decode, decoding, size
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.protocol import Measure, Measurement, Reply
from vieval_plugin.text.errors import VievalError, line_of

ENTRY_POINTS = "vieval.networks"
SERVED_ENTRY_POINTS = "vieval.served_networks"

Picture: TypeAlias = PIL.Image.Image
#: Pictures by role.
Pictures: TypeAlias = Mapping[str, Picture]
#: Inputs of several asks, by role.
Batch: TypeAlias = Mapping[str, Sequence[Any]]


class Network(Protocol):
    """A loaded network: `by` is what results call it, `identity` tells it from all others that
    give other numbers.
    """

    @property
    def by(self) -> str: ...

    @property
    def identity(self) -> str: ...


@dataclass(frozen=True)
class NetworkInputs:
    """Inputs of a network for an ask."""

    #: Tensors or arrays by role; equal shapes go together.
    tensors: Tensors
    #: Findings for the verdict.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NetworkMetric:
    """A metric of a network. Metrics with the same `load` and the same weights share a network."""

    #: Name of the metric.
    name: str
    #: Makes the network.
    load: Callable[[Origin], Network]
    #: Weights where a user names none.
    model: str
    #: Turns an ask's decoded images and its texts into inputs, in any thread.
    show: Callable[
        [
            Any,
            Mapping[str, Picture],
            Mapping[str, str],
        ],
        NetworkInputs,
    ]
    #: Gives numbers (asks,) in the metric's own unit, of the network and the inputs of a batch, for
    #: each role a list.
    values: Callable[[Any, Batch], Any]


@dataclass(frozen=True)
class ServedMetric:
    """A metric of a network behind a server."""

    #: Name of the metric.
    name: str
    #: Makes its instrument of a description and what counts the calls.
    open: Callable[[str, Usage], Instrument]


@cache
def served_metrics() -> Mapping[str, ServedMetric]:
    """Metrics of networks behind servers, by name."""
    return judge_registry.descriptions(
        networks,
        ("METRIC", "METRICS"),
        SERVED_ENTRY_POINTS,
        ServedMetric,
    )


@cache
def metrics() -> Mapping[str, NetworkMetric]:
    """Metrics of networks by name, ours first."""
    return judge_registry.descriptions(
        networks,
        ("METRIC", "METRICS"),
        ENTRY_POINTS,
        NetworkMetric,
    )


class NetworkInstrument:
    """A metric's network as an instrument: `batch` asks at once, and half as many each time its
    memory runs out.
    """

    def __init__(
        self,
        name: str,
        metric: NetworkMetric,
        network: Any,
        batch: int,
    ) -> None:
        self._name = name
        self._metric = metric
        self._network = network
        self.batch = batch
        self.by: str = network.by

    def look(self, ask: Measure) -> PreparedMeasure:
        """The images decoded and, with the texts, as tensors; VievalError where that cannot be
        done.
        """
        with decoding(sum(math.prod(size(image)) for image in ask.images.values())):
            images = {role: decode(image) for role, image in ask.images.items()}
            try:
                inputs = self._metric.show(
                    self._network,
                    images,
                    ask.texts,
                )
            except VievalError:
                raise
            except (
                Exception
            ) as error:  # libraries raise anything on images made to break them
                raise VievalError(
                    f"{self._name} cannot be computed: {line_of(error)}"
                ) from None
            parts = {
                "metric": self._name,
                "weights": self._network.identity,
                "images": {role: _digest(image) for role, image in images.items()},
                "texts": dict(ask.texts),
            }
        return PreparedMeasure(
            key_of(parts),
            inputs.tensors,
            tuple((role, _shape(tensor)) for role, tensor in inputs.tensors.items()),
            inputs.notes,
        )

    def compute(self, contents: Sequence[Mapping[str, Any]]) -> list[Reply]:
        replies: list[Reply] = []
        while len(replies) < len(contents):
            start = len(replies)
            replies += run_or_halve(
                contents[start : start + self.batch], self._measurements
            )
        return replies

    def close(self) -> None:
        """Networks stay loaded for the next run."""

    def _measurements(self, rows: Sequence[Mapping[str, Any]]) -> Sequence[Reply]:
        """A batch's values; VievalError where it has none, and smaller batches from then on
        where memory ran out.
        """
        try:
            return [Measurement(value) for value in self._values(rows)]
        except Exception as error:
            full = is_out_of_memory(error)
            if not full or len(rows) == 1:
                remedy = (
                    " (set device to cpu, or make the image smaller)" if full else ""
                )
                raise VievalError(
                    f"cannot compute {self._name}{remedy}: {line_of(error)}"
                ) from None
            if torch := sys.modules.get("torch"):
                torch.cuda.empty_cache()
            self.batch = min(self.batch, len(rows) // 2)
        # outside the except block: while the error is alive, its traceback keeps the batch in memory
        return self.compute(rows)

    def _values(self, rows: Sequence[Mapping[str, Any]]) -> list[float]:
        batch = {role: [row[role] for row in rows] for role in rows[0]}
        with inference():
            values = self._metric.values(self._network, batch).tolist()
        return list(map(_rounded, values))


@contextmanager
def inference() -> Iterator[None]:
    """Without gradients, and with the same digits on a GPU as on a CPU, as far as single
    precision goes.
    """
    # which the network has imported if it is one of PyTorch
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with (
        torch.inference_mode(),
        torch.backends.cudnn.flags(enabled=True, allow_tf32=False),
    ):
        yield


class Scorers:
    """The scorers of a run, those that the options name; each network is loaded once."""

    def __init__(self, options: Mapping[str, Scorer]) -> None:
        self.options = options
        self._networks: dict[Hashable, Any] = {}

    def find(self, ask: Measure, usage: Usage) -> Instrument:
        """The scorer that an ask names, loaded if it is not yet; `usage` counts the calls of one
        behind a server.

        Raises:
            VievalError: there is no such metric, or its weights cannot be loaded.
        """
        # a judge that is a file of weights brings its own, else the options name them, else the metric
        options = self.options.get(ask.backbone, Scorer())
        judge = judge_registry.judges().get(ask.backbone)
        file = judge.file if judge else None
        model = str(file.path) if file else options.model
        if ask.metric in served_metrics():
            return served_metrics()[ask.metric].open(model, usage)
        metric = metrics().get(ask.metric)
        if metric is None:
            names = ", ".join([*metrics(), *served_metrics()])
            raise VievalError(f"unknown metric {ask.metric!r}; known metrics: {names}")
        origin = Origin(
            model or metric.model,
            options.revision,
            options.device,
            options.model if file else "",
        )
        key = metric.load, origin
        if key not in self._networks:
            self._networks[key] = metric.load(origin)
        return NetworkInstrument(
            ask.metric,
            metric,
            self._networks[key],
            options.batch_size,
        )


def _rounded(value: float) -> float:
    """To five decimals, or five significant digits below 1: what is beyond depends on which
    others were in the batch.
    """
    return round(value, 5) if abs(value) >= 1 else float(f"{value:.5g}")


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(getattr(tensor, "shape", ()))


def _digest(image: PIL.Image.Image) -> str:
    """SHA-256 of an image's size and pixels, in whatever file they were."""
    return hashlib.sha256(repr(image.size).encode() + image.tobytes()).hexdigest()
