"""The host's own tables of our tasks: the primary metric of each, averages over a part of a group under their own names,
and samples with their scores for Weights and Biases.

The results file has all numbers; the host has no setting for any of it, so three functions of it are wrapped.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.hosts.lmms_eval.answerable import PartOfGroup
from vieval_plugin.hosts.lmms_eval.metrics import Remark, remark
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.meta_evaluation.metrics import (
    REMARKS,
    higher_is_better,
    in_host_table,
    partial_name,
    primary_statistic,
)
from vieval_plugin.meta_evaluation.observations import Observation

_OF = "vieval_part_of"
_FILTER = ",none"
_REMARKS = f"{REMARKS}{_FILTER}"
_REST = """

VIEval: n is what the number rests on; failed samples have no score. All other metrics are in the
results file; with --output_path DIR --log_samples, `vieval report DIR --out REPORT` makes a page."""


def install() -> None:
    """Wrap the host's functions wherever a run looks for them. Doing it twice changes nothing."""
    from lmms_eval import evaluator, utils
    from lmms_eval.loggers.wandb_logger import WandbLogger

    if getattr(utils.make_table, "of_vieval", False):
        return
    make, consolidate = utils.make_table, evaluator.consolidate_group_results
    generate_dataset = WandbLogger._generate_dataset

    def make_table(document: Any, column: str = "results", *arguments: Any, **named: Any) -> Any:
        ours = any(isinstance(row.get(_REMARKS), Remark) for row in document[column].values())
        rest = _REST if ours and column == "results" else ""
        return make(primary_metrics(document, column), column, *arguments, **named) + rest

    def consolidate_group_results(results: Any, versions: Any, task_dict: Any, *arguments: Any, **named: Any) -> Any:
        host_results = consolidate(results, versions, task_dict, *arguments, **named)
        rename_partial(host_results[0], task_dict)
        return host_results

    def _generate_dataset(self: Any, data: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> Any:
        if not _is_ours(config):
            return generate_dataset(self, data, config)
        from pandas import DataFrame

        return DataFrame([row for sample in data for row in sample_rows(sample)])

    make_table.of_vieval = True  # type: ignore[attr-defined]
    for name in ("lmms_eval.utils", "lmms_eval.evaluator", "lmms_eval.__main__"):
        if hasattr(sys.modules.get(name), "make_table"):
            setattr(sys.modules[name], "make_table", make_table)  # noqa: B010
    evaluator.consolidate_group_results = consolidate_group_results
    WandbLogger._generate_dataset = _generate_dataset


def group_config(group: Mapping[str, Any], part: PartOfGroup) -> dict[str, Any]:
    """The host's configuration of a group, less the members that are not run."""
    metadata = {**(group.get("metadata") or {}), _OF: part.coverage()}
    return {
        **group,
        "task": list(part.members),
        "group_alias": f"{part.group} ({part.coverage()})",
        "metadata": metadata,
    }


def rename_partial(results: dict[str, dict[str, Any]], groups: Mapping[Any, Any]) -> None:
    """Give the averages of groups of which a part was run the names of such averages."""
    for group in groups:
        metadata = getattr(group, "config", {}).get("metadata")
        coverage = metadata.get(_OF) if isinstance(metadata, Mapping) else None
        if coverage is None:
            continue
        row = results[group.group_name]
        renamed = {_renamed(key): value for key, value in row.items()}
        renamed[_REMARKS] = remark(f"over {coverage}; {renamed[_REMARKS]}", renamed[_REMARKS])
        results[group.group_name] = renamed


def _renamed(key: str) -> str:
    """A key of the host: a metric's name, perhaps with `_stderr`, and the filter; the host's own keys have none."""
    name, comma, filtered = key.partition(",")
    if not comma:
        return key
    end = next((end for end in ("_stderr_clustered", "_stderr_clt", "_stderr") if name.endswith(end)), "")
    return partial_name(name.removesuffix(end)) + end + comma + filtered


def primary_metrics(document: Mapping[str, Any], column: str) -> dict[str, Any]:
    """The results document with one metric of each task and group of ours, its interval, n and failures in one cell."""
    rows, better = dict(document[column]), dict(document.get("higher_is_better", {}))
    for name, row in rows.items():
        if isinstance(remarks := row.get(_REMARKS), Remark):
            metric = primary_statistic(remarks.summary.statistics).metric
            partial = f"{partial_name(metric)}{_FILTER}" in row
            shown = partial_name(metric) if partial else metric
            columns = {key: row[key] for key in row if key == "alias" or key.startswith("paired_")}  # of --baseline
            rows[name] = {**columns, f"{shown}{_FILTER}": in_host_table(remarks.summary)}
            better[name] = {shown: higher_is_better(shown)}
    return {**document, column: rows, "higher_is_better": better}


def _is_ours(task_config: Mapping[str, Any]) -> bool:
    metadata = task_config.get("metadata")
    if not isinstance(metadata, Mapping):  # other tasks have lists there
        return False
    return (
        metadata.get("benchmark") in benchmark_registry.benchmarks()
        and metadata.get("judge") in judge_registry.judges()
    )


def sample_rows(sample: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of a logged sample, an image each: identity, status, scores, and the means of its ratings by people."""
    logged = next((value for value in sample.values() if isinstance(value, (Observation, tuple))), ())
    images = [logged] if isinstance(logged, Observation) else logged
    shared = {"id": sample["doc_id"], "response": str(sample["filtered_resps"])}
    return [
        {
            **shared,
            "image_model": image.image_model,
            "uid": image.uid,
            "status": str(image.status),
            **image.scores,
            **{f"{aspect}_rating": sum(values) / len(values) for aspect, values in image.ratings.items() if values},
        }
        for image in images
    ] or [shared]
