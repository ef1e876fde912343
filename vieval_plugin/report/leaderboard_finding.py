"""The finding of a leaderboard: its outcome, with the numbers behind it in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import scipy

from vieval_plugin.meta_evaluation.comparison import Comparison, SystemPair
from vieval_plugin.meta_evaluation.corrected_ranking import CorrectedRanking
from vieval_plugin.meta_evaluation.costs import statuses_text
from vieval_plugin.meta_evaluation.findings import Leaderboard, Number
from vieval_plugin.meta_evaluation.label_plan import Look
from vieval_plugin.meta_evaluation.measures import Outcome
from vieval_plugin.meta_evaluation.tables import p_sentence, p_text
from vieval_plugin.records import OWN, YOUR_IMAGES
from vieval_plugin.report.words import (
    capitalised,
    decimals_of,
    number_word,
    sentence_number,
    share_of_level,
    short_decimal,
    statistic_words,
)
from vieval_plugin.stats.decisions import (
    ADVISED_MARGIN,
    INTERVAL_REACH,
    LEAST_FOR_A_TEST,
    LEAST_RATED,
    POWER_REACH,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.non_inferiority import (
    MOST_ITEMS,
    prompts_for_margin,
)
from vieval_plugin.text.wording import (
    enumeration,
    plural,
    possessive,
    steps_in_order,
)

#: Number of systems that a sentence names; of more it says how many there are.
MOST_NAMED = 3
#: Letters of a judge's name up to which a title has it whole.
_LONGEST_NAME = 48


@dataclass(frozen=True)
class LeaderboardFinding:
    """Outcome of a leaderboard, with its evidence."""

    outcome: Outcome
    #: The numbers behind it, in words.
    evidence: str
    #: Names that its sentence alone needs, or has otherwise than all.
    names: Mapping[str, str] = field(default_factory=dict)


def find_outcome(
    board: Leaderboard, corrected: CorrectedRanking | None
) -> LeaderboardFinding:
    """Find the outcome that fits a leaderboard, and the evidence for it."""
    defined = board.defined
    if not defined:
        return LeaderboardFinding(Outcome.NO_NUMBER, _missing_number_sentence(board))
    if not board.comparison.all_pairs:
        if len(defined) == 1:
            return _only_one_system(board, defined[0])
        return _not_compared(board)
    if corrected is not None and corrected.decides_nothing:
        return _undecided_ratings(board, corrected)
    if _is_constant(board):
        estimate = defined[0].estimate
        score = short_decimal(estimate.value)
        items = items_text(board, estimate.n)
        evidence = f"All scores are {score}, on {items}."
        return LeaderboardFinding(Outcome.CONSTANT_JUDGE, evidence)
    if not board.ranked:
        return _common_samples(board)
    return _ranked_finding(board, is_corrected=corrected is not None)


def _ranked_finding(board: Leaderboard, is_corrected: bool) -> LeaderboardFinding:
    """Find the outcome that fits systems with ranks."""
    ranked = board.ranked
    comparison = board.comparison
    labels = [number.system for number in ranked]
    steps = steps_in_order(labels)
    if steps and not comparison.contenders.issuperset(steps):
        return _best_steps(board, steps)
    first, *lower = labels
    pair = comparison.pair_of(first, lower[0])
    if pair and all(comparison.beats(first, label) for label in lower):
        outcome = Outcome.BEST
        if len(lower) == 1 and board.ranks_generators:
            outcome = Outcome.BETTER
        return LeaderboardFinding(outcome, _difference(board, pair, ranked[0]))
    if any(pair.significant for pair in comparison.pairs):
        return _first_of_several(board)
    if len(ranked) == 2 and pair:
        return _equal_two(board, pair, is_corrected)
    outcome = Outcome.EQUAL
    if 1 < len(ranked) < len(board.defined):
        outcome = Outcome.EQUAL_RANKED
    values = _range(board, ranked)
    evidence = f"{values} {_smallest_p(comparison)}"
    return LeaderboardFinding(outcome, evidence)


def _not_compared(board: Leaderboard) -> LeaderboardFinding:
    """Several systems with numbers, of which no two are compared."""
    evidence = f"{_range(board, board.defined)} "
    reason = board.comparison.reason
    if reason:
        evidence += f"{capitalised(reason)}."
    return LeaderboardFinding(Outcome.NOT_COMPARED, evidence)


def _is_constant(board: Leaderboard) -> bool:
    """True where a judge scores all images of all generators alike, on prompts enough to tell."""
    measure = board.measure
    if not board.ranks_generators or measure.counts_contests or measure.uses_ratings:
        return False
    ends = list[float]()
    for number in board.defined:
        estimate = number.estimate
        if estimate.n < LEAST_FOR_A_TEST:
            return False
        ends += (estimate.value, estimate.low, estimate.high)
    first_end = ends[0]
    return all(math.isclose(end, first_end, abs_tol=1e-9) for end in ends)


def _only_one_system(board: Leaderboard, number: Number) -> LeaderboardFinding:
    evidence = f"{_own_number_sentence(board, number)}."
    rivals = [n for n in board.numbers if n is not number]
    if rivals:
        reasons = "; ".join(map(_missing_score_text, rivals))
        return LeaderboardFinding(Outcome.ONLY_ONE, f"{evidence} {reasons}.")
    if board.ranks_generators:
        return LeaderboardFinding(Outcome.ALONE_GENERATOR, evidence)
    if number.system in board.same_answers:
        return LeaderboardFinding(Outcome.ALONE_SAME_ANSWER, evidence)
    if number.system in board.not_above_constant:
        return LeaderboardFinding(Outcome.ALONE_NOT_ABOVE_CONSTANT, evidence)
    roles = [reference.role for reference in board.references]
    if board.comparison.compared.above_constant or "baseline" in roles:
        return LeaderboardFinding(Outcome.ALONE_ABOVE_CONSTANT, evidence)
    return LeaderboardFinding(Outcome.ALONE_UNTESTED, evidence)


def _missing_score_text(number: Number) -> str:
    """Describe a system by the reason why it has no score."""
    return f"{number.system}: {number.reason or 'no score'}"


def failed_verdicts_sentence(board: Leaderboard, most: float = 0.0) -> str:
    """Number of failed verdicts, by status; empty up to a share of `most`."""
    failed = sum(board.failures.values())
    if failed <= most * board.verdicts:
        return ""
    reasons = statuses_text(board.failures.items())
    return f"{failed} of {board.verdicts} verdicts failed ({reasons})."


def _missing_number_sentence(board: Leaderboard) -> str:
    failed_sentence = failed_verdicts_sentence(board)
    if failed_sentence:
        return failed_sentence
    reasons = map(_missing_score_text, board.numbers[:MOST_NAMED])
    return f"{'; '.join(reasons)}."


def _common_samples(board: Leaderboard) -> LeaderboardFinding:
    """Finding where no two systems cover the benchmark: the better of each pair, on common samples."""
    by_winner: dict[str, list[str]] = {}
    for pair in map(SystemPair.better_first, board.comparison.all_pairs):
        if pair.significant:
            by_winner.setdefault(pair.first, []).append(pair.second)
    words = board_words(board)
    covering = [number.system for number in board.defined if not number.unranked]
    alone = f"No {words['entrant']}"
    if covering:
        alone = f"Only {covering[0]}"
    order = f"{alone} covers {words['benchmark']}, so a single ranking is not possible."
    values = _range(board, board.defined)
    smallest_p = _smallest_p(board.comparison)
    evidence = f"{values} {smallest_p} {order}"
    if not by_winner:
        return LeaderboardFinding(Outcome.NONE_BETTER, evidence)
    winners = sorted(by_winner, key=lambda winner: -len(by_winner[winner]))
    sentences = []
    for winner in winners[:MOST_NAMED]:
        losers = named_or_counted(by_winner[winner])
        sentences.append(f"{winner} is better than {losers}")
    names = {"pairs": "; ".join(sentences)}
    return LeaderboardFinding(Outcome.BETTER_ON_COMMON, evidence, names)


def _best_steps(board: Leaderboard, steps: Sequence[str]) -> LeaderboardFinding:
    """The best step of a training with those that cannot be told from it, and whether the last
    one is worse.
    """
    comparison = board.comparison
    first = board.ranked[0]
    contenders = comparison.contenders
    last = steps[-1]
    if first.system not in contenders:
        return _first_of_several(board)
    evidence = f"{_own_number_sentence(board, first)}."
    pair = comparison.pair_of(first.system, last)
    if pair and last not in contenders:
        evidence = f"The last step is worse. {_difference(board, pair, first)}"
    rivals = contenders - {first.system}
    runs = groupby(steps, rivals.__contains__)
    equal = list[str]()
    for is_rival, run in runs:
        if is_rival:
            equal += _shortened_run([*run])
    if equal:
        names = {"equal": enumeration(equal)}
        return LeaderboardFinding(Outcome.BEST_STEPS, evidence, names)
    outcome = Outcome.BEST
    if len(steps) == 2:
        outcome = Outcome.BETTER
    return LeaderboardFinding(outcome, evidence)


def _shortened_run(run: Sequence[str]) -> Sequence[str]:
    """Consecutive steps, by the first and the last where there are more than two."""
    if len(run) < 3:
        return run
    first, *_, last = run
    return [f"{first} to {last}"]


def _equal_two(
    board: Leaderboard,
    pair: SystemPair,
    is_corrected: bool,
) -> LeaderboardFinding:
    """Two systems that cannot be told apart, or only while the failures of one are left out."""
    comparison = board.comparison
    first_number = board.ranked[0]
    outcome = Outcome.EQUAL_TWO
    if pair.doubtful:
        outcome = Outcome.BETTER_WITHOUT_FAILURES
        pair = pair.better_first()
    elif is_corrected:
        pair = comparison.ordered(pair)
    elif board.ranks_generators:  # in the order of the input
        labels = [system.label for system in comparison.compared.systems]
        if labels.index(pair.first) > labels.index(pair.second):
            pair = pair.turned
    names = {
        "first": pair.first,
        "second": pair.second,
        "first_possessive": possessive(pair.first),
    }
    evidence = _difference(board, pair, first_number)
    return LeaderboardFinding(outcome, evidence, names)


def _first_of_several(board: Leaderboard) -> LeaderboardFinding:
    """The first of several systems that some others cannot be told apart from, or beat."""
    ranked = board.ranked
    comparison = board.comparison
    labels = [number.system for number in ranked]
    first, *lower = labels
    better = []
    equal = []
    for label in lower:
        if comparison.beats(first, label):
            continue
        if comparison.beats(label, first):
            better.append(label)
        else:
            equal.append(label)
    value = ranked[0].estimate.value
    tied = [number.system for number in ranked if number.estimate.value == value]
    orders = []
    if len(tied) > 1:
        orders.append(f"{enumeration(tied)} have the same value.")
    for winner in labels[:MOST_NAMED]:
        losers = [label for label in labels if comparison.beats(winner, label)]
        if losers:
            loser_names = named_or_counted(losers)
            orders.append(f"{winner} is better than {loser_names}.")
    names = {"equal": named_or_counted(equal), "better": ""}
    outcome = Outcome.FIRST_OF_EQUALS
    if better:
        outcome = Outcome.FIRST_BUT_BEATEN
        names["better"] = better[0]
    own_number = _own_number_sentence(board, ranked[0])
    evidence = f"{own_number}. {' '.join(orders)}"
    return LeaderboardFinding(outcome, evidence, names)


def _undecided_ratings(
    board: Leaderboard, corrected: CorrectedRanking
) -> LeaderboardFinding:
    """Finding on ratings that cannot decide: too few, not random, or before the first look."""
    result = _result_so_far(board)
    look = corrected.look
    if look and not look.decides:
        evidence = f"{_look_pending_sentence(look)}. {result}"
        return LeaderboardFinding(Outcome.BEFORE_A_LOOK, evidence)
    if corrected.selected:
        evidence = f"{_selected_labels(corrected)}. {result}"
        return LeaderboardFinding(Outcome.SELECTED_LABELS, evidence)
    advice = ""
    if not look:
        advice = _labels_to_decide(corrected)
    if advice:
        evidence = f"{advice} {result}"
        names = {"first": corrected.order[0]}
        return LeaderboardFinding(Outcome.LEADS_SO_FAR, evidence, names)
    reason = few_ratings(corrected) if corrected.short_of_ratings else ""
    return LeaderboardFinding(Outcome.FEW_RATINGS, f"{reason}. {result}")


def _result_so_far(board: Leaderboard) -> str:
    [pair, *further] = map(board.comparison.ordered, board.comparison.pairs)
    if further:
        result = _range(board, board.defined)
    else:
        result = _difference(board, pair, board.number_of(pair.first))
    return f"Result so far: {result}"


def _labels_to_decide(corrected: CorrectedRanking) -> str:
    """Number of further prompts of each generator that would decide a lead such as the first one's,
    if ratings vary as so far; empty where all images would not, or their spread is unknown.
    """
    ranking = corrected.ranking
    leader = corrected.order[0]
    needed = []
    for pair in ranking.comparison.pairs:
        if leader in (pair.first, pair.second):
            needed.append(_prompts_to_decide(pair.better_first(), leader))
    most_needed = max(needed, default=math.inf)
    total = math.ceil(min(most_needed, MOST_ITEMS))
    rival_count = len(corrected.estimates) - 1
    if len(needed) < rival_count:
        return ""
    missing = []
    for estimates in corrected.estimates:
        available = len(estimates.corrected.deviations)
        if total > available:
            return ""
        wanted = min(max(total, LEAST_RATED), available)
        missing.append(max(wanted - estimates.rated_units, 0))
    first, *others = missing
    unit = ranking.unit.removeprefix("rated ")
    counts = f"{first} more {unit} of each generator"
    if {*others} != {first}:
        each = corrected.order[1]
        if rival_count > 1:
            each = "each other generator"
        most = max(others)
        counts = f"{first} more {unit} of {leader} and {most} of {each}"
    return f"Rating about {counts} would confirm a lead this large four times in five."


def _prompts_to_decide(pair: SystemPair, leader: str) -> float:
    """Rated prompts with which the test decides a difference such as this four times in five;
    infinite where the leader is not ahead, or no interval is known.
    """
    difference = pair.result.difference
    if pair.first != leader or not difference.has_interval or difference.value <= 0:
        return math.inf
    reach = INTERVAL_REACH + POWER_REACH
    ratio = reach * standard_error(difference, pair) / difference.value
    return pair.n * ratio**2


def standard_error(difference: Estimate, pair: SystemPair) -> float:
    """The standard error of which a t interval on a pair's samples is made."""
    probability = 1 - pair.level / 2
    degrees = pair.n - 1
    reach = float(scipy.stats.t.ppf(probability, degrees))
    half_width = (difference.high - difference.low) / 2
    return half_width / reach


