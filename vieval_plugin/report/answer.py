"""The answer that a leaderboard gives, in words.

`vieval report`, `rank`, `compare` and `leaderboard` all print these, so that the same verdicts give
the same sentence in every command. So does `card`, which adds a model's place among published
judges.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, groupby

import numpy as np
import scipy

from vieval_plugin.judges.registry import judge_of_results
from vieval_plugin.judges.spec import Quantity
from vieval_plugin.meta_evaluation.comparison import Comparison, SystemPair
from vieval_plugin.meta_evaluation.corrected_ranking import CorrectedRanking
from vieval_plugin.meta_evaluation.costs import statuses_text
from vieval_plugin.meta_evaluation.findings import Leaderboard, Number
from vieval_plugin.meta_evaluation.label_plan import Look
from vieval_plugin.meta_evaluation.measures import MEASURED, USUAL, Outcome
from vieval_plugin.meta_evaluation.tables import p_sentence, p_text
from vieval_plugin.meta_evaluation.win_rates import EVEN, PositionBias
from vieval_plugin.records import OWN, YOUR_IMAGES
from vieval_plugin.report.words import (
    breakdown_words,
    decimals_of,
    level_text,
    number_word,
    reason_words,
    sentence_number,
    share_of_level,
    short_decimal,
    statistic_words,
    task_type,
)
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.comparison import independent_p, unit_sums
from vieval_plugin.stats.decisions import (
    ADVISED_MARGIN,
    INTERVAL_REACH,
    LEAST_FOR_A_TEST,
    LEAST_RATED,
    MOST_UNREAD,
    NOTABLE_DIFFERENCE,
    POWER_REACH,
    SIGNIFICANCE_LEVEL,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.non_inferiority import (
    MOST_ITEMS,
    prompts_for_margin,
    smallest_difference,
)
from vieval_plugin.stats.ranking import holm
from vieval_plugin.text.errors import docs_url
from vieval_plugin.text.wording import (
    enumeration,
    plural,
    possessive,
    steps_in_order,
)

#: Number of systems that a sentence names; of more it says how many there are.
_MOST_NAMED = 3
#: Letters of a judge's name up to which a title has it whole.
_LONGEST_NAME = 48

_RATE_SOME = (
    "These images have no human ratings, and a judge can disagree with people. Rate "
    f"{{prompts}}: {{command}}. {{reach}}Guide: {docs_url('guides/labels.md')}"
)
_LABEL = "vieval label {verdicts} --n {images} --out label.html"
_SHOW = "To see a sample's questions and answers: {command}."
_NOT_WRITTEN = "verdicts.jsonl"


@dataclass(frozen=True)
class Answer:
    """The answer of a leaderboard."""

    #: One sentence without numbers.
    title: str
    #: The numbers behind it.
    evidence: str
    #: Sentences on what limits it.
    limits: tuple[str, ...] = ()
    #: The next step, or empty.
    next: str = ""
    #: Outcome of the leaderboard; None for other answers.
    outcome: Outcome | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """All sentences, the title first."""
        sentences = (self.title, self.evidence, *self.limits, self.next)
        return tuple(filter(None, sentences))


def lines_of(answers: Sequence[Answer]) -> list[str]:
    """All sentences of several answers, next steps last, one of those that begin with the same
    sentence.
    """
    lines = [
        line
        for board_answer in answers
        for line in replace(board_answer, next="").lines
    ]
    steps: dict[str, str] = {}
    for board_answer in answers:
        steps.setdefault(board_answer.next.partition(". ")[0], board_answer.next)
    return [*lines, *filter(None, steps.values())]


def placed(board_answer: Answer, *places: str) -> Answer:
    """An answer among others, with where it holds before its title, but for a judge whose name
    begins this.

    >>> placed(Answer("VIEScore rates mine's images best.", ""), "own", "VIEScore").title
    "own: VIEScore rates mine's images best."
    """
    title = board_answer.title
    names = [name for name in places if name and not title.startswith(name)]
    where = ", ".join(names)
    return replace(board_answer, title=f"{where}: {title}") if where else board_answer


def answer(
    board: Leaderboard,
    bias: PositionBias | None = None,
    corrected: CorrectedRanking | None = None,
    verdicts: str = "",
) -> Answer:
    """Return the answer of a leaderboard.

    Args:
        board: of judges or of generators.
        bias: the judge's position bias, where win rates decide.
        corrected: the correction by people's ratings that the board is of, where there is one.
        verdicts: the files of the verdicts as a command names them; empty where they are not
            written.
    """
    if board.measure.counts_contests and bias is not None and bias.contradictory:
        counts = f"{bias.contradicted} of {bias.contests}"
        evidence = f"In {counts} contests, it gives opposite answers when the images are swapped."
        title = board.measure.sentence(Outcome.CONTRADICTION, _words(board))
        bias_limits = (*_bias(bias), *_failures(board))
        advice = "Use a judge that scores each image."
        return Answer(title, evidence, bias_limits, advice, Outcome.CONTRADICTION)
    finding = _finding(board, corrected)
    outcome = finding.outcome
    limits = [*_bias(bias), *_limits(board, outcome)]
    if corrected:
        limits = [*_rating_sentences(corrected, outcome), *limits]
    scores_images = board.ranks_generators and not board.measure.counts_contests
    if outcome.shows_no_difference and scores_images:
        limits = [_smallest_difference(board), *limits]
    words = {**_words(board, corrected), **finding.names}
    title = board.measure.sentence(outcome, words)
    sentences = [finding.evidence]
    quantity = measured_quantity(board)
    if quantity:
        sentences.append(f"{words['judge']} measures {quantity.meaning}.")
        if outcome in MEASURED:
            title = MEASURED[outcome].format(**words, **asdict(quantity))
    failed = ""
    if board.ranks_generators and outcome is not Outcome.NO_NUMBER:
        failed = _failed_verdicts_sentence(board, MOST_UNREAD)
        sentences.append(failed)
    next_step = ""
    if failed or outcome in (Outcome.NO_NUMBER, Outcome.CONSTANT_JUDGE):
        first_file = shlex.join(shlex.split(verdicts)[:1])
        next_step = _SHOW.format(
            command=_command("vieval show {verdicts} ID", first_file)
        )
    elif board.measure.is_plain_mean and board.benchmark == OWN:
        next_step = _rating_advice(board, verdicts)
    evidence = " ".join(filter(None, sentences))
    return Answer(title, evidence, tuple(filter(None, limits)), next_step, outcome)


def measured_quantity(board: Leaderboard) -> Quantity | None:
    """Quantity that the judge of generators measures; None for quality."""
    if not board.judge or not board.ranks_generators or board.measure.uses_ratings:
        return None
    spec = judge_of_results(board.judge.judge, {})
    return spec.quantity if spec else None


def _spread(board: Leaderboard) -> tuple[float, int]:
    """The largest standard deviation of a unit's difference between the first generator and
    another, and the fewest units.

    A unit is a prompt, or a group of prompts that count as one; both are 0 without differences.
    """
    compared = board.comparison.compared
    index_of = compared.index_by_label
    first, *rivals = [index_of[number.system] for number in board.defined]
    spreads = [0.0]
    units = []
    for rival in rivals:
        statistic = compared.pair(first, rival).statistic
        sums = unit_sums(statistic) if statistic else None
        if sums is not None and len(sums[0]) > 1:
            differences = sums[0] / sums[1]
            spreads.append(float(np.std(differences, ddof=1)))
            units.append(len(sums[0]))
    return max(spreads), min(units, default=0)


def _rating_advice(board: Leaderboard, verdicts: str) -> str:
    """The next step without ratings: how many prompts, by the spread of the judge's
    differences.
    """
    available = max(number.total for number in board.numbers)
    spread = 0.0
    units = 0
    if len(board.defined) > 1:
        spread, units = _spread(board)
    reach = ""
    if not spread:
        rating_count = min(LEAST_RATED, available)
        each_suffix = " of each generator" * (len(board.numbers) > 1)
        prompts = f"{plural(rating_count, 'prompt')}{each_suffix}"
    else:
        needed = prompts_for_margin(spread)
        fewest = min(pair.n for pair in board.comparison.pairs)
        prompts_per_unit = max(fewest / units, 1.0)
        rating_count = math.ceil(min(needed * prompts_per_unit, available))
        prompts = f"{rating_count} prompts of each generator"
        unit = "groups" if units < fewest else "prompts"
        suffices = "would be needed" if needed > available else "are enough"
        reach = (
            f"About {needed:,.0f} {unit} {suffices} to show, four times in five, that an "
            f"equally good generator is not worse by {ADVISED_MARGIN:g} or more, if "
            "ratings vary as much as this judge's scores. "
        )
    images = rating_count * len(board.numbers)
    command = _command(_LABEL, verdicts, images=images)
    return _RATE_SOME.format(prompts=prompts, command=command, reach=reach)


def _command(command: str, verdicts: str, **fields: int) -> str:
    """A command on verdicts, after what writes them where no file has them yet."""
    prefix = f"run this command again with --out {_NOT_WRITTEN}, then " * (not verdicts)
    return f"{prefix}`{command.format(verdicts=verdicts or _NOT_WRITTEN, **fields)}`"


def _smallest_difference(board: Leaderboard) -> str:
    """The difference that so many prompts would have shown; empty if it is unknown."""
    prompts = min((pair.n for pair in board.comparison.pairs), default=0)
    spread, units = _spread(board)
    if not spread or units < LEAST_FOR_A_TEST:
        return ""
    difference = smallest_difference(spread, units)
    tested = ", if only one pair is tested" * (len(board.comparison.pairs) > 1)
    items = _items(board, prompts)
    return (
        f"With {items}, a difference of {short_decimal(difference)} would be "
        f"found four times in five{tested}."
    )


def judge_words(board: Leaderboard) -> str:
    """The judge of a leaderboard as titles have it: where its whole name is long, without its
    backbone.
    """
    name = board.judge.words if board.judge else ""
    if board.judge is None or len(name) <= _LONGEST_NAME:
        return name
    return board.judge.judge


def _words(
    board: Leaderboard, corrected: CorrectedRanking | None = None
) -> dict[str, str]:
    """The words that titles are filled with."""
    ranked = board.ranked
    defined = board.defined
    if corrected is not None and corrected.decides_nothing:
        # also one without labels is in question
        defined = list(board.numbers)
    systems = [n.system for n in (ranked or defined or board.numbers)]
    first, second, *_ = [*systems, "", ""]
    names = [n.system for n in defined]
    candidates = f"the {number_word(len(names))} {board.entrants}"
    if 0 < len(names) <= _MOST_NAMED:
        candidates = enumeration(names)
    count = number_word(len(ranked or defined))
    is_part = 1 < len(ranked) < len(defined)
    is_own = first == YOUR_IMAGES
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
        "first_images": YOUR_IMAGES if is_own else f"the images of {first}",
        "names": candidates,
        "scope": f"Of the {count} ranked, " if is_part else "",
        "comparative": "better" if len(names) == 2 else "best",
        "first_possessive": possessive(first),
        "second_possessive": possessive(second),
    }


@dataclass(frozen=True)
class _Finding:
    """Outcome of a leaderboard, with its evidence."""

    outcome: Outcome
    #: The numbers behind it, in words.
    evidence: str
    #: Names that its sentence alone needs, or has otherwise than all.
    names: Mapping[str, str] = field(default_factory=dict)


def _finding(board: Leaderboard, corrected: CorrectedRanking | None) -> _Finding:
    """Find the outcome that fits a leaderboard, and the evidence for it."""
    defined = board.defined
    ranked = board.ranked
    comparison = board.comparison
    if not defined:
        return _Finding(Outcome.NO_NUMBER, _missing_number_sentence(board))
    if len(defined) == 1 and not comparison.all_pairs:
        return _only_one_system(board, defined[0])
    if not comparison.all_pairs:
        reason = board.comparison.reason
        why = ""
        if reason:
            initial = reason[:1].upper()
            why = f"{initial}{reason[1:]}."
        evidence = f"{_range(board, defined)} {why}"
        return _Finding(Outcome.NOT_COMPARED, evidence)
    if corrected is not None and corrected.decides_nothing:
        return _undecided_ratings(board, corrected)
    if _is_constant(board):
        estimate = defined[0].estimate
        score = short_decimal(estimate.value)
        items = _items(board, estimate.n)
        return _Finding(Outcome.CONSTANT_JUDGE, f"All scores are {score}, on {items}.")
    if not ranked:
        return _common_samples(board)
    labels = [number.system for number in ranked]
    steps = steps_in_order(labels)
    if steps and not comparison.contenders.issuperset(steps):
        return _best_steps(board, steps)
    first, *lower = labels
    beats_all = all(comparison.beats(first, label) for label in lower)
    pair = comparison.pair_of(first, lower[0])
    if beats_all and pair:
        two = len(lower) == 1 and board.ranks_generators
        evidence = _difference(board, pair, ranked[0])
        return _Finding(Outcome.BETTER if two else Outcome.BEST, evidence)
    if any(pair.significant for pair in comparison.pairs):
        return _first_of_several(board)
    if len(ranked) == 2 and pair:
        return _equal_two(board, pair, corrected is not None)
    scoped = 1 < len(ranked) < len(defined)
    outcome = Outcome.EQUAL_RANKED if scoped else Outcome.EQUAL
    evidence = f"{_range(board, ranked)} {_smallest_p(comparison)}"
    return _Finding(outcome, evidence)


def _best_steps(board: Leaderboard, steps: Sequence[str]) -> _Finding:
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
    if not equal:
        return _Finding(Outcome.BETTER if len(steps) == 2 else Outcome.BEST, evidence)
    return _Finding(
        Outcome.BEST_STEPS,
        evidence,
        {"equal": enumeration(equal)},
    )


def _shortened_run(run: Sequence[str]) -> Sequence[str]:
    """Consecutive steps, by the first and the last where there are more than two."""
    if len(run) > 2:
        return [f"{run[0]} to {run[-1]}"]
    return run


def _is_constant(board: Leaderboard) -> bool:
    """True where a judge scores all images of all generators alike, on prompts enough to tell."""
    measure = board.measure
    if not board.ranks_generators or measure.counts_contests or measure.uses_ratings:
        return False
    estimates = [number.estimate for number in board.defined]
    if min(e.n for e in estimates) < LEAST_FOR_A_TEST:
        return False
    ends = [end for e in estimates for end in (e.value, e.low, e.high)]
    first_end = ends[0]
    return all(math.isclose(end, first_end, abs_tol=1e-9) for end in ends)


def _undecided_ratings(board: Leaderboard, corrected: CorrectedRanking) -> _Finding:
    """Finding on ratings that cannot decide: too few, not random, or before the first look."""
    advice = (
        "" if corrected.selected or corrected.look else _labels_to_decide(corrected)
    )
    if advice:
        evidence = f"{advice} {_so_far(board)}"
        names = {"first": corrected.order[0]}
        return _Finding(Outcome.LEADS_SO_FAR, evidence, names)
    outcome = Outcome.SELECTED_LABELS if corrected.selected else Outcome.FEW_RATINGS
    if corrected.look and not corrected.look.decides:
        outcome = Outcome.BEFORE_A_LOOK
    return _Finding(outcome, _result_so_far(board, corrected))


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
    available = [len(e.corrected.deviations) for e in corrected.estimates]
    total = math.ceil(min(max(needed, default=math.inf), MOST_ITEMS))
    if len(needed) < len(available) - 1 or total > min(available):
        return ""
    unit = ranking.unit.removeprefix("rated ")
    missing = []
    for e, most in zip(corrected.estimates, available, strict=True):
        wanted = min(max(total, LEAST_RATED), most)
        missing.append(max(wanted - e.rated_units, 0))
    first, *others = missing
    counts = f"{first} more {unit} of each generator"
    if {*others} != {first}:
        each = "each other generator" if others[1:] else corrected.order[1]
        counts = f"{first} more {unit} of {leader} and {max(others)} of {each}"
    return f"Rating about {counts} would confirm a lead this large four times in five."


def _prompts_to_decide(pair: SystemPair, leader: str) -> float:
    """Rated prompts with which the test decides a difference such as this four times in five;
    infinite where the leader is not ahead, or no interval is known.
    """
    difference = pair.result.difference
    if pair.first != leader or not difference.has_interval or difference.value <= 0:
        return math.inf
    error = _standard_error(difference, pair)
    return pair.n * ((INTERVAL_REACH + POWER_REACH) * error / difference.value) ** 2


def _standard_error(difference: Estimate, pair: SystemPair) -> float:
    """The standard error of which a t interval on a pair's samples is made."""
    probability = 1 - pair.level / 2
    degrees = pair.n - 1
    reach = float(scipy.stats.t.ppf(probability, degrees))
    return (difference.high - difference.low) / 2 / reach


