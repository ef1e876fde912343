"""Words for the codes of task types and aspects, for numbers in sentences, and for how all
numbers came about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from vieval_plugin.meta_evaluation.comparison import NO_VALUE
from vieval_plugin.stats.comparison import PERMUTATIONS
from vieval_plugin.stats.decisions import SIGNIFICANCE_LEVEL
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import Policy, StatisticsOptions
from vieval_plugin.text.wording import rounded

ASPECTS = {
    "SC": "semantic consistency",
    "PQ": "perceptual quality",
    "O": "overall",
}
TASK_TYPES = {
    "tig": "text-guided generation",
    "tie": "text-guided editing",
    "mie": "mask-guided editing",
    "sdig": "subject-driven generation",
    "sdie": "subject-driven editing",
    "mcic": "multi-concept composition",
    "cig": "control-guided generation",
}


def task_type(code: str) -> str:
    """A task type in words; any other code is returned unchanged.

    >>> task_type("tie"), task_type("drawbench")
    ('text-guided editing', 'drawbench')
    """
    return TASK_TYPES.get(code, code)


def breakdown_words(breakdown: str) -> str:
    """The name of a breakdown in words: what code and files call a kind is a task type.

    >>> breakdown_words("kind"), breakdown_words("category")
    ('task type', 'category')
    """
    return "task type" if breakdown == "kind" else breakdown


def statistic_words(name: str) -> str:
    """A statistic in words, coefficients by the names of those who made them.

    >>> statistic_words("spearman"), statistic_words("auroc"), statistic_words("mean SC")
    ('Spearman', 'AUROC', 'mean semantic consistency (SC)')
    """
    code = name.removeprefix("mean ")
    if code != name and code in ASPECTS:
        aspect = "overall score" if code == "O" else ASPECTS[code]
        return f"mean {aspect} ({code})"
    return {
        "auroc": "AUROC",
        "spearman": "Spearman",
        "pearson": "Pearson",
        "kendall": "Kendall",
    }.get(name, name)


def reason_words(reason: str) -> str:
    """A reason for having no rank, with the task types that lack a value in words, or counted where
    they are many.

    >>> reason_words("no value for tie"), reason_words("no value for tig, tie, mie")
    ('no value for text-guided editing', 'no value for 3 task types')
    """

    def worded(match: re.Match[str]) -> str:
        codes = match[1].split(", ")
        if len(codes) <= _MOST_NAMED:
            return NO_VALUE + " and ".join(map(task_type, codes))
        unit = "task types" if TASK_TYPES.keys() >= {*codes} else "parts"
        return f"{NO_VALUE}{len(codes)} {unit}"

    return re.sub(f"{NO_VALUE}([^;]+)", worded, reason)


_MOST_NAMED = 2
_POLICIES: Mapping[Policy, str] = {
    "drop": "are left out",
    "random": "count as a random score",
    "worst": "count as the lowest score",
    "as_recorded": "keep the scores of their log",
}


def share_of_level(level: float) -> str:
    """The share of intervals of a test at a level that hold the truth.

    >>> share_of_level(0.05), share_of_level(0.0042), share_of_level(0.00005)
    ('95%', '99.58%', '99.995%')
    """
    return f"{100 * (1 - level):.5g}%"


def level_text(level: float) -> str:
    """A level in decimals.

    >>> level_text(0.05), level_text(0.00005)
    ('0.05', '0.00005')
    """
    return f"{level:.5f}".rstrip("0")


def sentence_number(estimate: Estimate) -> str:
    """A number with its interval as a sentence has it: two decimals, or more where two would make 0
    or equals of others.

    An interval without width is left out, as resamples of one value say nothing of chance.

    >>> sentence_number(Estimate(0.3812, 0.35, 0.41))
    '0.38 (95% interval 0.35 to 0.41)'
    >>> sentence_number(Estimate(-0.004, -0.02, 0.012)), sentence_number(Estimate(1))
    ('-0.004 (95% interval -0.020 to 0.012)', '1.00')
    """
    value, *interval = decimals_of(estimate)
    if not interval:
        return value
    level = share_of_level(SIGNIFICANCE_LEVEL)
    ends = " to ".join(interval)
    return f"{value} ({level} interval {ends})"


def short_number(estimate: Estimate) -> str:
    """The same with the interval in brackets, for charts and tables; `undefined` if
    missing.

    >>> short_number(Estimate(0.3812, 0.35, 0.41)), short_number(Estimate(0.61, 0.61, 0.61))
    ('0.38 [0.35, 0.41]', '0.61')
    """
    value, *interval = decimals_of(estimate)
    if not interval:
        return value.replace("nan", "undefined")
    ends = ", ".join(interval)
    return f"{value} [{ends}]"


def decimals_of(estimate: Estimate) -> list[str]:
    """The value and, where there is an interval, its ends, all with as many decimals as keep them
    apart and from 0.

    >>> decimals_of(Estimate(0.0003, -0.0001, 0.001))
    ['0.0003', '-0.0001', '0.0010']
    """
    ends = [estimate.value]
    if estimate.has_interval:
        ends += [estimate.low, estimate.high]
    ends = [round(end, 9) for end in ends]  # a sum of tenths may be a little off
    for digits in range(_FEWEST_DIGITS, _MOST_DIGITS):
        texts = {rounded(end, digits) for end in ends}
        apart = len(texts) == len({*ends})
        if apart and all(float(rounded(end, digits)) or not end for end in ends):
            return [short_decimal(end, digits) for end in ends]
    return [short_decimal(end, _MOST_DIGITS) for end in ends]


_FEWEST_DIGITS = 2
_MOST_DIGITS = 4


def short_decimal(value: float, digits: int = _FEWEST_DIGITS) -> str:
    """A number with few decimals, more where they would make 0 of something else.

    >>> short_decimal(0.5), short_decimal(-0.25), short_decimal(-0.001), short_decimal(1)
    ('0.50', '-0.25', '-0.001', '1.00')
    """
    text = rounded(value, digits)
    if value and not float(text) and digits < _MOST_DIGITS:
        return short_decimal(value, digits + 1)
    if float(text):
        return text
    return text.lstrip("-")


def capitalised(text: str) -> str:
    """A text with a capital letter first.

    >>> capitalised("no value for SC")
    'No value for SC'
    """
    return text[:1].upper() + text[1:]


def number_word(number: int) -> str:
    """A number as a sentence has it: up to ten in a word.

    >>> number_word(2), number_word(17)
    ('two', '17')
    """
    words = (
        "no",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
    )
    if number < len(words):
        return words[number]
    return f"{number:,}"


def protocol(
    options: StatisticsOptions,
    unit: str,
    entrants: str,
    tested: bool = True,
    corrected: bool = False,
    level: float = SIGNIFICANCE_LEVEL,
    is_gate: bool = False,
) -> str:
    """Protocol of all numbers, in a paragraph.

    Args:
        options: those that the numbers were computed with.
        unit: what is counted, such as prompts.
        entrants: the systems, judges or generators.
        tested: whether any two of them were compared.
        corrected: whether they are compared by means that ratings correct, and so by Student's t.
        level: adjusted p up to which two differ.
        is_gate: whether a gate decides, which counts failures as the lowest score too.
    """
    missing = ""
    if options.missing_ratings != "drop":
        missing = f" Missing ratings: {options.missing_ratings}."
    wrong_answers = ""
    if entrants == "judges":
        wrong_answers = " A judge's missing answer to a contest counts as wrong."
    clusters = "the prompts of the contests" if unit == "contests" else f"the {unit}"
    resamples = f"{options.draws} bootstrap resamples of {clusters}"
    gate_suffix = ""
    if is_gate:
        gate_suffix = " in the table. The gate also counts them as the lowest score"
    policy = _POLICIES[options.policy]
    failed_verdicts = f"Failed verdicts {policy}{gate_suffix}.{wrong_answers}{missing}"
    if not tested:
        return f"{failed_verdicts} Intervals are 95%, from {resamples}. Seed {options.seed}."
    tests = f"permutation tests of at most {PERMUTATIONS:,} permutations"
    intervals = (
        f". Those of single values come from {resamples}. Those of differences contain all "
        "values that the test does not reject, or come from the same resamples"
    )
    if corrected:
        difference_share = ""
        if level != SIGNIFICANCE_LEVEL:
            difference_share = f" (for differences {share_of_level(level)})"
        tests = "Student's t"
        intervals = f"{difference_share}, from prediction-powered inference"
    return (
        f"{failed_verdicts} Each pair of {entrants} is compared on the {unit} they "
        f"have in common, by {tests}. p (Holm) is adjusted for all pairs of ranked "
        f"{entrants} in one table. A rank such as 1-2 means that no adjusted p of at "
        f"most {level_text(level)} separates these places. Intervals are "
        f"95%{intervals}. Seed {options.seed}."
    )