def _look_pending_sentence(look: Look) -> str:
    plan = look.plan
    first, *_ = plan.looks
    total = plan.looks[-1]
    when = "The decision requires all of them"
    if first < total:
        when = f"The first look is at {first}"
    return f"People rated {look.rated} of {total} planned {plan.unit}s. {when}"


def _selected_labels(corrected: CorrectedRanking) -> str:
    differences = []
    for estimates in corrected.selected[:MOST_NAMED]:
        difference = estimates.selection.value
        differences.append(f"{difference:+.3f} for {estimates.generator}")
    return (
        "The judge scores the rated images differently from the others "
        f"(mean difference {enumeration(differences)}). "
        "Rate images selected by `vieval label`, "
        "and pass its plan to --human"
    )


def few_ratings(corrected: CorrectedRanking) -> str:
    """The ratings of generators that have too few, and how many are needed; without a full
    stop.
    """
    first, *further = corrected.short_of_ratings
    unit = corrected.ranking.unit.removeprefix("rated ").removesuffix("s")
    first_count = plural(first.rated_units, unit)
    counts = [f"{first_count} of {first.generator}"]
    for estimates in further:
        counts.append(f"{estimates.rated_units} of {estimates.generator}")
    if len(counts) > MOST_NAMED:
        first_counts = counts[: MOST_NAMED - 1]
        unnamed = number_word(len(counts) - len(first_counts))
        counts = [*first_counts, f"fewer than {LEAST_RATED} of {unnamed} others"]
    return (
        f"People rated {enumeration(counts)}. "
        f"At least {LEAST_RATED} of each generator, or all images, are needed"
        f"{_needed(corrected, unit)}"
    )


