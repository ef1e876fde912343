"""`rank`, `gate`, `compare` and `report` from Python: what the commands print, as objects."""

import asyncio
import enum
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageFilter
import pytest

from tests.builders import (
    a_rated_folder,
    a_record,
    a_verdict_file,
    poor,
    right,
    some_scores,
)
from vieval_plugin import Judge, VievalError
from vieval_plugin.api import ExitCode, compare, gate, rank, report
from vieval_plugin.cli import main
from vieval_plugin.results.runs import load_results

NUMBER = 24


def named(value):
    """The name of a function in the id of a case; a text with its address differs by process."""
    return getattr(value, "__name__", None)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with images of two generators, their verdicts and two judges of a benchmark."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vieval.yaml").write_text(
        "statistics: {draws: 50}\nstore: {use: false}\n"
    )
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    rows = [f"p{number:02},a field of grain {number}\n" for number in range(NUMBER)]
    (tmp_path / "prompts.csv").write_text("".join(["uid,prompt\n", *rows]))
    for name, blur in (("fine", 0), ("soft", 3)):
        (tmp_path / name).mkdir()
        for number in range(NUMBER):
            noise(number, blur).save(tmp_path / name / f"p{number:02}.png")
    a_verdict_file(aurora=some_scores(mean=0.8), borealis=some_scores(mean=0.5))
    a_verdict_file("few.jsonl", aurora=[0.5, 0.6] * 4, borealis=[0.6, 0.5] * 4)
    return tmp_path


def noise(seed, blur):
    pixels = np.random.default_rng(seed).integers(0, 255, (32, 32, 3), np.uint8)
    return PIL.Image.fromarray(pixels).filter(PIL.ImageFilter.GaussianBlur(blur))


IMAGES = ("fine", "soft"), {"prompts": "prompts.csv", "judge": "sharpness"}
FLAGS = ["fine", "soft", "--prompts", "prompts.csv", "--judge", "sharpness"]


@pytest.mark.parametrize(
    ("function", "inputs", "arguments", "command", "outcome"),
    [
        (rank, *IMAGES, ["rank", *FLAGS], ExitCode.FINE),
        (rank, ("v.jsonl",), {}, ["rank", "v.jsonl"], ExitCode.FINE),
        (
            gate,
            ("v.jsonl",),
            {"margin": 0.02},
            ["rank", "v.jsonl", "--margin", "0.02"],
            ExitCode.FINE,
        ),
        (
            gate,
            ("soft", "fine"),
            {**IMAGES[1], "margin": 0.02},
            ["rank", "soft", "fine", *FLAGS[2:], "--margin", "0.02"],
            ExitCode.WORSE,
        ),
        (
            gate,
            ("few.jsonl",),
            {"margin": 0.02},
            ["rank", "few.jsonl", "--margin", "0.02"],
            ExitCode.UNDECIDED,
        ),
        (report, ("v.jsonl",), {}, ["report", "v.jsonl", "--out", "o"], ExitCode.FINE),
        (compare, ("v.jsonl",), {}, ["compare", "v.jsonl"], ExitCode.FINE),
        (compare, (["v.jsonl"],), {}, ["compare", "v.jsonl"], ExitCode.FINE),
        (rank, (["v.jsonl"],), {}, ["rank", "v.jsonl"], ExitCode.FINE),
    ],
    ids=named,
)
def test_the_conclusion_is_what_the_command_prints(
    function, inputs, arguments, command, outcome, folder, capsys
):
    before = sorted(folder.iterdir())
    conclusion = function(*inputs, **arguments)
    assert capsys.readouterr() == ("", "")
    assert sorted(folder.iterdir()) == before
    code = main(command)
    printed = capsys.readouterr().out.splitlines()
    ours = [line.rstrip() for line in str(conclusion).splitlines()]
    if function is not report:  # whose command has tables elsewhere too
        assert printed[: len(ours)] == ours
    assert conclusion.answer == printed[0]
    assert isinstance(conclusion.outcome, enum.Enum)
    assert conclusion.outcome is outcome
    assert code == conclusion.outcome
    assert conclusion.answer in repr(conclusion)


def test_judges_are_compared_as_the_command_does(capsys):
    for name, score in (("good", right), ("bad", poor)):
        a_rated_folder(name, score)
    conclusion = compare("good", "bad", draws=60)
    main(["compare", "good", "bad", "--draws", "60"])
    assert str(conclusion) == capsys.readouterr().out.rstrip("\n")
    assert {"good", "bad"} <= {*conclusion.to_dataframe()["system"]} | {"good", "bad"}
    assert len(conclusion.to_dataframe("pairs")) >= 1


def frame(columns=("image_model",)):
    pandas = pytest.importorskip("pandas")
    records = load_results([Path("v.jsonl")]).records
    rows = [
        {
            "uid": record.id.uid,
            columns[0]: record.id.image_model,
            "judge": "viescore",
            "model": "judge-7b",
            "setting": "0shot",
            "status": str(record.verdict.status),
            **record.verdict.scores,
        }
        for record in records
    ]
    return pandas.DataFrame(rows)


