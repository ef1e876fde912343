"""`vieval export`: from results to a file of training examples, and a table of what is in it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from vieval_plugin.errors import VievalError
from vieval_plugin.lookup import Lookup
from vieval_plugin.records import Record
from vieval_plugin.training import cigeval, t2i_eval
from vieval_plugin.training.chat_format import Trainer, write
from vieval_plugin.training.rebalance import Unit, counts, rebalanced, score_counts


def export_t2i_eval(lookup: Lookup, out: Path, trainer: Trainer, rebalance: bool, seed: int) -> Iterator[str]:
    """Write every answer that could be read as an example; lines of a table of counts before and after."""
    judged = [record for record in lookup.records if record.provenance.judge == "t2i_eval"]
    if not judged:
        raise VievalError("no verdicts of t2i_eval in these results")
    before = list(itertools.chain.from_iterable(_units(lookup, judged)))
    after = rebalanced(before, seed) if rebalance else before
    write(out, [example for unit in after for example in unit.examples], trainer)
    yield from _table("sub-task", ["examples", "written"], _columns(counts(before), counts(after)))
    numbers = [str(score) for score in range(11)]
    for name, units in (("scores", before), ("scores written", after)):
        rows = [(category, *map(str, held)) for category, held in sorted(score_counts(units).items())]
        yield from ("", *_table(name, numbers, rows))
    yield ""
    yield f"seed {seed}" if rebalance else "not rebalanced (--rebalance)"


def export_cigeval(lookup: Lookup, out: Path, trainer: Trainer, margin: float) -> Iterator[str]:
    """Write the conversations of verdicts within a margin of the human mean; lines of a table kept and dropped by task."""
    judged = [record for record in lookup.records if record.provenance.judge == "cigeval"]
    if not judged:
        raise VievalError("no verdicts of cigeval in these results")
    if not any(record.ratings.get("SC") for record in judged):
        raise VievalError("these verdicts have no human ratings of SC to be near to; export a run of an imagenhub task")
    kept = [record for record in judged if cigeval.near_human(record, margin)]
    told = tqdm(kept, desc="Exporting", unit="sample", disable=None)
    write(out, list(itertools.chain.from_iterable(cigeval.examples(r, lookup.exchanges(r)) for r in told)), trainer)
    held, near = (Counter(record.id.task for record in records) for records in (judged, kept))
    rows = [(task, str(n), str(near[task]), str(n - near[task])) for task, n in held.items()]
    total = ("all", str(len(judged)), str(len(kept)), str(len(judged) - len(kept)))
    yield from _table("task", ["verdicts", "kept", "dropped"], [*rows, total])
    yield ""
    yield f"margin {margin:g}"


def _units(lookup: Lookup, judged: Sequence[Record]) -> Iterator[list[Unit]]:
    for record in tqdm(judged, desc="Exporting", unit="sample", disable=None):
        yield t2i_eval.units(record.id, lookup.exchanges(record))


def _columns(before: Mapping[str, int], after: Mapping[str, int]) -> list[tuple[str, ...]]:
    names = list(dict.fromkeys([*before, *after]))
    rows = [(name, str(before.get(name, 0)), str(after.get(name, 0))) for name in names]
    return [*rows, ("all", str(sum(before.values())), str(sum(after.values())))]


def _table(name: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    lines = [(name, *columns), *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns) + 1)]
    for first, *rest in lines:
        yield "  ".join([first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(rest, widths[1:], strict=True))])
