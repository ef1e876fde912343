"""A benchmark in a folder as a task of lmms-eval, beside a judge in a file, and as datasets of VLMEvalKit."""

import pytest

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")

from tests import in_process
from tests.benchmarks.test_in_folder import PAIRS, SIGNS, rating_rows, vote_rows, write  # noqa: F401
from tests.fake_server import FakeServer
from tests.judges.test_in_file import LEGIBILITY
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.cli import main
from vieval_plugin.hosts.lmms_eval import task_index
from vieval_plugin.hosts.vlmevalkit import names
from vieval_plugin.judges import registry


def forget():
    """What a process reads once."""
    for cached in (
        registry.judges,
        benchmark_registry.benchmarks,
        task_index.entries,
        in_process.tasks,
        names.datasets,
    ):
        cached.cache_clear()


@pytest.fixture
def folders(write, tmp_path, monkeypatch):  # noqa: F811
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


def test_its_tasks_run_and_are_reported(folders, tmp_path, results_of):
    options = in_process.options_file(tmp_path / "v.yaml")
    tasks = ("signs_viescore", "signs_legibility", "sign_pairs_pairwise")
    with FakeServer() as server:
        model = in_process.served("vieval_openai", server)
        out = ("--output_path", tmp_path / "out", "--log_samples")
        in_process.run(*model, "--tasks", ",".join(tasks), *out, data=tmp_path / "none", options=options)
    results, samples = results_of(tmp_path / "out")
    assert [len(samples[task]) for task in tasks] == [50, 50, 20]
    assert results["results"]["signs_viescore"]["SC_count,none"] == 50
    assert main(["report", str(tmp_path / "out"), "--out", str(tmp_path / "report")]) == 0
    assert {"signs_viescore", "sign_pairs_legibility"} <= set(names.datasets())
    # the title of a user's benchmark may be no name of a file
    assert not [name for name in names.datasets() if name.startswith("Street signs")]
