"""vieval_demo_sequences: edits of drawn sequences, with the labels that follow from how they were
drawn as ratings.

They are held out from whatever is trained on drawn sequences, as long as that is of another seed.
"""

from __future__ import annotations

from functools import cache

from vieval_plugin.benchmarks.benchmark import Benchmark, known_part
from vieval_plugin.benchmarks.vieval_demo.plan import LICENCE
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.meta_evaluation.image_models import ByImageModel

NAME = "vieval_demo_sequences"
SEED = 1_000_003
SEQUENCES = 60
_PART = "tie"
_EDITOR = "drawn"


@cache
def edits(part: str) -> tuple[Sample, ...]:
    """Edits of 60 drawn sequences: from scene j1 to scene k, by the instructions j1 + 1 to j2.

    Args:
        part: `tie`.

    Returns:
        Samples of 96 x 96 pixels whose O, in [0, 1], is (k - j1) / (j2 - j1), or 0.5 where more was
        done than asked for.

    Raises:
        VievalError: there is no such part.
    """
    from vieval_plugin.benchmarks.sequences import label, triples
    from vieval_plugin.benchmarks.vieval_demo.outputs import png
    from vieval_plugin.benchmarks.vieval_demo.sequences import draw_sequence, uid_of

    known_part(NAME, (_PART,), part)
    samples = []
    for number in range(SEQUENCES):
        sequence = draw_sequence(number, SEED)
        scenes = [png(scene) for scene in sequence.scenes]
        for j1, j2, k in triples(len(sequence.instructions)):
            samples.append(
                Sample(
                    SampleId(
                        NAME,
                        _PART,
                        _EDITOR,
                        f"{sequence.uid}_{j1}_{j2}_{k}",
                    ),
                    {
                        "source": scenes[j1],
                        "output": scenes[k],
                    },
                    {"instruction": " ".join(sequence.instructions[j1:j2])},
                    {"O": (label(j1, j2, k),)},
                    group=uid_of(sequence),
                )
            )
    return tuple(samples)


EDITS = Benchmark(
    NAME,
    {_PART: None},
    lambda root, part: list(edits(part)),
    lambda root, part: [],
    ByImageModel(rated=("O",)),
    source="drawn by VIEval",
    licence=LICENCE,
    trainable=False,
    synthetic=True,
    note=(
        "Synthetic: edits drawn by VIEval one after another, rated by the share of requested "
        "edits that were made."
    ),
)