def _equal_two(board: Leaderboard, pair: SystemPair, is_corrected: bool) -> _Finding:
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
        in_order = labels.index(pair.first) < labels.index(pair.second)
        pair = pair if in_order else pair.turned
    names = {
        "first": pair.first,
        "second": pair.second,
        "first_possessive": possessive(pair.first),
    }
    return _Finding(
        outcome,
        _difference(board, pair, first_number),
        names,
    )


def _first_of_several(board: Leaderboard) -> _Finding:
    """The first of several systems that some others cannot be told apart from, or beat."""
    ranked = board.ranked
    comparison = board.comparison
    labels = [number.system for number in ranked]
    first, *lower = labels
    not_worse = [label for label in lower if not comparison.beats(first, label)]
    better = [label for label in not_worse if comparison.beats(label, first)]
    equal = [label for label in not_worse if label not in better]
    value = ranked[0].estimate.value
    tied = [number.system for number in ranked if number.estimate.value == value]
    orders = []
    if len(tied) > 1:
        orders.append(f"{enumeration(tied)} have the same value.")
    for winner in labels[:_MOST_NAMED]:
        losers = [label for label in labels if comparison.beats(winner, label)]
        if losers:
            orders.append(f"{winner} is better than {_named_or_counted(losers)}.")
    outcome = Outcome.FIRST_BUT_BEATEN if better else Outcome.FIRST_OF_EQUALS
    first_better = "".join(better[:1])
    names = {"equal": _named_or_counted(equal), "better": first_better}
    own_number = _own_number_sentence(board, ranked[0])
    evidence = f"{own_number}. {' '.join(orders)}"
    return _Finding(outcome, evidence, names)


