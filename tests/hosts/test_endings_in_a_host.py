"""How a run in lmms-eval ends early: in one line, with what was answered kept."""

import json
import os
import re
import signal
from dataclasses import replace

import PIL.ImageFile
import pytest

from tests import in_process
from tests.fake_server import FakeServer
from tests.harmless import NAME, harmless_console
from tests.in_process import served
from tests.refusals import refusal, refuses
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
    number = getattr(signal, name)
    judged = {"limit": 12, "store": tmp_path / "replies.sqlite"}
    # a library that another test imported may have left a handler of its own in place
    own = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
    signal.signal(number, own)

    def stopping(count, _):
        if count == 8:
            os.kill(os.getpid(), number)

    stopped = FakeServer(reply=lambda _: GOOD, faults=stopping, latency=0.02)
    with stopped as server, pytest.raises(SystemExit) as ended:
        evaluate(*served(model, server, num_concurrent=2), **judged)
    assert ended.value.code == 128 + number
    said = capsys.readouterr().err
    assert f"vieval: interrupted ({name}); answers so far are kept\n" in said
    assert "vieval: verdicts: " in said
    assert "Traceback" not in said
    if model == "vieval_openai":  # the host's models are asked for whole batches
        with FakeServer(reply=lambda _: GOOD) as server:
            run = evaluate(*served(model, server, num_concurrent=2), **judged)
            assert server.stats()["requests"] < 24
        assert run.statuses == {"ok": 12}


@pytest.fixture
def slip(monkeypatch, tmp_path):
    """An error that nobody foresaw; the folder of tracebacks."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    jobs = "vieval_plugin.hosts.lmms_eval.answering.jobs"
    monkeypatch.setattr(jobs, lambda *_: 1 / 0)
    return tmp_path / "cache"


SSIM = "vieval_demo_ssim_tie"


def test_an_unforeseen_error_is_one_line(evaluate, slip):
    line = refusal(evaluate, "--model", "vieval_scorer", tasks=SSIM, limit=1)
    [file] = slip.rglob("*.txt")
    error = "unexpected error (ZeroDivisionError: division by zero)"
    assert line.startswith(f"vieval: {error}; ")
    assert str(file) in line
    assert "ZeroDivisionError" in file.read_text()


def runs(tmp_path, *models, more=()):
    """A file for the host's `--config`: a run a model, each with results in a folder of its own."""
    shared = {"tasks": SSIM, "limit": 2, "log_samples": True}
    listed = [
        {"model": model, "output_path": str(tmp_path / str(n)), **shared}
        for n, model in enumerate(models)
    ]
    (tmp_path / "runs.yaml").write_text(json.dumps([*listed, *more]))
    return tmp_path / "runs.yaml"


def test_a_list_of_runs_outlives_a_failing_one(lmms_eval, results_of, tmp_path):
    models = ("vieval_scorer", "vieval_replay", "vieval_scorer")
    mistake = {"model": "vieval_scorer", "tasks": SSIM[:-1]}
    mistake["output_path"] = str(tmp_path / "mistake")
    done = lmms_eval("--config", runs(tmp_path, *models, more=[mistake]))
    assert done.returncode == 1
    replay = "--model_args name=<label in tables>,logs=<folder of verdicts>"
    found = re.findall("^.*vieval_replay requires.*$", done.stderr, re.M)
    assert found == [f"vieval: vieval_replay requires {replay}"]
    [line] = re.findall("^.*unknown task.*$", done.stderr, re.M)
    advice = f"unknown task '{SSIM[:-1]}'; did you mean {SSIM[:-1]}"
    assert line.startswith(f"vieval: {advice}")
    assert not list(tmp_path.glob("mistake/**/*.json*"))
    assert "Traceback" not in done.stderr
    for folder in ("0", "2"):
        document, _ = results_of(tmp_path / folder)
        assert document["results"][SSIM]["status_ok_share,none"] == 1
    # the tables of those that ended well
    assert done.stdout.count("vieval_scorer (") == 2


def test_of_several_processes_one_that_fails_waits_for_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    given = ("--config", runs(tmp_path, "vieval_replay", "vieval_scorer"))
    refuses("^vieval: vieval_replay requires", in_process.run, *given)
    assert not (tmp_path / "1").exists()


def test_in_python_an_unforeseen_error_is_an_exception(slip):
    from lmms_eval.evaluator import simple_evaluate

    given = {"tasks": [SSIM], "limit": 1, "task_manager": in_process.tasks()}
    error = "unexpected error .ZeroDivisionError"
    with pytest.raises(VievalError, match=error) as raised:
        simple_evaluate("vieval_scorer", **given)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_errors_and_remarks_steer_no_terminal(monkeypatch):
    @one_line
    def failing():
        raise VievalError(NAME)

    harmless_console(refusal(failing))
    monkeypatch.setattr(metrics, "value", lambda summary, name: NAME)
    harmless_console(str(metrics.take(None, "remarks")))


@pytest.mark.parametrize("model", ["vieval_openai", "openai"])
def test_half_an_image_is_no_image(evaluate, monkeypatch, model):
    load, known = vieval_demo.BENCHMARK.load, benchmark_registry.benchmark

    def cut(root, part):
        first, *others = load(root, part)
        whole = first.images["output"].source
        half = Image(whole[: len(whole) // 2])
        return [replace(first, images={**first.images, "output": half}), *others]

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
