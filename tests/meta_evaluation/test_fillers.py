"""Scores filled in without judging: echoes of the request, and recurring zeros."""

import pytest

from tests.playing import play
from vieval_plugin.judges.parsing import reply_schema
from vieval_plugin.judges.protocol import (
    Chat,
    Message,
    SampleId,
    Status,
    Step,
    Text,
    Verdict,
)
from vieval_plugin.judges.refusals import ECHO
from vieval_plugin.judges.structured_chat import ask_all, score_request
from vieval_plugin.meta_evaluation.gate import fillers
from vieval_plugin.prompts import packs
from vieval_plugin.records import Provenance, Record

REQUEST = (
    'A red cat on a mat.\nReply: {"score": [prompt], "reasoning": "one or two short '
    'sentences"}'
)
REFUSAL = "Bu görseli değerlendiremem."


def record(uid, scores, reasoning, findings=()):
    step = Step(("SC",), Status.OK, scores, reason=reasoning)
    scored = {"SC": min(scores) / 10}
    verdict = Verdict(scored, Status.OK, trace=(step,), findings=findings)
    identity = SampleId("mine", "all", "a", uid)
    return Record(identity, verdict, Provenance("viescore", (), ("SC",)), {})


@pytest.mark.parametrize(
    ("reasoning", "echo"),
    [
        ("One or two short sentences.", True),
        ("a red cat on a mat", True),
        ("A red cat", False),
        ("The cat is blue, not red.", False),
        (REFUSAL, False),
    ],
)
def test_a_reasoning_that_repeats_the_request_is_a_finding(reasoning, echo):
    chat = Chat((Message("user", (REQUEST,)),), ("SC",), reply_schema(1))
    questions = ask_all([score_request(chat)], packs.load("viescore/v1"))
    reply = Text(f'{{"score": [7], "reasoning": "{reasoning}"}}')
    [outcome] = play(questions, [reply]).result
    assert (ECHO in outcome.findings) is echo
    assert outcome.final.scores == (7,)


ZEROS = ((0, 0), REFUSAL)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([ZEROS, ((0, 0), REFUSAL.upper()), ((3, 0), REFUSAL)], [0, 1]),
        ([ZEROS, ((0, 0), "A black picture.")], []),
        ([((7, 8), "Clean."), ((7, 8), "Clean.")], []),
        ([((7, 8), "Clean.", (ECHO,)), ((7, 8), "Good.")], [0]),
        ([((0, 0), ""), ((0, 0), "")], []),
    ],
    ids=["zeros-recur", "zeros-that-differ", "scores-recur", "echo", "no-words"],
)
def test_fillers_are_zeros_with_a_reasoning_that_recurs_and_echoes(rows, found):
    records = [record(str(number), *row) for number, row in enumerate(rows)]
    assert fillers(records) == [records[number] for number in found]
