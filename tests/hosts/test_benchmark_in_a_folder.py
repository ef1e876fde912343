"""A benchmark in a folder and a judge in a file as tasks and datasets of hosts."""

import pytest

from tests import in_process
from tests.benchmarks import folders as folder_files
from tests.benchmarks.folders import PAIRS, SIGNS, rating_rows, vote_rows
from tests.fake_server import FakeServer
from tests.judge_files import LEGIBILITY
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import tasks
from vieval_plugin.hosts.lmms_eval import task_index
from vieval_plugin.hosts.vlmevalkit import names
from vieval_plugin.judges import registry

write = folder_files.write  # a fixture
READ_ONCE = (registry.judges, benchmark_registry.benchmarks, task_index.entries)
READ_ONCE += (in_process.tasks, names.datasets)


def forget():
    """What a process reads once."""
    for cached in READ_ONCE:
        cached.cache_clear()


@pytest.fixture
def folders(write, tmp_path, monkeypatch):
    """A benchmark of ratings, one of votes, and a judge that a process begins with."""
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "legibility.yaml").write_text(LEGIBILITY)
    write(SIGNS, rating_rows())
    monkeypatch.setenv("VIEVAL_BENCHMARKS", str(write(PAIRS, vote_rows()).parent))
    monkeypatch.setenv("VIEVAL_JUDGES", str(tmp_path / "judges"))
    forget()
    yield
    monkeypatch.undo()
    forget()


def test_a_judge_has_tasks_on_each_benchmark_that_its_kinds_fit(folders):
    entries = set(tasks.entries())
    ours = {"imagenhub_legibility", "imagenhub_legibility_tig", "signs_legibility"}
    assert {*ours, "vieval_demo_contests_legibility_tie"} <= entries
    own = [name for name in entries if "legibility" in name]
    assert not [name for name in own if "_cig" in name or "video" in name]
    found = {"signs_viescore", "sign_pairs_legibility", "ImagenHub_legibility"}
    assert found <= set(names.datasets())
    # the title of a user's benchmark may be no name of a file
    assert not [name for name in names.datasets() if name.startswith("Street signs")]


def test_its_tasks_run_and_replay(folders, tmp_path, results_of, vieval):
    own = {"options": in_process.options_file(tmp_path / "v.yaml")}
    own["data"] = tmp_path / "none"
    judged = {"signs_viescore": 50, "signs_legibility": 50, "sign_pairs_pairwise": 20}
    out = tmp_path / "out"
    again = tmp_path / "again"
    with FakeServer() as server:
        model = in_process.served("vieval_openai", server)
        given = ("--tasks", ",".join(judged), "--output_path", out, "--log_samples")
        in_process.run(*model, *given, **own)
    results, samples = results_of(out)
    assert {task: len(samples[task]) for task in judged} == judged
    assert results["results"]["signs_viescore"]["SC_count,none"] == 50
    logs = ("--model_args", f"name=again,logs={out}", "--tasks", "signs_legibility")
    given = ("--output_path", again, "--log_samples")
    in_process.run("--model", "vieval_replay", *logs, *given, **own)
    found = results_of(again)[0]["results"]["signs_legibility"]
    assert found["status_ok_share,none"] == 1
    vieval(f"report {out} {again} --out {tmp_path}/report")
    report = (tmp_path / "report" / "report.md").read_text()
    assert all(name in report for name in ("legibility", "fake", "again"))
