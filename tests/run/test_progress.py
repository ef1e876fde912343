"""What is told at the end of a run, of verdicts and of replies that could not be read."""

import asyncio

import pytest

from tests.playing import prepared
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Step, Text, Verdict
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.runner import judge_each, judge_in_batches
from vieval_plugin.run.scheduler import Outcome

ECHO = "Naturalness : 10,\n artifacts: 0"


def outcome(*answers, status=Status.PARSE_FAILURE):
    return Outcome(Verdict({}, status, trace=tuple(Step(("PQ",), status, answer=answer) for answer in answers)))


def wordings(progress):
    return [line for line in progress.lines() if line.startswith("ONE WORDING")]


def counted(*outcomes, judge="mine"):
    progress = Progress()
    progress.count(outcomes, judge)
    return progress


def test_a_wording_of_more_than_half_of_20_unread_replies_is_told():
    same = [outcome("naturalness 10 artifacts 0") for _ in range(10)] + [outcome(ECHO)]
    others = [outcome(f"caption {n}") for n in range(9)]
    [line] = wordings(counted(*same, *others))
    assert line == (
        "ONE WORDING: 11 of 20 replies of mine that could not be read say the same: 'naturalness 10 artifacts 0'"
    )
    assert not wordings(counted(*same, *others[:8]))  # 19 replies are too few
    assert not wordings(counted(*same[1:], *others, outcome("another")))  # half is not more than half


def test_digits_tell_wordings_apart():
    assert not wordings(counted(*(outcome(f"naturalness {n % 10}") for n in range(100))))


def test_why_samples_were_not_asked_about_is_told():
    def lacking(reason):
        return Outcome(
            Verdict({}, Status.NOT_APPLICABLE, trace=(Step(("sample",), Status.NOT_APPLICABLE, reason=reason),))
        )

    lines = counted(*[lacking("it has no image source")] * 3, lacking("x" * 9000), outcome("prose")).lines()
    assert [line for line in lines if line.startswith("not asked")] == [
        "not asked: 3, as it has no image source (and 1 other reasons)"
    ]
    assert not [line for line in counted(outcome("prose")).lines() if line.startswith("not asked")]
    assert max(map(len, counted(lacking("x" * 9000)).lines())) < 200


def test_each_judge_is_told_of_by_itself():
    progress = Progress()
    progress.count([outcome("a picture") for _ in range(30)], "one")
    progress.count([outcome(f"picture {n}") for n in range(300)], "other")
    [line] = wordings(progress)
    assert "30 of 30 replies of one " in line


@pytest.mark.parametrize("status", [Status.OK, Status.REPAIRED, Status.REFUSAL, Status.API_ERROR])
def test_what_was_read_refused_or_never_came_is_no_unread_reply(status):
    assert not wordings(counted(*(outcome("the same", status=status) for _ in range(50))))
    assert not wordings(counted(*(outcome("") for _ in range(50))))


def test_guessed_replies_are_unread_too():
    assert wordings(counted(*(outcome("the same", status=Status.GUESSED) for _ in range(20))))


def test_a_long_reply_without_words_is_shown_in_one_short_line():
    [line] = wordings(counted(*(outcome("\x1b[31m\u202e!?" * 10_000) for _ in range(20))))
    assert len(line) < 250
    assert line.isprintable()


def samples():
    shown = {"output": Image(b"png")}
    return [Sample(SampleId("b", "tig", "m", str(n)), shown, {"prompt": "a cat"}) for n in range(5)]


def test_both_ways_of_running_count_the_judges_unread_replies():
    jobs = [Job(sample, prepared("viescore")) for sample in samples()]
    waves, paced = Progress(), Progress()
    judge_in_batches(jobs, lambda asked: [Text(ECHO) for _ in asked], waves)

    async def answer(question, repeat):
        return Text(ECHO)

    asyncio.run(judge_each(jobs, answer, paced, lambda number, outcome: None, live=2, bar=False))
    for progress in (waves, paced):
        # two questions, each asked again once
        assert "20 of 20 replies of viescore " in wordings(progress)[0]
        assert progress.statuses == {Status.PARSE_FAILURE: 5}
        assert progress.findings == {}