def _only_one_system(board: Leaderboard, number: Number) -> _Finding:
    evidence = f"{_own_number_sentence(board, number)}."
    rivals = [n for n in board.numbers if n is not number]
    if rivals:
        reasons = "; ".join(map(_missing_score_text, rivals))
        return _Finding(Outcome.ONLY_ONE, f"{evidence} {reasons}.")
    if board.ranks_generators:
        return _Finding(Outcome.ALONE_GENERATOR, evidence)
    if number.system in board.same_answers:
        return _Finding(Outcome.ALONE_SAME_ANSWER, evidence)
    if number.system in board.not_above_constant:
        return _Finding(Outcome.ALONE_NOT_ABOVE_CONSTANT, evidence)
    tested = board.comparison.compared.above_constant or any(
        n.role == "baseline" for n in board.references
    )
    return _Finding(
        Outcome.ALONE_ABOVE_CONSTANT if tested else Outcome.ALONE_UNTESTED, evidence
    )


def _missing_score_text(number: Number) -> str:
    """Describe a system by the reason why it has no score."""
    return f"{number.system}: {number.reason or 'no score'}"


def _failed_verdicts_sentence(board: Leaderboard, most: float = 0.0) -> str:
    """Number of verdicts without a score, by status; empty up to a share of `most`."""
    statuses = sum(
        (Counter(dict(cost.statuses)) for cost in board.costs.values()), Counter[str]()
    )
    failed = sum(cost.failed for cost in board.costs.values())
    verdicts = sum(cost.verdicts for cost in board.costs.values())
    if failed <= most * verdicts:
        return ""
    reasons = statuses_text(statuses.items())
    have = "has" if failed == 1 else "have"
    return f"{failed} of {verdicts} verdicts {have} no score ({reasons})."


