"""vieval_demo: a synthetic benchmark over the seven tasks, drawn here, with synthetic
ratings.

It is for trying the plugin out without downloads and for testing it: every output has one content
defect and one quality defect of known strength, and its rating follows from them. It says nothing
about any image model, and its numbers never stand beside ImagenHub's human ratings. The three
"image models" are three mixtures of defects.

Content defects: wrong count, wrong colour, missing object, edit not done, over-edited background,
wrong subject, ignored control. Quality defects: noise, blur, watermark.
"""

from __future__ import annotations

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.benchmarks.loading.conditions import generating
from vieval_plugin.benchmarks.vieval_demo.contests import CONTESTS, load
from vieval_plugin.benchmarks.vieval_demo.edits import EDITS
from vieval_plugin.benchmarks.vieval_demo.plan import (
    IMAGE_MODELS,
    INSTRUCTIONS,
    LICENCE,
    NAME,
    TASKS,
    Defects,
    defects,
)
from vieval_plugin.meta_evaluation.image_models import ByImageModel

__all__ = [
    "BENCHMARK",
    "BENCHMARKS",
    "IMAGE_MODELS",
    "INSTRUCTIONS",
    "NAME",
    "TASKS",
    "Defects",
    "defects",
    "load",
]


BENCHMARK = Benchmark(
    NAME,
    dict.fromkeys(TASKS, INSTRUCTIONS * len(IMAGE_MODELS)),
    load,
    lambda root, part: [],
    ByImageModel(),
    source="drawn by VIEval",
    licence=LICENCE,
    trainable=True,
    synthetic=True,
    note=(
        "Synthetic: images drawn by VIEval with known defects, and ratings derived from them. "
        "These are not human ratings."
    ),
)

BENCHMARKS = (
    BENCHMARK,
    CONTESTS,
    EDITS,
    generating(
        BENCHMARK,
        dict.fromkeys(TASKS, INSTRUCTIONS),
        load,
        BENCHMARK.missing,
    ),
)
