"""What is told at the end of a run."""

import asyncio
import re
import sys
import time
from dataclasses import replace

import pytest

from tests.builders import a_sample
from tests.playing import prepared
from vieval_plugin.judges.protocol import Image, Status, Step, Text, Verdict
from vieval_plugin.judges.structured_chat import CONFIRMED
from vieval_plugin.run import judging_bar
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.progress import MAX_AGE, Progress
from vieval_plugin.run.runner import judge_each, judge_in_batches


def counted(*verdicts, judge=""):
    progress = Progress()
    for verdict in verdicts:
        progress.count(verdict, judge)
    return progress


def unread(answer, status=Status.PARSE_FAILURE):
    return Verdict({}, status, trace=(Step(("PQ",), status, answer=answer),))


def lines_of(progress, beginning):
    return [line for line in progress.lines() if line.startswith(beginning)]


def wordings(progress):
    return lines_of(progress, "SAME WORDING")


def all_unread(answer, status=Status.PARSE_FAILURE, count=20):
    return wordings(counted(*[unread(answer, status)] * count))


def not_applicable(reason):
    trace = (Step(("sample",), Status.NOT_APPLICABLE, reason=reason),)
    return Verdict({}, Status.NOT_APPLICABLE, trace=trace)


SCORED = Verdict({"SC": 0.5}, Status.OK)
FAILED = Verdict({}, Status.PARSE_FAILURE, findings=("unreadable answer",))


def test_why_samples_were_not_asked_about_is_told():
    same = [not_applicable("it has no source image")] * 3
    told = counted(*same, not_applicable("x" * 9000), FAILED)
    expected = ["not asked: 3, because it has no source image (and 1 other reasons)"]
    assert lines_of(told, "not asked") == expected
    assert not lines_of(counted(FAILED), "not asked")
    assert max(map(len, counted(not_applicable("x" * 9000)).lines())) < 200


def test_a_host_is_told_no_flag_of_vieval():
    progress = counted()
    progress.usage.cached = 1
    assert progress.lines(f"set {MAX_AGE}")[-1] == (
        "the only answer came from the cache; set the option store: {max_age: 0} to "
        "ask again"
    )


def test_counts_of_several_workers_add_up():
    first, second = counted(FAILED), counted(FAILED, not_applicable("no image"))
    first.usage.calls, second.usage.calls, second.usage.retries["timeout"] = 2, 3, 1
    assert (first + second).lines()[:2] == [
        "verdicts: parse_failure 2, not_applicable 1",
        "calls: 5, from the cache: 0, tokens in: 0, out: 0",
    ]
    assert "tried again: timeout 1" in (first + second).lines()


def test_a_wording_of_more_than_half_of_a_judges_20_unread_replies_is_told():
    same = [unread("naturalness 10 artifacts 0")] * 10
    same.append(unread("Naturalness : 10,\n artifacts: 0"))
    others = [unread(f"caption {n}") for n in range(9)]
    many = [unread(f"naturalness {n}") for n in range(300)]
    [line] = wordings(counted(*same, *others, judge="mine") + counted(*many))
    assert line == (
        "SAME WORDING: 11 of 20 unreadable replies of mine have the same wording: "
        "'naturalness 10 artifacts 0'"
    )
    assert not wordings(counted(*same, *others[:8]))  # 19 replies are too few
    # half is not more than half
    assert not wordings(counted(*same[1:], *others, unread("another")))


@pytest.mark.parametrize(
    ("verdicts", "unread_count", "confirmed_count", "told"),
    [
        (20, 4, 1, []),
        (20, 5, 1, ["UNREADABLE REPLIES: 5 of 20 verdicts"]),
        (20, 4, 2, ["ASKED TWICE: 2 answers had text around the JSON object"]),
        (4, 4, 0, []),  # too few verdicts to say so
    ],
)
def test_unread_and_repeated_are_told(verdicts, unread_count, confirmed_count, told):
    twice = replace(SCORED, status=Status.REPAIRED, findings=(CONFIRMED,))
    scored = [SCORED] * (verdicts - unread_count - confirmed_count)
    replies = [unread(f"reply {n}") for n in range(unread_count)]
    lines = counted(*replies, *[twice] * confirmed_count, *scored).lines()
    shouted = [line for line in lines if re.match("[A-Z]+ [A-Z]", line)]
    advice = "use a server that enforces JSON schemas"
    remedies = {"U": f"{advice}, or a stronger model", "A": advice}
    assert shouted == [f"{beginning}; {remedies[beginning[0]]}" for beginning in told]


