"""Test that pixels wanted by several threads are decoded once, in bounded memory."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.refusals import refuses
from tests.tool_pictures import file, photograph
from vieval_plugin import images
from vieval_plugin.backends.image_tools.image_memory import Decoded
from vieval_plugin.judges.protocol import Image

SIDE = 16
BYTES = SIDE * SIDE * 3


@pytest.fixture
def decoded(monkeypatch):
    """The images that were decoded, in order."""
    found, real = [], images.pixels
    noting = lambda image: found.append(image) or real(image)
    monkeypatch.setattr(images, "pixels", noting)
    return found


def pictures(count):
    return [file(photograph(SIDE, seed)) for seed in range(count)]


def test_threads_that_want_an_image_at_once_decode_it_once(monkeypatch):
    begun, release, times = threading.Event(), threading.Event(), []
    real = images.pixels

    def slow(image):
        times.append(image)
        begun.set()
        assert release.wait(60)
        return real(image)

    monkeypatch.setattr(images, "pixels", slow)
    [image], kept = pictures(1), Decoded(memory=2**20)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(kept.pixels, image)
        assert begun.wait(60)
        copies = [Image(bytes(image.source)) for _ in range(3)]
        others = [pool.submit(kept.pixels, copy) for copy in copies]
        release.set()
        assert all(other.result(60) is first.result(60) for other in others)
    assert len(times) == 1
    assert (first.result() == photograph(SIDE)).all()


def test_nobody_can_change_the_pixels_of_the_others():
    with pytest.raises(ValueError, match="read-only"):
        Decoded(memory=2**20).pixels(pictures(1)[0])[:] = 0


def test_the_images_used_longest_ago_go_first_when_memory_is_full(decoded):
    first, second, third = pictures(3)
    kept = Decoded(memory=2 * BYTES)
    for image in (first, second, first, third, first, second):
        kept.pixels(image)
    assert decoded == [first, second, third, second]
    assert kept._decoded_bytes == 2 * BYTES


def test_an_image_larger_than_the_memory_is_decoded_and_not_kept(decoded):
    [image] = pictures(1)
    kept = Decoded(memory=BYTES - 1)
    assert (kept.pixels(image) == kept.pixels(image)).all()
    assert (len(decoded), kept._decoded_bytes) == (2, 0)


def test_a_broken_image_is_an_error_for_each_who_asks_and_nothing_is_kept_of_it():
    kept = Decoded(memory=2**20)
    for _ in range(2):
        refuses("not an image", kept.pixels, Image(b"nothing"))
    assert (kept._futures, kept._decoded_bytes) == ({}, 0)
    kept.look(Image(b"nothing"))  # of which it is said where it is asked about


def test_a_look_at_an_image_is_the_only_time_that_it_is_decoded(monkeypatch):
    times, real = [], images.load_strictly
    noting = lambda *given: times.append(1) or real(*given)
    monkeypatch.setattr(images, "load_strictly", noting)
    image, kept = file(photograph(SIDE, 77), "JPEG"), Decoded(memory=2**20)
    kept.look(image)
    images.examine(image)
    kept.pixels(image)
    kept.look(image)
    # known to be sound, so that nothing is decoded in advance
    Decoded(memory=2**20).look(image)
    assert len(times) == 1
