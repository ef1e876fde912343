"""Fixtures of tests of backends."""

import pytest


@pytest.fixture
def path(tmp_path):
    """A store of replies that is not there yet."""
    return tmp_path / "replies.sqlite"


@pytest.fixture
def short_waits(monkeypatch):
    """Pauses and rests of backends of hundredths of a second."""
    from tests.one_server import wait_shortly  # which needs aiohttp

    wait_shortly(monkeypatch)


@pytest.fixture
def small_inputs(monkeypatch):
    """Mask2Former is given small images, as on a CPU it takes seconds for each of its own size."""
    from vieval_plugin.backends.image_tools import object_detector

    monkeypatch.setattr(object_detector, "SHORTER_SIDE", 96)
    monkeypatch.setattr(object_detector, "LONGEST_SIDE", 160)
