"""Test health, which needs a recent judgement, and counts for Prometheus."""

import asyncio
import threading
import time
from shlex import split

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.fake_server import FakeServer, Fault
from tests.pictures import plain
from tests.playing import prepared
from tests.serve.serving import judged_by, row, serving
from vieval_plugin.backends.http import pacing
from vieval_plugin.judges import registry
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.judges.spec import missing_inputs_reason
from vieval_plugin.serve import app, health
from vieval_plugin.serve.health import Health, probe


def test_a_server_whose_backbone_is_away_lives_and_is_not_ready(store):
    flags = split("--reward r=viescore --model m --base-url http://127.0.0.1:9/v1")
    with serving(*flags, "--patience", "0.5") as running:
        status, answer = running.get("/health")
        assert running.get("/live")[0] == 200
    assert (status, answer["status"], answer["rewards"]) == (503, "unavailable", {})
    assert answer["reason"]


def test_it_is_ready_as_soon_as_it_has_judged(server):
    own, sharp = {"r": ["value"]}, {"sharp": ["value"]}
    with judged_by(server, "--reward", "sharp=sharpness") as running:
        ready = {"status": "ok", "rewards": {**own, **sharp}}
        assert running.get("/health") == (200, ready)
        assert running.get("/sharp/health") == (200, {**ready, "rewards": sharp})


def test_it_falls_back_with_its_backbone_and_the_other_stays(store, monkeypatch):
    monkeypatch.setattr(health, "FRESH", 1.0)
    flags = ("--reward", "sharp=sharpness", "--patience", "0.5")
    samples = {"samples": [row(plain("red"))]}
    with FakeServer() as server, judged_by(server, *flags) as running:
        assert running.get("/health")[0] == 200
        assert running.post("/r/v1/judge", samples)[0] == 200
        server.die(1000)
        time.sleep(1.1)
        # an answer of the store does not make it ready
        assert running.post("/r/v1/judge", samples)[0] == 200
        status, answer = running.get("/health")
        assert running.get("/sharp/health")[0] == 200
    assert status == 503
    assert "api_error" in answer["reason"]


FINE = Verdict({}, Status.OK)
PATIENT = ("--patience", "60")


def judgement(answer, asked=None, waits=None):
    """A judgement that notes that it was asked for, and waits."""

    async def judged():
        if asked is not None:
            asked.append(1)
        if waits is not None:
            await waits.wait()
        return answer

    return judged


async def test_a_judgement_that_is_asked_for_twice_is_made_once():
    asked = []
    well = Health(judgement(FINE, asked))
    assert [await well.fault(1.0) for _ in range(3)] == [""] * 3
    assert len(asked) == 1


async def test_a_hanging_judgement_does_not_hide_a_backbone_that_is_back(monkeypatch):
    monkeypatch.setattr(health, "NEXT_TRY", 0.02)
    begun, ended, back = [], [], asyncio.Event()

    async def judgement():
        begun.append(1)
        try:
            if not back.is_set():
                await asyncio.get_running_loop().create_future()
        finally:
            ended.append(1)
        return FINE

    hanging = Health(judgement)
    for _ in range(4):
        assert await hanging.fault(0.05) == "no image has been judged yet"
        assert len(begun) - len(ended) <= 2
    back.set()
    assert await hanging.fault(60.0) == ""
    await hanging.close()
    assert len(begun) == len(ended) == 5


async def test_a_slow_judgement_is_left_its_time(monkeypatch):
    monkeypatch.setattr(health, "NEXT_TRY", 0.02)
    slow = asyncio.Event()
    judge = Health(judgement(FINE, waits=slow))
    for _ in range(3):
        assert await judge.fault(0.05) == "no image has been judged yet"
    first = judge._tries[0]
    slow.set()
    await first
    assert await judge.fault(0.0) == ""
    await judge.close()


HANGING = "judging an image takes longer than usual"
FAULTS = (Fault("hang"), HANGING), (Fault("reset"), ""), (Fault("503", 600), "")


@pytest.mark.parametrize(("fault", "reason"), FAULTS, ids=("hang", "reset", "503"))
def test_it_is_ready_soon_after_its_backbone_is(fault, reason, store, monkeypatch):
    monkeypatch.setattr(health, "FRESH", 0.2)
    monkeypatch.setattr(health, "NEXT_TRY", 0.5)
    monkeypatch.setattr(app, "HEALTH_TIMEOUT", 0.7)
    monkeypatch.setattr(pacing, "LONGEST_REST_WHEN_DOWN", 0.3)
    away = threading.Event()
    faults = lambda number, body: fault if away.is_set() else None
    with FakeServer(faults=faults) as server, judged_by(server, *PATIENT) as running:
        is_ready = lambda: running.get("/health")[0] == 200
        assert is_ready()
        away.set()
        time.sleep(0.3)
        answers = [running.get("/health") for _ in range(3)]
        assert {status for status, _ in answers} == {503}
        assert reason in answers[-1][1]["reason"]
        away.clear()
        # while calls of before wait or hang on
        assert any(is_ready() for _ in range(20))


# without those whose training prompt is not included
@pytest.mark.parametrize(
    "name", sorted({*registry.judges()} - {"edit_reward", "hpsv3"})
)
def test_every_judge_can_be_asked_about_the_image_of_noise(name):
    spec = registry.judges()[name]
    for kind in ("", *(kind for kind in spec.needs if kind != "*")):
        judged = probe(prepared(name), kind)
        assert isinstance(judged, Contest) is (spec.rates == "contest")
        assert missing_inputs_reason(spec, judged) == ""


def test_metrics_count_requests_rewards_and_seconds(server):
    with judged_by(server) as running:
        running.get("/health")
        running.post("/v1/judge", {"samples": [row(plain("red")), row(b"")]})
        _, content, headers = running.exchange("/metrics")
        numbers = running.metrics()
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    duration = "vieval_request_duration_seconds"
    ones = (
        'vieval_requests_total{code="200",protocol="judge_v1"}',
        'vieval_rewards_total{outcome="ok",reward="r"}',
        'vieval_rewards_total{outcome="failed",reward="r"}',
        f"{duration}_count",
        f'{duration}_bucket{{le="300.0"}}',
    )
    assert [numbers[name] for name in ones] == [1] * 5
    assert numbers["vieval_input_tokens_total"] > 0
    assert numbers[f"{duration}_sum"] == numbers["vieval_request_seconds_total"] > 0
    families = list(text_string_to_metric_families(content.decode()))
    assert all(family.documentation for family in families)
    kinds = KINDS.items()
    names = {f"vieval_{name}": kind for kind, names in kinds for name in names.split()}
    assert {family.name: family.type for family in families} == names


COUNTERS = """backbone_calls backbone_failures groups input_tokens output_tokens requests
request_seconds rewards store_hits verdicts"""
GAUGES = "connections_open jobs_under_way jobs_waiting requests_open"
KINDS = {"counter": COUNTERS, "gauge": GAUGES, "histogram": "request_duration_seconds"}
