"""Strict runs: nothing is asked where a row is bad."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from vieval_plugin.errors import VievalError
from vieval_plugin.images import examine, images_of
from vieval_plugin.judges.spec import JudgeSpec, missing_inputs_reason
from vieval_plugin.readers.samples import SampleRow, SampleSource

_AT_ONCE = 256


def require_good(source: SampleSource, spec: JudgeSpec) -> None:
    """VievalError with the place of the first row that is bad, lacks what the judge needs, or has a broken image."""

    def problem(row: SampleRow) -> str:
        if row.verdict:
            return row.verdict.trace[0].reason
        if reason := missing_inputs_reason(spec, row.sample):
            return reason
        try:
            for image in images_of(row.sample):
                examine(image)
        except VievalError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(thread_name_prefix="look") as pool:
        remaining = iter(source)
        while rows := list(islice(remaining, _AT_ONCE)):
            for row, reason in zip(rows, pool.map(problem, rows), strict=True):
                if reason:
                    raise VievalError(f"{source.name}: {row.place}: {reason}")
