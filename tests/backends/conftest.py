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
