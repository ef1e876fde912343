"""Systems compared two by two: judges, or image models, each pair on what both of them have scores
of.

No number of one system, and no difference, interval or raw p of two, depends on a third. Only the
correction of p does, and its family is printed.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, product, starmap

import numpy as np

from vieval_plugin.stats.bootstrap import Seed
from vieval_plugin.stats.comparison import (
    PERMUTATIONS,
    AveragedDifference,
    PairedComparison,
    PairedStatistic,
    paired_comparison,
)
from vieval_plugin.stats.decisions import (
    LEAST_COVERAGE,
    SIGNIFICANCE_LEVEL,
)
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.paired_correlations import (
    CorrelationDifference,
    independence_p,
)
from vieval_plugin.stats.ranking import holm, rank_ranges
from vieval_plugin.text.wording import plural

OVER_BENCHMARKS = "all benchmarks"


@dataclass(frozen=True)
class System:
    """A judge or an image model in a comparison."""

    #: Name in tables.
    label: str
    #: Number of samples that it has a score for.
    n: int
    #: Reason why it has no value, or empty.
    undefined: str = ""
    #: Reason why it is in no order although it has a value: a task type, or too many samples, are
    #: missing.
    unranked: str = ""
    #: Its own number, on all that it scored; of `ComparedStatistic` only where no test computes it.
    value: float = math.nan
    #: Best and worst rank that the tests leave it, None without a rank.
    ranks: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class CommonSamplesStatistic:
    """Two systems on the samples that both have scores of."""

    #: Number of these samples.
    n: int
    #: Paired statistic, None if missing.
    statistic: PairedStatistic | None = None
    #: Result of a test of another kind, in the place of the statistic's.
    result: PairedComparison | None = None
    #: False where the result is there to be seen, and too little to decide.
    decides: bool = True
    #: Lines to be read beside it.
    notes: tuple[str, ...] = ()

    def tested(
        self, draws: int, seed: Seed, intervals: bool
    ) -> PairedComparison | None:
        """Return the result of the two; None if a test is impossible."""
        if self.statistic is None:
            return self.result
        return paired_comparison(self.statistic, draws, seed, intervals)


@dataclass(frozen=True, eq=False)
class ComparedStatistic:
    """A statistic on which the systems of a benchmark are compared."""

    #: The benchmark's part, or `all`.
    part: str
    #: The rated aspect.
    aspect: str
    #: Way of computing it, in words.
    statistic: str
    #: All systems, in any order.
    systems: tuple[System, ...]
    #: Two systems, by their indices, on what both have scores of; a system with itself has all its
    #: samples.
    pair: Callable[[int, int], CommonSamplesStatistic]
    #: Name of samples.
    unit: str = "samples"
    #: Name of systems.
    entrants: str = "judges"
    #: Reason why the statistic has no paired test.
    untestable_reason: str = ""
    #: Lines to be read beside the result.
    notes: tuple[str, ...] = ()
    #: p of a system, by its index, against its constant baseline: 1 where it is not above, NaN
    #: where untestable.
    above_constant: Callable[[int, Seed], float] | None = None
    #: As `pair`, with the first one's failures as the lowest value; no statistic or result where it
    #: has none.
    with_failures: Callable[[int, int], CommonSamplesStatistic] | None = None
    #: Labels in the order of the systems, where it is another than that of their numbers.
    order: tuple[str, ...] = ()
    #: Adjusted p up to which two systems are significantly different.
    level: float = SIGNIFICANCE_LEVEL
    #: Reason why no pair is decided, whatever its p; empty where pairs are.
    undecided_reason: str = ""
    #: Tests that were made, so that all who compare these systems make each once.
    tests: dict[Hashable, SystemPair | None] = field(default_factory=dict, repr=False)
    #: Own values, and p against the constant baseline, each once in the same way.
    alone: dict[Hashable, float] = field(default_factory=dict, repr=False)

    @property
    def index_by_label(self) -> dict[str, int]:
        return {system.label: index for index, system in enumerate(self.systems)}


@dataclass(frozen=True)
class SystemPair:
    """Two systems on common samples."""

    #: Label of one.
    first: str
    #: Label of the other.
    second: str
    #: Number of common samples.
    n: int
    #: The test's, first less second.
    result: PairedComparison
    #: p adjusted within its family.
    adjusted: float
    #: Lines to be read beside it.
    notes: tuple[str, ...] = ()
    #: True where the adjusted p is small only while the better one's failures are left out.
    doubtful: bool = False
    #: False where it is too little to decide: it has no adjusted p.
    decides: bool = True
    #: Adjusted p up to which they are significantly different.
    level: float = SIGNIFICANCE_LEVEL

    @property
    def significant(self) -> bool:
        """True where the adjusted p is at most `level`, also with the better one's failures as
        the lowest value.
        """
        return self.adjusted <= self.level and not self.doubtful

    @property
    def turned(self) -> SystemPair:
        """The same pair with the second system first."""
        return replace(
            self, first=self.second, second=self.first, result=self.result.turned
        )

    @property
    def reason(self) -> str:
        """Reason why a small adjusted p shows no difference; empty if it shows one."""
        if not self.doubtful:
            return ""
        better = self.better_first()
        return f"significant only if failures of {better.first} are left out"

    def better_first(self) -> SystemPair:
        """Return the pair with the better system first, so that its difference is not negative."""
        if self.result.difference.value < 0:
            return self.turned
        return self


@dataclass(frozen=True, eq=False)
class Comparison:
    """Systems compared on a statistic."""

    compared: ComparedStatistic
    #: Ranked systems by their own number, then those with a number and no rank, then the others.
    systems: tuple[System, ...]
    #: Pairs of ranked systems, the family that p is adjusted in.
    pairs: tuple[SystemPair, ...] = ()
    #: Pairs with a system without a rank, a family of their own.
    other_pairs: tuple[SystemPair, ...] = ()
    #: Reason why there is no pair at all.
    reason: str = ""

    @cached_property
    def all_pairs(self) -> tuple[SystemPair, ...]:
        """Both families."""
        return (*self.pairs, *self.other_pairs)

    @cached_property
    def _pairs_by_labels(self) -> Mapping[frozenset[str], SystemPair]:
        return {
            frozenset((pair.first, pair.second)): pair.better_first()
            for pair in self.all_pairs
        }

    def pair_of(self, label: str, other_label: str) -> SystemPair | None:
        """Return the pair of two systems, the better one first; None where they have no common
        samples.
        """
        return self._pairs_by_labels.get(frozenset((label, other_label)))

    def ordered(self, pair: SystemPair) -> SystemPair:
        """Return a pair as the order has it; of a significant pair, or without an order of its
        own, the better one first.
        """
        order = self.compared.order
        if not order or pair.significant:
            return pair.better_first()
        first_place = order.index(pair.first)
        second_place = order.index(pair.second)
        if first_place < second_place:
            return pair
        return pair.turned

    @property
    def ranked(self) -> tuple[System, ...]:
        """Systems with a rank, in order."""
        return tuple(system for system in self.systems if system.ranks)

    @property
    def family(self) -> str:
        """The correction of p with its families, in words."""
        ranked = plural(len(self.pairs), "pair")
        unranked = plural(len(self.other_pairs), "pair")
        if not self.other_pairs:
            return f"Holm correction over {ranked}"
        entrants = self.compared.entrants
        ranked_share = ""
        if self.pairs:
            ranked_share = f"{ranked} of ranked {entrants}, and separately over "
        return f"Holm correction over {ranked_share}{unranked} with unranked {entrants}"

    def beats(self, label: str, other_label: str) -> bool:
        """True where one system is significantly better than another on what both scored."""
        pair = self.pair_of(label, other_label)
        return pair is not None and pair.significant and pair.first == label

    @property
    def contenders(self) -> frozenset[str]:
        """Labels of ranked systems that hold the best one in at least 95% of cases: no other is
        significantly better.

        Whether the best is left out rests on its own pairs alone, so Bonferroni over these does,
        beside Holm over all pairs, by which the tables go.

        Source: multiple comparisons with the best, Hsu 1996, Multiple Comparisons, chapter 4.
        """
        labels = {system.label for system in self.ranked}
        beaten = set()
        rival_count = len(labels) - 1
        for pair in map(SystemPair.better_first, self.pairs):
            adjusted = pair.result.p * rival_count
            is_small = adjusted <= pair.level
            is_shown = is_small and pair.decides and not pair.doubtful
            if is_shown or pair.significant:
                beaten.add(pair.second)
        return frozenset(labels - beaten)

    @property
    def separated(self) -> tuple[int, ...]:
        """Positions in `ranked` before which a line is drawn: every system above beats every one
        below.
        """
        labels = [system.label for system in self.ranked]
        positions = []
        for position in range(1, len(labels)):
            upper = labels[:position]
            lower = labels[position:]
            if all(starmap(self.beats, product(upper, lower))):
                positions.append(position)
        return tuple(positions)

    def warnings(self) -> tuple[str, ...]:
        """Lines that must be read beside the ranks: what the tests cannot resolve, and
        differences against the order.
        """
        labels = [system.label for system in self.ranked]
        lines = []
        most_pairs = SIGNIFICANCE_LEVEL * (1 + PERMUTATIONS)
        if len(self.pairs) > most_pairs:
            lines.append(
                f"{PERMUTATIONS} permutations are too few for any of {len(self.pairs)} "
                "pairs to differ significantly after the correction, "
                "so no test supports the ranks"
            )
        for better, worse in combinations(labels, 2):
            pair = self.pair_of(better, worse)
            if pair and self.beats(worse, better):
                lines.append(
                    f"{worse} ranks below {better} by its own value, "
                    f"but is significantly better on the {pair.n} "
                    f"{self.compared.unit} they have in common"
                )
        return tuple(lines)


def compare_systems(
    compared: ComparedStatistic,
    benchmark: str,
    options: StatisticsOptions,
    intervals: bool = True,
    against: str | None = None,
) -> Comparison:
    """Test all pairs of systems on a statistic, and rank the systems that cover the benchmark.

    Args:
        compared: from the benchmark's report.
        benchmark: its name; with the part it joins the seed.
        options: number of bootstrap resamples, and the seed.
        intervals: False leaves out the intervals of differences, which take most of the time.
        against: the label of a system whose pairs are a family of their own, also those with an
            unranked one; the others have no intervals.

    Returns:
        Differences with 95% intervals and permutation p-values, each from the two systems alone; p
        adjusted by Holm over the pairs of ranked systems; ranges of ranks. Without pairs, `reason`
        says why.

    Source: PROTOCOLS of this project, "Comparing two judges"; the tests are those of
    `stats.comparison`.

    >>> from vieval_plugin.stats.comparison import MeanDifference
    >>> right = [[1.0] * 9, [0.0] * 9]
    >>> def pair(first: int, second: int) -> CommonSamplesStatistic:
    ...     return CommonSamplesStatistic(9, MeanDifference(right[first], right[second], range(9)))
    >>> systems = (System("bad", 9), System("good", 9))
    >>> found = compare_systems(ComparedStatistic("all", "votes", "accuracy", systems, pair), "mine", StatisticsOptions())
    >>> [system.ranks for system in found.systems], found.pairs[0].result.difference.value
    ([(1, 1), (2, 2)], 1.0)
    """
    systems = systems_by_own_number(compared)
    indices = _defined_indices(compared, systems)
    reason = _missing_pairs_reason(compared, systems)
    if reason:
        return Comparison(compared, systems, reason=reason)
    seed = _seed(compared, benchmark, options)
    unranked = {system.label for system in compared.systems if system.unranked}
    families: dict[object, list[SystemPair]] = {}
    for two in combinations(indices, 2):
        labels = {compared.systems[index].label for index in two}
        is_wanted = against is None or against in labels
        with_interval = intervals and is_wanted
        tested = _tested(compared, two, options.draws, seed, with_interval)
        if tested is None:
            continue
        family: object = against
        if against not in labels:
            family = bool(unranked & labels)
        families.setdefault(family, []).append(tested)
    adjusted_families = [
        _adjusted(family_pairs, compared, seed) for family_pairs in families.values()
    ]
    pairs, other_pairs = _split_by_rank(chain(*adjusted_families), unranked)
    if not families:
        reason = (
            f"no two of these {compared.entrants} share {compared.unit} that a test "
            "can use"
        )
        return Comparison(compared, systems, reason=reason)
    return Comparison(
        compared=compared,
        systems=_ranked(systems, pairs),
        pairs=pairs,
        other_pairs=other_pairs,
    )


def _split_by_rank(
    tested: Iterable[SystemPair], unranked: set[str]
) -> tuple[tuple[SystemPair, ...], tuple[SystemPair, ...]]:
    """Pairs of ranked systems, and pairs with an unranked one."""
    pairs = []
    other_pairs = []
    for pair in tested:
        if unranked & {pair.first, pair.second}:
            other_pairs.append(pair)
        else:
            pairs.append(pair)
    return tuple(pairs), tuple(other_pairs)


def _defined_indices(
    compared: ComparedStatistic, systems: Iterable[System]
) -> list[int]:
    """Indices of systems with a number by label, so that a pair is one in any order of results."""
    index_of = compared.index_by_label
    defined = {system.label for system in systems if not math.isnan(system.value)}
    return [index_of[label] for label in sorted(defined)]


def _tested(
    compared: ComparedStatistic,
    indices: tuple[int, int],
    draws: int,
    seed: Seed,
    intervals: bool,
) -> SystemPair | None:
    """The test of two systems, made once; None where they have no common samples that a test can
    use.
    """
    first, second = (compared.systems[index].label for index in indices)
    seeds = tuple(np.atleast_1d(seed))
    key = (first, second, draws, seeds, intervals)
    if key in compared.tests:
        return compared.tests[key]
    common = compared.pair(*indices)
    result = common.tested(draws, seed, intervals)
    tested = None
    if result and not math.isnan(result.difference.value):
        tested = SystemPair(
            first=first,
            second=second,
            n=common.n,
            result=result,
            adjusted=math.nan,
            notes=common.notes,
            decides=common.decides,
            level=compared.level,
        )
    compared.tests[key] = tested
    return tested


def compare_pair(
    compared: ComparedStatistic,
    first: str,
    second: str,
    benchmark: str,
    options: StatisticsOptions,
    intervals: bool = True,
) -> SystemPair | None:
    """The test of two systems alone, its p not adjusted; None where they have no common samples
    that a test can use.

    Args:
        compared, benchmark, options, intervals: as for `compare_systems`.
        first, second: their labels.
    """
    index_of = compared.index_by_label
    if first not in index_of or second not in index_of:
        return None
    one, other = sorted((first, second))  # as in `compare_systems`
    seed = _seed(compared, benchmark, options)
    indices = (index_of[one], index_of[other])
    pair = _tested(compared, indices, options.draws, seed, intervals)
    if pair is None or pair.first == first:
        return pair
    return pair.turned


def restrict_systems(
    compared: ComparedStatistic, labels: Collection[str]
) -> ComparedStatistic:
    """A statistic of some of its systems; no number depends on those that are left out."""
    indices = [
        index for label, index in compared.index_by_label.items() if label in labels
    ]
    systems = tuple(compared.systems[index] for index in indices)

    def pair(first: int, second: int) -> CommonSamplesStatistic:
        return compared.pair(indices[first], indices[second])

    restricted = replace(compared, systems=systems, pair=pair)
    above_constant = compared.above_constant
    if above_constant is None:
        return restricted
    return replace(
        restricted,
        above_constant=lambda index, seed: above_constant(indices[index], seed),
    )


def above_constant_p(
    compared: ComparedStatistic, benchmark: str, options: StatisticsOptions
) -> dict[str, float]:
    """The p of each system against its constant baseline, not adjusted, by label; none where there
    is no such test.

    Args:
        compared, benchmark, options: as for `compare_systems`.
    """
    if compared.above_constant is None:
        return {}
    seed = _seed(compared, benchmark, options)
    p_values = {}
    for index, system in enumerate(compared.systems):
        if system.undefined:
            continue
        key = (system.label, *seed)
        if key not in compared.alone:
            compared.alone[key] = compared.above_constant(index, seed)
        p_values[system.label] = compared.alone[key]
    return p_values


def correlates(
    pair: Callable[[int, int], CommonSamplesStatistic],
) -> Callable[[int, Seed], float]:
    """The test of a correlation against its constant baseline, which is 0; of
    `ComparedStatistic.above_constant`.
    """

    def above_constant(index: int, seed: Seed) -> float:
        statistic = pair(index, index).statistic
        if not isinstance(statistic, CorrelationDifference):
            return math.nan
        if statistic.estimates()[0] > 0:
            return independence_p(statistic, seed)
        return 1.0

    return above_constant


def average_benchmarks(
    comparisons: Mapping[str, Sequence[ComparedStatistic]],
) -> ComparedStatistic:
    """The mean over benchmarks as one more statistic to compare, each benchmark the mean over its
    parts.

    Args:
        comparisons: by benchmark, the statistics of its parts on which its systems are ranked; two
            benchmarks or more.

    Returns:
        Systems under their labels; one that lacks a benchmark, or is unranked on one, is unranked.
    """
    statistics = [compared for parts in comparisons.values() for compared in parts]
    benchmarks = [benchmark for benchmark, parts in comparisons.items() for _ in parts]
    weights = [1 / len(comparisons[benchmark]) for benchmark in benchmarks]
    indices = [statistic.index_by_label for statistic in statistics]
    labels = list(dict.fromkeys(label for index_of in indices for label in index_of))
    systems = [
        _averaged_system(label, statistics, indices, benchmarks) for label in labels
    ]

    def pair(first: int, second: int) -> CommonSamplesStatistic:
        first_label = labels[first]
        second_label = labels[second]
        n = 0
        paired = []
        for compared, index_of in zip(statistics, indices, strict=True):
            if first_label not in index_of or second_label not in index_of:
                return CommonSamplesStatistic(0)
            common = compared.pair(index_of[first_label], index_of[second_label])
            if common.statistic is None:
                return CommonSamplesStatistic(0)
            n += common.n
            paired.append(common.statistic)
        return CommonSamplesStatistic(n, AveragedDifference(paired, weights))

    statistic = _mean_title(comparisons)
    return ComparedStatistic(
        part=OVER_BENCHMARKS,
        aspect="",
        statistic=statistic,
        systems=tuple(systems),
        pair=pair,
    )


def _averaged_system(
    label: str,
    statistics: list[ComparedStatistic],
    indices: list[dict[str, int]],
    benchmarks: list[str],
) -> System:
    """System over all benchmarks, with the reasons why it has no number or no rank."""
    n = 0
    missing: dict[str, None] = {}
    undefined: dict[str, None] = {}
    unranked: dict[str, None] = {}
    for benchmark, statistic, index_of in zip(
        benchmarks, statistics, indices, strict=True
    ):
        if label not in index_of:
            missing[benchmark] = None
            continue
        system = statistic.systems[index_of[label]]
        n += system.n
        if system.undefined:
            undefined[f"{benchmark}: {system.undefined}"] = None
        if system.unranked:
            unranked[f"{benchmark}: {system.unranked}"] = None
    why_not = "; ".join(undefined)
    if missing:
        why_not = f"not compared on {', '.join(missing)}"
    return System(
        label=label,
        n=n,
        undefined=why_not,
        unranked="; ".join(unranked),
    )


def _mean_title(comparisons: Mapping[str, Sequence[ComparedStatistic]]) -> str:
    descriptions = []
    for benchmark, parts in comparisons.items():
        first_part = parts[0]
        statistic = first_part.statistic.partition(",")[0]
        descriptions.append(f"{benchmark}: {first_part.aspect}, {statistic}")
    return f"mean over {len(comparisons)} benchmarks ({'; '.join(descriptions)})"


#: Words before the parts or task types for which a system has no value.
NO_VALUE = "no value for "


def unranked_reason(
    n: int,
    available_count: int,
    missing_parts: Sequence[str] = (),
    unit: str = "samples",
) -> str:
    """Return why a system is not ranked: parts or task types without a value, or too few samples;
    empty where it is.

    >>> unranked_reason(40, 100), unranked_reason(90, 100, ["sdie"]), unranked_reason(90, 100)
    ('a score for 40 of 100 samples', 'no value for sdie', '')
    """
    if missing_parts:
        return f"{NO_VALUE}{', '.join(missing_parts)}"
    if n < LEAST_COVERAGE * available_count:
        return f"a score for {n} of {available_count} {unit}"
    return ""


def systems_by_own_number(compared: ComparedStatistic) -> tuple[System, ...]:
    """Systems with their own number on all that they scored, without ranks: those that cover the
    benchmark first, in order.
    """
    systems = []
    for index, system in enumerate(compared.systems):
        lacks_value = math.isnan(system.value) and not system.undefined
        if lacks_value and not compared.untestable_reason:
            value = _own_value(compared, index)
            undefined = ""
            if math.isnan(value):
                undefined = f"undefined on its {system.n} {compared.unit}"
            system = replace(system, value=value, undefined=undefined)
        systems.append(system)
    if compared.order:
        systems.sort(key=lambda system: compared.order.index(system.label))
    else:
        systems.sort(key=_rank_by_own_number)
    return tuple(systems)


def _own_value(compared: ComparedStatistic, index: int) -> float:
    """A system's value on all that it scored, computed once; NaN where undefined."""
    label = compared.systems[index].label
    if label not in compared.alone:
        own_samples = compared.pair(index, index).statistic
        value = math.nan
        if own_samples is not None:
            value, _ = own_samples.estimates()
        compared.alone[label] = value
    return compared.alone[label]


