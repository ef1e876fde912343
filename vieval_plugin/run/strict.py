"""Samples that cannot be judged, found before anything is asked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from vieval_plugin.errors import VievalError
from vieval_plugin.images import examine, images_of
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.judges.spec import EVERY_KIND, JudgeSpec, missing_inputs_reason
from vieval_plugin.readers.samples import SampleRow, SampleSource

_AT_ONCE = 256


def require_texts(source: SampleSource, spec: JudgeSpec) -> None:
    """VievalError where samples have no text at all, and the judge cannot do without."""
    if not source.no_text or spec.rates == "contest":
        return
    samples = (row.sample for row in source if isinstance(row.sample, Sample) and row.verdict is None)
    sample = next((sample for sample in samples if not sample.texts), None)
    if sample is None or not missing_inputs_reason(spec, sample):
        return
    needs = spec.needs.get(sample.kind, spec.needs.get(EVERY_KIND))
    if any(of_kind.texts for of_kind in ([needs] if needs else spec.needs.values())):
        raise VievalError(source.no_text)
    if not sample.kind:
        raise VievalError(f"{source.no_text}; or name the kind of all, such as --kind tig")


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
