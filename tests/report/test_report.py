"""The folder that `vieval report` writes."""

import json

import numpy as np
import pytest

from tests.builders import a_provenance, a_results_folder, a_sample, a_verdict
from tests.refusals import refusal
from tests.stored_results import csv_rows, read_lines
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.judges.protocol import Status
from vieval_plugin.report.writing import write_report
from vieval_plugin.results.runs import load_results
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=20)
BENCHMARK = "vieval_demo"


def results(folder, benchmark=BENCHMARK, lacking=0):
    """A judge's results on two image models; `lacking` samples could not be asked about."""
    rng = np.random.default_rng(3)
    rows = []
    for number in range(20):
        model, uid = f"model {number % 2}", f"u{number // 2}"
        ratings = {"SC": tuple(map(float, rng.choice([0.0, 0.5, 1.0], 3)))}
        about = {"kind": "tie", "benchmark": benchmark, "ratings": ratings}
        score = {"SC": float(rng.random())}
        if number < lacking:
            score = Status.NOT_APPLICABLE
        findings = {} if number < lacking else {"findings": ("no plan",) * (number % 2)}
        rows.append((a_sample(uid, model, **about), a_verdict(score, **findings)))
    source = a_provenance("mine", "a backbone | of pipes", ("SC",), settings=("plain",))
    return a_results_folder(folder, rows, source)


def test_a_report_is_a_page_a_csv_a_table_and_cells(tmp_path):
    out = tmp_path / "out"
    written = write_report(load_results([results(tmp_path / "run")]), out, OPTIONS)
    assert written.comparison is None
    text = (out / "report.md").read_text()
    note = benchmark_registry.benchmark(BENCHMARK).note
    assert "Synthetic" in note
    assert f"## {BENCHMARK}\n\n{note}\n" in text
    assert "| all | a backbone \\| of pipes | 20 |" in text
    [document] = json.loads((out / "cells.json").read_text())
    assert [*document] == ["benchmark", "cells"]
    [remark] = csv_rows(out / f"{BENCHMARK}_findings.csv")
    assert [*remark.values()] == ["a backbone | of pipes", "no plan", "10", "10 of 20"]
    findings = json.loads((out / "findings.json").read_text())

    def of_judge(numbers):
        kinds = [n for n in numbers if (n["part"], n["role"]) == ("tie", "judge")]
        return [n for n in kinds if n["low"] not in ("", None)]

    [found] = of_judge(csv_rows(out / "numbers.csv"))
    [in_json] = of_judge(findings["numbers"])
    for name in ("value", "low", "high", "n"):
        assert in_json[name] == float(found[name])
    assert findings["seed"] == 0


def test_image_models_are_ranked_against_an_order_given(tmp_path):
    order = tmp_path / "order.txt"
    order.write_text("model 1\n\nunknown\n model 0 \n")
    run = results(tmp_path / "run")
    write_report(load_results([run]), tmp_path / "out", OPTIONS, order=order)
    [row] = csv_rows(tmp_path / "out" / f"{BENCHMARK}_order.csv")
    [rank_of] = csv_rows(tmp_path / "out" / f"{BENCHMARK}_order_ranks.csv")
    replies = (
        json.loads(row["filtered_resps"]) for row in read_lines(next(run.iterdir()))
    )
    scores = [reply["verdict"]["scores"]["SC"] for reply in replies]
    right = bool(np.mean(scores[1::2]) > np.mean(scores[::2]))
    assert (row["task"], row["aspect"], row["n"]) == ("tie", "SC", "2")
    first, second = ("1.0", "2.0") if right else ("2.0", "1.0")
    assert [*rank_of.items()][-2:] == [("model 1", first), ("model 0", second)]
    assert row["footrule of order"] == f"{'0' if right else '2'}.000 [0.000, 2.000]"
    [document] = json.loads((tmp_path / "out" / "cells.json").read_text())
    listed = [cell for cell in document["cells"] if cell["table"] == "order"]
    cells = {cell["statistic"]: cell["value"] for cell in listed}
    sign = 1 if right else -1
    assert cells == pytest.approx({"footrule": 1 - sign, "rho": sign, "tau": sign})


FEW = "the results must have scores for at least two of its image models; it lists a, b"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model 0\nmodel 1\nmodel 0\n", "'model 0' twice"),
        ("model 0\n", "must list at least two image models"),
        ("a\nb\n", FEW),
        (None, "cannot read "),
    ],
)
def test_an_unusable_order_is_one_line(tmp_path, text, said):
    order = tmp_path / "order.txt"
    if text is not None:
        order.write_text(text)
    loaded = load_results([results(tmp_path / "run")])
    line = refusal(write_report, loaded, tmp_path / "out", OPTIONS, order=order)
    assert said in line
    assert str(order) in line
    assert not (tmp_path / "out").exists()


def test_what_could_not_be_asked_has_a_column(tmp_path):
    loaded = load_results([results(tmp_path / "run", lacking=3)])
    write_report(loaded, tmp_path / "out", StatisticsOptions("worst", draws=20))
    samples, _ = csv_rows(tmp_path / "out" / f"{BENCHMARK}_statuses.csv")
    assert (samples["ok"], samples["not_applicable"]) == ("17", "3")
    rows = csv_rows(tmp_path / "out" / "numbers.csv")
    of_judge = [n for n in rows if n["role"] == "judge" and not n["breakdown"]]
    # n of statistics of generators are pairs
    numbers = [n for n in of_judge if "of_generators" not in n["statistic"]]
    assert {n["n"] for n in numbers} == {"17"}
    assert {n["coverage"] for n in numbers} - {""} == {"1"}


def test_a_benchmark_that_no_installed_package_brings_is_told_in_one_line(tmp_path):
    given = [results(tmp_path / "run"), results(tmp_path / "other", "from_elsewhere")]
    line = refusal(write_report, load_results(given), tmp_path / "out", OPTIONS)
    assert "the benchmark 'from_elsewhere' of these results is not installed" in line
    assert not (tmp_path / "out").exists()
