"""Test detectors of objects and colours beside plain PyTorch, and the judge `objects`."""

import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from tests import tiny_detector, tiny_scorers, tiny_segmenter
from tests.backends.metric_asks import NETWORKS
from tests.backends.value_heads import picture
from tests.refusals import refusal
from vieval_plugin import Sample, SampleId, Status
from vieval_plugin.api.judge import Judge
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.image_tools import object_detector
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.backends.weights import Origin
from vieval_plugin.config import Scorer
from vieval_plugin.images import decode
from vieval_plugin.judges.objects import COLORS, detected_objects
from vieval_plugin.judges.protocol import ToolResult, UseTool
from vieval_plugin.run.router import Router, refuse_questions

pytestmark = [*NETWORKS, pytest.mark.usefixtures("small_inputs")]

LABELS = ("cat", "dog")
SIZES = ((80, 64), (64, 100), (200, 60), (64, 80), (64, 64), (120, 60), (160, 128))


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("objects")
    return {
        "phrases": tiny_detector.build(folder / "phrases"),
        "masks": tiny_segmenter.build(folder / "masks", ("cat", "dog", "toy")),
        "colors": tiny_scorers.build_clip(folder / "colors"),
    }


def ask(image, labels=LABELS, colored=(("cat", 2),)):
    about = {"labels": labels, "colored": colored, "counting": False}
    return UseTool("objects", {"image": image, **about}, ("objects",))


def answers(asks, weights, kind, store=None, usage=None, batch_size=8):
    own = Scorer(str(weights[kind]), batch_size=batch_size)
    colors = Scorer(str(weights["colors"]))
    scorers = Scorers({"objects": own, "objects_color": colors})
    with Router(usage or Usage(), store, scorers=scorers) as router:
        return router.answer_batch(list(enumerate(asks)), refuse_questions)


THRESHOLDS = {"phrases": 0.2, "masks": 0.3}


