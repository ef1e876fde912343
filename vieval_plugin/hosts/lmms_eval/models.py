"""lmms-eval models that judge by themselves: recorded verdicts, and image metrics that need no backbone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms
from tqdm import tqdm

from vieval_plugin import config, judging, replay
from vieval_plugin.backends.measure import measure
from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.lmms_eval.errors import one_line
from vieval_plugin.hosts.lmms_eval.task import JudgeRequest
from vieval_plugin.judges.protocol import Ask, Measure, Reply
from vieval_plugin.records import Provenance, response_json
from vieval_plugin.scheduler import run_in_waves


class _JudgingOnly(lmms):  # type: ignore[misc]
    """What both have in common: they answer our requests and no others."""

    is_simple = True

    def generate_until(self, requests: list[Instance]) -> list[str]:
        raise SystemExit(f"vieval: {type(self).__name__} answers tasks of VIEval only; `vieval tasks` lists them")

    loglikelihood = generate_until_multi_round = generate_until


class VievalReplay(_JudgingOnly):
    """Recorded verdicts as a judge: `--model vieval_replay --model_args name=...,logs=FOLDER`."""

    @one_line
    def __init__(self, name: str = "", logs: str = "", **kwargs: Any) -> None:
        super().__init__()
        if not name or not logs:
            raise VievalError(
                "vieval_replay needs --model_args name=<what tables call the judge>,logs=<folder of recorded verdicts>"
            )
        self.name, self.logs = str(name), Path(logs).expanduser()
        self.recordings: dict[str, replay.Recording] = {}

    @one_line
    def vieval_judge(self, requests: list[Instance]) -> list[str]:
        return [self._answer(instance.args[2]) for instance in tqdm(requests, desc="Replaying", unit="sample")]

    def _answer(self, request: JudgeRequest) -> str:
        if request.judge not in self.recordings:
            self.recordings[request.judge] = replay.load(self.logs, request.judge)
        verdict, recorded = self.recordings[request.judge].verdict(request.sample.id)
        if recorded is None:
            recorded = Provenance(request.judge, request.setting, judging.aspects(request.judge), pack="as recorded")
        options = config.current()
        provenance = replace(recorded, backbone=self.name, config_hash=options.hash, recorded=True)
        return response_json(request.sample.id, verdict, provenance)


class VievalMeasure(_JudgingOnly):
    """Image metrics that need no weights: `--model vieval_measure`, for the tasks of auto-metric judges."""

    @one_line
    def vieval_judge(self, requests: list[Instance]) -> list[str]:
        options = config.current()
        asked: list[JudgeRequest] = [instance.args[2] for instance in requests]
        prepared = {(r.judge, r.setting): judging.prepare(r.judge, r.setting, options) for r in asked}
        programs = [prepared[r.judge, r.setting].judge(r.sample) for r in asked]
        with ThreadPoolExecutor() as pool:
            verdicts = run_in_waves(programs, lambda asks: _measure_all(asks, pool.map))
        provenance = {key: p.by(key[0]) for key, p in prepared.items()}
        return [
            response_json(request.sample.id, verdict, provenance[request.judge, request.setting])
            for request, verdict in zip(asked, verdicts, strict=True)
        ]


def _measure_all(asks: list[Ask], mapped: Callable[..., Any]) -> list[Reply]:
    for ask in asks:
        if not isinstance(ask, Measure):
            raise VievalError(
                "vieval_measure only measures images; this judge asks a model: run it with another --model"
            )
    return list(tqdm(mapped(measure, asks), total=len(asks), desc="Measuring", unit="image"))
