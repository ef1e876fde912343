"""Objects of named classes in images and their colours, in batches, for the judge `objects`.

Detectors are GroundingDINO, which knows any class, and Mask2Former, GenEval's own; colours are
CLIP's. Source: Ghosh, Hajishirzi, Schmidt, GenEval (2023), with the post-processing of its detector
and not that of transformers, which drops and overlaps masks.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from vieval_plugin import images
from vieval_plugin.backends.cache.store import key_of
from vieval_plugin.backends.image_tools.grounding import find_boxes
from vieval_plugin.backends.local.batch import run_or_halve
from vieval_plugin.backends.metrics.batcher import PreparedMeasure
from vieval_plugin.backends.metrics.encoders import Encoder
from vieval_plugin.backends.metrics.network_metrics import inference
from vieval_plugin.backends.metrics.networks import clip
from vieval_plugin.backends.weights import (
    Origin,
    hub_name_or_folder,
    identity,
    library,
    load_failure_reason,
    pretrained,
    weights_name,
)
from vieval_plugin.config import Scorer
from vieval_plugin.judges.objects import (
    COLOR_SCORER,
    COLORS,
    DetectedObject,
    surest,
    to_result,
)
from vieval_plugin.judges.protocol import Reply, ToolResult, UseTool
from vieval_plugin.media.png import Pixels
from vieval_plugin.text.errors import VievalError, line_of

DETECTOR = "IDEA-Research/grounding-dino-base"
COLOR_MODEL = "openai/clip-vit-large-patch14"
THRESHOLD = 0.3
#: Sides in pixels that Mask2Former is given: the shorter one, and the most of the longer.
SHORTER_SIDE = 800
LONGEST_SIDE = 1333
_DIVISOR = 32
_GREY = 0x99
_WORDINGS = (
    "a photo of a {color} {label}",
    "a photo of a {color}-colored {label}",
    "a photo of a {color} object",
)
#: Classes of COCO in its order, as GenEval calls them.
COCO_CLASSES = tuple(
    """
    person|bicycle|car|motorcycle|airplane|bus|train|truck|boat|traffic light|fire hydrant|stop sign
    |parking meter|bench|bird|cat|dog|horse|sheep|cow|elephant|bear|zebra|giraffe|backpack|umbrella
    |handbag|tie|suitcase|frisbee|skis|snowboard|sports ball|kite|baseball bat|baseball glove
    |skateboard|surfboard|tennis racket|bottle|wine glass|cup|fork|knife|spoon|bowl|banana|apple
    |sandwich|orange|broccoli|carrot|hot dog|pizza|donut|cake|chair|couch|potted plant|bed
    |dining table|toilet|tv|laptop|computer mouse|tv remote|computer keyboard|cell phone|microwave
    |oven|toaster|sink|refrigerator|book|clock|vase|scissors|teddy bear|hair drier|toothbrush
    """.replace("\n    ", "").split("|")
)


@dataclass(frozen=True)
class ClassBoxes:
    """Boxes of one class in an image."""

    #: Confidences (boxes,).
    scores: NDArray[np.float64]
    #: Sides (boxes, 4) in pixels.
    sides: NDArray[np.float64]
    #: Pixels of each object (boxes, height, width); None where a detector has boxes alone.
    masks: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class PhraseDetector:
    """GroundingDINO, asked for one class at a time."""

    #: Name in results.
    by: str
    #: Digest of the weights.
    identity: str
    network: Any
    processor: Any
    #: Confidence above which boxes are counted.
    counting_threshold: float = THRESHOLD

    def batch_key(self, pixels: Pixels, labels: Sequence[str]) -> Hashable:
        """Equal for images that may go together; VievalError for an unknown class."""
        return pixels.shape

    def detect(
        self, rows: Sequence[tuple[Pixels, Sequence[str]]], threshold: float
    ) -> list[dict[str, ClassBoxes]]:
        """The boxes of each image by class, at least those above the threshold."""
        phrases = [(pixels, label) for pixels, labels in rows for label in labels]
        boxes = iter(
            find_boxes(
                self.network,
                self.processor,
                phrases,
                threshold,
            )
        )
        return [
            {label: _class_boxes(pixels, *next(boxes)) for label in labels}
            for pixels, labels in rows
        ]


def _class_boxes(pixels: Pixels, scores: Any, sides: Any) -> ClassBoxes:
    """Boxes within their image."""
    height, width = pixels.shape[:2]
    limits = np.array([width, height, width, height], float)
    inside = np.clip(sides.cpu().double().numpy().reshape(-1, 4), 0, limits)
    return ClassBoxes(scores.cpu().double().numpy(), inside)


@dataclass(frozen=True)
class MaskDetector:
    """Mask2Former with the post-processing of GenEval's."""

    by: str
    identity: str
    network: Any
    #: Means and deviations (3, 1, 1) that colours are normalised with.
    mean: Any
    deviation: Any
    #: Number of each class.
    classes: Mapping[str, int]
    counting_threshold: float = 0.9

    def batch_key(self, pixels: Pixels, labels: Sequence[str]) -> Hashable:
        if unknown := [label for label in labels if label not in self.classes]:
            known_classes = ", ".join(self.classes)
            raise VievalError(
                f"{self.by} cannot detect {unknown[0]!r}; known classes: {known_classes}"
            )
        return scaled_size(*pixels.shape[:2])

    def detect(
        self, rows: Sequence[tuple[Pixels, Sequence[str]]], threshold: float
    ) -> list[dict[str, ClassBoxes]]:
        inputs = [self._inputs(pixels) for pixels, _ in rows]
        batch = library("torch").stack(inputs)
        outputs = self.network(pixel_values=batch.to(self.network.device))
        probabilities = outputs.class_queries_logits.softmax(-1)
        boxes_of_rows: list[dict[str, ClassBoxes]] = [{} for _ in rows]
        for number, (pixels, labels) in enumerate(rows):
            for label in labels:
                boxes_of_rows[number][label] = mask_boxes(
                    probabilities[number, :, self.classes[label]],
                    outputs.masks_queries_logits[number],
                    padded=batch.shape[-2:],
                    size=pixels.shape[:2],
                    threshold=threshold,
                )
        return boxes_of_rows

    def _inputs(self, pixels: Pixels) -> Any:
        """An image at the network's size, with zeros right of it and below."""
        torch = library("torch")
        height, width = scaled_size(*pixels.shape[:2])
        values = torch.from_numpy(pixels.copy()).permute(2, 0, 1).float() / 255
        normal = (_resize(values, height, width) - self.mean) / self.deviation
        return torch.nn.functional.pad(
            normal, (0, -width % _DIVISOR, 0, -height % _DIVISOR)
        )


