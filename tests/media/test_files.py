"""Files are written whole, with the user's own rights, or not at all."""

import io
import os
import stat
import sys

import numpy as np
import PIL.Image
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.refusals import refuses
from vieval_plugin.media.files import remove_unfinished, write_whole
from vieval_plugin.media.png import encode
from vieval_plugin.text.errors import VievalError


@pytest.mark.parametrize("content", [b"a\xff\n", ["a", "\u00e9", "\n"]])
def test_a_file_and_its_folders_are_made_and_replaced(tmp_path, content):
    name = "\u00e9" * 127 + "x"  # as long as names may be
    path = tmp_path / "a" / "b" / name
    written = content if isinstance(content, bytes) else "".join(content).encode()
    for _ in range(2):
        write_whole(path, content)
        assert path.read_bytes() == written
        assert os.listdir(path.parent) == [name]


@pytest.mark.skipif(sys.platform == "win32", reason="no umask")
@pytest.mark.parametrize("mask", [0o022, 0o002, 0o077, 0o027])
def test_its_mode_is_what_the_users_umask_leaves(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "out.txt", ["x"])
        (tmp_path / "plain.txt").write_text("x")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {0o666 & ~mask}


ERRORS = [ValueError, VievalError, KeyboardInterrupt, SystemExit]


@pytest.mark.parametrize("error", ERRORS)
def test_pieces_that_break_off_leave_what_was_there_and_nothing_else(tmp_path, error):
    def pieces():
        yield "half"
        raise error("broken off")

    path = tmp_path / "out.txt"
    path.write_text("before")
    with pytest.raises(error):
        write_whole(path, pieces())
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.txt"]


ADVICE = "out.txt: No space left on device; free disk space or choose another --html$"
FULL = (OSError(28, "No space left on device"), VievalError, ADVICE)


@pytest.mark.parametrize(
    ("stop", "raised", "said"), [(KeyboardInterrupt, KeyboardInterrupt, ""), FULL]
)
def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch, stop, raised, said):
    def fail(*_):
        raise stop

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(raised, match=said):
        write_whole(tmp_path / "out.txt", b"x", "--html")
    assert os.listdir(tmp_path) == []


def test_where_it_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("x")
    advice = "cannot write .*out.txt: Not a directory; choose another --out"
    refuses(advice, write_whole, tmp_path / "file" / "out.txt", ["x"])
    refuses("choose another folder", write_whole, tmp_path, ["x"], "folder")
    assert os.listdir(tmp_path) == ["file"]
    assert not [name for name in os.listdir(tmp_path.parent) if name.endswith(".part")]


def test_only_unfinished_files_of_these_names_are_removed(tmp_path):
    for name in ("a.txt.0a1b2c3d.part", "b.txt.0a1b2c3d.part", "a.txt", "mine.part"):
        (tmp_path / name).write_text("x")
    remove_unfinished([tmp_path / "a.txt", tmp_path / "nowhere" / "b.txt"])
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt.0a1b2c3d.part", "mine.part"]


SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from((1, 3)))
LARGE = np.random.RandomState(0).randint(0, 256, (640, 480, 3)).astype(np.uint8)


@given(SHAPES.flatmap(lambda shape: arrays(np.uint8, shape)))
@example(LARGE)
@example(LARGE[:, ::-1])
@example(LARGE[:1].repeat(7, axis=1))
@example(LARGE[:, :1])
def test_pillow_reads_the_same_pixels(pixels):
    picture = PIL.Image.open(io.BytesIO(encode(pixels)))
    assert np.array_equal(np.asarray(picture).reshape(pixels.shape), pixels)
