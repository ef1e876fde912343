"""Plan a card: samples, benchmarks and judges, and the number of calls."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from vieval_plugin.audit.anchor import REPEATS
from vieval_plugin.audit.changes import changes
from vieval_plugin.audit.material import random_judgeable_samples
from vieval_plugin.backends.http.sight import MOST_QUESTIONS
from vieval_plugin.benchmarks.benchmark import Benchmark, data_root
from vieval_plugin.benchmarks.tasks import tasks
from vieval_plugin.config import Config
from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.meta_evaluation.statistics import Rating
from vieval_plugin.readers.samples import (
    SampleRow,
    SampleSource,
    fingerprint_of,
    image_stamps,
)
from vieval_plugin.records import fingerprint, target_json
from vieval_plugin.run.plan import to_ask
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.session import QuestionCounts, Session
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.decisions import SIGNIFICANCE_LEVEL
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural

#: Samples of a benchmark of ratings, and contests of one of votes, where nobody says how many.
SAMPLES = 600
CONTESTS = 400


@dataclass(frozen=True)
class PlannedCalls:
    """Answers that a run needs from a model, and the calls for those that are not in
    the store.

    A reply that cannot be read is requested again, which is not known in advance.
    """

    #: Subject of the questions.
    name: str
    #: Calls; a repeated question counts once if answers are stored.
    calls: int
    answers: int
    #: `at least` if a judge may ask follow-up questions, `at most` if changes may not apply,
    #: `about` for both.
    qualifier: str = ""

    def __str__(self) -> str:
        """Return a line for a terminal.

        >>> str(PlannedCalls("viescore", 1180, 1200))
        'viescore: 1,180 calls for 1,200 answers'
        """
        calls = f"{self.calls:,} calls for {self.answers:,} answers"
        qualified_calls = " ".join(filter(None, (self.qualifier, calls)))
        return f"{self.name}: {qualified_calls}"


def planned_calls(
    name: str,
    counts: QuestionCounts,
    prepared: PreparedJudge,
    options: Config,
) -> PlannedCalls:
    """Estimate the calls for a judge's questions from their counts."""
    # stored answers are not requested again
    calls = len(counts.to_ask) if options.store.use else counts.to_ask.total()
    answers = counts.to_ask.total() + counts.stored.total()
    qualifier = "" if prepared.calls.isdecimal() else "at least"
    return PlannedCalls(name, calls, answers, qualifier)


@dataclass(frozen=True)
class PlannedEntry:
    """A judge on the sample of a benchmark; `available` is the number of samples that
    it could judge.
    """

    benchmark: Benchmark
    prepared: PreparedJudge
    judged: tuple[Judged, ...]
    available: int

    @property
    def stem(self) -> str:
        """Start of its file names."""
        names = (self.benchmark.name, self.prepared.spec.name, self.prepared.setting)
        return "_".join(filter(None, names))

    @property
    def unit(self) -> str:
        """Name of its samples."""
        if isinstance(self.judged[0], Contest):
            return "contests"
        return "samples"

    @property
    def cells(self) -> Mapping[tuple[str, str], int]:
        """Number of samples by part and image model; contests have no image model."""
        return Counter(
            (judged.id.part, judged.id.image_model) for judged in self.judged
        )

    @property
    def source(self) -> SampleSource:
        """Its samples as a source to judge."""
        texts = [
            text
            for j in self.judged
            for text in (target_json(j), fingerprint(j), image_stamps(j))
        ]
        rows = [SampleRow(judged, str(judged.id)) for judged in self.judged]
        name = f"a sample of {self.benchmark.name}"
        digest = fingerprint_of([], *texts)
        return SampleSource(name, lambda: iter(rows), digest, total=len(rows))


def draw_sample(judged: Sequence[Judged], n: int, seed: int) -> list[Judged]:
    """Draw at most n samples, spread as evenly as possible over parts and image models.

    Remaining samples go to random cells, at most one each. A larger sample with the
    same seed contains a smaller one, apart from these.

    Args:
        judged: in any order, which does not affect the result.
        n: size of the sample.
        seed: of the draw.
    """
    ordered = sorted(judged, key=lambda sample: str(sample.id))
    cells = grouped(((s.id.part, s.id.image_model), s) for s in ordered)
    sizes = even_sizes(list(map(len, cells.values())), n, seed)
    sampled: list[Judged] = []
    for (cell, members), size in zip(cells.items(), sizes, strict=True):
        cell_seed = zlib.crc32("/".join(cell).encode())
        rng = np.random.default_rng([seed, cell_seed])
        indexes = rng.permutation(len(members))[:size]
        sampled += [members[index] for index in sorted(indexes)]
    return sampled


