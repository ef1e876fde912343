"""Archives from strangers: a refused one leaves nothing behind."""

import gzip
import io
import os
import re
import tarfile

import pytest

from tests.extras import unpacking
from tests.refusals import refusal
from vieval_plugin.readers.unpack import Limits, unpack

pytestmark = unpacking
MIB = 2**20
OUTSIDE, IRREGULAR = "is outside the folder", "'1.png' is not a regular file"
LONG_HEADER = "has a header larger than 1 MiB"
MANY = (9, Limits(members=8), "more than 8 members")
FULL = {
    "bytes in all": ({"content": bytes(MIB)}, 4, Limits(total=3 * MIB), "more than 3"),
    "files": ({"content": b""}, *MANY),
    "folders": ({"kind": tarfile.DIRTYPE}, *MANY),
}
FIELDS = ("made", "number", "limits", "message")


def member(name, content=b"x", kind=tarfile.REGTYPE, link="", size=None, pax=None):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, 0o4777
    length = len(content) if size is None else size
    info.size = length if kind == tarfile.REGTYPE else 0
    info.pax_headers = pax or {}
    return info, content


def archive(path, *members):
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return path


def everything(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def refused(path, *limits):
    """What is said of an archive that is not unpacked, which leaves nothing behind."""
    before = sorted(os.listdir(path.parent))
    line = refusal(unpack, path, path.parent / "images", *limits)
    assert sorted(os.listdir(path.parent)) == before
    return line


def test_files_are_unpacked_below_the_target_whose_own_name_may_lead(tmp_path):
    files = {"images/a/1.png": b"one", "./images/2.png": b"two", "b/images/3.png": b"x"}
    members = [member(name, content) for name, content in files.items()]
    folder = member("images", kind=tarfile.DIRTYPE)
    path = archive(tmp_path / "i.tar.gz", folder, *members)
    assert unpack(path, tmp_path / "images") == 3
    expected = {"a/1.png": b"one", "2.png": b"two", "b/images/3.png": b"x"}
    assert everything(tmp_path / "images") == expected
    assert sorted(os.listdir(tmp_path)) == ["i.tar.gz", "images"]
    assert not (tmp_path / "images" / "2.png").stat().st_mode & 0o4111


def test_what_is_there_beside_is_kept_and_what_a_killed_run_left_is_removed(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.png").write_bytes(b"mine")
    (tmp_path / "images.0a1b.part").mkdir()
    unpack(archive(tmp_path / "i.tar.gz", member("1.png", b"one")), tmp_path / "images")
    assert everything(tmp_path / "images") == {"1.png": b"one", "mine.png": b"mine"}
    assert sorted(os.listdir(tmp_path)) == ["i.tar.gz", "images"]


def of_kind(kind, **link):
    return member("1.png", kind=kind, **link), IRREGULAR


HOSTILE = {
    "up": (member("../1.png"), f"'../1.png' {OUTSIDE}"),
    "up inside": (member("images/../../1.png"), OUTSIDE),
    "absolute": (member("/elsewhere/1.png"), f"'/elsewhere/1.png' {OUTSIDE}"),
    "drive": (member("C:1.png"), OUTSIDE),
    "backslash": (member("..\\1.png"), OUTSIDE),
    "folder up": (member("../d", kind=tarfile.DIRTYPE), OUTSIDE),
    "symlink": of_kind(tarfile.SYMTYPE, link="/etc/passwd"),
    "hard link": of_kind(tarfile.LNKTYPE, link="ok.png"),
    "device": of_kind(tarfile.CHRTYPE),
    "pipe": of_kind(tarfile.FIFOTYPE),
    "the folder itself": (member("images"), "'images' has no file name"),
    "file and folder": (member("ok.png/1.png"), "'ok.png/1.png' is both a file and a"),
    "large file": (member("1.png", bytes(3 * MIB)), "'1.png' is larger than 2 MiB"),
    "long header": (member("1.png", pax={"comment": "x" * 2 * MIB}), LONG_HEADER),
    "line break": (member("../\n1.png"), r"'../\n1.png' " + OUTSIDE),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_member_refuses_the_whole_archive_in_one_line(tmp_path, name):
    bad, message = HOSTILE[name]
    (tmp_path / "data").mkdir()
    path = archive(tmp_path / "data" / "i.tar.gz", member("ok.png"), bad)
    assert message in refused(path, Limits(file=2 * MIB))
    assert everything(tmp_path) == {"data/i.tar.gz": path.read_bytes()}


@pytest.mark.parametrize(FIELDS, FULL.values(), ids=FULL)
def test_a_full_archive_is_refused(tmp_path, made, number, limits, message):
    members = [member(f"{n}.png", **made) for n in range(number)]
    path = archive(tmp_path / "i.tar.gz", *members)
    assert f"contains {message}" in refused(path, limits)


def test_a_bomb_is_refused_by_its_declared_size_before_it_is_read(tmp_path):
    info, _ = member("1.png", size=2**40)
    path = tmp_path / "i.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf() + bytes(20 * MIB)))
    assert "'1.png' is larger than 64 MiB" in refused(path)


def sparse(name, head, size):
    """A member as GNU tar -S writes it: a map of its holes, and its content."""
    described = {"major": "1", "minor": "0", "name": name, "realsize": str(size)}
    pax = {f"GNU.sparse.{key}": value for key, value in described.items()}
    return member("GNUSparseFile/x", head, pax=pax)


def test_a_sparse_member_is_refused(tmp_path):
    end = b"end"
    head = b"1\n%d\n%d\n" % (2**40 - len(end), len(end))
    padding = bytes(-len(head) % tarfile.BLOCKSIZE)
    file = sparse("a/1.png", head + padding + end, 2**40)
    line = refused(archive(tmp_path / "i.tar.gz", file))
    assert "'a/1.png' is not a regular file" in line


def test_a_map_of_holes_that_would_fill_the_memory_is_refused(tmp_path):
    count = 3 * MIB
    head = b"%d\n" % count + b"0\n" * 2 * count
    path = archive(tmp_path / "i.tar.gz", sparse("1.png", head, 5))
    assert "has a header larger than 1 MiB" in refused(path)


@pytest.mark.parametrize("size", [100, 10**6 // 2, -1])
def test_a_cut_archive_leaves_nothing(tmp_path, size):
    whole = archive(tmp_path / "whole", member("1.png", os.urandom(MIB))).read_bytes()
    path = tmp_path / "i.tar.gz"
    path.write_bytes(whole[:size])
    assert "is not a complete .tar.gz file" in refused(path)


def test_what_is_no_archive_is_told(tmp_path):
    (tmp_path / "i.tar.gz").write_text("<html>log in</html>")
    line = refused(tmp_path / "i.tar.gz")
    assert re.search(r"i.tar.gz: is not a complete .tar.gz file .*; download it", line)
    line = refused(tmp_path / "absent.tar.gz")
    assert re.search("cannot read .*absent.tar.gz", line)


def test_an_archive_of_zeros_ends_long_before_the_bound_of_all_bytes(tmp_path):
    zeros = [member(f"{n}.png", bytes(MIB)) for n in range(40)]
    path = archive(tmp_path / "i.tar.gz", *zeros)
    assert "contains more than" in refused(path, Limits(file=2 * MIB))
