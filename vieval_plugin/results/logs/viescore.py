"""The VIEScore authors' logs: `<image model>/{SC,PQ}.json`, uid -> {score, reasoning, ...}, and
those of metrics: `<image model>.json`, uid -> {name of the metric: value}.

A recorded score is checked like a live one. Where the authors could not parse a reply,
they wrote a random score and marked the reply; VIEval parses it again. The authors'
score is kept separately in both cases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from vieval_plugin.judges.auto_metrics import NETWORK_METRICS, AutoMetric, verdict_of
from vieval_plugin.judges.parsing import (
    REFUSAL_INSIDE,
    SCORE,
    parse_scores,
    reply_schema,
)
from vieval_plugin.judges.protocol import (
    Failure,
    Measurement,
    SampleId,
    Status,
    Step,
    Verdict,
    worst,
)
from vieval_plugin.judges.refusals import declines
from vieval_plugin.judges.structured_chat import excerpt
from vieval_plugin.judges.viescore import RUBRIC
from vieval_plugin.prompts import packs
from vieval_plugin.prompts.pack import PackQuestion
from vieval_plugin.readers.rows import read_json, read_object
from vieval_plugin.results.logs import RESTORE, Identity, LoggedVerdicts, Reader
from vieval_plugin.text.untrusted import exists

GUESSED = "guess_if_cannot_parse | "
_ASPECTS = ("SC", "PQ")
#: The VIEScore authors' names of values, by the metric.
_VIESCORE_METRIC_NAMES = {
    value.lower(): value for value in ("CLIP_Score", "CLIP_I", "DINO", "LPIPS")
}


def read(
    folder: Path,
    identity: Identity,
    name: str = "",
    setting: str = "",
) -> LoggedVerdicts:
    """Read the verdicts of one part; VievalError with the name of a file that cannot be
    read.
    """
    questions = _questions()
    consistency = questions.get(f"SC_{identity('', '').part}")
    names = {
        "SC": consistency.scores if consistency else (),
        "PQ": questions["PQ"].scores,
    }
    verdicts = {}
    image_models = (path.name for path in folder.glob("*") if path.is_dir())
    for image_model in sorted(image_models):
        files = {aspect: folder / image_model / f"{aspect}.json" for aspect in _ASPECTS}
        rows = {
            aspect: read_object(file, RESTORE) if exists(file) else {}
            for aspect, file in files.items()
        }
        for uid in {**rows["SC"], **rows["PQ"]}:
            steps = [
                _step(
                    aspect,
                    uid in rows[aspect],
                    rows[aspect].get(uid),
                    names[aspect],
                )
                for aspect in _ASPECTS
            ]
            verdicts[identity(image_model, uid)] = _verdict(steps)
    return verdicts


@cache
def _questions() -> Mapping[str, PackQuestion]:
    return packs.load(packs.built_in("viescore")[-1]).questions


def _step(
    aspect: str,
    is_recorded: bool,
    row: Any,
    names: Sequence[str],
) -> tuple[Step, str]:
    """Build a step of a trace from a recorded answer, with the finding to count."""
    path = (aspect,)
    if not is_recorded:
        return Step(path, Status.MISSING, reason="not recorded"), ""
    if not isinstance(row, dict) or row.get("score") is None:
        return Step(path, Status.PARSE_FAILURE, reason="the log row has no score"), ""
    recorded = _numbers(row["score"])
    reasoning = str(row.get("reasoning") or "")
    if reasoning.startswith(GUESSED):
        return _guessed(
            path,
            reasoning.removeprefix(GUESSED),
            recorded,
            names,
        )
    count = len(names) or len(recorded)
    reply = json.dumps({SCORE: row["score"]})
    parsed = parse_scores(
        reply,
        reply_schema(count, keys=(SCORE,)),
        as_shown=True,
    )
    if parsed.status.usable:
        finding = REFUSAL_INSIDE if declines(reasoning) else ""
        return Step(
            path,
            parsed.status,
            parsed.scores,
            reason=excerpt(reasoning),
        ), finding
    reason = f"a live reply with the recorded score would be rejected: {parsed.reason}"
    return Step(
        path,
        Status.PARSE_FAILURE,
        answer=excerpt(reasoning),
        reason=reason,
        recorded=recorded,
    ), ""


def _guessed(
    path: tuple[str, ...],
    reply: str,
    recorded: tuple[float, ...],
    names: Sequence[str],
) -> tuple[Step, str]:
    """Parse a reply that the authors could not parse."""
    parsed = parse_scores(reply, reply_schema(len(names) or 1))
    status = Status.REPAIRED
    scores = parsed.scores
    reason = excerpt(parsed.reason)
    if not parsed.status.usable:
        status = Status.GUESSED
        scores = ()
        reason = (
            "the authors could not parse this reply and guessed a score "
            f"({parsed.reason})"
        )
    step = Step(
        path,
        status,
        scores,
        excerpt(reply),
        reason,
        recorded=recorded,
    )
    return step, parsed.finding


def number(value: Any) -> float | None:
    """Convert a value of a row to a finite float; None if it is not a number."""
    # the bound keeps out NaN, infinity and integers that no float can hold
    is_number = type(value) in (int, float) and abs(value) < 1e300
    return float(value) if is_number else None


def _numbers(score: Any) -> tuple[float, ...]:
    """Convert the scores of a row to numbers; empty unless all are numbers."""
    entries = score if isinstance(score, list) else [score]
    values = list(map(number, entries))
    numbers = tuple(value for value in values if value is not None)
    if len(numbers) == len(values):
        return numbers
    return ()


def _verdict(steps_and_findings: Sequence[tuple[Step, str]]) -> Verdict:
    steps = tuple(step for step, _ in steps_and_findings)
    rationale = "\n".join(
        f"{step.path[0]}: {step.reason}"
        for step in steps
        if step.status.usable and step.reason
    )
    scores = {step.path[0]: step.scores for step in steps if step.status.usable}
    recorded_scores = {step.path[0]: step.recorded for step in steps if step.recorded}
    as_recorded = scores | recorded_scores
    is_recorded = any(step.recorded for step in steps)
    status = worst([step.status for step in steps])
    findings = tuple(finding for _, finding in steps_and_findings if finding)
    recorded = RUBRIC.scores(as_recorded) if is_recorded else {}
    return Verdict(
        RUBRIC.scores(scores),
        status,
        rationale,
        steps,
        findings=findings,
        recorded=recorded,
    )


def reader_of(judge: str) -> Reader | None:
    """Return the reader of a metric's values, `<image model>.json`; None if these logs do not contain the
    metric.
    """
    for metric in NETWORK_METRICS:
        if metric.name == judge and judge in _VIESCORE_METRIC_NAMES:
            return partial(_read_metric, metric, _VIESCORE_METRIC_NAMES[judge])
    return None


def _read_metric(
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
        if not isinstance(rows, dict):
            continue
        documents = [row for row in rows.values() if isinstance(row, dict)]
        if any(value in document for document in documents):
            for uid, row in rows.items():
                sample = identity(path.stem, uid)
                verdicts[sample] = _metric_verdict(metric, value, row)
    return verdicts


def _metric_verdict(
    metric: AutoMetric,
    name: str,
    row: Any,
) -> Verdict:
    value = None
    if isinstance(row, dict):
        value = number(row.get(name))
    if value is not None:
        return verdict_of(metric, Measurement(value))
    reason = f"the log row has no number for {name}"
    return verdict_of(metric, Failure(Status.PARSE_FAILURE, reason))
