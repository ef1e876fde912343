"""Test GroundingDINO through transformers, with a tiny random model."""

import json

import pytest

from tests import tiny_detector
from tests.tool_pictures import file, photograph
from vieval_plugin.backends.image_tools import tools as backend
from vieval_plugin.images import decode
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import ToolResult, UseTool

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from vieval_plugin.backends.image_tools import grounding  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_detector.build(tmp_path_factory.mktemp("detector"))


@pytest.fixture(scope="module")
def detect(folder):
    return grounding.load(str(folder))[0]


def best_by_hand(folder, image, query):
    """The surest box in pixels as floats, computed from the model's raw outputs."""
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
    sides = (columns, rows, columns, rows)
    edges = [share * side for share, side in zip(shares, sides, strict=True)]
    return float(sureness[best]), edges


def test_the_best_box_is_that_of_the_models_raw_outputs(folder, detect):
    image = photograph(90, seed=4)[:60]
    score, (left, top, right, bottom) = best_by_hand(folder, image, "the red toy.")
    [found] = detect([(image, "The red toy")])
    assert found.score == pytest.approx(score, abs=1e-5)
    assert 0 <= found.box.left <= max(left, 0) < found.box.left + 1.001
    assert 0 <= found.box.top <= max(top, 0) < found.box.top + 1.001
    assert found.box.right - 1.001 < min(right, 90) <= found.box.right <= 90
    assert found.box.bottom - 1.001 < min(bottom, 60) <= found.box.bottom <= 60


def test_what_is_found_does_not_depend_on_what_else_is_in_the_batch(detect):
    phrases = ("a cat", "make it blue", "the red toy in the room", "cat " * 300)
    sizes = ((64, 64), (100, 60), (64, 64), (80, 80))
    images = [photograph(side, n)[:height] for n, (side, height) in enumerate(sizes)]
    rows = list(zip(images, phrases, strict=True))
    together = [one.box for one in detect(rows)]
    assert together == [detect([row])[0].box for row in rows]
    assert len(set(together)) > 1


def test_nothing_surer_than_the_threshold_is_nothing(folder, detect, monkeypatch):
    monkeypatch.setattr(grounding, "BOX_THRESHOLD", 1.0)
    assert detect([(photograph(64), "a cat")]) == [None]


def test_the_tool_runs_the_named_model_and_loads_it_once(folder, monkeypatch):
    loaded, load = [], grounding.load
    noting = lambda *given: loaded.append(given) or load(*given)
    monkeypatch.setattr(grounding, "load", noting)
    image = file(photograph(64))
    about = {"image": image, "phrases": ("a cat", "dog"), "detector": str(folder)}
    ask = UseTool("grounding", about, ("t",))
    first, second = backend.run(ask), backend.run(ask)
    assert first == second
    assert 1 <= len(first.boxes) <= 2
    for box in first.boxes:
        assert 0 <= box.left < box.right <= 64
        assert 0 <= box.top < box.bottom <= decode(image).height
    assert loaded == [(str(folder),)]
    assert first.by == str(folder)


COMMIT = "12bdfa3120f3e7ec7b434d90674b3396eccf88eb"


def test_the_wanted_revision_is_loaded_and_its_commit_kept(folder, monkeypatch):
    import transformers

    wanted = []

    def from_the_hub(loader):
        load = loader.from_pretrained

        def loading(name, revision=None):
            wanted.append((name, revision))
            made = load(folder)
            if hasattr(made, "config"):
                made.config._commit_hash = COMMIT
            return made

        return loading

    for name in ("AutoProcessor", "AutoModelForZeroShotObjectDetection"):
        loader = getattr(transformers, name)
        monkeypatch.setattr(loader, "from_pretrained", from_the_hub(loader))
    about = {"image": file(photograph(64)), "phrases": ("a cat",)}
    ask = UseTool("grounding", {**about, "detector": "some/dino@v1"}, ("t",))
    found = backend.run(ask)
    assert wanted == [("some/dino", "v1")] * 2
    assert found.by == f"some/dino@{COMMIT}"
    kept = tools.to_json(found)
    assert json.loads(kept)["by"] == tools.from_json(kept).by == found.by
    assert "by" not in json.loads(tools.to_json(ToolResult(text="x")))