#: Detector of objects of named classes.
Detector: TypeAlias = PhraseDetector | MaskDetector


def scaled_size(height: int, width: int) -> tuple[int, int]:
    """Height and width of an image as Mask2Former is given it.

    >>> scaled_size(512, 512), scaled_size(400, 1000)
    ((800, 800), (533, 1333))
    """
    shorter, longer = sorted((height, width))
    scale = min(SHORTER_SIDE / shorter, LONGEST_SIDE / longer)
    return int(height * scale + 0.5), int(width * scale + 0.5)


def mask_boxes(
    probabilities: Any,
    masks: Any,
    padded: Sequence[int],
    size: tuple[int, int],
    threshold: float,
) -> ClassBoxes:
    """The boxes of a class by Mask2Former's queries.

    The confidence of a query is its probability of the class times the mean probability of its
    mask's pixels, at the size of the image.

    Args:
        probabilities: of the class (queries,).
        masks: logits (queries, rows, columns) of the padded input.
        padded: height and width of the padded input.
        size: height and width of the image.
        threshold: queries below it are left out, as no confidence is above its probability.
    """
    likely = probabilities > threshold
    probabilities = probabilities[likely]
    masks = masks[likely]
    if not len(probabilities):
        return ClassBoxes(
            np.zeros(0),
            np.zeros((0, 4)),
            np.zeros((0, *size), bool),
        )
    height, width = scaled_size(*size)
    scaled = _resize(masks, *padded)[:, :height, :width]
    logits = _resize(scaled, *size)
    inside = logits > 0
    area = inside.flatten(1).sum(1)
    means = (logits.sigmoid() * inside).flatten(1).sum(1) / (area + 1e-6)
    sides = np.array([_box(mask) for mask in inside], float)
    return ClassBoxes(
        (probabilities * means).cpu().double().numpy(),
        sides,
        inside.cpu().numpy(),
    )


