"""Missing and unreadable images of samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from vieval_plugin.images import decode, images_of, is_there, name_of
from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import OUTPUTS, Image, Status, Step, Verdict
from vieval_plugin.records import UNJUDGED, unjudged
from vieval_plugin.text.errors import VievalError


def absent_image(judged: Judged) -> str:
    """The first missing image of a sample or contest, in words; empty without any."""
    return next((reason for _, _, reason in _absent_images(judged)), "")


def absence(judged: Judged) -> Verdict | None:
    """Verdict for a missing image: `no_image` for an output, else `tool_error`; None
    without any.
    """
    reasons = {}
    for number, role, reason in _absent_images(judged):
        if not _is_output(role):
            return unjudged(Status.TOOL_ERROR, reason)
        reasons[number] = reason
    return _no_image_verdict(judged, reasons)


def _absent_images(judged: Judged) -> Iterator[tuple[int, str, str]]:
    """Missing images: number of the candidate from 1, role, and reason."""
    for number, sample in enumerate(candidates_of(judged), start=1):
        for role, image in sample.images.items():
            if not is_there(image):
                yield number, role, f"missing {role} image: {name_of(image)}"


def mark_unreadable_output(judged: Judged, verdict: Verdict) -> Verdict:
    """Replace `tool_error` by `no_image` if the output cannot be decoded, which is the
    generator's failure.
    """
    if verdict.status is not Status.TOOL_ERROR:
        return verdict
    reasons = {}
    for number, sample in enumerate(candidates_of(judged), start=1):
        for role, image in sample.images.items():
            reason = _unreadable(image) if _is_output(role) else ""
            if reason:
                reasons[number] = reason
    no_image = _no_image_verdict(judged, reasons)
    if no_image is None:
        return verdict
    return replace(no_image, trace=(*verdict.trace, *no_image.trace))


def _is_output(role: str) -> bool:
    kind = role.partition("_")[0]
    return any(output.partition("_")[0] == kind for output in OUTPUTS)


def _unreadable(image: Image) -> str:
    try:
        decode(image)
    except VievalError as error:
        # a format whose reader is not installed here is no failure of the generator
        if isinstance(error.__context__, ImportError):
            return ""
        return str(error)
    return ""


def _no_image_verdict(judged: Judged, reasons: Mapping[int, str]) -> Verdict | None:
    """The verdict on a lack of outputs, by the candidate's number from 1, below which its step
    stands in a contest.
    """
    if not reasons:
        return None
    steps = []
    for number, reason in reasons.items():
        above = (str(number),) if isinstance(judged, Contest) else ()
        steps.append(
            Step(
                (*above, *UNJUDGED),
                Status.NO_IMAGE,
                reason=reason,
            )
        )
    return Verdict({}, Status.NO_IMAGE, trace=tuple(steps))


def require_images(judged: Iterable[Judged]) -> None:
    """VievalError naming the first image file that is absent and how many are, with the
    command that gets the images of its benchmark.
    """
    benchmarks = dict[str, str]()
    for sample in judged:
        for image in images_of(sample):
            if not is_there(image):
                benchmarks.setdefault(name_of(image), sample.id.benchmark)
    if benchmarks:
        first, *later = benchmarks
        more = f" (and {len(later)} more)" if later else ""
        raise VievalError(
            f"{first}: no such image{more}; run `vieval prepare {benchmarks[first]}` to "
            "get the images"
        )
