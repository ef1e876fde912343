"""A benchmark in a folder: what its table becomes, its tasks, ceiling and constants, and what is
wrong in a line.
"""

import re
from pathlib import Path
from shlex import split

import pytest

from tests.benchmarks import folders as folder_files
from tests.benchmarks.folders import PAIRS, SIGNS, rating_rows, vote_rows
from tests.fake_server import FakeServer, named
from tests.judge_files import LEGIBILITY
from tests.refusals import refusal
from tests.stored_results import write_lines
from vieval_plugin.benchmarks import described, in_folder, registry, tasks
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.cli import main
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import Votes
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.votes import ByVotes

write = folder_files.write  # a fixture


def test_a_table_of_ratings_becomes_samples(write, tmp_path):
    benchmark = in_folder.read_benchmark(write(SIGNS, rating_rows()))
    first, *_ = samples = benchmark.load(tmp_path / "elsewhere", "all")
    assert len(samples) == 50
    assert str(first.id) == "signs/all/painter/0"
    assert first.kind == "tig"
    assert first.group == "a sign that says 0"
    assert first.tags == ("round",)
    assert first.ratings == {"SC": (1.0, 1.0, 2.0)}
    assert isinstance(benchmark.report, ByImageModel)
    assert (benchmark.licence, benchmark.trainable) == ("CC0-1.0", False)
    assert benchmark.missing(tmp_path, "all") == []
    assert benchmark.prepare(tmp_path, Preparing()).complete


def test_a_list_in_a_column_parts_of_a_column_and_statistics_by_name(write, tmp_path):
    rows = rating_rows(8)
    for n, row in enumerate(rows):
        row |= {"all": [row["rater1"], row["rater2"]], "split": "ab"[n % 2]}
    changes = {
        "table": "ratings.jsonl",
        "ratings": {"PQ": "all"},
        "parts": {"column": "split"},
        "statistics": ["pearson"],
        "group": "model",
    }
    benchmark = in_folder.read_benchmark(write(SIGNS, rows, **changes))
    assert dict(benchmark.parts) == {"a": None, "b": None}
    assert benchmark.report == WithLabels(("pearson",), ("PQ",))
    samples = benchmark.load(tmp_path, "b")
    found = [str(sample.id) for sample in samples]
    assert found == [f"signs/b/printer/{n}" for n in range(4)]
    assert samples[1].ratings == {"PQ": (5.0, 5.0)}
    assert samples[0].group == "printer"


def test_incomplete_annotators_are_a_mean(write, tmp_path, capsys):
    rows = rating_rows(4)
    rows[0] |= {"rater1": "", "rater2": 2, "rater3": 5}
    benchmark = in_folder.read_benchmark(write(SIGNS, rows))
    samples = benchmark.load(tmp_path, "all")
    assert [len(sample.ratings["SC"]) for sample in samples] == [1] * 4
    assert samples[0].ratings["SC"] == (3.5,)
    benchmark.load(tmp_path, "all")
    [line] = capsys.readouterr().err.splitlines()
    assert f"SC of {samples[0].id} has 2 of 3 ratings" in line
    assert "without a human ceiling; fill in the empty cell" in line


def test_a_table_of_votes_becomes_contests(write, tmp_path):
    benchmark = in_folder.read_benchmark(write(PAIRS, vote_rows()))
    contests = benchmark.load(tmp_path, "all")
    assert benchmark.report == ByVotes("three_way")
    assert contests[1].votes == Votes("three_way", "second", ("second", "second"))
    found = [str(one.id) for one in contests[1].candidates]
    places = [f"sign_pairs/all/{one}" for one in ("painter/3#1", "unnamed/3#2")]
    assert found == places
    assert contests[1].group == "a sign that says 1"


