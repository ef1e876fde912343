"""Write results as records of Every Eval Ever, a format of several leaderboards: one
JSON document per model, and its samples in a JSONL file.

A judge that is measured against people is a model with its agreement. A generator is a
model whose scores name the judge as their scorer.

Source: Every Eval Ever, schemas `eval` and `instance_level_eval` 0.3.0.
"""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from vieval_plugin.judges.contests import FORWARD
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.findings import Number
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.report.sections import Report, Section
from vieval_plugin.stats.decisions import NUMBER_LEVEL
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.versions import VERSION
from vieval_plugin.text.yaml_json import JsonObject

SCHEMA = "0.3.0"
_UNKNOWN = "unknown"
_NO_ANSWER = "no single answer is right: scores are compared over all samples"


@dataclass(frozen=True)
class Publication:
    """Publisher of results, and the time of the export."""

    organization: str
    #: Seconds since the epoch.
    time: int
    options: StatisticsOptions


@dataclass(frozen=True)
class _Model:
    """A judge or a generator with the numbers of one document."""

    section: Section
    #: The judge's run, of a generator that which scored its images.
    run: Run
    numbers: tuple[Number, ...]
    #: Name of the generator; empty of a judge.
    generator: str = ""

    @property
    def name(self) -> str:
        return self.generator or self.run.model or self.run.label

    @property
    def evaluation(self) -> str:
        """Name of the evaluation, which for generators includes the judge."""
        name = self.section.benchmark.name
        if not self.generator:
            return name
        model = self.run.model or self.run.label
        judge = dict.fromkeys((self.run.judge, model))
        return file_name("_".join([name, "by", *judge]))

    @property
    def records(self) -> list[Record]:
        return [
            record
            for record in self.run.all_records
            if self.generator in ("", record.id.image_model)
        ]


def export(report: Report, folder: Path, publication: Publication) -> list[Path]:
    """Write a document and the samples of each model of a report below `folder/data`.

    The same results have the same file names, so that a second export replaces the
    first.

    Args:
        report: with its sections.
        folder: that of a checkout of the collection.
        publication: by whom and when.

    Returns:
        The documents.

    Raises:
        VievalError: a file cannot be written.
    """
    return [
        _write_model(model, folder, publication) for model in _models(report.sections)
    ]


def _models(sections: Iterable[Section]) -> Iterator[_Model]:
    """Yield judges with their agreement, then generators by each judge."""
    for section in sections:
        numbers = [n for n in section.findings.numbers if n.estimate.defined]
        for run in section.runs:
            own = tuple(
                n for n in numbers if (n.role, n.system) == ("judge", run.label)
            )
            if own:
                yield _Model(section, run, own)
        for run in section.runs:
            scored = [
                n for n in numbers if n.role == "generator" and n.judge == run.name
            ]
            for generator in dict.fromkeys(number.system for number in scored):
                generator_numbers = tuple(n for n in scored if n.system == generator)
                yield _Model(section, run, generator_numbers, generator)


def _samples_document(
    file: Path, rows: Sequence[str], records: Sequence[Record]
) -> JsonObject:
    counts = Counter(str(record.verdict.status) for record in records)
    return {
        "format": "jsonl",
        "file_path": file.as_posix(),
        "hash_algorithm": "sha256",
        "checksum": hashlib.sha256("".join(rows).encode()).hexdigest(),
        "total_rows": len(rows),
        "additional_details": {status: str(count) for status, count in counts.items()},
    }


def _write_model(model: _Model, folder: Path, publication: Publication) -> Path:
    evaluation_id = f"{model.evaluation}/{model.name}/{publication.time}"
    rows = [
        json.dumps(row, ensure_ascii=False) + "\n"
        for row in _sample_rows(model, evaluation_id)
    ]
    results = [_result(model, number, publication.options) for number in model.numbers]
    developer, _, name = model.name.rpartition("/")
    parts = map(file_name, (model.evaluation, developer, name))
    target = Path("data", *parts)
    verdicts = [f"{record.id} {record.verdict.scores}" for record in model.records]
    stem = _stable_uuid(model.evaluation, model.name, json.dumps(results), *verdicts)
    samples = target / f"{stem}_samples.jsonl"
    details = {} if model.generator else _judge_details(_provenance(model.run))
    document = {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation_id,
        "retrieved_timestamp": str(publication.time),
        "source_metadata": _source_metadata(publication),
        "eval_library": {"name": "vieval", "version": VERSION},
        "model_info": _model_document(model.name, details),
        "evaluation_results": results,
        "detailed_evaluation_results": _samples_document(samples, rows, model.records),
    }
    path = folder / target / f"{stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(folder / samples, rows, "--out")
    write_whole(path, [_json_text(document)], "--out")
    return path


