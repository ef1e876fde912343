"""Contests through the run loop: a candidate is judged once however many contests it is in."""

import itertools
import random
from collections import Counter

import pytest

from tests.playing import scripted
from vieval_plugin import (
    Backbone,
    Contest,
    Image,
    Progress,
    Sample,
    SampleId,
    Status,
    Votes,
    evaluate,
)
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.config import Config
from vieval_plugin.judges.protocol import Chat, Message, Step, Text, Verdict
from vieval_plugin.records import fingerprint, response_json, target_json
from vieval_plugin.results.documents import read_record
from vieval_plugin.results.lookup import conversation
from vieval_plugin.run.jobs import Job, JobsSplitByCandidate
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.runner import judge_each, judge_in_batches


def asks_once(sample):
    [reply] = yield [Chat((Message("user", (str(sample.id),)),), ("q",))]
    scores = {"SC": len(reply.text) / 100}
    trace = (Step(("q",), Status.OK, answer=reply.text),)
    return Verdict(scores, Status.OK, trace=trace)


JUDGE = scripted(asks_once)


def candidate(number, uid="1"):
    return Sample(SampleId("b", "tig", f"m{number}", uid), {}, {"prompt": uid})


def contest(number, candidates, *more):
    return Contest(SampleId("b", "tig", "", str(number)), tuple(candidates), *more)


def contests(count, among, size=4, seed=0):
    """Contests of some of the same candidates, drawn by a seed."""
    draw, pool = random.Random(seed), [candidate(number) for number in range(among)]
    numbers = range(count)
    return [contest(n, draw.sample(pool, size), Votes("ranking")) for n in numbers]


def answers(asked):
    """Replies of the batch form, counting questions."""
    numbers = [int(ask.messages[0].parts[0].split("/")[2][1:]) for _, ask in asked]
    return [Text("x" * (1 + number), 3, 2) for number in numbers]


def right(contest):
    numbers = [int(one.id.image_model[1:]) for one in contest.candidates]
    return tuple({"SC": (1 + number) / 100} for number in numbers)


def test_a_candidate_is_asked_about_once_in_waves():
    asked, progress = [], Progress()
    given = contests(200, among=30)
    jobs = [Job(contest, JUDGE) for contest in given]
    note = lambda wave: asked.extend(wave) or answers(wave)
    outcomes = judge_in_batches(jobs, note, progress)
    counts = Counter(ask.messages[0].parts[0] for _, ask in asked)
    assert set(counts.values()) == {1}
    assert len(asked) == 30
    found = [outcome.verdict.choice.scores for outcome in outcomes]
    assert found == list(map(right, given))
    assert progress.statuses == {Status.OK: 200}
    # a question is owned by a contest that has the candidate, and its tokens are counted there once
    for number, ask in asked:
        assert ask.messages[0].parts[0] in [str(c.id) for c in given[number].candidates]
    assert sum(outcome.input_tokens for outcome in outcomes) == 3 * 30


async def test_a_candidate_is_asked_about_once_at_its_own_pace():
    asked, outcomes, given = [], {}, contests(200, among=30)

    async def answer(question, repeat):
        asked.append(question)
        return answers([(0, question)])[0]

    jobs = (Job(contest, JUDGE) for contest in given)
    await judge_each(jobs, answer, Progress(), outcomes.__setitem__, live=7, bar=False)
    assert len(asked) == 30
    found = [outcomes[n].verdict.choice.scores for n in range(200)]
    assert found == list(map(right, given))


def test_what_differs_in_anything_is_another_candidate():
    same = candidate(0)
    others = [
        candidate(1),
        candidate(0, uid="2"),
        Sample(same.id, {"output": Image(b"x")}, same.texts),
        Sample(same.id, {"output": Image(b"y")}, same.texts),
        Sample(same.id, {}, {"prompt": "other"}),
    ]
    pairs = [contest(n, (same, other)) for n, other in enumerate(others)]
    first = Job(pairs[0], JUDGE)
    for jobs, count in (
        ([Job(pair, JUDGE) for pair in pairs], 1 + len(others)),
        ([first, Job(pairs[0], JUDGE, repeat=1)], 4),
        ([first, Job(pairs[0], scripted(asks_once))], 4),
    ):
        assert len(JobsSplitByCandidate(jobs).jobs) == count