def _missing_number_sentence(board: Leaderboard) -> str:
    failed_sentence = _failed_verdicts_sentence(board)
    if failed_sentence:
        return failed_sentence
    reasons = map(_missing_score_text, board.numbers[:_MOST_NAMED])
    return f"{'; '.join(reasons)}."


def _common_samples(board: Leaderboard) -> _Finding:
    """Finding where no two systems cover the benchmark: the better of each pair, on common samples."""
    pairs = map(SystemPair.better_first, board.comparison.all_pairs)
    significant = (pair for pair in pairs if pair.significant)
    by_winner = grouped((pair.first, pair.second) for pair in significant)
    words = _words(board)
    covering = [n.system for n in board.defined if not n.unranked]
    alone = f"No {words['entrant']}"
    if covering:
        alone = f"Only {covering[0]}"
    order = f"{alone} covers {words['benchmark']}, so a single ranking is not possible."
    values = _range(board, board.defined)
    smallest_p = _smallest_p(board.comparison)
    evidence = f"{values} {smallest_p} {order}"
    if not by_winner:
        return _Finding(Outcome.NONE_BETTER, evidence)
    results = sorted(by_winner.items(), key=lambda result: -len(result[1]))
    sentences = []
    for winner, losers in results[:_MOST_NAMED]:
        sentences.append(f"{winner} is better than {_named_or_counted(losers)}")
    names = {"pairs": "; ".join(sentences)}
    return _Finding(Outcome.BETTER_ON_COMMON, evidence, names)


