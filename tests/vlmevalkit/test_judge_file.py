"""A judge in one file as a dataset of VLMEvalKit, reported beside another."""

import json

import pytest

from tests.fake_server import FakeServer
from tests.judge_files import LEGIBILITY
from tests.vlmevalkit.conftest import TIE
from vieval_plugin.hosts.vlmevalkit import names
from vieval_plugin.judges import registry

pytestmark = pytest.mark.vlmevalkit


@pytest.fixture
def judges(tmp_path, monkeypatch):
    """The folder of judges that a process begins with."""
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "legibility.yaml").write_text(LEGIBILITY)
    monkeypatch.setenv("VIEVAL_JUDGES", str(tmp_path / "judges"))
    for cached in (read_once := (registry.judges, names.datasets)):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in read_once:
        cached.cache_clear()


def test_it_is_asked_and_reported(judges, run, ours, tmp_path, vieval):
    asked = []

    def reply(request):
        asked.append(json.dumps(request["messages"]))
        return '{"score": [7], "reasoning": "fine"}'

    with FakeServer(reply=reply) as server:
        made = run(*ours(server, "vieval_demo_legibility_tie"))
    assert made.code == 0
    assert (made.table["status_ok"], made.table["PQ_count"]) == (12, 12)
    assert {verdict["scores"]["PQ"] for verdict in made.verdicts} == {0.7}
    # less what finds out that the server is there
    asked = [text for text in asked if "Say hello" not in text]
    assert len(asked) == 12
    wording = "Rate from 0 to 10 how legible the text in the picture is."
    assert all(wording in text for text in asked)
    with FakeServer() as server:
        run(*ours(server, TIE), out="viescore")
    folders = (tmp_path / "out", tmp_path / "viescore")
    vieval("report", *folders, "--out", tmp_path / "report")
    report = (tmp_path / "report" / "report.md").read_text()
    for judge in ("legibility", "fake"):
        assert f"{judge}: undefined for every image model" in report
