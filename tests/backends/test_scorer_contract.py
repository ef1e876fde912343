"""Test what every scorer does, on real architectures with random weights."""

import random
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests import tiny_heads, tiny_model, tiny_more_models
from tests.backends import metric_asks, value_heads
from tests.backends.value_heads import near, values
from tests.shipped_scorers import aesthetic_head, described
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.judges.protocol import Failure, Image, Measure, Measurement, Status

pytestmark = metric_asks.NETWORKS

COUNT = 12


@dataclass(frozen=True)
class Scoring:
    """A scorer: its weights or description by the name of asks, and the asks."""

    models: dict[str, Path]
    asks: list[Measure]

    def measure(self, asks=None, store=None, usage=None, **options):
        found = metric_asks.scorers(self.models, **options)
        return metric_asks.measure(found, asks or self.asks, store, usage)


def of_metric(metric):
    def make(folder, weights):
        asks = [metric_asks.ask(metric, number) for number in range(COUNT)]
        return Scoring({metric: weights[metric]}, asks)

    return make


def of_value_head(build):
    def make(folder, weights):
        base = build(folder / "base")
        sizes = (value_heads.size_of(base), 1)
        head = tiny_heads.build_head(folder / "head.safetensors", sizes)
        described = value_heads.describe(folder, {"base": base, "head": head})
        return Scoring({"scorer": described}, value_heads.asks(COUNT))

    return make


def of_description(name, network):
    """A shipped judge on the tiny CLIP."""

    def make(folder, weights):
        clip = weights["clip_score"]
        aesthetic_head(folder, 24)
        paths = {key: value or str(clip) for key, value in network.items()}
        path, form = described(name, folder, paths)
        asks = [replace(one, metric=form) for one in value_heads.asks(COUNT, images=1)]
        return Scoring({"scorer": path}, asks)

    return make


SCORERS = {metric: of_metric(metric) for metric in metric_asks.METRICS}
SCORERS |= {
    "a value head on Qwen": of_value_head(tiny_model.build),
    "a value head on LLaVA": of_value_head(tiny_more_models.build_llava),
    "pickscore": of_description("pickscore", {"base": "", "processor": ""}),
    "aesthetic": of_description("aesthetic", {"base": "", "head": "head.pth"}),
}


@pytest.fixture(scope="module", params=SCORERS)
def scoring(request, tmp_path_factory, scorer_weights):
    return SCORERS[request.param](tmp_path_factory.mktemp("scorer"), scorer_weights)


def test_neither_the_batch_nor_its_order_matters(scoring):
    together = values(scoring.measure(batch_size=16))
    assert len({round(value, 4) for value in together}) > 2
    order = random.Random(0).sample(range(COUNT), COUNT)
    shuffled = scoring.measure([scoring.asks[n] for n in order], batch_size=16)
    assert values(shuffled) == near([together[n] for n in order])
    assert values(scoring.measure(batch_size=1)) == near(together)


@pytest.mark.parametrize("broken", [b"no image", None, b""])
def test_an_image_that_is_not_decodable_has_no_number(scoring, broken, tmp_path):
    before, one, after = scoring.asks[:3]
    role, image = next(iter(one.images.items()))
    half = image.source[: len(image.source) // 2]
    bad = Image(half if broken is None else broken)
    asks = [before, replace(one, images={**one.images, role: bad}), after]
    found = scoring.measure(asks, Store(tmp_path / "s"))
    assert [type(reply) for reply in found] == [Measurement, Failure, Measurement]
    assert found[1].status is Status.TOOL_ERROR


def test_a_second_run_comes_from_the_store_and_names_the_weights(scoring, tmp_path):
    store, usage = Store(tmp_path / "s"), Usage()
    first = scoring.measure(store=store)
    assert all("@sha256:" in reply.by for reply in first)
    assert scoring.measure(store=store, usage=usage) == first
    assert usage.cached == COUNT
