"""Refuse samples that cannot be judged before the model is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from vieval_plugin.images import examine, images_of, is_there
from vieval_plugin.judges.contests import candidates_of
from vieval_plugin.judges.protocol import OUTPUTS, REFERENCE, Sample
from vieval_plugin.judges.spec import EVERY_KIND, JudgeSpec, missing_inputs_reason
from vieval_plugin.readers.image_names import SUFFIXES
from vieval_plugin.readers.sample_rows import address_among
from vieval_plugin.readers.samples import SampleRow, SampleSource
from vieval_plugin.run.addresses import Hosts, allowed_hosts, is_allowed
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.text.errors import VievalError

#: Rows at the beginning of a run that may not all be misread.
FIRST = 20
_AT_ONCE = 256


def require_texts(source: SampleSource, spec: JudgeSpec) -> None:
    """Raise VievalError if samples have no text and the judge requires one."""
    if not source.no_text or spec.rates == "contest":
        return
    samples = (
        row.sample
        for row in source
        if isinstance(row.sample, Sample) and row.verdict is None
    )
    sample = next((sample for sample in samples if not sample.texts), None)
    if sample is None or not missing_inputs_reason(spec, sample):
        return
    needs = spec.needs.get(sample.kind, spec.needs.get(EVERY_KIND))
    all_needs = [needs] if needs else spec.needs.values()
    if any(kind_needs.texts for kind_needs in all_needs):
        raise VievalError(source.no_text)
    if not sample.kind:
        raise VievalError(
            f"{source.no_text}, or pass the kind of all samples, such as --kind tig"
        )


def require_known_kind(source: SampleSource, spec: JudgeSpec) -> None:
    """Raise VievalError if a judge of samples supports the kind of none of them."""
    if spec.rates == "contest":
        return
    first = None
    for row in source:
        sample = row.sample
        if not isinstance(sample, Sample) or not sample.kind:
            return
        if spec.kinds([sample.kind]):
            return
        if spec.compares and REFERENCE in sample.images:
            return
        first = first or sample
    if first is None:
        return
    advice = "use another judge"
    if spec.compares:
        advice = "pass --reference FOLDER to compare with images of the same prompts"
    raise VievalError(f"{missing_inputs_reason(spec, first)}; {advice}")


def require_any_of_first(
    name: str,
    rows: Iterable[SampleRow],
    specs: Sequence[JudgeSpec],
    hosts: Sequence[str],
) -> None:
    """Raise VievalError if the first 20 rows cannot be judged because of how the table
    was read.

    Conditions that are addresses of none of the `hosts` whose images are fetched are such a
    misreading. An image that a generator was to make and that is not there, by a name as images
    have it, is that generator's failure.
    """
    first = list(islice(rows, FIRST))
    allowed = allowed_hosts(hosts)
    problems = [_misreading(row, specs, allowed) for row in first]
    if len(first) == FIRST and all(problems):
        raise VievalError(
            f"{name}: cannot judge any of the first {FIRST} rows, so the run stopped; "
            f"{first[0].place}: {problems[0]}; correct the table, or choose its columns "
            "with --columns"
        )


def require_calibrated(
    rows: Iterable[SampleRow], judges: Sequence[PreparedJudge]
) -> None:
    """Raise VievalError if one of the first 20 rows has a task type without
    calibration.
    """
    for calibration in filter(None, (judge.calibration for judge in judges)):
        calibration.require_kinds(row.sample.kind for row in islice(rows, FIRST))


def _misreading(
    row: SampleRow,
    specs: Sequence[JudgeSpec],
    allowed: Hosts,
) -> str:
    """Reason why a row was misread; empty if it was not."""
    if row.verdict is None:
        reasons = [missing_inputs_reason(spec, row.sample) for spec in specs]
        return reasons[0] if all(reasons) else ""
    for role, address in row.addresses.items():
        if role not in OUTPUTS and not is_allowed(address, allowed):
            return (
                f"{address_among({role: address})}; pass --allow-urls HOST to download "
                f"it, or --columns {role}= to ignore the column"
            )
    outputs = (sample.images.get("output") for sample in candidates_of(row.sample))
    absent_images = (image for image in outputs if image and not is_there(image))
    sources = (str(image.source).lower() for image in absent_images)
    if row.addresses or any(source.endswith(SUFFIXES) for source in sources):
        return ""
    return row.verdict.trace[0].reason


def require_good(source: SampleSource, spec: JudgeSpec) -> None:
    """Raise VievalError at the first row that is malformed, incomplete or has a broken
    image.
    """

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
