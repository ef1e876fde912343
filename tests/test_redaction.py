"""Keys and passwords are shown and kept nowhere, whoever quotes them."""

import asyncio
import base64
import json
from functools import partial

import pytest

from vieval_plugin.redaction import environment_keys, redacted, secrets_of, without

KEY = "sk-never-to-be-shown-Zq81"
PASSWORD = "hunter2-and-more"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"bad key {KEY}", "bad key [key]"),
        (f"'{KEY}' and {KEY}", "'[key]' and [key]"),
        ("see http://me:pass@host:80/v1?a=b", "see http://host:80/v1?a=b"),
        ("http://me@host/ http://a:b@c", "http://host/ http://c"),
        ("http://me:p@ss@host/v1", "http://host/v1"),
        ("https://host/v1?mail=me@host", "https://host/v1?mail=me@host"),
        ("write to me@host", "write to me@host"),
        ("", ""),
    ],
)
def test_texts_are_told_without_keys_and_users(text, told):
    assert redacted(text, [KEY]) == told


def test_what_is_short_is_no_secret():
    assert redacted("EMPTY is empty, none is none", ["EMPTY", "none", ""]) == "EMPTY is empty, none is none"
    assert secrets_of("EMPTY", ["http://host/v1"]) == ()


def test_of_two_secrets_the_longer_goes_first():
    assert redacted("sk-12345678-more", ["sk-12345678", "sk-12345678-more"]) == "[key]"


def test_addresses_in_what_a_model_says_stay():
    assert without(f"http://me:pass@host {KEY}", [KEY]) == "http://me:pass@host [key]"


def test_a_password_is_known_as_it_is_written_and_as_it_is_sent():
    secrets = secrets_of(KEY, ["http://me:p%40ss-word@host/v1", "not [an address"])
    sent = base64.b64encode(b"me:p@ss-word").decode()
    for said in (KEY, "p%40ss-word", "p@ss-word", "me:p@ss-word", sent):
        assert redacted(f"<{said}>", secrets) == "<[key]>"


def test_keys_in_the_environment_are_found_by_the_names_of_their_variables(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "value-of-some-key")
    monkeypatch.setenv("HF_TOKEN", "hf_0123456789")
    monkeypatch.setenv("OTHER_APIKEY", "short")
    monkeypatch.setenv("MONKEY", "a-banana-a-day")
    found = environment_keys()
    assert {"value-of-some-key", "hf_0123456789"} <= set(found)
    assert not {"short", "a-banana-a-day"} & set(found)


# All the way.


async def quoting(heard, request):
    """A server that quotes whatever it was sent: in answers, refusals, errors and redirects."""
    from aiohttp import web

    said = f"{request.headers.get('Authorization')} {KEY} me:{PASSWORD} {PASSWORD} http://me:{PASSWORD}@host/"
    number = len(heard)
    heard.append(await request.text())
    if number % 5 == 1:
        return web.json_response({"error": {"message": said, "code": said, "type": said}}, status=400)
    if number % 5 == 2:
        return web.Response(text=said, status=403)
    if number % 5 == 3:
        return web.Response(status=307, headers={"Location": f"http://me:{PASSWORD}@host/?{KEY}"})
    message = {"content": None, "refusal": said} if number % 5 == 4 else {"content": said}
    return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"a": said}})


@pytest.mark.parametrize("by", ["key", "password"])
async def test_a_server_that_quotes_what_it_is_sent_makes_none_of_it_seen(
    by, store, samples_file, tmp_path, monkeypatch, capfd
):
    pytest.importorskip("aiohttp", reason='needs aiohttp: pip install "vieval[http]"')
    from aiohttp import web
    from aiohttp.test_utils import TestServer

    from vieval_plugin.cli import main

    app, heard = web.Application(), []
    app.router.add_post("/v1/chat/completions", partial(quoting, heard))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if by == "key":
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
    secrets = [KEY] if by == "key" else [PASSWORD, base64.b64encode(f"me:{PASSWORD}".encode()).decode()]
    async with TestServer(app, host="127.0.0.1") as server:
        user = "" if by == "key" else f"me:{PASSWORD}@"
        url = f"http://{user}127.0.0.1:{server.port}/v1"
        options = tmp_path / "vieval.yaml"
        backbone = {"model": "fake", "base_url": url, "retries": 0, "patience": 1}
        options.write_text(json.dumps({"store": {"path": str(store)}, "backbones": {"judge": backbone}}))
        await asyncio.to_thread(main, ["score", str(samples_file), "--out", str(tmp_path / "v.jsonl")])
        await asyncio.to_thread(main, ["doctor"])
    assert main(["cache", "export"]) == 0
    gone = {**backbone, "base_url": url.replace(str(server.port), "9"), "patience": 0.2}
    options.write_text(json.dumps({"store": {"use": False}, "backbones": {"judge": gone}}))
    assert await asyncio.to_thread(main, ["score", str(samples_file), "--out", str(tmp_path / "w.jsonl")]) == 1
    assert await asyncio.to_thread(main, ["doctor"]) == 1
    printed = capfd.readouterr()
    assert len(heard) > 12
    assert "[key]" in (tmp_path / "v.jsonl").read_text()
    seen = printed.out + printed.err + (tmp_path / "v.jsonl").read_text()
    kept = b"".join(file.read_bytes() for file in store.parent.glob("replies.sqlite*"))
    assert "answered nothing" in seen
    for secret in secrets:
        assert secret not in seen
        assert secret.encode() not in kept


async def test_a_key_and_a_password_at_once_are_one_line():
    """HTTP has one header for both."""
    pytest.importorskip("aiohttp", reason='needs aiohttp: pip install "vieval[http]"')
    from tests.one_server import asking
    from vieval_plugin.errors import VievalError

    with pytest.raises(
        VievalError, match="http://127.0.0.1:9/v1: a user and password in an address and a key"
    ) as raised:
        async with asking(f"http://me:{PASSWORD}@127.0.0.1:9/v1", key=KEY):
            pass
    assert KEY not in str(raised.value)
    assert PASSWORD not in str(raised.value)


def test_a_batch_keeps_no_key_of_the_environment(tmp_path, monkeypatch):
    """A host's own model may be behind a server, and quote what that said."""
    from vieval_plugin.backends.batch import answer_in_batches
    from vieval_plugin.backends.server import Usage
    from vieval_plugin.judges.protocol import Chat, Failure, Message, Status, Text

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    usage = Usage()
    said = [Failure(Status.API_ERROR, f"Error: {KEY} is no key"), Text(f"I was told {KEY}")]
    replies = answer_in_batches(
        [(0, Chat((Message("user", (text,)),), ("q",))) for text in "ab"],
        key=lambda number, ask, *_: str(ask.messages),
        generate=lambda batch: said,
        store=None,
        model="m",
        usage=usage,
    )
    assert replies == [Failure(Status.API_ERROR, "Error: [key] is no key"), Text("I was told [key]")]
    assert KEY not in repr(usage)
