"""Scorers: networks in this process that measure, each loaded once a run and asked in batches."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import PIL.Image

from vieval_plugin.backends.cache.store import key_of
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.metrics.batcher import Instrument, Ready
from vieval_plugin.backends.metrics.network_metrics import NetworkMetric, metrics, served
from vieval_plugin.backends.weights import Origin, is_out_of_memory, library, line_of
from vieval_plugin.config import Scorer
from vieval_plugin.errors import VievalError
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Failure, Measure, Measurement, Reply, Status


class Scoring:
    """A metric's network as an instrument: `batch` asks at once, and half as many each time its memory runs out."""

    def __init__(self, name: str, metric: NetworkMetric, network: Any, batch: int) -> None:
        self._name, self._metric, self._network, self.batch = name, metric, network, batch
        self.by: str = network.by

    def look(self, ask: Measure) -> Ready:
        """The images decoded and, with the texts, as tensors; VievalError where that cannot be done."""
        images = {role: decode(image) for role, image in ask.images.items()}
        try:
            shown = self._metric.show(self._network, images, ask.texts)
        except VievalError:
            raise
        except Exception as error:  # libraries raise anything on images made to break them
            raise VievalError(f"{self._name} cannot be computed: {line_of(error)}") from None
        parts = {
            "metric": self._name,
            "weights": self._network.identity,
            "images": {role: _digest(image) for role, image in images.items()},
            "texts": dict(ask.texts),
        }
        shapes = tuple((role, tuple(getattr(tensor, "shape", ()))) for role, tensor in shown.tensors.items())
        return Ready(key_of(parts), shown.tensors, shapes, shown.notes)

    def compute(self, contents: Sequence[Mapping[str, Any]]) -> list[Reply]:
        replies: list[Reply] = []
        while len(replies) < len(contents):
            replies += self._tried(contents[len(replies) : len(replies) + self.batch])
        return replies

    def close(self) -> None:
        """Networks stay loaded for the next run."""

    def _tried(self, rows: Sequence[Mapping[str, Any]]) -> list[Reply]:
        """A batch's values; halves are tried where it fails, so that what cannot be measured fails by itself."""
        try:
            return [Measurement(value) for value in self._values(rows)]
        except Exception as error:
            full = is_out_of_memory(error)
            if len(rows) == 1:
                remedy = "; set device to cpu, or make the image smaller" if full else ""
                return [Failure(Status.TOOL_ERROR, f"{self._name} cannot be computed: {line_of(error)}{remedy}")]
        half = len(rows) // 2
        if full:
            library("torch").cuda.empty_cache()
            self.batch = min(self.batch, half)
            return self.compute(rows)
        return self._tried(rows[:half]) + self._tried(rows[half:])

    def _values(self, rows: Sequence[Mapping[str, Any]]) -> list[float]:
        torch = library("torch")
        batch = {role: [row[role] for row in rows] for role in rows[0]}
        # the same digits on a GPU as on a CPU, as far as single precision goes
        with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            return [_kept(float(value)) for value in self._metric.values(self._network, batch).double().cpu()]


class Scorers:
    """The scorers of a run, those that the options name; each network is loaded once."""

    def __init__(self, named: Mapping[str, Scorer]) -> None:
        self._named = named
        self._networks: dict[Hashable, Any] = {}

    def find(self, ask: Measure, usage: Usage) -> Instrument:
        """The scorer that an ask names, loaded if it is not yet; `usage` counts the calls of one behind a server.

        Raises:
            VievalError: there is no such metric, or its weights cannot be loaded.
        """
        known, behind_servers = metrics(), served()
        options = self._named.get(ask.backbone, Scorer())
        if ask.metric in behind_servers:
            return behind_servers[ask.metric].open(options.model, usage)
        if ask.metric not in known:
            names = ", ".join([*known, *behind_servers])
            raise VievalError(f"no scorer knows the metric {ask.metric!r}; known are {names}")
        metric = known[ask.metric]
        origin = Origin(options.model or metric.model, options.revision, options.device)
        key = metric.load, origin
        if key not in self._networks:
            self._networks[key] = metric.load(origin)
        return Scoring(ask.metric, metric, self._networks[key], options.batch_size)


def _kept(value: float) -> float:
    """To five decimals, or five significant digits below 1: what is beyond depends on which others were in the batch."""
    return round(value, 5) if abs(value) >= 1 else float(f"{value:.5g}")


def _digest(image: PIL.Image.Image) -> str:
    """SHA-256 of an image's size and pixels, in whatever file they were."""
    return hashlib.sha256(repr(image.size).encode() + image.tobytes()).hexdigest()
