"""lmms-eval models of ours: recorded verdicts, image metrics, and models that judges ask."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from accelerate import PartialState
from lmms_eval.api.instance import GenerationResult, Instance
from lmms_eval.api.model import lmms
from tqdm import tqdm

from vieval_plugin import config
from vieval_plugin.backends.local.huggingface import TransformersBackend
from vieval_plugin.backends.local.vllm import VLLMBackend
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.tasks import Task
from vieval_plugin.config import Config
from vieval_plugin.hosts.host_models import (
    ForeignHost,
    given_backbone,
    scorer_options,
)
from vieval_plugin.hosts.lmms_eval.answerable import Why, answering
from vieval_plugin.hosts.lmms_eval.answering import (
    HostUsage,
    JudgeRequest,
    apply_generation_options,
    insert_padding,
    jobs,
    judged,
    or_plan,
    plan_by_server,
    refuse_plan,
    requests_of,
    requests_with_repeats,
    sampling_of,
)
from vieval_plugin.hosts.shutdown import print_lines, vieval_errors
from vieval_plugin.judges.contests import Judged
from vieval_plugin.records import response_json
from vieval_plugin.results import replay
from vieval_plugin.run.answerers import (
    Answerer,
    EngineAnswerer,
    MetricAnswerer,
    ServerAnswerer,
)
from vieval_plugin.run.plan import is_planned
from vieval_plugin.run.progress import Progress
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import path_of
from vieval_plugin.text.wording import plural

HOST = ForeignHost(
    "vieval_openai",
    "--model_args model=...,base_url=...",
    "lmms-eval writes model arguments into its results",
)


class OwnModel(lmms):  # type: ignore[misc]
    """Base of our models: they answer our requests and no others."""

    is_simple = True
    accepted_tasks = "VIEval's tasks; `vieval tasks` lists them"
    #: Generation arguments that it uses; None for all that its server or engine takes.
    generation_arguments: ClassVar[frozenset[str] | None] = frozenset()
    #: Options of the host that every model is given, and that this one does not use.
    unused_arguments: ClassVar[tuple[str, ...]] = ("batch_size", "device")

    def __init__(self, **host_arguments: Any) -> None:
        """Ignore the arguments that the host passes to every model (batch size, device)."""
        super().__init__()

    @property
    def device(self) -> Any:
        """Device on which the host counts requests when there are several processes."""
        return PartialState().device

    def generate_until(self, requests: list[Instance]) -> list[str]:
        raise VievalError(f"{type(self).__name__} supports only {self.accepted_tasks}")

    loglikelihood = generate_until_multi_round = generate_until


class VievalReplay(OwnModel):
    """Recorded verdicts as a judge: `--model vieval_replay --model_args name=...,logs=FOLDER`.

    `name` is the judge's label in tables (default: each judge's own name). Where a folder has logs
    of several models for one judge, it selects the model.
    """

    @vieval_errors
    def __init__(self, name: str = "", logs: str = "", **host_arguments: Any) -> None:
        super().__init__()
        if not logs:
            raise VievalError(
                "vieval_replay requires --model_args name=<label in tables>,logs=<folder of "
                "verdicts>"
            )
        self.name = str(name)
        self.logs = path_of(str(logs))
        self._recording = cache(
            lambda judge, setting: replay.load(
                self.logs,
                judge,
                self.name,
                setting,
            )
        )
        answering(self, self._unsupported_reason)

    def _unsupported_reason(self, task: Task) -> Why | None:
        recording = self._recording(task.judge, task.setting)
        missing = recording.lacks(task.benchmark, task.part)
        if not missing or self._has_candidates(recording, task):
            return None
        return Why(
            f"{self.logs} has no verdicts for them",
            missing,
            recording.covers(task.benchmark),
        )

    @staticmethod
    def _has_candidates(recording: replay.Recording, task: Task) -> bool:
        """True where the logs cover another benchmark whose images are this task's candidates."""
        if not recording.covered:
            return False
        try:
            judged = benchmark_registry.samples(
                task.benchmark, task.part, config.current().data_folder()
            )
        except VievalError:  # whoever runs the task is told
            return False
        return any(recording.has_candidates(contest) for contest in judged[:1])

    @vieval_errors
    def vieval_judge(self, requests: list[Instance]) -> list[str]:
        refuse_plan("but a replay is free; unset it")
        self._tell_uncovered(requests_of(requests))
        progress = Progress()
        with_repeats = requests_with_repeats(requests)
        answers = [
            self._answer(request, repeat, progress)
            for request, repeat in tqdm(with_repeats, desc="Replaying", unit="sample")
        ]
        self._say(*progress.verdict_lines())
        return insert_padding(requests, answers, "")

    def _tell_uncovered(self, requests: Sequence[JudgeRequest]) -> None:
        """Say before the start what the logs do not cover; VievalError where they cover nothing
        of a task.
        """
        by_judge = defaultdict[tuple[str, str], list[Judged]](list)
        for request in requests:
            by_judge[request.judge, request.setting].append(request.judged)
        uncovered: list[str] = []
        lines: dict[str, None] = {}
        for judge, samples in by_judge.items():
            recording = self._recording(*judge)
            uncovered += recording.uncovered(samples)
            lines |= dict.fromkeys(recording.unread_lines)
        if uncovered:
            self._say(
                f"not in {self.logs}, so counted as missing: {', '.join(uncovered)}"
            )
        if lines:
            first, *others = lines
            more = f" (and {plural(len(others), 'more line')})" if others else ""
            self._say(f"{first}{more}; such verdicts are missing or count as failures")

    def _answer(self, request: JudgeRequest, repeat: int, progress: Progress) -> str:
        judge = request.judge, request.setting
        verdict, provenance = replay.replayed(
            self._recording(*judge),
            request.judged,
            repeat,
            *judge,
            self.name,
            config.current(),
        )
        progress.count(verdict)
        return response_json(request.judged.id, verdict, provenance)

    def _say(self, *lines: str) -> None:
        if self.rank == 0:
            print_lines(*lines)


