"""Leaderboards of what a family of benchmarks finds, for tests."""

from vieval_plugin.meta_evaluation.leaderboards import headlines


def headlines_of(family, benchmark, parts, runs, options, against="annotators"):
    """The leaderboards that lead a report on some runs."""
    return headlines(family.findings(benchmark, parts, runs, options), benchmark, runs, options, against)


def estimates_of(board):
    """The estimates of a leaderboard by system."""
    return {number.system: number.estimate for number in board.numbers}


def table_of(findings, name):
    """The table of that name."""
    return next(table for table in findings.tables if table.name == name)


def compared_of(family, benchmark, parts, runs, options):
    """The statistics on which judges are compared, under these options."""
    return [statistic.compared(options) for statistic in family.findings(benchmark, parts, runs, options).ranked]