def _json_text(document: JsonObject) -> str:
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    return text + "\n"


def _source_metadata(publication: Publication) -> dict[str, str]:
    return {
        "source_name": "vieval",
        "source_type": "evaluation_run",
        "source_organization_name": publication.organization,
        "evaluator_relationship": "other",
    }


def file_name(text: str) -> str:
    """Convert a text to one part of a path."""
    name = "".join(sign if sign.isalnum() or sign in "-_.+" else "_" for sign in text)
    return name.strip(".") or _UNKNOWN


def _stable_uuid(*texts: str) -> uuid.UUID:
    """UUID in the form of version 4, the same for the same texts."""
    digest = hashlib.sha256("\0".join(texts).encode()).digest()
    return uuid.UUID(bytes=digest[:16], version=4)


def _model_document(name: str, details: Mapping[str, str]) -> JsonObject:
    developer = name.rpartition("/")[0]
    return {
        "name": name,
        "id": name,
        **({"developer": developer} if developer else {}),
        "additional_details": {
            "deployment_type": _UNKNOWN,
            "model_availability": _UNKNOWN,
            **details,
        },
    }


def _provenance(run: Run) -> Provenance:
    return run.all_records[0].provenance


def _judge_details(provenance: Provenance) -> dict[str, str]:
    """Facts that a judge's number depends on, in addition to its model."""
    details = {
        "judge": provenance.judge,
        "setting": provenance.setting,
        "prompt_pack": provenance.pack,
        "prompt_pack_hash": provenance.pack_hash,
        "options_hash": provenance.config_hash,
        "label": provenance.label,
    }
    return {name: text for name, text in details.items() if text}


def _result(model: _Model, number: Number, options: StatisticsOptions) -> JsonObject:
    estimate = number.estimate
    uncertainty: JsonObject = {"num_samples": estimate.n}
    if not math.isnan(estimate.low + estimate.high):
        uncertainty["confidence_interval"] = {
            "lower": estimate.low,
            "upper": estimate.high,
            "confidence_level": NUMBER_LEVEL,
            "method": f"{options.draws} bootstrap resamples, seed {options.seed}",
        }
    benchmark = model.section.benchmark
    return {
        "evaluation_result_id": _result_id(number),
        "evaluation_name": model.evaluation,
        "source_data": {
            "dataset_name": benchmark.title or benchmark.name,
            "source_type": "other",
            "additional_details": {
                "source": benchmark.source,
                "licence": benchmark.licence,
            },
        },
        "metric_config": _metric_config(model, number, options),
        "score_details": {
            "score": estimate.value,
            "details": _score_details(number),
            "uncertainty": uncertainty,
        },
    }


def _result_id(number: Number) -> str:
    names = (number.part, number.aspect, number.statistic)
    breakdown = (number.breakdown, number.value) if number.breakdown else ()
    return "/".join((*names, *breakdown))


def _metric_config(
    model: _Model, number: Number, options: StatisticsOptions
) -> JsonObject:
    metric: JsonObject = {
        "metric_id": f"vieval.{number.statistic}".replace(" ", "_"),
        "metric_name": number.statistic,
        "lower_is_better": False,
        "metric_parameters": {
            "aspect": number.aspect,
            "failed_verdicts": str(options.policy),
        },
    }
    if statistic := next(
        (s for s in model.section.findings.ranked if s.has(number)), None
    ):
        lowest, highest = statistic.ends
        metric |= {
            "evaluation_description": statistic.title,
            "score_type": "continuous",
            "min_score": lowest,
            "max_score": highest,
        }
    provenance = _provenance(model.run)
    if model.generator and provenance.pack:
        metric["llm_scoring"] = _scoring(provenance, model.run)
    elif model.generator:
        metric["additional_details"] = _judge_details(provenance)
    return metric


