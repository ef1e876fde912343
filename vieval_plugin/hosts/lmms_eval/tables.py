"""The host's own tables of our tasks: the primary metric of each, and samples with their scores for
Weights and Biases.

The results file has all numbers; the host has no setting for any of it, so two functions of it are
wrapped.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.hosts.lmms_eval.metrics import Remark
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.meta_evaluation.metrics import (
    REMARKS,
    higher_is_better,
    host_table_cell,
    primary_statistic,
)
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.text.yaml_json import JsonObject

_FILTER = ",none"
_REMARKS = f"{REMARKS}{_FILTER}"
_NOTE = """

VIEval: n is the number of cases behind a metric; it leaves out samples without that score. The
results file has all other metrics. For a page, run `vieval report DIR --out REPORT` on the DIR of
--output_path; it requires --log_samples."""


def install() -> None:
    """Wrap the host's functions wherever a run looks for them. Doing it twice changes nothing."""
    from lmms_eval import utils
    from lmms_eval.loggers.wandb_logger import WandbLogger

    if getattr(utils.make_table, "from_vieval", False):
        return
    make = utils.make_table
    generate_dataset = WandbLogger._generate_dataset

    def make_table(
        document: Any, column: str = "results", *args: Any, **kwargs: Any
    ) -> Any:
        ours = any(
            isinstance(row.get(_REMARKS), Remark) for row in document[column].values()
        )
        note = _NOTE if ours and column == "results" else ""
        rows = primary_metrics(document, column)
        return make(rows, column, *args, **kwargs) + note

    def _generate_dataset(
        self: Any, data: Sequence[Mapping[str, Any]], config: Mapping[str, Any]
    ) -> Any:
        if not _is_ours(config):
            return generate_dataset(self, data, config)
        from pandas import DataFrame

        return DataFrame([row for sample in data for row in sample_rows(sample)])

    make_table.from_vieval = True  # type: ignore[attr-defined]
    for name in ("lmms_eval.utils", "lmms_eval.evaluator", "lmms_eval.__main__"):
        if hasattr(sys.modules.get(name), "make_table"):
            setattr(sys.modules[name], "make_table", make_table)  # noqa: B010
    WandbLogger._generate_dataset = _generate_dataset


def primary_metrics(document: JsonObject, column: str) -> JsonObject:
    """The results document with one metric of each task and group of ours, its interval, n and
    failures in one cell.
    """
    rows = dict(document[column])
    better = dict(document.get("higher_is_better", {}))
    for name, row in rows.items():
        if isinstance(remarks := row.get(_REMARKS), Remark):
            metric = primary_statistic(remarks.summary.statistics).metric
            columns = {
                key: row[key]
                for key in row
                if key == "alias" or key.startswith("paired_")
            }  # of --baseline
            rows[name] = {
                **columns,
                f"{metric}{_FILTER}": host_table_cell(remarks.summary),
            }
            better[name] = {metric: higher_is_better(metric)}
    return {**document, column: rows, "higher_is_better": better}


def _is_ours(task_config: Mapping[str, Any]) -> bool:
    metadata = task_config.get("metadata")
    fields = (
        metadata if isinstance(metadata, Mapping) else {}
    )  # other tasks have lists there
    is_judged = fields.get("judge") in judge_registry.judges()
    return is_judged and fields.get("benchmark") in benchmark_registry.benchmarks()


def sample_rows(sample: Mapping[str, Any]) -> list[JsonObject]:
    """Rows of a logged sample, an image each: identity, status, scores, and the means of its
    ratings by people.
    """
    logged = next(
        (value for value in sample.values() if isinstance(value, (Observation, tuple))),
        (),
    )
    shared = {
        "id": sample["doc_id"],
        "response": str(sample["filtered_resps"]),
    }
    rows = []
    for image in [logged] if isinstance(logged, Observation) else logged:
        ratings = {
            f"{aspect}_rating": fmean(values)
            for aspect, values in image.ratings.items()
            if values
        }
        identity = {
            "image_model": image.image_model,
            "uid": image.uid,
            "status": str(image.status),
        }
        rows.append({**shared, **identity, **image.scores, **ratings})
    return rows or [shared]
