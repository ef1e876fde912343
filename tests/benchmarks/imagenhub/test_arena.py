"""Votes of an arena on ImagenHub's edits: the published numbers from the raw files, how votes
are matched, and bad files.
"""

from collections import Counter
from shlex import split

import pytest

from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.benchmarks.imagenhub import arena
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.records import Run, response_json, target_json
from vieval_plugin.results import replay
from vieval_plugin.results.documents import read_record
from vieval_plugin.stats.options import StatisticsOptions

BENCHMARK = arena.BENCHMARK
LOG = "viescore_logs/results_gpt4v_0shot"


@pytest.fixture(scope="module")
def real(shared_data, tmp_path_factory):
    """A data folder with the public files: votes, ratings, and logs for the instructions."""
    root = tmp_path_factory.mktemp("arena")
    (root / arena.NAME).mkdir()
    (root / "imagenhub").symlink_to(shared_data / "imagenhub")
    path = shared_data / "editreward" / arena.VOTES
    (root / arena.NAME / arena.VOTES).symlink_to(path)
    (root / arena.NAME / "logs").symlink_to(shared_data / LOG)
    return root


def replayed(contests, logs, label="GPT-4v"):
    """A run as it is read again from what a host keeps."""
    recording = replay.load(logs, "viescore")
    spec = judge_registry.judge("viescore")
    records = []
    for contest in contests:
        verdict, _ = recording.verdict(contest)
        source = replay.Provenance("viescore", ("0shot",), spec.aspects, label)
        response = response_json(contest.id, verdict, source)
        records.append((read_record(response, target_json(contest)),))
    return Run(label, arena.NAME, "viescore", spec.aspects, {"tie": records})


@pytest.fixture(scope="module")
def tables(real, shared_data):
    run = replayed(BENCHMARK.load(real, "tie"), shared_data / LOG)
    options = StatisticsOptions(draws=50)
    made = BENCHMARK.report.findings(arena.NAME, ("tie",), [run], options)
    return {one.name: one.rows for one in made.tables} | {"cells": made.cells}


def test_the_numbers_are_those_that_were_published(tables):
    """Right of all scored pairs and of the untied: people on 199, people and GPT-4v 0-shot on
    the 190 that it scored.
    """

    def row(who, pairs):
        rows = tables["ratings"]
        [found] = [one for one in rows if one[1:4] == (who, "O", pairs)]
        return found[4], found[5].split()[0], found[7].split()[0]

    assert row("people's ratings", "all pairs") == ("199", "69.85", "92.67")
    assert row("people's ratings", "pairs of GPT-4v (O)") == ("190", "70.53", "92.41")
    assert row("GPT-4v", "its own pairs") == ("190", "57.37", "71.24")


def test_editors_are_ranked_by_votes_beside_ratings_and_the_judge(tables):
    rows = {row[1]: row[2:] for row in tables["strengths"]}
    order = split(
        "MagicBrush InstructPix2Pix Prompt2prompt CycleDiffusion SDEdit Pix2PixZero"
    )
    assert list(rows) == [*order, "tau-b with the votes"]
    places = [[cell.split(":")[0] for cell in rows[one][1::2]] for one in order]
    assert [tuple(one[:2]) for one in places] == [(n, n) for n in "123456"]
    assert [one[2] for one in places] == list("342516")
    assert rows["tau-b with the votes"][3::2] == ("1.000", "0.200")
    # each pair has two editors
    found = [sum(int(row[at]) for row in list(rows.values())[:-1]) for at in (0, 2, 4)]
    assert found == [398, 398, 380]


def test_the_winner_is_first_in_half_of_the_pairs_and_votes_are_on_rated_samples(real):
    contests = BENCHMARK.load(real, "tie")
    assert len(contests) == BENCHMARK.parts["tie"] == 199
    votes = Counter(contest.votes.vote for contest in contests)
    assert votes == {"first": 100, "second": 99}
    for contest in contests:
        for sample in contest.candidates:
            assert sample.id.benchmark == "imagenhub"
            assert set(sample.ratings) == {"SC", "PQ", "O"}
    assert len({contest.group for contest in contests}) < 199


def test_no_image_is_needed_but_for_a_live_run(real):
    report = BENCHMARK.prepare(real, Preparing(images=False))
    assert report.complete is True
    assert report.lines == ("imagenhub_arena/tie: ready, 199 contests",)
    report = BENCHMARK.prepare(real, Preparing())
    assert not report.complete
    assert "images missing" in report.lines[0]


# on files of our own


def test_its_tasks_are_variants_so_that_a_wildcard_on_imagenhub_does_not_find_them():
    from vieval_plugin.benchmarks import tasks

    found = [one.name for one in tasks.tasks() if one.benchmark == arena.NAME]
    judges = ("viescore", "aesthetic", "edit_reward")
    assert found == [f"variant_imagenhub_arena_{judge}" for judge in judges]
    assert BENCHMARK.trainable is False
    assert BENCHMARK.licence.startswith("votes: MIT") is True
