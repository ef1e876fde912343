"""Python API: judges that stay open, images and samples as people have them, and the answers of
`vieval rank`, `compare` and `report` as objects.

>>> from vieval_plugin.api import ExitCode, compare, gate, rank, report
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vieval_plugin.api.conclusion import Conclusion as Conclusion
    from vieval_plugin.api.conclusion import compare as compare
    from vieval_plugin.api.conclusion import report as report
    from vieval_plugin.api.ranking import gate as gate
    from vieval_plugin.api.ranking import rank as rank
    from vieval_plugin.text.errors import ExitCode as ExitCode

_HOMES = {
    "Conclusion": "api.conclusion",
    "ExitCode": "text.errors",
    "compare": "api.conclusion",
    "gate": "api.ranking",
    "rank": "api.ranking",
    "report": "api.conclusion",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first asked for: a judge needs none of the statistics."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"vieval_plugin.{_HOMES[name]}"), name)
