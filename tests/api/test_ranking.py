"""`rank`, `gate`, `compare` and `report` from Python: what the commands print, as objects."""

import asyncio
import itertools
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageFilter
import pytest

from tests.builders import (
    a_contest_file,
    a_rated_folder,
    a_record,
    a_verdict_file,
    poor,
    right,
    some_scores,
)
from tests.refusals import refuses
from tests.tables import table
from vieval_plugin import Judge
from vieval_plugin.api import ExitCode, compare, gate, rank, report
from vieval_plugin.cli import main
from vieval_plugin.judges.protocol import Status
from vieval_plugin.results.runs import load_results

NUMBER = 24


def named(value):
    """The name of a function in the id of a case; a text with its address differs by process."""
    return getattr(value, "__name__", None)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with images of two generators, their verdicts and two judges of a benchmark."""
    monkeypatch.chdir(tmp_path)
    options = "statistics: {draws: 50}\nstore: {use: false}\n"
    (tmp_path / "vieval.yaml").write_text(options)
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
FOLDERS = "--prompts prompts.csv --judge sharpness"
NEAR = {"margin": 0.02}
SOFT = f"rank soft fine {FOLDERS} --margin 0.02"
FEW = "rank few.jsonl --margin 0.02"
FINE = ExitCode.FINE
RANKED = "rank v.jsonl"


@pytest.mark.parametrize(
    ("function", "inputs", "arguments", "command", "outcome"),
    [
        (rank, *IMAGES, f"rank fine soft {FOLDERS}", FINE),
        (rank, ("v.jsonl",), {}, RANKED, FINE),
        (rank, (["v.jsonl"],), {}, RANKED, FINE),
        (gate, ("v.jsonl",), NEAR, f"{RANKED} --margin 0.02", FINE),
        (gate, ("soft", "fine"), {**IMAGES[1], **NEAR}, SOFT, ExitCode.WORSE),
        (gate, ("few.jsonl",), NEAR, FEW, ExitCode.UNDECIDED),
        (report, ("v.jsonl",), {}, "report v.jsonl --out o", FINE),
        (compare, ("v.jsonl",), {}, "compare v.jsonl", FINE),
        (compare, (["v.jsonl"],), {}, "compare v.jsonl", FINE),
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
    code = main(command.split())
    printed = capsys.readouterr().out.splitlines()
    ours = [line.rstrip() for line in str(conclusion).splitlines()]
    if function is not report:  # whose command has tables elsewhere too
        assert printed[: len(ours)] == ours
    assert conclusion.answer == printed[0]
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


def frame(column="image_model"):
    pandas = pytest.importorskip("pandas")
    by = {"judge": "viescore", "model": "judge-7b", "setting": "0shot"}
    rows = []
    for record in load_results([Path("v.jsonl")]).records:
        found = {"uid": record.id.uid, column: record.id.image_model, **by}
        status = str(record.verdict.status)
        rows.append({**found, "status": status, **record.verdict.scores})
    return pandas.DataFrame(rows)


GIVEN = {
    "runs": lambda results: results.runs,
    "records": lambda results: results.records,
    "list": lambda results: [results.records],
    "results": lambda results: [results],
    "frame": lambda results: [frame()],
    "generator": lambda results: [frame("generator")],
    "arrow": lambda _: [pytest.importorskip("pyarrow").Table.from_pandas(frame())],
    "polars": lambda _: [pytest.importorskip("polars").from_pandas(frame())],
}


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("function", [rank, report])
def test_what_is_read_already_gives_the_answer_of_the_file(function, name, folder):
    def numbers(conclusion):
        keys = ["aspect", "statistic", "system", "value"]
        cells = conclusion.to_dataframe()[keys].astype(str).values
        return {*map(tuple, cells)}

    results = load_results([folder / "v.jsonl"])
    wanted, conclusion = function("v.jsonl"), function(*GIVEN[name](results))
    assert conclusion.answer == wanted.answer
    assert numbers(conclusion) >= numbers(wanted)


def test_verdicts_of_a_judge_are_ranked():
    samples = []
    for number, name in itertools.product(range(NUMBER), ("fine", "soft")):
        identity = {"kind": "tig", "uid": f"p{number}", "image_model": name}
        shown = {"images": {"output": f"{name}/p{number:02}.png"}}
        samples.append({**identity, **shown, "texts": {"prompt": f"a field {number}"}})
    with Judge("sharpness") as judge:
        verdicts = judge(samples)
    sharper = "sharpness finds fine's images sharper than soft's."
    assert rank(verdicts).answer == sharper
    assert rank(verdicts[:NUMBER]).outcome is ExitCode.FINE


def test_a_running_loop_is_no_hindrance(capsys):
    async def ranked():
        ranking = rank(*IMAGES[0], **IMAGES[1])
        return ranking, gate("soft", "fine", **NEAR, **IMAGES[1])

    ranking, decision = asyncio.run(ranked())
    assert ranking.outcome is ExitCode.FINE
    assert decision.outcome is ExitCode.WORSE
    assert capsys.readouterr() == ("", "")


def test_images_are_drawn_by_a_function_and_lines_go_to_a_hook(folder):
    told, seeds = [], []

    def draw(prompt, seed):
        seeds.append((prompt, seed))
        return noise(seed, 0)

    page = folder / "page.html"
    drawn = {"draw": draw, "seed": 7, "tell": told.append, "html": page}
    decision = gate("new", "soft", **drawn, **NEAR, **IMAGES[1])
    assert seeds[0] == ("a field of grain 0", 7)
    assert decision.outcome is ExitCode.FINE
    assert any("cannot pass" in line for line in told if isinstance(line, str))
    assert page.read_text().count("data:image") >= 2


def test_a_report_is_written_only_to_a_folder(folder):
    assert report("v.jsonl", folder="out").answer == report("v.jsonl").answer
    assert (folder / "out" / "report.html").is_file()


def test_a_notebook_shows_answers_and_tables_and_runs_nothing():
    odd = {"<script>$x$": some_scores(mean=0.8), "b": some_scores(mean=0.2)}
    a_verdict_file("odd.jsonl", odd)
    page = rank("odd.jsonl")._repr_html_()
    assert "<script" not in page
    assert "&lt;script" in page
    assert page.count("<table>") == 1
    assert "mathjax_ignore" in page


FILE, RECORDS = ("v.jsonl",), ([a_record()],)
JUDGED = "--judge applies only to folders of images"
PROMPTED = "--prompts applies only to folders of images"
UNMATCHED = {**IMAGES[1], "margin": 0.1}


@pytest.mark.parametrize(
    ("function", "inputs", "arguments", "key"),
    [
        (rank, (), {}, "no results"),
        (rank, (3,), {}, "int 3 does not contain verdicts"),
        (rank, ([{}],), {}, "dict does not contain verdicts"),
        (rank, ("gone.jsonl",), {}, "gone.jsonl"),
        (rank, ("v.jsonl", [a_record()]), {}, "only paths"),
        (rank, FILE, {"promts": "x"}, "did you mean prompts"),
        (rank, FILE, {"judge": "sharpness"}, JUDGED),
        (rank, RECORDS, {"prompts": "p.csv"}, PROMPTED),
        (rank, FILE, {"options": {"draws": 3}}, "draws"),
        (rank, ("fine", "soft"), {}, "images require prompts"),
        (gate, FILE, {"margin": 0.5}, "below 0.5"),
        (gate, ("fine",), UNMATCHED, "requires another generator"),
        (rank, ("new",), {"draw": noise}, "requires `prompts`"),
        (report, (), {}, "no results"),
        (report, FILE, {"benchmarks": ["gone"]}, "gone"),
        (compare, FILE, {"label": ["a", "b"]}, "2 labels"),
    ],
    ids=named,
)
def test_only_what_cannot_be_used_is_refused(function, inputs, arguments, key, capsys):
    refuses(key, function, *inputs, **arguments)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(*table("wrong_frames.jsonl"))
def test_rows_of_a_frame_that_hold_no_scores_are_refused(rows, key):
    pandas = pytest.importorskip("pandas")
    refuses(key, rank, pandas.DataFrame(rows))


def test_no_score_is_made_up_for_a_row_without_one():
    pandas = pytest.importorskip("pandas")
    each = itertools.product(range(12), "ab")
    rows = [{"uid": f"p{n}", "generator": name, "O": n or None} for n, name in each]
    numbers = rank(pandas.DataFrame(rows)).to_dataframe()
    assert {*numbers["n"]} == {11}
    assert {*numbers["failures"]} == {1}


def test_a_contest_that_failed_counts_once(tmp_path):
    votes = ["first"] * 20 + [Status.REFUSAL] * 10
    lines = rank(a_contest_file(tmp_path / "v.jsonl", votes)).lines
    assert "10 of 30 verdicts failed (10 refusal)." in lines[1]
