"""Test what every image tool does, with tiny models behind those that need one, and that tools run
beside a model's calls.
"""

import threading
from dataclasses import dataclass, field

import pytest

from tests import tiny_detector, tiny_segmenter
from tests.extras import needs
from tests.playing import scripted
from tests.tool_pictures import edited, file, photograph
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.config import Scorer
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import (
    Box,
    Chat,
    Failure,
    Image,
    Message,
    Sample,
    SampleId,
    Status,
    Text,
    ToolResult,
    UseTool,
    Verdict,
)
from vieval_plugin.judges.tools import Tool, ToolMissing
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.router import Router, refuse_questions
from vieval_plugin.run.runner import judge_each


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


pytestmark = pytest.mark.usefixtures("small_inputs")
NAMES = ["highlight", "difference", "ocr", "grounding", "objects"]


@pytest.fixture(scope="module", params=TOOLS, ids=NAMES)
def tool(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("tool"))


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


SAMPLE = Sample(SampleId("b", "tig", "m", "1"), {})
CHAT = Chat((Message("user", ("hello",)),), ("chat",))


@pytest.fixture
def with_tool(monkeypatch):
    def put_in(run):
        monkeypatch.setattr(tools, "registry", lambda: {"saw": Tool("saw", run=run)})

    return put_in


def asking(*asks):
    """A judge that asks these at once and tells the replies."""

    def judge(sample):
        replies = yield list(asks)
        return Verdict({}, Status.OK, rationale=repr(replies))

    return scripted(judge)


class Answers:
    """A backbone that runs `when_asked` and answers."""

    def __init__(self, when_asked=lambda: None):
        self.when_asked = when_asked

    async def answer(self, ask, repeat=0):
        self.when_asked()
        return Text("hi")


async def judged(*judges, backbone):
    outcomes = {}
    jobs = [Job(SAMPLE, judge) for judge in judges]
    end = {"live": 8, "bar": False}
    await judge_each(jobs, backbone.answer, Progress(), outcomes.__setitem__, **end)
    return [outcomes[n].verdict.rationale for n in range(len(judges))]


def saw(path="t", **arguments):
    return UseTool("saw", arguments, (path,))


def told(*texts):
    return repr([ToolResult(text=text) for text in texts])


async def test_models_are_asked_while_tools_run_and_replies_come_in_order(with_tool):
    asked = threading.Event()

    def run(arguments):
        # ends only once the model of another sample was asked
        assert asked.wait(60)
        return ToolResult(text=arguments["word"])

    with_tool(run)
    ask = asking(saw(word="a"), CHAT, saw(word="b"))
    judges = ask, asking(CHAT)
    found, _ = await judged(*judges, backbone=Answers(asked.set))
    assert found == repr([ToolResult(text="a"), Text("hi"), ToolResult(text="b")])


async def test_a_tool_that_is_missing_ends_the_run(with_tool):
    def run(arguments):
        raise ToolMissing("buy a saw")

    with_tool(run)
    with pytest.raises(ToolMissing, match="buy a saw"):
        await judged(asking(saw()), asking(CHAT), backbone=Answers())


async def test_a_tool_asked_for_twice_at_once_runs_once_and_later_anew(with_tool):
    release, runs = threading.Event(), []

    def run(arguments):
        runs.append(arguments["word"])
        return ToolResult(text=str(release.wait(60)))

    with_tool(run)
    same, again = saw(word="a"), saw("u", word="a")
    threading.Timer(0.2, release.set).start()
    judges = asking(same, saw(word="b")), asking(again)
    found = await judged(*judges, backbone=Answers())
    assert found == [told("True", "True"), told("True")]
    assert sorted(runs) == ["a", "b"]
    await judged(asking(same), backbone=Answers())
    assert sorted(runs) == ["a", "a", "b"]


def in_batch(asks, generate):
    with Router(Usage()) as router:
        return router.answer_batch(list(enumerate(asks)), generate)


def test_in_batches_tools_run_while_the_model_generates(with_tool):
    generating, cutting = threading.Event(), threading.Event()

    def run(arguments):
        cutting.set()
        return ToolResult(text=str(generating.wait(60)))

    def generate(batch):
        generating.set()
        assert cutting.wait(60)
        return [Text("hi") for _ in batch]

    with_tool(run)
    replies = in_batch([saw(), CHAT], generate)
    assert replies == [ToolResult(text="True"), Text("hi")]


def test_in_batches_a_tool_that_fails_is_a_failure_of_its_own(with_tool):
    def run(arguments):
        raise ValueError("blunt\nblade")

    with_tool(run)
    asks = [CHAT, saw(), UseTool("axe", {}, ("t",))]
    text, *failed = in_batch(asks, lambda batch: [Text("hi")])
    assert text == Text("hi")
    reasons = "saw: ValueError: blunt blade", "unknown tool 'axe'"
    assert failed == [Failure(Status.TOOL_ERROR, reason) for reason in reasons]
