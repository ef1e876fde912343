"""Measures: every outcome has a sentence, and a package brings one in one file."""

import ast
import json
import re
from pathlib import Path
from string import Formatter

import pytest

from tests.builders import a_verdict_file, some_scores
from tests.stored_results import csv_rows
from vieval_plugin.cli import main
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.contest_ranking import STRENGTH
from vieval_plugin.meta_evaluation.corrected_ranking import CORRECTED
from vieval_plugin.meta_evaluation.generators import MEAN, further_measures
from vieval_plugin.meta_evaluation.measures import AGREEMENT, USUAL, Outcome
from vieval_plugin.meta_evaluation.win_rates import WIN_RATE

PACKAGE = Path(__file__).parents[2] / "vieval_plugin"
MEASURES = (AGREEMENT, MEAN, WIN_RATE, CORRECTED, STRENGTH)
ANNOTATORS = "meta_evaluation/annotator"
PLUGIN = '''
"""Generators by the share of prompts whose worst image reaches one half."""

from vieval_plugin.meta_evaluation.measures import OPINION, Measure


def passes(scores):
    return float(min(scores) >= 0.5)


MEASURES = (Measure("share of passed prompts", "Passes by", OPINION, passes, leads=True),)
'''
ENTRY_POINTS = "[vieval.measures]\npasses = passed_prompts\n"


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_every_outcome_has_a_sentence(measure, outcome):
    phrase = measure.phrases.get(outcome) or USUAL[outcome]
    names = {name for _, name, *_ in Formatter().parse(phrase) if name}
    sentence = measure.sentence(outcome, {name: f"<{name}>" for name in names})
    assert sentence.endswith(".")
    assert all(f"<{name}>" in sentence for name in names)


def test_nobody_asks_which_statistic_a_leaderboard_has():
    asked = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.unparse(node) if isinstance(node, ast.Compare) else ""
            if re.search(r"\b(MEAN|WIN_RATE|CORRECTED|STRENGTH)\b", text):
                asked.append(f"{path.relative_to(PACKAGE)}: {text}")
    # MEAN of annotators is a column of theirs
    assert [line for line in asked if not line.startswith(ANNOTATORS)] == []


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package with one file, as pip leaves it."""
    site = tmp_path / "site"
    about = site / "passed_prompts-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "passed_prompts.py").write_text(PLUGIN)
    (about / "METADATA").write_text("Name: passed-prompts\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    further_measures.cache_clear()
    yield
    further_measures.cache_clear()


@pytest.mark.usefixtures("installed")
def test_a_package_brings_a_measure_in_one_file(tmp_path, capsys):
    # the means are alike, and other prompts reach one half
    aurora = [0.9] * 40 + [0.3] * 40
    a_verdict_file(aurora=aurora, borealis=[0.55] * 70 + [0.2] * 5 + [0.9] * 5)
    command = ["rank", "v.jsonl", "--html", "rank.html", "--tables", "tables"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "rates borealis' images better than aurora's." in printed
    assert "Passes by O of borealis: 0.94" in printed
    page = re.sub(r"<[^>]+>", "", Path("rank.html").read_text())
    assert "Passes by O (overall), by viescore" in page
    findings = json.loads(Path("tables/findings.json").read_text())
    assert findings["answers"][0]["outcome"] == "better"
    values = {
        row["system"]: float(row["value"])
        for row in csv_rows(Path("tables/numbers.csv"))
        if (row["statistic"], row["breakdown"]) == ("share of passed prompts", "")
    }
    assert values == {"aurora": 0.5, "borealis": 0.9375}
    assert main(["report", "v.jsonl", "--out", "report"]) == 0
    assert "Passes by O of borealis" in Path("report/report.md").read_text()
    gate = ["rank", "v.jsonl", "--margin", "0.05", "--no-control", "--json", "g.json"]
    capsys.readouterr()
    assert main(gate) == 3
    against = json.loads(Path("g.json").read_text())["against"][0]
    assert against["scored"]["difference"] == pytest.approx(-0.4375)


def test_a_generator_may_be_called_failures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    failures = [*some_scores(80, 0.7), *[Status.NO_IMAGE] * 20]
    a_verdict_file(failures=failures, borealis=some_scores(100, 0.5))
    assert main(["rank", "v.jsonl"]) == 0
    assert "but failures fails more often than borealis." in capsys.readouterr().out
