"""A wildcard over tasks of which some can be run: what is run, and what is said first."""

import re
from shlex import split

import pytest

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")

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
        header, *lines = path.read_text().splitlines()
        rated = [
            line.replace("[0.5, 1]", f"[{number % 2}, 0.5]")
            for number, line in enumerate(lines)
        ]
        path.write_text("\n".join([header, *rated]))
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
        in_process.run(
            *model, "--tasks", "imagenhub_vie*", *out, data=data, options=options
        )
    document, samples = results_of(tmp_path / "out")
    assert (
        set(samples)
        == set(document["results"])
        == {f"imagenhub_viescore_{part}" for part in PREPARED}
    )

    lines = capsys.readouterr().err.splitlines()
    [left_out] = [line for line in lines if line.startswith("vieval: left out: ")]
    unprepared = ", ".join(
        f"imagenhub_viescore_{part}" for part in ("mie", "sdig", "sdie", "mcic")
    )
    assert (
        left_out
        == f"vieval: left out: {unprepared} (their data is missing; see `vieval tasks imagenhub`)"
    )
    count = sum(map(len, samples.values()))
    line = f"vieval: to judge: {count} by viescore, {2 * count} calls"
    assert lines.index(left_out) < lines.index(line)


def test_calls_are_announced_and_tables_are_short(small_cells, evaluate, capsys):
    with FakeServer() as server:
        run = evaluate(*in_process.served("vieval_openai", server))
    captured = capsys.readouterr()
    assert "vieval: to judge: 6 by viescore, 12 calls\n" in captured.err
    assert re.search(
        "vieval: calls: 1[23],", captured.err
    )  # one more asks what the server can do
    table = [
        line for line in captured.out.splitlines() if line.startswith("|vieval_demo")
    ]
    assert [line.split("|")[4].strip() for line in table] == ["O_fisher"]
    value, low, high = (
        run.metrics[f"O_{end},none"] for end in ("fisher", "ci_low", "ci_high")
    )
    interval = (
        f" [{low:.3f}, {high:.3f}]" if low < high else ""
    )  # one without width says nothing
    assert (
        f"|{value:.3f}{interval}, n {run.metrics['O_count,none']:.0f}, failed 0|"
        in table[0]
    )
    assert set(
        split("SC_paper,none SC_count,none remarks,none status_refusal_share,none")
    ) <= set(run.metrics)


def test_a_group_that_is_named_is_not_averaged_over_a_part(data):
    line = refused(
        *split("--model vieval_openai --model_args"),
        ANYWHERE,
        "--tasks",
        "imagenhub_viescore",
        data=data,
    )
    assert line.startswith("vieval: ")
    assert "_rater1.tsv: no such file" in line


ANYWHERE = "model=any,base_url=http://127.0.0.1:9/v1"


@pytest.mark.parametrize("named", ["imagenhub_*", "imagenhub", "mmrb2*,imagenhub_vie*"])
def test_nothing_prepared_is_an_error_before_the_model_is_made(tmp_path, named):
    line = refused(
        *split("--model qwen2_5_vl --model_args pretrained=/none --tasks"),
        named,
        data=tmp_path,
    )
    assert line.startswith("vieval: none of these tasks can run: ")
    assert "their data is missing; see `vieval tasks imagenhub`" in line
    assert f"{tmp_path}/" in line


def test_absent_images_leave_a_task_out(ratings_folder, cig_logs, tmp_path, results_of):
    out = tmp_path / "out"
    given = (
        *split("--model vieval_openai --model_args"),
        ANYWHERE,
        "--tasks",
        "imagenhub_*_cig",
    )
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
