"""Test grounding with a scripted detector: boxes kept, repeats and batches."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.extras import needs
from tests.tool_pictures import file, photograph
from vieval_plugin.backends.image_tools import tools as backend
from vieval_plugin.backends.image_tools.grounding import (
    Detection,
    Grounder,
    drop_enclosing,
    grounding_query,
)
from vieval_plugin.judges.protocol import Box, Image, UseTool
from vieval_plugin.judges.tools import ToolMissing


class Detector:
    """Answers with boxes by phrase, and remembers what it was asked in which batches."""

    def __init__(self, **boxes):
        self.boxes, self.batches = boxes, []

    def __call__(self, rows):
        self.batches.append([phrase for _, phrase in rows])
        return [self.boxes.get(phrase) for _, phrase in rows]


CAT = Detection(0.4, Box(0, 0, 5, 5))


def test_the_best_box_of_each_phrase_comes_surest_first():
    detector = Detector(cat=CAT, dog=Detection(0.9, Box(10, 10, 20, 20)))
    found = Grounder(detector).boxes(file(photograph(32)), ["cat", "dog", "bird"])
    assert found == [Box(10, 10, 20, 20), Box(0, 0, 5, 5)]


def test_a_box_that_encloses_a_smaller_one_is_dropped():
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
    answers = iter([RuntimeError("out of memory"), [CAT]])

    def flaky(rows):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    grounder, image = Grounder(flaky), file(photograph(32))
    with pytest.raises(RuntimeError, match="out of memory"):
        grounder.boxes(image, ["cat"])
    assert grounder.boxes(image, ["cat"]) == [CAT.box]


@pytest.mark.parametrize(
    ("phrase", "query"),
    [
        ("A cat", "a cat."),
        ("Make it red. Keep\nthe cat?", "make it red, keep the cat."),
        ("a 1.5 l bottle", "a 1,5 l bottle."),
    ],
)
def test_a_phrase_is_one_query_to_the_detector(phrase, query):
    assert grounding_query(phrase) == query


@needs("torch", "transformers")
def test_a_model_that_is_not_there_ends_the_run_with_what_to_do(tmp_path):
    asked = {"image": file(photograph(32)), "phrases": ("cat",)}
    ask = UseTool("grounding", {**asked, "detector": str(tmp_path)}, ("t",))
    with pytest.raises(ToolMissing, match=r"cannot load .*`detector`"):
        backend.run(ask)
