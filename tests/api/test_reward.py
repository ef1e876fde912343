"""The reward functions of docs/guides/scoring.md, called by the loops that they are written for."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.tiny_pipeline import build_pipeline
from vieval_plugin.api import conversion

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "scoring.md"


@pytest.fixture
def page(server, store, tmp_path):
    """What the page's section on rewards defines, with a tiny image model as its pipeline."""
    diffusers = pytest.importorskip("diffusers")
    weights = build_pipeline(tmp_path / "pipeline")
    pipeline = diffusers.StableDiffusionPipeline.from_pretrained(weights)
    pipeline.set_progress_bar_config(disable=True)

    def drawn(prompts, output_type):
        return pipeline(prompts, output_type=output_type, num_inference_steps=1)

    section = PAGE.read_text().partition("### In a training loop of your own")[2]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    code = "\n".join(["from vieval_plugin import Judge", *blocks])
    code = code.replace('"NAME"', '"fake"')
    held = {"pipeline": drawn, "np": np}
    exec(code.replace("http://127.0.0.1:8000/v1", server.base_url), held)
    yield held
    held["reward"].close()


def test_the_best_of_four_is_the_one_the_judge_scores_highest(page):
    best = page["best_of"]("a red cube")
    last = page["reward"].last
    assert len(last) == 4
    assert len(set(last.scores())) > 1
    highest = last.samples[int(last.scores().argmax())].images["output"]
    assert conversion.image(best, "jpeg") == highest


def test_a_batch_of_tensors(page):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    scores = page["batch_reward"](torch.rand(3, 3, 16, 16) * 2 - 1, ["a", "b", "c"])
    assert scores.shape == (3,)
    assert not np.isnan(scores).any()
