"""Judging live: every sample is accounted for, no score is invented, no key is shown."""

import asyncio
import base64
import json
import logging
import random
import time
import traceback
from dataclasses import replace
from functools import cache

import PIL.Image
import pytest

from tests.fake_server import TRANSIENT, FakeServer, Fault, instance, read_request
from tests.pictures import encoded
from tests.playing import first_asks, label_of, prepared, scripted
from tests.refusals import refusal
from vieval_plugin.backends.http import pacing
from vieval_plugin.config import Backbone, Config, StoreOptions
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Image,
    Measure,
    Measurement,
    Message,
    Sample,
    SampleId,
    Status,
    UseTool,
    Verdict,
)
from vieval_plugin.judges.viescore import RUBRIC
from vieval_plugin.readers.absent_images import require_images
from vieval_plugin.run.answerers import opened_store
from vieval_plugin.run.backbones import Backbones, server_options
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.runner import judge_each
from vieval_plugin.text.errors import VievalError, docs_url

KEY = "sk-never-to-be-shown-Zq81"
NO_STORE = Config(store=StoreOptions(use=False))


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(pacing, "BACKOFF", 0.02)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@cache
def picture(number, kind="PNG"):
    # noise: similar colours are the same in a JPEG file
    pixels = random.Random(number).randbytes(192)
    return Image(encoded(PIL.Image.frombytes("RGB", (8, 8), pixels), kind))


def samples(count):
    """Every other one generated from a prompt, the others edited: one sub-score and two of SC."""
    for n in range(count):
        images, texts = {"output": picture(n)}, {"prompt": f"picture {n}"}
        if n % 2 == 0:
            output = picture(n, "JPEG" if n % 4 else "PNG")
            images = {"source": picture(7, "JPEG"), "output": output}
            texts = {"instruction": f"make it {n}"}
        yield Sample(
            SampleId("b", "tig" if n % 2 else "tie", "m", str(n)), images, texts
        )


@cache
def viescore():
    return prepared("viescore")


def jobs(count, repeats=1):
    return [Job(s, viescore(), n) for s in samples(count) for n in range(repeats)]


def stored(folder):
    return Config(store=StoreOptions(path=folder / "r.sqlite"))


async def judge(jobs, backbones, *, config=NO_STORE, progress=None):
    """Outcomes by number, in the order in which they came; each number once."""
    outcomes = {}

    def ended(number, outcome):
        assert number not in outcomes
        outcomes[number] = outcome

    progress = progress or Progress()
    seed = config.statistics.seed
    with opened_store(config) as store:
        async with Backbones(backbones, store, progress.usage, seed) as asked:
            how = {"live": 8, "bar": False, "store": store}
            await judge_each(jobs, asked.answer, progress, ended, **how)
    return outcomes


def served_by(server, **options):
    described = {"num_concurrent": 8, **options}
    return {"judge": Backbone(model="fake", base_url=server.base_url, **described)}


def prompt_of(chat):
    """What the fake server makes of a chat: images as data URLs, parts in order."""

    def part(piece):
        if isinstance(piece, str):
            return {"type": "text", "text": piece}
        kind = "png" if piece.source.startswith(b"\x89PNG") else "jpeg"
        data = base64.b64encode(piece.source).decode()
        return {"image_url": {"url": f"data:image/{kind};base64,{data}"}}

    messages = [
        {"role": m.role, "content": [part(piece) for piece in m.parts]}
        for m in chat.messages
    ]
    return read_request(json.dumps({"messages": messages}).encode())[1]


def expected(sample):
    """The scores that the fake server's answers for a sample come to."""
    scores = {}
    for chat in first_asks(viescore().program(sample)):
        answer = instance(chat.schema, prompt_of(chat).digest)
        scores[label_of(chat)] = answer["score"]
    return RUBRIC.scores(scores)


