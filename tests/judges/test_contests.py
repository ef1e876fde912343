"""Contests: what is one, and how a judge of samples judges one."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.playing import play
from tests.tables import table
from vieval_plugin import Contest, Image, Sample, SampleId, Status, Verdict, Votes
from vieval_plugin.judges.contests import (
    SCHEMES,
    candidate_program,
    candidates_of,
    contest_verdict,
    fault,
    gather,
    ranks,
)
from vieval_plugin.judges.protocol import Chat, Message, Step, Text
from vieval_plugin.judges.spec import missing_inputs_reason
from vieval_plugin.judges.viescore import SPEC

SOURCE = Image(b"source")


def candidate(model, **images):
    shown = {"source": SOURCE, "output": Image(model.encode()), **images}
    texts = {"instruction": "make it blue"}
    return Sample(SampleId("b", "tie", model, "1"), shown, texts, kind="tie")


def contest(number=2, **about):
    candidates = tuple(candidate(f"m{n}") for n in range(number))
    return Contest(SampleId("b", "edit", "", "1"), candidates, **about)


def test_a_contest_has_the_kind_of_its_candidates_and_is_its_own_group():
    assert (contest().kind, contest().group) == ("tie", "1")
    assert contest(group="g").group == "g"
    assert candidates_of(contest(3)) == contest(3).candidates
    assert candidates_of(candidate("m")) == (candidate("m"),)


@pytest.mark.parametrize(
    ("scheme", "vote"), [(s, v) for s, votes in SCHEMES.items() for v in (*votes, "")]
)
def test_every_vote_of_a_scheme_is_one(scheme, vote):
    assert fault(contest(votes=Votes(scheme, vote))) == ""
    assert fault(contest(votes=Votes(scheme, annotators=(vote, "first", "")))) == ""


@pytest.mark.parametrize(*table("wrong_contests.jsonl"))
def test_what_is_wrong_with_a_contest_is_said(number, scheme, vote, annotators, said):
    votes = Votes(scheme, vote, tuple(annotators))
    assert said in fault(contest(number, votes=votes))


@given(st.lists(st.integers(1, 4), min_size=2, max_size=6))
def test_a_ranking_is_read_as_it_was_written(levels):
    """Written from any levels, equal for ties, best first."""
    level_of = lambda number: levels[number - 1]
    numbers = sorted(range(1, len(levels) + 1), key=level_of)
    groups = itertools.groupby(numbers, key=level_of)
    text = ">".join("=".join(map(str, group)) for _, group in groups)
    expected = tuple(1 + sum(other < level for other in levels) for level in levels)
    assert ranks(text, len(levels)) == expected
    assert ranks(text, len(levels) + 1) == ()
    # equal ones in any order
    assert ranks("2=1", 2) == (1, 1)


NO_RANKINGS = ["", "1", "1>", ">1", "1>1", "1>2>2", "1>2>3", "0>1", "a>b", "1 > 2"]


@pytest.mark.parametrize("text", [*NO_RANKINGS, "1>2\n", "1" * 5000])
def test_what_is_no_ranking_of_two_is_none(text):
    assert ranks(text, 2) == ()


def asking(sample):
    """Asks twice, the second question only of m0."""
    [first] = yield [chat(sample, "SC")]
    seconds = (yield [chat(sample, "PQ")]) if sample.id.image_model == "m0" else []
    steps = [Step(("SC",), Status.OK, (5.0,), first.text)]
    steps += [Step(("PQ",), Status.REPAIRED, (), second.text) for second in seconds]
    status = Status.REPAIRED if seconds else Status.OK
    more = {"rationale": first.text, "trace": tuple(steps), "findings": ("f",)}
    return Verdict({"SC": float(first.text)}, status, **more)


def chat(sample, name):
    return Chat((Message("user", (f"{sample.id.image_model} {name}",)),), (name,))


def test_candidates_are_asked_about_side_by_side_below_their_numbers():
    scores = {"m0": "0.25", "m1": "0.75"}
    answer = lambda ask: Text(scores[ask.messages[0].parts[0][:2]])
    played = play(candidate_program(asking, contest()), answer=answer)
    paths = [[ask.path for ask in asks] for asks in played.rounds]
    assert paths == [[("1", "SC"), ("2", "SC")], [("1", "PQ")]]
    verdict = played.verdict
    assert verdict.choice.scores == ({"SC": 0.25}, {"SC": 0.75})
    assert (verdict.choice.votes, verdict.scores) == ({}, {})
    assert verdict.status is Status.REPAIRED
    steps = [step.path for step in verdict.trace]
    assert steps == [("1", "SC"), ("1", "PQ"), ("2", "SC")]
    assert verdict.rationale == "1: 0.25\n2: 0.75"
    assert verdict.findings == ("f", "f")


def test_a_candidate_without_a_verdict_leaves_the_contest_with_its_status():
    good, bad = Verdict({"SC": 1.0}, Status.OK), Verdict({}, Status.REFUSAL)
    verdict = contest_verdict([good, bad])
    assert verdict.status is Status.REFUSAL
    assert verdict.choice.scores == ({"SC": 1.0}, {})
    assert verdict.choice.recorded == ()
    guessed = Verdict({}, Status.GUESSED, recorded={"SC": 0.5})
    recorded = contest_verdict([good, guessed]).choice.recorded
    assert recorded == ({"SC": 1.0}, {"SC": 0.5})


def test_what_a_candidate_lacks_is_said_with_its_number():
    half = replace(candidate("m1"), images={"source": SOURCE})
    judged = replace(contest(), candidates=(candidate("m0"), half))
    lacking = "candidate 2: the sample has no output image"
    assert missing_inputs_reason(SPEC, judged) == lacking
    assert missing_inputs_reason(SPEC, contest()) == ""
    few = "a contest must have at least 2 candidates"
    assert missing_inputs_reason(SPEC, contest(1)).startswith(few)


def counting(name, rounds):
    heard = []
    for number in range(rounds):
        heard += yield [f"{name}{number}"] * (number + 1)
    return heard


def run(program):
    played = play(program, answer=lambda ask: f"re {ask}")
    return played.rounds, played.result


def test_asks_of_all_that_are_under_way_are_one_list_and_results_come_in_order():
    waves, results = run(gather([counting("a", 1), counting("b", 0), counting("c", 2)]))
    assert waves == [["a0", "c0"], ["c1", "c1"]]
    assert results == [["re a0"], [], ["re c0", "re c1", "re c1"]]


def test_no_programs_ask_nothing_and_one_that_asks_an_empty_list_goes_on():
    def silent():
        heard = yield []
        return heard

    assert run(gather([])) == ([], [])
    assert run(gather([silent(), counting("a", 1)])) == ([["a0"]], [[], ["re a0"]])
