"""The same judges through lmms-eval and VLMEvalKit, each in an environment of its own: the same
verdicts, byte for byte.

The environment variable VIEVAL_LMMS_EVAL_PYTHON names a Python that has lmms-eval (make
test-vlmevalkit sets it).
"""

import hashlib
import json
import os
from shlex import split

import pytest

from tests.fake_server import FakeServer, instance
from tests.stored_results import read_lines
from tests.work import run_process
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.generation.posters import make
from vieval_plugin.hosts.vlmevalkit import names

pytestmark = pytest.mark.vlmevalkit
PYTHON = os.environ.get("VIEVAL_LMMS_EVAL_PYTHON", "")
ASKED = split(
    "vieval_demo_viescore_tie vieval_demo_vqascore_tig vieval_demo_t2i_eval_tig "
    "vieval_demo_question_answering_tig variant_vieval_demo_question_answering_tifa_tig "
    "variant_vieval_demo_question_answering_vq2a_tig vieval_demo_cigeval_tie "
    "vieval_demo_cigeval_mie vieval_demo_contests_pairwise_tie "
    "vieval_demo_contests_viescore_tie"
)
MEASURED = split(
    "vieval_demo_ssim_tie vieval_demo_psnr_mie vieval_demo_edge_f1_cig "
    "vieval_demo_histogram_sdig vieval_demo_sharpness_tig vieval_demo_contests_ssim_tie "
    "vieval_demo_contests_sharpness_tie"
)
READ = "posters_text_rendering"
SCORED = split(
    "vieval_demo_clip_score_tig vieval_demo_clip_i_sdig vieval_demo_dino_mcic "
    "vieval_demo_lpips_tie"
)
# what needs neither weights nor packages that only one of the environments may have
OPTIONS = {
    "judges": {"cigeval": {"removed": ["ocr", "grounding"]}},
    "statistics": {"draws": 50},
}


def using_tools(request):
    """An answer that plans the tool for differences, or else what the schema allows."""
    schema = (request.get("response_format") or {}).get("json_schema", {}).get("schema")
    digest = hashlib.sha256(json.dumps(request["messages"]).encode()).digest()
    if schema is None:
        scores = [digest[0] % 11, digest[1] % 11]
        return json.dumps({"score": scores, "reasoning": digest.hex()[:8]})
    answer = instance(schema, digest)
    for number, entry in enumerate(answer.get("plan", ()), start=1):
        entry |= {"task_id": number, "used": True, "tool": "difference"}
    return json.dumps(answer)


@pytest.fixture(scope="module")
def lmms_eval(tmp_path_factory):
    """Judges tasks through lmms-eval; its output folder."""
    if not PYTHON:
        pytest.skip("VIEVAL_LMMS_EVAL_PYTHON names no Python with lmms-eval")
    folder = tmp_path_factory.mktemp("lmms_eval")
    offline = dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"), "1")

    def judged(name, tasks, limit, options, *model):
        file = folder / f"{name}.yaml"
        file.write_text(json.dumps(options))
        cache = str(folder / f"{name}-cache")
        environment = {**os.environ, **offline, "CUDA_VISIBLE_DEVICES": ""}
        environment |= {"VIEVAL_CONFIG": str(file), "XDG_CACHE_HOME": cache}
        for other in ("PYTHONPATH", "VIEVAL_DATA"):
            environment.pop(other, None)
        command = [PYTHON, "-m", "lmms_eval", "--model", *model, "--log_samples"]
        command += ["--tasks", ",".join(tasks), "--limit", str(limit)]
        command += ["--output_path", str(folder / name)]
        done = run_process(command, env=environment, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        return folder / name

    return judged


def rows_of(folder):
    """By task and sample, the response and the target, as any of the two hosts has left them."""
    found = {}
    for path in {path.resolve() for path in folder.rglob("*_samples_*.jsonl")}:
        task = path.stem.rpartition("_samples_")[2]
        for row in read_lines(path):
            response = row["filtered_resps"]
            if isinstance(response, list):
                [response] = response
            found[task, row["target"]] = response
    return found


@pytest.fixture
def require_same(tmp_path, vieval):
    """Both hosts have left the same verdicts and the same tables."""

    def same(ours, theirs):
        assert rows_of(ours) == rows_of(theirs)
        cells = []
        for name, folder in (("ours", ours), ("theirs", theirs)):
            vieval("report", folder, "--out", tmp_path / name)
            cells.append(json.loads((tmp_path / name / "cells.json").read_text()))
        assert cells[0] == cells[1]

    return same


def test_judges_that_ask_a_server(run, configured, lmms_eval, require_same):
    with FakeServer(reply=using_tools) as server:
        arguments = f"model=fake,base_url={server.base_url}"
        named = ("vieval_openai", "--model_args", arguments)
        theirs = lmms_eval("asked", ASKED, 12, OPTIONS, *named)
        model = {"model": "fake", "base_url": server.base_url}
        ours = configured("VievalOpenAI", tuple(ASKED), **model)
        made = run(*ours, limit=12, options=OPTIONS)
    assert made.code == 0
    rows = rows_of(made.folder)
    assert len(rows) == 12 * len(ASKED)
    used = (".difference", '"difference', "/difference", "difference output")
    assert any(word in text for text in rows.values() for word in used)
    require_same(made.folder, theirs)


def test_judges_that_measure(run, configured, lmms_eval, require_same):
    theirs = lmms_eval("measured", MEASURED, 12, OPTIONS, "vieval_scorer")
    made = run(*configured("VievalScorer", MEASURED), limit=12, options=OPTIONS)
    assert made.code == 0
    assert len(rows_of(made.folder)) == 12 * len(MEASURED)
    require_same(made.folder, theirs)


def test_a_judge_reads_text(run, configured, lmms_eval, tmp_path, monkeypatch):
    pytest.importorskip("rapidocr")
    make(tmp_path / "demo", 0)
    monkeypatch.setenv("VIEVAL_BENCHMARKS", str(tmp_path / "demo"))
    for cached in (benchmark_registry.benchmarks, names.datasets):
        cached.cache_clear()
    theirs = lmms_eval("read", (READ,), 4, OPTIONS, "vieval_scorer")
    made = run(*configured("VievalScorer", (READ,)), limit=4, options=OPTIONS)
    assert rows_of(made.folder) == rows_of(theirs)
    assert [verdict["status"] for verdict in made.verdicts] == ["ok"] * 4


def test_judges_that_measure_with_a_network(run, configured, lmms_eval, scorer_weights):
    weights = {name: str(path) for name, path in scorer_weights.items()}
    scorers = {n: {"model": path, "batch_size": 4} for n, path in weights.items()}
    options = {**OPTIONS, "scorers": scorers}
    theirs = lmms_eval("scored", SCORED, 6, options, "vieval_scorer")
    made = run(*configured("VievalScorer", SCORED), limit=6, options=options)
    assert made.code == 0
    assert len(rows_of(made.folder)) == 6 * len(SCORED)
    assert rows_of(made.folder) == rows_of(theirs)
