"""A judge in one file as a dataset of VLMEvalKit: asked in its own words, reported, and another judge once it is edited."""

import json

import pytest

from tests.fake_server import FakeServer
from tests.judges.test_in_file import LEGIBILITY
from tests.vlmevalkit.conftest import TIE
from vieval_plugin.cli import main
from vieval_plugin.hosts.vlmevalkit import names
from vieval_plugin.judges import registry

pytestmark = pytest.mark.vlmevalkit

DATASET = "vieval_demo_legibility_tie"


def forget():
    """What a process reads once."""
    registry.judges.cache_clear()
    names.datasets.cache_clear()


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The judge's file, in the folder that a process begins with."""
    path = tmp_path / "judges" / "legibility.yaml"
    path.parent.mkdir()
    path.write_text(LEGIBILITY)
    monkeypatch.setenv("VIEVAL_JUDGES", str(path.parent))
    forget()
    yield path
    monkeypatch.undo()
    forget()


def scored(asked, score):
    """A reply with this score, which notes the questions it answers."""

    def reply(request):
        asked.append(json.dumps(request["messages"]))
        return json.dumps({"score": [score], "reasoning": "fine"})

    return reply


def test_it_is_asked_in_its_words_and_reported_beside_viescore(file, run, ours, tmp_path):
    asked = []
    with FakeServer(reply=scored(asked, 7)) as server:
        made = run(*ours(server, DATASET))
    assert made.code == 0
    assert (made.table["status_ok"], made.table["PQ_count"]) == (12, 12)
    assert {verdict["scores"]["PQ"] for verdict in made.verdicts} == {0.7}
    asked = [text for text in asked if "Say hello" not in text]  # which finds out that the server is there
    assert len(asked) == 12
    assert all("Rate from 0 to 10 how legible the text in the picture is." in text for text in asked)
    with FakeServer() as server:
        run(*ours(server, TIE), out="viescore")
    folders = [str(tmp_path / name) for name in ("out", "viescore")]
    assert main(["report", *folders, "--out", str(tmp_path / "report")]) == 0
    report = (tmp_path / "report" / "report.md").read_text()
    assert "fake (Legib" in report
    assert "fake (VIEScore" in report


def test_a_model_of_the_host_answers_it(file, run, configured):
    asked = []
    with FakeServer(reply=scored(asked, 7)) as server:
        address = f"{server.base_url}/chat/completions"
        made = run(*configured("GPT4V", (DATASET,), model="gpt-4o", key="EMPTY-key", api_base=address, temperature=0))
    assert (made.code, made.table["status_ok"]) == (0, 12)
    assert {verdict["scores"]["PQ"] for verdict in made.verdicts} == {0.7}
    assert sum("how legible the text in the picture is." in text for text in asked) == 12


def test_an_edited_file_is_another_judge(file, run, ours):
    with FakeServer(reply=scored([], 7)) as server:
        first = set(run(*ours(server, DATASET)).responses)
    file.write_text(LEGIBILITY.replace("Rate from 0 to 10", "From 0 to 10, rate"))
    forget()
    asked = []
    with FakeServer(reply=scored(asked, 2)) as server:
        again = run(*ours(server, DATASET), "--reuse")
    assert sum("From 0 to 10, rate how legible" in text for text in asked) == 12
    assert {verdict["scores"]["PQ"] for verdict in again.verdicts} == {0.2}
    assert not first & set(again.responses)