def _box(mask: Any) -> list[int]:
    """Left, top, right and bottom of a mask; zeros where it is empty."""
    rows = mask.any(1).nonzero()
    columns = mask.any(0).nonzero()
    if not len(rows):
        return [0, 0, 0, 0]
    return [
        int(columns[0]),
        int(rows[0]),
        int(columns[-1]) + 1,
        int(rows[-1]) + 1,
    ]


def _resize(planes: Any, height: int, width: int) -> Any:
    """Planes (n, rows, columns) at another size."""
    resize = library("torch").nn.functional.interpolate
    return resize(planes[None], (height, width), mode="bilinear", align_corners=False)[
        0
    ]


@dataclass(frozen=True)
class ColorClassifier:
    """CLIP as a classifier of colours; `vectors` has those of a class (colours, size)."""

    encoder: Encoder
    vectors: dict[str, Any] = field(default_factory=dict)

    def colors(
        self,
        pixels: Pixels,
        label: str,
        boxes: ClassBoxes,
        indices: Sequence[int],
    ) -> list[str]:
        """The colours of the chosen objects of a class."""
        if not indices:
            return []
        encoder = self.encoder
        cosines = (
            encoder.images(
                [encoder.pixels(_crop(pixels, boxes, index)) for index in indices]
            )
            @ self._color_vectors(label).T
        )
        return [COLORS[index] for index in cosines.argmax(-1).tolist()]

    def _color_vectors(self, label: str) -> Any:
        if label not in self.vectors:
            texts = [
                wording.format(color=color, label=label)
                for color in COLORS
                for wording in _WORDINGS
            ]
            vectors = self.encoder.texts(
                [self.encoder.tokens(text)[0] for text in texts]
            )
            means = vectors.reshape(len(COLORS), len(_WORDINGS), -1).mean(1)
            self.vectors[label] = means / means.norm(dim=-1, keepdim=True)
        return self.vectors[label]


def _crop(pixels: Pixels, boxes: ClassBoxes, index: int) -> PIL.Image.Image:
    """An object, grey around its mask."""
    left, top, right, bottom = (round(float(side)) for side in boxes.sides[index])
    if boxes.masks is not None:
        mask = boxes.masks[index][..., None]
        pixels = np.where(mask, pixels, np.uint8(_GREY))
    box = (left, top, max(right, left + 1), max(bottom, top + 1))
    return PIL.Image.fromarray(pixels).crop(box)


@dataclass(frozen=True)
class PreparedDetection:
    """An ask whose image is decoded."""

    pixels: Pixels
    arguments: Mapping[str, Any]


class ObjectInstrument:
    """A detector and a classifier of colours as an instrument."""

    def __init__(
        self,
        detector: Detector,
        colors: ColorClassifier | None,
        batch: int,
    ) -> None:
        self._detector = detector
        self._colors = colors
        self.batch = batch
        self.by = ", ".join([detector.by, *([colors.encoder.by] if colors else [])])

    def look(self, ask: UseTool) -> PreparedMeasure:
        """The image decoded; VievalError if it cannot be read, or a class is unknown."""
        pixels = images.pixels(ask.arguments["image"])
        arguments = dict(ask.arguments)
        image = arguments.pop("image")
        counting = arguments.pop("counting")
        threshold = self._detector.counting_threshold if counting else THRESHOLD
        arguments["threshold"] = threshold
        weights = [self._detector.identity]
        weights += [self._colors.encoder.identity] if self._colors else []
        size = self._detector.batch_key(pixels, arguments["labels"])
        parts = {
            "tool": ask.tool,
            "weights": weights,
            "image": images.digest(image),
            **arguments,
        }
        return PreparedMeasure(
            key_of(parts),
            PreparedDetection(pixels, arguments),
            (size, threshold),
        )

    def compute(self, contents: Sequence[PreparedDetection]) -> list[Reply]:
        return [*run_or_halve(contents, self._results)]

    def close(self) -> None:
        """Networks stay loaded for the next run."""

    def _results(self, batch: Sequence[PreparedDetection]) -> Sequence[ToolResult]:
        rows = [
            (detection.pixels, detection.arguments["labels"]) for detection in batch
        ]
        try:
            with inference():
                boxes_of_rows = self._detector.detect(
                    rows, batch[0].arguments["threshold"]
                )
                return [
                    to_result(self._objects(detection, boxes))
                    for detection, boxes in zip(batch, boxes_of_rows, strict=True)
                ]
        except (
            Exception
        ) as error:  # libraries raise anything on images made to break them
            raise VievalError(f"cannot detect objects: {line_of(error)}") from None

    def _objects(
        self, detection: PreparedDetection, boxes_by_label: Mapping[str, ClassBoxes]
    ) -> list[DetectedObject]:
        """The objects that count, of each class the surest first."""
        colored = dict(detection.arguments["colored"])
        objects = []
        for label, boxes in boxes_by_label.items():
            indices = surest(boxes.scores, detection.arguments["threshold"])
            colors = []
            if self._colors:
                colors = self._colors.colors(
                    detection.pixels,
                    label,
                    boxes,
                    indices[: colored.get(label, 0)],
                )
            for number, index in enumerate(indices):
                left, top, right, bottom = boxes.sides[index].round(2).tolist()
                color = colors[number] if number < len(colors) else ""
                score = round(float(boxes.scores[index]), 4)
                objects.append(
                    DetectedObject(label, (left, top, right, bottom), score, color)
                )
        return objects