def _rank_by_own_number(system: System) -> tuple[bool, bool, float]:
    return math.isnan(system.value), bool(system.unranked), -system.value


def _seed(
    compared: ComparedStatistic, benchmark: str, options: StatisticsOptions
) -> list[int]:
    name = f"{benchmark}/{compared.part}"
    return [options.seed, zlib.crc32(name.encode())]


def _missing_pairs_reason(
    compared: ComparedStatistic, systems: Sequence[System]
) -> str:
    able = [system.label for system in systems if not math.isnan(system.value)]
    if compared.untestable_reason or len(able) > 1:
        return compared.untestable_reason
    unable = ""
    for system in systems:
        if system.undefined:
            unable += f"; {system.label}: {system.undefined}"
    available = "but none has a value"
    if able:
        available = f"but only {able[0]} has a value"
    if able and len(systems) == 1:
        available = f"got one ({able[0]})"
    return f"at least two {compared.entrants} are required, {available}{unable}"


def _adjusted(
    pairs: Sequence[SystemPair], compared: ComparedStatistic, seed: Seed
) -> list[SystemPair]:
    """Pairs of one family with p adjusted by Holm, and doubtful where that is small only while
    failures are left out.
    """
    p_values = []
    failure_p_values = []
    for pair in pairs:
        p = math.nan
        failure_p = math.nan
        if pair.decides:
            p = pair.result.p
            failure_p = _p_with_failures(pair.better_first(), compared, seed)
        p_values.append(p)
        failure_p_values.append(failure_p)
    adjusted = holm(p_values).tolist()
    penalised = holm(failure_p_values).tolist()
    adjusted_pairs = []
    for pair, p, penalised_p in zip(pairs, adjusted, penalised, strict=True):
        is_doubtful = p <= pair.level < penalised_p
        adjusted_pairs.append(replace(pair, adjusted=p, doubtful=is_doubtful))
    return adjusted_pairs


