"""Versions of what is installed, for provenance."""

from __future__ import annotations

import importlib.metadata

from vieval_plugin import __version__


def versions_of(*packages: str) -> dict[str, str]:
    """Versions of VIEval, as its code says it, and of the packages that are installed.

    >>> list(versions_of("numpy", "no_such_package"))
    ['vieval', 'numpy']
    """
    versions = {"vieval": __version__}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
