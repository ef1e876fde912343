"""ImagenHub's real ratings with stand-ins for images that say which sample they are."""

import base64
import io
import json
import random

import numpy as np
import PIL.Image

from tests.audit.scripted import PROBE
from tests.pictures import encoded
from vieval_plugin.benchmarks import imagenhub
from vieval_plugin.benchmarks.imagenhub import samples

SUB_SCORES = {"tig": 1, "mcic": 3}
"""Of semantic consistency, where it is not two."""
BITS, BLOCK = 16, 16
"""A number is written into a picture as so many black or white squares, so wide, in four rows of four."""


def numbered(number):
    """A picture that says its number."""
    places = [number >> place & 1 for place in range(BITS)]
    bits = np.array(places, np.uint8).reshape(4, 4)
    pixels = np.kron(bits, np.full((BLOCK, BLOCK), 255, np.uint8))
    return encoded(PIL.Image.fromarray(pixels).convert("RGB"))


def number_in(url):
    """The number that a picture says."""
    with PIL.Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as picture:
        pixels = np.asarray(picture.convert("L").resize((4 * BLOCK, 4 * BLOCK)))
    squares = pixels[BLOCK // 2 :: BLOCK, BLOCK // 2 :: BLOCK]
    return sum(int(bit) << place for place, bit in enumerate((squares > 127).ravel()))


def museum(data, ratings):
    """Fill a data folder; the samples, each at the number that its output says."""
    (data / "imagenhub").mkdir(parents=True)
    (data / "imagenhub" / "human_ratings").symlink_to(ratings)
    found = []
    for part, info in imagenhub.TASKS.items():
        home = data / "imagenhub" / "museum" / info.folder
        of_part = samples.load(data, part)
        for folder in info.museum_folders:
            (home / folder).mkdir(parents=True)
        uids = list(dict.fromkeys(sample.id.uid for sample in of_part))
        row = dict.fromkeys(info.texts.values(), "a plain square")
        (home / "dataset_lookup.json").write_text(json.dumps(dict.fromkeys(uids, row)))
        for folder in info.images.values():
            for uid in uids:
                (home / folder / uid).write_bytes(numbered((1 << BITS) - 1))
        for sample in of_part:
            path = home / sample.id.image_model / sample.id.uid
            path.write_bytes(numbered(len(found)))
            found.append(sample)
    return found


def answering(found, answer):
    """A `reply` of the fake server: `answer` to the sample that is shown."""

    def reply(body):
        content = body["messages"][-1]["content"]
        if isinstance(content, str):
            return PROBE
        parts = [part for part in content if part["type"] == "image_url"]
        urls = [part["image_url"]["url"] for part in parts]
        words = "".join(part.get("text", "") for part in content)
        number = number_in(urls[-1])
        if number >= len(found):
            return "This shows nothing that I was asked about."
        return answer(found[number], "PQ" if "naturalness" in words else "SC")

    return reply


def knowing(share):
    """A judge that knows the mean rating of a `share` of the samples, and of the others nothing."""

    def answer(sample, aspect):
        draw = random.Random(f"{sample.id} {aspect}")
        truth = float(np.mean(sample.ratings[aspect]))
        score = round(10 * truth) if draw.random() < share else draw.randint(0, 10)
        count = 2 if aspect == "PQ" else SUB_SCORES.get(sample.kind, 2)
        return json.dumps({"score": [score] * count, "reasoning": "as seen"})

    return answer


def published(verdicts):
    """The answers of a published log, played again."""

    def answer(sample, aspect):
        steps = [step for step in verdicts(sample).trace if step.path == (aspect,)]
        step = steps[0] if steps else None
        if step and step.scores:
            return json.dumps({"score": list(step.scores), "reasoning": step.reason})
        return (step and step.answer) or "I cannot say."

    return answer
