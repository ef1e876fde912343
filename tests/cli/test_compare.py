"""`vieval compare`: which judge is better, on a terminal and in files."""

import json
import re

import pytest

from tests.builders import a_provenance, a_rated_folder, poor, right
from tests.stored_results import csv_rows, result, write_results
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.cli import main
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.records import Provenance
from vieval_plugin.results import replay

FILES = ["findings.json", "numbers.csv", "pairs.csv"]


def samples(folder, rows, backbone, aspects):
    """A samples file as lmms-eval writes it."""
    provenance = Provenance("viescore", ("0shot",), aspects, backbone)
    listed = [result(sample, verdict, provenance) for sample, verdict in rows]
    return write_results(folder, listed)


def judged(folder, backbone, scored, benchmark="vieval_demo"):
    """A judge of SC on 40 instructions with two outputs each."""
    source = a_provenance(model=backbone, aspects=("SC",))
    path = folder / backbone[:8]
    return a_rated_folder(path, scored, source=source, benchmark=benchmark)


@pytest.fixture
def compare(vieval):
    return lambda *arguments: vieval("compare", *arguments).out


def headline(numbers):
    """The numbers by which judges are ranked."""
    fields = ("role", "part", "statistic", "breakdown")
    ranked = ("judge", "all", "spearman", "")
    return [row for row in numbers if tuple(row[name] for name in fields) == ranked]


def test_judges_are_ranked_and_their_differences_tested(tmp_path, compare):
    out = tmp_path / "out"
    judges = (("poor", poor), ("right", right), ("alike", right))
    given = [judged(tmp_path, *judge) for judge in judges]
    shown = compare(*given, "--draws", 300, "--seed", 7, "--out", out)
    found = sorted(path.name for path in out.iterdir() if path.suffix != ".parquet")
    assert found == FILES
    rows = csv_rows(out / "pairs.csv")
    found = [(row["better"], row["worse"]) for row in rows]
    assert found == [("alike", "poor"), ("alike", "right"), ("right", "poor")]
    found = [float(row["p_adjusted"]) for row in rows]
    assert found == pytest.approx([3 / 10_001, 1, 3 / 10_001], abs=1e-5)
    text = (out / "findings.json").read_text()
    document = json.loads(text, parse_constant=pytest.fail)
    settings = [document[name] for name in ("draws", "seed", "failures")]
    assert settings == [300, 7, "drop"]
    [answer] = document["answers"]
    assert [answer["title"], answer["evidence"]] == shown.splitlines()[:2]
    values = {one["system"]: one["value"] for one in headline(document["numbers"])}
    for row, pair in zip(rows, document["pairs"], strict=True):
        assert (pair["better"], pair["worse"]) == (row["better"], row["worse"])
        difference = values[pair["better"]] - values[pair["worse"]]
        found = [pair["difference"], float(row["difference"])]
        assert found == pytest.approx([difference] * 2, abs=1e-5)
        assert pair["low"] <= pair["difference"] <= pair["high"]
        assert pair["significant"] == (pair["p_adjusted"] <= 0.05)


def test_the_same_command_prints_the_same_and_another_seed_does_not(tmp_path, compare):
    given = [judged(tmp_path, "poor", poor), judged(tmp_path, "right", right)]
    first = compare(*given, "--draws", 100)
    assert compare(*given, "--draws", 100) == first
    found = compare(*given, "--draws", 100, "--seed", 1).splitlines()[:-1]
    assert found != first.splitlines()[:-1]


def test_draws_seed_and_policy_are_those_of_the_options(tmp_path, compare, monkeypatch):
    options = tmp_path / "vieval.yaml"
    options.write_text("statistics: {draws: 50, seed: 9, failures: worst}")
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    fails = lambda n, people: None if n < 20 else right(n, people)
    given = [judged(tmp_path, "failing", fails), judged(tmp_path, "right", right)]
    shown = compare(*given)
    assert re.search(r"^right - failing +80 ", shown, re.MULTILINE)
    lowest = "Failed verdicts count as the lowest score. A judge's missing answer"
    assert lowest in shown
    assert "50 bootstrap resamples" in shown
    assert "Seed 9." in shown


WRONG = ["--draws=0", "--draws=many", "--draws=9999999999", "--seed=-1", "--seed=1.5"]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_usage_is_told_as_such(wrong, capsys):
    with pytest.raises(SystemExit) as end:
        main(["compare", "somewhere", wrong])
    assert end.value.code == 2
    assert "must be a whole number" in capsys.readouterr().err


def logged(shared_data, log):
    """The authors' verdicts of a setting."""
    benchmark = benchmark_registry.benchmark("imagenhub")
    path = shared_data / "viescore_logs" / f"results_{log}"
    recorded = replay.load(path, "viescore")
    for part in benchmark.parts:
        for sample in benchmark.load(shared_data, part):
            yield sample, recorded.verdict(sample.id)[0]


@pytest.fixture(scope="module")
def gpt4v(shared_data, tmp_path_factory):
    """The authors' logs of both settings as samples files."""
    aspects = judge_registry.judge("viescore").aspects
    return [
        samples(tmp_path_factory.mktemp(n), logged(shared_data, n), n, aspects)
        for n in ("gpt4v_0shot", "gpt4v_1shot")
    ]


def test_gpt4v_is_worse_with_an_example(gpt4v, tmp_path, compare):
    """The published finding on 2,497 samples, and .416 / .345 / .364 on all 4,490."""
    shown = compare(*gpt4v, "--out", tmp_path)
    title = "gpt4v_0shot agrees best with annotators on imagenhub."
    evidence = "Spearman of gpt4v_0shot: 0.36, 0.07 higher than gpt4v_1shot ("
    assert shown.startswith(f"{title}\n{evidence}")
    told = "averaged over image models and task types (Fisher); Holm correction over 1 pair"
    heading = "^imagenhub: Spearman's correlation with the ratings on (.*)$"
    found = re.findall(heading, shown, re.MULTILINE)
    assert found == [f"{aspect}, {told}" for aspect in ("O", "SC", "PQ")]
    found = len(re.findall(r"^gpt4v_0shot - gpt4v_1shot +2497 ", shown, re.MULTILINE))
    assert found == 3
    rows = csv_rows(tmp_path / "pairs.csv")
    assert [row["aspect"] for row in rows] == ["O", "SC", "PQ"]
    for row in rows:
        found = (row["better"], row["worse"], row["n"])
        assert found == ("gpt4v_0shot", "gpt4v_1shot", "2497")
        assert 0 < float(row["low"]) < float(row["difference"]) < float(row["high"])
        assert 0 < float(row["p"]) == float(row["p_adjusted"]) < 0.05
    again = tmp_path / "again"
    again.mkdir()
    text = (gpt4v[0] / "1_samples_task.jsonl").read_text()
    (again / "1_samples_task.jsonl").write_text(text.replace("gpt4v_0shot", "again"))
    compare(gpt4v[0], again, "--draws", 50, "--out", tmp_path)
    judges = headline(csv_rows(tmp_path / "numbers.csv"))
    values = {(row["aspect"], round(float(row["value"]), 3)) for row in judges}
    assert values == {("O", 0.364), ("SC", 0.416), ("PQ", 0.345)}
    found = {(row["rank_from"], row["rank_to"], row["n"]) for row in judges}
    assert found == {("1", "2", "4490")}
    pairs = csv_rows(tmp_path / "pairs.csv")
    found = {tuple(row[n] for n in ("difference", "low", "high", "p")) for row in pairs}
    assert found == {("0", "0", "0", "1")}
