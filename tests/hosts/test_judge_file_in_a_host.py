"""A judge in one file as tasks of lmms-eval, beside VIEScore on ImagenHub's shape of data, and replayed."""

import pytest

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")

from tests import in_process
from tests.fake_server import FakeServer
from tests.judges.test_in_file import LEGIBILITY
from vieval_plugin.benchmarks import tasks
from vieval_plugin.cli import main
from vieval_plugin.hosts.lmms_eval import task_index
from vieval_plugin.hosts.vlmevalkit import names
from vieval_plugin.judges import registry
from vieval_plugin.meta_evaluation import image_model_agreement

TASK = "imagenhub_legibility_tig"


def forget():
    """What a process reads once."""
    for cached in (registry.judges, task_index.entries, in_process.tasks, names.datasets):
        cached.cache_clear()


@pytest.fixture
def judges(tmp_path, monkeypatch):
    """A folder of judges that a process begins with."""
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "legibility.yaml").write_text(LEGIBILITY)
    monkeypatch.setenv("VIEVAL_JUDGES", str(tmp_path / "judges"))
    forget()
    yield
    monkeypatch.delenv("VIEVAL_JUDGES")
    forget()


def test_it_has_tasks_on_each_benchmark_that_its_kinds_fit(judges):
    entries = tasks.entries()
    assert {TASK, "imagenhub_legibility", "agiqa3k_legibility", "vieval_demo_contests_legibility_tie"} <= set(entries)
    assert not [name for name in entries if "legibility" in name and ("_cig" in name or "video" in name)]
    assert {"imagenhub_legibility", "ImagenHub_legibility"} <= set(names.datasets())


def test_it_judges_beside_viescore_and_is_replayed(judges, prepared_data, tmp_path, results_of, monkeypatch):
    monkeypatch.setattr(image_model_agreement, "LEAST_SAMPLES", 2)
    data, options = prepared_data("tig"), in_process.options_file(tmp_path / "v.yaml")
    with FakeServer() as server:
        model = in_process.served("vieval_openai", server)
        for task in (TASK, "imagenhub_viescore_tig"):
            out = ("--output_path", tmp_path / "out", "--log_samples")
            in_process.run(*model, "--tasks", task, *out, data=data, options=options)
    logs = ("--model_args", f"name=again,logs={tmp_path / 'out'}")
    out = ("--output_path", tmp_path / "again", "--log_samples")
    in_process.run("--model", "vieval_replay", *logs, "--tasks", TASK, *out, data=data, options=options)
    again, samples = results_of(tmp_path / "again")
    assert len(samples[TASK]) == again["results"][TASK]["PQ_count,none"] > 0
    assert main(["report", str(tmp_path / "out"), str(tmp_path / "again"), "--out", str(tmp_path / "report")]) == 0
    report = (tmp_path / "report" / "report.md").read_text()
    assert "fake (Legib" in report
    assert "fake (VIEScore" in report
    assert "again" in report
