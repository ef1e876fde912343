"""`vieval prepare published_verdicts` from a local site: whole, resumed, and changed."""

import hashlib
from shlex import split

import pytest

from tests.local_site import answering
from vieval_plugin.readers import download
from vieval_plugin.results.published import fetching, files
from vieval_plugin.results.published.files import PublishedFile

REPOSITORY, COMMIT = "TIGER-AI-Lab/VIEScore", "1a2d1786f0d8def1736d38cb6f57a73410dd7d71"
NAMES = [f"_answers/results_mine/ImagenHub {n}/SC.json" for n in range(1, 13)]
BODIES = {name: b"x" * n for n, name in enumerate(NAMES, start=1)}
DIGESTS = [hashlib.sha256(body).hexdigest() for body in BODIES.values()]
LISTED = tuple(
    PublishedFile(REPOSITORY, COMMIT, path, f"viescore_logs{path[8:]}", size, digest)
    for size, (path, digest) in enumerate(zip(NAMES, DIGESTS, strict=True), start=1)
)
PREPARE = "prepare published_verdicts --part imagenhub"
IMAGENHUB = "published_verdicts/imagenhub"


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(fetching, "published_files", lambda: LISTED)
    monkeypatch.setattr(download, "FIRST_WAIT", 0.01)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def site():
    """Serves the files by their address, `spoilt` ones changed and `gone` ones not at all."""
    asked, spoilt, gone = [], set(), set()

    def answer(path, body, headers):
        asked.append(path)
        name = path.removeprefix(f"/{REPOSITORY}/{COMMIT}/").replace("%20", " ")
        if name in gone or name not in BODIES:
            return 404, {}, b""
        return 200, {}, b"y" * len(BODIES[name]) if name in spoilt else BODIES[name]

    with answering(answer) as host:
        yield f"http://{host}", asked, spoilt, gone


def fetched(root):
    files = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


@pytest.fixture
def prepare(vieval, tmp_path):
    """The lines of the command with this mirror, less the first."""

    def run(host, code=0):
        command = split(f"{PREPARE} --root {tmp_path} --mirror logs={host}")
        return vieval(*command, code=code).out.splitlines()[1:]

    return run


def test_all_files_come_once_from_their_commit(site, prepare, tmp_path):
    host, asked, *_ = site
    for now in (12, 0):
        expected = [f"{IMAGENHUB}: complete, 12 files ({now} fetched now)"]
        assert prepare(host) == expected
        assert len(asked) == 12
    found = fetched(tmp_path / files.NAME)
    assert found == {file.place: BODIES[file.path] for file in LISTED}


def test_interrupted_and_changed_files_are_fetched(site, prepare, tmp_path):
    host, asked, _, gone = site
    gone.update(NAMES[:5])
    [line] = prepare(host, code=1)
    assert line.startswith(f"{IMAGENHUB}: 5 of 12 files missing (first: ")
    gone.clear(), asked.clear()
    (tmp_path / files.NAME / LISTED[11].place).write_bytes(b"changed")
    assert prepare(host) == [f"{IMAGENHUB}: complete, 12 files (6 fetched now)"]
    assert len(asked) == 6


def test_one_line_has_all_that_is_missing_whatever_the_reasons(site, prepare, tmp_path):
    host, _, spoilt, gone = site
    gone.update(NAMES[:3])
    spoilt.add(NAMES[11])
    [line] = prepare(host, code=1)
    reasons = "404 not found: 3; not the file from "
    assert line.startswith(f"{IMAGENHUB}: 4 of 12 files missing ({reasons}")
    assert len(fetched(tmp_path / files.NAME)) == 8
    [line] = prepare("http://127.0.0.1:9", code=1)
    assert line.startswith(f"{IMAGENHUB}: 4 of 12 files missing (first: ")


def test_without_a_network_two_lines_say_what_to_do(prepare):
    why, what = prepare("http://127.0.0.1:9", code=1)
    said = "published_verdicts: cannot be downloaded on this machine: 127.0.0.1:9 does"
    assert why.startswith(said)
    said = "on a machine with network access, run `vieval prepare published_verdicts "
    assert what.startswith(f"{said}--root FOLDER`")


@pytest.mark.parametrize("mirror", ["museum=http://127.0.0.1:9", "logs", "logs=", "="])
def test_a_mirror_is_of_a_source(vieval, mirror):
    err = vieval("prepare", "published_verdicts", "--mirror", mirror, code=1).err
    assert repr(mirror.partition("=")[0]) in err
    assert "known sources: logs" in err
