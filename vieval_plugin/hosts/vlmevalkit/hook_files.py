"""Switching the hook on and off: two files in this environment's site-packages."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from vieval_plugin.hosts.vlmevalkit import hook
from vieval_plugin.media.files import write_whole
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.versions import VERSION

_MODULE = "_vieval_vlmevalkit_hook"


def _paths() -> tuple[Path, Path]:
    folder = Path(sysconfig.get_path("purelib"))
    return folder / f"{_MODULE}.py", folder / f"{_MODULE}.pth"


def _texts() -> tuple[str, str]:
    source = Path(hook.__file__).read_text(encoding="utf-8")
    return (
        f"# of vieval {VERSION}\n{source}\n\ninstall()\n",
        f"# of vieval {VERSION}\nimport {_MODULE}\n",
    )


def install() -> list[Path]:
    """Write the hook's files; they are whole or not there."""
    for path, text in zip(_paths(), _texts(), strict=True):
        write_whole(path, [text], "environment")
    return list(_paths())


def remove() -> list[Path]:
    """Delete the hook's files; which there were. VievalError where one cannot be deleted."""
    installed = [path for path in _paths() if path.exists()]
    for path in installed:
        try:
            path.unlink()
        except OSError as error:
            raise VievalError(f"cannot delete {path} ({error.strerror})") from None
    return installed


def state() -> str:
    """`off`, `on`, or `old` where its files are another version's."""
    texts = tuple(
        path.read_text(encoding="utf-8") for path in _paths() if path.exists()
    )
    if not texts:
        return "off"
    return "on" if texts == _texts() else "old"
