"""The examples of all docstrings run as they stand there."""

import doctest
import importlib
import pkgutil

import pytest

import vieval_plugin.judges

PACKAGES = (
    (vieval_plugin.__path__, "vieval_plugin."),
    (vieval_plugin.judges.__path__, "vieval_plugin.judges."),
)
MODULES = sorted(
    {
        module.name
        for path, prefix in PACKAGES
        for module in pkgutil.walk_packages(path, prefix)
        if not module.name.endswith("__main__")
    }
)


@pytest.mark.parametrize(
    "room", sorted({".".join(name.split(".")[:2]) for name in MODULES})
)
def test_the_examples_of_a_room_run(room):
    results = {}
    for name in MODULES:
        if f"{name}.".startswith(f"{room}."):
            try:
                results[name] = doctest.testmod(importlib.import_module(name)).failed
            except (
                ModuleNotFoundError
            ) as error:  # an extra, or a host, that is not installed
                if (error.name or "").startswith("vieval_plugin"):
                    raise
    assert results
    assert {name for name, failed in results.items() if failed} == set()
