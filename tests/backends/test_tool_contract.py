"""Test what every image tool does, with tiny models behind those that need one."""

from dataclasses import dataclass, field

import pytest

from tests import tiny_detector, tiny_segmenter
from tests.extras import needs
from tests.tool_pictures import edited, file, photograph
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.image_tools import object_detector
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.config import Scorer
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import Box, Image, Status, ToolResult, UseTool
from vieval_plugin.run.router import Router, refuse_questions


@dataclass(frozen=True)
class Using:
    """A tool in use: its arguments beside the image, and whether its results are stored."""

    tool: str
    further: dict = field(default_factory=dict)
    role: str = "image"
    scorers: Scorers | None = None
    is_stored: bool = False

    def ask(self, number=0, image=None):
        shown = {self.role: image or file(photograph(96, number))}
        return UseTool(self.tool, {**self.further, **shown}, (str(number),))

    def run(self, asks, store=None, usage=None):
        with Router(usage or Usage(), store, scorers=self.scorers) as router:
            return router.answer_batch(list(enumerate(asks)), refuse_questions)


def difference(folder):
    first = file(edited(photograph(96, 0), 20, 20, 40, 30))
    return Using("difference", {"first": first}, "second")


def grounding(folder):
    detector = str(tiny_detector.build(folder))
    return Using("grounding", {"phrases": ("a cat", "dog"), "detector": detector})


def objects(folder):
    weights = str(tiny_segmenter.build(folder, ("cat", "dog")))
    asked = {"labels": ("cat", "dog"), "colored": (), "counting": False}
    scorers = Scorers({"objects": Scorer(weights)})
    return Using("objects", asked, scorers=scorers, is_stored=True)


NETWORKS = needs("torch", "transformers", "torchvision")
TOOLS = [
    pytest.param(lambda _: Using("highlight", {"boxes": (Box(9, 9, 40, 40),)})),
    pytest.param(difference, marks=needs("cv2")),
    pytest.param(lambda _: Using("ocr", is_stored=True), marks=needs("rapidocr")),
    pytest.param(grounding, marks=NETWORKS),
    pytest.param(objects, marks=NETWORKS),
]


@pytest.fixture(
    scope="module",
    params=TOOLS,
    ids=["highlight", "difference", "ocr", "grounding", "objects"],
)
def tool(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("tool"))


@pytest.fixture(autouse=True)
def small_inputs(monkeypatch):
    monkeypatch.setattr(object_detector, "SHORTER_SIDE", 96)
    monkeypatch.setattr(object_detector, "LONGEST_SIDE", 160)


def test_an_unreadable_image_fails_alone_in_a_line(tool):
    half = tool.ask().arguments[tool.role].source[:900]
    asks = [tool.ask(0), tool.ask(1, Image(b"no image")), tool.ask(2, Image(half))]
    found, *broken = tool.run(asks)
    assert isinstance(found, ToolResult)
    assert [one.status for one in broken] == [Status.TOOL_ERROR] * 2
    assert all(one.reason and "\n" not in one.reason for one in broken)


def test_the_same_image_has_the_same_result_in_any_order(tool):
    asks = [tool.ask(number) for number in (0, 1, 2, 1, 0)]
    found = tool.run(asks)
    assert found[3:] == [found[1], found[0]]
    alone = [tool.run([ask])[0].boxes for ask in asks[:3]]
    assert alone == [one.boxes for one in found[:3]]


def test_a_result_survives_json_without_its_image(tool):
    [found] = tool.run([tool.ask()])
    kept = tools.from_json(tools.to_json(found))
    assert kept == ToolResult(found.boxes, found.text, by=found.by)


def test_what_is_stored_is_not_run_again(tool, tmp_path):
    usage, store, asks = Usage(), Store(tmp_path / "replies.sqlite"), [tool.ask()]
    first = tool.run(asks, store)
    assert tool.run(asks, store, usage)[0].boxes == first[0].boxes
    assert (usage.cached, usage.measured) == (int(tool.is_stored), 0)