def _own_number_sentence(board: Leaderboard, number: Number) -> str:
    """A system's own number in words, without a full stop."""
    named = f" of {number.system}:" * board.ranks_generators
    value = sentence_number(number.estimate)
    text = f"{_measured(board)}{named} {value}"
    if board.measure.counts_contests:
        return f"{text} on {_items(board, number.estimate.n)}"
    rests_on = str(number.estimate.coverage)
    return f"{text}, on {rests_on}" if rests_on else text


def _items(board: Leaderboard, n: int) -> str:
    unit = board.unit if n > 1 else board.unit.removesuffix("s")
    return f"{n:,} {unit}"


def _measured(board: Leaderboard) -> str:
    if board.ranks_generators:
        return board.measure.subject(board.aspect)
    measured = statistic_words(board.measured)
    return measured[:1].upper() + measured[1:]


def _difference(board: Leaderboard, pair: SystemPair, first: Number) -> str:
    """The difference of a pair on what both have; its p only where there is no interval."""
    items = _items(board, pair.n)
    difference = pair.result.difference
    # few ratings leave none adjusted
    p_value = pair.result.p if math.isnan(pair.adjusted) else pair.adjusted
    p = f"a test requires at least {LEAST_FOR_A_TEST}"
    if not math.isnan(p_value):
        p = p_sentence(p_value)
    even = board.measure.even
    if even is not None:
        if first.estimate.value == first.estimate.low == first.estimate.high == even:
            return f"{judge_words(board)} finds only ties on {items}, so no generator wins."
        share = Estimate(
            even + difference.value, even + difference.low, even + difference.high
        )
        text = sentence_number(share)
        if not share.has_interval:
            text += f" ({p})"
        measured = _measured(board)
        contest = f"{measured} of {pair.first} against {pair.second}"
        return f"{contest}: {text} on {items} (ties count as half)."
    is_corrected = pair.first == first.system and board.measure.uses_ratings
    own_value = short_decimal(
        first.estimate.value if is_corrected else pair.result.first
    )
    distance = _distance(difference, pair, p)
    return f"{_measured(board)} of {pair.first}: {own_value}, {distance}, on {items}."


