"""A generator that is trained for real on a judge over HTTP: it learns what the prompt names, and
from nothing else.

The generator has a mean colour for each prompt and draws plain images around it. The backbone is a
fake that reads how strong the channel is that the prompt names. Policy gradient with advantages
within groups (REINFORCE with the group's mean as baseline) moves the means.
"""

import base64
import io
import json
import re

import numpy as np
import PIL.Image
import pytest

from tests.fake_server import FakeServer, _parts
from tests.pictures import plain
from tests.serve.clients import FlowFactory
from tests.serve.serving import judged_by

pytestmark = pytest.mark.slow
CHANNELS = ("red", "green", "blue")
PROMPTS = {f"as {channel} as it can be": n for n, channel in enumerate(CHANNELS[:2])}
GROUP, STEPS, SEEDS, SPREAD, RATE = 8, 12, 5, 1.0, 0.6
T_95 = 2.776  # Student's t, four degrees of freedom


def reads_pixels(request):
    """The backbone: how strong the named channel is, of 10; the quality of everything is 10."""
    parts = [part for turn in request["messages"] for part in _parts(turn["content"])]
    text = " ".join(part.get("text", "") for part in parts)
    named = re.search(r"as (red|green|blue) as it can be", text)
    if not named:
        return json.dumps({"score": [10, 10], "reasoning": "fine"})
    [url] = [part["image_url"]["url"] for part in parts if "image_url" in part]
    file = io.BytesIO(base64.b64decode(url.partition(",")[2]))
    colour = np.asarray(PIL.Image.open(file).convert("RGB")).mean((0, 1))
    score = round(10 * colour[CHANNELS.index(named[1])] / 255)
    return json.dumps({"score": [score], "reasoning": "as it is"})


class Generator:
    """Means of colours by prompt, on the scale of logits."""

    def __init__(self, seed):
        self.draw = np.random.RandomState(seed)
        self.means = {prompt: np.zeros(3) for prompt in PROMPTS}

    def group(self, prompt):
        """Logits of a group, and their images."""
        logits = self.means[prompt] + SPREAD * self.draw.standard_normal((GROUP, 3))
        colours = (255 / (1 + np.exp(-logits))).astype(int)
        return logits, [plain(tuple(map(int, colour))) for colour in colours]

    def learn(self, prompt, logits, rewards):
        advantages = np.array(rewards) - np.mean(rewards)
        shares = advantages[:, None] / (advantages.std() or 1.0)
        moves = shares * (logits - self.means[prompt])
        self.means[prompt] = self.means[prompt] + RATE * moves.mean(0) / SPREAD**2

    def held_out(self):
        """The strength of the named channel in the mean image, which no judge has seen."""
        logits = [self.means[prompt][channel] for prompt, channel in PROMPTS.items()]
        return np.mean([1 / (1 + np.exp(-logit)) for logit in logits])


def trained(rewards_of, seed, shuffled=False, steps=STEPS):
    """How far the mean reward of a step, and the held-out measure, rose."""
    generator, means = Generator(seed), []
    before = generator.held_out()
    for _ in range(steps):
        step = []
        for prompt in PROMPTS:
            logits, images = generator.group(prompt)
            rewards = rewards_of([prompt] * GROUP, images)
            step += rewards
            learnt = generator.draw.permutation(rewards) if shuffled else rewards
            generator.learn(prompt, logits, learnt)
        means.append(np.mean(step))
    return np.mean(means[-3:]) - np.mean(means[:3]), generator.held_out() - before


def interval(values):
    half = T_95 * np.std(values, ddof=1) / np.sqrt(len(values))
    return np.mean(values) - half, np.mean(values) + half


def test_it_learns_from_the_judge_and_not_from_shuffled_rewards(store):
    with (
        FakeServer(reply=reads_pixels) as server,
        judged_by(server, reward="r=viescore:SC") as running,
    ):
        client = FlowFactory(f"{running.url}/group", 120)
        rises = {
            shuffled: [trained(client.rewards, seed, shuffled) for seed in range(SEEDS)]
            for shuffled in (False, True)
        }
    for measure in (0, 1):
        low, _ = interval([rise[measure] for rise in rises[False]])
        assert low > 0.05
        low, high = interval([rise[measure] for rise in rises[True]])
        assert low < 0 < high