def _needed(corrected: CorrectedRanking, unit: str) -> str:
    """Number of rated prompts or groups that a gate takes, by the largest spread of the
    ratings' differences; empty where not known.
    """
    spreads = [0.0]
    for pair in corrected.ranking.comparison.pairs:
        difference = corrected.ratings_difference(pair)
        if difference.has_interval:
            error = standard_error(difference, pair)
            spreads.append(error * math.sqrt(pair.n))
    largest_spread = max(spreads)
    if not largest_spread:
        return ""
    needed = prompts_for_margin(largest_spread)
    return (
        f". Showing that one generator is not worse by {ADVISED_MARGIN:g} or more "
        f"requires about {needed:,.0f} {unit}s of each"
    )


def board_words(
    board: Leaderboard, corrected: CorrectedRanking | None = None
) -> dict[str, str]:
    """The words that titles are filled with."""
    ranked = board.ranked
    defined = board.defined
    if corrected is not None and corrected.decides_nothing:
        # also one without labels is in question
        defined = list(board.numbers)
    systems = [number.system for number in ranked or defined or board.numbers]
    first, second, *_ = [*systems, "", ""]
    names = [number.system for number in defined]
    name_count = number_word(len(names))
    candidates = f"the {name_count} {board.entrants}"
    if 0 < len(names) <= MOST_NAMED:
        candidates = enumeration(names)
    count = number_word(len(ranked or defined))
    scope = ""
    if 1 < len(ranked) < len(defined):
        scope = f"Of the {count} ranked, "
    first_images = f"the images of {first}"
    if first == YOUR_IMAGES:
        first_images = YOUR_IMAGES
    return {
        "judge": judge_words(board),
        "entrant": board.entrants.removesuffix("s"),
        "entrants": board.entrants,
        "benchmark": YOUR_IMAGES if board.benchmark == OWN else board.benchmark,
        "against": board.against,
        "unit": board.unit,
        "statistic": statistic_words(board.measured),
        "count": count,
        "first": first,
        "second": second,
        "first_images": first_images,
        "names": candidates,
        "scope": scope,
        "comparative": "better" if len(names) == 2 else "best",
        "first_possessive": possessive(first),
        "second_possessive": possessive(second),
    }


