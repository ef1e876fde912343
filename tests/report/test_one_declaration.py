"""A declared statistic appears in every output: terminal, files, page, card, host."""

import json

import pytest

from tests.meta_evaluation.stated import REPORT, run
from tests.stored_results import csv_rows
from vieval_plugin.benchmarks import registry
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.card.making import card_of, entry_of
from vieval_plugin.card.placing import place_judge
from vieval_plugin.card.writing import markdown_text
from vieval_plugin.leaderboard.making import views_of
from vieval_plugin.meta_evaluation.metrics import host_table_cell
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.statistics import Rating, summary_of
from vieval_plugin.report.sections import sections_of
from vieval_plugin.report.writing import lines, write_report
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=50)


@pytest.fixture
def declared(monkeypatch):
    benchmark = Benchmark(
        *("toy", {"all": 60}, lambda root, part: [], lambda root, part: [], REPORT),
        source="a test",
        licence="none",
        trainable=False,
        title="toy",
    )
    known = {**registry.benchmarks(), "toy": benchmark}
    monkeypatch.setattr(registry, "benchmarks", lambda: known)
    return benchmark


def test_a_statistic_of_one_declaration_stands_in_every_face(declared, tmp_path):
    runs = (run("good", range(3)), run("poor", range(20)))
    results = Results(runs)
    written = write_report(results, tmp_path, OPTIONS)
    rows = csv_rows(tmp_path / "numbers.csv")
    rows = [row for row in rows if row["statistic"] == "right_side"]
    number = next(row for row in rows if row["system"] == "good")
    value, low, high = (float(number[name]) for name in ("value", "low", "high"))
    shown = f"{value:.3f} [{low:.3f}, {high:.3f}]"
    assert {row["system"] for row in rows if row["role"] == "judge"} == {"good", "poor"}
    assert any("right side" in line for line in written.lines)
    assert any(shown in line for line in written.lines)
    for name in ("report.md", "report.html"):
        text = (tmp_path / name).read_text()
        assert shown in text, name
        assert "right side" in text.lower(), name
    [document] = json.loads((tmp_path / "cells.json").read_text())
    cells = {(c["judge"], c["statistic"]): c["value"] for c in document["cells"]}
    assert f"{cells['good', 'right_side']:.6g}" == number["value"]
    findings = json.loads((tmp_path / "findings.json").read_text())
    assert findings["pairs"][0]["better"] == "good"
    title = findings["answers"][0]["title"]
    assert title == written.lines[0] == "good agrees best with annotators on toy."
    assert title == lines(sections_of(results, "judges", OPTIONS), OPTIONS)[0]
    observed = [observe(r) for r in runs[0].records["all"]]
    rated = (Rating(("SC",)), "toy", "all", OPTIONS)
    summary = summary_of(declared.report, observed, *rated)
    assert host_table_cell(summary).startswith(shown)
    judge = place_judge(runs[0], tmp_path, OPTIONS)
    entry = entry_of(judge, [], tmp_path)
    found = {f"{row.value:g}" for row in entry.numbers if row.statistic == "right_side"}
    assert f"{value:g}" in found
    card = card_of("a test", [judge], [entry], [], [], [], OPTIONS)
    assert "right side" in markdown_text(card, [judge])
    views = views_of(declared, runs, (), OPTIONS)
    assert views[0].board.title == "right side"
    assert f"{views[0].numbers[0].estimate.value:.6g}" == number["value"]
