"""Images of tools in memory: decoded once, within a bound, and beyond it in files."""

import gc
import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.refusals import refuses
from tests.tool_pictures import file, photograph
from vieval_plugin import images
from vieval_plugin.backends.image_tools.image_memory import Decoded, Spill
from vieval_plugin.judges.protocol import Image


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_what_fits_stays_in_memory_and_the_rest_goes_into_files_byte_for_byte(folder):
    spill = Spill(memory=250)
    made = [Image(bytes([number]) * 100) for number in range(5)]
    kept = [spill.keep(image) for image in made]
    assert all(one is image for one, image in zip(kept[:2], made[:2], strict=True))
    held = [one.source.read_bytes() for one in kept[2:]]
    assert held == [image.source for image in made[2:]]
    assert files(folder) == sorted(one.source for one in kept[2:])


def test_a_file_goes_with_its_image_and_memory_comes_back_with_others(folder):
    spill = Spill(memory=100)
    inside, outside = (spill.keep(Image(bytes([number]) * 100)) for number in range(2))
    [file] = files(folder)
    held = [outside]
    del outside
    assert file.exists()
    del held
    gc.collect()
    assert not file.exists()
    assert isinstance(spill.keep(Image(b"2" * 100)).source, Path)
    del inside
    gc.collect()
    assert isinstance(spill.keep(Image(b"3" * 100)).source, bytes)


def test_nothing_is_left_of_a_run_that_ended_or_kept_all_in_memory(folder):
    large = Spill(memory=10)
    large.keep(Image(b"1"))
    assert list(folder.iterdir()) == []
    large.close()
    spill = Spill(memory=0)
    kept = spill.keep(Image(b"1"))
    spill.close()
    assert list(folder.iterdir()) == []
    # a tool may end after its run
    assert isinstance(spill.keep(Image(b"2")).source, bytes)
    assert list(folder.iterdir()) == []
    del kept


def test_images_stay_where_no_file_can_be_written(folder, monkeypatch, capsys):
    def full(path, data):
        with path.open("wb") as file:
            file.write(data[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    spill = Spill(memory=0)
    made = [Image(bytes([number]) * 10) for number in range(3)]
    assert [spill.keep(image) for image in made] == made
    assert files(folder) == []
    [line] = capsys.readouterr().err.splitlines()
    assert "beyond 0 MiB stay in memory" in line
    assert str(folder) in line
    assert "No space left on device" in line


def test_threads_keep_to_the_bound(folder):
    spill, kept = Spill(memory=1000), []

    def work(number):
        made = [Image(bytes([number, turn]) * 25) for turn in range(20)]
        kept.extend(map(spill.keep, made))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    sources = [image.source for image in kept]
    inside = [source for source in sources if isinstance(source, bytes)]
    assert sum(map(len, inside)) == 1000
    outside = [source.read_bytes() for source in sources if source not in inside]
    assert len({*inside, *outside}) == 160


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_that_is_forked_leaves_the_files_alone():
    spill = Spill(0)
    held = spill.keep(Image(b"x" * 10))
    child = os.fork()
    if not child:
        del held
        spill.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert held.source.read_bytes() == b"x" * 10
    spill.close()
    assert not held.source.exists()


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
    # nobody can change the pixels of the others
    with pytest.raises(ValueError, match="read-only"):
        first.result()[:] = 0


def test_the_images_used_longest_ago_go_first_when_memory_is_full(decoded):
    first, second, third = pictures(3)
    kept = Decoded(memory=2 * BYTES)
    for image in (first, second, first, third, first, second):
        kept.pixels(image)
    assert decoded == [first, second, third, second]
    assert kept._decoded_bytes == 2 * BYTES
    small = Decoded(memory=BYTES - 1)
    assert (small.pixels(first) == small.pixels(first)).all()
    assert (len(decoded), small._decoded_bytes) == (6, 0)


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