class _JudgingModel(OwnModel):
    """A model that judges by an answerer; `label` is what tables call it, None where each judge
    goes by its own name.
    """

    answerer: Answerer
    options: Config
    label: str | None = None
    progress: Progress | None = None

    @vieval_errors
    @or_plan
    def vieval_judge(self, instances: list[Instance]) -> list[GenerationResult]:
        return judged(
            instances,
            self.answerer_of(requests_of(instances)),
            self.options,
            self.label,
            progress=self.progress,
            bar=self.rank == 0,
        )

    def answerer_of(self, requests: Sequence[JudgeRequest]) -> Answerer:
        """Answerer of these requests, with what the user gave as generation arguments where it
        takes any.
        """
        return self.answerer


class VievalScorer(_JudgingModel):
    """Image metrics, of pixels and by networks: `--model vieval_scorer --model_args
    name=...,revision=...,device=...`.

    `name` is a name on the hub, a folder or a file of weights, or one of the options' scorers.
    Without it each judge's scorer is that of the options, or of the judge's definition.
    """

    unused_arguments = ()

    @vieval_errors
    def __init__(
        self,
        name: str = "",
        batch_size: Any = None,
        device: Any = None,
        max_batch_size: Any = None,
        **fields: Any,
    ) -> None:
        super().__init__()
        # the host says 1 where nothing was asked for
        images_at_once = int(batch_size) if str(batch_size).isdecimal() else 0
        if device is None and PartialState().num_processes > 1:
            device = str(PartialState().device)  # each process has its own
        scorer = {
            "model": str(name),
            "batch_size": images_at_once if images_at_once > 1 else None,
            "device": device,
            **fields,
        }
        self.label = Path(str(name)).name or None
        self.options = scorer_options(scorer)
        self.answerer = MetricAnswerer(Scorers(self.options.scorers))


class VievalOpenAI(OwnModel):
    """An OpenAI-compatible server as the judge's backbone, each sample at its own pace.

    `--model vieval_openai --model_args
    model=NAME,base_url=http://127.0.0.1:8000/v1,num_concurrent=32`; several addresses are separated
    by `;`. Every field of a backbone in the options file can be given, or none: then
    `backbones.judge` of that file is used. The key comes from the environment, because the host
    writes its arguments into the results.
    """

    generation_arguments = None

    @vieval_errors
    def __init__(
        self,
        batch_size: Any = None,
        device: Any = None,
        max_batch_size: Any = None,
        **fields: Any,
    ) -> None:
        super().__init__()
        self.options = config.current()
        self.backbone = given_backbone(fields, self.options.backbones, HOST)

    @vieval_errors
    def vieval_judge(self, instances: list[Instance]) -> list[GenerationResult]:
        backbone = apply_generation_options(self.backbone, requests_of(instances))
        if is_planned():
            plan_by_server(
                jobs(instances, self.options, backbone), self.options, backbone
            )
        return judged(
            instances,
            ServerAnswerer(backbone),
            self.options,
            self.backbone.model,
            served_by=backbone,
            progress=Progress(HostUsage()),
            bar=self.rank == 0,
        )


class _InProcess(_JudgingModel):
    """A model in this process that answers in batch steps; subclasses name the backend."""

    generation_arguments: ClassVar[frozenset[str] | None] = None
    unused_arguments = ("device",)
    load: ClassVar[Callable[..., VLLMBackend | TransformersBackend]]

    @vieval_errors
    def __init__(
        self,
        model: str = "",
        batch_size: Any = None,
        device: Any = None,
        max_batch_size: Any = None,
        **arguments: Any,
    ) -> None:
        super().__init__()
        if not model:
            raise VievalError(
                f"{type(self).__name__} requires --model_args model=<folder or name on the Hugging Face Hub>"
            )
        if batch_size and "batch_size" in inspect.signature(type(self).load).parameters:
            arguments["batch_size"] = int(batch_size)
        self.options = config.current()
        self.progress = Progress(HostUsage())
        self.label = Path(model).name
        self.answerer = self.engine = EngineAnswerer(type(self).load, model, arguments)
        self.engine.load(self.options)

    def answerer_of(self, requests: Sequence[JudgeRequest]) -> Answerer:
        self.engine.sampling = sampling_of(requests)
        return self.engine


class VievalVLLM(_InProcess):
    """vLLM in this process as the judge's backbone: `--model vieval_vllm --model_args
    model=FOLDER_OR_NAME,...`.

    `max_pixels` makes larger images smaller; every other argument goes to `vllm.LLM` as it is.
    """

    load = VLLMBackend


class VievalTransformers(_InProcess):
    """transformers in this process, for exact likelihoods: `--model vieval_transformers
    --model_args model=...`.

    Arguments go to `from_pretrained` as they are; `--batch_size` is how many questions go through
    the model at once.
    """

    generation_arguments = frozenset({"temperature", "max_new_tokens"})
    load = TransformersBackend
