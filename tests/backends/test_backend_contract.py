"""Test what every backend of models does: a server, an engine and transformers."""

import asyncio
import threading

import PIL.Image
import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests import tiny_model
from tests.backends import fake_engine
from tests.extras import needs
from tests.fake_server import FakeServer
from tests.one_server import asking
from tests.pictures import encoded, noise, plain
from vieval_plugin import images
from vieval_plugin.backends.cache.store import Store, key_of, question
from vieval_plugin.backends.http.image_encoding import SHRUNK, TURNED
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.batch import answer_in_batches
from vieval_plugin.backends.local.vllm import VLLMBackend
from vieval_plugin.judges.protocol import Chat, Failure, Image, Message, Status, Text

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


def picture(seed, kind="PNG", size=(64, 64), **options):
    return Image(encoded(noise(seed, size), kind, **options))


@pytest.mark.parametrize("answers", ["vllm"], indirect=True)
def test_images_that_are_turned_or_shrunk_are_noted(answers):
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    turned, large = picture(3, "JPEG", exif=exif), picture(4, size=(90, 80))
    asks = [about(*shown, "dog") for shown in ([picture(5)], [turned], [large, turned])]
    replies, _ = answers(asks, max_pixels=64 * 64)
    assert [reply.notes for reply in replies] == [(), (TURNED,), (SHRUNK, TURNED)]
    assert all(reply.cut for reply in replies)


# what engines in this process share: they examine all images before they ask anything


def answered(asks, store=None):
    key = lambda number, ask, digest: key_of(question(ask, digest))
    by = {"key": key, "generate": lambda batch: [Text("a cat") for _ in batch]}
    numbered = list(enumerate(asks))
    return answer_in_batches(numbered, **by, store=store, model="m", usage=Usage())


def test_a_reply_that_is_stored_for_a_broken_image_is_not_used(store):
    cut = about(Image(picture(1).source[:-300]), "dog")
    store.add(key_of(question(cut, images.digest)), "m", Text("a dog"))
    assert isinstance(answered([cut], store)[0], Failure)


def test_images_are_decoded_once_and_in_threads(monkeypatch):
    where, examine = [], images.examine

    def noting(image):
        where.append((image, threading.current_thread()))
        return examine(image)

    monkeypatch.setattr("vieval_plugin.backends.local.batch.examine", noting)
    one, other = picture(0), picture(2)
    answered([about(image, "dog") for image in (one, other, one)])
    assert {image for image, _ in where} == {one, other}
    assert len(where) == 2
    assert threading.main_thread() not in {thread for _, thread in where}


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
    first, _ = answers(ASKS, store=store)
    copied = about(Image(tmp_path / "copy.png"), words)
    again, usage = answers([copied, *ASKS[1:]], store=store)
    assert again == first
    assert (usage.calls, usage.cached) == (0, 3)
