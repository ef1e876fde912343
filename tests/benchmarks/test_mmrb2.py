"""Multimodal RewardBench 2: real votes and annotations, what is wrong with files, and what is
fetched.
"""

from collections import Counter
from itertools import permutations

import pytest

from tests.benchmarks.hub import hub_with, stored
from tests.benchmarks.hub import mmrb2_row as hub_row
from vieval_plugin.benchmarks import mmrb2
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.judges import viescore
from vieval_plugin.judges.spec import missing_inputs_reason

BENCHMARK = mmrb2.BENCHMARK


@pytest.mark.parametrize(
    ("part", "first", "agreeing"), [("t2i", 532, 85.9), ("edit", 555, 86.9)]
)
def test_votes_are_those_published(shared_data, part, first, agreeing):
    contests = BENCHMARK.load(shared_data, part)
    votes = Counter(contest.votes.vote for contest in contests)
    assert votes == {"first": first, "second": 1000 - first}
    # what counts is what most annotators say, and two of them say the same in so many of their
    # pairs
    for contest in contests:
        assert len(contest.votes.annotators) == 3
        found = Counter(contest.votes.annotators).most_common(1)[0][0]
        assert found == contest.votes.vote
    pairs = [
        one == other
        for contest in contests
        for one, other in permutations(contest.votes.annotators, 2)
    ]
    assert round(100 * sum(pairs) / len(pairs), 1) == agreeing


def test_outputs_of_one_model_are_told_apart_and_prompts_are_groups(shared_data):
    for part in BENCHMARK.parts:
        contests = BENCHMARK.load(shared_data, part)
        models = [{s.id.image_model for s in c.candidates} for c in contests]
        assert any(len(names) == 1 for names in models)
        assert len({s.id for c in contests for s in c.candidates}) == 2000
        assert 700 < len({contest.group for contest in contests}) < 800
        assert all(contest.group.startswith(contest.tags[0]) for contest in contests)
    # the same number stands for another prompt in another category
    groups = [contest.group for contest in BENCHMARK.load(shared_data, "t2i")]
    assert "oneigbench/Text_Rendering/124" in groups


@pytest.fixture
def hub(monkeypatch):
    rows, _ = hub_with(monkeypatch, "rl-research/multimodal-rewardbench-2", "test")
    return rows


def prepare(root, part):
    return BENCHMARK.prepare(root, Preparing([part]))


def test_preparing_writes_edits_and_their_sources(tmp_path, hub):
    hub["edit"] = [
        hub_row("x", "<image_0> Add a hat", ["grey"]),
        hub_row("y", "Put <image_0> on <image_1>", ["grey", "white"], chosen="B"),
    ]
    assert prepare(tmp_path, "edit").complete
    one, several = BENCHMARK.load(tmp_path, "edit")
    assert one.id.uid == "x"
    assert one.votes.vote == "first"
    assert one.votes.annotators == ("first", "second", "first")
    assert one.candidates[0].texts == {"instruction": "Add a hat"}
    text = one.candidates[0].images["source"].source.read_bytes()
    assert text == stored("grey")["bytes"]
    text = one.candidates[1].images["output"].source.read_bytes()
    assert text == stored("blue")["bytes"]
    assert one.group == "emu-edit/7"
    assert one.tags == ("emu-edit",)
    assert several.votes.vote == "second"
    assert missing_inputs_reason(viescore.SPEC, one) == ""
    # an edit of several images is not judged by one of them
    found = missing_inputs_reason(viescore.SPEC, several)
    assert found == "candidate 1: the sample has no source image"
    assert several.candidates[0].texts["instruction"] == "Put <image_0> on <image_1>"


def test_preparing_writes_images_of_prompts(tmp_path, hub):
    hub["t2i"] = [hub_row("x", "a cat", [])]
    assert prepare(tmp_path, "t2i").complete
    [contest] = BENCHMARK.load(tmp_path, "t2i")
    assert (contest.kind, contest.candidates[0].texts) == ("tig", {"prompt": "a cat"})
    assert missing_inputs_reason(viescore.SPEC, contest) == ""


def test_rows_of_another_form_are_one_line(tmp_path, hub):
    hub["t2i"] = [hub_row("x", "a cat", [], human_annotations="[9, 1, 1]")]
    report = prepare(tmp_path, "t2i")
    assert not report.complete
    assert "row 0: annotation 1 must be a rating from 1 to 6, got 9" in report.lines[1]
