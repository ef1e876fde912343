"""Keys and passwords are shown and kept nowhere, whoever quotes them."""

import asyncio
import base64
import json
import re
from functools import partial

import pytest

from tests.tables import table
from tests.verdict_files import write_rows
from vieval_plugin.config.section import redacted_options
from vieval_plugin.text import redaction
from vieval_plugin.text.redaction import redacted, register_secrets, remove_secrets

KEY = "sk-never-to-be-shown-Zq81"
PASSWORD = "hunter2-and-more"


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(redaction, "_server_secrets", set())


@pytest.mark.parametrize(*table("redacted_texts.jsonl"))
def test_texts_are_told_without_keys_users_and_queries(text, told):
    register_secrets(KEY, [])
    assert redacted(text) == redacted(redacted(text)) == told


@pytest.mark.parametrize(
    "user", ["me:a/b?c-and-more", "me:short?", "me:p@ss/word?with=all#signs"]
)
def test_a_password_with_the_signs_of_a_query_is_not_seen_in_part(user):
    register_secrets("", [f"{user}@127.0.0.1:9/v1"])
    told = redacted(f"{user}@127.0.0.1:9/v1: not an address")
    assert told.removeprefix("[key]@") == "127.0.0.1:9/v1: not an address"


SHORT = "EMPTY is empty, none is none"
OTHERS = r'{"note": "a \"b\" \u00e9 %20"}'


@pytest.mark.parametrize(
    ("keys", "text", "told"),
    [
        # what is short is no secret, and of two the longer goes first
        (("EMPTY", "none"), SHORT, SHORT),
        (("sk-12345678", "sk-12345678-more"), "sk-12345678-more", "[key]"),
        # addresses and other escapes in what a model says stay
        ((KEY,), f"http://me:pass@host {KEY}", "http://me:pass@host [key]"),
        ((KEY,), OTHERS, OTHERS),
    ],
)
def test_only_secrets_are_removed(keys, text, told):
    for key in keys:
        register_secrets(key, ["", "http://host/v1"])
    assert remove_secrets(text) == told


ESCAPED = (
    r"sk\u002dnever-to-be\/seen", r"\\u0073k-never-to-be/seen", "sk%2Dnever-to-be%2Fseen",
    "&#115;k&#x2d;never-to-be/seen", r"sk\x2dnever-to-be/seen",
)  # fmt: skip


@pytest.mark.parametrize("escaped", ESCAPED)
def test_a_secret_is_known_however_it_is_escaped(escaped):
    register_secrets("sk-never-to-be/seen", [])
    assert remove_secrets(f'{{"note": "{escaped}"}}') == '{"note": "[key]"}'


@pytest.mark.parametrize("scheme", ["http://", "//", ""])
def test_a_password_is_known_as_it_is_written_and_as_it_is_sent(scheme):
    address = f"{scheme}me:p%40ss-w/o?r#d@host/v1?api-key=of-a-query"
    register_secrets(KEY, [address, "not [an address", "http://[::1"])
    sent = base64.b64encode(b"me:p@ss-w/o?r#d").decode()
    written = ["p%40ss-w/o?r#d", "p@ss-w/o?r#d", "me:p@ss-w/o?r#d", "of-a-query"]
    for said in (KEY, *written, sent):
        assert redacted(f"<{said}>") == "<[key]>"


def test_keys_in_the_environment_are_found_by_the_names_of_their_variables(monkeypatch):
    values = {"SOME_API_KEY": "value-of-some-key", "HF_TOKEN": "hf_0123456789"}
    values |= {"DB_PASSWORD": "of-a-database", "OTHER_APIKEY": "short"}
    values["MONKEY"] = "a-banana-a-day"
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    told = redacted(" ".join(values.values()))
    assert told == "[key] [key] [key] short a-banana-a-day"


@pytest.mark.parametrize(*table("redacted_fields.jsonl"))
def test_further_fields_lose_what_may_be_a_secret(further):
    told = json.dumps(redacted_options({"backbones": {"judge": {"extra": further}}}))
    assert "removed" in told or "proxy" in told
    assert not re.search(f"{KEY}|short", told)


def test_further_fields_that_hold_no_secret_stay():
    schema = {"pattern": "^[0-9]{1,16}[a-z]{1,16}$"}
    extra = {"response_format": {"type": "json_schema", "schema": schema}}
    extra |= {"chat_template": "{{messages}}" * 40, "size": "1024x1024", "top_k": 5}
    extra["note"] = "several words, none of which is a key"
    assert redacted_options({"extra": extra}) == {"extra": extra}


def test_two_runs_that_differ_in_a_removed_text_alone_stay_two():
    variants = [{"variant": f"the-longest-of-names-{n}"} for n in "12"]
    one, other = (redacted_options({"extra": variant}) for variant in variants)
    assert one != other


def test_addresses_in_options_lose_users_and_queries(tmp_path, vieval):
    """From options to results, and from another version's results to `config --of`."""
    from vieval_plugin import config
    from vieval_plugin.run.prepare import prepare

    url = f"http://me:a/b?c#{PASSWORD}@host/v1?key={KEY}"
    judge = {"model": "m", "base_url": url}
    options = config.from_mapping({"backbones": {"judge": judge}}, "options")
    held = prepare("viescore", None, options).provenance.options
    assert held["backbones"]["judge"]["base_url"] == ["http://host/v1?key=[removed]"]
    carried = {"model": "m", "base_url": [url], "extra": {"x": KEY}}
    source = {"judge": "viescore", "settings": [], "aspects": ["O"]}
    source["options"] = {**held, "backbones": {"judge": carried}}
    row = {"vieval": 2, "uid": "1", "image_model": "m", "kind": "tig", "trace": []}
    row |= {"scores": {"O": 0.5}, "status": "ok", "provenance": source}
    write_rows(tmp_path / "v.jsonl", row)
    told = vieval("config", "--of", tmp_path / "v.jsonl").out
    assert "http://host/v1" in told
    assert not re.search(f"{KEY}|{PASSWORD}", told)