def judge_words(board: Leaderboard) -> str:
    """The judge of a leaderboard as titles have it: where its whole name is long, without its
    backbone.
    """
    judge = board.judge
    if judge is None:
        return ""
    if len(judge.words) > _LONGEST_NAME:
        return judge.judge
    return judge.words


def _own_number_sentence(board: Leaderboard, number: Number) -> str:
    """A system's own number in words, without a full stop."""
    estimate = number.estimate
    text = _measured(board)
    if board.ranks_generators:
        text += f" of {number.system}:"
    text += f" {sentence_number(estimate)}"
    if board.measure.counts_contests:
        return f"{text} on {items_text(board, estimate.n)}"
    coverage = str(estimate.coverage)
    if coverage:
        text += f", on {coverage}"
    return text


def items_text(board: Leaderboard, n: int) -> str:
    """A number of the samples that a leaderboard counts."""
    unit = board.unit
    if n == 1:
        unit = unit.removesuffix("s")
    return f"{n:,} {unit}"


def _measured(board: Leaderboard) -> str:
    if board.ranks_generators:
        return board.measure.subject(board.aspect)
    return capitalised(statistic_words(board.measured))


def _difference(board: Leaderboard, pair: SystemPair, first: Number) -> str:
    """The difference of a pair on what both have; its p only where there is no interval."""
    if board.measure.even is not None:
        return _contest_difference(board, pair, first.estimate, board.measure.even)
    own_value = pair.result.first
    if pair.first == first.system and board.measure.uses_ratings:
        own_value = first.estimate.value
    value_text = short_decimal(own_value)
    distance = distance_text(pair.result.difference, pair, _pair_p(pair))
    items = items_text(board, pair.n)
    measured = _measured(board)
    if _is_part(board, pair):
        items = f"the {items} that both have a score of"
    return f"{measured} of {pair.first}: {value_text}, {distance}, on {items}."


