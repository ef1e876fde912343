"""Questions about pictures to a model in this process."""

import numpy as np
import PIL.Image

from tests.pictures import encoded
from vieval_plugin.judges.protocol import Image, Likelihood, Message

QUESTION = "Does this image show the {}? Please answer Yes or No."


def drawn(seed, width, height):
    """A picture of its own for each seed: noise would look all the same once it is made small."""
    rng = np.random.default_rng(seed)
    blocks = PIL.Image.fromarray(rng.integers(0, 256, (3, 3, 3), dtype=np.uint8))
    return Image(encoded(blocks.resize((width, height), PIL.Image.Resampling.BILINEAR)))


PICTURES = (drawn(1, 64, 64), drawn(2, 150, 60), drawn(3, 40, 120))


def likelihood(
    image, what="figure", continuations=("Yes", "No"), definition="first_token"
):
    message = Message("user", (image, QUESTION.format(what)))
    return Likelihood((message,), continuations, ("q",), definition)


def ask(backend, *asks):
    return backend.answer(list(enumerate(asks)), [0] * len(asks))
