"""The whole way through a stub of VLMEvalKit (make test-vlmevalkit has the real one)."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.extras import needs
from tests.judge_files import LEGIBILITY
from tests.stored_results import read_lines
from tests.work import run_process
from vieval_plugin.generation.posters import make
from vieval_plugin.hosts.vlmevalkit import hook_files

pytest.importorskip("pandas", reason="pandas is not installed: it comes with lmms-eval")

STUB = Path(__file__).parent / "stub"
TIE = "vieval_demo_viescore_tie"


@pytest.fixture
def run(tmp_path):
    """Runs Python with the stub on its path; the completed process."""

    def runs(*arguments, path=(STUB,)):
        own = {"LMUData": str(tmp_path / "lmu")}
        own["PYTHONPATH"] = os.pathsep.join(map(str, path))
        command = [sys.executable, *map(str, arguments)]
        return run_process(command, env={**os.environ, **own}, cwd=tmp_path)

    return runs


def rows_of(run, tmp_path, data, limit):
    """The rows of a run by a model of the plugin's own, which is to end well."""
    done = run(*vlmevalkit("VievalScorer", data, limit))
    assert done.returncode == 0, done.stderr
    [samples] = tmp_path.glob(f"out/VievalScorer/*_samples_{data}.jsonl")
    return [json.loads(row["filtered_resps"][0]) for row in read_lines(samples)]


def vlmevalkit(model="Parrot", data=TIE, limit=3):
    line = f"-m vieval_plugin vlmevalkit --data {data} --work-dir out --model {model}"
    return [*line.split(), "--limit", limit]


def asked(done):
    """How often the stub's model was asked in a run that ended well."""
    assert done.returncode == 0, done.stderr
    return done.stdout.count("asked")


ANOTHER = "(answers from a different judge, model or wording)"


def test_a_model_of_the_host_judges_once(run, tmp_path, monkeypatch):
    assert asked(run(*vlmevalkit())) == 6
    [samples] = tmp_path.glob(f"out/Parrot/Parrot_{TIE}_samples_{TIE}.jsonl")
    rows = read_lines(samples)
    assert [row["doc_id"] for row in rows] == [0, 1, 2]
    verdicts = [json.loads(row["filtered_resps"][0])["verdict"] for row in rows]
    assert [verdict["scores"]["SC"] for verdict in verdicts] == [0.7] * 3
    assert not list(tmp_path.glob("out/Parrot/*_part*"))
    [image, *_] = (tmp_path / "lmu" / "images" / "vieval").iterdir()
    assert image.suffix in (".png", ".jpg")
    before = samples.read_bytes()
    assert asked(run(*vlmevalkit())) == 0
    assert samples.read_bytes() == before
    # another wording: what is there is another judge's
    options = "judges: {reminders: 0}\nstore: {use: false}\n"
    (tmp_path / "other.yaml").write_text(options)
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "other.yaml"))
    other = run(*vlmevalkit())
    assert asked(other) == 6
    assert ANOTHER in other.stderr


def test_a_judge_whose_file_was_edited_is_another(run, tmp_path, monkeypatch):
    monkeypatch.setenv("VIEVAL_JUDGES", str(tmp_path))
    two = LEGIBILITY.replace("scores: [legibility]", "scores: [a, b]")
    for wording in ("Rate from 0 to 10", "From 0 to 10, rate"):
        words = two.replace("Rate from 0 to 10", wording)
        (tmp_path / "legibility.yaml").write_text(words)
        done = run(*vlmevalkit(data="vieval_demo_legibility_tie"))
        assert asked(done) == 3
    assert ANOTHER in done.stderr


@needs("torch", "transformers")
def test_a_shipped_network_judges(run, scorer_weights, tmp_path, monkeypatch):
    options = f"scorers: {{pickscore: {{model: {scorer_weights['clip_score']}}}}}\n"
    (tmp_path / "options.yaml").write_text(options)
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "options.yaml"))
    rows = rows_of(run, tmp_path, "vieval_demo_pickscore_tig", 2)
    assert json.dumps(rows).count("pickscore on ") >= 2


@needs("rapidocr", "skimage")
def test_a_judge_without_a_model_reads_posters(run, tmp_path, monkeypatch):
    make(tmp_path / "demo", 0)
    monkeypatch.setenv("VIEVAL_BENCHMARKS", "demo")
    rows = rows_of(run, tmp_path, "posters_text_rendering", 4)
    assert [row["verdict"]["scores"]["SC"] for row in rows] == [1, 0, 1, 1]
    readers = [row["provenance"]["reader"] for row in rows]
    assert all(reader.startswith("RapidOCR") for reader in readers)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("Another", "VLMEvalKit could not build Another"),
        ("vieval_demo_vqascore_tig", "does not support probabilities"),
    ],
)
def test_a_users_mistake_is_one_line_and_an_exit_code(run, data, line):
    done = run(*vlmevalkit(data=data, limit=2))
    assert done.returncode == 1
    [told] = [said for said in done.stderr.splitlines() if line in said]
    assert told.startswith("vieval: ")
    assert "Traceback" not in done.stderr


def test_without_vlmevalkit_a_line_says_what_to_install(run):
    done = run(*vlmevalkit(), path=())
    if "VLMEvalKit" not in done.stderr:
        pytest.skip("VLMEvalKit is installed here")
    assert done.returncode == 1
    remedy = "in a separate environment, install"
    assert f"vieval: VLMEvalKit is not installed; {remedy}" in done.stderr


def test_one_that_lacks_what_is_needed_is_refused(run, tmp_path):
    other = tmp_path / "other" / "vlmeval"
    shutil.copytree(STUB / "vlmeval", other)
    (other / "inference.py").write_text("def infer_data_job(dataset, model): ...\n")
    done = run(*vlmevalkit(), path=(other.parent,))
    assert done.returncode == 1
    needed = "infer_data_job(model, work_dir, model_name, dataset, ...); known to work:"
    assert f"has no vlmeval.inference.{needed}" in done.stderr


PLAIN = """
import runpy, sys
sys.argv = ["run", *"--data vieval_demo_viescore_tie --model Parrot --work-dir out".split()]
runpy.run_module("vlmeval.run", run_name="__main__")
"""
LOADED = "import sys; print([m for m in sys.modules if m.startswith('vieval')])"


def test_the_hook_makes_a_plain_run_know_our_datasets(run, tmp_path, monkeypatch):
    site = tmp_path / "site"
    monkeypatch.setattr(hook_files.sysconfig, "get_path", lambda _: str(site))
    assert hook_files.state() == "off"
    hook_files.install()
    assert hook_files.state() == "on"
    begin = f"import site; site.addsitedir({str(site)!r}); "
    hooked = run("-c", begin + PLAIN)
    assert hooked.returncode == 0, hooked.stderr
    assert "Overall" in hooked.stdout
    assert run("-c", begin + LOADED).stdout == "[]\n"
    (site / "_vieval_vlmevalkit_hook.py").write_text("# of vieval 0.0.1\n")
    assert hook_files.state() == "old"
    hook_files.remove()
    assert hook_files.state() == "off"
    assert "not officially supported" in run("-c", begin + PLAIN).stdout
