"""Fixtures of tests of hosts."""

import asyncio
import importlib.util
import json
from pathlib import Path

import pytest

# the others need lmms-eval, and the fake server, which needs aiohttp
WITHOUT_HOST = ("test_host_contract.py", "test_task_data.py")
if not all(map(importlib.util.find_spec, ("lmms_eval", "aiohttp"))):
    found = Path(__file__).parent.glob("test_*.py")
    collect_ignore = [path.name for path in found if path.name not in WITHOUT_HOST]


@pytest.fixture
def cig_logs(tmp_path):
    """Logs for the two instructions of `ratings_folder`, with texts that hosts mangle."""
    reasons = {
        "ControlNet": "thought\n</think>\n\nsaid after a blank line\n\nand another",
        "UniControl": "if a < b then <c> holds",
    }
    for model, reason in reasons.items():
        folder = tmp_path / "logs" / "ImagenHub_Control-Guided_IG" / model
        folder.mkdir(parents=True)
        for aspect in ("SC", "PQ"):
            rows = {
                f"sample_{uid}.jpg": {"score": [uid, 9], "reasoning": reason}
                for uid in (2, 10)
            }
            (folder / f"{aspect}.json").write_text(json.dumps(rows))
    return tmp_path / "logs"


@pytest.fixture
def fake_generator():
    """A generator of the host's own kind, as an entry point registers it: its arguments."""
    from lmms_eval.models import MODEL_REGISTRY_V2
    from lmms_eval.models.registry_v2 import ModelManifest

    manifest = ModelManifest(
        "fake_generator", simple_class_path="tests.fake_generator.FakeGenerator"
    )
    MODEL_REGISTRY_V2.register_manifest(manifest, overwrite=True)
    return ("--model", "fake_generator")


@pytest.fixture
def prepared_data(tmp_path, monkeypatch):
    """Prepares parts of data of ImagenHub's shape, less most of its rows; the data folder."""
    from tests.imagenhub_site import serving  # which needs aiohttp
    from vieval_plugin.benchmarks.imagenhub.filling import fill

    async def filled(parts):
        async with serving(monkeypatch) as site:
            given = {"parts": parts, "hosts": site.hosts(), "timeout": 5}
            return await asyncio.to_thread(lambda: fill(tmp_path / "data", **given))

    def prepare(*parts):
        assert not any(report.failed for report in asyncio.run(filled(parts or None)))
        return tmp_path / "data"

    return prepare
