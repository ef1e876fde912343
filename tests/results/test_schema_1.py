"""Results of VIEval 0.1, as its commands wrote them, load: they report, show and replay as they did."""

import json
from pathlib import Path

import pytest

from vieval_plugin import config
from vieval_plugin.cli import main
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import SampleId, Status
from vieval_plugin.results import replay
from vieval_plugin.results.documents import read_record, read_response
from vieval_plugin.results.host_samples import responses_of
from vieval_plugin.results.lookup import open_results
from vieval_plugin.results.runs import load_runs

OLD = Path(__file__).with_name("schema_1")


@pytest.fixture
def options(tmp_path, monkeypatch):
    """Those of the run: schema 1 did not carry them."""
    path = tmp_path / "vieval.yaml"
    path.write_text("store: {use: false}\njudges: {cigeval: {removed: [ocr, grounding]}}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(path))


def test_runs_have_their_parts_groups_and_settings():
    runs = {run.judge: run for run in load_runs([OLD])}
    assert {judge: run.records.keys() for judge, run in runs.items()} == {
        "t2i_eval": {"tig"},
        "viescore": {"tie"},
        "vqascore": {"tig"},
        "cigeval": {"mie"},
        "ssim": {"tie"},
    }
    [record], _ = runs["vqascore"].records["tig"]
    assert (record.kind, record.group, record.provenance.settings) == ("tig", "demo_00.png", ("first_token",))
    assert record.verdict.trace[0].bounds == record.verdict.bounds["SC"]
    assert record.verdict.trace[0].scores == ()
    assert runs["ssim"].records["tie"][0][0].provenance.settings == ()


@pytest.mark.parametrize("judge", ["t2i_eval", "viescore", "vqascore", "cigeval", "ssim"])
def test_the_conversation_behind_each_is_had_again(judge, options):
    lookup = open_results([OLD])
    records = [record for record in lookup.records if record.provenance.judge == judge]
    assert len(records) == 2
    for record in records:
        found = lookup.conversation(record)
        assert [one.step for one in found] == [
            s for s in record.verdict.trace if s.path[0] != "plan" or len(s.path) == 1
        ]


def test_each_replays_to_the_verdict_it_was():
    for path in OLD.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            [response] = responses_of(json.loads(line))
            identity, verdict, provenance = read_response(response)
            recording = replay.load(OLD, provenance.judge)
            again, _ = replay.replayed(recording, identity, 0, provenance.judge, "", "again", config.Config())
            assert again == verdict


def test_a_reminder_becomes_an_attempt():
    old = {"label": "SC (reminder 1)", "status": "repaired", "scores": [7.0], "answer": "7", "reason": ""}
    provenance = {"judge": "viescore", "setting": "0shot", "aspects": ["SC", "PQ", "O"], "pack": "viescore/v1"}
    verdict = {"scores": {}, "status": "ok", "rationale": "", "trace": [old], "bounds": {}}
    identity = {"benchmark": "imagenhub", "task": "tie", "image_model": "SDEdit", "uid": "1"}
    response = json.dumps({"vieval": 1, "id": identity, "verdict": verdict, "provenance": provenance})
    found, read, by = read_response(response)
    assert found == SampleId("imagenhub", "tie", "SDEdit", "1")
    [step] = read.trace
    assert (step.path, step.attempt, step.status, step.label) == (("SC",), 1, Status.REPAIRED, "SC (reminder 1)")
    assert by.settings == ("0shot",)


@pytest.mark.parametrize(
    ("uid", "group", "place"),
    [("12#i0t1", "12", (0, 1)), ("7#1", "7", (1,)), ("3#photo.jpg", "3", ()), ("a", "a", ())],
)
def test_what_stood_around_a_hash_becomes_group_and_place(uid, group, place):
    identity = {"benchmark": "winoground", "task": "all", "image_model": "unnamed", "uid": uid}
    provenance = {"judge": "vqascore", "setting": "first_token", "aspects": ["SC"], "pack": "vqascore/v1"}
    verdict = {"scores": {}, "status": "ok", "rationale": "", "trace": [], "bounds": {}}
    response = json.dumps({"vieval": 1, "id": identity, "verdict": verdict, "provenance": provenance})
    target = json.dumps({"vieval": 1, "id": identity, "ratings": {"SC": [1.0]}, "tags": []})
    record = read_record(response, target)
    assert (record.kind, record.group, record.place) == ("tig", group, place)


def test_a_later_version_is_one_line(tmp_path, capsys):
    row = json.loads(next(OLD.glob("*ssim*")).read_text().splitlines()[0])
    [response] = responses_of(row)
    row["filtered_resps"] = json.dumps({**json.loads(response), "vieval": 3})
    (tmp_path / "x_samples_y.jsonl").write_text(json.dumps(row))
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "report")]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "schema 3, this one reads up to 2" in line
    assert "pip install --upgrade vieval" in line
    (tmp_path / "own.jsonl").write_text(json.dumps({"vieval": 3, "provenance": {}}))
    with pytest.raises(VievalError, match="line 1 is no verdict of vieval score .*schema 3"):
        open_results([tmp_path / "own.jsonl"])
