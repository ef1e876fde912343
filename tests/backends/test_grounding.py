"""Test grounding: by a scripted detector, and by GroundingDINO with tiny random weights."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from tests import tiny_detector
from tests.extras import needs
from tests.tool_pictures import file, photograph
from vieval_plugin.backends.image_tools import grounding
from vieval_plugin.backends.image_tools import tools as backend
from vieval_plugin.backends.image_tools.grounding import (
    Detection,
    Grounder,
    drop_enclosing,
    grounding_query,
)
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import Box, Image, ToolResult, UseTool
from vieval_plugin.judges.tools import ToolMissing

NETWORKS = needs("torch", "transformers")


class Detector:
    """Answers with boxes by phrase, and remembers what it was asked in which batches."""

    def __init__(self, **boxes):
        self.boxes, self.batches = boxes, []

    def __call__(self, rows):
        self.batches.append([phrase for _, phrase in rows])
        return [self.boxes.get(phrase) for _, phrase in rows]


CAT = Detection(0.4, Box(0, 0, 5, 5))


def test_the_best_box_of_each_phrase_comes_surest_first_without_those_around_it():
    detector = Detector(cat=CAT, dog=Detection(0.9, Box(10, 10, 20, 20)))
    found = Grounder(detector).boxes(file(photograph(32)), ["cat", "dog", "bird"])
    assert found == [Box(10, 10, 20, 20), Box(0, 0, 5, 5)]
    whole, inner, other = (Box(n, n, m, m) for n, m in ((0, 100), (10, 20), (90, 120)))
    found = [(0.9, whole), (0.3, inner), (0.5, other), (0.2, inner)]
    assert drop_enclosing([Detection(*one) for one in found]) == [other, inner]


def test_an_image_and_phrase_are_detected_once_whatever_the_files_name(tmp_path):
    detector = Detector(cat=CAT)
    grounder, image = Grounder(detector), file(photograph(32))
    (tmp_path / "x.png").write_bytes(image.source)
    for same in (image, Image(tmp_path / "x.png")):
        assert grounder.boxes(same, ["cat"]) == [CAT.box]
    grounder.boxes(image, ["cat", "dog"])
    assert detector.batches == [["cat"], ["dog"]]


def test_what_waits_while_the_detector_is_busy_goes_in_one_batch():
    busy, release = threading.Event(), threading.Event()
    boxes = [Box(n, 0, n + 1, 1) for n in range(8)]
    detector = Detector(**{f"p{n}": Detection(0.5, boxes[n]) for n in range(8)})

    def slow(rows):
        if rows[0][1] == "p0":
            busy.set()
            assert release.wait(10)
        return detector(rows)

    grounder, image = Grounder(slow, batch=4), file(photograph(32))
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(grounder.boxes, image, ["p0"])]
        assert busy.wait(10)
        futures += [pool.submit(grounder.boxes, image, [f"p{n}"]) for n in range(1, 8)]
        while len(grounder._waiting) < 7:
            threading.Event().wait(0.005)
        release.set()
        assert [future.result(10) for future in futures] == [[box] for box in boxes]
    assert [len(batch) for batch in detector.batches] == [1, 4, 3]


def test_a_detector_that_fails_once_is_asked_again():
    answers = [[CAT], RuntimeError("out of memory")]

    def flaky(rows):
        answer = answers.pop()
        if isinstance(answer, Exception):
            raise answer
        return answer

    grounder, image = Grounder(flaky), file(photograph(32))
    with pytest.raises(RuntimeError, match="out of memory"):
        grounder.boxes(image, ["cat"])
    assert grounder.boxes(image, ["cat"]) == [CAT.box]


def test_a_phrase_is_one_query_to_the_detector():
    phrases = {"A cat": "a cat.", "a 1.5 l bottle": "a 1,5 l bottle."}
    phrases["Make it red. Keep\nthe cat?"] = "make it red, keep the cat."
    for phrase, query in phrases.items():
        assert grounding_query(phrase) == query


def grounding_ask(detector):
    about = {"image": file(photograph(64)), "phrases": ("a cat", "dog")}
    return UseTool("grounding", {**about, "detector": str(detector)}, ("t",))


@NETWORKS
def test_a_model_that_is_not_there_ends_the_run_with_what_to_do(tmp_path):
    with pytest.raises(ToolMissing, match=r"cannot load .*`detector`"):
        backend.run(grounding_ask(tmp_path))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_detector.build(tmp_path_factory.mktemp("detector"))


@pytest.fixture(scope="module")
def detect(folder):
    return grounding.load(str(folder))[0]


def best_by_hand(folder, image, query):
    """The surest box in pixels as floats, computed from the model's raw outputs."""
    import torch
    from transformers import AutoModelForZeroShotObjectDetection, AutoProcessor

    processor = AutoProcessor.from_pretrained(folder)
    model = AutoModelForZeroShotObjectDetection.from_pretrained(folder).eval()
    with torch.no_grad():
        outputs = model(**processor(images=image, text=query, return_tensors="pt"))
    sureness = outputs.logits[0].sigmoid().max(dim=1).values
    best = int(sureness.argmax())
    x, y, width, height = outputs.pred_boxes[0, best].tolist()
    shares = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    rows, columns = image.shape[:2]
    return float(sureness[best]), np.multiply(shares, (columns, rows, columns, rows))


