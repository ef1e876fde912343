"""Reports of several runs: ranks by benchmark and over benchmarks, and distinct labels."""

import json
import re
from dataclasses import replace
from shlex import split

import numpy as np
import pytest

from tests.builders import (
    a_label_file,
    a_provenance,
    a_rated_folder,
    a_sample,
    a_verdict,
    poor,
    right,
)
from tests.refusals import refusal
from tests.stored_results import csv_rows
from vieval_plugin.cli import main
from vieval_plugin.report.writing import write_report
from vieval_plugin.results.runs import load_results
from vieval_plugin.run.verdict_lines import write_verdicts
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=200)


def provenance(backbone, temperature=0.0, pack="abc", judge="viescore"):
    answering = {"model": backbone, "temperature": temperature, "num_concurrent": 8}
    options = {"judges": {judge: {"reminders": 1}}, "backbones": {"judge": answering}}
    made = {"pack_hash": pack, "config_hash": f"{temperature}{pack}"}
    return a_provenance(judge, backbone, ("SC",), options=options, **made)


def run(folder, source, scored, benchmark="vieval_demo", name="1"):
    """A samples file of a judge of SC."""
    about = {"benchmark": benchmark, "name": f"{name}_samples_task.jsonl"}
    return a_rated_folder(folder, scored, source=source, **about)


def runs_of(tmp_path, **scored):
    """The samples files of judges by name."""
    return [run(tmp_path / name, provenance(name), one) for name, one in scored.items()]


def reported(out, *results, labels=()):
    """The numbers by which a report ranks judges, by judge."""
    write_report(load_results(results, labels), out, OPTIONS)
    return {row["system"]: row for row in ranked(out)}


def ranked(out):
    kind = ("judge", "all", "spearman")
    rows = csv_rows(out / "numbers.csv")
    return [row for row in rows if (row["role"], row["part"], row["statistic"]) == kind]


def test_judges_are_ranked_each_two_on_what_both_scored(tmp_path):
    out = tmp_path / "out"
    failing = lambda n, people: None if n < 20 else right(n, people)
    given = runs_of(tmp_path, poor=poor, right=right, failing=failing)
    found = reported(out, *given)
    columns = ("rank_from", "rank_to", "n")
    places = {judge: [row[name] for name in columns] for judge, row in found.items()}
    first = ["1", "2"]
    expected = {"right": [*first, "80"], "failing": [*first, "60"]}
    assert places == {**expected, "poor": ["3", "3", "80"]}
    assert found["failing"]["failures"] == "20"
    assert found["failing"]["coverage"] == "0.75"
    pairs = {
        (row["better"], row["worse"]): (row["n"], row["significant"])
        for row in csv_rows(out / "pairs.csv")
    }
    assert pairs.pop(("right", "poor")) == ("80", "yes")
    assert pairs.pop(("failing", "poor")) == ("60", "yes")
    assert list(pairs.values()) == [("60", "no")]


@pytest.mark.parametrize("judges", [6, 7])
def test_differences_of_more_than_six_judges_have_no_intervals(tmp_path, judges):
    given = [
        run(tmp_path / f"judge {n}", provenance(f"judge {n}"), poor if n else right)
        for n in range(judges)
    ]
    reported(tmp_path / "out", *given)
    pairs = csv_rows(tmp_path / "out" / "pairs.csv")
    assert len(pairs) == judges * (judges - 1) / 2
    assert {bool(row["low"] and row["high"]) for row in pairs} == {judges <= 6}


def test_over_benchmarks_a_judge_has_the_mean_of_its_numbers(tmp_path):
    out = tmp_path / "out"
    given = [
        run(tmp_path / f"{name}{benchmark}", provenance(name), scored, benchmark)
        for benchmark in ("vieval_demo", "imagenhub")
        for name, scored in (("right", right), ("poor", poor))
    ]
    only_here = run(tmp_path / "only", provenance("only"), right)
    reported(out, *given, only_here)
    over = {row["judge"]: row for row in csv_rows(out / "over_benchmarks.csv")}
    for judge, rank in (("right", "1"), ("poor", "2")):
        values = [float(row["value"]) for row in ranked(out) if row["system"] == judge]
        assert len(values) == 2
        assert float(over[judge]["value"]) == pytest.approx(np.mean(values), abs=5e-4)
        assert over[judge]["rank"] == rank
    unranked = [over["only"][name] for name in ("rank", "value", "why not ranked")]
    assert unranked == ["", "", "not compared on imagenhub"]


