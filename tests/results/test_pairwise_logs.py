"""Logs of judges of two candidates: GenAI-Bench, MMRB2 and our own results."""

import json
from collections import Counter
from dataclasses import replace
from itertools import product
from shlex import split

import numpy as np
import pytest

from tests.refusals import refusal
from tests.stored_results import csv_rows, write_lines
from tests.tables import table
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.config import Config
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.pairwise.reading import ONE_ANSWER
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.records import Provenance, response_json, target_json
from vieval_plugin.results import replay
from vieval_plugin.results.documents import read_record
from vieval_plugin.results.logs import pairwise

TIGER = benchmark_registry.benchmark("genai_bench_tiger")
MMRB2 = benchmark_registry.benchmark("mmrb2")
JUDGES = split("blip2 gpt4o idefics2 instructblip llava minicpm-V-2.5 random qwenVL")
RIGHT_IN_PAPER = {"first": {"first"}, "second": {"second"}}
RIGHT_IN_PAPER |= {vote: {vote, "tie"} for vote in ("both_good", "both_bad")}
# replies with several labels; in MiniCPM-V's on edits 352 of these list all four
SEVERAL = {("edit", "instructblip"): 34, ("edit", "minicpm-V-2.5"): 359}
SEVERAL |= {("generation", "minicpm-V-2.5"): 517, ("generation", "qwenVL"): 9}
SEVERAL |= {("video", "idefics2"): 23, ("video", "minicpm-V-2.5"): 128}
UNREAD = ["[[Tie]]", "A>B", "[[C>A]]", "[[A>B]] or rather [[B>A]]", ""]
ROWS = [3, None, [], {}, {"response": None}, {"response": 5}]
FILES = {"t2i": ("sample_task1_image.json", 0.532)}
FILES["edit"] = ("task2_edit/sample.json", 0.555)


def identity(image_model, uid):
    return SampleId("own", "edit", image_model, uid)


def read(folder, rows, name=""):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pairwise.json").write_text(json.dumps(rows))
    found = pairwise.read(folder, identity, name)
    return {known.uid: verdict for known, verdict in found.items()}


def replies(*labels):
    """Rows of a log, one a label."""
    return [{"idx": n, "response": label} for n, label in enumerate(labels)]


def one(folder, response):
    return read(folder, replies(response))["0"]


@pytest.fixture(scope="module")
def printed(shared_data):
    rows = csv_rows(shared_data / "expected" / "genai_bench_tiger.csv")
    return {(row["task"], row["judge"]): float(row["printed"]) for row in rows}


@pytest.fixture(scope="module")
def contests(shared_data):
    return {part: TIGER.load(shared_data, part) for part in TIGER.parts}


@pytest.fixture(scope="module")
def recorded(shared_data):
    logs = shared_data / "genai_bench_tiger"
    return {name: replay.load(logs, "pairwise", name) for name in JUDGES}


def choice_on(recording, contest):
    return recording.verdict(contest)[0].choice


def is_right(recording, contest):
    vote = choice_on(recording, contest).votes.get("paper")
    return vote in RIGHT_IN_PAPER[contest.votes.vote]


def test_every_printed_accuracy_comes_out(printed, contests, recorded):
    assert len(printed) == 18
    found = {}
    for part, judge in printed:
        right = [is_right(recorded[judge], contest) for contest in contests[part]]
        found[part, judge] = round(100 * sum(right) / len(right), 2)
    assert found == printed


def test_the_authors_reading_is_right_there(shared_data, contests, recorded):
    for (folder, part), judge in product(TIGER.folders.items(), JUDGES):
        path = shared_data / "genai_bench_tiger" / folder / judge / "pairwise.json"
        if path.exists():
            correct = [row["correct"] for row in json.loads(path.read_text())]
            found = [is_right(recorded[judge], contest) for contest in contests[part]]
            assert found == correct, path