def open_instrument(ask: UseTool, scorers: Mapping[str, Scorer]) -> ObjectInstrument:
    """The instrument of an ask: the detector, and where colours are wanted their classifier.

    Raises:
        VievalError: weights are not there, or of another architecture, or no safetensors.
    """
    scorer, color_scorer = (
        scorers.get(name, Scorer()) for name in (ask.tool, COLOR_SCORER)
    )
    origin = Origin(
        scorer.model or DETECTOR,
        scorer.revision,
        scorer.device,
    )
    color_origin = Origin(
        color_scorer.model or COLOR_MODEL,
        color_scorer.revision,
        color_scorer.device,
    )
    return ObjectInstrument(
        open_detector(origin),
        _open_colors(color_origin) if ask.arguments["colored"] else None,
        scorer.batch_size,
    )


@cache
def open_detector(origin: Origin) -> Detector:
    """A detector by the architecture of its weights, loaded once a process."""
    transformers = library("transformers")
    where = hub_name_or_folder(origin.model)
    options = {"revision": origin.revision} if origin.revision else {}
    try:
        config = transformers.AutoConfig.from_pretrained(
            where,
            trust_remote_code=False,
            **options,
        )
    except Exception as error:  # of files that others wrote
        raise VievalError(load_failure_reason(where, origin.revision, error)) from None
    if config.model_type == "mask2former":
        return _open_mask_detector(origin)
    network, _ = pretrained(
        "GroundingDinoForObjectDetection",
        "grounding-dino",
        origin,
        use_safetensors=True,
    )
    processor = transformers.AutoProcessor.from_pretrained(
        where,
        trust_remote_code=False,
        **options,
    )
    digest = identity(
        network,
        processor.image_processor.to_json_string(),
        processor.tokenizer.backend_tokenizer.to_str(),
    )
    return PhraseDetector(
        weights_name(origin, network, digest),
        digest,
        network,
        processor,
    )


def _open_mask_detector(origin: Origin) -> MaskDetector:
    torch = library("torch")
    network, processor = pretrained(
        "Mask2FormerForUniversalSegmentation",
        "mask2former",
        origin,
        use_safetensors=True,
    )
    labels = [name for _, name in sorted(network.config.id2label.items())]
    names = COCO_CLASSES if len(labels) == len(COCO_CLASSES) else labels
    mean, deviation = (
        torch.tensor(values).reshape(3, 1, 1)
        for values in (processor.image_mean, processor.image_std)
    )
    digest = identity(network, repr((processor.image_mean, processor.image_std)))
    return MaskDetector(
        weights_name(origin, network, digest),
        digest,
        network,
        mean,
        deviation,
        {name: number for number, name in enumerate(names)},
    )


@cache
def _open_colors(origin: Origin) -> ColorClassifier:
    return ColorClassifier(clip.load(origin, use_safetensors=True))
