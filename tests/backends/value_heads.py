"""Scorers with a value head, small and random."""

import json

import numpy as np
import PIL.Image
import pytest
import yaml

from tests.backends import metric_asks
from tests.pictures import encoded
from vieval_plugin.judges.protocol import Image, Measure

LONG = "the image shows what the text says, and the shadows are right"
TEXTS = ("make the dog red", "a cat", LONG)


def describe(folder, network, **further):
    """A description in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = {"text": "How well: {{ instruction }}", "images": ["source", "output"]}
    files = ("base", "adapter", "head")
    own = {key: str(one) if key in files else one for key, one in network.items()}
    document = {"name": "head", "questions": {"SC": {**shown, **further}}}
    document |= {"scale": [-3, 3], "network": {"form": "value_head", **own}}
    (folder / "manifest.yaml").write_text(yaml.safe_dump(document))
    return folder


def picture(seed, size=(96, 80)):
    rng = np.random.default_rng(seed)
    coarse = PIL.Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8))
    return Image(encoded(coarse.resize(size)))


def asks(count=6, images=2, sizes=((96, 80), (120, 60))):
    asked = []
    for number in range(count):
        size, text = sizes[number % len(sizes)], TEXTS[number % len(TEXTS)]
        shown = {f"image_{n}": picture(10 * number + n, size) for n in range(images)}
        about = (shown, ("value_head",), {"text": text})
        asked.append(Measure("value_head", *about, "scorer"))
    return asked


def values(replies):
    return [reply.value for reply in replies]


def near(wanted, abs=1e-5):
    return pytest.approx(wanted, abs=abs)


def measure(folder, asked, store=None, usage=None, **options):
    found = metric_asks.scorers({"scorer": folder}, **options)
    return metric_asks.measure(found, asked, store, usage)


def size_of(base):
    config = json.loads((base / "config.json").read_text())
    return config["text_config"]["hidden_size"]
