"""The one error of this package that is meant for a user's eyes, and advice that such errors end with."""

PROJECT = "https://github.com/vieval/vieval"
"""Address of the project, with its documentation."""
UPGRADE = f"get the newest version from {PROJECT}"
"""Advice to who has what a newer version wrote."""


class VievalError(Exception):
    """Something the user can put right; the message is one line that names the file or option and what to do."""


def docs_url(page: str) -> str:
    """Address of a page of the documentation.

    Args:
        page: its path under `docs/`, with an anchor where there is one: `reference/results.md#api_error`.
    """
    return f"{PROJECT}/blob/main/docs/{page}"


def install_advice(extra: str) -> str:
    """The commands that install an extra, from a checkout or from a release file, as no package index has VIEval.

    >>> install_advice("http")
    'run pip install ".[http]" in a checkout of VIEval, or pip install "RELEASE.whl[http]" with a release file'
    """
    return f'run pip install ".[{extra}]" in a checkout of VIEval, or pip install "RELEASE.whl[{extra}]" with a release file'
