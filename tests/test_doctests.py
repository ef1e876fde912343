"""The examples of all docstrings run as they stand there."""

import doctest
import importlib
import pkgutil

import pytest

import vieval_plugin.judges

PLACES = {
    "vieval_plugin.": vieval_plugin,
    "vieval_plugin.judges.": vieval_plugin.judges,
}
FOUND = {
    module.name
    for prefix, package in PLACES.items()
    for module in pkgutil.walk_packages(package.__path__, prefix)
}
MODULES = sorted(name for name in FOUND if not name.endswith("__main__"))
ROOMS = sorted({".".join(name.split(".")[:2]) for name in MODULES})


@pytest.mark.parametrize("room", ROOMS)
def test_the_examples_of_a_room_run(room):
    results = {}
    for name in MODULES:
        if f"{name}.".startswith(f"{room}."):
            try:
                results[name] = doctest.testmod(importlib.import_module(name)).failed
            # an extra, or a host, that is not installed
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("vieval_plugin"):
                    raise
    assert results
    assert {name for name, failed in results.items() if failed} == set()
