"""Ways to a server: queries of addresses, headers, proxies, certificate authorities, streams and
the pace.
"""

import asyncio
import json
import ssl
import subprocess
import time

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fake_server import HOST
from tests.one_server import KEY, asking, chat, handling, saying, wait_shortly
from tests.proxy_server import proxying
from vieval_plugin.backends.http.server import endpoint, server_options
from vieval_plugin.config import Backbone, from_document
from vieval_plugin.judges.protocol import Failure, Text
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import redacted


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    wait_shortly(monkeypatch)
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "REQUESTS_CA_BUNDLE",
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("http://host/v1", "chat/completions", "http://host/v1/chat/completions"),
        ("http://host/v1/", "chat/completions", "http://host/v1/chat/completions"),
        ("https://me.openai.azure.com/openai/v1", "files", "https://me.openai.azure.com/openai/v1/files"),
        ("https://h/openai/deployments/d?api-version=1", "chat/completions",
         "https://h/openai/deployments/d/chat/completions?api-version=1"),
        ("https://h/d?api-version=1", "files?limit=100", "https://h/d/files?limit=100&api-version=1"),
    ],
)  # fmt: skip
def test_the_query_of_an_address_stays_at_its_end(base, path, url):
    assert endpoint(base, path) == url


def test_an_api_version_is_no_secret_and_other_queries_are():
    text = "https://h/d?api-version=2024-10-21&code=abcdefgh12345678"
    assert redacted(text) == "https://h/d?api-version=2024-10-21&code=[removed]"


async def test_a_deployment_of_azure_gets_its_key_in_its_own_header(monkeypatch):
    seen = []

    async def handle(request):
        seen.append((request.path_qs, dict(request.headers)))
        return web.json_response(saying({"content": "fine"}))

    app = web.Application()
    app.router.add_post("/openai/deployments/judge/chat/completions", handle)
    monkeypatch.setenv("AZURE_KEY", KEY)
    async with TestServer(app, host=HOST) as served:
        url = f"http://{HOST}:{served.port}/openai/deployments/judge?api-version=2024-10-21"
        backbone = Backbone(
            model="gpt", base_url=url, api_key_env="AZURE_KEY", api_key_header="api-key"
        )
        fields = vars(server_options("judge", backbone))
        async with asking(*fields.pop("urls"), **fields) as backend:
            assert isinstance(await backend.answer(chat("x")), Text)
    path, headers = seen[-1]
    assert path == "/openai/deployments/judge/chat/completions?api-version=2024-10-21"
    assert headers["api-key"] == KEY
    assert "Authorization" not in headers


async def test_headers_of_a_gateway_come_from_the_environment_and_are_shown_nowhere(
    monkeypatch,
):
    seen = []

    async def handle(request):
        seen.append(dict(request.headers))
        return web.json_response(
            {"error": {"message": f"no route for {KEY}"}}, status=400
        )

    monkeypatch.setenv("GATEWAY_TOKEN", KEY)
    async with handling(handle) as url:
        headers = {
            "cf-aig-authorization": "Bearer ${GATEWAY_TOKEN}",
            "x-team": "images",
        }
        options = server_options(
            "judge", Backbone(model="m", base_url=url, headers=headers)
        )
        assert KEY not in repr(options)
        fields = vars(options)
        async with asking(*fields.pop("urls"), **fields) as backend:
            reply = await backend.answer(chat("x"))
    assert isinstance(reply, Failure)
    assert KEY not in reply.reason
    assert seen[-1]["cf-aig-authorization"] == f"Bearer {KEY}"
    assert seen[-1]["x-team"] == "images"


def test_a_variable_of_headers_that_is_not_set_is_named():
    backbone = Backbone(
        model="m", base_url="http://h/v1", headers={"x-key": "${NO_SUCH_VARIABLE_62}"}
    )
    with pytest.raises(VievalError, match="NO_SUCH_VARIABLE_62"):
        server_options("judge", backbone)


@pytest.mark.parametrize("headers", [{"x key": "a"}, {"x-key": "a\r\nx: b"}, {"": "a"}])
def test_headers_that_cannot_be_sent_are_refused(headers):
    with pytest.raises(VievalError, match="header"):
        Backbone(model="m", base_url="http://h/v1", headers=headers)


def test_results_of_others_send_no_headers():
    document = {"backbones": {"judge": {"model": "m", "base_url": ["http://127.0.0.1:8000/v1"],
                                        "headers": {"x": "${OPENAI_API_KEY}"}}}}  # fmt: skip
    assert not from_document(document).backbones["judge"].headers


async def _fine(request):
    return web.json_response(saying({"content": "fine"}))