def test_names_of_files_are_columns_and_templates_are_filled(write, tmp_path):
    rows = [
        {"file": f"a_b/run_{n}.png", "round": n // 2, "rater": 1 + n} for n in range(4)
    ]
    for row in rows:
        row |= {"caption": "a sign", "style": "bold"}
    for row in rows[2:]:
        row["absent"] = "x"
    columns = {"output": "images/{number}.png", "uid": "{round}-{number}"}
    changes = {
        "split": {"file": "{image_model}/run_{number}.png"},
        "columns": {**columns, "prompt": "caption"},
        "ratings": {"SC": "rater"},
        "group": "{caption}, round {round}",
        "tags": ["style {style}", "style {absent}"],
    }
    benchmark = in_folder.read_benchmark(write(SIGNS, rows, **changes))
    samples = benchmark.load(tmp_path, "all")
    found = [str(sample.id) for sample in samples[:2]]
    assert found == ["signs/all/a_b/0-0", "signs/all/a_b/0-1"]
    found = [sample.images["output"].source.name for sample in samples]
    assert found == [f"{n}.png" for n in range(4)]
    assert benchmark.missing(tmp_path, "all") == []
    found = [sample.group for sample in samples]
    assert found == [f"a sign, round {n // 2}" for n in range(4)]
    tags = [sample.tags for sample in samples[1:3]]
    assert tags == [("style bold",), ("style bold", "style x")]


def test_candidates_are_rated_with_their_share_of_the_vote(write, tmp_path):
    changes = {"statistics": ["preference_accuracy"], "columns": {"prompt": "caption"}}
    benchmark = in_folder.read_benchmark(write(PAIRS, vote_rows(6), **changes))
    samples = benchmark.load(tmp_path, "all")
    assert benchmark.report == WithLabels(("preference_accuracy",))
    found = [(one.id.uid, one.ratings["SC"], one.place) for one in samples[:4]]
    assert found == [
        ("2#0", (1.0,), (0,)),
        ("2#1", (0.0,), (1,)),
        ("3#0", (0.0,), (0,)),
        ("3#1", (1.0,), (1,)),
    ]
    rows = vote_rows(2)
    rows[1]["choice"] = ""
    benchmark = in_folder.read_benchmark(write(PAIRS, rows, **changes))
    said = refusal(benchmark.load, tmp_path, "all")
    assert "votes.csv: line 3: no vote in choice" in said
    said = refusal(in_folder.read_benchmark, write(PAIRS, rows, statistics=["auroc"]))
    assert "statistics: votes support only preference_accuracy" in said


@pytest.mark.parametrize("name", ["auroc", "majority_agreement"])
def test_statistics_of_yes_and_no_are_refused_on_another_scale(write, name):
    folder = write(SIGNS, rating_rows(4), statistics=[name])
    said = refusal(in_folder.read_benchmark, folder)
    assert f"statistics: {name} requires ratings of no and yes" in said
    assert "[1.0, 5.0]" in said


def test_examples_of_two_images_and_two_captions_need_no_columns(tmp_path):
    names = [f"{what}_{k}" for what in ("image", "caption") for k in (0, 1)]
    rows = [{"id": n, **{name: f"{n}{name[-1]}" for name in names}} for n in range(3)]
    write_lines(tmp_path / "pairs.jsonl", rows)
    description = tmp_path / in_folder.FILE
    text = "name: mine\nkind: tig\ntwo_by_two: "
    description.write_text(f"{text}pairs.jsonl\n")
    samples = in_folder.read_benchmark(tmp_path).load(tmp_path, "all")
    assert [(str(sample.id), sample.ratings["SC"]) for sample in samples[:2]] == [
        ("mine/all/unnamed/0#i0t0", (1.0,)),
        ("mine/all/unnamed/0#i0t1", (0.0,)),
    ]
    description.write_text(f"{text}../pairs.jsonl\n")
    said = refusal(in_folder.read_benchmark(tmp_path).load, tmp_path, "all")
    assert "benchmark.yaml: two_by_two: no file '../pairs.jsonl' in this folder" in said


def test_a_task_of_lmms_eval_is_conditions_for_a_generator(tmp_path):
    host = "lmms_eval: {task: imgedit, text: instruction, image: source, uid: key}"
    (tmp_path / in_folder.FILE).write_text(f"name: my_edits\nkind: tie\n{host}\n")
    benchmark = in_folder.read_benchmark(tmp_path)
    assert benchmark.name == "my_edits"
    assert dict(benchmark.parts) == {"tie": None}
    assert benchmark.generates is True


def test_benchmarks_that_come_with_us_are_found_by_looking():
    files = Path(described.__file__).parent.glob("*.yaml")
    named = {benchmark.name for benchmark in described.BENCHMARKS}
    assert {file.stem for file in files} == named
    assert named <= set(registry.benchmarks())
    assert {benchmark.file for benchmark in described.BENCHMARKS} == {None}


def test_a_folder_of_benchmarks_has_tasks(write, tmp_path, monkeypatch, capsys):
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "legibility.yaml").write_text(LEGIBILITY)
    folder = write(SIGNS, rating_rows()).parent
    write(PAIRS, vote_rows())
    write(SIGNS, rating_rows(), "taken")
    write(SIGNS, rating_rows(), "ours", name_="x")
    monkeypatch.setenv("VIEVAL_BENCHMARKS", str(folder))
    monkeypatch.setenv("VIEVAL_JUDGES", str(tmp_path / "judges"))
    registry.benchmarks.cache_clear()
    judge_registry.judges.cache_clear()
    assert {"signs", "sign_pairs"} <= set(registry.benchmarks())
    said = capsys.readouterr().err
    assert "name: signs is already the name of the benchmark Street signs" in said
    assert "unknown key name_" in said
    benchmarks = ("signs", "sign_pairs")
    expected = {
        f"{b}_{judge}" for b in benchmarks for judge in ("viescore", "legibility")
    }
    expected |= {"signs_vqascore", "sign_pairs_pairwise"}
    assert expected <= set(tasks.entries())
    monkeypatch.setenv("VIEVAL_BENCHMARKS", str(folder / "signs"))
    registry.benchmarks.cache_clear()
    assert "signs" in registry.benchmarks()
    assert "sign_pairs" not in registry.benchmarks()