def test_labels_that_differ_have_one_vote(contests, recorded, printed):
    several = Counter()
    for part, judge in printed:
        for contest in contests[part]:
            verdict = recorded[judge].verdict(contest)[0]
            votes = verdict.choice.votes
            if ONE_ANSWER in verdict.trace[0].reason:
                several[part, judge] += 1
                assert set(votes) <= {"paper"}
            elif part == "edit" and judge in ("gpt4o", "minicpm-V-2.5"):
                assert votes["forward"] == votes["paper"]
    assert several == SEVERAL


def test_no_reply_is_lost(contests, recorded):
    verdicts = [recorded["idefics2"].verdict(one)[0] for one in contests["video"]]
    assert len(verdicts) == 1069
    assert Status.MISSING not in {verdict.status for verdict in verdicts}
    failed = [verdict for verdict in verdicts if not verdict.status.usable]
    # those without any label, and those whose label is none of the four
    assert len(failed) > 376
    assert all(one.choice.votes == {"paper": ""} for one in failed)
    assert all(one.trace[0].reason for one in failed)


@pytest.mark.parametrize(*table("replies_with_a_letter.jsonl"))
def test_a_reply_is_read_in_both_ways(tmp_path, response, votes):
    found = one(tmp_path, response)
    assert (found.status, found.choice.votes, found.scores) == (Status.OK, votes, {})
    assert found.trace[0].answer == response


@pytest.mark.parametrize("response", [*UNREAD, "I'm sorry, but I can't assist."])
def test_a_reply_that_nobody_reads_is_a_failure_with_its_words(tmp_path, response):
    found = one(tmp_path, response)
    assert (found.status, found.choice.votes) == (Status.PARSE_FAILURE, {"paper": ""})
    assert found.trace[0].answer == response
    assert found.trace[0].reason


@pytest.mark.parametrize("row", [*ROWS, {"idx": 1, "response": ["[[A>B]]"]}])
def test_a_malformed_row_is_its_contests_failure_and_no_other_s(tmp_path, row):
    first, _, last = replies("[[A>B]]", "", "[[B>A]]")
    found = read(tmp_path, [first, row, last])
    statuses = [found[uid].status for uid in "012"]
    assert statuses == [Status.OK, Status.PARSE_FAILURE, Status.OK]
    assert found["1"].trace[0].reason == "the log row has no reply"


def test_a_row_is_never_taken_for_that_of_another_contest(tmp_path):
    rows = replies("[[A>B]]", "[[B>A]]")
    # ids are texts where a benchmark's are, and no place stands in for them
    named = [{**row, "idx": idx} for idx, row in zip("10", rows, strict=True)]
    found = read(tmp_path, named)
    assert [found[uid].choice.votes["forward"] for uid in "10"] == ["first", "second"]
    for again in (0, "0"):
        line = refusal(read, tmp_path, [rows[0], {"idx": again}])
        assert line.endswith("pairwise.json: row 1: duplicate idx 0; correct the file")


@pytest.mark.parametrize("idx", [None, True, 1.0, [1], {}])
def test_an_idx_that_is_none_is_one_line(tmp_path, idx):
    first, second = replies("[[A>B]]", "[[A>B]]")
    line = refusal(read, tmp_path, [first, {**second, "idx": idx}])
    assert line.endswith("row 1: idx must be an integer or a string; correct the file")


def test_which_of_several_logs_is_meant_is_said_by_name(tmp_path):
    for judge, label in {"blip": "[[A>B]]", "llava": "[[B>A]]"}.items():
        read(tmp_path / "image_edition" / judge, [{"idx": 7, "response": label}])
    edit = SampleId("genai_bench_tiger", "edit", "", "7")
    recording = replay.load(tmp_path, "pairwise", "llava")
    assert choice_on(recording, edit).votes["forward"] == "second"
    for name in ("", "gpt4o"):
        line = refusal(replay.load, tmp_path, "pairwise", name)
        said = f"image_edition: no logs of '{name}'; set name= to one of: blip, llava"
        assert line.endswith(said)
    # whoever has a folder alone need not be named, and who judged one part need not have judged all
    read(tmp_path / "video_generation" / "gpt4o", [{"idx": 1, "response": "[[A>B]]"}])
    found = replay.load(tmp_path, "pairwise", "gpt4o").covered
    assert found == {"genai_bench_tiger/video"}


