"""How a run inside lmms-eval ends before its time: in one line, with its summary, and with what
was answered kept.
"""

import json
import os
import signal
from dataclasses import replace

import PIL.ImageFile
import pytest

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")
pytest.importorskip("aiohttp", reason="the fake server needs aiohttp")

from tests import in_process
from tests.fake_server import FakeServer
from tests.harmless import NAME, harmless_console
from tests.in_process import served
from tests.refusals import refusal
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.hosts.lmms_eval import metrics
from vieval_plugin.hosts.shutdown import one_line
from vieval_plugin.judges.protocol import Image
from vieval_plugin.text.errors import VievalError

GOOD = '{"score": [3, 4], "reasoning": "fine"}'


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("model", ["vieval_openai", "openai"])
def test_a_signal_keeps_the_answers(evaluate, tmp_path, capsys, model, name):
    number, store = getattr(signal, name), tmp_path / "replies.sqlite"
    # a library that another test imported may have left a handler of its own, which VIEval leaves
    # in place
    signal.signal(
        number, signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
    )

    def stopping(count, _):
        if count == 8:
            os.kill(os.getpid(), number)

    concurrent = {"num_concurrent": 2}
    with FakeServer(reply=lambda _: GOOD, faults=stopping, latency=0.02) as server:
        arguments = served(model, server, **concurrent)
        with pytest.raises(SystemExit) as ended:
            evaluate(*arguments, limit=12, store=store)
    assert ended.value.code == 128 + number
    said = capsys.readouterr().err
    assert f"vieval: interrupted ({name}); answers so far are kept\n" in said
    assert "vieval: verdicts: " in said
    assert "Traceback" not in said
    if model == "vieval_openai":  # the host's models are asked for whole batches
        with FakeServer(reply=lambda _: GOOD) as server:
            run = evaluate(*served(model, server, **concurrent), limit=12, store=store)
            assert server.stats()["requests"] < 24
        assert run.statuses == {"ok": 12}


def test_an_unforeseen_error_is_one_line(evaluate, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "vieval_plugin.hosts.lmms_eval.answering.jobs", lambda *_: 1 / 0
    )
    line = refusal(
        evaluate, "--model", "vieval_scorer", tasks="vieval_demo_ssim_tie", limit=1
    )
    [file] = (tmp_path / "cache").rglob("*.txt")
    assert line.startswith(
        "vieval: unexpected error (ZeroDivisionError: division by zero); "
    )
    assert str(file) in line
    assert "ZeroDivisionError" in file.read_text()


def runs(tmp_path, *models, more=()):
    """A file for the host's `--config`: a run a model, each with results in a folder of its own."""
    shared = {"tasks": "vieval_demo_ssim_tie", "limit": 2, "log_samples": True}
    listed = [
        {"model": model, "output_path": str(tmp_path / str(n)), **shared}
        for n, model in enumerate(models)
    ]
    (tmp_path / "runs.yaml").write_text(json.dumps([*listed, *more]))
    return tmp_path / "runs.yaml"


def test_a_list_of_runs_outlives_a_failing_one(lmms_eval, results_of, tmp_path):
    models = ("vieval_scorer", "vieval_replay", "vieval_scorer")
    mistake = {
        "model": "vieval_scorer",
        "tasks": "vieval_demo_ssim_ti",
        "output_path": str(tmp_path / "mistake"),
    }
    done = lmms_eval("--config", runs(tmp_path, *models, more=[mistake]))
    assert done.returncode == 1
    assert [
        line for line in done.stderr.splitlines() if "vieval_replay requires" in line
    ] == [
        (
            "vieval: vieval_replay requires --model_args name=<label in tables>,logs=<folder of "
            "verdicts>"
        )
    ]
    [line] = [line for line in done.stderr.splitlines() if "unknown task" in line]
    assert line.startswith(
        "vieval: unknown task 'vieval_demo_ssim_ti'; did you mean vieval_demo_ssim_ti"
    )
    assert not list(tmp_path.glob("mistake/**/*.json*"))
    assert "Traceback" not in done.stderr
    for folder in ("0", "2"):
        document, _ = results_of(tmp_path / folder)
        assert document["results"]["vieval_demo_ssim_tie"]["status_ok_share,none"] == 1
    assert (
        done.stdout.count("vieval_scorer (") == 2
    )  # the tables of those that ended well


def test_of_several_processes_one_that_fails_waits_for_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit, match="vieval: vieval_replay requires") as ended:
        in_process.run("--config", runs(tmp_path, "vieval_replay", "vieval_scorer"))
    assert str(ended.value.code).startswith("vieval: ")
    assert not (tmp_path / "1").exists()


def test_in_python_an_unforeseen_error_is_an_exception(monkeypatch, tmp_path):
    from lmms_eval.evaluator import simple_evaluate

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "vieval_plugin.hosts.lmms_eval.answering.jobs", lambda *_: 1 / 0
    )
    with pytest.raises(
        VievalError, match="unexpected error .ZeroDivisionError"
    ) as raised:
        simple_evaluate(
            "vieval_scorer",
            tasks=["vieval_demo_ssim_tie"],
            limit=1,
            task_manager=in_process.tasks(),
        )
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_errors_steer_no_terminal():
    @one_line
    def failing():
        raise VievalError(NAME)

    line = refusal(failing)
    harmless_console(line)


@pytest.mark.parametrize("model", ["vieval_openai", "openai"])
def test_half_an_image_is_no_image(evaluate, monkeypatch, model):
    load, known = vieval_demo.BENCHMARK.load, benchmark_registry.benchmark

    def cut(root, part):
        first, *others = load(root, part)
        whole = first.images["output"].source
        return [
            replace(
                first,
                images={**first.images, "output": Image(whole[: len(whole) // 2])},
            ),
            *others,
        ]

    def benchmark(name):
        found = known(name)
        return replace(found, load=cut) if found.load is load else found

    monkeypatch.setattr(benchmark_registry, "benchmark", benchmark)
    with FakeServer(reply=lambda _: GOOD) as server:
        run = evaluate(*served(model, server), limit=3)
    assert PIL.ImageFile.LOAD_TRUNCATED_IMAGES
    assert run.statuses == {"ok": 2, "no_image": 1}
    [verdict] = run.verdicts["demo_ademo_00.png"]
    assert "the file ends before the image does" in json.dumps(verdict)


def test_a_remark_that_the_host_prints_steers_no_terminal(monkeypatch):
    monkeypatch.setattr(metrics, "value", lambda summary, name: NAME)
    harmless_console(str(metrics.take(None, "remarks")))