def test_it_is_scored_and_compared(write, tmp_path, monkeypatch, capsys, vieval):
    monkeypatch.chdir(tmp_path)
    signs, pairs = str(write(SIGNS, rating_rows())), str(write(PAIRS, vote_rows()))
    with FakeServer() as server:
        for folder, out, judge in (
            (signs, "signs.jsonl", "viescore"),
            (pairs, "pairs.jsonl", "viescore"),
            (pairs, "chosen.jsonl", "pairwise"),
        ):
            command = split(f"score --benchmark {folder} --out {out} --judge {judge}")
            assert main([*command, *named(server)]) == 0, capsys.readouterr().err
    registry.benchmarks.cache_clear()
    error = vieval("report", "signs.jsonl", "--out", "none", code=1).err
    assert "the benchmark 'signs'" in error
    of = ["--benchmark", signs, "--benchmark", pairs]
    files = split("report signs.jsonl pairs.jsonl chosen.jsonl --out report")
    assert main([*files, *of]) == 0
    report = (tmp_path / "report" / "report.md").read_text()
    assert "## signs" in report
    # a baseline stands there as an entrant, and as what judges stand beside
    rows = (tmp_path / "report" / "numbers.csv").read_text()
    votes = "sign_pairs,all,votes,accuracy_decisive,"
    assert re.search(rf"{votes}always second,baseline", rows)
    assert re.search(rf"{votes}best constant: always second,baseline", rows)
    said = capsys.readouterr().out
    assert re.search(r"human ceiling +1\.000\n", said)
    assert "best constant: always second" in report
    assert "signs: Spearman's correlation with the ratings on SC" in said
    assert "human ceiling: each rater against the others" in report
    assert "best constant: the same score for all" in report
    vieval("compare", "pairs.jsonl", "chosen.jsonl", *of)


def test_a_parquet_file_may_hold_the_images_and_lists_of_ratings(write, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    changes = {"columns": None, "table": "ratings.parquet"}
    folder = write(SIGNS, rating_rows(4), ratings={"SC": "ratings"}, **changes)
    pictures = [(folder / "images" / f"{n}.png").read_bytes() for n in range(4)]
    table = {
        "image": [
            {"bytes": data, "path": f"{n}.png"} for n, data in enumerate(pictures)
        ],
        "caption": ["a sign"] * 4,
        "ratings": [[1, 2], [3, None], [5, 5], [4, 4]],
        "style": ["round"] * 4,
    }
    parquet.write_table(pyarrow.table(table), folder / "ratings.parquet")
    samples = in_folder.read_benchmark(folder).load(tmp_path, "all")
    assert [sample.images["output"].source for sample in samples] == pictures
    ratings = [sample.ratings["SC"] for sample in samples]
    assert ratings == [(1.5,), (3.0,), (5.0,), (4.0,)]
    assert [sample.id.uid for sample in samples] == ["1", "2", "3", "4"]
    changes |= {"split": {"image": "{uid}.png"}, "ratings": {"SC": "ratings"}}
    folder = write(SIGNS, [], **changes)
    samples = in_folder.read_benchmark(folder).load(tmp_path, "all")
    assert [sample.id.uid for sample in samples] == ["0", "1", "2", "3"]


def test_candidates_in_cells_are_refused_and_need_no_other_columns(write, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    changes = {
        "columns": None,
        "table": "votes.parquet",
        "candidates": [{"output": "left"}, {"output": "right"}],
    }
    folder = write(PAIRS, vote_rows(1), **changes)
    cells = {"left": ["images/0.png"], **{name: ["A"] for name in ("choice", "a", "b")}}
    image = {"bytes": b"x", "path": "1.png"}

    def load(right):
        table = pyarrow.table({**cells, "right": [right]})
        parquet.write_table(table, folder / "votes.parquet")
        return in_folder.read_benchmark(folder).load(tmp_path, "all")

    [contest] = load("images/1.png")
    assert [candidate.texts for candidate in contest.candidates] == [{}, {}]
    said = "row 1: right must be a file name, got an image"
    assert said in refusal(load, image)