async def test_judge_calls_go_through_the_proxy_with_its_user(monkeypatch):
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _fine)
    async with (
        TestServer(app, host=HOST) as served,
        proxying(served.port) as (proxy, heads),
    ):
        monkeypatch.setenv("HTTP_PROXY", proxy.replace("//", "//me:pass-word@"))
        async with asking("http://judge.example/v1") as backend:
            assert isinstance(await backend.answer(chat("x")), Text)
        assert heads[0].startswith("POST http://judge.example/v1/chat/completions ")
        assert "Proxy-Authorization: Basic bWU6cGFzcy13b3Jk" in heads[0]
        async with asking(f"http://{HOST}:{served.port}/v1") as backend:
            assert isinstance(await backend.answer(chat("x")), Text)
        assert len(heads) == 1


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            "HTTP/1.1 407 Proxy Authentication Required",
            r"requires a user and password .*HTTPS?_PROXY",
        ),
        ("HTTP/1.1 403 Forbidden", "NO_PROXY=judge.example"),
        ("HTTP/1.1 502 Bad Gateway", "NO_PROXY=judge.example"),
    ],
)
async def test_what_a_proxy_refuses_names_it(answer, sentence, monkeypatch):
    async with proxying(0, f"{answer}\r\nContent-Length: 0\r\n\r\n".encode()) as (
        proxy,
        _,
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        async with asking(
            "https://judge.example/v1", retries=0, patience=0.1
        ) as backend:
            with pytest.raises(VievalError, match=sentence) as raised:
                await backend.answer(chat("x"))
    assert proxy in str(raised.value)


async def test_a_proxy_that_is_not_there_is_named_with_the_way_around_it(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with asking("http://judge.example/v1", retries=0, patience=0.1) as backend:
        with pytest.raises(
            VievalError, match=r"the proxy http://127.0.0.1:1 .*NO_PROXY=judge.example"
        ):
            await backend.answer(chat("x"))


@pytest.fixture
def certificate(tmp_path):
    """A certificate for localhost that no system trusts, with its key."""
    files = tmp_path / "ca.pem", tmp_path / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += [
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
    ]
    command += ["-out", str(files[0]), "-keyout", str(files[1])]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs openssl")
    return files


async def test_an_own_authority_is_trusted_by_field_and_by_variable(
    certificate, monkeypatch
):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _fine)
    async with TestServer(app, host=HOST) as served:
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, HOST, 0, ssl_context=context)
        await site.start()
        url = f"https://localhost:{site._server.sockets[0].getsockname()[1]}/v1"
        async with asking(url, ca_file=certificate[0]) as backend:
            assert isinstance(await backend.answer(chat("x")), Text)
        async with asking(url, retries=0, patience=0.1) as backend:
            with pytest.raises(VievalError):
                await backend.answer(chat("x"))
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate[0]))
        async with asking(url) as backend:
            assert isinstance(await backend.answer(chat("x")), Text)
        await runner.cleanup()
    assert served


@pytest.mark.parametrize("name", ["nothing.pem", "noise.pem"])
async def test_a_file_that_holds_no_authority_is_named(name, tmp_path):
    (tmp_path / "noise.pem").write_text("noise")
    with pytest.raises(VievalError, match=rf"ca_file must .*{name}"):
        async with asking("https://judge.example/v1", ca_file=tmp_path / name):
            pass


def _events(*documents, end="data: [DONE]\n\n"):
    return "".join(f"data: {json.dumps(document)}\n\n" for document in documents) + end


def _piece(text=None, end=None, **more):
    return {"id": "c1", "choices": [{"index": 0, "delta": {"content": text} if text else {}, "finish_reason": end}],
            **more}  # fmt: skip


USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
# forms of streams, from the reference of OpenAI's API, DashScope's guide to compatible mode, and
# OpenRouter's on streaming
STREAMS = {
    "usage in an event of its own": _events(
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        _piece("fi"),
        _piece("ne"),
        _piece(end="stop"),
        {"choices": [], "usage": USAGE},
    ),
    "usage with the last piece": _events(_piece("fine", "stop", usage=USAGE)),
    "usage that grows": _events(
        _piece("fi", usage={**USAGE, "completion_tokens": 1}),
        _piece("ne", "stop", usage=USAGE),
    ),
    "comments and other line ends": ": OPENROUTER PROCESSING\r\n\r\n"
    + _events(_piece("fi"), _piece("ne"), _piece(end="stop", usage=USAGE)).replace(
        "\n", "\r\n"
    ),
    "no mark at the end": _events(_piece("fine", "stop", usage=USAGE), end=""),
    "thinking beside": _events(
        {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]},
        _piece("fine", "stop", usage=USAGE),
    ),
    "a second choice": _events(
        {"choices": [{"index": 1, "delta": {"content": "other"}}]},
        _piece("fine", "stop", usage=USAGE),
    ),
}


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_is_read_as_the_answer_that_it_holds(name):
    async def handle(request):
        return web.Response(text=STREAMS[name], content_type="text/event-stream")

    async with handling(handle) as url, asking(url) as backend:
        reply = await backend.answer(chat("x"))
    assert (reply.text, reply.input_tokens, reply.output_tokens, reply.cut) == (
        "fine",
        7,
        2,
        False,
    )


async def test_a_stream_that_breaks_off_is_asked_for_again():
    answers = [_events(_piece("fi"), end=""), _events(_piece("fine", "stop"))]

    async def handle(request):
        return web.Response(text=answers.pop(0), content_type="text/event-stream")

    async with handling(handle) as url, asking(url) as backend:
        assert (await backend.answer(chat("x"))).text == "fine"
    assert backend.usage.retries == {"cut answer": 1}


async def test_requests_are_spread_over_the_minute():
    times = []

    async def handle(request):
        times.append(time.monotonic())
        return await _fine(request)

    async with (
        handling(handle) as url,
        asking(url, requests_per_minute=1200) as backend,
    ):
        await asyncio.gather(*(backend.answer(chat(f"x {n}")) for n in range(6)))
    assert max(times) - min(times) >= 5 * 60 / 1200 * 0.9
