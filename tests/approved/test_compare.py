"""`vieval compare`: which judge agrees best."""

import numpy as np
import pytest

from tests.builders import a_provenance, a_results_folder, a_sample, a_verdict
from vieval_plugin.judges.protocol import Status


def right(number, people):
    return 0.9 * people + number % 3 / 40


def poor(number, people):
    return 0.2 * people + number * 37 % 80 / 100


@pytest.fixture
def judged(approve):
    """Writes the results of a judge on 40 instructions with two outputs each; `score` has the number and people's mean."""

    def write(name, score, *, benchmark="vieval_demo", aspects=("SC",)):
        rng = np.random.default_rng(3)
        rows = []
        for number in range(80):
            raters = tuple(map(float, rng.choice([0.0, 0.5, 1.0], 3)))
            ratings = dict.fromkeys(("SC", "O"), raters)
            sample = a_sample(
                f"u{number // 2}", f"editor {number % 2}", kind="tie", benchmark=benchmark, ratings=ratings
            )
            value = score(number, float(np.mean(raters)))
            rows.append((sample, a_verdict(Status.REFUSAL if value is None else value, aspects)))
        a_results_folder(name, rows, a_provenance(model=name, aspects=aspects))

    return write


def test_three_judges(approve, judged):
    for name, score in {"poor": poor, "right": right, "alike": right}.items():
        judged(name, score)
    approve("vieval compare poor right alike --seed 7 --out out")


def test_overall_score_leads(approve, judged):
    judged("poor", poor, aspects=("SC", "O"))
    judged("right", right, aspects=("SC", "O"))
    judged("only", lambda number, people: right(number + 1, people))
    approve("vieval compare poor right only")


def test_one_judge(approve, judged):
    judged("right", right)
    approve("vieval compare right --out out")


def test_two_benchmarks(approve, judged):
    judged("right", right)
    judged("poor", poor)
    judged("elsewhere", right, benchmark="imagenhub")
    approve("vieval compare right poor elsewhere")


def test_no_samples_in_common(approve, judged):
    judged("even", lambda number, people: right(number, people) if number // 2 % 2 else None)
    judged("odd", lambda number, people: None if number // 2 % 2 else right(number, people))
    approve("vieval compare even odd")


def test_judge_without_a_rank(approve, judged):
    judged("few", lambda number, people: None if number < 56 else right(number, people))
    judged("poor", poor)
    judged("right", right)
    approve("vieval compare poor right few", "vieval report poor right few --out r", "cat r/report.md")
