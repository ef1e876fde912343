"""The published tables, from the authors' logs through lmms-eval, to the last printed digit."""

import contextlib
import io
import json
import re
import shutil
from shlex import split

import pytest

from tests import in_process
from tests.stored_results import csv_rows
from vieval_plugin.cli import main

pytestmark = pytest.mark.slow

HUMAN = {"SC": 0.683, "PQ": 0.548, "O": 0.650}
GPT4V = {"SC": 0.416, "PQ": 0.345, "O": 0.364}


@pytest.fixture(scope="module")
def replayed(shared_data, tmp_path_factory):
    """Both published settings, each replayed once; the folder of results by name."""
    folders = {}
    variants = {"0shot": "imagenhub_*", "1shot": "variant_imagenhub_viescore_1shot"}
    for setting, tasks in variants.items():
        name = f"gpt4v_{setting}"
        folders[name] = tmp_path_factory.mktemp(name)
        _replay(_logs(shared_data, name), tasks, folders[name], shared_data, name)
    return folders


def _logs(data, name):
    return data / "viescore_logs" / f"results_{name}"


def _replay(logs, tasks, out, data, name=""):
    named = f"name={name}," if name else ""
    arguments = split(f"--model vieval_replay --model_args {named}logs={logs} --tasks")
    in_process.run(*arguments, tasks, "--output_path", out, "--log_samples", data=data)


@pytest.fixture(scope="module")
def reported(replayed, shared_data, tmp_path_factory):
    """The report of both settings: its exit code, what it printed, and its folder."""
    out, printed = tmp_path_factory.mktemp("report"), io.StringIO()
    expected = str(shared_data / "expected" / "viescore_paper_tables.csv")
    with contextlib.redirect_stdout(printed):
        command = ["report", *map(str, replayed.values()), "--out", str(out)]
        code = main([*command, "--expect", expected])
    return code, printed.getvalue(), out


def test_all_505_printed_cells_agree(reported):
    code, printed, _ = reported
    assert code == 0
    form = r"505 of 505 cells .* (\d+) of them exactly"
    assert int(re.search(form, printed, re.DOTALL)[1]) >= 499
    known = [line for line in printed.splitlines() if line.startswith("known")]
    assert len(known) == 16
    for reason, count in (("paper misprint", 5), ("different run", 6), ("inherits", 5)):
        assert sum(reason in line for line in known) == count
    assert "not in these results: 0" in printed


def test_corrected_values_come_with_intervals(reported):
    over_all = _agreement(reported[2], "spearman")
    for judge, expected in (("human", HUMAN), ("gpt4v_0shot", GPT4V)):
        for aspect, value in expected.items():
            found = over_all[judge, "all", aspect]
            assert round(float(found["value"]), 3) == value
            assert float(found["low"]) < float(found["value"]) < float(found["high"])


def _agreement(folder, statistic):
    """Rows of `numbers.csv` of an averaged correlation, by judge, task and aspect."""
    rows = csv_rows(folder / "numbers.csv")
    found = [row for row in rows if row["statistic"] == statistic]
    return {(row["system"], row["part"], row["aspect"]): row for row in found}


def test_each_of_the_4801_samples_is_judged_once(results_of, replayed):
    results, samples = results_of(replayed["gpt4v_0shot"])
    tasks = [task for task in samples if "_viescore_" in task]
    asked = [row for task in tasks for row in samples[task]]
    ids = {json.dumps(json.loads(row["target"])["id"]) for row in asked}
    assert len(asked) == len(ids) == 4801
    assert len(results["group_subtasks"]["imagenhub_viescore"]) == 7
    assert results["groups"]["imagenhub_viescore"]["SC_count,none"] == 4490
    counts = results["n-samples"]
    effective = [counts[task]["effective"] for task in counts if "_viescore_" in task]
    assert sum(effective) == 4801


