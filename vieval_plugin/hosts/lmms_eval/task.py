"""The one task class: a benchmark's samples, asked of a judge, compared with human ratings.

What differs between tasks stands in their YAML under `metadata`: benchmark, part, judge and setting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import datasets
from lmms_eval.api.instance import Instance
from lmms_eval.api.task import ConfigurableTask
from lmms_eval.utils import simple_parse_args_string

from vieval_plugin import annotators, config, judging
from vieval_plugin.data import benchmarks
from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.lmms_eval import metrics
from vieval_plugin.hosts.lmms_eval.errors import one_line
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.meta_evaluation import Observation, observe, summarise
from vieval_plugin.records import read_record, target_json

REQUEST_TYPE = "vieval_judge"

# The host's response cache knows nothing of judges, wording or images and keeps failures; it skips what says it samples.
_UNCACHED = {"do_sample": True}


@dataclass(frozen=True)
class JudgeRequest:
    """What an instance asks of a model: judge this sample with this judge in this setting.

    `generation` holds the host's generation arguments, those of --gen_kwargs included. `backbone` is the host's model as
    tables call it, `model_hash` tells it from others; both are empty when the host was not run from its command line.
    """

    sample: Sample
    judge: str
    setting: str
    generation: Mapping[str, Any] = field(default_factory=dict)
    backbone: str = ""
    model_hash: str = ""


class JudgeTask(ConfigurableTask):  # type: ignore[misc]
    """A task whose requests are samples to be judged and whose metrics are agreement with human ratings."""

    @one_line
    def __init__(self, config: dict[str, Any], **kwargs: Any) -> None:
        config = {key: value for key, value in config.items() if key != "class"}
        about = config["metadata"]
        self.benchmark, self.part = about["benchmark"], about["part"]
        self.judge, self.setting = about["judge"], about["setting"]
        self.aspects = judging.aspects(self.judge)
        super().__init__(config=config, **kwargs)

    def download(self, dataset_kwargs: Any = None) -> None:
        """Load samples from the data folder; the host's dataset only numbers them."""
        options = config.current()
        self.samples = benchmarks.samples(options.data_folder(), self.benchmark, self.part, self._uids(options))
        rows = [{"sample": str(sample.id)} for sample in self.samples]
        self.dataset = datasets.DatasetDict({self.config.test_split: datasets.Dataset.from_list(rows)})
        self.dataset_no_image = self.dataset
        self.places = {str(sample.id): sample for sample in self.samples}

    def _uids(self, options: config.Config) -> Path | None:
        """The file that lists the wanted samples, if there is one: the options' own, or that of a task's subset."""
        if not self.config.metadata.get("subset"):
            return options.uids
        if options.judges.cigeval.subset is None:
            raise VievalError(
                f"{self.config.task}: set judges.cigeval.subset to the file that lists its samples "
                "(test_40p.json of the authors' repository, or one uid a line)"
            )
        return options.judges.cigeval.subset

    def doc_to_text(self, doc: dict[str, Any]) -> str:
        return str(doc["sample"])

    def doc_to_target(self, doc: dict[str, Any]) -> str:
        sample = self.places[doc["sample"]]
        return target_json(sample.id, sample.ratings, sample.tags)

    def doc_to_visual(self, doc: dict[str, Any]) -> list[Any]:
        return []

    def fewshot_context(self, doc: dict[str, Any], *args: Any, **kwargs: Any) -> str:
        return self.doc_to_text(doc)

    def construct_requests(self, doc_id: int, ctx: str, **kwargs: Any) -> Instance:
        request = JudgeRequest(
            self.samples[doc_id], self.judge, self.setting, dict(self.config.generation_kwargs), *self._model()
        )
        arguments = (ctx, _UNCACHED, request, doc_id, self.config.task, self.config.test_split)
        return Instance(request_type=REQUEST_TYPE, arguments=arguments, idx=0, **kwargs)

    def _model(self) -> tuple[str, str]:
        """The host's model: a name, and a hash of its arguments, which may hold a key."""
        arguments = getattr(self, "args", None)
        if arguments is None:
            return "", ""
        given = f"{arguments.model} {arguments.model_args} {getattr(arguments, 'force_simple', False)}"
        return _name(arguments), hashlib.sha256(given.encode()).hexdigest()

    def apply_filters(self) -> None:
        """Keep every response of --repeats, where the host's default filter keeps the first."""
        for instance in self._instances:
            instance.filtered_resps["none"] = instance.resps if self.config.repeats > 1 else instance.resps[0]

    @one_line
    def process_results(
        self, doc: dict[str, Any], results: list[str] | list[list[str]], full_docs: Any = None
    ) -> dict[str, Observation]:
        target = self.doc_to_target(doc)
        [given] = results
        responses = given if isinstance(given, list) else [given]
        observation = observe([read_record(response, target) for response in responses])
        return dict.fromkeys(self._metric_names(), observation)

    def aggregation(self) -> dict[str, metrics.Aggregation]:
        return {name: partial(self._aggregate, name) for name in self._metric_names()}

    def higher_is_better(self) -> dict[str, bool | None]:
        return {name: metrics.higher_is_better(name) for name in self._metric_names()}

    def _metric_names(self) -> list[str]:
        benchmark = benchmarks.BENCHMARKS[self.benchmark]
        statistics = tuple(map(str, self._wanted())) if benchmark.annotators else benchmark.statistics
        return metrics.names(self.aspects, self.config.repeats, statistics, judging.gives_intervals(self.judge))

    def _wanted(self) -> tuple[annotators.Wanted, ...]:
        return annotators.of_judge(self.judge, config.current().judges.t2i_eval.explanation_quality)

    @one_line
    def _aggregate(self, name: str, items: list[Observation]) -> metrics.Value:
        benchmark = benchmarks.BENCHMARKS[self.benchmark]
        options = config.current().statistics.options()
        of_task = f"{self.benchmark}/{self.part}"
        if benchmark.statistics:
            from vieval_plugin import alignment

            return metrics.take(alignment.summarise(tuple(items), benchmark.statistics, of_task, options), name)
        if benchmark.annotators:
            found = annotators.summarise(tuple(items), self.aspects, self._wanted(), of_task, options)
            return metrics.take(found, name)
        last = benchmark.added_last.get(self.part)
        return metrics.take(summarise(tuple(items), self.aspects, of_task, last, options), name)


def _name(arguments: Any) -> str:
    """What tables call the host's model: the weights or version it was given, else its registered name."""
    given = simple_parse_args_string(arguments.model_args or "")
    named = next((given[k] for k in ("model_version", "pretrained", "model") if k in given), arguments.model)
    return str(named).rstrip("/").rsplit("/", 1)[-1]
