"""What is told at the end of a run."""

from vieval_plugin.judges.protocol import Status, Step, Verdict
from vieval_plugin.run.progress import Progress


def counted(*verdicts):
    progress = Progress()
    for verdict in verdicts:
        progress.count(verdict)
    return progress


def not_applicable(reason):
    return Verdict({}, Status.NOT_APPLICABLE, trace=(Step(("sample",), Status.NOT_APPLICABLE, reason=reason),))


FAILED = Verdict({}, Status.PARSE_FAILURE, findings=("unreadable answer",))


def test_why_samples_were_not_asked_about_is_told():
    lines = counted(*[not_applicable("it has no image source")] * 3, not_applicable("x" * 9000), FAILED).lines()
    assert [line for line in lines if line.startswith("not asked")] == [
        "not asked: 3, as it has no image source (and 1 other reasons)"
    ]
    assert not [line for line in counted(FAILED).lines() if line.startswith("not asked")]
    assert max(map(len, counted(not_applicable("x" * 9000)).lines())) < 200


def test_counts_of_several_workers_add_up():
    first, second = counted(FAILED), counted(FAILED, not_applicable("no image"))
    first.usage.calls, second.usage.calls, second.usage.retries["timeout"] = 2, 3, 1
    assert (first + second).lines()[:2] == [
        "verdicts: parse_failure 2, not_applicable 1",
        "calls: 5, answered from the store: 0, tokens in: 0, out: 0",
    ]
    assert "tried again: timeout 1" in (first + second).lines()
