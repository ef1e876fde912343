"""The answer that a leaderboard gives, in words.

`vieval report`, `rank`, `compare` and `leaderboard` all print these, so that the same verdicts give
the same sentence in every command. So does `card`, which adds a model's place among published
judges.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations

import numpy as np

from vieval_plugin.judges.registry import judge_of_results
from vieval_plugin.judges.spec import Quantity
from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.corrected_ranking import CorrectedRanking
from vieval_plugin.meta_evaluation.findings import Leaderboard, Number
from vieval_plugin.meta_evaluation.label_plan import Look
from vieval_plugin.meta_evaluation.measures import MEASURED, USUAL, Outcome
from vieval_plugin.meta_evaluation.win_rates import EVEN, PositionBias
from vieval_plugin.records import OWN
from vieval_plugin.report.leaderboard_finding import (
    MOST_NAMED,
    board_words,
    distance_text,
    failed_verdicts_sentence,
    few_ratings,
    find_outcome,
    items_text,
    named_or_counted,
)
from vieval_plugin.report.words import (
    breakdown_words,
    level_text,
    reason_words,
    sentence_number,
    short_decimal,
    task_type,
)
from vieval_plugin.stats.comparison import independent_p, unit_sums
from vieval_plugin.stats.decisions import (
    ADVISED_MARGIN,
    LEAST_FOR_A_TEST,
    LEAST_RATED,
    MOST_UNREAD,
    NOTABLE_DIFFERENCE,
    SIGNIFICANCE_LEVEL,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.non_inferiority import (
    prompts_for_margin,
    smallest_difference,
)
from vieval_plugin.stats.ranking import holm
from vieval_plugin.text.errors import docs_url
from vieval_plugin.text.wording import enumeration, plural, possessive, rounded

_LABEL = "vieval label {verdicts} --n {images} --out label.html"
_NOT_WRITTEN = "verdicts.jsonl"
_SHORT_INTERVALS = (
    "Here the permutation test decides, because intervals can be too short with few "
    "samples."
)


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
    lines: list[str] = []
    steps: dict[str, str] = {}
    for board_answer in answers:
        lines += replace(board_answer, next="").lines
        first_sentence = board_answer.next.partition(". ")[0]
        steps.setdefault(first_sentence, board_answer.next)
    return [*lines, *filter(None, steps.values())]


def placed(board_answer: Answer, *places: str) -> Answer:
    """An answer among others, with where it holds before its title, but for a judge whose name
    begins this.

    >>> placed(Answer("VIEScore rates mine's images best.", ""), "own", "VIEScore").title
    "own: VIEScore rates mine's images best."
    """
    title = board_answer.title
    names = [name for name in places if name and not title.startswith(name)]
    if not names:
        return board_answer
    where = ", ".join(names)
    return replace(board_answer, title=f"{where}: {title}")


def answer(
    board: Leaderboard,
    bias: PositionBias | None = None,
    corrected: CorrectedRanking | None = None,
    verdicts: str = "",
    margin: float = ADVISED_MARGIN,
) -> Answer:
    """Return the answer of a leaderboard.

    Args:
        board: of judges or of generators.
        bias: the judge's position bias, where win rates decide.
        corrected: the correction by people's ratings that the board is of, where there is one.
        verdicts: the files of the verdicts as a command names them, an empty name for one not
            written yet; empty where none is written.
        margin: of the gate that the advice on ratings is for.
    """
    if board.measure.counts_contests and bias is not None and bias.contradictory:
        return _contradiction(board, bias)
    finding = find_outcome(board, corrected)
    outcome = finding.outcome
    words = {**board_words(board, corrected), **finding.names}
    title = board.measure.sentence(outcome, words)
    sentences = [finding.evidence]
    quantity = measured_quantity(board)
    if quantity:
        judge = words["judge"]
        sentences.append(f"{judge} measures {quantity.meaning}.")
        if outcome in MEASURED:
            title = MEASURED[outcome].format(**words, **asdict(quantity))
    failed = ""
    if board.ranks_generators and outcome is not Outcome.NO_NUMBER:
        failed = failed_verdicts_sentence(board, MOST_UNREAD)
        sentences.append(failed)
    next_step = ""
    if failed or outcome in (Outcome.NO_NUMBER, Outcome.CONSTANT_JUDGE):
        first_file = shlex.join(shlex.split(verdicts)[:1])
        command = _command("vieval show {verdicts} ID", first_file)
        next_step = f"To see a sample's questions and answers: {command}."
    elif board.measure.is_plain_mean and board.benchmark == OWN:
        next_step = _rating_advice(board, verdicts, margin)
    evidence = " ".join(filter(None, sentences))
    limits = _all_limits(board, outcome, bias, corrected)
    return Answer(
        title,
        evidence,
        limits,
        next_step,
        outcome,
    )


def _contradiction(board: Leaderboard, bias: PositionBias) -> Answer:
    """The answer of a judge of contests that contradicts itself."""
    title = board.measure.sentence(Outcome.CONTRADICTION, board_words(board))
    evidence = (
        f"In {bias.contradicted} of {bias.contests} contests, it gives opposite answers "
        "when the images are swapped."
    )
    limits = (*_bias(bias), *_failures(board))
    advice = "Use a judge that scores each image."
    return Answer(
        title,
        evidence,
        limits,
        advice,
        Outcome.CONTRADICTION,
    )


def _all_limits(
    board: Leaderboard,
    outcome: Outcome,
    bias: PositionBias | None,
    corrected: CorrectedRanking | None,
) -> tuple[str, ...]:
    """Sentences on what limits an answer, those on ratings and position bias included."""
    limits = [*_bias(bias), *_limits(board, outcome)]
    if corrected:
        limits = [*_rating_sentences(corrected, outcome), *limits]
    scores_images = board.ranks_generators and not board.measure.counts_contests
    if outcome.shows_no_difference and scores_images:
        limits = [_smallest_difference(board), *limits]
    return tuple(filter(None, limits))


def measured_quantity(board: Leaderboard) -> Quantity | None:
    """Quantity that the judge of generators measures; None for quality."""
    if not board.judge or not board.ranks_generators or board.measure.uses_ratings:
        return None
    spec = judge_of_results(board.judge.judge, {})
    if spec is None:
        return None
    return spec.quantity


def _spread(board: Leaderboard) -> tuple[float, int]:
    """The largest standard deviation of a unit's difference between the first generator and
    another, and the fewest units.

    A unit is a prompt, or a group of prompts that count as one; both are 0 without differences.
    """
    compared = board.comparison.compared
    index_of = compared.index_by_label
    labels = (number.system for number in board.defined)
    first, *rivals = [index_of[label] for label in labels]
    spreads = [0.0]
    units = []
    for rival in rivals:
        statistic = compared.pair(first, rival).statistic
        if not statistic:
            continue
        sums = unit_sums(statistic)
        if sums is None or len(sums[0]) < 2:
            continue
        differences = sums[0] / sums[1]
        deviation = np.std(differences, ddof=1)
        spreads.append(float(deviation))
        units.append(len(differences))
    return max(spreads), min(units, default=0)


def _rating_advice(board: Leaderboard, verdicts: str, margin: float) -> str:
    """The next step without ratings: how many prompts, by the spread of the judge's
    differences.
    """
    available = max(number.total for number in board.numbers)
    spread = 0.0
    units = 0
    if len(board.defined) > 1:
        spread, units = _spread(board)
    generators = len(board.numbers)
    reach = ""
    if not spread:
        rating_count = min(LEAST_RATED, available)
        prompts = plural(rating_count, "prompt")
        if generators > 1:
            prompts += " of each generator"
    else:
        needed = prompts_for_margin(spread, margin)
        fewest = min(pair.n for pair in board.comparison.pairs)
        prompts_per_unit = max(fewest / units, 1.0)
        wanted = max(needed * prompts_per_unit, LEAST_RATED)
        rating_count = math.ceil(min(wanted, available))
        prompts = f"{rating_count} prompts of each generator"
        unit = "groups" if units < fewest else "prompts"
        suffices = "would be needed" if needed > available else "are enough"
        reach = (
            f"About {needed:,.0f} {unit} {suffices} to show, four times in five, that an "
            f"equally good generator is not worse by {margin:g} or more, if "
            "ratings vary as much as this judge's scores. "
        )
    command = _command(_LABEL, verdicts, images=rating_count * generators)
    return (
        "These images have no human ratings, "
        "and a judge can disagree with people. "
        f"Rate {prompts}: {command}. "
        f"{reach}Guide: {docs_url('guides/labels.md')}"
    )


def _command(command: str, verdicts: str, **fields: int) -> str:
    """A command on verdicts, after what writes them where no file has them yet."""
    files = shlex.split(verdicts) or [""]
    prefix = ""
    if "" in files:
        prefix = f"run this command again with --out {_NOT_WRITTEN}, then "
    named = shlex.join(file or _NOT_WRITTEN for file in files)
    return f"{prefix}`{command.format(verdicts=named, **fields)}`"


def _smallest_difference(board: Leaderboard) -> str:
    """The difference that so many prompts would have shown; empty if it is unknown."""
    spread, units = _spread(board)
    if not spread or units < LEAST_FOR_A_TEST:
        return ""
    pairs = board.comparison.pairs
    fewest = min((pair.n for pair in pairs), default=0)
    difference = short_decimal(smallest_difference(spread, units))
    condition = ""
    if len(pairs) > 1:
        condition = ", if only one pair is tested"
    return (
        f"With {items_text(board, fewest)}, a difference of {difference} would be "
        f"found four times in five{condition}."
    )


def percent_text(share: Estimate) -> str:
    """A share in percent with its interval, where it has one."""
    text = f"{100 * share.value:.0f}%"
    if share.has_interval:
        low = round(100 * share.low)
        high = round(100 * share.high)
        text += f" (95% interval {low} to {high}%)"
    return text


def _limits(board: Leaderboard, outcome: Outcome) -> list[str]:
    """Sentences on what limits an answer, most important first."""
    comparison = board.comparison
    defined = board.defined
    text = []
    for label, same in board.same_answers.items():
        text.append(f"{label}: {same}.")
    text += _unranked(board)
    if len(defined) > 1 and outcome is not Outcome.FIRST_OF_EQUALS:
        first = defined[0]
        coverage = str(first.estimate.coverage)
        if coverage and not first.unranked:
            system = first.system
            text.append(f"The value of {system} is based on {coverage}.")
    if outcome is not Outcome.BETTER_WITHOUT_FAILURES:
        text += _doubtful_sentences(board)
    samples = [pair.n for pair in comparison.pairs]
    if samples and max(samples) < LEAST_FOR_A_TEST:
        text.append(
            f"At least {LEAST_FOR_A_TEST} {board.unit} are needed to show a difference."
        )
    text += [f"{warning}." for warning in comparison.warnings()]
    text += _failures(board)
    if defined:
        text += _reference_sentences(board, defined)
        if not board.ranks_generators:
            text += _breakdown_sentences(board, defined[0])
    return text


def _doubtful_sentences(board: Leaderboard) -> list[str]:
    """Sentences on leads that disappear if failures count as 0."""
    sentence = USUAL[Outcome.BETTER_WITHOUT_FAILURES]
    text = []
    doubtful = [pair for pair in board.comparison.all_pairs if pair.doubtful]
    for pair in map(SystemPair.better_first, doubtful[:MOST_NAMED]):
        leader = possessive(pair.first)
        text.append(sentence.format(first_possessive=leader, second=pair.second))
    return text


def _unranked(board: Leaderboard) -> list[str]:
    """Systems without a rank with the reasons, and those of them that are better than the first."""
    comparison = board.comparison
    unranked = [
        number for number in board.numbers if not number.ranks and number.unranked
    ]
    if not unranked or not comparison.all_pairs:
        return []
    names = ", ".join(map(_unranked_text, unranked[:MOST_NAMED]))
    more = len(unranked) - MOST_NAMED
    if more > 0:
        names += f" and {more} more"
    sentences = [f"Not ranked: {names}."]
    if not board.ranked:
        return sentences
    first = board.ranked[0].system
    for number in unranked:
        pair = comparison.pair_of(number.system, first)
        if pair and comparison.beats(number.system, first):
            sentences.append(
                f"{pair.first} is significantly better than {first} "
                f"on the {pair.n} {board.unit} they have in common."
            )
    return sentences


def _unranked_text(number: Number) -> str:
    """Describe a system by the reason why it is not ranked."""
    return f"{number.system} ({reason_words(number.unranked)})"


def _failures(board: Leaderboard) -> list[str]:
    """Failed verdicts: of each generator, or of judges that lack a score for a notable share."""
    if not board.ranks_generators:
        warnings = []
        for label, cost in board.costs.items():
            if cost.warning:
                warnings.append(f"{label}: {cost.warning}.")
        return warnings
    failed = [_failures_text(number) for number in board.numbers if number.failed]
    if not failed:
        return []
    texts = "; ".join(failed)
    return [f"Failed verdicts: {texts}."]


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
    systems = (number.system for number in defined)
    low = [system for system in systems if system in board.not_above_constant]
    for reference in board.references:
        estimate = reference.estimate
        if not estimate.defined:
            continue
        if reference.role == "ceiling":
            name = reference.system.split(":")[0]
            text.append(_ceiling_sentence(board, defined[0], name, estimate))
        elif low:
            constant = "the best constant answer"
            if estimate.value:
                constant += f" ({short_decimal(estimate.value)})"
            judges = named_or_counted(low)
            text.append(f"Not shown to be better than {constant}: {judges}.")
            if any(
                number.system in low and number.estimate.low > estimate.value
                for number in defined
            ):
                text.append(_SHORT_INTERVALS)
    return text


def _ceiling_sentence(
    board: Leaderboard,
    first: Number,
    name: str,
    reference: Estimate,
) -> str:
    """The best system and the annotators, by the same samples and the same other annotators
    where each is known.
    """
    judge = first.system
    ceiling = board.ceiling(judge) if board.ceiling else None
    if ceiling is None:
        position = position_to(first.estimate, reference)
        value = short_decimal(reference.value)
        return f"{judge} is {position} the {name} ({value})."
    position = position_to(ceiling, Estimate(0.0))
    how = {"above": "better", "below": "less"}.get(position)
    if how:
        agrees = f"{judge} agrees with annotators {how} than they agree with each other"
    else:
        samples = plural(first.estimate.n, "sample")
        agrees = f"With {samples}, {judge} cannot be told apart from an annotator"
    number = sentence_number(ceiling)
    return (
        f"{agrees}: the difference in correlation with the other annotators' mean "
        f"is {number}."
    )


def position_to(estimate: Estimate, reference: Estimate) -> str:
    """The side of a reference on which an estimate is: `above`, `below`, or shown to be neither."""
    low = reference.low
    high = reference.high
    if math.isnan(low):
        low = reference.value
    if math.isnan(high):
        high = reference.value
    if estimate.low > high:
        return "above"
    if estimate.high < low:
        return "below"
    return "not significantly above or below"


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
        lowest = ends[0]
        highest = ends[-1]
        difference = highest[0] - lowest[0]
        if difference >= NOTABLE_DIFFERENCE and _ends_differ([*estimates.values()]):
            low = _breakdown_end_text(*lowest)
            high = _breakdown_end_text(*highest)
            name = breakdown_words(breakdown)
            text.append(
                f"By {name}, {first.system} is lowest on {low} and highest on {high}."
            )
    return text


def _breakdown_end_text(score: float, value: str, n: int) -> str:
    """Describe a value of a breakdown by its score and number of samples."""
    score_text = short_decimal(score)
    name = task_type(value)
    return f"{name} ({score_text}, n = {n})"


def _ends_differ(estimates: Sequence[Estimate]) -> bool:
    """Return whether the lowest and the highest of estimates on different samples differ, by
    Holm over all pairs.
    """
    ordered = sorted(estimates, key=lambda estimate: estimate.value)
    pairs = combinations(ordered, 2)
    p_values = [independent_p(low, high) for low, high in pairs]
    adjusted = holm(p_values)
    first_and_last = len(ordered) - 2
    return bool(adjusted[first_and_last] <= SIGNIFICANCE_LEVEL)


def _bias(bias: PositionBias | None) -> list[str]:
    """The position bias of a judge in one sentence; empty without a visible bias."""
    if bias is None or not bias.biased:
        return []
    share = bias.first_shown
    position = "first"
    if share.value < EVEN:
        share = Estimate(1 - share.value, 1 - share.high, 1 - share.low)
        position = "second"
    return [
        f"Position bias: the judge prefers the image shown {position} "
        f"in {percent_text(share)} of its answers. "
        f"It contradicts itself in {bias.contradicted} of {bias.contests} contests, "
        "which count as ties (both orders were shown)."
    ]


def _look_sentences(look: Look) -> list[str]:
    """Sentences on the labels of a plan that count, and those that do not."""
    looks = look.plan.looks
    look_count = len(looks)
    unit = look.plan.unit
    planned = f"{looks[-1]} planned {unit}s"
    text = []
    if look.decides and look_count > 1:
        level = level_text(look.level)
        text.append(
            f"Look {look.finished} of {look_count} uses {look.units} of {planned} "
            f"and requires an adjusted p of at most {level}."
        )
    elif look.decides:
        text.append(f"All {planned} are rated.")
    unused = look.rated - look.units
    if look.decides and unused > 0:
        further = plural(unused, f"more rated {unit}")
        text.append(f"{further} will count at the next look.")
    if look.outside:
        images = plural(look.outside, "rated image")
        text.append(f"Left out: {images} outside the plan.")
    return text


def _changed_order_sentence(corrected: CorrectedRanking) -> str:
    """The order of a judge alone, which ratings change."""
    raw = {estimates.generator: estimates.raw for estimates in corrected.estimates}
    means = []
    for generator in corrected.judge_order:
        mean = raw[generator].value
        means.append(f"{generator} {rounded(mean, 3)}")
    order = ", ".join(means)
    return f"The ratings change the judge's order. By the judge alone: {order}."


def _unscored_sentences(corrected: CorrectedRanking) -> list[str]:
    """A sentence on ratings that are left out, as the judge gave the images no score."""
    counts = [
        f"{plural(estimates.unscored, 'rated image')} of {estimates.generator}"
        for estimates in corrected.estimates
        if estimates.unscored
    ]
    if not counts:
        return []
    return [f"Left out: {enumeration(counts)}, because the judge gave them no score."]


def _rating_sentences(corrected: CorrectedRanking, outcome: Outcome) -> list[str]:
    """Sentences beside corrected means: the ratings' own difference, the order turned over, what
    is wrong with ratings.
    """
    text = []
    if outcome is Outcome.LEADS_SO_FAR:
        text.append(f"{few_ratings(corrected)}.")
    comparison = corrected.ranking.comparison
    pairs = comparison.pairs
    if len(pairs) == 1:
        pair = comparison.ordered(pairs[0])
        distance = distance_text(corrected.ratings_difference(pair), pair)
        text.append(f"By the ratings alone, {pair.first} scores {distance}.")
    text += _unscored_sentences(corrected)
    is_decided = any(pair.significant for pair in pairs)
    if is_decided and corrected.order != corrected.judge_order:
        text.append(_changed_order_sentence(corrected))
    values = [number.estimate.value for number in corrected.ranking.ranked]
    if values != sorted(values, reverse=True):
        text.append(
            "The order combines labels and judge, "
            "so it can differ from the order of the corrected means, "
            "which are noisy if labels are few."
        )
    if corrected.short_of_ratings and not (pairs and corrected.decides_nothing):
        text.append(f"{few_ratings(corrected)}.")
    if corrected.look:
        text += _look_sentences(corrected.look)
    return text
