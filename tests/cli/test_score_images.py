"""`vieval score cat.png --prompt "a red cat"`: images themselves, without a file."""

import json

import pytest

from tests.fake_server import FakeServer, named
from tests.stored_results import read_lines
from tests.tool_pictures import photograph

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')


@pytest.fixture
def folder(tmp_path, monkeypatch):
    import PIL.Image

    for number, name in enumerate(("cat", "dog", "before")):
        PIL.Image.fromarray(photograph(32, number)).save(tmp_path / f"{name}.png")
    for name in ("VIEVAL_MODEL", "VIEVAL_BASE_URL", "VIEVAL_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def server():
    with FakeServer() as running:
        yield running


def test_an_answer_takes_three_lines(folder, server, vieval, monkeypatch):
    monkeypatch.setenv("VIEVAL_MODEL", "fake")
    monkeypatch.setenv("VIEVAL_BASE_URL", server.base_url)
    said = vieval("score cat.png --prompt 'a red cat'")
    head, sc, pq = said.out.splitlines()
    assert head.startswith("cat: SC 0.")
    assert head.endswith("(viescore 0shot by fake)")
    assert sc.startswith("  SC: ")
    assert pq.startswith("  PQ: ")
    assert said.err == ""
    assert not list(folder.glob("*.jsonl"))


def test_an_edit_is_told_by_its_source_and_instruction(folder, server, vieval):
    edit = "score cat.png dog.png --source before.png --instruction 'add a hat' --json"
    said = vieval(edit, *named(server), "--out", "verdicts.jsonl").out
    verdicts = [json.loads(line) for line in said.splitlines()]
    fields = ("uid", "kind", "status")
    found = [tuple(verdict[name] for name in fields) for verdict in verdicts]
    assert found == [("cat", "tie", "ok"), ("dog", "tie", "ok")]
    assert read_lines(folder / "verdicts.jsonl") == verdicts


def test_a_judge_that_needs_no_text_measures_an_image_alone(folder, vieval):
    vieval("score cat.png --judge sharpness")


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:9/1.png?token=SECRETa.SECRETb",
        "//127.0.0.1:9/1.png?token=SECRETa.png",
        "http:/127.0.0.1:9/1.png?token=SECRETa.png",
        "http:\\\\host\\1.png?token=SECRETa.png",
    ],
)
def test_what_an_address_asks_with_is_nowhere(folder, vieval, address):
    scored = f"score {address} --prompt 'a red cat' --judge sharpness"
    said = [*vieval(f"{scored} --out v.jsonl", code=1)]
    said += vieval(f"{scored} --json", code=1)
    written = [file.read_text() for file in folder.glob("v.jsonl*")]
    assert written
    assert "SECRET" not in "".join([*said, *written])


def test_equal_broken_files_are_each_named_as_they_are_called(folder, vieval):
    for name in ("one", "two", "three"):
        (folder / f"{name}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    scored = "score one.png two.png three.png --prompt 'a red cat' --judge sharpness"
    said = vieval(scored, "--json", code=1).out
    for verdict in map(json.loads, said.splitlines()):
        assert f"{verdict['uid']}.png" in verdict["trace"][0]["reason"]
