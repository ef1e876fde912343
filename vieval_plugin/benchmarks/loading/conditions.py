"""Input of a generator: the conditions of a benchmark's samples, each once, without
outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark, Load, Parts
from vieval_plugin.judges.contests import Judged, candidates_of
from vieval_plugin.judges.protocol import CONDITION_ROLES, Sample, SampleId
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.text.errors import VievalError


def generating(
    rated: Benchmark,
    parts: Parts,
    load: Load,
    missing: Callable[[Path, str], list[str]] | None = None,
) -> Benchmark:
    """The benchmark on which generators are judged under the conditions of one that people rated.

    Args:
        rated: where the conditions come from.
        parts: those that are generated from, with the number of conditions in each.
        load: gives a part's samples or conditions; what was made of them, and how people rated it,
            is left out.
        missing: what a run would lack; without it, `load` is tried.
    """
    name = f"generate_{rated.name}"

    def conditions(root: Path, part: str) -> list[Sample]:
        return conditions_of(load(root, part), name)

    def missing_lines(root: Path, part: str) -> list[str]:
        try:
            if missing:
                return missing(root, part)
            conditions(root, part)
        except VievalError as error:
            return [str(error)]
        return []

    return Benchmark(
        name,
        parts,
        conditions,
        missing_lines,
        OfGenerators(),
        source=rated.source,
        licence=rated.licence,
        trainable=rated.trainable,
        prepare=rated.prepare,
        kinds=rated.kinds,
        note=f"Generates images from the conditions of {rated.name}.",
        generates=True,
    )


def conditions_of(samples: Sequence[Judged], benchmark: str) -> list[Sample]:
    """The conditions of samples and contests, each once, in their order.

    Samples of one uid have the same conditions. Those of a contest are its first candidate's,
    called by the uid that all of its candidates share, else by its own; contests of the same
    conditions give them once.

    >>> from vieval_plugin.judges.protocol import Image
    >>> images = {"source": Image(b""), "output": Image(b"")}
    >>> edits = [Sample(SampleId("b", "tie", model, "1"), images) for model in "xy"]
    >>> [(str(sample.id), list(sample.images)) for sample in conditions_of(edits, "generate_b")]
    [('generate_b/tie/1', ['source'])]
    """
    first: dict[Hashable, Sample] = {}
    for judged in samples:
        sample = _conditions(judged, benchmark)
        key: Hashable = sample.id.uid
        if not isinstance(judged, Sample):
            key = (*sample.images.values(), *sample.texts.items())
        first.setdefault(key, sample)
    return list(first.values())


def _conditions(judged: Judged, benchmark: str) -> Sample:
    sample = candidates_of(judged)[0]
    uids = {candidate.id.uid for candidate in candidates_of(judged)}
    uid = uids.pop() if len(uids) == 1 else judged.id.uid
    images = {
        role: sample.images[role] for role in CONDITION_ROLES if role in sample.images
    }
    return replace(
        sample,
        id=SampleId(benchmark, judged.id.part, "", uid),
        images=images,
        ratings={},
        annotations={},
        group=judged.group,
        tags=judged.tags,
        place=(),
    )
