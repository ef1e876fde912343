"""Metrics that are a network with a number at its end: how one describes itself, and how all are found.

A metric is a `NetworkMetric` in a module of `networks/`, or in one that another package names under the entry point group
`vieval.networks`: `METRIC`, or `METRICS` for several that are alike. Such a module imports its libraries where it loads.
Which of a sample's images and texts a metric is given, and what its number means as a score, is said by its judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeAlias

import PIL.Image

from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.metrics import networks
from vieval_plugin.backends.metrics.batcher import Instrument
from vieval_plugin.backends.weights import Origin
from vieval_plugin.judges import registry as judge_registry

ENTRY_POINTS, SERVED_ENTRY_POINTS = "vieval.networks", "vieval.served_networks"

Picture: TypeAlias = PIL.Image.Image


class Network(Protocol):
    """A loaded network: `by` is what results call it, `identity` tells it from all others that give other numbers."""

    @property
    def by(self) -> str: ...

    @property
    def identity(self) -> str: ...


@dataclass(frozen=True)
class Shown:
    """One ask as a network is given it: tensors by role, and findings. Asks with tensors of the same shapes go together."""

    tensors: Mapping[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NetworkMetric:
    """A metric of a network.

    `load` makes the network, of the weights `model` where a user names none. `show` turns an ask's decoded images and its
    texts into tensors, in any thread. `values` takes the network and the tensors of a batch, for each role a list, and
    gives a tensor (asks,) in the metric's own unit. Metrics with the same `load` and the same weights share a network.
    """

    name: str
    load: Callable[[Origin], Network]
    model: str
    show: Callable[[Any, Mapping[str, Picture], Mapping[str, str]], Shown]
    values: Callable[[Any, Mapping[str, Sequence[Any]]], Any]


@dataclass(frozen=True)
class ServedMetric:
    """A metric of a network behind a server: `open` makes its instrument of a description and what counts the calls."""

    name: str
    open: Callable[[str, Usage], Instrument]


@cache
def served() -> Mapping[str, ServedMetric]:
    """All metrics of networks behind servers by name."""
    return judge_registry.descriptions(networks, ("METRIC", "METRICS"), SERVED_ENTRY_POINTS, ServedMetric)


@cache
def metrics() -> Mapping[str, NetworkMetric]:
    """All metrics of networks by name, ours first."""
    return judge_registry.descriptions(networks, ("METRIC", "METRICS"), ENTRY_POINTS, NetworkMetric)
