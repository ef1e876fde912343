"""Leaderboards of what a family of benchmarks finds, for tests."""

from vieval_plugin.meta_evaluation.leaderboards import MOST_WITH_INTERVALS, leaderboard


def headlines_of(family, benchmark, parts, runs, options, against="annotators"):
    """The leaderboards that lead a report on some runs."""
    findings = family.findings(benchmark, parts, runs, options)
    few = len(runs) <= MOST_WITH_INTERVALS
    ranked = [statistic for statistic in findings.ranked if statistic.is_headline]
    more = (findings, benchmark, runs, options, few, against)
    return [leaderboard(statistic, *more) for statistic in ranked]


def estimates_of(board):
    """The estimates of a leaderboard by system."""
    return {number.system: number.estimate for number in board.numbers}


def compared_of(family, benchmark, parts, runs, options):
    """The statistics on which judges are compared, under these options."""
    ranked = family.findings(benchmark, parts, runs, options).ranked
    return [statistic.compared(options) for statistic in ranked]