def test_a_judge_whose_answers_are_cut_needs_room_and_no_schema():
    step = Step(("PQ",), Status.PARSE_FAILURE, answer="<think>", cut=True)
    cut = Verdict({}, Status.PARSE_FAILURE, trace=(step,))
    [told] = lines_of(counted(*[cut] * 20), "UNREADABLE REPLIES")
    assert "raise `--max-tokens`" in told
    assert "schemas" not in told


@pytest.mark.parametrize("status", Status)
def test_replies_that_were_guessed_from_are_unread_too_and_no_others(status):
    told = status in (Status.PARSE_FAILURE, Status.GUESSED)
    assert bool(all_unread("the same", status)) is told
    assert not all_unread("", status)


def test_a_long_reply_without_words_is_shown_in_one_short_line():
    [line] = all_unread("\x1b[31m\u202e!?" * 10_000)
    assert len(line) < 250
    assert line.isprintable()


def test_both_ways_of_running_count_a_judges_unread_replies():
    sample = a_sample(prompt="a cat", images={"output": Image(b"png")})
    jobs = [Job(sample, prepared("viescore"), repeat) for repeat in range(5)]
    in_batches, paced = Progress(), Progress()
    judge_in_batches(jobs, lambda asked: [Text("as is") for _ in asked], in_batches)

    async def answer(question, repeat):
        return Text("as is")

    ended = lambda number, outcome: None
    asyncio.run(judge_each(jobs, answer, paced, ended, live=2, bar=False))
    for progress in (in_batches, paced):
        # two questions, each asked again once
        assert "20 of 20 unreadable replies of viescore " in wordings(progress)[0]


@pytest.mark.parametrize("counted_too", ["calls", "measured"])
def test_no_model_was_asked_is_said_only_where_all_came_from_the_store(counted_too):
    progress = counted(SCORED)
    progress.usage.cached = 3
    assert "all 3 answers came from the cache" in "\n".join(progress.lines())
    setattr(progress.usage, counted_too, 1)
    assert "came from the cache" not in "\n".join(progress.lines())


@pytest.fixture(autouse=True)
def outside_a_notebook(monkeypatch):
    # which another test may have imported
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


@pytest.mark.parametrize("on_terminal", [True, False])
def test_progress_says_for_how_long_no_answer_came(monkeypatch, capsys, on_terminal):
    monkeypatch.setattr(judging_bar, "SILENCE", 0.0)
    monkeypatch.setattr(judging_bar, "_LOOKS_EVERY", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: on_terminal)
    shown = ""
    with judging_bar.judging_bar(Progress(), 3, is_shown=True) as update:
        while "no answer for 0 s" not in shown:
            time.sleep(0.01)
            shown += capsys.readouterr().err
        update(1)
    assert ("\r" in shown) is on_terminal
    with judging_bar.judging_bar(Progress(), 3, is_shown=False) as update:
        capsys.readouterr()
        time.sleep(0.05)
        update(1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("total", "lines"), [(2000, 10), (7, 7), (None, 10)])
def test_a_file_gets_a_line_each_tenth(capsys, total, lines):
    progress = Progress()
    with judging_bar.judging_bar(progress, total, is_shown=True) as update:
        for number in range(total or 10_000):
            progress.count(Verdict({}, Status.API_ERROR if number == 0 else Status.OK))
            update(1)
    shown = capsys.readouterr().err
    assert "\r" not in shown
    assert len(shown.splitlines()) == lines
    assert all("sample/s, api_error 1]" in line for line in shown.splitlines())