def test_two_runs_of_one_model_are_called_by_what_differs(tmp_path):
    cold, hot = provenance("m"), provenance("m", 0.7)
    runs = run(tmp_path / "a", cold, right), run(tmp_path / "b", hot, poor)
    found = reported(tmp_path / "out", *runs)
    assert set(found) == {"m (temperature=0.0)", "m (temperature=0.7)"}
    other = provenance("m", pack="def")
    path = tmp_path / "packs"
    found = reported(path, tmp_path / "a", run(tmp_path / "c", other, poor))
    assert set(found) == {"m (pack=viescore/v1 abc)", "m (pack=viescore/v1 def)"}


def test_namesakes_are_called_by_judge_setting_and_pack_each_once(tmp_path):
    plain = provenance("m")
    paper = a_provenance("cigeval", "m", ("SC",), settings=("paper",))
    sources = {
        "paper": paper,
        "0shot": plain,
        "1shot": replace(plain, settings=("1shot",)),
    }
    given = [run(tmp_path / name, source, right) for name, source in sources.items()]
    labels = [one.label for one in load_results(given).runs]
    settings = [f"m (VIEScore, setting {name})" for name in ("0shot", "1shot")]
    assert labels == ["m (CIGEval)", *settings]
    judged = {"viescore": {"reminders": 1, "pack": "my_wording"}}
    options = {**plain.options, "judges": judged}
    own = replace(plain, pack="my_wording", pack_hash="xyz", options=options)
    found = load_results([tmp_path / "0shot", run(tmp_path / "own", own, right)]).runs
    details = ["pack=my_wording", "pack=viescore/v1"]
    assert [one.label for one in found] == [f"m ({text})" for text in details]
    assert [one.name.details for one in found] == details


def test_two_runs_into_one_folder_do_not_take_each_others_place(tmp_path):
    for name, (temperature, score) in enumerate(
        [(0.0, right), (0.7, poor), (0.7, right)]
    ):
        run(tmp_path, provenance("m", temperature), score, name=name)
    found = load_results([tmp_path])
    labels = [one.label for one in found.runs]
    assert labels == ["m (temperature=0.0)", "m (temperature=0.7)"]
    scores = [one.records["tie"][1][0].verdict.scores["SC"] for one in found.runs]
    assert scores[0] == scores[1]  # of the two hot ones, the newest


def test_labels_tell_apart_what_nothing_else_does(tmp_path):
    scored = {"a": right, "b": poor}
    given = [run(tmp_path / name, provenance("m"), one) for name, one in scored.items()]
    said = "line 1: .* is also in line 1 of .*a/1_samples_task.jsonl; .* --label"
    assert re.search(said, refusal(load_results, given))
    labels = ("before", "after")
    assert set(reported(tmp_path / "out", *given, labels=labels)) == {*labels}
    line = refusal(load_results, given, ["before"])
    assert "1 label for 2 results; pass one --label per result" in line


def test_options_that_change_no_answer_make_no_other_run(tmp_path):
    source = provenance("m")
    backbone = {**source.options["backbones"]["judge"], "num_concurrent": 1}
    patient = {**source.options, "backbones": {"judge": backbone}}
    other = replace(source, options=patient, config_hash="other")
    first = run(tmp_path / "a", source, right)
    second = run(tmp_path / "b", other, right, "imagenhub")
    assert [one.label for one in load_results([first, second]).runs] == ["m", "m"]


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_reported(tmp_path, vieval):
    good, bad = run(tmp_path / "a", provenance("m"), right), tmp_path / "bad.jsonl"
    bad.write_bytes(b"\xff\xfe{}\n")
    command = ["report", str(good), str(bad), "--out", str(tmp_path / "out")]
    said = vieval(*command, code=1).err
    assert f"vieval: skipped, because it cannot be read: {bad}" in said
    text = (tmp_path / "out" / "report.md").read_text()
    assert f"Note: skipped, because it cannot be read: {bad}" in text
    [line] = vieval("report", bad, "--out", tmp_path / "none", code=1).err.splitlines()
    assert str(bad) in line
    assert not (tmp_path / "none").exists()