def _scoring(provenance: Provenance, run: Run) -> JsonObject:
    """Model that a generator's judge asks, and the name of its prompt pack."""
    model = _model_document(run.model or run.label, _judge_details(provenance))
    prompt = f"prompt pack {provenance.pack} ({provenance.pack_hash}) of vieval"
    return {"judges": [{"model_info": model}], "input_prompt": prompt}


def _score_details(number: Number) -> dict[str, str]:
    details = {str(status): str(count) for status, count in number.statuses.items()}
    if number.ranks:
        ranks = dict.fromkeys(number.ranks)
        details["rank"] = "-".join(map(str, ranks))
    if number.reason:
        details["reason"] = number.reason
    return details


def _sample_rows(model: _Model, evaluation_id: str) -> Iterator[JsonObject]:
    """Yield a row for each score of a result, and for each contest; failed verdicts
    have no score and are counted in the document.
    """
    for record in model.records:
        common = {
            "schema_version": SCHEMA,
            "evaluation_id": evaluation_id,
            "model_id": model.name,
            "evaluation_name": model.evaluation,
            "sample_id": str(record.id),
            "interaction_type": "single_turn",
            "output": {"raw": [step.answer for step in record.verdict.trace]},
        }
        if record.verdict.reason:
            common["error"] = f"{record.verdict.status}: {record.verdict.reason}"
        if record.votes is not None:
            yield {**common, **_contest_fields(record)}
            continue
        for aspect in model.run.aspects:
            result = _result_of(model.numbers, record, aspect)
            if result and aspect in record.verdict.scores:
                yield {
                    **common,
                    "evaluation_result_id": result,
                    **_aspect_fields(record, aspect),
                }


def _result_of(numbers: Sequence[Number], record: Record, aspect: str) -> str:
    """Id of the result that a score counts in; empty if its aspect has no result."""
    ids = (
        _result_id(number)
        for number in numbers
        if number.aspect == aspect
        and not number.breakdown
        and number.part in (record.id.part, "all")
    )
    return next(ids, "")


def _aspect_fields(record: Record, aspect: str) -> JsonObject:
    score = record.verdict.scores[aspect]
    return {
        "input": {
            "raw": _input_text(record),
            "reference": [str(rating) for rating in record.ratings.get(aspect, ())],
        },
        "answer_attribution": _attribution(record, str(score)),
        "evaluation": {"score": score, "is_correct": False},
        "metadata": {
            **_metadata(record),
            "aspect": aspect,
            "is_correct": _NO_ANSWER,
        },
    }


def _contest_fields(record: Record) -> JsonObject:
    """Fields of a contest, which is correct if the judge's answer matches the human
    vote.
    """
    votes = record.votes
    answers = record.verdict.choice.votes if record.verdict.choice else {}
    answer = answers.get(FORWARD, next(iter(answers.values()), ""))
    preference = votes.vote if votes else ""
    is_right = bool(answer) and answer == preference
    return {
        "input": {
            "raw": _input_text(record),
            "reference": [preference] if preference else [],
        },
        "answer_attribution": _attribution(record, answer),
        "evaluation": {"score": float(is_right), "is_correct": is_right},
        "metadata": _metadata(record),
    }


def _input_text(record: Record) -> str:
    texts = record.sample.texts if isinstance(record.sample, Sample) else {}
    return "\n".join(texts.values()) or str(record.id)


def _attribution(record: Record, value: str) -> list[JsonObject]:
    """Description of how a score was read from the replies."""
    return [
        {
            "turn_idx": 0,
            "source": "output.raw",
            "extracted_value": value,
            "extraction_method": f"vieval {record.provenance.judge}",
            "is_terminal": True,
        }
    ]


def _metadata(record: Record) -> dict[str, str]:
    identity = {name: str(text) for name, text in asdict(record.id).items() if text}
    further = {"status": str(record.verdict.status), "category": record.category}
    if record.verdict.rationale:
        further["rationale"] = record.verdict.rationale
    return {**identity, **{name: text for name, text in further.items() if text}}