def _is_part(board: Leaderboard, pair: SystemPair) -> bool:
    """True where a generator's own number is over more prompts than both of a pair have."""
    if not board.ranks_generators:
        return False
    labels = (pair.first, pair.second)
    failed = any(board.number_of(label).failed for label in labels)
    if board.measure.uses_ratings and not failed:  # only fewer are rated
        return False
    compared = board.comparison.compared
    indices = [compared.index_by_label[label] for label in labels]
    return any(compared.systems[index].n > pair.n for index in indices)


def _pair_p(pair: SystemPair) -> str:
    p = pair.adjusted
    if math.isnan(p):  # few ratings leave none adjusted
        p = pair.result.p
    if math.isnan(p):
        return f"a test requires at least {LEAST_FOR_A_TEST}"
    return p_sentence(p)


def _contest_difference(
    board: Leaderboard,
    pair: SystemPair,
    first: Estimate,
    even: float,
) -> str:
    """The share of contests that the first of a pair wins."""
    items = items_text(board, pair.n)
    if first.value == first.low == first.high == even:
        return f"{judge_words(board)} finds only ties on {items}, so no generator wins."
    difference = pair.result.difference
    share = Estimate(
        even + difference.value, even + difference.low, even + difference.high
    )
    text = sentence_number(share)
    if not share.has_interval:
        text += f" ({_pair_p(pair)})"
    return (
        f"{_measured(board)} of {pair.first} against {pair.second}: "
        f"{text} on {items} (ties count as half)."
    )


