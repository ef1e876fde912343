"""Readers of authors' logs: the module of a judge's name, or that of metrics, reads what its
authors published.

Such a module has ``read(folder, identity, name, setting)``: the verdicts of one part by sample or
contest, from its folder in the logs. Where such a folder holds the logs of several judges, `name`
says which is meant; where it holds those of several settings, `setting` does.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from vieval_plugin.judges.protocol import SampleId, Verdict
from vieval_plugin.text.errors import VievalError

#: Given a part's folder, how an image model and a uid make an identity, a name, a setting: verdicts
#: by sample or contest.
Reader: TypeAlias = Callable[
    [Path, Callable[[str, str], SampleId], str, str], Mapping[SampleId, Verdict]
]


#: Advice on a file that cannot be read.
RESTORE = "restore the file from the logs it came from"


class NotNamedError(VievalError):
    """Logs of several judges, and none of them is called by the name that was given."""


def reader(judge: str) -> Reader | None:
    """The reader of a judge's logs; None where there is none."""
    name = f"{__name__}.{judge}"
    if importlib.util.find_spec(name):
        read: Reader = importlib.import_module(name).read
        return read
    from vieval_plugin.results.logs.metric_values import reader_of

    return reader_of(judge)
