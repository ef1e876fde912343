"""The task class: a benchmark's samples, asked of a judge, compared with human ratings.

What differs between tasks stands in their YAML under `metadata`: benchmark, part, judge and
setting.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import datasets
from lmms_eval.api.instance import Instance
from lmms_eval.api.task import ConfigurableTask

from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.tasks import Task
from vieval_plugin.hosts.lmms_eval import metrics
from vieval_plugin.hosts.lmms_eval.answering import JudgeRequest
from vieval_plugin.hosts.lmms_eval.model_identity import ModelIdentity
from vieval_plugin.hosts.shutdown import vieval_errors
from vieval_plugin.hosts.task_data import (
    document_of,
    image_files,
    rating_of,
    samples_of,
    text_of,
)
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.meta_evaluation.metrics import higher_is_better, names
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.meta_evaluation.statistics import Rating, Summary, summary_of
from vieval_plugin.records import target_json
from vieval_plugin.results.documents import read_record
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.yaml_json import JsonObject

REQUEST_TYPE = "vieval_judge"

# The host's response cache knows nothing of judges, wording or images and keeps failures; it skips
# what says it samples.
UNCACHED = {"do_sample": True}


class JudgeTask(ConfigurableTask):  # type: ignore[misc]
    """A task whose requests are samples to be judged and whose metrics are agreement with human
    ratings.

    `vieval_model` is the host's model that answers them. `_summarised` is the summary of the
    observations that the host last asked a metric of, with these: it asks once for every metric.
    """

    vieval_model = ModelIdentity()
    _summarised: tuple[list[Observation], StatisticsOptions, Summary] | None = None

    @vieval_errors
    def __init__(self, config: dict[str, Any], **kwargs: Any) -> None:
        config = {key: value for key, value in config.items() if key != "class"}
        metadata = config["metadata"]
        self.benchmark = benchmark_registry.benchmark(metadata["benchmark"])
        self.part = metadata["part"]
        self.judge = judge_registry.judge(metadata["judge"])
        self.setting = metadata.get("setting", "")
        super().__init__(config=config, **kwargs)

    def download(self, dataset_kwargs: Any = None) -> None:
        """Load samples from the data folder; the host's dataset only numbers them."""
        task = Task(
            self.config.task,
            self.benchmark.name,
            self.part,
            self.judge.name,
            self.setting,
        )
        self.samples = samples_of(task, config.current())
        rows = [
            {"number": number, "sample": document_of(sample)}
            for number, sample in enumerate(self.samples)
        ]
        self.dataset = datasets.DatasetDict(
            {self.config.test_split: datasets.Dataset.from_list(rows)}
        )
        self.dataset_no_image = self.dataset

    def doc_to_text(self, doc: JsonObject) -> str:
        return text_of(self.samples[doc["number"]])

    def doc_to_target(self, doc: JsonObject) -> str:
        return target_json(self.samples[doc["number"]])

    def doc_to_visual(self, doc: JsonObject) -> list[Any]:
        return []

    def fewshot_context(self, doc: dict[str, Any], *args: Any, **kwargs: Any) -> str:
        return self.doc_to_text(doc)

    def construct_requests(self, doc_id: int, ctx: str, **kwargs: Any) -> Instance:
        request = JudgeRequest(
            self.samples[doc_id],
            self.judge.name,
            self.setting,
            dict(self.config.generation_kwargs),
            *self._model(),
        )
        arguments = (
            ctx,
            UNCACHED,
            request,
            doc_id,
            self.config.task,
            self.config.test_split,
            image_files(self.samples[doc_id]),
        )
        return Instance(request_type=REQUEST_TYPE, arguments=arguments, idx=0, **kwargs)

    def _model(self) -> tuple[str, str]:
        return self.vieval_model.name, self.vieval_model.hash

    def apply_filters(self) -> None:
        """Keep every response of --repeats, where the host's default filter keeps the first."""
        for instance in self._instances:
            instance.filtered_resps["none"] = (
                instance.resps if self.config.repeats > 1 else instance.resps[0]
            )

    @vieval_errors
    def process_results(
        self,
        doc: JsonObject,
        results: list[str] | list[list[str]],
        full_docs: Any = None,
    ) -> dict[str, Observation]:
        target = self.doc_to_target(doc)
        [answer] = results
        responses = answer if isinstance(answer, list) else [answer]
        observation = observe([read_record(response, target) for response in responses])
        return dict.fromkeys(self._metric_names(), observation)

    def aggregation(self) -> dict[str, metrics.Aggregation]:
        return {name: partial(self._aggregate, name) for name in self._metric_names()}

    def higher_is_better(self) -> dict[str, bool | None]:
        return {name: higher_is_better(name) for name in self._metric_names()}

    def _metric_names(self) -> tuple[str, ...]:
        return (*names(self.benchmark.report, self._rating()), metrics.PRIMARY)

    def _rating(self) -> Rating:
        return rating_of(
            self.judge,
            config.current(),
            self.config.repeats,
        )

    @vieval_errors
    def _aggregate(self, name: str, items: list[Observation]) -> metrics.Value:
        options = config.current().statistics.options()
        if self._summarised is None or self._summarised[:2] != (items, options):
            summary = summary_of(
                self.benchmark.report,
                items,
                self._rating(),
                self.benchmark.name,
                self.part,
                options,
            )
            self._summarised = items, options, summary
        return metrics.take(self._summarised[2], name)
