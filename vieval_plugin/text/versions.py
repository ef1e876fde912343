"""Versions of installed packages, for provenance."""

from __future__ import annotations

from vieval_plugin import __version__ as VERSION

__all__ = ["VERSION", "versions_of"]


def versions_of(*packages: str) -> dict[str, str]:
    """Versions of VIEval, as its code says it, and of the packages that are installed.

    >>> list(versions_of("numpy", "no_such_package"))
    ['vieval', 'numpy']
    """
    import importlib.metadata  # a command that only says its version needs none of it

    versions = {"vieval": VERSION}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
