"""A family of statistics of one's own, and runs for it."""

import numpy as np

from tests.runs import run_of
from vieval_plugin.meta_evaluation.common_items import JudgedItem, PairedTestSpec
from vieval_plugin.meta_evaluation.estimates import computed_mean
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.statistics import Statistic

LABELS = np.arange(60) % 2


def _right(rows):
    return [
        float((score > 0.5) == (label > 0.5))
        for score, label in zip(rows.scores, rows.ratings, strict=True)
    ]


def _items(rows):
    return {
        o.uid: JudgedItem(o.group, right)
        for o, right in zip(rows.scored, _right(rows), strict=True)
    }


SIDE = Statistic(
    "right_side",
    lambda rows: computed_mean(_right(rows), rows.clusters, "no sample has a score"),
    constant=0.5,
    paired=PairedTestSpec(_items),
)


REPORT = WithLabels((SIDE,))


def run(label, flipped, failed=()):
    """A judge that is right except on flipped samples, and fails on some."""
    rows = []
    for n, truth in enumerate(map(float, LABELS)):
        right = abs(truth - 0.1)
        scores = {} if n in failed else {"SC": 1 - right if n in flipped else right}
        more = {"tags": ("even",) * (n % 2 == 0), "group": f"g{n // 2}"}
        rows.append(("all", "m", f"{n:02}", scores, {"SC": (truth,)}, more))
    return run_of(label, rows, ("SC",), benchmark="toy")
