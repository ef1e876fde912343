"""Measurements of images on this machine, without weights: the backend of `Measure` asks.

A metric is an entry of `METRICS`, a function from pixels to a number in the metric's own unit.
Which sample's images it is given, and what its number means as a score, is said in
`judges/auto_metrics.py`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from vieval_plugin.images import decode, decoding, size, upright_size
from vieval_plugin.judges.protocol import Failure, Measure, Measurement, Reply, Status
from vieval_plugin.text.errors import VievalError, install_advice

Pixels: TypeAlias = NDArray[np.uint8]
PixelsByRole: TypeAlias = Mapping[str, Pixels]
Metric: TypeAlias = Callable[[PixelsByRole], float]

# Structural similarity takes some 200 bytes a pixel; larger images are measured at this length of
# their longer side.
WORKING_SIDE = 2048
PSNR_CAP = 100.0
#: Findings on an image and its reference.
OTHER_SIZE = "reference resized: its size differs from the image's"
OTHER_SHAPE = "reference distorted: its aspect ratio differs from the image's"


def measure(ask: Measure) -> Reply:
    """The value of the named metric for the ask's images.

    Images are decoded by `vieval_plugin.images.decode` and, where longer than 2048 pixels, reduced
    to that. Metrics that compare pixel by pixel resize the reference to the size of the image where
    the two differ (`size_findings`).

    Returns:
        A `Measurement` with a finite value, or a `Failure` with status `tool_error` if an image
        cannot be read or the metric is not defined for it.

    Raises:
        VievalError: there is no metric of that name, or scikit-image is not installed.
    """
    if ask.metric not in METRICS:
        raise VievalError(
            f"unknown metric {ask.metric!r}; known metrics: {', '.join(sorted(METRICS))}"
        )
    metric = METRICS[ask.metric]
    try:
        with decoding(sum(math.prod(size(image)) for image in ask.images.values())):
            images = {
                role: working_pixels(decode(image))
                for role, image in ask.images.items()
            }
    except VievalError as error:
        return Failure(Status.TOOL_ERROR, str(error))
    try:
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # what comes out of those is refused below
            value = float(metric(images))
    except ValueError as error:
        return Failure(
            Status.TOOL_ERROR,
            f"{ask.metric} cannot be computed: {error}",
        )
    if not math.isfinite(value):
        return Failure(
            Status.TOOL_ERROR,
            f"{ask.metric} is not defined for this image",
        )
    return Measurement(value)


def ssim(images: PixelsByRole) -> float:
    """Structural similarity of `image` and `reference`, mean over pixels and colour channels, in
    [-1, 1]; 1 is equal.

    Wang, Bovik, Sheikh, Simoncelli: Image quality assessment: from error visibility to structural
    similarity (2004), with that paper's Gaussian window (sigma 1.5) and constants. Not defined
    below 11 x 11 pixels.
    """
    image, reference = pair(images)
    return float(
        _skimage("metrics").structural_similarity(
            image,
            reference,
            channel_axis=2,
            data_range=255,
            gaussian_weights=True,
            sigma=1.5,
            use_sample_covariance=False,
        )
    )


def psnr(images: PixelsByRole) -> float:
    """Peak signal-to-noise ratio of `image` against `reference` in dB, from about 0 to 100.

    Equal images have an infinite ratio; 100 dB stands for it, and for all above.
    """
    image, reference = pair(images)
    error = float(_skimage("metrics").mean_squared_error(image, reference))
    return min(10 * math.log10(255**2 / error), PSNR_CAP) if error else PSNR_CAP


def edge_f1(images: PixelsByRole) -> float:
    """The F1 score of the edges of `image` against those of `reference`, in [0, 1].

    The harmonic mean of precision (edge pixels of the image with one of the reference nearby) and
    recall (the reverse). Edges are Canny's (1986, sigma 2), but of a drawing in white lines on
    black its thinned lines, for Canny would find two edges a line. Nearby is within 0.75% of the
    diagonal, as in Martin, Fowlkes, Malik: Learning to detect natural image boundaries (2004),
    though without their one-to-one assignment. Two images without edges agree (1); one with and one
    without do not (0).
    """
    from scipy.ndimage import distance_transform_edt

    image, reference = pair(images)
    edges = _edges(image)
    reference_edges = _edges(reference)
    if not edges.any() or not reference_edges.any():
        return float(edges.any() == reference_edges.any())
    tolerance = 0.0075 * math.hypot(*edges.shape)
    precision, recall = (
        float(np.mean(distance_transform_edt(~others)[own] <= tolerance))
        for own, others in ((edges, reference_edges), (reference_edges, edges))
    )
    if precision + recall == 0:
        return 0.0
    return 2 * precision * recall / (precision + recall)


def histogram(images: PixelsByRole) -> float:
    """The share of the colour distribution that `image` and `reference` have in common, in [0, 1];
    their sizes do not matter.

    Intersection of histograms of 8 x 8 x 8 RGB bins (Swain, Ballard: Color indexing, 1991), each
    blurred by one bin, so that a colour a little off counts as a little different, whichever side
    of a bin's border it falls on.
    """
    shares = [_colour_shares(_role(images, role)) for role in ("image", "reference")]
    return float(np.minimum(*shares).sum())


def sharpness(images: PixelsByRole) -> float:
    """1 - the perceptual blur of `image`, in [0, 1]; not defined for an image of one colour.

    Crete, Dolmiere, Ladret, Nicolas: The blur effect (2007): how much contrast between neighbours a
    further blur takes away. It is relative to the image's own contrast, so images of different
    content compare. Noise counts as sharp.
    """
    image = _role(images, "image")
    if image.min() == image.max():
        return math.nan
    return 1 - float(_skimage("measure").blur_effect(image, channel_axis=2))


#: Metrics by name. Add an entry for another one; load weights on its first call.
METRICS: dict[str, Metric] = {
    "ssim": ssim,
    "psnr": psnr,
    "edge_f1": edge_f1,
    "histogram": histogram,
    "sharpness": sharpness,
}


_COMPARED_BY_PIXEL = (ssim, psnr, edge_f1)


def size_findings(ask: Measure) -> tuple[str, ...]:
    """The finding on a reference that a metric resizes; empty for a metric that does not compare
    pixel by pixel.

    Raises:
        VievalError: an image cannot be read, as far as its header shows it.
    """
    is_compared = METRICS.get(ask.metric) in _COMPARED_BY_PIXEL
    if not is_compared or not {"image", "reference"} <= ask.images.keys():
        return ()
    return resizing(
        upright_size(ask.images["image"]), upright_size(ask.images["reference"])
    )


def resizing(size: tuple[int, int], reference_size: tuple[int, int]) -> tuple[str, ...]:
    """The finding on a reference that is resized from one width and height to another; empty where
    both are equal.

    >>> resizing((64, 64), (64, 64)), resizing((64, 64), (128, 64)) == (OTHER_SHAPE,)
    ((), True)
    """
    if size == reference_size:
        return ()
    width, height = size
    reference_width, reference_height = reference_size
    same_shape_height = reference_height * width / reference_width
    return (OTHER_SIZE,) if abs(same_shape_height - height) <= 1 else (OTHER_SHAPE,)


def _edges(image: Pixels) -> NDArray[np.bool_]:
    grey = _skimage("color").rgb2gray(image)
    black = float(np.mean(grey < 0.1))
    white = float(np.mean(grey > 0.9))
    is_line_drawing = black + white > 0.9 and 0 < white < 0.4
    edges: NDArray[np.bool_]
    if is_line_drawing:
        edges = _skimage("morphology").skeletonize(grey > 0.5)
    else:
        edges = _skimage("feature").canny(grey, sigma=2)
    return edges


def _colour_shares(image: Pixels) -> NDArray[np.float64]:
    from scipy.ndimage import gaussian_filter

    red, green, blue = (image.reshape(-1, 3) >> 5).astype(np.intp).T
    counts = np.bincount((red << 6) | (green << 3) | blue, minlength=512).reshape(
        8,
        8,
        8,
    )
    return gaussian_filter(counts / red.size, sigma=1)


def pair(images: PixelsByRole) -> tuple[Pixels, Pixels]:
    """The image and its reference at the image's size."""
    image = _role(images, "image")
    reference = _role(images, "reference")
    if image.shape != reference.shape:
        height, width = image.shape[:2]
        reference = np.asarray(
            PIL.Image.fromarray(reference).resize(
                (width, height), PIL.Image.Resampling.LANCZOS
            )
        )
    return image, reference


def _role(images: PixelsByRole, role: str) -> Pixels:
    if role not in images:
        raise VievalError(
            f"this metric requires an image named {role!r}, got {sorted(images)}"
        )
    return images[role]


def working_pixels(image: PIL.Image.Image) -> Pixels:
    """An image's pixels (height, width, 3), reduced to 2048 at its longer side where it is
    longer.
    """
    if max(image.size) > WORKING_SIDE:
        image = image.copy()
        image.thumbnail(
            (WORKING_SIDE, WORKING_SIDE),
            PIL.Image.Resampling.LANCZOS,
        )
    return np.asarray(image)


def _skimage(module: str) -> Any:
    """A module of scikit-image, which only these metrics need: it takes half a second to load
    and is an extra.
    """
    try:
        return importlib.import_module(f"skimage.{module}")
    except ImportError as error:
        raise VievalError(
            f"this metric requires scikit-image; {install_advice('metrics')}"
        ) from error