def test_the_host_and_the_report_agree(results_of, replayed, reported):
    results, _ = results_of(replayed["gpt4v_0shot"])
    group = results["groups"]["imagenhub_viescore"]
    published = _agreement(reported[2], "spearman_published")
    every = _agreement(reported[2], "spearman").items()
    found = {place: row for place, row in every if place[0] == "gpt4v_0shot"}
    assert len(found) == 3 * (1 + 7)
    for place, row in found.items():
        _, task, aspect = place
        of_task = results["results"].get(f"imagenhub_viescore_{task}")
        where = group if task == "all" else of_task
        by_report = {
            "fisher": row["value"],
            "ci_low": row["low"],
            "ci_high": row["high"],
            "paper": published[place]["value"],
            "count": row["n"],
        }
        for key, value in by_report.items():
            expected = where[f"{aspect}_{key},none"]
            assert float(value) == pytest.approx(expected, rel=1e-5)


EVERY = pytest.param("imagenhub_viescore", marks=pytest.mark.extras)


@pytest.mark.parametrize("tasks", ["imagenhub_viescore_cig", EVERY])
def test_a_replay_replays(results_of, replayed, shared_data, tmp_path, tasks):
    log = replayed["gpt4v_0shot"]
    first, _ = results_of(log)
    _replay(log, tasks, tmp_path, shared_data, "gpt4v_0shot")
    second, _ = results_of(tmp_path)
    assert second.get("groups", {}).items() <= first["groups"].items()
    for task, found in second["results"].items():
        alias = {"alias": None}
        assert {**found, **alias} == {**first["results"][task], **alias}


def test_one_changed_score_is_found_and_named(shared_data, tmp_path, capsys):
    out = tmp_path / "out"
    logs = tmp_path / "logs"
    folder = "ImagenHub_Control-Guided_IG"
    shutil.copytree(_logs(shared_data, "gpt4v_0shot") / folder, logs / folder)
    path = logs / folder / "UniControl" / "PQ.json"
    rows = json.loads(path.read_text())
    uid = next(uid for uid, row in rows.items() if min(row["score"]) >= 7)
    rows[uid]["score"] = [0, 0]
    path.chmod(0o644)
    path.write_text(json.dumps(rows))
    _replay(logs, "imagenhub_viescore_cig", out, shared_data, "gpt4v_0shot")
    expected = str(shared_data / "expected" / "viescore_paper_tables.csv")
    code = main([*split(f"report {out} --out {tmp_path}/report --expect"), expected])
    printed = capsys.readouterr().out
    assert code == 1
    said = "DIFFERS   T2/3 cig gpt4v_0shot spearman PQ: printed 0.4975, computed"
    assert said in printed


@pytest.fixture(scope="module")
def blip2(shared_data, tmp_path_factory):
    """The replay of a log most of whose rows the authors guessed."""
    out = tmp_path_factory.mktemp("blip2")
    _replay(_logs(shared_data, "blip2_0shot"), "imagenhub", out, shared_data, "blip2")
    return out


@pytest.fixture(scope="module")
def blip2_report(blip2, tmp_path_factory):
    out = tmp_path_factory.mktemp("blip2_report")
    assert main(["report", str(blip2), "--out", str(out)]) == 0
    return out


def test_blip2s_guesses_are_failures(results_of, blip2, blip2_report):
    by_sample, by_answer = csv_rows(blip2_report / "imagenhub_statuses.csv")
    assert by_sample["guessed"] == "4546"
    assert by_answer["guessed"] == "5334"
    assert by_answer["repaired"] == "0"
    results, samples = results_of(blip2)
    responses = [row["filtered_resps"] for rows in samples.values() for row in rows]
    statuses = [json.loads(response)["verdict"]["status"] for response in responses]
    group = results["groups"]["imagenhub_viescore"]
    assert group["SC_count,none"] == statuses.count("ok") == 4801 - 4546
    assert group["status_guessed_share,none"] == pytest.approx(4546 / 4801)


def _of_blip2(path):
    return [row for row in csv_rows(path) if row["judge"] == "blip2"]


