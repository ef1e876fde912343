"""Callers that are heeded: tokens, names and origins; what is refused is refused in one line."""

import base64
from http.client import HTTPConnection

import pytest

from tests.pictures import plain
from tests.serve.serving import row, serving
from tests.tables import table
from vieval_plugin.serve.security import guard_of

TOKEN = "0123456789abcdef-of-this-test"


@pytest.fixture
def tokened(monkeypatch):
    monkeypatch.setenv("VIEVAL_SERVE_TOKEN", TOKEN)
    with serving("--reward", "r=sharpness") as running:
        yield running


def test_the_token_is_taken_as_bearer_and_as_password_of_an_address(tokened):
    basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    asked = {"samples": [row(plain("red"), kind="tig")]}
    for header in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
        status, answer = tokened.post("/v1/judge", asked, Authorization=header)
        assert (status, answer["failed"]) == (200, [])


WRONG = ["Bearer x", f"Bearer {TOKEN}x", TOKEN, "Basic !", "Basic YQ==", "Bearer ü"]


@pytest.mark.parametrize("text", [None, *WRONG])
def test_whoever_lacks_the_token_is_told_so(tokened, text):
    header = {"Authorization": text.encode().decode("latin-1")} if text else {}
    for path in ("/v1/judge", "/health", "/metrics", "/"):
        status, answer = tokened.get(path, **header)
        assert status == 401
        assert "token" in answer["error"]
        assert TOKEN not in str(answer)
    assert tokened.get("/live") == (200, {"status": "ok"})


@pytest.fixture
def open_to_all():
    with serving("--reward", "r=sharpness") as running:
        yield running


@pytest.mark.parametrize(*table("origins.jsonl"))
def test_pages_of_others_cannot_post_here(open_to_all, headers, status):
    found, answer = open_to_all.post("/v1/judge", {"samples": []}, **headers)
    assert found == status
    assert "\n" not in answer.get("error", "")


@pytest.mark.parametrize(*table("targets.jsonl"))
def test_a_target_that_names_another_server_is_refused(open_to_all, target, status):
    connection = HTTPConnection("127.0.0.1", open_to_all.port, timeout=60)
    connection.request("CONNECT" if "/" not in target else "GET", target)
    assert connection.getresponse().status == status
    connection.close()


@pytest.mark.parametrize(*table("flags_apart.jsonl"))
def test_contradictory_flags_are_one_line(flags, token, words, monkeypatch, vieval):
    monkeypatch.setenv("VIEVAL_SERVE_TOKEN", token)
    if words == "has no aspects":
        flags = [*flags, "--model", "m", "--base-url", "http://127.0.0.1:1/v1"]
    printed = vieval("serve --port 0 --reward r=sharpness", *flags, code=1).err
    assert words in printed
    assert printed.count("\n") == 1


def test_an_address_of_others_has_number_addresses_and_own_names():
    guard = guard_of("0.0.0.0", ("judge.lab",), "", without_token=True)
    names = ("192.0.2.7:8200", "judge.lab", "JUDGE.lab:80", "evil.example", "127.0.0.1")
    assert [name for name in names if guard.refusal({"Host": name})] == ["evil.example"]


def test_a_port_that_is_taken_is_one_line(open_to_all, vieval):
    flags = ("--reward", "r=sharpness", "--port", open_to_all.port)
    assert "pass another --host or --port" in vieval("serve", *flags, code=1).err
