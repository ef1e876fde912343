"""The second role: scoring one's own images, from Python."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.refusals import refuses
from vieval_plugin import (
    Backbone,
    Image,
    Progress,
    Sample,
    SampleId,
    Status,
    config,
    evaluate,
    evaluate_async,
)
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.judges.protocol import Step, Verdict
from vieval_plugin.records import unjudged
from vieval_plugin.run.summary import ScoreSummary, failures


def evaluated(samples, server, **more):
    backbone = Backbone(model="fake", base_url=server.base_url)
    return evaluate(samples, backbone=backbone, **more)


def test_verdicts_come_in_the_samples_order(store, server):
    samples = vieval_demo.load(Path(), "tig")[:8]
    together = evaluated(samples, server)
    assert together == [evaluated([sample], server)[0] for sample in samples]
    assert {verdict.status for verdict in together} == {Status.OK}
    assert all(set(verdict.scores) == {"SC", "PQ", "O"} for verdict in together)


async def test_evaluate_async_runs_in_a_loop(store, server):
    backbone = Backbone(model="fake", base_url=server.base_url)
    samples = vieval_demo.load(Path(), "cig")[:1]
    [verdict] = await evaluate_async(samples, backbone=backbone)
    assert verdict.status is Status.OK
    assert asyncio.get_running_loop().is_running()


def test_what_a_judge_lacks_is_named(store):
    samples = vieval_demo.load(Path(), "tig")[:1]
    refuses("backbone 'judge' is not configured", evaluate, samples)
    unknown = "unknown setting '1shot' of vqascore; it has no settings"
    refuses(unknown, evaluate, samples, judge="vqascore", setting="1shot")


@pytest.mark.parametrize("name", ["nowhere.png", "x" * 5000, "a\0b"])
def test_a_missing_image_is_its_samples_failure(store, server, name):
    [whole] = vieval_demo.load(Path(), "tig")[:1]
    identity = SampleId("own", "tig", "m", "1")
    lacking = Sample(identity, {"output": Image(Path(name))}, {"prompt": "x"})
    verdicts = evaluated([lacking, whole], server)
    assert [verdict.status for verdict in verdicts] == [Status.NO_IMAGE, Status.OK]
    assert re.fullmatch("missing output image: .{1,300}", verdicts[0].trace[0].reason)
    # with the one that asks whether schemas are enforced
    assert server.stats()["requests"] == 3


def test_progress_counts_what_a_run_cost(store, server):
    progress = Progress()
    samples = vieval_demo.load(Path(), "tig")[:3]
    evaluated(samples, server, progress=progress, options=config.current())
    assert progress.usage.calls == 7  # one of them asks whether schemas are enforced
    assert progress.usage.input_tokens > 0
    assert progress.statuses == {Status.OK: 3}


def test_a_sample_without_an_output_is_no_image(store):
    lacking = [
        Sample(SampleId("own", "tig", "m", str(n)), {}, texts)
        for n, texts in enumerate(({"prompt": "x"}, {}))
    ]
    first, second = evaluate(lacking, judge="vqascore")
    statuses = (first.status, second.status)
    assert statuses == (Status.NO_IMAGE, Status.NOT_APPLICABLE)
    assert first.scores == second.scores == {}
    reason = "the sample has no output or frame_0 or view_0 image"
    assert first.trace[0].reason == reason


def test_a_summary_begins_with_the_best(store):
    samples = vieval_demo.load(Path(), "tig")[:3]
    summary = ScoreSummary(("PQ",))
    verdicts = evaluate(samples, judge="sharpness")
    for sample, verdict in zip(samples, verdicts, strict=True):
        summary.add(sample.id, verdict)
    _, columns, *rows = summary.lines()
    assert columns.split() == ["image", "model", "PQ"]
    means = dict(row.split()[:2] for row in rows)
    best = max(means, key=means.get)
    answer = summary.answer("sharpness")
    assert answer.startswith(f"sharpness, mean PQ: {best} {means[best]}, ")


def test_what_befell_the_first_failed_sample_is_told():
    trace = (Step(("sample",), Status.TOOL_ERROR, reason="no\ntext"),)
    failed = Verdict({}, Status.TOOL_ERROR, trace=trace)
    first, second = (sample.id for sample in vieval_demo.load(Path(), "tig")[:2])
    found = failures([(first, failed), (second, failed)])
    assert found == [f"tool_error 2, first: {first}: no text"]
    assert failures([(first, Verdict({}, Status.OK))]) == []


def test_a_sample_without_a_kind_has_a_line():
    summary = ScoreSummary(("O",))
    summary.add(SampleId("own", "tig", "m", "1"), Verdict({"O": 0.5}, Status.OK))
    lacking = unjudged(Status.NOT_APPLICABLE, "the sample has no prompt text")
    summary.add(SampleId("own", "", "m", "2"), lacking)
    rows = [line.split() for line in summary.lines()[2:4]]
    assert rows == [["tig", "0.500", "0"], ["-", "-", "1"]]


def test_a_mean_over_images_is_called_so():
    """A ranking averages over the images of a prompt first."""
    summary = ScoreSummary(("O",))
    for draw, score in enumerate((0.2, 0.6)):
        sample_id = SampleId("own", "tig", "m", "1", draw)
        summary.add(sample_id, Verdict({"O": score}, Status.OK))
    assert summary.answer("viescore") == "viescore, mean O over images: m 0.400"