@pytest.mark.parametrize(
    "given",
    [
        lambda results: results.runs,
        lambda results: results.records,
        lambda results: [results.records],
        lambda results: [results],
        lambda results: [frame()],
        lambda results: [frame(("generator",))],
        lambda results: [pytest.importorskip("pyarrow").Table.from_pandas(frame())],
        lambda results: [pytest.importorskip("polars").from_pandas(frame())],
    ],
    ids=["runs", "records", "list", "results", "frame", "generator", "arrow", "polars"],
)
@pytest.mark.parametrize("function", [rank, report])
def test_what_is_read_already_gives_the_answer_of_the_file(function, given, folder):
    results = load_results([folder / "v.jsonl"])
    numbers = function("v.jsonl").to_dataframe()
    conclusion = function(*given(results))
    assert conclusion.answer == function("v.jsonl").answer
    ours = conclusion.to_dataframe()
    keys = ["aspect", "statistic", "system", "value"]
    assert {*map(tuple, ours[keys].astype(str).values)} >= {
        *map(tuple, numbers[keys].astype(str).values)
    }


def test_verdicts_of_a_judge_are_ranked():
    samples = [
        {
            "kind": "tig",
            "uid": f"p{number}",
            "image_model": name,
            "images": {"output": f"{name}/p{number:02}.png"},
            "texts": {"prompt": f"a field {number}"},
        }
        for number in range(NUMBER)
        for name in ("fine", "soft")
    ]
    with Judge("sharpness") as judge:
        verdicts = judge(samples)
    assert rank(verdicts).answer == (
        "sharpness finds fine's images sharper than soft's."
    )
    assert rank(verdicts[:NUMBER]).outcome is ExitCode.FINE


def test_a_running_loop_is_no_hindrance(capsys):
    async def ranked():
        return rank(*IMAGES[0], **IMAGES[1]), gate(
            "soft", "fine", margin=0.02, **IMAGES[1]
        )

    ranking, decision = asyncio.run(ranked())
    assert ranking.outcome is ExitCode.FINE
    assert decision.outcome is ExitCode.WORSE
    assert capsys.readouterr() == ("", "")


def test_images_are_drawn_by_a_function_and_lines_go_to_a_hook(folder):
    told, seeds = [], []

    def draw(prompt, seed):
        seeds.append((prompt, seed))
        return noise(seed, 0)

    decision = gate(
        "new",
        "soft",
        draw=draw,
        seed=7,
        margin=0.02,
        tell=told.append,
        html=folder / "page.html",
        **IMAGES[1],
    )
    assert seeds[0] == ("a field of grain 0", 7)
    assert decision.outcome is ExitCode.FINE
    assert any("cannot pass" in line for line in told if isinstance(line, str))
    assert (folder / "page.html").read_text().count("data:image") >= 2


def test_a_report_is_written_only_to_a_folder(folder):
    assert report("v.jsonl", folder="out").answer == report("v.jsonl").answer
    assert (folder / "out" / "report.html").is_file()


def test_a_notebook_shows_answers_and_tables_and_runs_nothing():
    a_verdict_file(
        "odd.jsonl",
        **{"<script>$x$": some_scores(mean=0.8), "b": some_scores(mean=0.2)},
    )
    page = rank("odd.jsonl")._repr_html_()
    assert "<script" not in page
    assert "&lt;script" in page
    assert page.count("<table>") == 1
    assert "mathjax_ignore" in page


@pytest.mark.parametrize(
    ("function", "inputs", "arguments", "key"),
    [
        (rank, (), {}, "no results"),
        (rank, (3,), {}, "int 3 does not contain verdicts"),
        (rank, ([{}],), {}, "dict does not contain verdicts"),
        (rank, ("gone.jsonl",), {}, "gone.jsonl"),
        (rank, ("v.jsonl", [a_record()]), {}, "only paths"),
        (rank, ("v.jsonl",), {"promts": "x"}, "did you mean prompts"),
        (
            rank,
            ("v.jsonl",),
            {"judge": "sharpness"},
            "--judge applies only to folders of images",
        ),
        (
            rank,
            ([a_record()],),
            {"prompts": "p.csv"},
            "--prompts applies only to folders of images",
        ),
        (rank, ("v.jsonl",), {"options": {"draws": 3}}, "draws"),
        (rank, ("fine", "soft"), {}, "images require prompts"),
        (gate, ("v.jsonl",), {"margin": 0.5}, "below 0.5"),
        (gate, ("fine",), {**IMAGES[1], "margin": 0.1}, "requires another generator"),
        (rank, ("new",), {"draw": noise}, "requires `prompts`"),
        (report, (), {}, "no results"),
        (report, ("v.jsonl",), {"benchmarks": ["gone"]}, "gone"),
        (compare, ("v.jsonl",), {"label": ["a", "b"]}, "2 labels"),
    ],
    ids=named,
)
def test_only_what_cannot_be_used_is_refused(function, inputs, arguments, key, capsys):
    with pytest.raises(VievalError, match=key):
        function(*inputs, **arguments)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        ([], "column `uid`"),
        ([{"O": 1.0}], "column `uid`"),
        ([{"uid": "a", "prompt": "x"}], "column of scores"),
        ([{"uid": "a", "O": float("inf")}], "row 0"),
        ([{"uid": "a", "O": 1.0, "status": "fine"}], "unknown status 'fine'"),
        ([{"uid": "a", "preference": 1.0}], "got preferences"),
        ([{"uid": "a", "O": 1.0}] * 2, "2 verdicts cover 1 samples"),
    ],
)
def test_rows_of_a_frame_that_hold_no_scores_are_refused(rows, key):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(VievalError, match=key):
        rank(pandas.DataFrame(rows))


def test_no_score_is_made_up_for_a_row_without_one():
    pandas = pytest.importorskip("pandas")
    rows = [
        {"uid": f"p{number}", "generator": name, "O": (number if number else None)}
        for number in range(12)
        for name in ("a", "b")
    ]
    numbers = rank(pandas.DataFrame(rows)).to_dataframe()
    assert {*numbers["n"]} == {11}
    assert {*numbers["failures"]} == {1}