def test_what_is_written_is_redacted_again():
    """A verdict's reason may come from a tool or a generator, which no backend has looked at."""
    from vieval_plugin.judges.protocol import Status, Step, Verdict
    from vieval_plugin.records import verdict_document

    register_secrets(KEY, [])
    texts = {"answer": KEY.replace("-", r"\u002d"), "reason": f"refused {KEY}"}
    step = Step(("q",), Status.TOOL_ERROR, **texts)
    verdict = Verdict({}, Status.TOOL_ERROR, rationale=KEY, trace=(step,))
    told = json.dumps(verdict_document(verdict))
    assert told.count("[key]") == 3
    assert KEY not in told


async def quoting(heard, request):
    """A server that quotes whatever it was sent: in answers, refusals, errors and redirects."""
    from aiohttp import web

    sent = request.headers.get("Authorization")
    said = f"{sent} {KEY} me:{PASSWORD} {PASSWORD} http://me:{PASSWORD}@host/"
    number = len(heard)
    heard.append(await request.text())
    if number % 5 == 1:
        error = dict.fromkeys(("message", "code", "type"), said)
        return web.json_response({"error": error}, status=400)
    if number % 5 == 2:
        return web.Response(text=said, status=403)
    if number % 5 == 3:
        away = {"Location": f"http://me:{PASSWORD}@host/?{KEY}"}
        return web.Response(status=307, headers=away)
    refused = {"content": None, "refusal": said}
    message = refused if number % 5 == 4 else {"content": said}
    choice = {"message": message, "finish_reason": "stop"}
    return web.json_response({"choices": [choice], "usage": {"a": said}})


@pytest.mark.parametrize("by", ["key", "password"])
async def test_what_a_server_quotes_is_not_seen(
    by, store, samples_file, tmp_path, monkeypatch, capfd
):
    pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')
    from tests.one_server import handling
    from vieval_plugin.cli import main

    heard, options = [], tmp_path / "vieval.yaml"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    secrets = [PASSWORD, base64.b64encode(f"me:{PASSWORD}".encode()).decode()]
    if by == "key":
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        secrets = [KEY]

    async def run(url, kept, *commands):
        """Exit codes of commands whose judge is at an address."""
        judge = {"model": "fake", "base_url": url, "retries": 0, "patience": 1}
        document = {"store": kept, "backbones": {"judge": judge}}
        options.write_text(json.dumps(document))
        return [await asyncio.to_thread(main, command) for command in commands]

    score = ["score", str(samples_file), "--out"]
    async with handling(partial(quoting, heard)) as url:
        user = "" if by == "key" else f"me:{PASSWORD}@"
        url = url.replace("//", f"//{user}")
        kept = {"path": str(store)}
        await run(url, kept, [*score, str(tmp_path / "v.jsonl")], ["doctor"])
    assert main(["cache", "export"]) == 0
    gone = f"http://{user}127.0.0.1:9/v1"
    commands = [*score, str(tmp_path / "w.jsonl")], ["doctor"]
    assert await run(gone, {"use": False}, *commands) == [1, 1]
    printed, written = capfd.readouterr(), (tmp_path / "v.jsonl").read_text()
    assert len(heard) > 12
    assert "[key]" in written
    seen = printed.out + printed.err + written
    kept = b"".join(file.read_bytes() for file in store.parent.glob("replies.sqlite*"))
    assert "not answered for" in seen
    for secret in secrets:
        assert secret not in seen
        assert secret.encode() not in kept


async def test_a_key_and_a_password_at_once_are_one_line():
    """HTTP has one header for both."""
    pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')
    from tests.one_server import asking
    from vieval_plugin.text.errors import VievalError

    address = "http://127.0.0.1:9/v1: an address with a user and password cannot be"
    with pytest.raises(VievalError, match=address) as raised:
        async with asking(f"http://me:{PASSWORD}@127.0.0.1:9/v1", key=KEY):
            pass
    assert not re.search(f"{KEY}|{PASSWORD}", str(raised.value))


def test_a_batch_keeps_no_key_of_the_environment(tmp_path, monkeypatch):
    """A host's own model may be behind a server, and quote what that said."""
    from vieval_plugin.backends.http.server import Usage
    from vieval_plugin.backends.local.batch import answer_in_batches
    from vieval_plugin.judges.protocol import Chat, Failure, Message, Status, Text

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    said = [Failure(Status.API_ERROR, f"{KEY} is no key"), Text(f"I was told {KEY}")]
    by = {"key": lambda _, ask, *__: str(ask.messages), "generate": lambda batch: said}
    usage = Usage()
    asked = [(0, Chat((Message("user", (text,)),), ("q",))) for text in "ab"]
    replies = answer_in_batches(asked, **by, store=None, model="m", usage=usage)
    told = [Failure(Status.API_ERROR, "[key] is no key"), Text("I was told [key]")]
    assert replies == told
    assert KEY not in repr(usage)


def test_a_key_among_the_fields_of_one_text_is_hidden():
    key = "0123456789abcdef"
    headers = {"Cookie": f"sid={key}; b=2; c=3", "X-Key": f"one two {key}"}
    arguments = f"pretrained=x, api_key={key}, b=1"
    shown = redacted_options({"model_args": arguments, "headers": headers})
    assert key not in str(shown)
    assert shown["model_args"] == "pretrained=x, api_key=[removed], b=1"
    assert shown["headers"]["Cookie"].endswith("; b=2; c=3")
