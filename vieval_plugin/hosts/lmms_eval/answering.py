"""What every model of ours does with the host's requests: judge, and hand verdicts back as the host's results."""

from __future__ import annotations

import atexit
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval.api.instance import GenerationResult, Instance, TokenCounts

from vieval_plugin import judging
from vieval_plugin.config import Config
from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.lmms_eval.task import JudgeRequest
from vieval_plugin.judging import Prepared
from vieval_plugin.live import Job, Progress
from vieval_plugin.records import fingerprint, response_json
from vieval_plugin.scheduler import Outcome


def is_padding(instance: Instance) -> bool:
    """Whether the host made this request only to give every rank as many; it is answered without a call."""
    return bool(instance.metadata.get("__padding_only__"))


def jobs(instances: Sequence[Instance], options: Config) -> tuple[list[JudgeRequest], list[Job], dict[Any, Prepared]]:
    """The real requests among the host's, a job for each, and the judges they need.

    The host repeats an instance as often as --repeats says; each time is a verdict of its own.
    """
    requests: list[JudgeRequest] = [instance.args[2] for instance in instances if not is_padding(instance)]
    prepared = {(r.judge, r.setting): judging.prepare(r.judge, r.setting, options) for r in requests}
    seen: Counter[int] = Counter()
    made = []
    for request in requests:
        made.append(Job(request.sample, prepared[request.judge, request.setting].judge, seen[id(request)]))
        seen[id(request)] += 1
    return requests, made, prepared


@dataclass(frozen=True)
class Generation:
    """What the user gave as --gen_kwargs; None where nothing was."""

    temperature: float | None
    max_tokens: int | None
    extra: dict[str, Any]


def generation_of(requests: Sequence[JudgeRequest]) -> Generation:
    """The --gen_kwargs of a run; VievalError where tasks in it have different ones."""
    given = dict(requests[0].generation) if requests else {}
    if any(dict(r.generation) != given for r in requests):
        raise VievalError("tasks with different generation arguments in one run; run them one after another")
    passed = ("top_p", "top_k", "seed", "repetition_penalty", "presence_penalty")
    return Generation(
        float(given["temperature"]) if given.get("temperature") else None,
        int(given["max_new_tokens"]) if given.get("max_new_tokens") else None,
        {name: given[name] for name in passed if name in given},
    )


def tell(progress: Progress) -> None:
    """Print what a run cost; that calls failed is said again at the very end, below the host's tables."""
    print("\n".join(f"vieval: {line}" for line in progress.lines()), file=sys.stderr)
    if progress.failed_calls:
        atexit.register(_tell_failures, progress.failed_calls, progress.statuses.total())


def _tell_failures(failed: int, total: int) -> None:
    print(f"vieval: {failed} of {total} verdicts lack a score because calls FAILED (see above)", file=sys.stderr)


def results(
    instances: Sequence[Instance],
    requests: Sequence[JudgeRequest],
    outcomes: Sequence[Outcome],
    prepared: dict[Any, Prepared],
    backbone: str | None,
) -> list[GenerationResult]:
    """One result an instance, in order; `backbone` names the model, None lets each judge go by its own name."""
    answered = iter(zip(requests, outcomes, strict=True))
    return [GenerationResult("") if is_padding(i) else _result(*next(answered), prepared, backbone) for i in instances]


def _result(
    request: JudgeRequest, outcome: Outcome, prepared: dict[Any, Prepared], backbone: str | None
) -> GenerationResult:
    provenance = prepared[request.judge, request.setting].by(request.judge if backbone is None else backbone)
    tokens = TokenCounts(outcome.input_tokens or None, outcome.output_tokens or None)
    return GenerationResult(
        response_json(request.sample.id, outcome.verdict, provenance, fingerprint(request.sample)), tokens
    )
