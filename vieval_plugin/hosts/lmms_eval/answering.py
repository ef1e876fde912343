"""Requests of our tasks and the answers of our models to them: they judge, and hand verdicts back
as the host's results.

Where the environment asks for the cost of a run instead (VIEVAL_PLAN=1), they judge eight samples
and end the process.
"""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NoReturn, TypeAlias, TypeVar

from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts

from vieval_plugin import config
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.config import Backbone, Config
from vieval_plugin.hosts.shutdown import print_lines, tell
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Sample, Status, Verdict
from vieval_plugin.readers.absent_images import require_images
from vieval_plugin.records import fingerprint, response_json
from vieval_plugin.results.documents import read_response
from vieval_plugin.run.answerers import Answerer
from vieval_plugin.run.jobs import Job, JobsSplitByCandidate, announced
from vieval_plugin.run.plan import (
    VARIABLE,
    Pilot,
    is_planned,
    pilot,
    pilot_numbers,
    pilot_of,
    plan,
    to_ask,
)
from vieval_plugin.run.prepare import PreparedJudge, prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import JsonObject

T = TypeVar("T")
JudgeAll: TypeAlias = Callable[[Any, list[Instance]], list[GenerationResult]]


@dataclass(frozen=True, eq=False)  # the host repeats the object: each is a key
class GenerateRequest:
    """Request for images under conditions, all of which are files."""

    #: Sample without an output.
    conditions: Sample
    #: Words of the request.
    prompt: str
    images: int
    #: Number of the prompt in its task.
    number: int
    #: The host's generation arguments.
    generation: JsonObject = field(default_factory=dict)
    #: Called with the host's model and each request's answers, one for each time it was asked,
    #: while the model is there.
    finished: Callable[[Any, Sequence[tuple[GenerateRequest, str]]], None] | None = None


@dataclass(frozen=True, eq=False)
class JudgeRequest:
    """Request to judge a sample or contest."""

    #: Sample or contest.
    judged: Judged
    judge: str
    #: Setting of the judge.
    setting: str
    #: The host's generation arguments, the user's included.
    generation: JsonObject = field(default_factory=dict)
    #: The host's model as tables call it.
    backbone: str = ""
    #: Hash that tells the model from others; empty where the host was given an object.
    model_hash: str = ""


def is_padding(instance: Instance) -> bool:
    """Return whether the host made this request only to give every rank as many; it is
    answered without a call.
    """
    return bool(instance.metadata.get("__padding_only__"))


def requests_of(instances: Sequence[Instance]) -> list[Any]:
    """The real requests among the host's."""
    return [instance.args[2] for instance in instances if not is_padding(instance)]


def requests_with_repeats(instances: Sequence[Instance]) -> list[tuple[Any, int]]:
    """The real requests, each with how often it came before: the host repeats an instance as
    often as --repeats says.
    """
    repeats: defaultdict[Any, Iterator[int]] = defaultdict(count)
    return [(request, next(repeats[request])) for request in requests_of(instances)]


def insert_padding(
    instances: Sequence[Instance], answers: Iterable[T], padding: T
) -> list[T]:
    """The answers to the real requests at the places of their instances."""
    remaining = iter(answers)
    return [
        padding if is_padding(instance) else next(remaining) for instance in instances
    ]


def jobs(
    instances: Sequence[Instance], options: Config, backbone: Backbone | None = None
) -> list[Job]:
    """A job for each real request among the host's; `backbone` is the model, where it is one of the
    options' kind.

    Each repeat is a verdict of its own. VievalError for an image that is not there.
    """
    requests = requests_with_repeats(instances)
    require_images(request.judged for request, _ in requests)
    prepared = functools.cache(
        lambda judge, setting: prepare(judge, setting, options, backbone)
    )
    planned = [
        Job(
            request.judged,
            prepared(request.judge, request.setting),
            repeat,
        )
        for request, repeat in requests
    ]
    if planned:
        world_size = int(os.environ.get("WORLD_SIZE", "1"))
        rank = os.environ.get("RANK", "0")
        share = f" (process {rank} of {world_size})" if world_size > 1 else ""
        print_lines(f"{announced(planned)}{share}")
    return planned


class HostUsage(Usage):
    """Counts of which the host's table of usage gets every call, and which its budget ends."""

    source = "model"

    def count_tokens(self, model: str, input_tokens: int, output_tokens: int) -> None:
        # which loads plugins, this one too, if it is the first of the host's models
        from lmms_eval.models.model_utils.usage_metrics import log_usage

        super().count_tokens(model, input_tokens, output_tokens)
        log_usage(
            model,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            source=self.source,
        )

    def stop_reason(self) -> str:
        from lmms_eval.models.model_utils.usage_metrics import is_budget_exceeded

        return (
            "the token budget (--max_tokens) is used up" if is_budget_exceeded() else ""
        )


class JudgeUsage(HostUsage):
    """Usage of the judge of generated images."""

    source = "judge"


#: Generation arguments that have a meaning of their own here; all others are fields of a request.
OWN_ARGUMENTS = frozenset({"temperature", "max_new_tokens", "until", "do_sample"})


