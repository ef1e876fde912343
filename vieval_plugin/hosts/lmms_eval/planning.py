"""Cost of a run of the host, where the environment asks for that instead of the run: VIEVAL_PLAN=1."""

from __future__ import annotations

import asyncio
import functools
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from lmms_eval.api.instance import GenerationResult, Instance

from vieval_plugin import config
from vieval_plugin.config import Backbone, Config
from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.lmms_eval.answering import is_padding
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Status
from vieval_plugin.results.documents import read_response
from vieval_plugin.run.jobs import Apart, Job
from vieval_plugin.run.plan import VARIABLE, Pilot, Spent, drawn, is_planned, pilot, plan, require_answered, to_ask
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.text.escaping import say

JudgeAll: TypeAlias = Callable[[Any, list[Instance]], list[GenerationResult]]


def plan_by_server(jobs: Sequence[Job], options: Config, backbone: Backbone) -> NoReturn:
    """Tell what a run by a server costs, for each of its judges, and end the process well."""
    by_judge: dict[int, tuple[PreparedJudge, list[Judged]]] = {}
    for job in Apart(jobs).jobs:
        by_judge.setdefault(id(job.judge), (job.judge, []))[1].append(job.judged)
    for judge, judged in by_judge.values():
        cost = asyncio.run(pilot(to_ask(judged, judge), judge, options, backbone))
        _tell(plan(cost, backbone if judge.asks_a_model else None))
    raise SystemExit(0)


def or_plan(judge_all: JudgeAll) -> JudgeAll:
    """Let a host's model judge, or where the environment asks for it plan in batches and end the process."""

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
            _tell(plan(_pilot(judge, functools.partial(judge_all, model), judged_instances), None))
        raise SystemExit(0)

    return wrapped


def refuse_plan(instead: str) -> None:
    """VievalError where the environment asks for a plan that cannot be had; `instead` says what can."""
    if is_planned():
        raise VievalError(f"{VARIABLE} is set, and {instead}")


def _pilot(
    judge: str, judge_all: Callable[[list[Instance]], list[GenerationResult]], population: Sequence[Instance]
) -> Pilot:
    seed = config.current().statistics.seed
    first, *further = [population[number] for number in drawn(len(population), seed)]
    asks = judge_registry.judge(judge).pack is not None
    opening = judge_all([first])
    start = time.monotonic()
    further_results = judge_all(further) if further else []
    wall = time.monotonic() - start
    statuses, reasons, costs = Counter[Status](), list[str](), list[Spent]()
    for result in (*opening, *further_results):
        _, verdict, _ = read_response(result.text)
        statuses[verdict.status] += 1
        reasons += [verdict.reason] if verdict.reason else []
        counts = result.token_counts
        token_counts = (counts.input_tokens, counts.output_tokens) if counts else (None, None)
        tokens_in, tokens_out = (math.nan if count is None else float(count) for count in token_counts)
        costs.append(Spent(len(verdict.trace) if asks else 0, tokens_in, tokens_out, 0.0))
    require_answered(statuses, reasons)
    return Pilot(judge, seed, len(population), costs[0], tuple(costs[1:]), wall, statuses, next(iter(reasons), ""))


def _tell(lines: Sequence[str]) -> None:
    say(*(f"vieval: {line}" for line in lines), file=sys.stderr)