def test_a_folders_own_log_goes_by_any_name(tmp_path):
    read(tmp_path / "image_edition", [{"idx": 7, "response": "[[A>B]]"}])
    for name in ("", "mine"):
        found = replay.load(tmp_path, "pairwise", name).covered
        assert found == {"genai_bench_tiger/edit"}
    # which is no log of a judge of samples
    for judge in ("viescore", "clip_score"):
        assert replay.load(tmp_path, judge).verdicts == {}


def test_a_file_of_neither_form_is_one_line(tmp_path):
    for text, said in {"[{": "invalid JSON", '"A"': "must contain a list"}.items():
        (tmp_path / "pairwise.json").write_text(text)
        line = refusal(pairwise.read, tmp_path, identity)
        assert f"pairwise.json: {said}" in line


def judged(tmp_path, pairs, letters="", name="sample_task1_image.json"):
    """A file of MMRB2: each order has its letter, or the right one of the pair."""
    rows = {}
    for pair in pairs:
        answers = letters or ("AB" if pair.votes.vote == "first" else "BA")
        orders = zip(("forward", "reverse"), answers, strict=True)
        rows[pair.id.uid] = {order: [{"judgement": a}] for order, a in orders}
    (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / name).write_text(json.dumps(rows))
    return replay.load(tmp_path, "pairwise", "sample")


def shares(recording, pairs):
    """The share of right votes of each order, and of both as MMRB2's authors count."""
    right = [
        [choice_on(recording, pair).votes[order] == pair.votes.vote for pair in pairs]
        for order in ("forward", "reverse")
    ]
    return [*map(np.mean, right), np.mean(right)]


@pytest.mark.parametrize("part", FILES)
def test_positions_and_candidates_are_told_apart(shared_data, tmp_path, part):
    pairs, (file, share) = MMRB2.load(shared_data, part), FILES[part]
    first_position = judged(tmp_path, pairs, "AA", file)
    found = shares(first_position, pairs)
    assert found == pytest.approx([share, 1 - share, 0.5], abs=1e-12)
    votes = [choice_on(first_position, pair).votes for pair in pairs]
    assert all(len(set(vote.values())) == 2 for vote in votes)
    candidate_a = judged(tmp_path, pairs, "AB", file)
    assert shares(candidate_a, pairs) == pytest.approx([share] * 3)
    right = judged(tmp_path, pairs, name=file)
    assert (right.covered, shares(right, pairs)) == ({f"mmrb2/{part}"}, [1, 1, 1])


@pytest.mark.parametrize(*table("replies_without_a_letter.jsonl"))
def test_an_order_without_a_letter_has_no_vote(tmp_path, row, votes, status):
    found = read(tmp_path, {"a": row, "b": {"forward": [{"judgement": "A"}]}})
    assert (found["a"].choice.votes, found["a"].status) == (votes, status)
    assert found["b"].choice.votes == {"forward": "first"}


def test_ids_that_fit_nothing_are_counted(shared_data, tmp_path):
    pairs = MMRB2.load(shared_data, "t2i")
    ids = [replace(pair.id, uid=f"other {pair.id.uid}") for pair in pairs[:20]]
    strangers = [replace(pairs[0], id=identity) for identity in ids]
    line = refusal(judged(tmp_path, strangers).uncovered, pairs)
    assert "on the 1000 contests of mmrb2/t2i: 0 of 20 recorded ids match" in line
    assert f"first requested: {pairs[0].id}; first recorded: mmrb2/t2i/other" in line
    found = judged(tmp_path, [*strangers, *pairs[:900]])
    assert found.uncovered(pairs) == ["100 of 1000 contests of mmrb2/t2i (pairwise)"]