def even_sizes(capacities: Sequence[int], n: int, seed: int) -> list[int]:
    """Sizes of samples of cells, n in total, as even as possible, none larger than its
    cell.

    >>> even_sizes([5, 100, 100], 25, 0), sum(even_sizes([5, 100, 100], 26, 0)), even_sizes([2, 3], 9, 0)
    ([5, 10, 10], 26, [2, 3])
    """
    n = min(n, sum(capacities))
    level = 0
    while sum(min(capacity, level + 1) for capacity in capacities) <= n and level < max(
        capacities, default=0
    ):
        level += 1
    sizes = [min(capacity, level) for capacity in capacities]
    random_order = np.random.default_rng(seed).permutation(len(sizes))
    room = [index for index in random_order if capacities[index] > sizes[index]]
    for index in room[: n - sum(sizes)]:
        sizes[index] += 1
    return sizes


def planned(
    benchmark: Benchmark,
    judges: Sequence[PreparedJudge],
    options: Config,
    n: int | None,
    seed: int,
) -> tuple[list[PlannedEntry], list[str]]:
    """Plan the entries of a benchmark; also return lines on unprepared parts.

    A benchmark of contests is judged by judges of contests, if any of these judges is
    one.

    Args:
        benchmark: with samples that people rated or voted on.
        judges: the requested ones.
        options: with the data folder.
        n: samples of each judge; None for the default.
        seed: of the sample.

    Raises:
        VievalError: the sample leaves a cell with fewer samples than the benchmark's statistics
            need.
    """
    loaded, lines = _loaded(benchmark, options)
    contests = any(isinstance(judged, Contest) for judged in loaded)
    fit = [judge for judge in judges if (judge.spec.rates == "contest") == contests]
    entries = []
    has_tasks = False
    for judge in fit or (judges if contests else ()):
        parts = {
            task.part
            for task in tasks()
            if (task.benchmark, task.judge) == (benchmark.name, judge.spec.name)
        }
        has_tasks = has_tasks or bool(parts)
        askable = to_ask(
            [
                judged
                for judged in loaded
                if judged.id.part in parts and _is_labelled(judged)
            ],
            judge,
        )
        if askable:
            sampled = draw_sample(
                askable, n or (CONTESTS if contests else SAMPLES), seed
            )
            entries.append(PlannedEntry(benchmark, judge, tuple(sampled), len(askable)))
            _require_cells(entries[-1], askable)
    if has_tasks and not entries and not lines:
        lines = [
            f"the images of {benchmark.name} were not found; run `vieval prepare "
            f"{benchmark.name}`"
        ]
    return entries, lines


def _loaded(benchmark: Benchmark, options: Config) -> tuple[list[Judged], list[str]]:
    """Load the samples of all available parts; also return lines on parts without data
    or images.
    """
    loaded: list[Judged] = []
    unprepared = []
    without_images: dict[str, list[str]] = {}
    for part in benchmark.parts:
        try:
            root = data_root(benchmark, options)
            missing = benchmark.missing(root, part)
            loaded += benchmark.load(root, part)
        except VievalError:
            unprepared.append(part)
        else:
            without_images |= {part: missing} if missing else {}
    states = [(unprepared, "is not prepared")] if unprepared else []
    missing = list(chain.from_iterable(without_images.values()))
    if missing:
        states.append((list(without_images), _missing_images_sentence(missing)))
    lines = []
    for parts, state in states:
        subject = benchmark.name
        if len(parts) < len(benchmark.parts):
            subject = f"{subject} ({', '.join(parts)})"
        lines.append(f"{subject} {state}; run: vieval prepare {benchmark.name}")
    return loaded, lines


def _missing_images_sentence(lines: Sequence[str]) -> str:
    image_lines = [line for line in lines if " image" in line]
    first_line = image_lines[0] if image_lines else lines[0]
    first = first_line.partition("; ")[0]
    sentence = f"has ratings, but images are missing: {first}"
    if len(lines) == 1:
        return sentence
    return f"{sentence}, and more in {plural(len(lines) - 1, 'place')}"


def _is_labelled(judged: Judged) -> bool:
    """True if people rated a sample, or gave a contest a vote that counts."""
    if isinstance(judged, Contest):
        return bool(judged.votes.vote)
    return bool(judged.ratings)


def _require_cells(entry: PlannedEntry, askable: Sequence[Judged]) -> None:
    """Raise VievalError if a cell is planned with too few samples for a statistic
    although it has enough.
    """
    report = entry.benchmark.report
    spec = entry.prepared.spec
    rating = Rating(spec.aspects, against_all=spec.against_all)
    needed_of_each = max(
        (statistic.least_samples for statistic in report.statistics(rating)), default=1
    )
    available = Counter((judged.id.part, judged.id.image_model) for judged in askable)
    poor = [
        cell
        for cell, size in available.items()
        if entry.cells.get(cell, 0) < min(needed_of_each, size)
    ]
    if poor:
        needed = sum(min(needed_of_each, size) for size in available.values())
        raise VievalError(
            f"{entry.benchmark.name}: with {len(entry.judged)} {entry.unit}, "
            f"{'/'.join(filter(None, poor[0]))} has only "
            f"{entry.cells.get(poor[0], 0)}, "
            f"but each combination of part and image model requires {needed_of_each}; "
            f"use --samples {needed} or more"
        )


