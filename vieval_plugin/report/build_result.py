"""The result of a gate as a build reads it: Markdown for its summary, JUnit XML for its tests,
JSON for programs.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from vieval_plugin.judges.protocol import Sample
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.meta_evaluation.tables import markdown as markdown_table
from vieval_plugin.records import Record
from vieval_plugin.report.answer import Answer
from vieval_plugin.text import escaping
from vieval_plugin.text.errors import ExitCode, VievalError
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.wording import rounded

if TYPE_CHECKING:
    from vieval_plugin.meta_evaluation.gate import GateEvidence
    from vieval_plugin.report.gate import Gate
    from vieval_plugin.stats.non_inferiority import MeanOfDifferences

_TAGS = {
    ExitCode.FINE: "system-out",
    ExitCode.WORSE: "failure",
    ExitCode.UNDECIDED: "failure",
    ExitCode.SLOW_FALL: "failure",
}
_LONGEST_TEXT = 200


@dataclass(frozen=True)
class BuildResult:
    """The result of a ranking or a gate, or of a command that could not decide."""

    exit_code: ExitCode
    #: The gate's answer, or those of the ranking.
    answers: Sequence[Answer] = ()
    #: The gate, where it decided by verdicts.
    gate: Gate | None = None
    #: These verdicts.
    records: Sequence[Record] = ()
    #: Tables of the ranking.
    tables: Sequence[Table] = ()
    #: Further values for programs.
    findings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def falls(self) -> list[dict[str, str | float]]:
        """The falls of the gate by the names of what is known of them, with the texts of their
        prompts.
        """
        if not self.gate:
            return []
        texts = {}
        for record in self.records:
            if isinstance(record.sample, Sample):
                group = record.group or record.id.uid
                prompt = f"{record.id.part}/{group}"
                text = " ".join(record.sample.texts.values())
                texts[prompt] = text[:_LONGEST_TEXT]
        return [
            {
                **asdict(f),
                "difference": f.difference,
                "text": texts.get(f.prompt, ""),
            }
            for f in self.gate.falls
        ]

    @property
    def falls_table(self) -> list[Table]:
        """The falls as a table, where there are any."""
        falls = self.falls
        if not falls:
            return []
        title = "Prompts with failures or the largest drops in score"
        header = tuple(falls[0])
        rows = []
        for fall in falls:
            cells = map(_cell, fall.values())
            rows.append(tuple(cells))
        return [Table("falls", title, header, tuple(rows))]


def failed_build(error: VievalError) -> BuildResult:
    """The result of a gate that an error ended."""
    return BuildResult(
        ExitCode.ERROR, [Answer("The gate could not decide.", redacted(str(error)))]
    )


def write_build_files(
    result: BuildResult, files: Mapping[str, Path | None] | None
) -> None:
    """Write the result of a gate for a build, and add it to the step's summary on GitHub.

    Args:
        result: of the gate.
        files: by `summary`, `junit` and `json`, which are Markdown, JUnit XML and JSON; None where
            it is no gate.

    Raises:
        VievalError: a file cannot be written.
    """
    if files is None:
        return
    for name, text_of in _TEXTS.items():
        path = files.get(name)
        if path:
            write_whole(
                path,
                [text_of(result)],
                f"--{name}",
            )
    step_summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if step_summary:
        with (
            contextlib.suppress(OSError),
            open(step_summary, "a", encoding="utf-8") as file,
        ):
            file.write(f"{summary(result)}\n")


def _cell(value: str | float) -> str:
    if isinstance(value, float):
        if math.isfinite(value):
            return rounded(value, 3)
        return "-"
    return value or "-"


def summary(result: BuildResult) -> str:
    """The result in Markdown, as the summary of a build shows it."""
    lines = [line for answer in result.answers for line in answer.lines]
    title, *sentences = map(escaping.markdown_sentence, lines)
    result_tables = (*result.falls_table, *result.tables)
    tables = [markdown_table(table).rstrip() for table in result_tables]
    heading = f"## {result.exit_code.verdict}: {title}"
    exit_code = f"Exit code {result.exit_code:d}."
    paragraphs = "\n\n".join([heading, *sentences, exit_code, *tables])
    return f"{paragraphs}\n"


def junit(result: BuildResult) -> str:
    """The result as one test case of JUnit XML: failed by a decision, and in error where there
    is none.
    """
    tag = _TAGS.get(result.exit_code, "error")
    counts = {
        "tests": "1",
        "failures": "0",
        "errors": "0",
    }
    if tag != "system-out":
        counts[f"{tag}s"] = "1"
    suites = ElementTree.Element("testsuites", counts)
    suite_attributes = {"name": "vieval rank", **counts}
    suite = ElementTree.SubElement(suites, "testsuite", suite_attributes)
    case_attributes = {"classname": "vieval", "name": "the images are not worse"}
    case = ElementTree.SubElement(suite, "testcase", case_attributes)
    lines = list(result.answers[0].lines)
    message = f"{result.exit_code.verdict}: {lines[0]}"
    properties = {}
    if result.exit_code:
        properties = {
            "message": escaping.console(message),
            "type": result.exit_code.name.lower(),
        }
    for table in result.falls_table:
        rows = map("; ".join, (table.header, *table.rows))
        lines += ["", f"{table.title}:", *rows]
    element = ElementTree.SubElement(case, tag, properties)
    element.text = "\n".join(map(escaping.console, lines))
    ElementTree.indent(suites)
    document = ElementTree.tostring(suites, "utf-8", xml_declaration=True)
    return f"{document.decode()}\n"


def json_text(result: BuildResult) -> str:
    """All of the result as JSON; a number that is not known is null."""
    outcome = result.exit_code.name.lower()
    answer_documents = [
        {**asdict(answer), "outcome": answer.outcome or outcome}
        for answer in result.answers
    ]
    against = []
    if result.gate:
        against = [_numbers(evidence) for evidence in result.gate.evidence]
    document = {
        **result.findings,
        "exit_code": result.exit_code,
        "outcome": outcome,
        "answers": answer_documents,
        "against": against,
        "falls": result.falls,
    }
    finite = json.loads(json.dumps(document), parse_constant=lambda _: None)
    text = json.dumps(finite, indent=1)
    return f"{text}\n"


def _numbers(evidence: GateEvidence) -> dict[str, Any]:
    """The numbers by which a gate decides on a reference."""
    challenger_failures, reference_failures = evidence.more_failures
    return {
        "reference": evidence.reference,
        "scored": _difference_numbers(evidence.scored),
        "penalised": _difference_numbers(evidence.penalised),
        "failures": {
            evidence.challenger: challenger_failures,
            evidence.reference: reference_failures,
        },
    }


def _difference_numbers(mean: MeanOfDifferences) -> dict[str, float]:
    return {
        "difference": mean.value,
        "low": mean.low,
        "high": mean.high,
        "n": mean.n,
    }


_TEXTS = {
    "summary": summary,
    "junit": junit,
    "json": json_text,
}
