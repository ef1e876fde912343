"""Folders of grey squares, their prompts, and a judge who prefers the brighter image."""

import io
import json
import random
from collections import Counter
from itertools import chain, product

import numpy as np
import PIL.Image

from tests.fake_server import score_count
from tests.in_process import images_in

PROMPTS = 24


def prompts(folder, number=PROMPTS):
    path = folder / "prompts.csv"
    rows = [f"p{n},a grey square {n}\n" for n in range(number)]
    path.write_text("".join(["uid,prompt\n", *rows]))
    return path


def images(folder, name, brightness, number=PROMPTS, draws=1):
    """Grey squares as bright as `brightness(prompt, draw)` from 0 to 1 says."""
    (folder / name).mkdir()
    for prompt, draw in product(range(number), range(draws)):
        level = round(255 * brightness(prompt, draw))
        file = f"p{prompt}.png" if draws == 1 else f"p{prompt}_{draw}.png"
        PIL.Image.new("RGB", (16, 16), (level,) * 3).save(folder / name / file)
    return folder / name


def levels_of(body):
    """Brightness of each image of a question, in order."""
    pictures = [PIL.Image.open(io.BytesIO(data)) for data in images_in(body)]
    return [float(np.asarray(picture).mean() / 255) for picture in pictures]


def words_of(body):
    contents = [message["content"] for message in body["messages"]]
    parts = [[{"text": c}] if isinstance(c, str) else c for c in contents]
    return "\n".join(part.get("text", "") for part in chain.from_iterable(parts))


def scoring(body, level):
    """A reply that gives each score that a request asks for."""
    scores = [level] * score_count(words_of(body))
    return json.dumps({"score": scores, "reasoning": "fine"})


def by_brightness(bias=0.0):
    """A judge of brightness; within `bias` it prefers the image shown first."""

    def reply(body):
        # a degraded image is dark to it
        levels = [0.0] if "image/jpeg" in json.dumps(body) else levels_of(body)
        if len(levels) < 2:  # a score, or what is asked before the run
            return scoring(body, round(10 * levels[0]) if levels else 5)
        ahead = levels[0] - levels[1]
        better = "B" if ahead < 0 else "both good"
        if abs(ahead) < bias or ahead > 0:
            better = "A"
        return json.dumps({"reasoning": "fine", "better": better})

    return reply


def rough(base, seed, spread=0.1):
    """Brightness around `base`, another for each prompt."""
    rng = np.random.default_rng(seed)
    own = rng.normal(0, spread, (200, 8))
    level = lambda prompt, draw: base + 0.15 * np.sin(prompt) + own[prompt, draw]
    return lambda prompt, draw: float(np.clip(level(prompt, draw), 0.01, 0.99))


def noisy(seed, share=0.05, shift=0, refusals=0.0):
    """A judge of brightness less `shift`; a `share` of its answers is a point off."""
    times_asked = Counter()

    def reply(body):
        question = f"{words_of(body)} {levels_of(body)}"
        times_asked[question] += 1
        # in whatever order questions come
        draw = random.Random(f"{seed} {times_asked[question]} {question}")
        if draw.random() < refusals:
            return "I'm sorry, but I can't assist with that request."
        levels = levels_of(body)
        level = round(8 * levels[-1]) + 1 if levels else 5
        level += draw.choice([-1, 1]) if draw.random() < share else 0
        return scoring(body, level - shift)

    return reply
