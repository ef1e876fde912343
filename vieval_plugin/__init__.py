"""VIEval: judges of generated images for evaluation harnesses.

>>> from vieval_plugin import Backbone, Image, Sample, SampleId, evaluate
"""

from vieval_plugin.config import Backbone
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Verdict
from vieval_plugin.live import Progress
from vieval_plugin.scoring import evaluate, evaluate_async, score_matrix

__all__ = [
    "Backbone",
    "Image",
    "Progress",
    "Sample",
    "SampleId",
    "Status",
    "Verdict",
    "VievalError",
    "evaluate",
    "evaluate_async",
    "score_matrix",
]