def sampling_of(requests: Sequence[JudgeRequest]) -> Sampling:
    """The --gen_kwargs of a run; VievalError where tasks in it have different ones."""
    arguments = dict(requests[0].generation) if requests else {}
    if any(dict(r.generation) != arguments for r in requests):
        raise VievalError(
            "tasks of one run must have the same generation arguments; run these separately"
        )
    until = arguments.get("until")
    extra = {"stop": until} if until else {}
    return Sampling(
        float(arguments.get("temperature") or 0),
        int(arguments.get("max_new_tokens") or 0) or None,
        {
            **extra,
            **{k: value for k, value in arguments.items() if k not in OWN_ARGUMENTS},
        },
    )


def apply_generation_options(
    backbone: Backbone, requests: Sequence[JudgeRequest]
) -> Backbone:
    """The backbone with what the user gave as --gen_kwargs, of which tasks set none that a server
    takes.
    """
    sampling = sampling_of(requests)
    update: dict[str, Any] = {"extra": {**backbone.extra, **sampling.extra}}
    if requests and "temperature" in requests[0].generation:
        update["temperature"] = sampling.temperature
    if sampling.max_tokens is not None:
        update["max_tokens"] = sampling.max_tokens
    return backbone.model_copy(update=update)


def judged(
    instances: Sequence[Instance],
    answerer: Answerer,
    options: Config,
    backbone: str | None,
    *,
    served_by: Backbone | None = None,
    progress: Progress | None = None,
    bar: bool = False,
) -> list[GenerationResult]:
    """Judge the host's requests by an answerer and print what that cost; results as `results` has
    them.

    Args:
        instances: the host's requests.
        answerer: what answers the judges' questions.
        options: those of the run.
        backbone: the model as tables call it, None where each judge goes by its own name.
        served_by: the model, where it is one of the options' kind.
        progress: counts on from an earlier run of the same model.
        bar: show a progress bar.
    """
    progress = progress or Progress()
    planned = jobs(instances, options, served_by)
    outcomes = dict[int, Outcome]()
    try:
        answerer.judge(
            planned,
            options,
            progress,
            outcomes.__setitem__,
            bar,
        )
    finally:
        tell(progress)
    return results(
        instances,
        planned,
        [outcomes[number] for number in range(len(planned))],
        backbone,
    )


def results(
    instances: Sequence[Instance],
    answered_jobs: Sequence[Job],
    outcomes: Sequence[Outcome],
    backbone: str | None,
) -> list[GenerationResult]:
    """Results of the instances, in order; `backbone` names the model, None lets each judge go by
    its own name.
    """
    answers = (
        GenerationResult(
            response_json(
                job.judged.id,
                outcome.verdict,
                job.judge.by(backbone),
                fingerprint(job.judged),
            ),
            TokenCounts(outcome.input_tokens or None, outcome.output_tokens or None),
        )
        for job, outcome in zip(answered_jobs, outcomes, strict=True)
    )
    return insert_padding(instances, answers, GenerationResult(""))


def plan_by_server(
    jobs: Sequence[Job], options: Config, backbone: Backbone
) -> NoReturn:
    """Tell what a run by a server costs, for each of its judges, and end the process well."""
    by_judge: defaultdict[PreparedJudge, list[Judged]] = defaultdict(list)
    for job in JobsSplitByCandidate(jobs).jobs:
        by_judge[job.judge].append(job.judged)
    for judge, judged in by_judge.items():
        cost = asyncio.run(
            pilot(
                to_ask(judged, judge),
                judge,
                options,
                backbone,
            )
        )
        print_lines(*plan(cost, backbone if judge.asks_a_model else None))
    raise SystemExit(0)


def or_plan(judge_all: JudgeAll) -> JudgeAll:
    """Let a host's model judge, or where the environment asks for it plan in batches and end the
    process.
    """

    @functools.wraps(judge_all)
    def wrapped(model: Any, instances: list[Instance]) -> list[GenerationResult]:
        if not is_planned():
            return judge_all(model, instances)
        by_judge: dict[tuple[str, str], list[Instance]] = defaultdict(list)
        for instance in instances:
            if not is_padding(instance):
                request = instance.args[2]
                by_judge[request.judge, request.setting].append(instance)
        for (judge, _), judged_instances in by_judge.items():
            cost = _pilot(
                judge,
                functools.partial(judge_all, model),
                judged_instances,
            )
            print_lines(*plan(cost, None))
        raise SystemExit(0)

    return wrapped


def refuse_plan(instead: str) -> None:
    """Raise VievalError if the environment asks for a plan that cannot be had;
    `instead` says what can.
    """
    if is_planned():
        raise VievalError(f"{VARIABLE} is set, {instead}")


def _pilot(
    judge: str,
    judge_all: Callable[[list[Instance]], list[GenerationResult]],
    population: Sequence[Instance],
) -> Pilot:
    seed = config.current().statistics.seed
    first, *further = [
        population[number] for number in pilot_numbers(len(population), seed)
    ]
    answers = judge_all([first])
    start = time.monotonic()
    answers += judge_all(further) if further else []
    wall = time.monotonic() - start
    results = list[tuple[Verdict, Usage]]()
    for result in answers:
        _, verdict, _ = read_response(result.text)
        counts = result.token_counts or TokenCounts()
        usage = Usage(
            sum(step.status is not Status.NOT_ASKED for step in verdict.trace),
            input_tokens=counts.input_tokens or 0,
            output_tokens=counts.output_tokens or 0,
        )
        results.append((verdict, usage))
    return pilot_of(
        judge,
        judge_registry.judge(judge).pack is not None,
        seed,
        len(population),
        results,
        wall,
    )
