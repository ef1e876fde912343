"""The plan of a card: which judge is asked about which samples of which benchmark, and how many calls that takes."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vieval_plugin.benchmarks.benchmark import Benchmark, data_root
from vieval_plugin.config import Config
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.meta_evaluation.statistics import Rating
from vieval_plugin.readers.samples import SampleRow, SampleSource, fingerprint_of, image_stamps
from vieval_plugin.records import fingerprint, target_json
from vieval_plugin.run.plan import to_ask
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.session import Counted, Session
from vieval_plugin.tasks import tasks

SAMPLES, CONTESTS = 600, 400
"""Samples of a benchmark of ratings, and contests of one of votes, where nobody says how many."""


@dataclass(frozen=True)
class PlannedEntry:
    """A judge on the sample of a benchmark; `available` is how many samples it could be asked about."""

    benchmark: Benchmark
    prepared: PreparedJudge
    judged: tuple[Judged, ...]
    available: int

    @property
    def stem(self) -> str:
        """The beginning of the names of its files."""
        return "_".join(filter(None, (self.benchmark.name, self.prepared.spec.name, self.prepared.setting)))

    @property
    def unit(self) -> str:
        """What its samples are called."""
        return "contests" if isinstance(self.judged[0], Contest) else "samples"

    @property
    def cells(self) -> Mapping[tuple[str, str], int]:
        """The number of samples by part and image model; contests have no image model."""
        return Counter((judged.id.part, judged.id.image_model) for judged in self.judged)

    @property
    def source(self) -> SampleSource:
        """Its samples as what is to be judged."""
        words = [
            word for judged in self.judged for word in (target_json(judged), fingerprint(judged), image_stamps(judged))
        ]
        rows = [SampleRow(judged, str(judged.id)) for judged in self.judged]
        name = f"a sample of {self.benchmark.name}"
        return SampleSource(name, lambda: iter(rows), fingerprint_of([], *words), total=len(rows))


def draw_sample(judged: Sequence[Judged], n: int, seed: int) -> list[Judged]:
    """At most n samples, as many of each part and image model as of any other, as far as there are so many.

    What is left over after that goes to cells at random, one each. A larger sample of the same seed holds a smaller
    one but for these.

    Args:
        judged: in any order, on which the outcome does not depend.
        n: how many.
        seed: of what is drawn.
    """
    cells: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for sample in sorted(judged, key=lambda sample: str(sample.id)):
        cells[sample.id.part, sample.id.image_model].append(sample)
    sizes = dict(zip(cells, even_sizes(list(map(len, cells.values())), n, seed), strict=True))
    drawn: list[Judged] = []
    for cell, members in cells.items():
        rng = np.random.default_rng([seed, zlib.crc32("/".join(cell).encode())])
        drawn += [members[place] for place in sorted(rng.permutation(len(members))[: sizes[cell]])]
    return drawn


def even_sizes(capacities: Sequence[int], n: int, seed: int) -> list[int]:
    """How many to take of each cell so that n are taken as evenly as can be, none of it more than it has.

    >>> even_sizes([5, 100, 100], 25, 0), sum(even_sizes([5, 100, 100], 26, 0)), even_sizes([2, 3], 9, 0)
    ([5, 10, 10], 26, [2, 3])
    """
    n, level = min(n, sum(capacities)), 0
    while sum(min(capacity, level + 1) for capacity in capacities) <= n and level < max(capacities, default=0):
        level += 1
    sizes = [min(capacity, level) for capacity in capacities]
    room = [place for place in np.random.default_rng(seed).permutation(len(sizes)) if capacities[place] > sizes[place]]
    for place in room[: n - sum(sizes)]:
        sizes[place] += 1
    return sizes


def planned(
    benchmark: Benchmark, judges: Sequence[PreparedJudge], options: Config, n: int | None, seed: int
) -> tuple[list[PlannedEntry], list[str]]:
    """The entries of a benchmark, and lines on what of it is not prepared.

    A benchmark of contests is judged by judges of contests, where any of these is one.

    Args:
        benchmark: with samples that people rated or voted on.
        judges: those that were asked for.
        options: which say where data is.
        n: samples of each judge; None for as many as is usual.
        seed: of the sample.

    Raises:
        VievalError: the sample leaves a cell with fewer samples than the benchmark's statistics need.
    """
    loaded, lines = _loaded(benchmark, options)
    contests = any(isinstance(judged, Contest) for judged in loaded)
    fit = [judge for judge in judges if (judge.spec.rates == "contest") == contests]
    known = [(judge, _parts(benchmark.name, judge)) for judge in fit or (judges if contests else ())]
    entries = []
    for judge, parts in known:
        askable = to_ask([judged for judged in loaded if judged.id.part in parts and _is_labelled(judged)], judge)
        if askable:
            drawn = draw_sample(askable, n or (CONTESTS if contests else SAMPLES), seed)
            entries.append(PlannedEntry(benchmark, judge, tuple(drawn), len(askable)))
            _require_cells(entries[-1], askable)
    if any(parts for _, parts in known) and not entries and not lines:
        lines = [f"the images of {benchmark.name} are not there; run: vieval prepare {benchmark.name}"]
    return entries, lines


def _loaded(benchmark: Benchmark, options: Config) -> tuple[list[Judged], list[str]]:
    """The samples of all parts that are there, and a line for the first that is not."""
    loaded: list[Judged] = []
    absent: dict[str, str] = {}
    for part in benchmark.parts:
        try:
            root = data_root(benchmark, options)
            if benchmark.missing(root, part):
                absent[part] = "not prepared"
            loaded += benchmark.load(root, part)
        except VievalError as error:
            absent[part] = str(error)
    if not absent:
        return loaded, []
    of = "" if len(absent) == len(benchmark.parts) else f" ({', '.join(absent)})"
    return loaded, [f"{benchmark.name}{of} is not prepared; run: vieval prepare {benchmark.name}"]


def _parts(benchmark: str, judge: PreparedJudge) -> set[str]:
    """The parts of a benchmark that a judge has a task of."""
    return {task.part for task in tasks() if (task.benchmark, task.judge) == (benchmark, judge.spec.name)}


def _is_labelled(judged: Judged) -> bool:
    """True where people rated a sample, or gave a contest a vote that counts."""
    return bool(judged.votes.vote) if isinstance(judged, Contest) else bool(judged.ratings)


def _require_cells(entry: PlannedEntry, askable: Sequence[Judged]) -> None:
    """VievalError where a cell that could have enough samples for a statistic is planned with fewer."""
    report, spec = entry.benchmark.report, entry.prepared.spec
    rating = Rating(spec.aspects, against_all=spec.against_all)
    least = max((statistic.least for statistic in report.statistics(rating)), default=1)
    there = Counter((judged.id.part, judged.id.image_model) for judged in askable)
    poor = [cell for cell, size in there.items() if entry.cells.get(cell, 0) < min(least, size)]
    if poor:
        needed = sum(min(least, size) for size in there.values())
        raise VievalError(
            f"{entry.benchmark.name}: {len(entry.judged)} {entry.unit} leave {'/'.join(filter(None, poor[0]))} with "
            f"{entry.cells.get(poor[0], 0)}, and {least} are needed of each; --samples {needed} or more will do"
        )


@dataclass(frozen=True)
class PlannedCalls:
    """Calls of a model that a part of a card begins with; `stored` of them are in the store.

    What a judge asks after an answer is not known before, where `at_least`; `estimated` ones follow from others.
    """

    name: str
    asked: int
    stored: int = 0
    at_least: bool = False
    estimated: bool = False

    @property
    def line(self) -> str:
        """In words, for a terminal."""
        least = "at least " if self.at_least else "about " if self.estimated else ""
        stored = f", of which {self.stored:,} are in the store" if self.stored else ""
        return f"{self.name}: {least}{self.asked:,} calls{stored}"


async def calls_of(
    entries: Sequence[PlannedEntry], repeats: int, audited: int, changes: int, session: Session, options: Config
) -> list[PlannedCalls]:
    """Count the calls of a card before anything is asked.

    Args:
        entries: that are to be judged.
        repeats: samples of each judge that are judged again, three times past the store.
        audited: samples of each judge whose images are changed.
        changes: in how many ways they are changed at most.
        session: which knows the store.
        options: those in force.
    """
    lines, per_sample = [], dict[str, float]()
    for entry in entries:
        counts = Counted()
        await session.count(entry.judged, entry.prepared, counts)
        # what is answered once is stored, and not asked again
        stored, asked = len(counts.stored), len(counts.to_ask) if options.store.use else counts.to_ask.total()
        exact = entry.prepared.calls.isdecimal()
        name = f"{entry.benchmark.name} by {entry.prepared.spec.name}, {len(entry.judged)} {entry.unit}"
        lines.append(PlannedCalls(name, asked + stored, stored, not exact))
        per_sample.setdefault(entry.prepared.spec.name, (asked + stored) / len(entry.judged))
    for title, times in ((f"{repeats} samples three times", 3 * repeats), (f"{audited} changed", audited * changes)):
        lines += [
            PlannedCalls(f"{name}, {title}", round(times * calls), estimated=True)
            for name, calls in per_sample.items()
            if times
        ]
    return lines


def require_budget(calls: Sequence[PlannedCalls], budget: int | None) -> None:
    """VievalError where calls that are not in the store are more than a budget."""
    needed = sum(row.asked - row.stored for row in calls)
    if budget is not None and needed > budget:
        raise VievalError(
            f"the card takes {needed:,} calls, and --budget is {budget:,}; give fewer with --samples, --repeats and --audit"
        )
