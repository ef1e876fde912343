"""Test addresses of servers: queries, headers, proxies, authorities, streams and the pace."""

import asyncio
import json
import ssl
import subprocess
import time
from contextlib import asynccontextmanager

import pytest

from tests.refusals import refuses

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fake_server import HOST
from tests.one_server import KEY, asking, chat, error, saying, served, wait_shortly
from tests.proxy_server import proxying
from tests.tables import table
from vieval_plugin.backends.http.server import endpoint, server_options
from vieval_plugin.config import Backbone, from_document
from vieval_plugin.judges.protocol import Failure, Text
from vieval_plugin.text.errors import VievalError

TOKEN = "sk-of-a-gateway-never-shown-Xy72"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUESTS_CA_BUNDLE")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    wait_shortly(monkeypatch)
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@asynccontextmanager
async def asking_backbone(**about):
    """The backend of a backbone as options have it."""
    fields = dict(vars(server_options("judge", Backbone(model="gpt", **about))))
    async with asking(*fields.pop("urls"), **fields) as backend:
        yield backend


@pytest.mark.parametrize(*table("endpoints.jsonl"))
def test_the_query_of_an_address_stays_at_its_end(base, path, url):
    assert endpoint(base, path) == url


async def test_a_deployment_gets_its_key_and_headers_which_are_never_shown(monkeypatch):
    seen = []

    async def handle(request):
        seen.append((request.path_qs, dict(request.headers)))
        return await _fine(request) if len(seen) == 1 else error(400, f"no {TOKEN}")

    place = "/openai/deployments/judge"
    monkeypatch.setenv("AZURE_KEY", KEY)
    monkeypatch.setenv("GATEWAY_TOKEN", TOKEN)
    about = {"api_key_env": "AZURE_KEY", "api_key_header": "api-key"}
    about["headers"] = {"x-token": "Bearer ${GATEWAY_TOKEN}", "x-team": "images"}
    async with TestServer(completing(handle, place), host=HOST) as running:
        url = f"http://{HOST}:{running.port}{place}?api-version=2024-10-21"
        options = server_options("judge", Backbone(model="m", base_url=url, **about))
        assert TOKEN not in repr(options)
        async with asking_backbone(base_url=url, **about) as backend:
            assert isinstance(await backend.answer(chat("x")), Text)
            failed = await backend.answer(chat("y"))
    assert isinstance(failed, Failure)
    assert TOKEN not in failed.reason
    path, headers = seen[0]
    assert path == f"{place}/chat/completions?api-version=2024-10-21"
    sent = {"api-key": KEY, "x-token": f"Bearer {TOKEN}", "x-team": "images"}
    assert {name: headers.get(name) for name in sent} == sent
    assert "Authorization" not in headers


@pytest.mark.parametrize("headers", [{"x key": "a"}, {"x-key": "a\r\nx: b"}, {"": "a"}])
def test_headers_that_cannot_be_sent_are_refused(headers):
    given = {"model": "m", "base_url": "http://h/v1"}
    refuses("header", Backbone, **given, headers=headers)
    unset = Backbone(**given, headers={"x-key": "${NO_SUCH_VARIABLE_62}"})
    refuses("NO_SUCH_VARIABLE_62", server_options, "judge", unset)


def test_results_of_others_send_no_headers_and_may_have_no_temperature():
    judge = {"model": "m", "base_url": ["http://127.0.0.1:8000/v1"]}
    judge |= {"headers": {"x": "${OPENAI_API_KEY}"}, "temperature": "none"}
    read = from_document({"backbones": {"judge": judge}}).backbones["judge"]
    assert not read.headers
    assert read.temperature is None


async def _fine(request):
    return web.json_response(saying({"content": "fine"}))


def completing(handle, path="/v1"):
    """An application with chats below a path."""
    app = web.Application()
    app.router.add_post(f"{path}/chat/completions", handle)
    return app


async def test_judge_calls_go_through_the_proxy_with_its_user(monkeypatch):
    server = TestServer(completing(_fine), host=HOST)
    async with server as upstream, proxying(upstream.port) as (proxy, heads):
        monkeypatch.setenv("HTTP_PROXY", proxy.replace("//", "//me:pass-word@"))
        async with asking("http://judge.example/v1") as backend:
            assert isinstance(await backend.answer(chat("x")), Text)
        assert heads[0].startswith("POST http://judge.example/v1/chat/completions ")
        assert "Proxy-Authorization: Basic bWU6cGFzcy13b3Jk" in heads[0]
        async with asking(f"http://{HOST}:{upstream.port}/v1") as backend:
            assert isinstance(await backend.answer(chat("x")), Text)
        assert len(heads) == 1