def test_blip2s_row_comes_out_with_its_guesses(blip2, tmp_path, monkeypatch, vieval):
    """Table 1 of the VIEScore paper, and O on tie as ADIEE's paper prints it."""
    (tmp_path / "vieval.yaml").write_text("statistics: {failures: as_recorded}")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))
    vieval("report", blip2, "--out", tmp_path)
    [row] = _of_blip2(tmp_path / "imagenhub_table_1.csv")
    found = [float(row[aspect]) for aspect in ("SC", "PQ", "O")]
    assert found == pytest.approx([0.0504, -0.0108, 0.0622], abs=1.01e-4)
    rows = _of_blip2(tmp_path / "imagenhub_table_2_3.csv")
    parts = {row["task"]: row for row in rows}
    assert float(parts["tie"]["O"]) == pytest.approx(0.0378, abs=1.01e-4)
    text = (tmp_path / "report.md").read_text()
    assert "Failed verdicts keep the scores of their log. " in text


def test_undefined_cells_say_why_in_the_report_and_its_csv(blip2_report):
    undefined = "undefined (at least two pairs are needed, got 0"
    for row in _of_blip2(blip2_report / "imagenhub_table_2_3.csv"):
        if row["task"] != "sdig":
            assert row["SC"].startswith(f"{undefined}: ")
    text = (blip2_report / "report.md").read_text()
    assert undefined in text
    assert not re.search(r"undefined(?! \()", text.replace("because undefined", ""))
    rows = csv_rows(blip2_report / "imagenhub_left_out.csv")
    left_out = {row["task"]: row for row in rows}
    assert left_out["cig"]["image models"] == "ControlNet, UniControl"
    [imagenhub] = json.loads((blip2_report / "cells.json").read_text())
    empty = [cell for cell in imagenhub["cells"] if cell["value"] is None]
    assert all(cell["undefined"] for cell in empty)


@pytest.mark.parametrize(
    ("name", "tasks", "cells"),
    [
        ("gpt4o_0shot", "imagenhub_viescore", 9),
        ("gpt4o_1shot", "variant_imagenhub_viescore_1shot_tie", 1),
        ("llava_0shot", "imagenhub_viescore", 38),
    ],
)
def test_printed_cells_of_more_judges_agree(
    shared_data, tmp_path, monkeypatch, vieval, capsys, name, tasks, cells
):
    """Of the VIEScore paper, and O on tie as ADIEE's paper prints it."""
    _replay(_logs(shared_data, name), tasks, tmp_path / "out", shared_data, name)
    capsys.readouterr()
    options = "statistics: {failures: as_recorded, draws: 100}"
    (tmp_path / "vieval.yaml").write_text(options)
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))
    printed = _report(tmp_path, vieval, shared_data, "viescore_more_judges")
    assert f"{cells} of {cells} cells marked reproducible agree" in printed
    assert f"not in these results: {48 - cells}\n" in printed


def _report(folder, vieval, data, name):
    expected = data / "expected" / f"{name}.csv"
    command = f"report {folder}/out --out {folder}/report --expect"
    return vieval(command, expected).out


def test_cells_of_the_metrics_agree(shared_data, tmp_path, vieval, capsys):
    """Tables 8 and 9, of which the 57th is a slip of the sign; the averages are CIGEval's."""
    logs = _logs(shared_data, "autometrics")
    _replay(logs, "imagenhub_*", tmp_path / "out", shared_data)
    capsys.readouterr()
    printed = _report(tmp_path, vieval, shared_data, "viescore_auto_metric_tables")
    assert "56 of 56 cells marked reproducible agree to within one unit" in printed
    assert "known not to be reproducible: 1; not in these results: 0" in printed
    assert "sign slip in paper" in printed
    rows = csv_rows(tmp_path / "report" / "imagenhub_table_2_3.csv")
    by_task = {(row["judge"], row["task"]): float(row["SC"]) for row in rows}
    assert by_task["clip_score", "tig"] == -0.0817
    lpips = [by_task["lpips", task] for task in ("mie", "tie", "cig")]
    assert lpips == [-0.1012, 0.0956, 0.3699]
