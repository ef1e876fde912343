"""A run whose judge uses image tools: what is decoded, what is sent, what memory it holds."""

import base64
import json
import re
import tempfile
import threading
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests.extras import needs
from tests.fake_server import FakeServer
from tests.tool_pictures import edited, file, photograph
from vieval_plugin import Backbone, evaluate, images
from vieval_plugin.backends.image_tools import tools as image_tools
from vieval_plugin.config import Config
from vieval_plugin.images import pixels
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Text
from vieval_plugin.judges.tools.difference import difference
from vieval_plugin.judges.tools.highlight import highlight
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.runner import judge_in_batches

pytestmark = needs("cv2")

SIDE = 256
SIGNATURES = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG"}
OTHERS = [tool.name for tool in tools.planned() if tool.name != "difference"]
TASK = {"used": True, "tool": "difference", "reasoning": "fine"}
PLAN = json.dumps({"plan": [{"task_id": n, **TASK} for n in (1, 2)]})
SCORE = json.dumps({"score": [5], "reasoning": "so so"})


def edits(count, format="JPEG", first_seed=100):
    """Mask-guided edits, each of a photograph of its own."""
    for number in range(count):
        before = photograph(SIDE, first_seed + number)
        pictures = {"source": before, "output": edited(before, 40, 60, 80, 70)}
        shown = {role: file(one, format) for role, one in pictures.items()}
        texts = {"instruction": f"put hat {number} here"}
        yield Sample(SampleId("own", "mie", "m", str(number)), shown, texts)


def options(store=None):
    kept = {"path": store} if store else {"use": False}
    judges = {"cigeval": {"removed": OTHERS}}
    return Config.model_validate({"store": kept, "judges": judges})


class Answers:
    """A server that has the difference looked at, and remembers what its ratings were shown."""

    def __init__(self):
        self.shown, self.calls = [], Counter()

    def __call__(self, request):
        schema = json.dumps(request.get("response_format"))
        if '"probe"' in schema:
            return json.dumps({"probe": "vieval"})
        asked = "plan" if '"plan"' in schema else "rating"
        self.calls[asked] += 1
        if asked == "plan":
            return PLAN
        content = request["messages"][0]["content"]
        urls = [part["image_url"]["url"] for part in content if "image_url" in part]
        self.shown += [Image(base64.b64decode(url.partition(",")[2])) for url in urls]
        return SCORE


def evaluated(samples, server, store=None):
    backbone = Backbone(model="fake", base_url=(server.base_url,))
    how = {"backbone": backbone, "options": options(store)}
    return evaluate(samples, judge="cigeval", **how)


def judged(samples, store=None):
    answers = Answers()
    with FakeServer(reply=answers) as server:
        verdicts = evaluated(samples, server, store)
    assert {verdict.status for verdict in verdicts} == {Status.OK}
    return verdicts, answers


@pytest.fixture
def decodings(monkeypatch):
    """The bytes of each file that was decoded, and whether the main thread did so."""
    found, real = [], images.load_strictly

    def noting(picture, stream):
        is_main = threading.current_thread() is threading.main_thread()
        found.append((stream.getvalue(), is_main))
        return real(picture, stream)

    monkeypatch.setattr(images, "load_strictly", noting)
    return found


@pytest.mark.parametrize("format", ["JPEG", "PNG"])
def test_an_image_is_decoded_once_off_the_event_loop(format, decodings):
    samples = list(edits(6, format, first_seed=200))
    _, answers = judged(samples)
    own = [image.source for sample in samples for image in sample.images.values()]
    assert Counter(data for data, _ in decodings) == dict.fromkeys(own, 1)
    assert not any(on_the_loop for _, on_the_loop in decodings)
    assert len(answers.shown) == 24
    shown = {image.source for image in answers.shown}
    assert not shown & set(own), "all were highlighted"


@pytest.mark.parametrize(("format", "most"), [("JPEG", 40), ("PNG", 0)])
def test_a_model_is_shown_the_same_boxes_in_the_format_of_the_source(format, most):
    [sample] = edits(1, format)
    [verdict], answers = judged([sample])
    source, output = (pixels(sample.images[role]) for role in ("source", "output"))
    boxes = difference(source, output)
    steps = [step for step in verdict.trace if step.path[-1] == "difference"]
    told = [tools.from_json(step.answer) for step in steps]
    assert [list(one.boxes) for one in told] == [boxes, boxes]
    assert len(answers.shown) == 4
    for shown, exact in zip(answers.shown, [source, output] * 2, strict=True):
        assert shown.source.startswith(SIGNATURES[format.lower()])
        found = np.abs(pixels(shown).astype(int) - highlight(exact, boxes[:1])).max()
        assert found <= most


def test_an_answer_is_kept_for_what_was_sent(tmp_path):
    samples, store = list(edits(2)), tmp_path / "replies.sqlite"
    first, answers = judged(samples, store)
    assert answers.calls["rating"] == 4
    again, answers = judged(samples, store)
    assert (again, answers.calls) == (first, {})


def test_waves_bound_the_images_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(image_tools, "MEMORY", 1 << 20)
    judge, held = prepare("cigeval", "paper", options()), Counter()

    def answer(asked):
        if asked[0][1].path == ("plan",):
            return [Text(PLAN) for _ in asked]
        parts = [part for _, ask in asked for part in ask.messages[0].parts]
        shown = {id(part): part for part in parts if isinstance(part, Image)}
        for image in shown.values():
            in_memory = isinstance(image.source, bytes)
            held["memory"] += len(image.source) if in_memory else 0
            held["files"] += not in_memory
            assert pixels(image).shape == (SIDE, SIDE, 3)
        held["on disk"] = sum(path.is_file() for path in tmp_path.rglob("*"))
        return [Text(SCORE) for _ in asked]

    jobs = [Job(one, judge) for one in edits(20, "PNG")]
    outcomes = judge_in_batches(jobs, answer, Progress())
    assert {outcome.verdict.status for outcome in outcomes} == {Status.OK}
    assert 2**18 < held["memory"] <= 2**19, "half of 1 MiB"
    assert held["files"] == held["on disk"] > 10
    assert list(tmp_path.iterdir()) == []


def test_a_broken_image_is_its_samples_failure_and_no_others():
    good, bad = edits(2)
    cut = Image(bad.images["output"].source[:-3000])
    broken = Sample(bad.id, {**bad.images, "output": cut}, bad.texts)
    with FakeServer(reply=Answers()) as server:
        verdicts = evaluated([good, broken], server)
    assert [verdict.status for verdict in verdicts] == [Status.OK, Status.NO_IMAGE]
    assert re.search("truncated|is cut off", verdicts[1].reason)