def _p_with_failures(
    pair: SystemPair, compared: ComparedStatistic, seed: Seed
) -> float:
    """The p of a pair, and no smaller than that with the first one's failures as the lowest
    value.
    """
    if compared.with_failures is None:
        return pair.result.p
    index_of = compared.index_by_label
    penalised = compared.with_failures(index_of[pair.first], index_of[pair.second])
    result = penalised.tested(0, seed, intervals=False)
    if result is None:
        return pair.result.p
    penalised_p = 1.0
    if result.difference.value > 0:
        penalised_p = result.p
    return max(pair.result.p, penalised_p)


def _ranked(
    systems: Sequence[System], pairs: Sequence[SystemPair]
) -> tuple[System, ...]:
    """Systems with the ranks that pairs leave, each by its own difference, also where that runs
    against the order.

    A system that no other can be ranked against has none.
    """
    able = [
        system.label
        for system in systems
        if not math.isnan(system.value) and not system.unranked
    ]
    if len(able) < 2:
        return tuple(systems)
    beats = np.zeros((len(able), len(able)), dtype=bool)
    for pair in pairs:
        if pair.significant:
            ordered = pair.better_first()
            better = able.index(ordered.first)
            worse = able.index(ordered.second)
            beats[better, worse] = True
    best, worst = rank_ranges(beats)
    ranks = zip(best.tolist(), worst.tolist(), strict=True)
    ranges = dict(zip(able, ranks, strict=True))
    return tuple(replace(system, ranks=ranges.get(system.label)) for system in systems)
