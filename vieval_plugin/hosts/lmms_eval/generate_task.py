"""The task class in which the host's model makes the images and a judge scores them, all of a
task together.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from lmms_eval.api.instance import Instance

from vieval_plugin import config
from vieval_plugin.api.verdicts import main_aspect
from vieval_plugin.hosts.host_models import output_folders
from vieval_plugin.hosts.lmms_eval import metrics
from vieval_plugin.hosts.lmms_eval.answering import (
    GenerateRequest,
    JudgeRequest,
    JudgeUsage,
    is_padding,
    refuse_plan,
)
from vieval_plugin.hosts.lmms_eval.task import UNCACHED, JudgeTask
from vieval_plugin.hosts.shutdown import print_lines, tell, vieval_errors
from vieval_plugin.hosts.task_data import image_files, rating_of
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Sample, SampleId, Verdict
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.meta_evaluation.statistics import Rating
from vieval_plugin.records import conditions_json
from vieval_plugin.results.documents import read_record, read_response
from vieval_plugin.run.backbones import JUDGE
from vieval_plugin.run.evaluate import provenance_of
from vieval_plugin.run.generated import (
    GeneratedImage,
    add_findings,
    condition_images,
    generated_images,
    judge_generated,
    judged_response,
    missing_image_verdict,
    prompt_of,
    read_answer,
    trusted_folders,
    unjudged_response,
    write_conditions,
)
from vieval_plugin.run.prepare import PreparedJudge, prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.run.summary import failures
from vieval_plugin.text.yaml_json import JsonObject

GENERATE = "vieval_generate"
IMAGE_COUNT_METRIC = "made_count"


class GenerateTask(JudgeTask):
    """A task whose requests are conditions and whose metrics are means of a judge's scores of
    what was made of them.
    """

    @vieval_errors
    def __init__(self, config: dict[str, Any], **kwargs: Any) -> None:
        refuse_plan(
            "but a generate_* task generates images first; unset it, run the task with "
            "--predict_only, then run `vieval score OUTPUT_PATH --plan`"
        )
        self.judged_later = False
        self.verdicts_by_the_model: dict[SampleId, Verdict] = {}
        self.output_folders: tuple[Path, ...] = ()
        super().__init__(config, **kwargs)

    def download(self, dataset_kwargs: Any = None) -> None:
        super().download(dataset_kwargs)
        folder = config.current().generated_folder() / "conditions"
        self.stored_samples = [
            write_conditions(sample, folder)
            for sample in self.samples
            if isinstance(sample, Sample)
        ]

    def override_metric(self, metric_name: str) -> None:
        """The host's --predict_only: images are made now and judged by `vieval score` later."""
        self.judged_later = True

    def doc_to_text(self, doc: JsonObject) -> str:
        return prompt_of(self.stored_samples[doc["number"]])

    def doc_to_target(self, doc: JsonObject) -> str:
        return conditions_json(self.stored_samples[doc["number"]])

    def doc_to_visual(self, doc: JsonObject) -> list[Any]:
        return list(map(decode, condition_images(self.stored_samples[doc["number"]])))

    def doc_to_messages(self, doc: JsonObject, **_rounds: Any) -> list[JsonObject]:
        """The conditions in the form of the host's chat models."""
        content = [{"type": "image", "url": image} for image in self.doc_to_visual(doc)]
        content.append({"type": "text", "text": self.doc_to_text(doc)})
        return [{"role": "user", "content": content}]

    def construct_requests(self, doc_id: int, ctx: str, **kwargs: Any) -> Instance:
        sample = self.stored_samples[doc_id]
        request = GenerateRequest(
            sample,
            ctx,
            config.current().generate.images,
            doc_id,
            dict(self.config.generation_kwargs),
            self._finished,
        )
        arguments = (
            ctx,
            UNCACHED,
            request,
            doc_id,
            self.config.task,
            self.config.test_split,
            (self.doc_to_visual, self.doc_to_messages),
            image_files(sample),
        )
        return Instance(request_type=GENERATE, arguments=arguments, idx=0, **kwargs)

    @cached_property
    def _prepared(self) -> PreparedJudge:
        return prepare(
            self.judge.name,
            self.setting,
            config.current(),
        )

    @property
    def _asks_the_model(self) -> bool:
        """True where the generator judges its own images: the judge asks a model, and the
        options name nobody else.
        """
        if self.judged_later or self.judge.pack is None:
            return False
        return JUDGE not in config.current().backbones

    def _images_of(
        self, request: GenerateRequest, answers: Sequence[str], *tokens: int | None
    ) -> list[GeneratedImage]:
        # the folders whose files an answer may name
        folders = list(self.output_folders)
        if output_path := getattr(getattr(self, "args", None), "output_path", None):
            folders.append(Path(output_path))
        return generated_images(
            request.conditions,
            self._model()[0],
            [read_answer(answer, request.number) for answer in answers],
            request.images,
            trusted_folders(config.current(), *folders),
            tokens,
        )

    def _finished(
        self, model: Any, requests_and_answers: Sequence[tuple[GenerateRequest, str]]
    ) -> None:
        """Take from the model what the host lets go of before it filters: where it saves, and
        its own verdicts.
        """
        self.output_folders = output_folders(model)
        if not self._asks_the_model:
            return
        answers: dict[int, tuple[GenerateRequest, list[str]]] = {}
        for request, answer in requests_and_answers:
            answers.setdefault(request.number, (request, []))[1].append(answer)
        samples = [
            image.sample
            for request in answers.values()
            for image in self._images_of(*request)
            if not image.reason
        ]
        judging = (
            self.judge.name,
            self.setting,
            {"temperature": 0, "until": []},
            *self._model(),
        )
        metadata = {
            "task": self.config.task,
            "doc_id": 0,
            "repeats": 1,
        }
        instances = []
        for sample in samples:
            arguments = ("", UNCACHED, JudgeRequest(sample, *judging))
            instances.append(Instance("vieval_judge", arguments, 0, metadata))
        results = model.vieval_judge(instances)
        for sample, result in zip(samples, results, strict=True):
            response = str(getattr(result, "text", result))
            self.verdicts_by_the_model[sample.id] = read_response(response)[1]

    @vieval_errors
    def apply_filters(self) -> None:
        """Judge all images of a task together, as the host has all answers here."""
        real = [instance for instance in self._instances if not is_padding(instance)]
        requests: list[GenerateRequest] = [instance.args[2] for instance in real]
        images = []
        for request, instance in zip(requests, real, strict=True):
            tokens = [count and count.output_tokens for count in instance.token_counts]
            images.append(self._images_of(request, instance.resps, *tokens))
        responses = self._judged(images)
        for instance in self._instances:
            instance.filtered_resps["none"] = []
        for instance, response in zip(real, responses, strict=True):
            instance.filtered_resps["none"] = response

    def _judged(
        self, images_by_prompt: Sequence[Sequence[GeneratedImage]]
    ) -> list[list[str]]:
        """The responses on the images of each prompt, which say what is to be judged where that
        is done later.
        """
        if self.judged_later:
            judge = self.judge.name, self.setting
            return [
                [unjudged_response(image, *judge) for image in images]
                for images in images_by_prompt
            ]
        flat = list(chain(*images_by_prompt))
        if self._asks_the_model:
            source = self._prepared.by(self._model()[0])
            outcomes = []
            for image in flat:
                missing = missing_image_verdict(image)
                verdict = missing or self.verdicts_by_the_model[image.sample.id]
                outcomes.append(add_findings(image, Outcome(verdict)))
        else:
            options = config.current()
            progress = Progress(JudgeUsage())
            bar = os.environ.get("RANK", "0") == "0"
            source = provenance_of(self._prepared, options, None)
            try:
                outcomes = asyncio.run(
                    judge_generated(flat, self._prepared, options, progress, bar)
                )
            finally:
                tell(progress)
        judged = list(zip(flat, outcomes, strict=True))
        print_lines(*failures((image.sample.id, o.verdict) for image, o in judged))
        texts = iter([judged_response(*pair, source) for pair in judged])
        return [[next(texts) for _ in images] for images in images_by_prompt]

    @vieval_errors
    def process_results(
        self, doc: JsonObject, results: list[Any], full_docs: Any = None
    ) -> JsonObject:
        [responses] = results
        if self.judged_later:
            return {IMAGE_COUNT_METRIC: len(responses)}
        target = self.doc_to_target(doc)
        observations = _Images(
            observe([read_record(response, target)]) for response in responses
        )
        aspect = main_aspect(config.current().judges.narrowed(self.judge).aspects)
        # what the host's --baseline tests; nan, which leaves its test without an answer, where an
        # image has no score
        scores = [image.scores.get(aspect, math.nan) for image in observations]
        score = fmean(scores or [math.nan])
        return {
            "score": score,
            **dict.fromkeys(self._metric_names(), observations),
        }

    def aggregation(self) -> dict[str, metrics.Aggregation]:
        return (
            {IMAGE_COUNT_METRIC: lambda counts: float(sum(counts))}
            if self.judged_later
            # without one of `score`, the host has an empty list of it, which no group can average
            else {"score": _known_mean, **super().aggregation()}
        )

    def higher_is_better(self) -> dict[str, bool | None]:
        return (
            {IMAGE_COUNT_METRIC: None}
            if self.judged_later
            else super().higher_is_better()
        )

    def _rating(self) -> Rating:
        options = config.current()
        return rating_of(
            self.judge, options, self.config.repeats * options.generate.images
        )

    def _aggregate(self, name: str, items: list[Any]) -> metrics.Value:
        return super()._aggregate(name, list(chain(*items)))


