"""VIEval: judges of generated images for evaluation harnesses.

>>> from vieval_plugin import Image, Judge, Sample, SampleId, evaluate
"""

from __future__ import annotations

__version__ = "0.2.0"

# nothing is imported here, so that Ctrl-C finds the command's own handler early
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vieval_plugin.api.batches import JudgeBatches as JudgeBatches
    from vieval_plugin.api.judge import Judge as Judge
    from vieval_plugin.api.verdicts import Verdicts as Verdicts
    from vieval_plugin.config import Backbone as Backbone
    from vieval_plugin.judges.contests import Contest as Contest
    from vieval_plugin.judges.contests import Votes as Votes
    from vieval_plugin.judges.protocol import Choice as Choice
    from vieval_plugin.judges.protocol import Image as Image
    from vieval_plugin.judges.protocol import Sample as Sample
    from vieval_plugin.judges.protocol import SampleId as SampleId
    from vieval_plugin.judges.protocol import Status as Status
    from vieval_plugin.judges.protocol import Verdict as Verdict
    from vieval_plugin.results.shard_verdicts import verdict_batches as verdict_batches
    from vieval_plugin.run.evaluate import evaluate as evaluate
    from vieval_plugin.run.evaluate import evaluate_async as evaluate_async
    from vieval_plugin.run.evaluate import score_matrix as score_matrix
    from vieval_plugin.run.progress import Progress as Progress
    from vieval_plugin.text.errors import VievalError as VievalError

_HOMES = {
    "Backbone": "config",
    "Choice": "judges.protocol",
    "Contest": "judges.contests",
    "Image": "judges.protocol",
    "Judge": "api.judge",
    "JudgeBatches": "api.batches",
    "Progress": "run.progress",
    "Sample": "judges.protocol",
    "SampleId": "judges.protocol",
    "Status": "judges.protocol",
    "Verdict": "judges.protocol",
    "Verdicts": "api.verdicts",
    "VievalError": "text.errors",
    "Votes": "judges.contests",
    "evaluate": "run.evaluate",
    "evaluate_async": "run.evaluate",
    "score_matrix": "run.evaluate",
    "verdict_batches": "results.shard_verdicts",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a judge alone does not need the
    modules that run it.
    """
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
