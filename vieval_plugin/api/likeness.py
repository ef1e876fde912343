"""Likeness of generators' images to the references of their samples, beside what a judge says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import PIL.Image
import PIL.ImageChops

from vieval_plugin.backends.metrics.pixel_metrics import measure
from vieval_plugin.config import Config
from vieval_plugin.images import decode, is_there, png_image
from vieval_plugin.judges.protocol import (
    REFERENCE,
    Image,
    Measure,
    Measurement,
    Sample,
)
from vieval_plugin.records import YOUR_IMAGES, Record
from vieval_plugin.report.sections import Likeness, Report
from vieval_plugin.report.tables import LIKENESS, ReferencePair, likeness_table
from vieval_plugin.text.errors import VievalError

_MOST_PAIRS = 10
#: Times that a difference picture is brighter than the difference.
_BRIGHTER = 4


def add_likeness(report: Report, records: Iterable[Record], options: Config) -> Report:
    """A report with the likeness of images to their references; unchanged without
    references.

    A generator whose images are the references themselves is left out.
    """
    samples = {record.id: record.sample for record in records}
    compared = [s for s in samples.values() if isinstance(s, Sample) and _differs(s)]
    try:
        pairs = [pair for pair in map(_pair, compared) if pair.values]
    except VievalError as error:
        return replace(report, notes=(*report.notes, f"No likeness: {error}"))
    if not pairs:
        return report
    table = likeness_table(pairs, options.statistics.options())
    furthest = sorted(pairs, key=lambda pair: pair.values["ssim"])[:_MOST_PAIRS]
    differences = tuple(map(_with_difference, furthest))
    likeness = Likeness(table, differences)
    return replace(report, likeness=likeness, further=(*report.further, table))


def _differs(sample: Sample) -> bool:
    """True for a sample with an output and a reference that is another file."""
    images = [sample.images.get(role) for role in ("output", REFERENCE)]
    there = [image for image in images if image and is_there(image)]
    return len(there) == 2 and there[0].source != there[1].source


def _pair(sample: Sample) -> ReferencePair:
    """An image beside its reference; without values where a metric cannot be computed."""
    output = sample.images["output"]
    reference = sample.images[REFERENCE]
    roles = {"image": output, REFERENCE: reference}
    replies = {name: measure(Measure(name, roles, (name,))) for name in LIKENESS}
    values = {n: r.value for n, r in replies.items() if isinstance(r, Measurement)}
    name = sample.id.image_model or YOUR_IMAGES
    if len(values) < len(LIKENESS):
        values = {}
    prompt = sample.group or sample.id.uid
    images = {REFERENCE: reference, name: output}
    return ReferencePair(prompt, name, values, images)


def _with_difference(pair: ReferencePair) -> ReferencePair:
    """A pair with the picture of its difference."""
    reference, output = map(decode, pair.images.values())
    difference = _difference(output, reference)
    images = {**pair.images, f"difference ×{_BRIGHTER}": difference}
    return replace(pair, images=images)


def _difference(picture: PIL.Image.Image, reference: PIL.Image.Image) -> Image:
    """The difference of two pictures, black where they are equal."""
    resized = reference.resize(picture.size, PIL.Image.Resampling.LANCZOS)
    difference = PIL.ImageChops.difference(picture, resized)
    levels = [min(255, _BRIGHTER * n) for n in range(256)]
    brighter = difference.point(levels * 3)
    return png_image(np.asarray(brighter))
