"""A statistic of one declaration stands in every face: terminal, Markdown, CSV, JSON, page, card, leaderboard, host."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from vieval_plugin.benchmarks import registry
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.card.making import card_of, entry_of
from vieval_plugin.card.placing import place_judge
from vieval_plugin.card.writing import markdown_text
from vieval_plugin.judges.protocol import SampleId, Status, Verdict
from vieval_plugin.leaderboard.making import views_of
from vieval_plugin.meta_evaluation.common_items import JudgedItem, PairedTestSpec
from vieval_plugin.meta_evaluation.estimates import Computed, computed_mean
from vieval_plugin.meta_evaluation.label_statistics import LabelRows
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.metrics import in_host_table
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.statistics import Rating, Statistic, summary_of
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.report.sections import sections_of
from vieval_plugin.report.writing import lines, write_report
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=50)
RNG = np.random.default_rng(1)
LABELS = RNG.integers(0, 2, 60)


def right(rows: LabelRows) -> list[float]:
    return [float((score > 0.5) == bool(rating)) for score, rating in zip(rows.scores, rows.ratings, strict=True)]


def share_right(rows: LabelRows) -> Computed:
    return computed_mean(right(rows), rows.clusters, "no sample has a score")


def items(rows: LabelRows) -> dict[str, JudgedItem]:
    return {o.uid: JudgedItem(o.group, value) for o, value in zip(rows.scored, right(rows), strict=True)}


DECLARED = Statistic("right_side", share_right, constant=0.5, paired=PairedTestSpec(items))


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    benchmark = Benchmark(
        *("declared", {"all": 60}, lambda root, part: [], lambda root, part: [], WithLabels((DECLARED,))),
        source="a test",
        licence="none",
        trainable=False,
        title="Declared",
    )
    known = {**registry.benchmarks(), "declared": benchmark}
    monkeypatch.setattr(registry, "benchmarks", lambda: known)
    return benchmark


def run(label: str, skill: float) -> Run:
    scores = np.where(RNG.random(60) < skill, LABELS * 0.8 + 0.1, 0.9 - LABELS * 0.8)
    source = Provenance("mine", (), ("SC",), label)
    rows = [
        (
            Record(
                SampleId("declared", "all", "m", f"{n:02}"),
                Verdict({"SC": float(s)}, Status.OK),
                source,
                {"SC": (float(v),)},
            ),
        )
        for n, (s, v) in enumerate(zip(scores, LABELS, strict=True))
    ]
    return Run(label, "declared", "mine", ("SC",), {"all": rows})


def test_a_statistic_of_one_declaration_stands_in_every_face(declared: Benchmark, tmp_path) -> None:
    runs = (run("good", 0.95), run("poor", 0.6))
    results = Results(runs)
    written = write_report(results, tmp_path, OPTIONS)
    with (tmp_path / "numbers.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["statistic"] == "right_side"]
    number = next(row for row in rows if row["system"] == "good")
    shown = f"{float(number['value']):.3f} [{float(number['low']):.3f}, {float(number['high']):.3f}]"
    assert {row["system"] for row in rows if row["role"] == "judge"} == {"good", "poor"}
    assert any("right side" in line for line in written.lines)
    assert any(shown in line for line in written.lines)
    for name in ("report.md", "report.html"):
        text = (tmp_path / name).read_text()
        assert shown in text, name
        assert "right side" in text.lower(), name
    [document] = json.loads((tmp_path / "cells.json").read_text())
    cell = next(c for c in document["cells"] if (c["judge"], c["statistic"]) == ("good", "right_side"))
    assert f"{cell['value']:.6g}" == number["value"]
    findings = json.loads((tmp_path / "findings.json").read_text())
    assert findings["pairs"][0]["better"] == "good"
    assert findings["answers"][0]["title"] == written.lines[0] == "good agrees best with annotators on declared."
    assert written.lines[0] == lines(sections_of(results, "judges", OPTIONS), OPTIONS)[0]
    summary = summary_of(
        declared.report, [observe(r) for r in runs[0].records["all"]], Rating(("SC",)), "declared", "all", OPTIONS
    )
    assert in_host_table(summary).startswith(shown)
    judge = place_judge(runs[0], tmp_path, OPTIONS)
    entry = entry_of(judge, [], tmp_path)
    assert f"{float(number['value']):g}" in {
        f"{row['value']:g}" for row in entry.numbers if row["statistic"] == "right_side"
    }
    assert "right side" in markdown_text(card_of("a test", [judge], [entry], [], [], [], OPTIONS), [judge])
    views = views_of(declared, runs, (), OPTIONS)
    assert views[0].board.title == "right side"
    assert f"{views[0].numbers[0].estimate.value:.6g}" == number["value"]
