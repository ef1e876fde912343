"""`vieval score cat.png --prompt "a red cat"`: images themselves, and an answer that needs no
file.
"""

import json
from shlex import split

import pytest

from tests.fake_server import FakeServer
from tests.stored_results import read_lines
from tests.tool_pictures import photograph
from vieval_plugin.cli import main

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


def test_an_answer_takes_three_lines(folder, server, capsys, monkeypatch):
    monkeypatch.setenv("VIEVAL_MODEL", "fake")
    monkeypatch.setenv("VIEVAL_BASE_URL", server.base_url)
    assert main(["score", "cat.png", "--prompt", "a red cat"]) == 0
    out, error = capsys.readouterr()
    head, sc, pq = out.splitlines()
    assert head.startswith("cat: SC 0.")
    assert head.endswith("(viescore 0shot by fake)")
    assert sc.startswith("  SC: ")
    assert pq.startswith("  PQ: ")
    assert error == ""
    assert not list(folder.glob("*.jsonl"))


def test_an_edit_is_told_by_its_source_and_instruction(folder, server, capsys):
    edit = split(
        "score cat.png dog.png --source before.png --instruction 'add a hat' --json"
    )
    command = [
        *edit,
        *split(f"--model fake --base-url {server.base_url} --out verdicts.jsonl"),
    ]
    found = main(command)
    assert found == 0
    verdicts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [
        (verdict["uid"], verdict["kind"], verdict["status"]) for verdict in verdicts
    ] == [("cat", "tie", "ok"), ("dog", "tie", "ok")]
    assert read_lines(folder / "verdicts.jsonl") == verdicts


def test_a_judge_that_needs_no_text_measures_an_image_alone(folder, capsys):
    assert main(["score", "cat.png", "--judge", "sharpness"]) == 0


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:9/1.png?token=SECRETa.SECRETb",
        "//127.0.0.1:9/1.png?token=SECRETa.png",
        "http:/127.0.0.1:9/1.png?token=SECRETa.png",
        "http:\\\\host\\1.png?token=SECRETa.png",
    ],
)
def test_what_an_address_asks_with_is_nowhere(folder, capsys, address):
    found = main(
        split(f"score {address} --prompt 'a red cat' --judge sharpness --out v.jsonl")
    )
    assert found == 1
    got = main(split(f"score {address} --prompt 'a red cat' --judge sharpness --json"))
    assert got == 1
    out, error = capsys.readouterr()
    written = [file.read_text() for file in folder.glob("v.jsonl*")]
    assert written
    assert "SECRET" not in "".join([out, error, *written])


def test_equal_broken_files_are_each_named_as_they_are_called(folder, capsys):
    for name in ("one", "two", "three"):
        (folder / f"{name}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    names = ["one.png", "two.png", "three.png"]
    found = main(
        ["score", *names, "--prompt", "a red cat", "--judge", "sharpness", "--json"]
    )
    assert found == 1
    reasons = {
        v["uid"]: v["trace"][0]["reason"]
        for v in map(json.loads, capsys.readouterr().out.splitlines())
    }
    assert all(f"{name}.png" in reason for name, reason in reasons.items()), reasons
