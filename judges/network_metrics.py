"""Judges that measure with a network: CLIP-Score, CLIP-I, DINO, LPIPS. A scorer answers them, or a
replay of recorded values.

One value a sample is compared with each of people's SC, PQ and O. Source: Ku et al., VIEScore (ACL
2024), Tables 8 to 11, which have each on these kinds.
"""

from __future__ import annotations

from dataclasses import replace

from vieval_plugin.judges.auto_metrics import AutoMetric, spec
from vieval_plugin.judges.spec import JudgeSpec


def _similarity(value: float) -> float:
    """A cosine as it is, below 0 too, since the published correlations are of raw cosines."""
    return min(max(value, -1.0), 1.0)


def _nearness(value: float) -> float:
    """A distance as a score: 1 for none, and less by as much as it is, so that means of scores
    order as those of distances do; -1 from 2 on, which hardly any two images reach.
    """
    return min(max(1 - value, -1.0), 1.0)


_OUTPUT = {"image": ("output",)}
_CONDITION = {**_OUTPUT, "reference": ("source", "control")}
_SUBJECT = {**_OUTPUT, "reference": ("subject", "concepts")}
_PROMPT = {"text": ("prompt",)}
_SUBJECTS = ("sdig", "sdie", "mcic")

METRICS = (
    AutoMetric(
        "clip_score", "CLIP-Score", "SC", _OUTPUT, ("tig",), _similarity, _PROMPT
    ),
    AutoMetric("clip_i", "CLIP-I", "SC", _SUBJECT, _SUBJECTS, _similarity),
    AutoMetric("dino", "DINO", "SC", _SUBJECT, _SUBJECTS, _similarity),
    AutoMetric("lpips", "LPIPS", "SC", _CONDITION, ("mie", "tie", "cig"), _nearness),
)
# of DINO and CLIP-I the paper has two tables, by kind, which are one here
_TABLES = {"clip_score": "T8", "lpips": "T9", "clip_i": "T10/11", "dino": "T10/11"}


def _described(metric: AutoMetric) -> JudgeSpec:
    return replace(
        spec(metric, scored=True), against_all=True, table=_TABLES[metric.name]
    )


SPECS = tuple(map(_described, METRICS))
