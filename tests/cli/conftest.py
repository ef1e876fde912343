"""Fixtures of tests of commands."""

import PIL.Image
import pytest

from tests.stored_results import write_lines


@pytest.fixture
def few_draws(tmp_path, monkeypatch):
    """Options with as few resamples as a test of a table needs."""
    (tmp_path / "vieval.yaml").write_text("statistics: {draws: 200}")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))


@pytest.fixture
def noise_samples(tmp_path):
    """Writes so many samples of one image, each with a prompt of its own; their file."""

    def written(count):
        PIL.Image.effect_noise((64, 48), 60).save(tmp_path / "a.png")
        row = {"kind": "tig", "images": {"output": "a.png"}}
        rows = [
            {**row, "uid": f"u{n}", "texts": {"prompt": f"noise {n}"}}
            for n in range(count)
        ]
        return write_lines(tmp_path / "s.jsonl", rows)

    return written