@NETWORKS
def test_the_best_box_is_that_of_the_models_raw_outputs(folder, detect, monkeypatch):
    image = photograph(90, seed=4)[:60]
    score, edges = best_by_hand(folder, image, "the red toy.")
    [found] = detect([(image, "The red toy")])
    assert found.score == pytest.approx(score, abs=1e-5)
    left, top, right, bottom = np.clip(edges, 0, (90, 60, 90, 60))
    box = found.box
    for whole, exact in ((box.left, left), (box.top, top)):
        assert 0 <= whole <= exact < whole + 1.001
    for whole, exact, most in ((box.right, right, 90), (box.bottom, bottom, 60)):
        assert whole - 1.001 < exact <= whole <= most
    monkeypatch.setattr(grounding, "BOX_THRESHOLD", 1.0)
    assert detect([(image, "The red toy")]) == [None]


@NETWORKS
def test_what_is_found_does_not_depend_on_what_else_is_in_the_batch(detect):
    phrases = ("a cat", "make it blue", "the red toy in the room", "cat " * 300)
    sizes = ((64, 64), (100, 60), (64, 64), (80, 80))
    images = [photograph(side, n)[:height] for n, (side, height) in enumerate(sizes)]
    rows = list(zip(images, phrases, strict=True))
    together = [one.box for one in detect(rows)]
    assert together == [detect([row])[0].box for row in rows]
    assert len(set(together)) > 1


@NETWORKS
def test_the_tool_runs_the_named_model_and_loads_it_once(folder, monkeypatch):
    loaded, load = [], grounding.load
    noting = lambda *given: loaded.append(given) or load(*given)
    monkeypatch.setattr(grounding, "load", noting)
    ask = grounding_ask(folder)
    first, second = backend.run(ask), backend.run(ask)
    assert first == second
    assert 1 <= len(first.boxes) <= 2
    for box in first.boxes:
        assert 0 <= box.left < box.right <= 64
        assert 0 <= box.top < box.bottom <= 64
    assert loaded == [(str(folder),)]
    assert first.by == str(folder)


COMMIT = "12bdfa3120f3e7ec7b434d90674b3396eccf88eb"


@NETWORKS
def test_the_wanted_revision_is_loaded_and_its_commit_kept(folder, monkeypatch):
    import transformers

    wanted = []

    def from_the_hub(load, name, revision=None):
        wanted.append((name, revision))
        made = load(folder)
        if hasattr(made, "config"):
            made.config._commit_hash = COMMIT
        return made

    for name in ("AutoProcessor", "AutoModelForZeroShotObjectDetection"):
        loader = getattr(transformers, name)
        loading = partial(from_the_hub, loader.from_pretrained)
        monkeypatch.setattr(loader, "from_pretrained", loading)
    found = backend.run(grounding_ask("some/dino@v1"))
    assert wanted == [("some/dino", "v1")] * 2
    assert found.by == f"some/dino@{COMMIT}"
    kept = tools.to_json(found)
    assert json.loads(kept)["by"] == tools.from_json(kept).by == found.by
    assert "by" not in json.loads(tools.to_json(ToolResult(text="x")))