AROUND = "NO_PROXY=judge.example"
AUTHENTICATE = "407 Proxy Authentication Required"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (AUTHENTICATE, r"requires a user and password .*HTTPS?_PROXY"),
        ("403 Forbidden", AROUND),
        ("502 Bad Gateway", AROUND),
        (None, rf"the proxy http://127.0.0.1:1 .*{AROUND}"),
    ],
)
async def test_what_a_proxy_refuses_names_it(answer, sentence, monkeypatch):
    said = f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n".encode()
    async with proxying(0, said) as (proxy, _):
        proxy = proxy if answer else "http://127.0.0.1:1"
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        url = "https://judge.example/v1"
        async with asking(url, retries=0, patience=0.1) as backend:
            with pytest.raises(VievalError, match=sentence) as raised:
                await backend.answer(chat("x"))
    assert proxy in str(raised.value)


@pytest.fixture
def certificate(tmp_path):
    """A certificate for localhost that no system trusts, with its key."""
    files = tmp_path / "ca.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1"
    command += " -nodes -days 2 -subj /CN=localhost -addext"
    command += f" subjectAltName=DNS:localhost -out {files[0]} -keyout {files[1]}"
    try:
        subprocess.run(command.split(), check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs openssl")
    return files


async def test_an_own_authority_is_trusted(certificate, monkeypatch):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    server = TestServer(completing(_fine), host="localhost")
    await server.start_server(ssl=context)
    url = f"https://localhost:{server.port}/v1"
    async with asking(url, ca_file=certificate[0]) as backend:
        assert isinstance(await backend.answer(chat("x")), Text)
    async with asking(url, retries=0, patience=0.1) as backend:
        with pytest.raises(VievalError):
            await backend.answer(chat("x"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate[0]))
    async with asking(url) as backend:
        assert isinstance(await backend.answer(chat("x")), Text)
    await server.close()


@pytest.mark.parametrize("name", ["nothing.pem", "noise.pem"])
async def test_a_file_that_holds_no_authority_is_named(name, tmp_path):
    (tmp_path / "noise.pem").write_text("noise")
    with pytest.raises(VievalError, match=rf"ca_file must .*{name}"):
        async with asking("https://judge.example/v1", ca_file=tmp_path / name):
            pass


def _events(*documents, end="data: [DONE]\n\n"):
    return "".join(f"data: {json.dumps(document)}\n\n" for document in documents) + end


def _piece(text=None, end=None, index=0, **more):
    delta = {"content": text} if text else {}
    choice = {"index": index, "delta": delta, "finish_reason": end}
    return {"id": "c1", "choices": [choice], **more}


USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
WHOLE = _piece("fine", "stop", usage=USAGE)
ROLE = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
THOUGHT = {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]}
HALVES = [_piece("fi"), _piece("ne")]
COMMENTED = _events(*HALVES, _piece(end="stop", usage=USAGE)).replace("\n", "\r\n")
GROWING = _piece("fi", usage={**USAGE, "completion_tokens": 1})
# forms of streams, from the reference of OpenAI's API, DashScope's guide to compatible mode, and
# OpenRouter's on streaming
ALONE = {"choices": [], "usage": USAGE}
STREAMS = {
    "usage in an event of its own": _events(ROLE, *HALVES, _piece(end="stop"), ALONE),
    "usage with the last piece": _events(WHOLE),
    "usage that grows": _events(GROWING, _piece("ne", "stop", usage=USAGE)),
    "comments, other line ends": f": OPENROUTER PROCESSING\r\n\r\n{COMMENTED}",
    "no mark at the end": _events(WHOLE, end=""),
    "thinking beside": _events(THOUGHT, WHOLE),
    "a second choice": _events(_piece("other", index=1), WHOLE),
}


@pytest.mark.parametrize("text", STREAMS.values(), ids=STREAMS)
async def test_a_stream_is_read_as_the_answer_that_it_holds(text):
    stream = lambda: web.Response(text=text, content_type="text/event-stream")
    async with served(lambda body: stream()) as (backend, _):
        assert await backend.answer(chat("x")) == Text("fine", 7, 2, cut=False)


async def test_a_stream_that_breaks_off_is_asked_for_again():
    texts = [_events(_piece("fi"), end=""), _events(_piece("fine", "stop"))]
    pieces = lambda: web.Response(text=texts.pop(0), content_type="text/event-stream")
    async with served(lambda body: pieces()) as (backend, _):
        assert (await backend.answer(chat("x"))).text == "fine"
    assert backend.usage.retries == {"cut answer": 1}


async def test_requests_are_spread_over_the_minute():
    times = []
    noting = lambda body: times.append(time.monotonic()) or saying({"content": "y"})
    async with served(noting, requests_per_minute=1200) as (backend, _):
        await asyncio.gather(*(backend.answer(chat(f"x {n}")) for n in range(6)))
    assert max(times) - min(times) >= 5 * 60 / 1200 * 0.9
