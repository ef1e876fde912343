"""What every protocol does: the rewards of `vieval score`, and no number for a failure."""

from dataclasses import dataclass

import pytest

from tests.fake_server import FakeServer, named
from tests.pictures import plain
from tests.serve.clients import FlowFactory, JudgeV1, UniRL, encoded, jpeg
from tests.serve.serving import judged_by, serving
from tests.stored_results import write_lines
from vieval_plugin.cli.serve import _PATIENCE
from vieval_plugin.serve.app import PROTOCOLS

PROMPTS = ("a red cube", "a blue ball", "a cat")
IMAGES = tuple(plain(colour) for colour in ("red", "blue", "green"))
QUICK = ("--attempts", 1, "--patience", 1)
UNREADABLE = {"reply": lambda request: "no score at all", "schema_support": "ignored"}


@dataclass(frozen=True)
class Trainer:
    """A trainer: its client, the path that it is given, and the seconds that it waits."""

    client: type
    path: str
    seconds: int

    def at(self, running):
        return self.client(f"{running.url}{self.path}", self.seconds)


TRAINERS = {
    "flow_factory": Trainer(FlowFactory, "/r", 60),
    "flow_factory_group": Trainer(FlowFactory, "/r/group", 120),
    "unirl": Trainer(UniRL, "/unirl", 300),
    "judge_v1": Trainer(JudgeV1, "", 300),
}


@pytest.fixture(params=PROTOCOLS, ids=lambda protocol: protocol.name)
def protocol(request):
    return request.param


@pytest.fixture
def trainer(protocol):
    return TRAINERS[protocol.name]


@pytest.mark.parametrize("sources", [None, [[image] for image in reversed(IMAGES)]])
def test_rewards_are_those_of_score(trainer, sources, server, score, tmp_path):
    """On the bytes that are sent, of images from a prompt and of edits."""
    sent = [jpeg(image) for image in IMAGES]
    text = "instruction" if sources else "prompt"
    lines = []
    for number, prompt in enumerate(PROMPTS):
        images = {"output": sent[number]}
        images |= {"source": sources[number][0]} if sources else {}
        files = {role: f"{number}-{role}" for role in images}
        for role, image in images.items():
            (tmp_path / files[role]).write_bytes(image)
        lines.append({"uid": str(number), "images": files, "texts": {text: prompt}})
    path = write_lines(tmp_path / "sent.jsonl", lines)
    code, rows, _, _ = score(path, "--judge", "viescore", *named(server), "--fresh")
    assert code == 0
    with judged_by(server) as running:
        found = trainer.at(running).rewards(PROMPTS, sent, sources)
    assert found == [row["scores"]["O"] for row in rows]


def test_a_backbone_that_is_dead_ends_training_with_the_reason(trainer, store):
    with FakeServer() as server, judged_by(server, *QUICK) as running:
        client = trainer.at(running)
        assert client.is_healthy()
        assert len(client.rewards(PROMPTS[:1], IMAGES[:1])) == 1
        server.die(1000)
        with pytest.raises(RuntimeError, match="not answered for"):
            client.rewards(PROMPTS[1:], IMAGES[1:])


def test_what_the_judge_cannot_answer_ends_training_with_its_status(trainer, store):
    with FakeServer(**UNREADABLE) as server, judged_by(server, *QUICK) as running:
        client = trainer.at(running)
        with pytest.raises(RuntimeError, match="parse_failure"):
            client.rewards(PROMPTS, IMAGES)
    assert client.tries == 1


def test_one_image_that_is_none_is_named(trainer, server):
    with judged_by(server) as running:
        client = trainer.at(running)
        with pytest.raises(RuntimeError, match=r"tool_error: .*\(sample.? 1\)"):
            client.rewards(PROMPTS[:2], [IMAGES[0], b"torn"])


def test_a_number_that_is_none_is_refused_as_the_client_heeds_it(protocol):
    body = b'{"requests": [{"request_id": Infinity}], "kwargs": NaN}'
    with serving("--reward", "r=sharpness") as running:
        found, answer = running.post(protocol.path, body)
    assert found == (200 if "flow" in protocol.name else 400)
    word = "detail" if protocol.name == "unirl" else "error"
    assert "Infinity is not a finite number" in answer[word]


def test_a_deadline_comes_before_the_client_gives_up(
    protocol, trainer, store, monkeypatch
):
    assert _PATIENCE < protocol.deadline < trainer.seconds
    monkeypatch.setitem(vars(protocol), "deadline", 0.5)
    with FakeServer(latency=5) as server, judged_by(server) as running:
        client = trainer.at(running)
        with pytest.raises(RuntimeError, match="not judged within"):
            client.rewards(PROMPTS, IMAGES)


# What one of them does.


def test_flow_factory_hears_what_does_not_fit(server):
    with judged_by(server) as running:
        client = FlowFactory(running.url)
        with pytest.raises(RuntimeError, match="got 1, 3 and 3"):
            client.rewards(PROMPTS[:1], IMAGES)
    assert client.tries == 1


def test_one_image_that_is_none_costs_unirl_its_sample_alone(server):
    with judged_by(server) as running:
        answer = UniRL(f"{running.url}/unirl").score(PROMPTS[:2], [IMAGES[0], b"torn"])
    first, second = answer["results"]
    assert list(first["r"]) == ["value"]
    assert (second, list(answer["errors"][1])) == ({}, ["r"])
    assert answer["errors"][0] == {}


def test_unirl_names_rewards_and_hears_of_those_that_there_are_not(server):
    served = {"r": ["value"], "pq": ["value"]}
    with judged_by(server, "--reward", "pq=viescore:PQ") as running:
        client = UniRL(f"{running.url}/unirl", names=("pq", "r"))
        assert client.is_healthy()
        answer = client.score(PROMPTS[:1], IMAGES[:1])
        assert set(answer["results"][0]) == {"pq", "r"}
        assert answer["identities"][0]["request_id"] == "r0"
        assert running.get("/unirl/rewards")[1]["rewards"] == served
        stranger = UniRL(f"{running.url}/unirl", names=("nobody",))
        with pytest.raises(ValueError, match="nobody"):
            stranger.is_healthy()
        answer = stranger.score(PROMPTS[:1], IMAGES[:1])
        assert "unknown reward" in answer["errors"][0]["nobody"]


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


def test_a_server_that_stops_says_when_to_come_back(server):
    with judged_by(server) as running:
        running.front.stopping = True
        status, _, headers = running.exchange("/v1/judge", b"{}")
        assert (status, headers["Retry-After"]) == (503, "5")
        running.front.stopping = False
        assert len(FlowFactory(running.url).rewards(PROMPTS, IMAGES)) == 3