def _known_mean(scores: Sequence[float]) -> float | None:
    known = [score for score in scores if not math.isnan(score)]
    return fmean(known) if known else None


class _Images(tuple[Observation, ...]):
    """The observations of one prompt's images, short when the host prints them."""

    __slots__ = ()

    def __str__(self) -> str:
        return "; ".join(map(str, self))


@vieval_errors
def generate(model: Any, instances: list[Instance]) -> list[Any]:
    """`vieval_generate` for every model of the host that has none of its own: by its
    `generate_until`, task by task.
    """
    by_task: dict[str, list[int]] = {}
    for index, instance in enumerate(instances):
        by_task.setdefault(instance.args[4], []).append(index)
    outputs: list[Any] = [""] * len(instances)
    for indices in by_task.values():
        rows = [_row(model, instances[index]) for index in indices]
        texts = model.generate_until(rows)
        for index, text in zip(indices, texts, strict=True):
            outputs[index] = text
    finish(model, instances, outputs)
    return outputs


def finish(model: Any, instances: Sequence[Instance], outputs: Sequence[Any]) -> None:
    """Tell the tasks that want to know, each once, what the model answered."""
    answers_by_task: dict[Any, list[tuple[GenerateRequest, str]]] = {}
    for instance, output in zip(instances, outputs, strict=True):
        request: GenerateRequest = instance.args[2]
        if request.finished and not is_padding(instance):
            text = str(getattr(output, "text", output))
            answers_by_task.setdefault(request.finished, []).append((request, text))
    for finished, pairs in answers_by_task.items():
        finished(model, pairs)


def _row(model: Any, instance: Instance) -> Instance:
    """A request in the form that the model's kind takes."""
    context, _, request, doc_id, task, split, (visuals, messages), _ = instance.args
    generation = dict(request.generation)
    inputs = (generation, visuals) if model.is_simple else (messages, generation)
    return Instance(
        "generate_until", (context, *inputs, doc_id, task, split), 0, instance.metadata
    )
