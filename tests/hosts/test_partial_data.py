"""A wildcard over tasks of which some can be run: what is run, and what is said first."""

import re

import pytest

from tests import in_process
from tests.fake_server import FakeServer
from tests.in_process import refused, replay
from vieval_plugin.meta_evaluation import image_model_agreement

PREPARED = ("tig", "tie", "cig")


@pytest.fixture
def data(prepared_data):
    """Prepared data of three of ImagenHub's seven parts."""
    folder = prepared_data(*PREPARED)
    for path in folder.rglob("*_rater*.tsv"):  # whose ratings are all the same
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines[1:]):
            lines[number + 1] = line.replace("[0.5, 1]", f"[{number % 2}, 0.5]")
        path.write_text("\n".join(lines))
    return folder


@pytest.fixture
def small_cells(monkeypatch):
    """A correlation of as few samples as these tests judge."""
    monkeypatch.setattr(image_model_agreement, "LEAST_FOR_A_CORRELATION", 2)


def test_a_wildcard_runs_what_is_there(small_cells, data, tmp_path, results_of, capsys):
    options = in_process.options_file(tmp_path / "v.yaml")
    with FakeServer() as server:
        model = in_process.served("vieval_openai", server)
        out = ("--output_path", tmp_path / "out", "--log_samples")
        named = (*model, "--tasks", "imagenhub_vie*")
        in_process.run(*named, *out, data=data, options=options)
    document, samples = results_of(tmp_path / "out")
    expected = {f"imagenhub_viescore_{part}" for part in PREPARED}
    assert set(samples) == set(document["results"]) == expected
    absent = [f"imagenhub_viescore_{part}" for part in ("mie", "sdig", "sdie", "mcic")]
    missing = "their data is missing; see `vieval tasks imagenhub`"
    skipped = f"vieval: skipped tasks: {', '.join(absent)} ({missing})"
    count = sum(map(len, samples.values()))
    announced = f"vieval: to judge: {count} by viescore, {2 * count} calls"
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line in (skipped, announced)] == [
        skipped,
        announced,
    ]


def test_calls_are_announced_and_tables_are_short(small_cells, evaluate, capsys):
    with FakeServer() as server:
        run = evaluate(*in_process.served("vieval_openai", server))
    captured = capsys.readouterr()
    assert "vieval: to judge: 6 by viescore, 12 calls\n" in captured.err
    # one more asks what the server can do
    assert re.search("vieval: calls: 1[23],", captured.err)
    [row] = re.findall(r"^\|vieval_demo.*", captured.out, re.M)
    assert row.split("|")[4].strip() == "O_fisher"
    ends = ("fisher", "ci_low", "ci_high")
    value, low, high = (run.metrics[f"O_{end},none"] for end in ends)
    # one without width says nothing
    interval = f" [{low:.3f}, {high:.3f}]" if low < high else ""
    shown = re.escape(f"|{value:.3f}{interval}, ")
    # an image model whose ratings are all equal is not behind the number
    count = f"n 4 of {run.metrics['O_count,none']:.0f}, failed 0"
    assert re.search(rf"{shown}{count}\|", row)
    names = "SC_paper,none SC_count,none remarks,none status_refusal_share,none"
    assert set(names.split()) <= set(run.metrics)


def test_a_group_that_is_named_is_not_averaged_over_a_part(data):
    line = refused(*ANYWHERE.split(), "imagenhub_viescore", data=data)
    assert "_rater1.tsv: no such file" in line


ANYWHERE = "--model vieval_openai --model_args model=any,base_url=http://127.0.0.1:9/v1 --tasks"


@pytest.mark.parametrize("named", ["imagenhub_*", "imagenhub", "mmrb2*,imagenhub_vie*"])
def test_nothing_prepared_is_an_error_before_the_model_is_made(tmp_path, named):
    model = "--model qwen2_5_vl --model_args pretrained=/none --tasks"
    line = refused(*model.split(), named, data=tmp_path)
    assert line.startswith("vieval: cannot run these tasks: ")
    assert "their data is missing; see `vieval tasks imagenhub`" in line
    assert f"{tmp_path}/" in line


def test_absent_images_leave_a_task_out(ratings_folder, cig_logs, tmp_path, results_of):
    out = tmp_path / "out"
    given = (*ANYWHERE.split(), "imagenhub_*_cig")
    found = refused(*given, data=ratings_folder)
    assert "sample_2.jpg: no such image (and 5 more)" in found
    museum = ratings_folder / "imagenhub" / "museum" / "ImagenHub_Control-Guided_IG"
    for folder in ("input", "ControlNet", "UniControl"):
        (museum / folder).mkdir(parents=True)
        for uid in (2, 10):
            (museum / folder / f"sample_{uid}.jpg").write_bytes(b"")
    assert "the sample has no prompt text" in refused(*given, data=ratings_folder)
    in_process.run(*replay(cig_logs, out, "imagenhub_vie*"), data=ratings_folder)
    assert set(results_of(out)[0]["results"]) == {"imagenhub_viescore_cig"}
