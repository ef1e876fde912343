"""Answer of several judges of the same generators: how many find which best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from vieval_plugin.meta_evaluation.comparison import Comparison
from vieval_plugin.records import JudgeName
from vieval_plugin.text.wording import enumeration


def judges_together(
    rows: Sequence[tuple[JudgeName, Comparison | None]], contradictory: Collection[JudgeName] = ()
) -> str:
    """A sentence over judges; empty of one, of two that agree, and where no generators were compared.

    Args:
        rows: each judge with its comparison of the generators.
        contradictory: judges that contradict themselves, whose answers decide nothing.
    """
    best = [None if judge in contradictory else _best(comparison) for judge, comparison in rows]
    if not any(comparison and comparison.pairs for _, comparison in rows):
        return ""
    if len(rows) < 2 or (len(rows) == 2 and best[0] == best[1]):
        return ""
    counts = Counter(filter(None, best)).most_common()
    (first, n), *further = counts or [("a generator", 0)]
    finds = f"{n or 'none'} {'find' if n > 1 else 'finds'} {first} significantly best"
    shares = [finds, *(f"{times} {name}" for name, times in further)]
    shares += [f"{best.count('')} none"] if counts and "" in best else []
    silent = best.count(None)
    shares += [f"{silent} {'decide' if silent > 1 else 'decides'} nothing"] if silent else []
    answer = (
        f"All {n} judges find {first} significantly best"
        if n == len(rows)
        else f"Of {len(rows)} judges, {enumeration(shares)}"
    )
    models = {name.model for name, _ in rows}
    return f"{answer}; all ask one model, {models.pop()}." if len(models) == 1 and "" not in models else f"{answer}."


def _best(comparison: Comparison | None) -> str:
    """The generator that is significantly better than all others with a rank; empty where there is none."""
    ranked = [standing.system.label for standing in comparison.ranked] if comparison else []
    return (
        ranked[0] if comparison and len(ranked) > 1 and all(comparison.beats(ranked[0], r) for r in ranked[1:]) else ""
    )