def test_a_report_removes_what_an_earlier_one_wrote_and_nothing_else(tmp_path):
    a, *others = (
        run(tmp_path / f"{model}{benchmark}", provenance(model), score, benchmark)
        for model, score in (("right", right), ("poor", poor))
        for benchmark in ("vieval_demo", "imagenhub")
    )
    out = tmp_path / "out"
    reported(out, a, *others)
    assert (out / "over_benchmarks.csv").exists()
    (out / "mine.csv").write_text("kept")
    (tmp_path / "outside.csv").write_text("kept")
    listed = json.loads((out / "files.json").read_text())
    text = json.dumps([*listed, "../outside.csv", "/etc/passwd", 3])
    (out / "files.json").write_text(text)
    write_report(load_results([a]), out, OPTIONS)
    assert not (out / "over_benchmarks.csv").exists()
    kept = (out / "report.md", out / "mine.csv", tmp_path / "outside.csv")
    assert all(path.exists() for path in kept)


def test_ratings_tell_how_far_a_judge_agrees(tmp_path, capsys):
    rng = np.random.default_rng(0)
    samples = [a_sample(f"u{n}", "mine") for n in range(20)]
    scores = [float(score) for score in rng.random(20)]
    found = [a_verdict(score, ("SC",)) for score in scores]
    write_verdicts(tmp_path / "v.jsonl", samples, found, provenance("m"))
    labels = [
        {"uid": f"u{n}", "generator": "mine", "rater": who, "value": f"{score:.3f}"}
        for n, score in enumerate(scores)
        for who in ("ann", "ben")
    ]
    a_label_file(tmp_path / "r.csv", labels)
    out = tmp_path / "out"
    got = main(split(f"report {tmp_path}/v.jsonl --human {tmp_path}/r.csv --out {out}"))
    assert got == 0
    assert "| SC | 2 | 20 | 20 | 1.000 |" in (out / "report.md").read_text()
    [found] = ranked(out)
    assert (found["system"], found["aspect"]) == ("m", "SC")
    assert float(found["value"]) == pytest.approx(0.9999)


def blind(number, people):
    return number * 37 % 80 / 100


def lenient(number, people):
    """A judge that fails on the images that people like best."""
    return 0.7 * people + number * 37 % 80 / 200 if people < 0.6 else None


def everywhere(tmp_path, vieval, *results):
    """The texts of a report in which a mark is looked for, by where they are."""
    out = tmp_path / "out"
    terminal = vieval("report", *results, "--out", out).out
    names = ("report.md", "report.html", "vieval_demo_headline_1.csv")
    return {**{name: (out / name).read_text() for name in names}, "terminal": terminal}


def test_a_place_that_depends_on_failures_is_marked(tmp_path, vieval):
    given = runs_of(tmp_path, lenient=lenient, poor=poor, right=right)
    texts = everywhere(tmp_path, vieval, *given)
    meaning = "place depends on failures: the first place leaves out failed verdicts"
    terminal = texts.pop("terminal")
    for words in ("failures: 2", "failures: 3", meaning):
        assert words in terminal  # where cells are wrapped
    for where, text in texts.items():
        for without, with_them in ((2, 3), (3, 2)):
            place = f"{without} without them, {with_them} with them"
            assert f"place depends on failures: {place}" in text, where
        assert "1 without them" not in text, where
        assert (meaning in text) == ("csv" not in where)


def test_one_judge_alone_is_marked_and_has_no_rank_and_no_pair(tmp_path, vieval):
    out = tmp_path / "out"
    printed = vieval("report", *runs_of(tmp_path, blind=blind), "--out", out).out
    said = "blind is not shown to be better than a constant answer on vieval_demo."
    assert printed.startswith(said)
    first, *_ = csv_rows(out / "vieval_demo_headline_1.csv")
    assert first["marks"] == "not shown to beat a constant answer"
    assert first["rank"] == ""
    assert csv_rows(out / "pairs.csv") == []
