"""Fixtures of tests of backends."""

import pytest


@pytest.fixture
def path(tmp_path):
    """A store of replies that is not there yet."""
    return tmp_path / "replies.sqlite"
