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
from tests.work import run_process
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.cli import main
from vieval_plugin.generation.posters import make
from vieval_plugin.hosts.vlmevalkit import names

pytestmark = pytest.mark.vlmevalkit

PYTHON = os.environ.get("VIEVAL_LMMS_EVAL_PYTHON", "")
ASKED = {
    "vieval_demo_viescore_tie": 24,
    "vieval_demo_vqascore_tig": 12,
    "vieval_demo_t2i_eval_tig": 12,
    "vieval_demo_question_answering_tig": 12,
    "variant_vieval_demo_question_answering_tifa_tig": 12,
    "variant_vieval_demo_question_answering_vq2a_tig": 12,
    "vieval_demo_cigeval_tie": 12,
    "vieval_demo_cigeval_mie": 12,
    "vieval_demo_contests_pairwise_tie": 12,
    "vieval_demo_contests_viescore_tie": 12,
}
MEASURED = (
    *(
        "vieval_demo_ssim_tie",
        "vieval_demo_psnr_mie",
        "vieval_demo_edge_f1_cig",
        "vieval_demo_histogram_sdig",
    ),
    *(
        "vieval_demo_sharpness_tig",
        "vieval_demo_contests_ssim_tie",
        "vieval_demo_contests_sharpness_tie",
    ),
)
READ = "posters_text_rendering"
SCORED = (
    "vieval_demo_clip_score_tig",
    "vieval_demo_clip_i_sdig",
    "vieval_demo_dino_mcic",
    "vieval_demo_lpips_tie",
)
# what needs neither weights nor packages that only one of the environments may have
OPTIONS = {
    "judges": {"cigeval": {"removed": ["ocr", "grounding"]}},
    "statistics": {"draws": 50},
}


def using_tools(request):
    """An answer that plans the tool for differences wherever a plan is asked for, and else what
    the schema allows.
    """
    schema = (request.get("response_format") or {}).get("json_schema", {}).get("schema")
    digest = hashlib.sha256(json.dumps(request["messages"]).encode()).digest()
    if schema is None:
        return json.dumps(
            {"score": [digest[0] % 11, digest[1] % 11], "reasoning": digest.hex()[:8]}
        )
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

    def judged(name, tasks, limit, options, *model):
        (folder / f"{name}.yaml").write_text(json.dumps(options))
        environment = {
            key: value
            for key, value in os.environ.items()
            if key not in ("PYTHONPATH", "VIEVAL_DATA")
        }
        environment |= {
            "VIEVAL_CONFIG": str(folder / f"{name}.yaml"),
            "XDG_CACHE_HOME": str(folder / f"{name}-cache"),
        }
        environment |= {
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
        }
        arguments = [
            "--model",
            *model,
            "--tasks",
            ",".join(tasks),
            *split(f"--limit {limit} --log_samples"),
        ]
        command = [
            PYTHON,
            "-m",
            "lmms_eval",
            *arguments,
            "--output_path",
            str(folder / name),
        ]
        done = run_process(command, env=environment, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        return folder / name

    return judged


def rows_of(folder):
    """By task and sample, the response and the target, as any of the two hosts has left them."""
    found = {}
    for path in {path.resolve() for path in folder.rglob("*_samples_*.jsonl")}:
        task = path.stem.rpartition("_samples_")[2]
        for line in path.read_text().splitlines():
            row = json.loads(line)
            [response] = (
                row["filtered_resps"]
                if isinstance(row["filtered_resps"], list)
                else [row["filtered_resps"]]
            )
            found[task, row["target"]] = response
    return found


def cells_of(folder, out):
    assert main(["report", str(folder), "--out", str(out)]) == 0
    return json.loads((out / "cells.json").read_text())


def test_judges_that_ask_a_server(run, configured, lmms_eval, tmp_path):
    with FakeServer(reply=using_tools) as server:
        named = (
            "vieval_openai",
            "--model_args",
            f"model=fake,base_url={server.base_url}",
        )
        theirs = lmms_eval("asked", ASKED, 12, OPTIONS, *named)
        made = run(
            *configured(
                "VievalOpenAI", tuple(ASKED), model="fake", base_url=server.base_url
            ),
            limit=12,
            options=OPTIONS,
        )
    assert made.code == 0
    ours, expected = rows_of(made.folder), rows_of(theirs)
    assert len(ours) == 12 * len(ASKED)
    assert ours == expected
    assert any(".difference" in text or '"difference' in text or "/difference" in text or "difference output" in text
               for text in ours.values())  # fmt: skip
    found = cells_of(made.folder, tmp_path / "ours")
    assert found == (cells_of(theirs, tmp_path / "theirs"))


def test_judges_that_measure(run, configured, lmms_eval, tmp_path):
    theirs = lmms_eval("measured", MEASURED, 12, OPTIONS, "vieval_scorer")
    made = run(*configured("VievalScorer", MEASURED), limit=12, options=OPTIONS)
    assert made.code == 0
    assert len(rows_of(made.folder)) == 12 * len(MEASURED)
    assert rows_of(made.folder) == rows_of(theirs)
    found = cells_of(made.folder, tmp_path / "ours")
    assert found == (cells_of(theirs, tmp_path / "theirs"))


def test_a_judge_reads_text(run, configured, lmms_eval, tmp_path, monkeypatch):
    pytest.importorskip("rapidocr")
    make(tmp_path / "demo", 0)
    monkeypatch.setenv("VIEVAL_BENCHMARKS", str(tmp_path / "demo"))
    for cached in (benchmark_registry.benchmarks, names.datasets):
        cached.cache_clear()
    theirs = lmms_eval("read", (READ,), 4, OPTIONS, "vieval_scorer")
    ours = rows_of(
        run(*configured("VievalScorer", (READ,)), limit=4, options=OPTIONS).folder
    )
    assert ours == rows_of(theirs)
    found = [json.loads(response)["verdict"]["status"] for response in ours.values()]
    assert found == ["ok"] * 4


def test_judges_that_measure_with_a_network(run, configured, lmms_eval, scorer_weights):
    weights = {
        name: {"model": str(path), "batch_size": 4}
        for name, path in scorer_weights.items()
    }
    options = {**OPTIONS, "scorers": weights}
    theirs = lmms_eval("scored", SCORED, 6, options, "vieval_scorer")
    made = run(*configured("VievalScorer", SCORED), limit=6, options=options)
    assert made.code == 0
    assert len(rows_of(made.folder)) == 6 * len(SCORED)
    assert rows_of(made.folder) == rows_of(theirs)