async def test_every_sample_gets_the_verdict_of_its_own_answers():
    with FakeServer(latency=0.005) as server:
        outcomes = await judge(iter(jobs(40)), served_by(server))
        assert server.stats()["distinct_prompts"] == server.stats()["requests"] == 81
    for number, sample in enumerate(samples(40)):
        verdict = outcomes[number].verdict
        assert (verdict.scores, verdict.status) == (expected(sample), Status.OK)
        assert outcomes[number].input_tokens > 512
    found = {json.dumps(outcome.verdict.scores) for outcome in outcomes.values()}
    assert len(found) > 20


async def test_a_repeat_is_asked_anew_and_a_second_run_is_not(tmp_path):
    given, config = jobs(3, repeats=2), stored(tmp_path)
    with FakeServer() as server:
        first, second = Progress(), Progress()
        outcomes = await judge(given, served_by(server), config=config, progress=first)
        assert server.stats()["requests"] == 1 + 12
        again = await judge(given, served_by(server), config=config, progress=second)
        assert server.stats()["requests"] == 1 + 12
    assert [again[n] for n in range(6)] == [outcomes[n] for n in range(6)]
    assert second.lines()[1] == "calls: 0, from the cache: 12, tokens in: 0, out: 0"


async def test_an_unreadable_reply_is_asked_again_with_the_error():
    good = '{"score": [3, 4], "reasoning": "so"}'
    is_reminded = lambda request: len(request["messages"]) > 1
    reply = lambda request: good if is_reminded(request) else "I like it."
    with FakeServer(reply=reply, schema_support="rejected") as server:
        [outcome] = (await judge(jobs(1), served_by(server))).values()
        assert server.stats()["statuses"] == {"400": 1, "200": 4}
    verdict = outcome.verdict
    assert (verdict.status, verdict.scores["SC"]) == (Status.REPAIRED, 0.3)
    assert [step.answer for step in verdict.trace] == ["I like it.", good] * 2


async def test_the_summary_says_what_was_tried_again_and_what_failed():
    faults = lambda number, request: {1: Fault("503"), 2: Fault("429")}.get(number)
    progress = Progress()
    mix = {"permanent_share": 1.0, "permanent_mix": (Fault("overlong"),)}
    with FakeServer(faults=faults, **mix) as server:
        await judge(jobs(1), served_by(server), progress=progress)
    first, _, about, *rest = progress.lines()
    assert first == "verdicts: api_error 1"
    assert about == f"about api_error: {docs_url('reference/results.md#api_error')}"
    tried = "tried again: server error 1, rate limit 1"
    assert rest == [tried, "FAILED CALLS: too long 2"]


# Backbones, tools and measurements.


def asking_once(*asks):
    """A job whose judge asks once and puts the replies into its verdict."""

    def asking(sample):
        replies = yield list(asks)
        return Verdict({}, Status.OK, "\n".join(map(repr, replies)))

    return Job(next(samples(1)), scripted(asking))


def say(backbone):
    return Chat((Message("user", ("x",)),), ("q",), backbone=backbone)


NOWHERE = "http://127.0.0.1:1/v1"


async def test_an_ask_goes_to_the_backbone_it_names_else_to_the_judge():
    job = asking_once(say("scene"), say("unheard of"))
    model = lambda request: request["model"]
    with FakeServer(reply=model) as one, FakeServer(reply=model) as two:
        named = {
            "judge": Backbone(model="one", base_url=one.base_url),
            "scene": Backbone(model="two", base_url=two.base_url),
            "never asked": Backbone(model="x", base_url=NOWHERE, api_key_env="NOT_SET"),
        }
        [outcome] = (await judge([job], named)).values()
    said = outcome.verdict.rationale.splitlines()
    assert [line.split("'")[1] for line in said] == ["two", "one"]


async def test_a_key_that_is_lacking_is_an_error_that_names_its_variable():
    lacking = Backbone(model="x", base_url=NOWHERE, api_key_env="NOT_SET_ANYWHERE")
    with pytest.raises(VievalError, match="NOT_SET_ANYWHERE"):
        await judge([asking_once(say("judge"))], {"judge": lacking})