def _distance(
    difference: Estimate,
    pair: SystemPair,
    p: str = "",
) -> str:
    """Distance of a number from that of the second of a pair, with the interval, or p where there
    is none.
    """
    more = "higher"
    size = difference
    if difference.value < 0:
        more = "lower"
        size = difference.negated
    value, *ends = decimals_of(size)
    bounds = p
    if ends:
        bounds = f"{share_of_level(pair.level)} interval {' to '.join(ends)}"
    relation = f"{value} {more} than" if float(value) else "the same as"
    parenthesis = f" ({bounds})" if bounds else ""
    return f"{relation} {pair.second}{parenthesis}"


def _range(board: Leaderboard, numbers: Sequence[Number]) -> str:
    """The range of numbers, of the systems that cover the benchmark where any does."""
    covering = [n for n in numbers if not n.unranked] or numbers
    ordered = sorted(covering, key=lambda n: n.estimate.value)
    texts = [f"{sentence_number(n.estimate)} for {n.system}" for n in ordered]
    lowest = texts[0]
    highest = texts[-1]
    if len(ordered) == 1:
        return f"{_measured(board)}: {lowest}."
    return f"{_measured(board)} ranges from {lowest} to {highest}."


def _smallest_p(comparison: Comparison) -> str:
    pairs = comparison.all_pairs
    p_values = [pair.adjusted for pair in pairs if not math.isnan(pair.adjusted)]
    if not p_values:
        return (
            f"A test requires at least {LEAST_FOR_A_TEST} {comparison.compared.unit}."
        )
    smallest = p_text(min(p_values))
    return f"Smallest p (Holm) of {plural(len(pairs), 'pair')}: {smallest}."


def percent_text(share: Estimate) -> str:
    """A share in percent with its interval, where it has one."""
    ends = ""
    if share.has_interval:
        low = round(100 * share.low)
        high = round(100 * share.high)
        ends = f" (95% interval {low} to {high}%)"
    return f"{100 * share.value:.0f}%{ends}"


def _named_or_counted(labels: Sequence[str]) -> str:
    if len(labels) <= _MOST_NAMED:
        return enumeration(labels)
    return f"{number_word(len(labels))} others"


def _limits(board: Leaderboard, outcome: Outcome) -> list[str]:
    """Sentences on what limits an answer, most important first."""
    comparison = board.comparison
    defined = board.defined
    text = [f"{label}: {same}." for label, same in board.same_answers.items()]
    text += _unranked(board)
    rests_on = ""
    if len(defined) > 1:
        rests_on = str(defined[0].estimate.coverage)
    names_first = outcome is Outcome.FIRST_OF_EQUALS
    if rests_on and not defined[0].unranked and not names_first:
        text.append(f"The value of {defined[0].system} is based on {rests_on}.")
    if outcome is not Outcome.BETTER_WITHOUT_FAILURES:
        sentence = USUAL[Outcome.BETTER_WITHOUT_FAILURES]
        doubtful = [pair for pair in comparison.all_pairs if pair.doubtful]
        for pair in map(SystemPair.better_first, doubtful[:_MOST_NAMED]):
            text.append(
                sentence.format(
                    first_possessive=possessive(pair.first), second=pair.second
                )
            )
    if comparison.pairs and max(pair.n for pair in comparison.pairs) < LEAST_FOR_A_TEST:
        text.append(
            f"At least {LEAST_FOR_A_TEST} {board.unit} are needed to show a difference."
        )
    text += [*(f"{line}." for line in comparison.warnings()), *_failures(board)]
    if not defined:
        return text
    return [
        *text,
        *_reference_sentences(board, defined),
        *([] if board.ranks_generators else _breakdown_sentences(board, defined[0])),
    ]


def _unranked(board: Leaderboard) -> list[str]:
    """Systems without a rank with the reasons, and those of them that are better than the first."""
    unranked = [
        number for number in board.numbers if not number.ranks and number.unranked
    ]
    if not unranked or not board.comparison.all_pairs:
        return []
    names = ", ".join(map(_unranked_text, unranked[:_MOST_NAMED]))
    more = ""
    if len(unranked) > _MOST_NAMED:
        more = f" and {len(unranked) - _MOST_NAMED} more"
    first = (board.ranked or board.numbers)[0].system
    pairs = [
        board.comparison.pair_of(n.system, first)
        for n in unranked
        if board.comparison.beats(n.system, first)
    ]
    better = [
        f"{pair.first} is significantly better than {first} on the {pair.n} {board.unit} they "
        "have in common."
        for pair in pairs
        if pair and board.ranked
    ]
    return [f"Not ranked: {names}{more}.", *better]


def _unranked_text(number: Number) -> str:
    """Describe a system by the reason why it is not ranked."""
    return f"{number.system} ({reason_words(number.unranked)})"


def _failures(board: Leaderboard) -> list[str]:
    """Failed verdicts: of each generator, or of judges that lack a score for a notable share."""
    if board.ranks_generators:
        failed = [_failures_text(n) for n in board.numbers if n.failed]
        return [f"Failed verdicts: {'; '.join(failed)}."] if failed else []
    return [
        f"{label}: {cost.warning}."
        for label, cost in board.costs.items()
        if cost.warning
    ]


