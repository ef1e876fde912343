"""Readers of authors' logs, one module per judge; metrics are beside VIEScore.

Each module has ``read(folder, identity, name, setting)``, which returns the verdicts of
one part by sample or contest, from its folder in the logs. If the folder holds the logs
of several judges, `name` selects one; if it holds several settings, `setting` does.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from vieval_plugin.judges.protocol import SampleId, Verdict
from vieval_plugin.text.errors import VievalError

#: How an image model and a uid make an identity.
Identity: TypeAlias = Callable[[str, str], SampleId]
#: Verdicts by sample or contest.
LoggedVerdicts: TypeAlias = Mapping[SampleId, Verdict]
#: Given a part's folder, its identities, a name, a setting.
Reader: TypeAlias = Callable[[Path, Identity, str, str], LoggedVerdicts]


#: Advice on a file that cannot be read.
RESTORE = "restore the file from the original logs"


class NotNamedError(VievalError):
    """Logs of several judges, none of which has the requested name."""


def reader(judge: str) -> Reader | None:
    """Return the reader of a judge's logs; None if its logs are not supported."""
    name = f"{__name__}.{judge}"
    if importlib.util.find_spec(name):
        read: Reader = importlib.import_module(name).read
        return read
    from vieval_plugin.results.logs.viescore import reader_of

    return reader_of(judge)