def run_of(tmp_path, verdicts):
    """Results of VIEScore."""
    source = Provenance("viescore", (), ("SC",))
    texts = [response_json(known, v, source) for known, v in verdicts.items()]
    rows = [{"filtered_resps": [text]} for text in texts]
    write_lines(tmp_path / "samples_own.jsonl", rows)
    return replay.load(tmp_path, "viescore")


def contest(*names, part="edit"):
    ids = [SampleId("own", part, name, "u") for name in names]
    candidates = tuple(Sample(known, {}, {}, kind="tie") for known in ids)
    return Contest(SampleId("own", part, "", "-".join(names)), candidates)


def scored(**values):
    """Verdicts on samples, by image model."""
    ids = [identity(model, "u") for model in values]
    verdicts = [Verdict({"SC": value}, Status.OK) for value in values.values()]
    return dict(zip(ids, verdicts, strict=True))


def test_a_contest_is_answered_by_the_verdicts_on_its_candidates(tmp_path):
    found = run_of(tmp_path, scored(x=0.5, Y=0.25, z=1.0))
    verdict, by = found.verdict(contest("x", "y", "z"))
    assert verdict.choice.scores == ({"SC": 0.5}, {"SC": 0.25}, {"SC": 1.0})
    assert (verdict.status, by.judge) == (Status.OK, "viescore")
    assert found.uncovered([contest("x", "y"), contest("z", "y")]) == []
    asked = (contest("z", "x"), 0, "viescore", "", "mine", Config())
    given, provenance = replay.replayed(found, *asked)
    assert given.choice.scores == ({"SC": 1.0}, {"SC": 0.5})
    assert (provenance.backbone, provenance.recorded) == ("mine", True)


def test_a_candidate_that_is_not_recorded_leaves_its_contest_in_part(tmp_path):
    found = run_of(tmp_path, scored(x=0.5, y=0.25))
    verdict, _ = found.verdict(contest("x", "other"))
    assert verdict.status == Status.MISSING
    assert verdict.choice.scores == ({"SC": 0.5}, {})
    neither = contest("no", "none")
    asked = [contest("x", "y"), contest("x", "other"), neither]
    assert found.verdict(neither)[0].status is Status.MISSING
    got = found.uncovered(asked)
    assert got == ["1 of 3 contests of own/edit (viescore, 1 more in part)"]
    said = "viescore has no recorded verdicts on the 1 contests of own/edit: 0 of 2"
    assert said in refusal(found.uncovered, [neither])
    assert found.verdict(contest("x", "y", part="video"))[0].status is Status.MISSING


def test_what_is_recorded_of_the_contest_itself_goes_before_its_candidates(tmp_path):
    both = contest("x", "y")
    choice = choice_on(run_of(tmp_path, scored(x=0.5, y=0.25)), both)
    choice = replace(choice, scores=({"SC": 1.0}, {"SC": 0.0}))
    whole = Verdict({}, Status.OK, choice=choice)
    found = run_of(tmp_path, {both.id: whole, **scored(x=0.5)})
    assert found.verdict(both)[0] == whole


def test_replayed_votes_survive_the_hosts_files(contests, recorded):
    asked = contests["edit"][0]
    run = (asked, 0, "pairwise", "", "gpt4o", Config())
    verdict, provenance = replay.replayed(recorded["gpt4o"], *run)
    response = response_json(asked.id, verdict, provenance)
    record = read_record(response, target_json(asked))
    assert record.verdict == verdict
    seen = observe([record]).contest
    assert seen.judge_votes == {"forward": "first", "paper": "first"}
    assert seen.votes == asked.votes


def test_results_on_prompts_of_any_length_are_read_back(contests, recorded):
    """Groups are not shortened: GenAI-Bench's are prompts of up to 2,000 characters."""
    longest = max(contests["generation"], key=lambda contest: len(contest.group))
    assert len(longest.group) > 1000
    verdict = recorded["qwenVL"].verdict(longest)[0]
    source = Provenance("pairwise", (), (), "qwenVL")
    document = response_json(longest.id, verdict, source)
    assert read_record(document, target_json(longest)).group == longest.group
