"""Folders of grey squares, the prompts they were made from, and a judge who takes the brighter
image for the better.
"""

import base64
import io
import json
import random
from collections import Counter

import numpy as np
import PIL.Image

from tests.fake_server import score_count

PROMPTS = 24


def prompts(folder, number=PROMPTS):
    path = folder / "prompts.csv"
    path.write_text(
        "uid,prompt\n" + "".join(f"p{n},a grey square {n}\n" for n in range(number))
    )
    return path


def images(folder, name, brightness, number=PROMPTS, draws=1):
    """Grey squares as bright as `brightness(prompt, draw)` from 0 to 1 says; the server takes
    brighter for better.
    """
    (folder / name).mkdir()
    for prompt in range(number):
        for draw in range(draws):
            level = round(255 * brightness(prompt, draw))
            file = f"p{prompt}.png" if draws == 1 else f"p{prompt}_{draw}.png"
            PIL.Image.new("RGB", (16, 16), (level,) * 3).save(folder / name / file)
    return folder / name


def levels_of(body):
    """Brightness of each image of a question, in order."""
    urls = [
        part["image_url"]["url"]
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if "image_url" in part
    ]
    return [
        float(
            np.asarray(
                PIL.Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
            ).mean()
            / 255
        )
        for url in urls
    ]


def words_of(body):
    contents = [message["content"] for message in body["messages"]]
    return "\n".join(
        c if isinstance(c, str) else "\n".join(part.get("text", "") for part in c)
        for c in contents
    )


def by_brightness(bias=0.0):
    """A judge that takes the brighter image, and of those that differ by less than `bias` the
    one shown first.
    """

    def reply(body):
        # a degraded image is dark to it
        levels = [0.0] if "image/jpeg" in json.dumps(body) else levels_of(body)
        if len(levels) < 2:  # a score, or what is asked before the run
            level = round(10 * levels[0]) if levels else 5
            return json.dumps(
                {"score": [level] * score_count(words_of(body)), "reasoning": "fine"}
            )
        ahead = levels[0] - levels[1]
        better = (
            "A" if abs(ahead) < bias or ahead > 0 else "B" if ahead < 0 else "both good"
        )
        return json.dumps({"reasoning": "fine", "better": better})

    return reply


def rough(base, seed, spread=0.1):
    """Brightness around `base`, another for each prompt."""
    rng = np.random.default_rng(seed)
    own = rng.normal(0, spread, (200, 8))
    return lambda prompt, draw: float(
        np.clip(base + 0.15 * np.sin(prompt) + own[prompt, draw], 0.01, 0.99)
    )


def noisy(seed, share=0.05, shift=0, refusals=0.0):
    """A judge that goes by brightness, less `shift`; a `share` of its answers is a point off,
    some are refusals.
    """
    times_asked = Counter()

    def reply(body):
        question = f"{words_of(body)} {levels_of(body)}"
        times_asked[question] += 1
        draw = random.Random(
            f"{seed} {times_asked[question]} {question}"
        )  # in whatever order questions come
        if draw.random() < refusals:
            return "I'm sorry, but I can't assist with that request."
        levels = levels_of(body)
        level = round(8 * levels[-1]) + 1 if levels else 5
        level += draw.choice([-1, 1]) if draw.random() < share else 0
        return json.dumps(
            {
                "score": [level - shift] * score_count(words_of(body)),
                "reasoning": "fine",
            }
        )

    return reply
