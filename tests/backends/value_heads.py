"""Scorers with a value head, small and random."""

import numpy as np
import PIL.Image
import yaml

from tests.pictures import encoded
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.metrics.batcher import Batcher
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.config import Scorer
from vieval_plugin.judges.protocol import Image, Measure

TEXTS = (
    "make the dog red",
    "a cat",
    "the image shows what the text says, and the shadows are right",
)


def describe(folder, network, **further):
    """A description in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "name": "head",
        "questions": {
            "SC": {
                "text": "How well: {{ instruction }}",
                "images": ["source", "output"],
                **further,
            }
        },
        "scale": [-3, 3],
        "network": {
            "form": "value_head",
            **{
                key: str(value) if key in ("base", "adapter", "head") else value
                for key, value in network.items()
            },
        },
    }
    (folder / "manifest.yaml").write_text(yaml.safe_dump(document))
    return folder


def picture(seed, size=(96, 80)):
    rng = np.random.default_rng(seed)
    image = PIL.Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)).resize(
        size
    )
    return Image(encoded(image))


def asks(count=6, images=2, sizes=((96, 80), (120, 60))):
    return [
        Measure(
            "value_head",
            {
                f"image_{n}": picture(10 * number + n, sizes[number % len(sizes)])
                for n in range(images)
            },
            ("value_head",),
            {"text": TEXTS[number % len(TEXTS)]},
            "scorer",
        )
        for number in range(count)
    ]


def measure(folder, asked, store=None, usage=None, **options):
    found = Scorers({"scorer": Scorer(str(folder), **options)})
    measuring = Batcher(usage or Usage(), store, find=found.find)
    try:
        return measuring.measure(asked)
    finally:
        measuring.close()
