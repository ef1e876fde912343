"""Test what every backend of models does: a server, an engine and transformers."""

import asyncio

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests import tiny_model
from tests.backends import fake_engine
from tests.extras import needs
from tests.fake_server import FakeServer
from tests.one_server import asking
from tests.pictures import plain
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.vllm import VLLMBackend
from vieval_plugin.judges.protocol import Chat, Image, Message, Status, Text

KINDS = ["server", "vllm", pytest.param("transformers", marks=needs("transformers"))]
WORDS = ("the figure", "a dog", "the image", "maybe no figure")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return tiny_model.build(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(params=KINDS)
def answers(request, monkeypatch):
    """Asks a backend of its kind, opened anew, all at once; gives replies and its usage."""
    if request.param == "server":
        with FakeServer(reply=lambda body: str(body)[-200:]) as server:
            yield lambda asks, **options: asyncio.run(by_server(server, asks, options))
        return
    fake_engine.put_in(monkeypatch)
    opened = VLLMBackend
    model = "m"
    if request.param == "transformers":
        from vieval_plugin.backends.local.huggingface import TransformersBackend

        opened = TransformersBackend
        model = str(request.getfixturevalue("weights"))

    def here(asks, repeat=0, **options):
        backend = opened(model, usage=Usage(), **options)
        numbered = list(enumerate(asks))
        return backend.answer(numbered, [repeat] * len(asks)), backend.usage

    yield here


async def by_server(server, asks, options):
    repeat = options.pop("repeat", 0)
    async with asking(server.base_url, **options) as backend:
        waiting = [backend.answer(ask, repeat) for ask in asks]
        return await asyncio.gather(*waiting), backend.usage


def about(*parts, limit=4):
    return Chat((Message("user", parts),), ("q",), max_tokens=limit)


ASKS = [about(Image(plain((60 * n, 9, 9), (64, 64))), WORDS[n]) for n in range(3)]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "replies.sqlite")


def test_replies_come_in_the_order_of_the_asks(answers):
    replies, usage = answers(ASKS)
    assert all(isinstance(reply, Text) for reply in replies)
    assert (usage.calls, usage.cached) == (3, 0)
    assert usage.output_tokens == sum(reply.output_tokens for reply in replies)
    backwards, _ = answers(ASKS[::-1])
    assert [reply.text for reply in backwards[::-1]] == [one.text for one in replies]


def test_what_is_asked_twice_at_once_is_asked_once(answers):
    replies, usage = answers([ASKS[0]] * 5)
    assert len(set(replies)) == 1
    assert (usage.calls, usage.repeated) == (1, 4)


def test_an_image_that_cannot_be_read_fails_alone(answers, store, tmp_path):
    sources = b"no image", plain((1, 2, 3), (64, 64))[:-20], tmp_path / "missing.png"
    broken = [about(Image(source), "this") for source in sources]
    replies, usage = answers([ASKS[0], *broken, ASKS[1]], store=store)
    first, *failed, last = replies
    assert isinstance(first, Text)
    assert isinstance(last, Text)
    assert [reply.status for reply in failed] == [Status.TOOL_ERROR] * 3
    assert all("\n" not in reply.reason for reply in failed)
    assert "missing.png" in failed[2].reason
    assert usage.calls == 2
    assert usage.failures["unreadable image"] == 3
    assert [row["reply"]["kind"] for row in store.export()] == ["Text"] * 2


def test_what_is_stored_is_not_asked_again(answers, store):
    first, _ = answers(ASKS, store=store)
    again, usage = answers(ASKS, store=store)
    assert again == first
    assert (usage.calls, usage.cached) == (0, 3)


OTHERS = {
    "image": (about(Image(plain((1, 2, 3), (64, 64))), WORDS[0]), {}),
    "words": (about(ASKS[0].messages[0].parts[0], "a cat"), {}),
    "limit": (about(*ASKS[0].messages[0].parts, limit=7), {}),
    "sampling": (ASKS[0], {"sampling": Sampling(max_tokens=9)}),
}


@pytest.mark.parametrize(("other", "options"), OTHERS.values(), ids=OTHERS)
def test_a_question_that_differs_is_another(answers, store, other, options):
    answers(ASKS[:1], store=store)
    _, usage = answers([other], store=store, **options)
    assert (usage.calls, usage.cached) == (1, 0)


@pytest.mark.parametrize("answers", ["server", "vllm"], indirect=True)
def test_a_repeat_is_another_question(answers, store):
    answers(ASKS[:1], store=store)
    _, usage = answers(ASKS[:1], store=store, repeat=1)
    assert (usage.calls, usage.cached) == (1, 0)


def test_the_same_image_in_another_file_is_the_same_question(answers, store, tmp_path):
    image, words = ASKS[0].messages[0].parts
    (tmp_path / "copy.png").write_bytes(image.source)
    answers(ASKS[:1], store=store)
    _, usage = answers([about(Image(tmp_path / "copy.png"), words)], store=store)
    assert (usage.calls, usage.cached) == (0, 1)
