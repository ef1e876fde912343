"""Recorded verdicts instead of a judge: the VIEScore authors' logs, and the samples files of earlier lmms-eval runs.

Logs hold verdicts, not raw replies, so a replay enters where verdicts come out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from vieval_plugin.data.imagenhub import BENCHMARK, TASKS
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import SampleId, Status, Step, Verdict, worst
from vieval_plugin.judges.viescore import combine_aspects
from vieval_plugin.records import Provenance, lines_of, read_response

GUESSED = "guess_if_cannot_parse | "
_ASPECTS = ("SC", "PQ")


Recorded: TypeAlias = tuple[Verdict, Provenance | None]


@dataclass(frozen=True)
class Recording:
    """Verdicts by sample, one for each time it was judged, and which tasks (`benchmark/task`) they cover.

    The provenance is None for authors' logs.
    """

    source: Path
    verdicts: Mapping[SampleId, tuple[Recorded, ...]]
    covered: frozenset[str]

    def verdict(self, identity: SampleId, repeat: int = 0) -> Recorded:
        """The recorded verdict, or one with status `missing`.

        VievalError when the recording holds nothing at all for the sample's task: it is of another task.
        """
        if f"{identity.benchmark}/{identity.task}" not in self.covered:
            held = ", ".join(sorted(self.covered)) or "nothing that can be read"
            raise VievalError(
                f"{self.source}: no recorded verdicts for {identity.benchmark}/{identity.task} (it holds {held}); "
                "pass logs= of that task, or another --tasks"
            )
        recorded = self.verdicts.get(identity, ())
        return recorded[repeat] if repeat < len(recorded) else (_MISSING, None)


_MISSING = Verdict({}, Status.MISSING, trace=(Step("sample", Status.MISSING, reason="not recorded"),))


def load(logs: Path, judge: str) -> Recording:
    """Read recorded verdicts of a judge from a folder of either format, or from one samples file.

    Of a judge that a recording does not hold, every verdict is `missing`: a run over several judges goes on.

    Raises VievalError naming the file when nothing fits or a file is malformed.
    """
    if not logs.exists():
        raise VievalError(
            f"{logs}: no such file or folder; logs= takes the authors' results folder or an earlier --output_path"
        )
    files = [logs] if logs.is_file() else sorted(logs.rglob("*samples_*.jsonl"))
    if files:
        return _load_samples(logs, files, judge)
    folders = {task: logs / info.folder for task, info in TASKS.items() if (logs / info.folder).is_dir()}
    if not folders:
        raise VievalError(
            f"{logs}: neither the authors' logs (folders such as {TASKS['tie'].folder}) nor samples_*.jsonl "
            "of a run with --log_samples"
        )
    covered = frozenset(f"{BENCHMARK}/{task}" for task in folders)
    verdicts: dict[SampleId, tuple[Recorded, ...]] = {}
    for task, folder in folders.items() if judge == "viescore" else ():
        for image_model in sorted(path.name for path in folder.iterdir() if path.is_dir()):
            rows = {aspect: _read_rows(folder / image_model / f"{aspect}.json") for aspect in _ASPECTS}
            for uid in {**rows["SC"], **rows["PQ"]}:
                steps = tuple(_step(aspect, rows[aspect].get(uid), folder / image_model, uid) for aspect in _ASPECTS)
                verdicts[SampleId(BENCHMARK, task, image_model, uid)] = ((_verdict(steps), None),)
    return Recording(logs, verdicts, covered)


def _load_samples(source: Path, files: list[Path], judge: str) -> Recording:
    covered: set[str] = set()
    verdicts: dict[SampleId, tuple[Recorded, ...]] = {}
    for path in files:
        for number, line in enumerate(lines_of(path.read_text(encoding="utf-8")), start=1):
            try:
                found = [read_response(response) for response in responses_of(json.loads(line))]
                identity, _, provenance = found[0]
            except (ValueError, KeyError, TypeError, VievalError) as error:
                raise VievalError(f"{path}: line {number} holds no recorded verdict ({error})") from None
            covered.add(f"{identity.benchmark}/{identity.task}")
            if provenance.judge == judge:
                verdicts[identity] = tuple((verdict, source) for _, verdict, source in found)
    return Recording(source, verdicts, frozenset(covered))


def responses_of(sample: Mapping[str, Any]) -> list[str]:
    """The response texts of a row of an lmms-eval samples file: one, or one for each repeat."""
    responses = sample["filtered_resps"]
    return [str(r) for r in responses] if isinstance(responses, list) else [str(responses)]


def _read_rows(path: Path) -> dict[str, Any]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise VievalError(
            f"{path}: not readable as JSON ({error}); restore the file from the logs it came from"
        ) from None
    if not isinstance(rows, dict):
        raise VievalError(f"{path}: must be an object of uid -> answer")
    return rows


def _step(aspect: str, row: Any, folder: Path, uid: str) -> Step:
    """One recorded answer. Where the authors could not parse, they wrote a random number: those are failures here."""
    if row is None:
        return Step(aspect, Status.MISSING, reason="not recorded")
    score = row.get("score") if isinstance(row, dict) else None
    scores = score if isinstance(score, list) else [score]
    if not scores or not all(
        isinstance(s, (int, float)) and not isinstance(s, bool) and math.isfinite(s) for s in scores
    ):
        raise VievalError(f"{folder / (aspect + '.json')}: {uid} has no score list (found {str(score)[:40]!r})")
    reasoning = str(row.get("reasoning") or "")
    if reasoning.startswith(GUESSED):
        answer = reasoning.removeprefix(GUESSED)
        return Step(
            aspect, Status.PARSE_FAILURE, answer=answer, reason="the authors guessed a score where they could not parse"
        )
    return Step(aspect, Status.OK, tuple(map(float, scores)), reason=reasoning)


def _verdict(steps: tuple[Step, ...]) -> Verdict:
    rationale = "\n".join(f"{step.label}: {step.reason}" for step in steps if step.status.usable and step.reason)
    sub_scores = {step.label: step.scores for step in steps if step.status.usable}
    return Verdict(combine_aspects(sub_scores), worst([step.status for step in steps]), rationale, steps)
