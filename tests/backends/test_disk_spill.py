"""Images of tools beyond a bound of memory lie in files, exactly as long as somebody holds them."""

import gc
import os
import tempfile
import threading
from pathlib import Path

import pytest

from vieval_plugin.backends.image_tools.image_memory import Spill
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
    assert [one is image for one, image in zip(kept, made, strict=True)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [one.source.read_bytes() for one in kept[2:]] == [
        image.source for image in made[2:]
    ]
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


def test_nothing_is_left_of_a_run_that_ended(folder):
    spill = Spill(memory=0)
    kept = spill.keep(Image(b"1"))
    spill.close()
    assert list(folder.iterdir()) == []
    assert isinstance(spill.keep(Image(b"2")).source, bytes), (
        "a tool may end after its run"
    )
    assert list(folder.iterdir()) == []
    del kept


def test_without_anything_to_put_there_no_folder_is_made(folder):
    spill = Spill(memory=10)
    spill.keep(Image(b"1"))
    assert list(folder.iterdir()) == []
    spill.close()


def test_where_no_file_can_be_written_images_stay_in_memory_and_one_line_says_so(
    folder, monkeypatch, capsys
):
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
        for turn in range(20):
            kept.append(spill.keep(Image(bytes([number, turn]) * 25)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (
        sum(len(image.source) for image in kept if isinstance(image.source, bytes))
        == 1000
    )
    read = [
        image.source if isinstance(image.source, bytes) else image.source.read_bytes()
        for image in kept
    ]
    assert len(set(read)) == 160


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
