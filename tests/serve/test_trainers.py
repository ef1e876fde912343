"""Test trainers' protocols: the rewards of `vieval score`, and failures."""

import json

import pytest

from tests.fake_server import FakeServer
from tests.pictures import plain
from tests.serve.clients import FlowFactory, UniRL, encoded, jpeg
from tests.serve.serving import judged_by, serving
from vieval_plugin.cli.serve import _PATIENCE
from vieval_plugin.serve.app import PROTOCOLS

PROMPTS = ("a red cube", "a blue ball", "a cat")
IMAGES = tuple(plain(colour) for colour in ("red", "blue", "green"))
QUICK = ("--attempts", 1, "--patience", 1)
UNREADABLE = {"reply": lambda request: "no score at all", "schema_support": "ignored"}


def scored(score, folder, server, samples):
    """What `vieval score` says of (prompt, output) or (instruction, source, output)."""
    lines = []
    for number, (prompt, *images) in enumerate(samples):
        roles = ("source", "output") if len(images) == 2 else ("output",)
        files = {role: f"{number}-{role}" for role in roles}
        for role, image in zip(roles, images, strict=True):
            (folder / files[role]).write_bytes(image)
        text = "instruction" if len(images) == 2 else "prompt"
        lines.append({"uid": str(number), "images": files, "texts": {text: prompt}})
    (folder / "sent.jsonl").write_text("\n".join(map(json.dumps, lines)))
    flags = ["--model", "fake", "--base-url", server.base_url, "--fresh"]
    code, rows, _, _ = score(folder / "sent.jsonl", "--judge", "viescore", *flags)
    assert code == 0
    return [row["scores"]["O"] for row in rows]


def by_flow_factory(url, prompts, images):
    return FlowFactory(f"{url}/r").rewards(prompts, images)


def by_flow_factory_group(url, prompts, images):
    return FlowFactory(f"{url}/r/group", 120).rewards(prompts, images)


def by_unirl(url, prompts, images):
    rows = list(zip(prompts, images, strict=True))
    return UniRL(f"{url}/unirl", ["r"]).rewards(rows)


trainers = pytest.mark.parametrize(
    "rewards", [by_flow_factory, by_flow_factory_group, by_unirl]
)


@trainers
def test_rewards_are_those_of_score_on_the_bytes_sent(rewards, server, score, tmp_path):
    sent = [jpeg(image) for image in IMAGES]
    expected = scored(score, tmp_path, server, zip(PROMPTS, sent, strict=True))
    with judged_by(server) as running:
        assert rewards(running.url, PROMPTS, sent) == expected


def test_edits_are_judged_with_their_source(server, score, tmp_path):
    edits = list(zip(PROMPTS, IMAGES, reversed(IMAGES), strict=True))
    expected = scored(score, tmp_path, server, edits)
    outputs, sources = [edit[2] for edit in edits], [[edit[1]] for edit in edits]
    with judged_by(server) as running:
        assert FlowFactory(running.url).rewards(PROMPTS, outputs, sources) == expected
        assert UniRL(f"{running.url}/unirl", ["r"]).rewards(edits) == expected


@trainers
def test_a_backbone_that_is_dead_ends_training_with_the_reason(rewards, store):
    with FakeServer() as server, judged_by(server, *QUICK) as running:
        assert len(rewards(running.url, PROMPTS[:1], IMAGES[:1])) == 1
        server.die(1000)
        with pytest.raises(RuntimeError, match="not answered for"):
            rewards(running.url, PROMPTS[1:], IMAGES[1:])


@trainers
def test_what_the_judge_cannot_answer_ends_training_with_its_status(rewards, store):
    with (
        FakeServer(**UNREADABLE) as server,
        judged_by(server, *QUICK) as running,
        pytest.raises(RuntimeError, match="parse_failure"),
    ):
        rewards(running.url, PROMPTS, IMAGES)


def test_flow_factory_is_asked_once_for_what_fails(store):
    failed = "no reward for 3 of 3 samples: parse_failure"
    with FakeServer(**UNREADABLE) as server, judged_by(server, *QUICK) as running:
        client = FlowFactory(running.url)
        with pytest.raises(RuntimeError, match=failed):
            client.rewards(PROMPTS, IMAGES)
        with pytest.raises(RuntimeError, match="got 1, 3 and 3"):
            client.rewards(PROMPTS[:1], IMAGES)
    assert client.tries == 2


