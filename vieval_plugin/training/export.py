"""`vieval export`: from results to a file of training examples, and a table of what is in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.errors import VievalError
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.conversation import Exchange, TrainingUnit
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.judges.spec import Export
from vieval_plugin.records import Record
from vieval_plugin.results.lookup import Lookup
from vieval_plugin.text.tables import text_table
from vieval_plugin.training.chat_format import Trainer, write
from vieval_plugin.training.rebalance import counts, rebalanced, score_counts

MARGIN = 0.3
"""How far a verdict may be from the human mean; Wang et al. (2025), section on agent tuning."""


@dataclass(frozen=True)
class ExportChoices:
    """How examples are written: for which trainer, evened out or not (and by which seed), and how near people's mean."""

    trainer: Trainer
    rebalance: bool = False
    seed: int = 0
    margin: float = MARGIN


def exporting_judges() -> list[str]:
    """The judges whose conversations can be exported."""
    return [name for name, spec in judge_registry.judges().items() if spec.export]


def export(judge: str, lookup: Lookup, out: Path, choices: ExportChoices) -> Iterator[str]:
    """Write a judge's conversations as examples; lines of tables of what was found and written.

    VievalError where there are no verdicts of that judge, or where a benchmark's data may not train a model.
    """
    how = judge_registry.judge(judge).export
    if how is None:
        raise VievalError(f"{judge} has no conversations to export; those that have: {', '.join(exporting_judges())}")
    if choices.rebalance and not how.repetitions:
        raise VievalError(f"{judge}'s examples are not rebalanced; leave --rebalance out")
    judged = [record for record in lookup.records if record.provenance.judge == judge]
    if not judged:
        raise VievalError(f"no verdicts of {judge} in these results")
    _require_trainable(judged)
    if how.near and not any(record.ratings.get(how.near) for record in judged):
        raise VievalError(
            f"these verdicts have no human ratings of {how.near} to be near to; export a run on a benchmark that has"
        )
    kept = [record for record in judged if near_human(record, how.near, choices.margin)] if how.near else judged
    before = list(_units(lookup, kept, how))
    after = rebalanced(before, choices.seed, how.repetitions) if choices.rebalance else before
    write(out, [example for unit in after for example in unit.examples], choices.trainer)
    yield from (_by_part(judged, kept, choices.margin) if how.near else _by_sub_task(before, after))
    if how.repetitions:
        yield f"seed {choices.seed}" if choices.rebalance else "not rebalanced (--rebalance)"


def near_human(record: Record, aspect: str, margin: float) -> bool:
    """Whether a verdict's score is at most `margin` from the mean of its human ratings; not without either."""
    rated = [value for value in record.ratings.get(aspect, ()) if not math.isnan(value)]
    score = record.verdict.scores.get(aspect)
    # scores and ratings are tenths and thirds: what is a margin apart on paper is so here
    return bool(rated) and score is not None and abs(score - math.fsum(rated) / len(rated)) <= margin + 1e-9


def _require_trainable(judged: Sequence[Record]) -> None:
    for name in dict.fromkeys(record.id.benchmark for record in judged):
        benchmark = benchmark_registry.benchmarks().get(name)
        if benchmark is not None and not benchmark.trainable:
            raise VievalError(
                f"{name}: its data may not train a model (licence: {benchmark.licence}); export a run on other samples"
            )


def _units(lookup: Lookup, judged: Sequence[Record], how: Export) -> Iterator[TrainingUnit]:
    seen: set[SampleId] = set()  # a candidate of several contests is exported once
    for record in tqdm(judged, desc="Exporting", unit="sample", disable=None):
        for identity, exchanges in _by_sample(record, lookup.conversation(record)):
            if identity not in seen:
                seen |= {identity} if record.votes else set()
                yield from how.units(identity, exchanges)


def _by_sample(record: Record, exchanges: Sequence[Exchange]) -> Iterator[tuple[SampleId, Sequence[Exchange]]]:
    """The conversations of a record: one, or that about each candidate of a contest, whose number its paths begin with."""
    if record.votes is None or judge_registry.judge(record.provenance.judge).rates == "contest":
        yield record.id, exchanges
        return
    for number, candidate in enumerate(record.candidates, start=1):
        own = [one for one in exchanges if one.step.path[0] == str(number)]
        yield candidate, [_without_number(one) for one in own]


def _without_number(exchange: Exchange) -> Exchange:
    path = exchange.step.path[1:]
    return replace(exchange, ask=replace(exchange.ask, path=path), step=replace(exchange.step, path=path))


def _by_sub_task(before: Sequence[TrainingUnit], after: Sequence[TrainingUnit]) -> Iterator[str]:
    yield from text_table([("sub-task", "examples", "written"), *_columns(counts(before), counts(after))], numbers=True)
    numbers = [str(score) for score in range(11)]
    for name, units in (("scores", before), ("scores written", after)):
        rows = [(category, *map(str, held)) for category, held in sorted(score_counts(units).items())]
        yield from ("", *text_table([(name, *numbers), *rows], numbers=True))
    yield ""


def _by_part(judged: Sequence[Record], kept: Sequence[Record], margin: float) -> Iterator[str]:
    held, near = (Counter(record.id.part for record in records) for records in (judged, kept))
    rows = [(part, str(n), str(near[part]), str(n - near[part])) for part, n in held.items()]
    total = ("all", str(len(judged)), str(len(kept)), str(len(judged) - len(kept)))
    yield from text_table([("part", "verdicts", "kept", "dropped"), *rows, total], numbers=True)
    yield ""
    yield f"margin {margin:g}"


def _columns(before: Mapping[str, int], after: Mapping[str, int]) -> list[tuple[str, ...]]:
    names = list(dict.fromkeys([*before, *after]))
    rows = [(name, str(before.get(name, 0)), str(after.get(name, 0))) for name in names]
    return [*rows, ("all", str(sum(before.values())), str(sum(after.values())))]
