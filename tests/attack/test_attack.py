"""The attack in its short form: all scenarios of `vieval score`, few samples. `make test-attack` is the long one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.attack
def test_nothing_is_lost_invented_or_asked_twice(tmp_path):
    # a process of its own, as it has servers, clients and signals of its own
    command = [sys.executable, "-m", "attack.run", *("--samples", "60", "--lmms", "0", "--kills", "3", "--short")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    ended = subprocess.run(
        [*command, "--keep", tmp_path], env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr[-2000:]}"