def _failures_text(number: Number) -> str:
    """The failures of a system by status, of how many verdicts."""
    # of a contest, the failure of the other image has no status of this one
    total = max(number.total, sum(number.statuses.values()))
    return f"{number.system} ({number.failures} of {total})"


def _reference_sentences(board: Leaderboard, defined: Sequence[Number]) -> list[str]:
    """The best system beside the human ceiling, and those that are not above a constant
    baseline.
    """
    text = []
    low = [n.system for n in defined if n.system in board.not_above_constant]
    for reference in board.references:
        estimate = reference.estimate
        if not estimate.defined:
            continue
        if reference.role == "ceiling":
            name = reference.system.split(":")[0]
            text.append(_ceiling_sentence(board, defined[0], name, estimate))
        elif low:
            value = ""
            if estimate.value:
                value = f" ({short_decimal(estimate.value)})"
            text.append(
                f"Not shown to be better than the best constant answer{value}: "
                f"{_named_or_counted(low)}."
            )
    return text


def _ceiling_sentence(
    board: Leaderboard, first: Number, name: str, reference: Estimate
) -> str:
    """The best system and the annotators, by the same samples and the same other annotators
    where each is known.
    """
    ceiling = board.ceiling(first.system) if board.ceiling else None
    if ceiling is None:
        position = position_to(first.estimate, reference)
        return f"{first.system} is {position} the {name} ({short_decimal(reference.value)})."
    position = position_to(ceiling, Estimate(0.0))
    how = {"above": "better", "below": "less"}.get(position)
    if how:
        agrees = f"{first.system} agrees with annotators {how} than they agree with each other"
    else:
        samples = plural(first.estimate.n, "sample")
        agrees = (
            f"With {samples}, {first.system} cannot be told apart from an annotator"
        )
    number = sentence_number(ceiling)
    return f"{agrees}: the difference in correlation with the other annotators' mean is {number}."


def position_to(estimate: Estimate, reference: Estimate) -> str:
    """The side of a reference on which an estimate is: `above`, `below`, or shown to be neither."""
    low, high = (
        reference.value if math.isnan(end) else end
        for end in (reference.low, reference.high)
    )
    if estimate.low > high:
        return "above"
    return "below" if estimate.high < low else "not significantly above or below"


def _breakdown_sentences(board: Leaderboard, first: Number) -> list[str]:
    text = []
    for breakdown, by_value in board.breakdowns.items():
        estimates = {}
        for value, by_system in by_value.items():
            estimate = by_system.get(first.system)
            if estimate is not None and estimate.defined:
                estimates[value] = estimate
        if len(estimates) < 2:
            continue
        ends = sorted((e.value, value, e.n) for value, e in estimates.items())
        difference = ends[-1][0] - ends[0][0]
        if difference >= NOTABLE_DIFFERENCE and _ends_differ([*estimates.values()]):
            lowest = _breakdown_end_text(*ends[0])
            highest = _breakdown_end_text(*ends[-1])
            where = f"lowest on {lowest} and highest on {highest}"
            text.append(f"By {breakdown_words(breakdown)}, {first.system} is {where}.")
    return text


def _breakdown_end_text(score: float, value: str, n: int) -> str:
    """Describe a value of a breakdown by its score and number of samples."""
    score_text = short_decimal(score)
    return f"{task_type(value)} ({score_text}, n = {n})"


def _ends_differ(estimates: Sequence[Estimate]) -> bool:
    """Return whether the lowest and the highest of estimates on different samples differ, by
    Holm over all pairs.
    """
    ordered = sorted(estimates, key=lambda estimate: estimate.value)
    pairs = combinations(ordered, 2)
    p_values = [independent_p(low, high) for low, high in pairs]
    return bool(holm(p_values)[len(ordered) - 2] <= SIGNIFICANCE_LEVEL)


def _bias(bias: PositionBias | None) -> list[str]:
    """The position bias of a judge in one sentence; empty without a visible bias."""
    if bias is None or not bias.biased:
        return []
    share = bias.first_shown
    position = "first"
    if share.value < EVEN:
        share = Estimate(
            1 - share.value,
            1 - share.high,
            1 - share.low,
        )
        position = "second"
    return [
        f"Position bias: the judge prefers the image shown {position} in {percent_text(share)} of its "
        f"answers. It contradicts itself in {bias.contradicted} of {bias.contests} contests, which "
        "count as ties (both orders were shown)."
    ]


def _result_so_far(board: Leaderboard, corrected: CorrectedRanking) -> str:
    """Ratings that are there and needed, and the result so far."""
    reason = _few_ratings(corrected) if corrected.short_of_ratings else ""
    if corrected.selected:
        reason = _selected_labels(corrected)
    if corrected.look and not corrected.look.decides:
        reason = _look_pending_sentence(corrected.look)
    return f"{reason}. {_so_far(board)}"


