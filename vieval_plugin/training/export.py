"""Export results as training examples (`vieval export`), optionally rebalanced, and
summarise them in tables.

The two rebalancings are those of T2I-Eval's training data: of its sub-tasks, and of the
scores within one. Source: Tu et al. (2024), section on the training set and Table 5.
The judge sets how often each kind is repeated.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.conversation import Exchange, TrainingUnit
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.judges.spec import Export
from vieval_plugin.records import OWN, Record
from vieval_plugin.results.lookup import Lookup
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.tables import text_table
from vieval_plugin.text.wording import plural
from vieval_plugin.training.chat_format import write

#: How far a verdict may be from the human mean; Wang et al. (2025), section on agent tuning.
MARGIN = 0.3


@dataclass(frozen=True)
class ExportChoices:
    """Options of an export."""

    #: True repeats examples until scores and sub-tasks are balanced.
    rebalance: bool = False
    #: Seed of the rebalancing.
    seed: int = 0
    #: How far a verdict may be from the mean of human ratings.
    margin: float = MARGIN


def export(
    judge: str,
    lookup: Lookup,
    file: Path,
    choices: ExportChoices,
) -> Iterator[str]:
    """Write a judge's conversations as examples; yield their number, and tables of the
    units found and written.

    VievalError if there are no verdicts of that judge, or if a benchmark's licence does
    not allow training.
    """
    spec = judge_registry.judge(judge)
    judge = spec.name
    how = spec.export
    if how is None:
        judges = judge_registry.judges().values()
        exporting = ", ".join(spec.name for spec in judges if spec.export)
        raise VievalError(
            f"{judge} has no conversations to export; use one of: {exporting}"
        )
    if choices.rebalance and not how.repetitions:
        raise VievalError(f"--rebalance is not supported for {judge}; remove it")
    judged = [record for record in lookup.records if record.provenance.judge == judge]
    if not judged:
        raise VievalError(f"the results contain no verdicts from {judge}")
    require_trainable(judged)
    exported = judged
    if aspect := how.human_aspect:
        if not any(record.ratings.get(aspect) for record in judged):
            raise VievalError(
                f"{judge} requires verdicts with human ratings of {aspect}; "
                "export a run on a rated benchmark"
            )
        exported = [
            record
            for record in judged
            if is_near_human(
                record,
                aspect,
                choices.margin,
            )
        ]
    written = units = list(_units(lookup, exported, how))
    if choices.rebalance:
        written = rebalanced(units, choices.seed, how.repetitions)
    examples = [example for unit in written for example in unit.examples]
    write(file, examples)
    written_examples = plural(len(examples), "example")
    yield f"wrote {file}: {written_examples} from {plural(len(judged), 'verdict')}"
    yield ""
    if aspect:
        yield from _part_lines(judged, exported, choices.margin)
    else:
        yield from _sub_task_lines(units, written)
    if how.repetitions:
        yield (
            f"seed {choices.seed}"
            if choices.rebalance
            else "not rebalanced (--rebalance)"
        )


def is_near_human(record: Record, aspect: str, margin: float) -> bool:
    """Return whether a verdict's score is at most `margin` from the mean of its human
    ratings; False without either.
    """
    ratings = record.ratings.get(aspect, ())
    rated = [value for value in ratings if not math.isnan(value)]
    score = record.verdict.scores.get(aspect)
    if not rated or score is None:
        return False
    # scores and ratings are tenths and thirds: tolerate their rounding
    return abs(score - math.fsum(rated) / len(rated)) <= margin + 1e-9


def require_trainable(judged: Sequence[Record]) -> None:
    """Raise VievalError if verdicts are on data that may not be used for training."""
    names = dict.fromkeys(record.id.benchmark for record in judged)
    names.pop(OWN, None)
    for name in names:
        benchmark = benchmark_registry.benchmarks().get(name)
        if benchmark is None:
            raise VievalError(
                f"{name}: unknown benchmark, so its licence for training is unknown; "
                "pass --benchmark FOLDER with its benchmark.yaml, set VIEVAL_BENCHMARKS, "
                "or install its package"
            )
        if not benchmark.trainable:
            reason = f"its licence does not allow training ({benchmark.licence})"
            raise VievalError(f"{name}: {reason}; export a run on other samples")


def _units(
    lookup: Lookup, judged: Sequence[Record], how: Export
) -> Iterator[TrainingUnit]:
    exported: set[SampleId] = set()  # a candidate of several contests is exported once
    for record in tqdm(judged, desc="Exporting", unit="sample", disable=None):
        conversation = lookup.conversation(record)
        for identity, exchanges in _split_by_sample(record, conversation):
            if identity not in exported:
                if record.votes:
                    exported.add(identity)
                yield from how.units(identity, exchanges)


def _split_by_sample(
    record: Record, exchanges: Sequence[Exchange]
) -> Iterator[tuple[SampleId, Sequence[Exchange]]]:
    """Yield the conversations of a record: one, or for a contest one per candidate,
    whose number begins its paths.
    """
    judge = judge_registry.judge(record.provenance.judge)
    if record.votes is None or judge.rates == "contest":
        yield record.id, exchanges
        return
    for number, candidate in enumerate(record.candidates, start=1):
        candidate_exchanges = []
        for exchange in exchanges:
            first, *further = exchange.step.path
            path = tuple(further)
            if first == str(number):
                ask = replace(exchange.ask, path=path)
                step = replace(exchange.step, path=path)
                candidate_exchanges.append(replace(exchange, ask=ask, step=step))
        yield candidate, candidate_exchanges


def _sub_task_lines(
    all_units: Sequence[TrainingUnit], written_units: Sequence[TrainingUnit]
) -> Iterator[str]:
    examples, written = (
        Counter(example.sub_task for unit in units for example in unit.examples)
        for units in (all_units, written_units)
    )
    rows = [
        (name, str(examples[name]), str(written[name]))
        for name in {**examples, **written}
    ]
    total = ("all", str(examples.total()), str(written.total()))
    yield from text_table([("sub-task", "examples", "written"), *rows, total])
    for name, units in (("scores", all_units), ("scores written", written_units)):
        counts = {name: range(BINS), **dict(sorted(score_counts(units).items()))}
        columns = [(title, *map(str, numbers)) for title, numbers in counts.items()]
        yield from ("", *text_table(zip(*columns, strict=True)))
    yield ""


def _part_lines(
    judged: Sequence[Record], exported: Sequence[Record], margin: float
) -> Iterator[str]:
    verdicts, exported_counts = (
        Counter(record.id.part for record in records) for records in (judged, exported)
    )
    rows = [
        (
            part,
            str(n),
            str(exported_counts[part]),
            str(n - exported_counts[part]),
        )
        for part, n in verdicts.items()
    ]
    if len(rows) > 1:
        dropped = len(judged) - len(exported)
        rows.append(("all", str(len(judged)), str(len(exported)), str(dropped)))
    yield from text_table([("part", "verdicts", "kept", "dropped"), *rows])
    yield ""
    yield f"margin {margin:g}"


BINS = 11


def rebalanced(
    units: Sequence[TrainingUnit], seed: int, repetitions: Mapping[str, int]
) -> list[TrainingUnit]:
    """Repeat units until every score has the third quartile of the counts of 0 to 10,
    then repeat the kinds; shuffled.

    The units of a score are repeated as often as they fit into the quartile, and
    sampled for the remainder.
    """
    rng = random.Random(seed)
    by_category: dict[tuple[str, str], list[TrainingUnit]] = defaultdict(list)
    for unit in units:
        by_category[unit.kind, unit.category].append(unit)
    repeated = []
    for (kind, _), in_category in by_category.items():
        balanced = _balance_scores(
            [unit for unit in in_category if unit.score is not None], rng
        )
        without_score = [unit for unit in in_category if unit.score is None]
        repeated += (without_score + balanced) * repetitions.get(kind, 1)
    rng.shuffle(repeated)
    return repeated


def _balance_scores(
    units: Sequence[TrainingUnit], rng: random.Random
) -> list[TrainingUnit]:
    bins: dict[int, list[TrainingUnit]] = {number: [] for number in range(BINS)}
    for unit in units:
        bins[bin_of(unit.score or 0.0)].append(unit)
    sizes = [len(in_bin) for in_bin in bins.values()]
    target = int(np.percentile(sizes, 75))
    balanced = []
    for in_bin in filter(None, bins.values()):
        times, remainder = divmod(target, len(in_bin))
        balanced += in_bin * times + rng.sample(in_bin, remainder)
    # the quartile of a category is 0 if most scores never occur: such a category is not changed
    return balanced or list(units)


def bin_of(score: float) -> int:
    """Round a score of 0 to 10 down to a whole number."""
    return min(max(math.floor(score), 0), BINS - 1)


def score_counts(units: Sequence[TrainingUnit]) -> Mapping[str, tuple[int, ...]]:
    """Count, for each scored category, the units with each of the scores 0 to 10."""
    histograms: dict[str, list[int]] = {}
    for unit in units:
        if unit.score is not None:
            histograms.setdefault(unit.category, [0] * BINS)[bin_of(unit.score)] += 1
    return {category: tuple(numbers) for category, numbers in histograms.items()}
