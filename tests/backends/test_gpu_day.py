"""Test the day on a GPU with a tiny model on a CPU."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tiny_model
from tests.shard_runs import processes_of
from tests.work import until

ROOT = Path(__file__).parents[2]
VLLM_PYTHON = os.environ.get("VIEVAL_VLLM_PYTHON", "")


def day(folder, *steps, script="gpu_day.sh", **environment):
    """The script run to its end in a folder."""
    own = {"SIZE": "tiny", "OUT": str(folder), "VLLM_PYTHON": VLLM_PYTHON}
    whole = {**os.environ, **own, "PYTHON": sys.executable, **environment}
    command = [str(ROOT / "bench" / script), *steps]
    kept = {"capture_output": True, "text": True}
    return subprocess.run(command, env=whole, cwd=folder, check=False, **kept)


STEPS = "weights server orders engine transformers adiee metrics objects ray"


@pytest.mark.vllm
def test_every_step_is_measured_once(tmp_path):
    if not Path(VLLM_PYTHON).is_file():
        lacking = "no environment with vLLM (VIEVAL_VLLM_PYTHON)"
        pytest.skip(f"{lacking}; `make test-vllm` makes one")
    done = day(tmp_path)
    assert done.returncode == 0, done.stdout
    file = tmp_path / "tiny" / "gpu_day.md"
    page = file.read_text()
    steps = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    assert " ".join(steps) == STEPS
    assert "Not measured" not in page
    # by requests in flight, with a schema and without, and from end to end
    assert page.count("| cigeval |") == 2 * 2 + 1
    assert day(tmp_path).stdout.splitlines() == [f"== {file}"]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "bench")
    return importlib.import_module("gpu_day")


@pytest.mark.slow
def test_a_difference_below_the_spread_of_two_runs_is_none(bench):
    assert bench.ratio((11.0, 11.2), (10.0, 10.1)) == "1.10"
    assert "within the spread" in bench.ratio((11.0, 12.0), (10.4, 11.2))
    assert bench.is_same_work((1800, 990), (1756, 1003))
    assert not bench.is_same_work((3153, 226), (452, 4))
    cells = bench.training_cells(2, 10, 30, {10: [5.0, 5.2], 30: [9.0, 9.1]})
    assert cells == ["2", "5.1", "0.198", "10.13"]
    cells = bench.training_cells(2, 10, 30, {10: [5.0, 7.0], 30: [5.5, 5.6]})
    assert cells == ["2", "6.0", "within the spread of two runs", ""]


@pytest.mark.slow
def test_a_step_that_fails_is_named_with_what_runs_it_again(tmp_path):
    done = day(tmp_path, "transformers")
    assert done.returncode == 1
    assert "== transformers failed with exit code 1" in done.stdout
    assert "run it again: bench/gpu_day.sh transformers" in done.stdout
    assert "Not measured to its end." in (tmp_path / "tiny" / "gpu_day.md").read_text()
    large = day(tmp_path, "weights", SIZE="7b", VLLM_PYTHON=sys.executable)
    assert large.returncode == 1
    assert "has no vLLM for a GPU" in large.stdout


@pytest.mark.slow
def test_a_day_that_is_ended_leaves_no_process(tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed")
    environment = {"SIZE": "tiny", "OUT": str(tmp_path), "PYTHON": sys.executable}
    script = [str(ROOT / "bench" / "gpu_day.sh"), "metrics"]
    own = {"env": {**os.environ, **environment}, "stdout": subprocess.DEVNULL}
    with subprocess.Popen(script, **own) as started:
        until(lambda: processes_of(str(tmp_path), "bench/scorer.py"))
        started.terminate()
    assert started.returncode == 130
    until(lambda: not processes_of(str(tmp_path), "bench/scorer.py"))


@pytest.mark.slow
def test_weights_of_size_7b_have_the_parameters_of_a_7b_model(tmp_path, bench):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    dtype = torch.get_default_dtype()
    try:
        model = bench.model_7b(tiny_model.build(tmp_path), "meta")
    finally:
        torch.set_default_dtype(dtype)
    count = sum(parameter.numel() for parameter in model.parameters())
    # that of Qwen2.5-VL-7B is 8.29 G, of which its two tables of 152,064 tokens have 1.09 G
    assert count / 1e9 == pytest.approx(8.29 - 1.09, abs=0.02)
