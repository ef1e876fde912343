"""The one error of this package that is meant for a user's eyes, advice that such errors end
with, and exit codes.
"""

import errno
import os
from enum import IntEnum

#: Address of the project, with its documentation.
PROJECT = "https://github.com/vieval/vieval"
#: Advice to who has what a newer version wrote.
UPGRADE = f"install the latest version from {PROJECT}"
#: Environment variables of the backbone where neither arguments nor options name one.
MODEL_ENV_VAR = "VIEVAL_MODEL"
BASE_URL_ENV_VAR = "VIEVAL_BASE_URL"
#: Variable of OpenAI's own clients, read for a named model where the address is set nowhere else.
OPENAI_BASE_URL_ENV_VAR = "OPENAI_BASE_URL"
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


class VievalError(Exception):
    """Error that the user can correct; the message is one line with the file or option
    and the remedy.
    """


class ExitCode(IntEnum):
    """Outcomes of commands and of their functions in Python, each with its exit code.

    What a signal ends has 128 and the signal's number.

    >>> ExitCode.WORSE.name, int(ExitCode.WORSE)
    ('WORSE', 3)
    """

    #: The command did what it was asked for; of a gate: the first generator is not worse.
    FINE = 0
    #: An error in one line, or a finding that needs your eyes, such as calls that failed.
    ERROR = 1
    #: The command line is wrong.
    USAGE = 2
    #: The first generator is worse by more than the margin, or it fails more often.
    WORSE = 3
    #: The data cannot tell.
    UNDECIDED = 4
    #: The judge is not the judge of the anchor any more, so nothing is said of your images.
    JUDGE_DRIFTED = 5
    #: The nights of a history have fallen slowly below the baseline.
    SLOW_FALL = 6

    @property
    def verdict(self) -> str:
        """The outcome as a gate says it, in capital letters.

        >>> ExitCode.WORSE.verdict, ExitCode.JUDGE_DRIFTED.verdict
        ('FAIL', 'JUDGE DRIFTED')
        """
        names = {
            "FINE": "PASS",
            "WORSE": "FAIL",
            "UNDECIDED": "INCONCLUSIVE",
        }
        return names.get(self.name, self.name.replace("_", " "))


def docs_url(page: str) -> str:
    """Address of a page of the documentation.

    Args:
        page: its path under `docs/`, with an anchor where there is one:
            `reference/results.md#api_error`.
    """
    return f"{PROJECT}/blob/main/docs/{page}"


def install_advice(extra: str) -> str:
    """The commands that install an extra, from a checkout or from a release file, as no package
    index has VIEval.

    >>> install_advice("http")
    'run pip install ".[http]" in a checkout of VIEval, or pip install "RELEASE.whl[http]" with a release file'
    """
    return (
        f'run pip install ".[{extra}]" in a checkout of VIEval, or pip install '
        f'"RELEASE.whl[{extra}]" with a release file'
    )


def system_reason(error: BaseException) -> str:
    """Why a file could not be read or written, in one line without its number and path."""
    return getattr(error, "strerror", None) or line_of(error)


def unwritable(path: object, error: BaseException, remedy: str) -> VievalError:
    """The refusal of a file or folder that cannot be written; a full disk has a remedy of its
    own.
    """
    is_full = getattr(error, "errno", None) in _FULL_DISK
    # libraries that write weights raise errors of their own
    if is_full or os.strerror(errno.ENOSPC) in str(error):
        remedy = f"free disk space or {remedy}"
    return VievalError(f"cannot write {path}: {system_reason(error)}; {remedy}")


def line_of(error: BaseException, length: int = 300) -> str:
    """The message of an error in one line of at most so many characters; its type where it has
    none.
    """
    message = " ".join(str(error).split())
    return message[:length] or type(error).__name__