async def calls_of(
    entries: Sequence[PlannedEntry],
    repeats: int,
    audited: int,
    session: Session,
    options: Config,
    seed: int,
) -> list[PlannedCalls]:
    """Count the calls of a card before the model is asked.

    Args:
        entries: that are to be judged.
        repeats: samples of each judge that are judged again, three times past the store.
        audited: samples of each judge whose images are changed.
        session: with the store.
        options: in force.
        seed: of the samples that are judged again and changed.
    """
    lines = []

    async def add(
        entry: PlannedEntry,
        judged: Sequence[Judged],
        subject: str,
        text: str = "",
        times: int = 0,
    ) -> None:
        """Add a row on some samples; `times` is how often each is asked without the
        store, 0 to store answers.
        """
        counts = QuestionCounts()
        await session.count(judged, entry.prepared, counts)
        count = f"{len(judged)} {entry.unit}"
        name = f"{subject}, {count}{text}"
        row = planned_calls(name, counts, entry.prepared, options)
        if times:
            row = replace(row, calls=times * row.answers, answers=times * row.answers)
        if times > REPEATS:  # of changes not all may apply
            row = replace(row, qualifier="about" if row.qualifier else "at most")
        lines.append(row)

    for entry in entries:
        subject = f"{entry.benchmark.name} by {entry.prepared.spec.name}"
        await add(entry, entry.judged, subject)
    sessions = sum(row.calls > 0 for row in lines)
    first = first_of_each_judge(entries)
    for entry in first if repeats else ():
        sampled = draw_sample(entry.judged, repeats, seed)
        await add(entry, sampled, entry.prepared.spec.name, " three times", REPEATS)
        sessions += REPEATS
    for entry in first if audited else ():
        require_audit_size(entry, audited)
        try:
            samples = audited_samples(entry, audited, seed)
        except VievalError:  # the card says so
            continue
        # as they are too: these are in the store, unless it is not used or answers of before do not
        # count
        times = len(changes()) + 1
        await add(entry, samples, entry.prepared.spec.name, " changed", times)
        sessions += 1
    if any(row.calls for row in lines):
        lines.append(
            PlannedCalls(
                "checking whether the server enforces JSON schemas and sees images",
                sessions * (1 + MOST_QUESTIONS),
                0,
                "at most",
            )
        )
    return lines


def require_audit_size(entry: PlannedEntry, n: int) -> None:
    """Raise VievalError if no effect on `n` samples can be significant."""
    needed = _least_audited(entry)
    if n < needed:
        spec = entry.prepared.spec
        raise VievalError(
            f"an audit of {spec.name} requires at least {needed} instructions, got "
            f"--audit {n}; use --audit {needed} or more, or --audit 0 for none"
        )


def _least_audited(entry: PlannedEntry) -> int:
    """Fewest instructions of which an effect can be significant."""
    effects = len(changes()) * (len(entry.prepared.spec.aspects) or 1)
    return math.ceil(1 + math.log2(effects / SIGNIFICANCE_LEVEL))


def audited_samples(entry: PlannedEntry, n: int, seed: int) -> list[Judged]:
    """Choose the samples of an entry whose images are changed.

    Raises:
        VievalError: there are none, or too few for a significant effect.
    """
    samples = random_judgeable_samples(entry.judged, entry.prepared, n, seed)
    needed = _least_audited(entry)
    groups = len({(sample.kind, sample.group) for sample in samples})
    if groups < needed:
        raise VievalError(
            f"an audit requires at least {needed} instructions, got {groups}; use "
            "more --samples or a larger --audit"
        )
    return samples


def first_of_each_judge(entries: Sequence[PlannedEntry]) -> list[PlannedEntry]:
    """First entry of each judge, some of whose samples are judged again and changed."""
    by_judge = {entry.prepared.spec.name: entry for entry in reversed(entries)}
    return list(by_judge.values())[::-1]


def require_budget(calls: Sequence[PlannedCalls], budget: int | None) -> None:
    """Raise VievalError if the calls exceed the budget."""
    needed = sum(row.calls for row in calls)
    if budget is not None and needed > budget:
        raise VievalError(
            f"the card requires {needed:,} calls, "
            f"but --budget is {budget:,}; "
            "reduce --samples, --repeats or --audit"
        )
