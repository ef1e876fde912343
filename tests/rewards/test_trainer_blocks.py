"""The page's block of ms-swift, run by the Python that `VIEVAL_MS_SWIFT_PYTHON` names."""

import json
import os

import pytest

from tests.rewards.page import blocks_of
from tests.work import run_process

PYTHON = os.environ.get("VIEVAL_MS_SWIFT_PYTHON", "")
# what is before and after the blocks of the page: an image model, and the trainer that looks the
# class up by its name
PIPELINE = """
from types import SimpleNamespace
from PIL import Image
pipeline = lambda texts, output_type: SimpleNamespace(images=[Image.new("RGB", (32, 32), text) for text in texts])
"""
TRAINER = """
import json
asked = [[{"role": "user", "content": text}] for text in ("a red square", "a blue square")]
print(json.dumps(orms["image_judge"](args=None)(["red", "blue"], messages=asked, solution=["", ""])))
"""


@pytest.mark.skipif(
    not PYTHON, reason="VIEVAL_MS_SWIFT_PYTHON names no Python with ms-swift"
)
def test_ms_swift_finds_the_class_of_the_page_and_gets_a_reward_each(server, tmp_path):
    blocks = blocks_of("TRL and ms-swift", server.base_url)
    assert len(blocks) == 2
    code = "\n".join([PIPELINE, *blocks, TRAINER])
    own = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    own.pop("VIEVAL_CONFIG", None)
    done = run_process([PYTHON, "-c", code], cwd=tmp_path, env=own, timeout=600)
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout.splitlines()[-1])
    assert 0 <= first <= 1
    assert 0 <= second <= 1
