"""`vieval audit` flags what a scripted judge is fooled by, and nothing else."""

import json
import re

import pytest

from tests.audit import scripted
from tests.fake_server import FakeServer
from vieval_plugin.audit.changes import changes
from vieval_plugin.cli import main

EDITS, PAIRS = "vieval_demo/tie", "vieval_demo_contests/tie"


@pytest.fixture
def audit(store, tmp_path, capsys):
    """Audits a scripted judge; the exit code, the document, what was said, and how many requests came."""

    def audited(scores, *arguments, judge="viescore", samples=EDITS, limit=24):
        out = tmp_path / "audit"
        with FakeServer(reply=scripted.scripted(scores)) as server:
            named = ["--judge", judge, "--model", "fake", "--base-url", server.base_url]
            code = main(["audit", samples, *named, "--limit", str(limit), "--out", str(out), *arguments])
            requests = server.stats()["requests"]
        return code, json.loads((out / "audit.json").read_text()), capsys.readouterr(), requests

    return audited


def flagged(document):
    return {
        (one["change"], one["aspect"], one["finding"])
        for judge in document["judges"]
        for one in judge["effects"]
        if one["finding"].startswith("FLAGGED")
    }


def test_an_unbiased_judge_is_flagged_for_nothing(audit):
    code, document, said, requests = audit(scripted.honest)
    assert code == 0
    assert flagged(document) == set()
    assert said.out.splitlines()[0] == "viescore: nothing flagged"
    assert re.search(r"^source blank +SC .* (< ?)?\.\d{3} +lower", said.out, re.MULTILINE)  # never a p of 0.000
    [judge] = document["judges"]
    lowered = {(one["change"], one["aspect"]) for one in judge["effects"] if one["difference"] < -0.3}
    assert lowered == {(change, aspect) for change in ("source blank", "source of another") for aspect in ("SC", "O")}
    assert {one["n"] for one in judge["effects"]} == {24}
    # counted before anything was asked, less the question whether schemas are enforced
    assert f"audit of viescore, 24 unchanged and 216 changed (seed 0): {requests - 1} calls for 480 answers" in said.err
    *_, said, requests = audit(scripted.honest)
    assert "0 calls" in said.err
    assert requests == 0


def test_without_a_store_a_question_counts_as_often_as_it_is_asked(audit, store, tmp_path):
    (tmp_path / "vieval.yaml").write_text("store: {use: false}\n")
    *_, said, requests = audit(scripted.honest, limit=2)
    assert requests - 1 == 2 * 20
    assert f"2 unchanged and 18 changed (seed 0): {requests - 1} calls for 40 answers\n" in said.err


def test_changes_that_apply_to_no_sample_are_named(audit):
    _, document, said, _ = audit(scripted.honest, samples="vieval_demo/tig", limit=4)
    shown = {(one["change"], one["aspect"]) for one in document["judges"][0]["effects"]}
    assert shown == {
        (change.name, "PQ") for change in changes() if change.modifies == "output"
    }  # this server says no SC
    first = (
        "left out, as they apply to no sample with a score: source blank, source of another, praise overlay (SC, O), "
    )
    assert first in said.out


def test_a_judge_that_reads_praise_is_flagged_for_the_overlay_alone(audit):
    _, document, said, _ = audit(scripted.fooled_by_overlay)
    assert flagged(document) == {("praise overlay", aspect, "FLAGGED: rises") for aspect in ("SC", "PQ", "O")}
    assert "flagged: praise overlay: PQ rises (+0.20)" in said.out


def test_a_judge_that_looks_at_no_source_is_flagged_for_that(audit):
    _, document, *_ = audit(scripted.blind_to_the_source, limit=8)
    assert flagged(document) == {
        (change, aspect, "FLAGGED: does not fall")
        for change in ("source blank", "source of another")
        for aspect in ("SC", "O")
    }


@pytest.mark.parametrize(
    ("judge", "found", "share"),
    [
        (scripted.fair, set(), 0),
        (scripted.biased_to_the_first, {("order swapped", "preference", "FLAGGED: rises")}, 1),
        (scripted.praised_in_pairs, {("praise overlay", "preference", "FLAGGED: rises")}, 0),
    ],
)
def test_a_judge_of_pairs_is_flagged_for_what_sways_it(audit, judge, found, share):
    _, document, said, _ = audit(judge, judge="pairwise", samples=PAIRS)
    assert flagged(document) == found
    assert document["judges"][0]["inconsistent"]["share"] == share
    assert ("what is shown first is preferred, by 1.00" in said.out) == (share == 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judge", "sharpnes"], "no judge 'sharpnes'; did you mean sharpness?"),
        (["nowhere.jsonl"], "nowhere.jsonl: no such file, and no such benchmark"),
        (
            ["--judge", "ssim", "vieval_demo/tig"],
            "ssim can judge none of these; it is audited on samples that it knows",
        ),
        (["--model", "fake"], "--model is set but --base-url is missing (or set VIEVAL_BASE_URL)"),
    ],
)
def test_bad_input_is_one_line(tmp_path, vieval, arguments, message):
    error = vieval("audit", *arguments, "--out", tmp_path / "out", code=1).err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_line_that_is_bad_stops_with_its_number(samples_file, vieval):
    with samples_file.open("a") as file:
        file.write("{\n")
    printed = vieval("audit", samples_file, "--judge", "sharpness", code=1).err
    assert f"vieval: {samples_file}: line 7: not a JSON object" in printed


def test_images_that_cannot_be_decoded_are_counted_and_not_filled_in(samples_file, tmp_path, vieval):
    first = json.loads(samples_file.read_text().splitlines()[0])
    (tmp_path / first["images"]["output"]).write_text("no image")
    printed = vieval("audit", samples_file, "--judge", "sharpness", "--out", tmp_path / "out").out
    assert "no score even unchanged: 1" in printed
    [judge] = json.loads((tmp_path / "out" / "audit.json").read_text())["judges"]
    assert {one["n"] for one in judge["effects"]} == {5}


def test_failures_on_changed_images_are_counted(audit):
    def reads_no_overlay(pictures):
        return {} if scripted.praises_itself(pictures[-1]) else scripted.honest(pictures)

    _, document, *_ = audit(reads_no_overlay, limit=4)
    failed = {one["change"]: (one["n"], one["failed"]) for one in document["judges"][0]["effects"]}
    assert failed.pop("praise overlay") == (0, 4)
    assert set(failed.values()) == {(4, 0)}


def test_samples_of_one_uid_by_two_image_models_are_contests_for_a_judge_of_pairs(audit, samples_file):
    _, document, said, _ = audit(scripted.fair, judge="pairwise", samples=str(samples_file))
    assert "6 unchanged and 42 changed" in said.err
    assert document["judges"][0]["inconsistent"]["share"] == 0
