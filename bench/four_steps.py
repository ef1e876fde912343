"""A judge of four dependent questions: each sample at its own pace, in waves, or one document after another.

The fake server's latency varies from call to call; the ideal wall time is calls x mean latency /
capacity. Compared in one run: VIEval on the server, VIEval in waves over lmms-eval's `async_openai`
and `openai` with as many requests in flight, and lmms-eval's own way to ask a document several
times, `generate_until_agentic`, over the same models. That one waits for each answer before it
sends the next question of any document, so it runs on fewer documents and its time for all is
extrapolated.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from common import (
    Cost,
    add_server_options,
    conditions,
    costs,
    fake_server,
    first_line,
    in_own_process,
    judged,
    photographs,
    require_ok,
    samples,
    script_parser,
    served,
    table,
)

from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import (
    Chat,
    Message,
    Program,
    Sample,
    Status,
    Text,
    Verdict,
)
from vieval_plugin.judges.spec import EVERY_KIND, JudgeSpec, Needs, NoOptions
from vieval_plugin.records import Provenance
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.runner import judge_in_batches

HOSTS = ("async_openai", "openai")
Way = Callable[[str, Sequence[Path], int], Cost]
QUESTIONS = (
    "What does the picture show?",
    "What was asked for and is not there?",
    "Which of these faults is the worst?",
    "How good is the picture from 0 to 10, all in all?",
)


def question(step: int, answers: Sequence[str]) -> str:
    """The text of a question, which holds all answers so far."""
    form = 'Reply with {"score": [number], "reasoning": "..."}.'
    return "\n".join([*answers, QUESTIONS[step], form])


def judge(sample: Sample) -> Program:
    """Ask the four questions one after another."""
    answers: list[str] = []
    for step in range(len(QUESTIONS)):
        message = Message("user", (sample.images["output"], question(step, answers)))
        [reply] = yield [Chat((message,), (f"step {step}",))]
        if not isinstance(reply, Text):
            return Verdict({}, Status.API_ERROR)
        answers.append(reply.text)
    return Verdict({}, Status.OK)


SPEC = JudgeSpec(
    name="four_steps",
    title="Four questions",
    aspects=(),
    needs={EVERY_KIND: Needs(("output",))},
    options=NoOptions,
    build=lambda options, pack, setting: judge,
)
PREPARED = PreparedJudge(SPEC, judge, Provenance(SPEC.name, (), SPEC.aspects))


def at_own_pace(url: str, files: Sequence[Path], concurrent: int) -> Cost:
    jobs = (Job(sample, PREPARED) for sample in samples(files))
    with costs() as cost:
        progress = asyncio.run(judged(url, jobs, concurrent))
    require_ok(progress, len(files))
    return cost


def host_model(name: str, url: str, concurrent: int) -> Any:
    """lmms-eval's `openai` or `async_openai`; what bounds the requests in flight of the latter
    is called `num_cpus`.
    """
    from lmms_eval.models.chat.async_openai import AsyncOpenAIChat
    from lmms_eval.models.chat.openai import OpenAICompatible

    server = {
        "model_version": "fake",
        "base_url": url,
        "api_key": "none",
    }
    if name == "async_openai":
        return AsyncOpenAIChat(**server, num_cpus=concurrent)
    return OpenAICompatible(**server, num_concurrent=concurrent)


def in_waves(host: str, url: str, files: Sequence[Path], concurrent: int) -> Cost:
    model = host_model(host, url, concurrent)
    from vieval_plugin.hosts.lmms_eval.answering import JudgeRequest
    from vieval_plugin.hosts.lmms_eval.host_model import _HostBackend

    jobs = [Job(sample, PREPARED) for sample in samples(files)]
    requests = [JudgeRequest(job.judged, SPEC.name, SPEC.plain) for job in jobs]
    progress = Progress()
    with costs() as cost:
        answer = _HostBackend(model, requests)(jobs, None, progress.usage)
        judge_in_batches(jobs, answer, progress)
    require_ok(progress, len(jobs))
    return cost


def agentic(host: str, url: str, files: Sequence[Path], concurrent: int) -> Cost:
    model = host_model(host, url, concurrent)
    from lmms_eval.api.instance import Instance
    from lmms_eval.evaluator import _run_generate_until_agentic

    def visual(doc: Sample) -> list[Any]:
        return [decode(doc.images["output"])]

    def text(
        doc: Sample, previous_output: list[str], round_idx: int, **_: Any
    ) -> tuple[Any, ...]:
        if round_idx == len(QUESTIONS):
            return None, None, True, None, None
        return None, question(round_idx, previous_output), False, None, None

    model.task_dict["four"] = {"test": list(samples(files))}
    generation = {"max_new_tokens": 1024, "temperature": 0}
    first = question(0, [])
    requests = []
    for number in range(len(files)):
        arguments = (first, generation, visual, text, number, "four", "test")
        metadata = {"task": "four", "doc_id": number, "repeats": 1}
        requests.append(Instance("generate_until_agentic", arguments, 0, metadata))
    with costs() as cost:
        answers = _run_generate_until_agentic(model, requests)
    assert all("score" in answer for answer in answers), answers
    return cost


def main() -> None:
    parser = script_parser(first_line(__doc__))
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--agentic-samples", type=int, default=10)
    parser.add_argument(
        "--side", type=int, default=64, help="of the pictures in pixels"
    )
    parser.add_argument(
        "--jitter",
        type=float,
        default=0.1,
        help="latency is drawn evenly within so much of its mean",
    )
    add_server_options(parser)
    given = parser.parse_args()
    here = conditions()
    rows = []
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(
            latency=given.latency, jitter=given.jitter, capacity=given.capacity
        ) as url,
    ):
        files = photographs(Path(name), given.samples, given.side)
        fewer = files[: given.agentic_samples]
        ways: list[tuple[str, Way, list[Path]]] = []
        ways.append(("VIEval, each sample at its own pace", at_own_pace, files))
        for host in HOSTS:
            way = partial(in_waves, host)
            ways.append((f"VIEval in waves over `{host}`", way, files))
        for host in HOSTS:
            way = partial(agentic, host)
            ways.append((f"`generate_until_agentic` over `{host}`", way, fewer))
        for who, way, pictures in ways:
            cost = in_own_process(way, url, pictures, given.capacity)
            counted = served(url)
            assert set(counted["statuses"]) == {"200"}, counted
            needed = len(pictures) * len(QUESTIONS)
            ideal = needed * given.latency / given.capacity
            row = [
                who,
                len(pictures),
                needed,
                counted["requests"],
                cost.wall,
                cost.wall / ideal,
                cost.cpu / needed * 1000,
                cost.wall * len(files) / len(pictures),
            ]
            rows.append(row)
    print(
        f"{here}. Pictures of {given.side}x{given.side}; latency {given.latency} s, "
        f"give or take {given.jitter} s.\n"
    )
    columns = {
        "": "",
        "samples": "",
        "needed": "",
        "calls": "",
        "wall s": ".2f",
        "over ideal": ".2f",
        "CPU ms": ".2f",
        f"s for {given.samples}": ".0f",
    }
    table(columns, rows)


if __name__ == "__main__":
    main()
