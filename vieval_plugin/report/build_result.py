"""The result of a gate as a build reads it: Markdown for its summary, JUnit XML for its tests, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any
from xml.etree import ElementTree

from vieval_plugin.judges.protocol import Sample
from vieval_plugin.meta_evaluation.gate import PromptFall
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.records import Run
from vieval_plugin.report.answer import Answer
from vieval_plugin.report.rendering import markdown as markdown_table
from vieval_plugin.text import escaping
from vieval_plugin.text.errors import ExitCode

_FAILURES = (ExitCode.WORSE, ExitCode.UNDECIDED)
_LONGEST_TEXT = 200


@dataclass(frozen=True)
class BuildResult:
    """The result of a gate, or of a command that could not decide."""

    #: The exit code.
    exit_code: ExitCode
    #: The gate's answer, and then those of the ranking.
    answers: Sequence[Answer]
    #: Prompts on which the score fell most.
    falls: Table | None = None
    #: Tables of the ranking.
    tables: Sequence[Table] = ()
    #: What else programs read.
    findings: Mapping[str, Any] = field(default_factory=dict)


def falls_table(falls: Sequence[PromptFall], runs: Sequence[Run]) -> Table | None:
    """The prompts on which the score fell most, with their texts; None where it fell on none."""
    texts = {
        f"{record.id.part}/{record.group or record.id.uid}": " ".join(record.sample.texts.values())[:_LONGEST_TEXT]
        for record in chain(*chain(*chain(*(run.records.values() for run in runs))))
        if isinstance(record.sample, Sample)
    }
    rows = []
    for fall in falls:
        numbers = fall.score, fall.reference_score, fall.difference
        rows.append((fall.prompt, texts.get(fall.prompt, ""), fall.reference, *(f"{n:.3f}" for n in numbers)))
    header = ("prompt", "text", "against", "score", "its score", "difference")
    return Table("falls", "Prompts on which the score fell most", header, tuple(rows)) if rows else None


def summary(result: BuildResult) -> str:
    """The result in Markdown, as the summary of a build shows it."""
    lines = [escaping.markdown(line) for answer in result.answers for line in answer.lines]
    tables = [markdown_table(table) for table in (result.falls, *result.tables) if table]
    return "\n\n".join([f"## {lines[0]}", *lines[1:], f"Exit code {result.exit_code:d}.", *tables])


def junit(result: BuildResult) -> str:
    """The result as one test case of JUnit XML: failed by a decision, and in error where there is none."""
    answer = result.answers[0]
    failed, broken = result.exit_code in _FAILURES, result.exit_code not in (ExitCode.FINE, *_FAILURES)
    counts = {"tests": "1", "failures": str(int(failed)), "errors": str(int(broken))}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "vieval rank", **counts})
    case = ElementTree.SubElement(suite, "testcase", {"classname": "vieval", "name": "the images are not worse"})
    text = "\n".join(map(escaping.console, answer.lines[1:]))
    if result.falls:
        rows = ("; ".join(filter(None, row)) for row in (result.falls.header, *result.falls.rows))
        text = "\n".join([text, "", f"{result.falls.title}:", *map(escaping.console, rows)])
    title = escaping.console(answer.title)
    about = {"message": title, "type": result.exit_code.name.lower()} if failed or broken else {}
    tag = "failure" if failed else "error" if broken else "system-out"
    ElementTree.SubElement(case, tag, about).text = f"{title}\n{text}"
    ElementTree.indent(suites)
    text_of_suites: str = ElementTree.tostring(suites, "utf-8", xml_declaration=True).decode()
    return f"{text_of_suites}\n"


def json_text(result: BuildResult) -> str:
    """All of the result as JSON."""
    document = {
        **result.findings,
        "exit_code": result.exit_code,
        "outcome": result.exit_code.name.lower(),
        "answers": [asdict(answer) for answer in result.answers],
        "falls": [dict(zip(table.header, row, strict=True)) for table in [result.falls] if table for row in table.rows],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
