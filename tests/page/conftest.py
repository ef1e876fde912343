"""The browser that the tests of this folder share."""

from pathlib import Path

import pytest

from tests.page.browser import Browser, absent


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.page)


@pytest.fixture(scope="session")
def browser():
    if reason := absent():
        pytest.skip(reason)
    running = Browser()
    yield running
    running.close()