def masks_by_hand(folder, image, label, threshold):
    """Boxes and scores of a class in the order of the queries, written from the protocol."""
    import torch
    from transformers import Mask2FormerForUniversalSegmentation

    network = Mask2FormerForUniversalSegmentation.from_pretrained(folder).eval()
    pixels = torch.tensor(np.array(decode(image))).permute(2, 0, 1)[None] / 255
    _, _, height, width = pixels.shape
    factor = min(160 / max(height, width), 96 / min(height, width))
    new = round(height * factor), round(width * factor)

    def resized(values, size):
        about = {"size": size, "mode": "bilinear", "align_corners": False}
        return torch.nn.functional.interpolate(values, **about)

    mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
    deviation = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
    padded = torch.zeros(1, 3, (new[0] + 31) // 32 * 32, (new[1] + 31) // 32 * 32)
    padded[:, :, : new[0], : new[1]] = (resized(pixels, new) - mean) / deviation
    with torch.no_grad():
        outputs = network(pixel_values=padded)
    masks = resized(outputs.masks_queries_logits, padded.shape[2:])
    masks = resized(masks[:, :, : new[0], : new[1]], (height, width))[0]
    classes = outputs.class_queries_logits[0].softmax(-1)
    found = []
    for query, mask in enumerate(masks):
        on = mask > 0
        if not on.any():
            continue
        mean_of_mask = float(mask.sigmoid()[on].double().mean())
        score = float(classes[query, network.config.label2id[label]]) * mean_of_mask
        rows, columns = np.nonzero(on.numpy())
        box = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
        if score > threshold:
            found.append((score, tuple(map(float, box)), on.numpy()))
    return sorted(found, key=lambda one: -one[0])


def color_by_hand(folder, image, label, box, mask):
    """The colour of an object by the library's own CLIP."""
    import torch
    from transformers import CLIPModel, CLIPProcessor

    model = CLIPModel.from_pretrained(folder)
    pixels = np.array(decode(image))
    if mask is not None:
        pixels[~mask] = 153
    crop = PIL.Image.fromarray(pixels).crop(tuple(round(side) for side in box))
    forms = ("{} {}", "{}-colored {}", "{} object")
    names = [form.format(color, label) for color in COLORS for form in forms]
    texts = [f"a photo of a {name}" for name in names]
    read = {"return_tensors": "pt", "truncation": True, "max_length": 16}
    processor = CLIPProcessor.from_pretrained(folder)
    inputs = processor(text=texts, images=crop, padding=True, **read)
    with torch.no_grad():
        outputs = model(**inputs)
    normal = torch.nn.functional.normalize
    vectors = normal(outputs.text_embeds, dim=-1).unflatten(0, (len(COLORS), 3))
    likeness = normal(vectors.mean(1), dim=-1) @ outputs.image_embeds[0]
    return COLORS[int(likeness.argmax())]


def test_masks_and_colors_are_those_of_plain_pytorch(weights):
    images = [picture(seed, SIZES[seed % 3]) for seed in range(6)]
    results = answers(list(map(ask, images)), weights, "masks")
    labels = []
    for image, result in zip(images, results, strict=True):
        for label in LABELS:
            wanted = masks_by_hand(weights["masks"], image, label, 0.3)[:16]
            found = [one for one in detected_objects(result) if one.label == label]
            assert [one.box for one in found] == [box for _, box, _ in wanted]
            scores = [score for score, _, _ in wanted]
            assert [one.score for one in found] == pytest.approx(scores, abs=1e-3)
            for number, one in enumerate(found):
                _, box, mask = wanted[number]
                is_read = label == "cat" and number < 2
                color = color_by_hand(weights["colors"], image, label, box, mask)
                assert one.color == (color if is_read else "")
            labels += [label] * len(found)
    # random weights find something to compare
    assert len(labels) >= 6
    assert set(labels) == set(LABELS)


def test_phrases_are_found_as_by_the_models_raw_outputs(weights, monkeypatch):
    import torch
    from transformers import AutoModelForZeroShotObjectDetection, AutoProcessor

    image = picture(4, (90, 60))
    processor = AutoProcessor.from_pretrained(weights["phrases"])
    model = AutoModelForZeroShotObjectDetection.from_pretrained(weights["phrases"])
    pixels = np.array(decode(image))
    inputs = processor(images=pixels, text="cat.", return_tensors="pt")
    with torch.no_grad():
        outputs = model.eval()(**inputs)
    scores = outputs.logits[0].sigmoid().max(dim=1).values
    threshold = float(scores.sort().values[-6:-4].mean())
    monkeypatch.setattr(object_detector, "THRESHOLD", threshold)
    [result] = answers([ask(image, ("cat",), ())], weights, "phrases")
    order = [int(i) for i in scores.argsort(descending=True) if scores[i] > threshold]
    found = detected_objects(result)
    assert len(found) == len(order) == 5
    for one, query in zip(found, order, strict=True):
        x, y, width, height = outputs.pred_boxes[0, query].tolist()
        shares = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        sides = np.clip(shares, 0, 1) * (90, 60, 90, 60)
        assert one.box == pytest.approx(sides, abs=0.011)
        assert one.score == pytest.approx(float(scores[query]), abs=1e-3)
    for box, one in zip(result.boxes, found, strict=True):
        assert box.left <= one.box[0] < box.left + 1
        assert box.bottom - 1 < one.box[3] <= box.bottom


@pytest.mark.parametrize("kind", ["masks", "phrases"])
def test_neither_the_batch_nor_other_images_matter(weights, kind, monkeypatch):
    monkeypatch.setattr(object_detector, "THRESHOLD", THRESHOLDS[kind])
    asks = [ask(picture(seed, SIZES[seed % len(SIZES)])) for seed in range(40)]
    found = [answers(asks, weights, kind, batch_size=size) for size in (16, 1)]
    together, alone = (list(map(detected_objects, results)) for results in found)
    assert len(set(map(str, together))) > 10
    for both in zip(together, alone, strict=True):
        one, other = ([(o.label, o.color) for o in objects] for objects in both)
        assert one == other
        boxes, others = (np.array([o.box for o in objects]) for objects in both)
        assert np.allclose(boxes, others, atol=0.011)


def test_a_verdict_has_its_boxes_and_its_networks_in_the_trace(weights):
    options = {"scorers": {"objects_color": {"model": str(weights["colors"])}}}
    judge = Judge("objects", scorer=str(weights["masks"]), options=options)
    asked = json.dumps({"include": [{"class": "cat", "count": 1, "color": "red"}]})
    images, texts = {"output": picture(0)}, {"objects": asked}
    [verdict] = judge([Sample(SampleId("own", "tig", "m", "0"), images, texts)])
    [step] = verdict.trace
    kept = json.loads(step.answer)
    assert len(kept["boxes"]) == len(kept["text"].splitlines())
    masks, colors = kept["by"].split(", ")
    assert masks.startswith(f"{weights['masks']}@sha256:")
    assert colors.startswith(f"{weights['colors']}@sha256:")


def test_another_detector_is_another_question_and_has_thresholds_of_its_own(
    weights, tmp_path
):
    store, asks = Store(tmp_path / "replies.sqlite"), [ask(picture(1))]
    [first] = answers(asks, weights, "masks", store)
    assert answers(asks, weights, "phrases", store) != [first]
    opened = (
        object_detector.open_detector(Origin(str(weights[k]))) for k in THRESHOLDS
    )
    assert [one.counting_threshold for one in opened] == [0.3, 0.9]


def test_an_unknown_class_fails_alone(weights):
    unknown = ask(picture(1), ("unicorn",), ())
    failed, found = answers([unknown, ask(picture(1))], weights, "masks")
    assert failed.status is Status.TOOL_ERROR
    assert "cannot detect 'unicorn'; known classes: cat, dog, toy" in failed.reason
    assert isinstance(found, ToolResult)


def test_coco_is_called_as_geneval_calls_it(shared_data):
    names = (shared_data / "geneval" / "object_names.txt").read_text().split("\n")
    assert list(object_detector.COCO_CLASSES) == [name for name in names if name]


def test_weights_that_will_not_do(weights, tmp_path):
    def refused(model):
        held = {**weights, "other": model}
        return refusal(answers, [ask(picture(1))], held, "other")

    assert "weights folder not found" in refused(tmp_path / "nothing")
    other = "architecture grounding-dino (GroundingDinoForObjectDetection), got clip"
    assert other in refused(weights["colors"])
    import torch
    from safetensors.torch import load_file

    folder = tiny_segmenter.build(tmp_path / "pickled", ("cat",))
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    Path(folder / "model.safetensors").unlink()
    assert str(folder) in refused(folder)