async def test_measurements_and_tools_need_no_backbone():
    measure = Measure("psnr", {"image": picture(1), "reference": picture(1)}, ("m",))
    job = asking_once(measure, UseTool("saw", {}, ("t",)))
    [outcome] = (await judge([job], {})).values()
    measured, tool = outcome.verdict.rationale.splitlines()
    assert measured.startswith(Measurement.__name__)
    assert tool == repr(Failure(Status.TOOL_ERROR, "unknown tool 'saw'"))


def test_images_that_are_not_there_are_named_before_the_run(tmp_path):
    images = [{"output": Image(tmp_path / f"{n}.png")} for n in range(3)]
    lacking = [Sample(SampleId("b", "tig", "m", "1"), each, {}) for each in images]
    line = refusal(require_images, [*samples(2), *lacking])
    assert "0.png: no such image (and 2 more); run `vieval prepare b` to get" in line
    require_images(samples(2))


# The end of a run that cannot go on.


@pytest.mark.parametrize(
    ("trouble", "said"), [("key", "refuses the key"), ("dead", "has not answered for")]
)
async def test_a_run_that_cannot_go_on_ends_with_one_error(trouble, said, tmp_path):
    before = asyncio.all_tasks()
    with FakeServer(api_key=KEY if trouble == "key" else "", latency=0.005) as server:
        if trouble == "dead":
            server.die(60)
        named = served_by(server, patience=0.3)
        with pytest.raises(VievalError, match=said):
            await judge(jobs(300), named, config=stored(tmp_path))
        assert server.stats()["requests"] <= 8
    assert asyncio.all_tasks() == before


async def test_a_server_lost_in_the_middle_loses_no_sample_on_the_next_run(tmp_path):
    config, progress = stored(tmp_path), Progress()
    death = lambda n, _: Fault("death", seconds=60) if n == 50 else None
    ends = pytest.raises(VievalError, match="check the server and run again")
    with FakeServer(latency=0.01, faults=death) as server, ends:
        await judge(jobs(60), served_by(server, patience=0.3), config=config)
    with FakeServer(port=server.port) as server:
        named = served_by(server)
        outcomes = await judge(jobs(60), named, config=config, progress=progress)
    assert progress.usage.cached >= 30
    assert progress.usage.cached + progress.usage.calls == 120
    found = [outcomes[n].verdict.scores for n in range(60)]
    assert found == list(map(expected, samples(60)))


async def test_the_key_is_shown_nowhere(tmp_path, monkeypatch, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SOME_KEY", KEY)
    config, progress = stored(tmp_path), Progress()
    transient = [fault for fault in TRANSIENT if fault.retry_after is None]
    mixed = {"fault_share": 0.3, "permanent_share": 0.2, "fault_mix": transient}
    asyncio.get_running_loop().set_debug(True)  # logs more
    with FakeServer(api_key=KEY, **mixed) as server:
        named = served_by(server, api_key_env="SOME_KEY", timeout=1.0)
        seen = [await judge(jobs(60), named, config=config, progress=progress)]
        assert progress.usage.retries
        assert progress.usage.failures
        options = server_options("judge", named["judge"])
        seen += [named, config, options, progress, progress.lines()]
        server.settings = replace(server.settings, api_key="changed")
        for patience, again in ((5, "refuses the key"), (0.2, "has not answered for")):
            named = served_by(server, api_key_env="SOME_KEY", patience=patience)
            with pytest.raises(VievalError, match=again) as raised:
                await judge(jobs(60), named)
            error = raised.value
            seen += ["".join(traceback.format_exception(error)), repr(error)]
            server.die(60)
            time.sleep(0.1)
    files = [file.read_bytes() for file in tmp_path.iterdir()]
    assert files
    assert not [content for content in files if KEY.encode() in content]
    written = capfd.readouterr()
    assert KEY not in repr(seen) + caplog.text + written.out + written.err
    assert KEY not in repr([vars(record) for record in caplog.records])
