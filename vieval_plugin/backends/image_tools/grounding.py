"""GroundingDINO through transformers: the best box for each phrase, in batches, for the tool of the
same name.

Source: Liu et al., Grounding DINO (ECCV 2024), used as by Wang et al., A Unified Agentic Framework
for Evaluating Conditional Image Generation (2025): box and text thresholds 0.2, the best box a
phrase.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

from vieval_plugin import images
from vieval_plugin.backends.image_tools.image_memory import Decode
from vieval_plugin.judges.protocol import Box, Image, ToolResult
from vieval_plugin.judges.tools import ToolMissing
from vieval_plugin.judges.tools.difference import area
from vieval_plugin.media.png import Pixels
from vieval_plugin.text.errors import install_advice
from vieval_plugin.text.untrusted import exists

BOX_THRESHOLD = TEXT_THRESHOLD = 0.2
BATCH = 8
_MOST_REMEMBERED = 100_000
_LONGEST_TEXT = 256


@dataclass(frozen=True)
class Detection:
    """The best box for a phrase."""

    #: Confidence of the detector, in [0, 1].
    score: float
    box: Box


#: Images, each with a phrase.
PhraseRows: TypeAlias = Sequence[tuple[Pixels, str]]
Detect: TypeAlias = Callable[[PhraseRows], Sequence[Detection | None]]


class Grounder:
    """Finds phrases in images with a detector that takes batches; safe to call from many threads.

    Whoever's turn it is takes along what others wait for, up to a batch. What was found is kept by
    image and phrase. `by` names the detector and its version.
    """

    def __init__(self, detect: Detect, batch: int = BATCH, by: str = "") -> None:
        self._detect = detect
        self._batch = batch
        self.by = by
        self._turn = threading.Lock()
        self._change = threading.Lock()
        self._waiting: OrderedDict[tuple[str, str], Callable[[], Pixels]] = (
            OrderedDict()
        )
        self._futures: OrderedDict[tuple[str, str], Future[Detection | None]] = (
            OrderedDict()
        )

    def boxes(
        self,
        image: Image,
        phrases: Sequence[str],
        pixels: Decode = images.pixels,
    ) -> list[Box]:
        """The best box of each phrase that is found, surest first, less those that enclose a
        smaller one.

        `pixels` decodes the image. VievalError if it cannot be read.
        """
        name = images.digest(image)
        decode = partial(pixels, image)
        futures = [
            self._future(name, phrase, decode) for phrase in dict.fromkeys(phrases)
        ]
        while not all(future.done() for future in futures):
            with self._turn:
                if not all(future.done() for future in futures):
                    self._run_batch()
        detections = (future.result() for future in futures)
        return drop_enclosing(list(filter(None, detections)))

    def _future(
        self,
        name: str,
        phrase: str,
        decode: Callable[[], Pixels],
    ) -> Future[Detection | None]:
        key = name, phrase
        with self._change:
            if key not in self._futures:
                self._futures[key] = Future()
                self._waiting[key] = decode
                while (
                    len(self._futures) > _MOST_REMEMBERED
                    and next(iter(self._futures.values())).done()
                ):
                    self._futures.popitem(last=False)
            return self._futures[key]

    def _run_batch(self) -> None:
        with self._change:
            size = min(self._batch, len(self._waiting))
            batch = [self._waiting.popitem(last=False) for _ in range(size)]
            futures = [self._futures[key] for key, _ in batch]
        rows = []
        decoded = []
        for ((_, phrase), decode), future in zip(batch, futures, strict=True):
            try:
                rows.append((decode(), phrase))
                decoded.append(future)
            except Exception as error:
                future.set_exception(error)
        try:
            detections = self._detect(rows) if rows else []
            for future, detection in zip(decoded, detections, strict=True):
                future.set_result(detection)
        except BaseException as error:
            self._fail(decoded, error)
            if not isinstance(error, Exception):
                raise

    def _fail(
        self, futures: Sequence[Future[Detection | None]], error: BaseException
    ) -> None:
        """Tell those who wait; a detector that ran out of memory may manage the next time, so
        nothing of it is kept.
        """
        with self._change:
            for key, future in list(self._futures.items()):
                if any(future is failed for failed in futures):
                    del self._futures[key]
        for future in futures:
            if not future.done():
                future.set_exception(error)


def drop_enclosing(detections: Sequence[Detection]) -> list[Box]:
    """The boxes, surest first, less those that enclose a smaller kept one (or equal one)."""
    smallest: list[Detection] = []
    for detection in sorted(detections, key=lambda d: (area(d.box), -d.score)):
        if not any(_encloses(detection.box, smaller.box) for smaller in smallest):
            smallest.append(detection)
    return [detection.box for detection in sorted(smallest, key=lambda d: -d.score)]


def load(detector: str) -> tuple[Detect, str]:
    """A GroundingDINO by its folder, name or name@revision, and its name with the commit that was
    loaded.

    It is on a GPU where there is one. ToolMissing if it cannot be loaded.
    """
    try:
        import torch
        from transformers import AutoModelForZeroShotObjectDetection, AutoProcessor
    except ImportError as error:
        advice = install_advice("tools")
        raise ToolMissing(
            f"the grounding tool requires torch and transformers ({error}); {advice}"
        ) from None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = detector
    revision = None
    if not exists(Path(detector)):
        name, _, revision = detector.partition("@")
    try:
        origin = {"revision": revision} if revision else {}
        processor = AutoProcessor.from_pretrained(name, **origin)  # type: ignore[no-untyped-call]
        model = (
            AutoModelForZeroShotObjectDetection.from_pretrained(name, **origin)
            .to(device)
            .eval()
        )
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ToolMissing(
            f"the grounding tool cannot load {detector} ({reason}); set the judge's option "
            "`detector` to its folder or to NAME@REVISION, or use the setting no_grounding"
        ) from None

    def detect(rows: PhraseRows) -> list[Detection | None]:
        found = find_boxes(model, processor, rows, BOX_THRESHOLD)
        return [
            _best(scores, boxes, *image.shape[:2])
            for (scores, boxes), (image, _) in zip(found, rows, strict=True)
        ]

    commit = getattr(model.config, "_commit_hash", None)  # a folder has none
    return detect, f"{name}@{commit}" if commit else name


def find_boxes(
    network: Any,
    processor: Any,
    rows: PhraseRows,
    threshold: float,
) -> list[tuple[Any, Any]]:
    """The boxes of a GroundingDINO for the phrase of each image, as tensors of scores (boxes,) and
    of sides (boxes, 4), in pixels.
    """
    # padding an image to its neighbour's size would move boxes: results must not depend on who
    # else was waiting
    by_size: dict[tuple[int, ...], list[int]] = {}
    for index, (image, _) in enumerate(rows):
        by_size.setdefault(image.shape, []).append(index)
    boxes: dict[int, tuple[Any, Any]] = {}
    for group in by_size.values():
        same_size = [rows[index] for index in group]
        results = _find_in_same_size(network, processor, same_size, threshold)
        boxes |= zip(group, results, strict=True)
    return [boxes[index] for index in range(len(rows))]


def _find_in_same_size(
    network: Any,
    processor: Any,
    rows: PhraseRows,
    threshold: float,
) -> list[tuple[Any, Any]]:
    import torch

    inputs = processor(
        # torch warns of arrays that cannot be written to
        images=[image.copy() for image, _ in rows],
        text=[grounding_query(phrase) for _, phrase in rows],
        padding=True,
        truncation=True,
        max_length=_LONGEST_TEXT,
        return_tensors="pt",
    ).to(network.device)
    with torch.inference_mode():
        outputs = network(**inputs)
    results = processor.post_process_grounded_object_detection(
        outputs,
        inputs["input_ids"],
        threshold=threshold,
        text_threshold=TEXT_THRESHOLD,
        target_sizes=[image.shape[:2] for image, _ in rows],
    )
    return [(result["scores"], result["boxes"]) for result in results]


def grounding_query(phrase: str) -> str:
    """A phrase as GroundingDINO wants it: lower case, with a full stop at its end and none within,
    which would split it.

    >>> grounding_query("Make it red. Keep the cat?")
    'make it red, keep the cat.'
    """
    text = " ".join(phrase.lower().split()).strip(" .?!")
    return text.replace(".", ",").replace("?", ",") + "."


def run(arguments: Mapping[str, Any], pixels: Decode) -> ToolResult:
    """The boxes of `phrases` in `image`, found by the model `detector`."""
    detector = grounder(arguments["detector"])
    boxes = detector.boxes(
        arguments["image"],
        arguments["phrases"],
        pixels,
    )
    return ToolResult(tuple(boxes), by=detector.by)


@cache
def _loaded(name: str) -> Grounder | ToolMissing:
    try:
        detect, by = load(name)
    except (
        ToolMissing
    ) as error:  # a download that failed takes minutes, and others are waiting
        return error
    return Grounder(detect, by=by)


_loading = threading.Lock()


def grounder(name: str) -> Grounder:
    """The grounder of a model, loaded once a process."""
    with _loading:
        loaded = _loaded(name)
    if isinstance(loaded, ToolMissing):
        raise loaded
    return loaded


def _best(scores: Any, boxes: Any, height: int, width: int) -> Detection | None:
    """The surest box, in whole pixels within the image."""
    if not len(scores):
        return None
    best = int(scores.argmax())
    sides = x0, y0, x1, y1 = tuple(map(float, boxes[best]))
    if not all(map(math.isfinite, sides)):
        return None
    left = max(0, math.floor(x0))
    top = max(0, math.floor(y0))
    right = min(width, math.ceil(x1))
    bottom = min(height, math.ceil(y1))
    if left >= right or top >= bottom:
        return None
    return Detection(
        float(scores[best]),
        Box(left, top, right, bottom),
    )


def _encloses(outer: Box, inner: Box) -> bool:
    starts_before = outer.left <= inner.left and outer.top <= inner.top
    return starts_before and outer.right >= inner.right and outer.bottom >= inner.bottom
