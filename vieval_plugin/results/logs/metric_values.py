"""Logs of metrics: `<image model>.json`, uid -> {name of the metric: value}."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from vieval_plugin.judges.auto_metrics import (
    NETWORK_METRICS,
    AutoMetric,
    verdict_of,
)
from vieval_plugin.judges.protocol import (
    Failure,
    Measurement,
    SampleId,
    Status,
    Verdict,
)
from vieval_plugin.readers.rows import read_json
from vieval_plugin.results.logs import RESTORE, Identity, LoggedVerdicts, Reader
from vieval_plugin.results.logs.viescore import number

#: The VIEScore authors' names of values, by the metric.
_VIESCORE_METRIC_NAMES = {
    value.lower(): value for value in ("CLIP_Score", "CLIP_I", "DINO", "LPIPS")
}


def reader_of(judge: str) -> Reader | None:
    """Return the reader of a metric's values; None if these logs do not contain the
    metric.
    """
    for metric in NETWORK_METRICS:
        if metric.name == judge and judge in _VIESCORE_METRIC_NAMES:
            return partial(_read, metric, _VIESCORE_METRIC_NAMES[judge])
    return None


def _read(
    metric: AutoMetric,
    value: str,
    folder: Path,
    identity: Identity,
    name: str = "",
    setting: str = "",
) -> LoggedVerdicts:
    """Read the values under the key `value`; files without such a key belong to another
    judge.
    """
    verdicts: dict[SampleId, Verdict] = {}
    for path in sorted(folder.glob("*.json")):
        rows = read_json(path, RESTORE)
        if isinstance(rows, dict) and any(
            isinstance(row, dict) and value in row for row in rows.values()
        ):
            for uid, row in rows.items():
                verdicts[identity(path.stem, uid)] = _verdict(metric, value, row)
    return verdicts


def _verdict(metric: AutoMetric, name: str, row: Any) -> Verdict:
    value = number(row.get(name)) if isinstance(row, dict) else None
    failure = Failure(Status.PARSE_FAILURE, f"the log row has no number for {name}")
    return verdict_of(metric, failure if value is None else Measurement(value))
