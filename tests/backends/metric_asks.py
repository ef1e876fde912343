"""Asks of the metrics of networks, about drawn images, and their scorers."""

import numpy as np
import PIL.Image
import pytest

from tests.extras import needs
from tests.pictures import encoded
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.metrics.batcher import Batcher
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.config import Scorer
from vieval_plugin.judges.protocol import Image, Measure

METRICS = ("clip_score", "clip_i", "clip_direction", "dino", "lpips")
#: Marks of tests of these metrics.
NETWORKS = [
    needs("torch", "transformers", "torchvision", "torchmetrics"),
    pytest.mark.usefixtures("no_downloads"),
]
TEXTS = ("a red toy on the table", "photo of a dog", "a cat", "xyz 12, on the table!")


def scorers(models, **options):
    named = models.items()
    return Scorers({name: Scorer(str(model), **options) for name, model in named})


def measure(found, asks, store=None, usage=None):
    measuring = Batcher(usage or Usage(), store, find=found.find)
    try:
        return measuring.measure(asks)
    finally:
        measuring.close()


def picture(seed, size=(80, 72)):
    """An image file in memory: large shapes under grain."""
    rng = np.random.default_rng(seed)
    coarse = PIL.Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8))
    grain = rng.integers(-20, 20, (size[1], size[0], 3))
    pixels = np.clip(np.asarray(coarse.resize(size), int) + grain, 0, 255)
    return file_of(PIL.Image.fromarray(pixels.astype(np.uint8)))


def file_of(image, kind="PNG", **options):
    return Image(encoded(image, kind, **options))


def ask(metric, number, image=None):
    """An ask of a metric about drawn images, or about a given one."""
    images = {"image": image or picture(number)}
    if metric != "clip_score":
        role = "source" if metric == "clip_direction" else "reference"
        images[role] = picture(1000 + number, (72, 80))
    text, other = (TEXTS[n % len(TEXTS)] for n in (number, number + 1))
    texts = {"text": text} if metric == "clip_score" else {}
    if metric == "clip_direction":
        texts = {"output_text": text, "source_text": other}
    return Measure(metric, images, (metric,), texts, metric)
