"""Test batch backends, which examine all images before they ask anything."""

import threading

import PIL.Image
import pytest

from tests.backends import fake_engine
from tests.pictures import encoded, noise
from vieval_plugin import images
from vieval_plugin.backends.cache.store import Store, key_of, question
from vieval_plugin.backends.http.image_encoding import SHRUNK, TURNED
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.batch import answer_in_batches
from vieval_plugin.backends.local.vllm import VLLMBackend
from vieval_plugin.images import digest
from vieval_plugin.judges.protocol import Chat, Failure, Image, Message, Status, Text


def picture(seed, kind="PNG", size=(32, 24), **options):
    return encoded(noise(seed, size), kind, **options)


WHOLE, CUT = Image(picture(0)), Image(picture(1)[:-300])


def chat(*parts):
    return Chat((Message("user", (*parts, "What is it?")),), ("q",))


def answered(asked, store=None):
    key = lambda number, ask, digest: key_of(question(ask, digest))
    by = {"key": key, "generate": lambda batch: [Text("a cat") for _ in batch]}
    about = {"store": store, "model": "m", "usage": Usage()}
    return answer_in_batches(list(enumerate(asked)), **by, **about)


def test_a_reply_that_is_stored_for_a_broken_image_is_not_used(tmp_path):
    store = Store(tmp_path / "r.sqlite")
    store.add(key_of(question(chat(CUT), digest)), "m", Text("a dog"))
    assert isinstance(answered([chat(CUT)], store)[0], Failure)
    store.close()


def test_images_are_decoded_once_and_in_threads(monkeypatch):
    where, examine = [], images.examine

    def noting(image):
        where.append((image, threading.current_thread()))
        return examine(image)

    monkeypatch.setattr("vieval_plugin.backends.local.batch.examine", noting)
    answered([chat(WHOLE), chat(Image(picture(2))), chat(WHOLE)])
    assert {image for image, _ in where} == {WHOLE, Image(picture(2))}
    assert len(where) == 2
    assert threading.main_thread() not in {thread for _, thread in where}


@pytest.fixture
def engine(monkeypatch):
    fake_engine.put_in(monkeypatch)
    return VLLMBackend("m", usage=Usage(), max_pixels=32 * 24)


def test_vllm_notes_which_images_it_was_shown_otherwise_than_they_are(engine):
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    turned = Image(picture(3, "JPEG", exif=exif))
    large = Image(picture(4, size=(60, 50)))
    asked = [chat(WHOLE), chat(turned), chat(large, turned), chat(CUT)]
    *replies, failed = engine.answer(list(enumerate(asked)), [0] * 4)
    assert [reply.notes for reply in replies] == [(), (TURNED,), (SHRUNK, TURNED)]
    assert all(reply.cut for reply in replies)
    assert failed.status is Status.TOOL_ERROR