def _so_far(board: Leaderboard) -> str:
    [pair, *further] = map(board.comparison.ordered, board.comparison.pairs)
    if further:
        result = _range(board, board.defined)
    else:
        result = _difference(
            board,
            pair,
            board.number_of(pair.first),
        )
    return f"Result so far: {result}"


def _look_pending_sentence(look: Look) -> str:
    total = look.plan.looks[-1]
    first = look.plan.looks[0]
    when = (
        f"The first look is at {first}"
        if first < total
        else "The decision requires all of them"
    )
    return f"People rated {look.rated} of {total} planned {look.plan.unit}s. {when}"


def _look_sentences(look: Look) -> list[str]:
    """Sentences on the labels of a plan that count, and those that do not."""
    looks = look.plan.looks
    planned = f"{looks[-1]} planned {look.plan.unit}s"
    text = []
    if look.decides and len(looks) > 1:
        used = f"Look {look.finished} of {len(looks)} uses {look.units} of {planned}"
        text.append(
            f"{used} and requires an adjusted p of at most {level_text(look.level)}."
        )
    elif look.decides:
        text.append(f"All {planned} are rated.")
    if look.decides and look.rated > look.units:
        unused = look.rated - look.units
        further = plural(unused, f"more rated {look.plan.unit}")
        text.append(f"{further} will count at the next look.")
    if look.outside:
        text.append(
            f"Left out: {plural(look.outside, 'rated image')} outside the plan."
        )
    return text


def _selected_labels(corrected: CorrectedRanking) -> str:
    scores = [
        f"{e.selection.value:+.3f} for {e.generator}"
        for e in corrected.selected[:_MOST_NAMED]
    ]
    return (
        "The judge scores the rated images differently from the others (mean "
        f"difference {enumeration(scores)}). Rate images selected by `vieval label`, "
        "and pass its plan to --human"
    )


def _few_ratings(corrected: CorrectedRanking) -> str:
    first, *further = corrected.short_of_ratings
    unit = corrected.ranking.unit.removeprefix("rated ").removesuffix("s")
    counts = [f"{plural(first.rated_units, unit)} of {first.generator}"]
    counts += [f"{e.rated_units} of {e.generator}" for e in further]
    if len(counts) > _MOST_NAMED:
        unnamed = number_word(len(counts) - _MOST_NAMED + 1)
        counts[_MOST_NAMED - 1 :] = [f"fewer than {LEAST_RATED} of {unnamed} others"]
    needed = _needed(corrected, unit)
    return (
        f"People rated {enumeration(counts)}. At least {LEAST_RATED} of each generator, or all "
        f"images, are needed{needed}"
    )


def _needed(corrected: CorrectedRanking, unit: str) -> str:
    """Number of rated prompts or groups that a gate takes, by the largest spread of the
    ratings' differences; empty where not known.
    """
    spreads = [0.0]
    for pair in corrected.ranking.comparison.pairs:
        alone = corrected.ratings_difference(pair)
        if alone.has_interval:
            spreads.append(_standard_error(alone, pair) * math.sqrt(pair.n))
    if not max(spreads):
        return ""
    needed = prompts_for_margin(max(spreads))
    return (
        f". Showing that one generator is not worse by {ADVISED_MARGIN:g} or more "
        f"requires about {needed:,.0f} {unit}s of each"
    )


def _rating_sentences(corrected: CorrectedRanking, outcome: Outcome) -> list[str]:
    """Sentences beside corrected means: the ratings' own difference, the order turned over, what
    is wrong with ratings.
    """
    text = []
    if outcome is Outcome.LEADS_SO_FAR:
        text.append(f"{_few_ratings(corrected)}.")
    pairs = corrected.ranking.comparison.pairs
    if len(pairs) == 1:
        pair = corrected.ranking.comparison.ordered(pairs[0])
        alone = corrected.ratings_difference(pair)
        distance = _distance(alone, pair)
        text.append(f"By the ratings alone, {pair.first} scores {distance}.")
    judged = corrected.judge_order
    if corrected.order != judged and any(pair.significant for pair in pairs):
        raw = {estimate.generator: estimate.raw for estimate in corrected.estimates}
        means = ", ".join(
            f"{generator} {raw[generator].value:.3f}" for generator in judged
        )
        text.append(
            f"The ratings change the judge's order. By the judge alone: {means}."
        )
    values = [number.estimate.value for number in corrected.ranking.ranked]
    if values != sorted(values, reverse=True):
        text.append(
            "The order combines labels and judge, so it can differ from the order of "
            "the corrected means, which are noisy if labels are few."
        )
    if corrected.short_of_ratings and not (pairs and corrected.decides_nothing):
        text.append(f"{_few_ratings(corrected)}.")
    return [*text, *(_look_sentences(corrected.look) if corrected.look else [])]
