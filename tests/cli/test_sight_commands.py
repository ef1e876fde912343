"""What commands say of models that do not see."""

import json
import re

import PIL.Image
import pytest

from tests.brightness import images, prompts
from tests.fake_server import FakeServer, Fault, named
from tests.serve.clients import rows_of
from tests.serve.serving import serving
from vieval_plugin.backends.http.sight import QUESTION


def images_in(request):
    return str(request["messages"]).count("image_url': {")


def terse(request):
    return json.dumps({"score": [7, 7], "reasoning": "fine"})


def red(request):
    """A server that drops images, and names a colour all the same."""
    return "red" if QUESTION in str(request["messages"]) else terse(request)


def failing(fewest):
    fails = lambda request: images_in(request) >= fewest
    return {"faults": lambda number, request: Fault("500") if fails(request) else None}


# how a server takes images; the word of a problem that doctor finds, None for none; the exit code
# of a score
BLIND = "does not see images"
SERVERS = {
    "sees": ({}, None, 0),
    "drops images": ({"sees": False, "reply": red}, BLIND, 1),
    "answers images with 500": ({"sees": False, **failing(1)}, BLIND, 1),
    "takes one image": (failing(2), "refuses two images in one question", 0),
    "names no colour": ({"sees": False, "reply": terse}, None, 0),
}


@pytest.mark.parametrize("name", SERVERS)
def test_doctor_finds_how_a_server_takes_images(name, vieval, monkeypatch):
    settings, problem, _ = SERVERS[name]
    monkeypatch.setattr("vieval_plugin.cli.doctor._SECONDS", 2.0)
    with FakeServer(**settings) as server:
        given = ("doctor", "--base-url", server.base_url)
        out = vieval(*given, code=1 if problem else 0).out
    found = re.findall("^PROBLEM.*", out, re.MULTILINE)
    assert len(found) == bool(problem)
    assert (problem or "") in "".join(found)


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "a.png"
    PIL.Image.new("RGB", (32, 32), (1, 2, 3)).save(path)
    return path


@pytest.mark.parametrize("name", SERVERS)
def test_a_model_that_does_not_see_gives_no_score(name, vieval, picture, monkeypatch):
    monkeypatch.setattr("vieval_plugin.backends.http.pacing.BACKOFF", 0.01)
    settings, _, code = SERVERS[name]
    with FakeServer(**settings) as server:
        scored = ("score", picture, "--prompt", "a cat", *named(server), "--json")
        printed = vieval(*scored, code=code)
    assert ('"status": "ok"' in printed.out) == (code == 0)
    assert ("does not see the images" in printed.err) == (code == 1)


def test_a_plan_says_once_that_sight_is_not_verified(vieval, tmp_path):
    folder = images(tmp_path, "mine", lambda prompt, draw: 0.5, 4)
    asked = [folder, "--prompts", prompts(tmp_path, 4), "--plan"]
    with FakeServer(sees=False) as server:
        said = vieval("score", *asked, *named(server))
    assert said.err.count("could not verify that fake sees images") == 1


def test_rank_ends_before_it_judges_with_a_model_that_does_not_see(vieval, tmp_path):
    same = lambda prompt, draw: 0.5
    folders = [images(tmp_path, name, same, 2) for name in ("mine", "theirs")]
    given = ("rank", *folders, "--prompts", prompts(tmp_path, 2))
    with FakeServer(sees=False, reply=red) as server:
        said = vieval(*given, *named(server), code=1)
    assert "does not see the images" in said.err
    assert "better than" not in said.out


def test_a_reward_server_gives_no_reward_by_a_model_that_does_not_see(samples_file):
    with (
        FakeServer(sees=False, reply=red) as judge,
        serving("--reward", "r=viescore", *named(judge)) as running,
    ):
        answer = running.post("/v1/judge", {"samples": list(rows_of(samples_file))})[1]
    assert "does not see the images" in str(answer)
    assert '"ok"' not in json.dumps(answer)


def test_an_address_of_other_clients_is_named(vieval, picture, monkeypatch):
    for name in ("VIEVAL_MODEL", "VIEVAL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with FakeServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        printed = vieval("score", picture, "--prompt", "a cat", "--model", "fake")
    told = f"using the server {server.base_url} (from OPENAI_BASE_URL)"
    assert printed.err.count(told) == 1