def test_one_image_that_is_none_is_named_and_costs_the_request_alone(server):
    failed = r"no reward for 1 of 2 samples: tool_error: .* \(samples 1\)"
    images = [IMAGES[0], b"torn"]
    with judged_by(server) as running:
        with pytest.raises(RuntimeError, match=failed):
            FlowFactory(running.url).rewards(PROMPTS[:2], images)
        rows = list(zip(PROMPTS[:2], images, strict=True))
        answer = UniRL(f"{running.url}/unirl", ["r"]).score(rows)
    first, second = answer["results"]
    assert list(first["r"]) == ["value"]
    assert (second, list(answer["errors"][1])) == ({}, ["r"])
    assert answer["errors"][0] == {}


def test_unirl_names_rewards_and_hears_of_those_that_there_are_not(server):
    rows, served = [(PROMPTS[0], IMAGES[0])], {"r": ["value"], "pq": ["value"]}
    with judged_by(server, "--reward", "pq=viescore:PQ") as running:
        client = UniRL(f"{running.url}/unirl", ["pq", "r"])
        assert client.is_available()
        answer = client.score(rows)
        assert set(answer["results"][0]) == {"pq", "r"}
        assert answer["identities"][0]["request_id"] == "r0"
        assert running.get("/unirl/rewards")[1]["rewards"] == served
        stranger = UniRL(f"{running.url}/unirl", ["nobody"])
        with pytest.raises(ValueError, match="nobody"):
            stranger.is_available()
        assert "unknown reward" in stranger.score(rows)["errors"][0]["nobody"]


@pytest.mark.parametrize("names", [[], "r", None, [1], ["r", None]])
def test_a_request_of_unirl_that_names_rewards_wrongly_fails_alone(names, server):
    turn = {"text": PROMPTS[0], "image_b64": encoded(IMAGES[0])}
    asked = {"history": [turn], "request_id": "x"}
    wire = [{**asked, "required_rewards": required} for required in (["r"], names)]
    with judged_by(server) as running:
        payload = {"protocol_version": "1", "requests": wire}
        status, answer = running.post("/unirl/score", payload)
    assert status == 200
    assert list(answer["results"][0]["r"]) == ["value"]
    assert (answer["errors"][0], answer["results"][1]) == ({}, {})
    assert "required_rewards" in answer["errors"][1]["required_rewards"]
    assert len(answer["identities"]) == 2


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [("/compute", 200, "error"), ("/unirl/score", 400, "detail")],
)
def test_a_number_that_is_none_is_refused_as_the_client_heeds_it(path, status, word):
    body = b'{"requests": [{"request_id": Infinity}], "kwargs": NaN}'
    with serving("--reward", "r=sharpness") as running:
        found, answer = running.post(path, body)
    assert found == status
    assert "Infinity is not a finite number" in answer[word]


def test_health_is_asked_for_where_each_client_asks(server):
    with judged_by(server) as running:
        assert all(
            FlowFactory(f"{running.url}{path}").is_healthy()
            for path in ("", "/r", "/group", "/r/group")
        )
        assert UniRL(f"{running.url}/unirl", ["r"]).is_available()


def test_a_deadline_comes_before_the_client_gives_up(store, monkeypatch):
    [protocol] = [protocol for protocol in PROTOCOLS if protocol.name == "flow_factory"]
    monkeypatch.setitem(vars(protocol), "deadline", 0.5)
    with (
        FakeServer(latency=5) as server,
        judged_by(server) as running,
        pytest.raises(RuntimeError, match="not judged within"),
    ):
        FlowFactory(running.url).rewards(PROMPTS, IMAGES)


def test_a_server_that_stops_says_when_to_come_back(server):
    with judged_by(server) as running:
        running.front.stopping = True
        status, _, headers = running.exchange("/v1/judge", b"{}")
        assert (status, headers["Retry-After"]) == (503, "5")
        running.front.stopping = False
        assert len(FlowFactory(running.url).rewards(PROMPTS, IMAGES)) == 3


GIVEN_UP = {
    "flow_factory": 60,
    "flow_factory_group": 120,
    "unirl": 300,
    "judge_v1": 300,
}


def test_each_protocol_answers_before_its_client_gives_up():
    deadlines = {protocol.name: protocol.deadline for protocol in PROTOCOLS}
    assert set(deadlines) == set(GIVEN_UP)
    for name, deadline in deadlines.items():
        assert _PATIENCE < deadline < GIVEN_UP[name]
