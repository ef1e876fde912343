"""A bound on the calls of a run, which ends it between two shards and never within one."""

from __future__ import annotations

import re

from vieval_plugin.backends.http.server import Usage

_ENOUGH = 20  # rows whose calls tell what a row takes


class CallBudget:
    """The calls that may be made, and what rows take of them.

    Args:
        most: the calls; None for any number.
        usage: counts those that were made.
        calls: what a sample takes, in words, as `PreparedJudge.calls`.
    """

    def __init__(self, most: int | None, usage: Usage, calls: str) -> None:
        self._most, self._usage = most, usage
        self._expected = max(map(float, re.findall(r"\d+", calls)), default=0.0)
        self.opened = self.ended = 0

    def allows(self, rows: int) -> bool:
        """Return whether the calls of so many rows are left, beside those of the rows that are under way."""
        if self._most is None:
            return True
        return self._usage.calls + self._calls(self.opened - self.ended + rows) <= self._most

    def never_allows(self, rows: int) -> bool:
        """Return whether so many rows take more than all of the calls."""
        return self._most is not None and self._calls(rows) > self._most

    def _calls(self, rows: int) -> float:
        a_row = self._usage.calls / self.ended if self.ended >= _ENOUGH else self._expected
        return a_row * rows