def test_samples_beside_contests_are_judged_as_often_as_they_are_given():
    single = Job(candidate(0), JUDGE)
    jobs = [single, Job(contests(1, 4)[0], JUDGE), single]
    outcomes = judge_in_batches(jobs, answers, Progress())
    singles = [outcome.verdict.choice is None for outcome in outcomes]
    assert singles == [True, False, True]


def test_the_same_candidate_twice_in_a_contest_is_asked_about_once():
    twice = contest(1, (candidate(3), candidate(3)))
    [outcome] = judge_in_batches([Job(twice, JUDGE)], answers, Progress())
    assert outcome.verdict.choice.scores == ({"SC": 0.04}, {"SC": 0.04})


@pytest.fixture
def edits(tmp_path):
    """Three edits of one source, each against each, and one that lacks its image."""
    outputs = vieval_demo.load(tmp_path, "tie")[:3]
    votes = Votes("four_way", "first", ("first", "both_bad"))
    whole = [
        Contest(SampleId("b", "edit", "", str(n)), pair, votes, "g", ("colour",))
        for n, pair in enumerate(itertools.combinations(outputs, 2))
    ]
    images = {"source": outputs[0].images["source"]}
    bare = Sample(SampleId("b", "tie", "m", "9"), images, outputs[0].texts, kind="tie")
    lacking = Contest(SampleId("b", "edit", "", "bare"), (outputs[0], bare), votes)
    return [*whole, lacking]


def test_a_judge_of_samples_judges_contests(store, server, edits):
    backbone = Backbone(model="fake", base_url=server.base_url)
    verdicts = evaluate(edits, backbone=backbone)
    statuses = [verdict.status for verdict in verdicts]
    assert statuses == [*[Status.OK] * 3, Status.NOT_APPLICABLE]
    # each edit once, and whether schemas are enforced
    assert server.stats()["requests"] == 2 * 3 + 1
    prepared = prepare("viescore", None, Config())
    for contest, verdict in zip(edits, verdicts, strict=True):
        known = (prepared.provenance, fingerprint(contest))
        response = response_json(contest.id, verdict, *known)
        record = read_record(response, target_json(contest))
        same = ("id", "votes", "group", "tags")
        assert [getattr(record, n) for n in same] == [getattr(contest, n) for n in same]
        assert (record.verdict, record.kind) == (verdict, "tie")
        assert record.candidates == tuple(one.id for one in contest.candidates)
        # the program is run again on what was answered, and asks the same
        exchanges = conversation(prepared.program, contest, verdict)
        steps = [step.path for step in verdict.trace if step.path[-1] != "sample"]
        assert sorted(e.step.path for e in exchanges) in ([], sorted(steps))


@pytest.mark.parametrize("judge", ["ssim", "viescore", "pairwise"])
def test_a_contest_that_is_none_is_not_judged(store, server, edits, judge):
    good = edits[0]
    bad = [
        Contest(SampleId("b", "edit", "", "none"), ()),
        Contest(SampleId("b", "edit", "", "one"), good.candidates[:1]),
        Contest(good.id, good.candidates, Votes("two_way", "left")),
    ]
    backbone = Backbone(model="fake", base_url=server.base_url)
    *refused, judged = evaluate([*bad, good], judge=judge, backbone=backbone)
    assert [verdict.status for verdict in refused] == [Status.NOT_APPLICABLE] * 3
    assert [verdict.reason for verdict in refused] == [
        "a contest must have at least 2 candidates, got 0",
        "a contest must have at least 2 candidates, got 1",
        "a two_way vote must be one of first, second, got 'left'",
    ]
    assert judged.status is not Status.NOT_APPLICABLE


def test_without_votes_any_number_of_candidates_is_a_contest(store):
    outputs = vieval_demo.load(None, "tie")[:3]
    contest = Contest(SampleId("own", "tie", "", "1"), tuple(outputs))
    [verdict] = evaluate([contest], judge="ssim")
    assert [set(scores) for scores in verdict.choice.scores] == [{"SC"}] * 3