def distance_text(difference: Estimate, pair: SystemPair, p: str = "") -> str:
    """Distance of a number from that of the second of a pair, with the interval, or p where there
    is none.
    """
    more = "higher"
    size = difference
    if difference.value < 0:
        more = "lower"
        size = difference.negated
    value, *ends = decimals_of(size)
    interval = " to ".join(ends)
    if ends and round(size.low, 9) <= 0 <= round(size.high, 9):
        _, *ends = decimals_of(difference)
        low, high = (end.lstrip("-") for end in ends)
        interval = f"{low} lower to {high} higher"
    relation = "the same as"
    if float(value):
        relation = f"{value} {more} than"
    bounds = p
    if ends:
        bounds = f"{share_of_level(pair.level)} interval {interval}"
    if not bounds:
        return f"{relation} {pair.second}"
    return f"{relation} {pair.second} ({bounds})"


def _range(board: Leaderboard, numbers: Sequence[Number]) -> str:
    """The range of numbers, of the systems that cover the benchmark where any does."""
    covering = [number for number in numbers if not number.unranked] or numbers
    ordered = sorted(covering, key=lambda number: number.estimate.value)
    texts = []
    for number in ordered:
        value = sentence_number(number.estimate)
        texts.append(f"{value} for {number.system}")
    measured = _measured(board)
    lowest, *_ = texts
    if len(texts) == 1:
        return f"{measured}: {lowest}."
    return f"{measured} ranges from {lowest} to {texts[-1]}."


def _smallest_p(comparison: Comparison) -> str:
    all_p_values = [pair.adjusted for pair in comparison.all_pairs]
    p_values = [p for p in all_p_values if not math.isnan(p)]
    if not p_values:
        unit = comparison.compared.unit
        return f"A test requires at least {LEAST_FOR_A_TEST} {unit}."
    smallest = p_text(min(p_values))
    pairs = plural(len(all_p_values), "pair")
    return f"Smallest p (Holm) of {pairs}: {smallest}."


def named_or_counted(labels: Sequence[str]) -> str:
    """A few systems by their names, more by their number."""
    if len(labels) <= MOST_NAMED:
        return enumeration(labels)
    return f"{number_word(len(labels))} others"
