"""`vieval compare`: which judge is better, on a terminal and in files."""

import json
import re

import pytest

from tests.builders import a_provenance, a_rated_folder, poor, right
from tests.stored_results import csv_rows, result, write_results
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.cli import main
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.protocol import Verdict
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


def compare(capsys, *arguments):
    assert main(["compare", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def headline(numbers):
    """The numbers by which judges are ranked."""
    of_judges = [
        row
        for row in numbers
        if (row["role"], row["part"], row["statistic"]) == ("judge", "all", "spearman")
    ]
    return [row for row in of_judges if not row["breakdown"]]


def test_judges_are_ranked_and_their_differences_tested(tmp_path, capsys):
    out = tmp_path / "out"
    given = [
        judged(tmp_path, "poor", poor),
        judged(tmp_path, "right", right),
        judged(tmp_path, "alike", right),
    ]
    shown = compare(capsys, *given, "--draws", 300, "--seed", 7, "--out", out)
    lines = shown.splitlines()
    found = sorted(path.name for path in out.iterdir() if path.suffix != ".parquet")
    assert found == FILES
    pairs = csv_rows(out / "pairs.csv")
    assert [(row["better"], row["worse"]) for row in pairs] == [
        ("alike", "poor"),
        ("alike", "right"),
        ("right", "poor"),
    ]
    found = [float(row["p_adjusted"]) for row in pairs]
    assert found == (pytest.approx([3 / 10_001, 1, 3 / 10_001], abs=1e-5))
    text = (out / "findings.json").read_text()
    document = json.loads(text, parse_constant=pytest.fail)
    assert document["draws"] == 300
    assert document["seed"] == 7
    assert document["failures"] == "drop"
    found = [(one["title"], one["evidence"]) for one in document["answers"]]
    assert found == [tuple(lines[:2])]
    assert document["pairs"][0]["better"] == "alike"
    assert document["pairs"][0]["worse"] == "poor"
    values = {one["system"]: one["value"] for one in headline(document["numbers"])}
    for row, pair in zip(pairs, document["pairs"], strict=True):
        assert pair["difference"] == pytest.approx(
            values[pair["better"]] - values[pair["worse"]], abs=1e-5
        )
        assert float(row["difference"]) == pytest.approx(pair["difference"], abs=1e-5)
        assert pair["low"] <= pair["difference"] <= pair["high"]
        assert pair["significant"] == (pair["p_adjusted"] <= 0.05)


def test_the_same_command_prints_the_same_and_another_seed_does_not(tmp_path, capsys):
    given = [judged(tmp_path, "poor", poor), judged(tmp_path, "right", right)]
    first = compare(capsys, *given, "--draws", 100)
    assert compare(capsys, *given, "--draws", 100) == first
    found = compare(capsys, *given, "--draws", 100, "--seed", 1).splitlines()[:-1]
    assert found != first.splitlines()[:-1]


def test_draws_seed_and_policy_are_those_of_the_options(tmp_path, capsys, monkeypatch):
    vieval = tmp_path / "vieval.yaml"
    vieval.write_text("statistics: {draws: 50, seed: 9, failures: worst}")
    monkeypatch.setenv("VIEVAL_CONFIG", str(vieval))
    failing = judged(
        tmp_path, "failing", lambda n, people: None if n < 20 else right(n, people)
    )
    shown = compare(capsys, failing, judged(tmp_path, "right", right))
    assert re.search(r"^right - failing +80 ", shown, re.MULTILINE)
    assert (
        "Failed verdicts count as the lowest score. A judge's missing answer to a contest counts as wrong."
        in shown
    )
    assert "50 bootstrap resamples" in shown
    assert "Seed 9." in shown


@pytest.mark.parametrize(
    "wrong",
    [
        ("--draws", "0"),
        ("--draws", "many"),
        ("--draws", "9999999999"),
        ("--seed", "-1"),
        ("--seed", "1.5"),
    ],
)
def test_wrong_usage_is_told_as_such(wrong, capsys):
    with pytest.raises(SystemExit) as end:
        main(["compare", "somewhere", *wrong])
    assert end.value.code == 2
    assert "must be a whole number" in capsys.readouterr().err


@pytest.fixture(scope="module")
def gpt4v(shared_data, tmp_path_factory):
    """The authors' logs of both settings as samples files."""
    benchmark = benchmark_registry.benchmark("imagenhub")
    spec = judge_registry.judge("viescore")
    folders = []
    for name in ("gpt4v_0shot", "gpt4v_1shot"):
        path = shared_data / "viescore_logs" / f"results_{name}"
        recorded = replay.load(path, spec.name)
        rows = [
            (s, recorded.verdict(s.id)[0])
            for part in benchmark.parts
            for s in benchmark.load(shared_data, part)
        ]
        folders.append(samples(tmp_path_factory.mktemp(name), rows, name, spec.aspects))
    return folders


def test_gpt4v_is_worse_with_an_example(gpt4v, tmp_path, capsys):
    """The published finding, on 2,497 samples that both scored; and the values of all 4,490:
    .416 / .345 / .364.
    """
    again = tmp_path / "again"
    shown = compare(capsys, *gpt4v, "--out", tmp_path)
    title = "gpt4v_0shot agrees best with annotators on imagenhub."
    assert shown.startswith(
        f"{title}\nSpearman of gpt4v_0shot: 0.36, 0.07 higher than gpt4v_1shot ("
    )
    assert re.findall(
        r"^imagenhub: Spearman's correlation with the ratings on (.*)$",
        shown,
        re.MULTILINE,
    ) == [
        f"{aspect}, averaged over image models and task types (Fisher); Holm correction over 1 pair"
        for aspect in ("O", "SC", "PQ")
    ]
    found = len(re.findall(r"^gpt4v_0shot - gpt4v_1shot +2497 ", shown, re.MULTILINE))
    assert found == 3
    rows = csv_rows(tmp_path / "pairs.csv")
    assert [row["aspect"] for row in rows] == ["O", "SC", "PQ"]
    for row in rows:
        assert row["better"] == "gpt4v_0shot"
        assert row["worse"] == "gpt4v_1shot"
        assert row["n"] == "2497"
        assert 0 < float(row["low"]) < float(row["difference"]) < float(row["high"])
        assert 0 < float(row["p"]) == float(row["p_adjusted"]) < 0.05
    text = (gpt4v[0] / "1_samples_task.jsonl").read_text()
    again.mkdir()
    (again / "1_samples_task.jsonl").write_text(text.replace("gpt4v_0shot", "again"))
    compare(capsys, gpt4v[0], again, "--draws", 50, "--out", tmp_path)
    judges, pairs = (
        csv_rows(tmp_path / f"{what}.csv") for what in ("numbers", "pairs")
    )
    judges = headline(judges)
    values = {(row["aspect"], round(float(row["value"]), 3)) for row in judges}
    assert values == {("O", 0.364), ("SC", 0.416), ("PQ", 0.345)}
    found = {(row["rank_from"], row["rank_to"], row["n"]) for row in judges}
    assert found == {("1", "2", "4490")}
    found = {tuple(row[n] for n in ("difference", "low", "high", "p")) for row in pairs}
    assert found == {("0", "0", "0", "1")}


def test_unranked_judges_are_a_family_of_their_own(shared_data, tmp_path, capsys):
    """GPT-4v without an example, with one, and a judge of one task type that scores as the first
    does.
    """
    benchmark = benchmark_registry.benchmark("imagenhub")
    spec = judge_registry.judge("viescore")
    folders = []
    for name, log, parts in (
        ("first", "gpt4v_0shot", ("cig", "sdie")),
        ("second", "gpt4v_1shot", ("cig", "sdie")),
        ("one type", "gpt4v_0shot", ("cig",)),
    ):
        path = shared_data / "viescore_logs" / f"results_{log}"
        recorded = replay.load(path, spec.name)
        rows = [
            (s, recorded.verdict(s.id)[0])
            for part in parts
            for s in benchmark.load(shared_data, part)
        ]
        rows = [
            (s, Verdict({"SC": v.scores["SC"]}, v.status))
            for s, v in rows
            if "SC" in v.scores
        ]
        folders.append(samples(tmp_path / name, rows, name, ("SC",)))
    shown = compare(capsys, *folders, "--draws", 50, "--out", tmp_path / "out")
    family = "Holm correction over 1 pair of ranked judges, and separately over 2 pairs with unranked judges"
    first, evidence, *_ = shown.splitlines()
    assert first == "Of the two ranked, first agrees best with annotators on imagenhub."
    assert family not in evidence
    assert f"; {family}\n" in shown
    pairs = {
        frozenset((row["better"], row["worse"])): row
        for row in csv_rows(tmp_path / "out" / "pairs.csv")
    }
    ranked, same, other = (
        pairs[frozenset(labels)]
        for labels in (
            ("first", "second"),
            ("first", "one type"),
            ("second", "one type"),
        )
    )
    assert float(ranked["p_adjusted"]) == float(ranked["p"])
    assert (same["difference"], same["p_adjusted"]) == ("0", "1")
    found = float(other["p_adjusted"])
    assert found == (pytest.approx(min(1, 2 * float(other["p"])), abs=1e-5))
