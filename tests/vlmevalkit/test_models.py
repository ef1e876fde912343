"""Models in this process as judges, on a Qwen2.5-VL of random weights."""

import json

import pytest

from tests import tiny_model
from tests.stored_results import read_lines
from tests.vlmevalkit.conftest import TIE

pytestmark = pytest.mark.vlmevalkit


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return tiny_model.build(tmp_path_factory.mktemp("tiny"))


def test_transformers_in_this_process_knows_likelihoods(run, configured, tiny):
    tasks = ("vieval_demo_vqascore_tig", TIE)
    given = configured("VievalTransformers", tasks, model=str(tiny), max_tokens=16)
    made = run(*given, limit=3)
    assert made.code == 0, made.line
    files = {path.resolve() for path in made.folder.rglob("*_samples_*.jsonl")}
    rows = [row for path in files for row in read_lines(path)]
    verdicts = [json.loads(row["filtered_resps"][0])["verdict"] for row in rows]
    assert len(verdicts) == 6
    asked = [one for one in verdicts if one["bounds"] or "SC" in one["scores"]]
    assert len({verdict["scores"].get("SC") for verdict in asked}) > 1


def test_a_model_of_the_host(run, configured, tiny, monkeypatch, tmp_path):
    """Four patches let Qwen2VLChat run without a GPU; all else is the host's."""
    import torch
    import vlmeval.vlm.qwen2_vl.model as module
    from transformers import Qwen2_5_VLForConditionalGeneration as Qwen
    from transformers.feature_extraction_utils import BatchFeature

    load = Qwen.from_pretrained
    move = BatchFeature.to
    monkeypatch.setattr(module, "get_gpu_memory", lambda: [1])
    monkeypatch.setattr(Qwen, "from_pretrained", lambda folder, **_: load(folder))
    monkeypatch.setattr(BatchFeature, "to", lambda batch, *_, **__: move(batch, "cpu"))
    folder = tmp_path / "qwen2.5"  # nvidia-vlmeval tells the architecture by the name
    folder.symlink_to(tiny)
    monkeypatch.setattr(torch.nn.Module, "cuda", lambda network, *_: network)
    own = {"model_path": str(folder), "max_new_tokens": 24, "use_custom_prompt": False}
    made = run(*configured("Qwen2VLChat", **own), limit=4)
    assert made.line == ""
    assert len(made.verdicts) == 4
    statuses = {verdict["status"] for verdict in made.verdicts}
    assert statuses <= {"parse_failure", "api_error"}
    assert any(step["answer"] for verdict in made.verdicts for step in verdict["trace"])


def test_a_model_that_always_breaks_ends_the_run(run, configured, monkeypatch):
    import vlmeval.vlm

    class Broken:
        is_api = False

        def set_dump_image(self, dump_image):
            pass

        def generate(self, message, dataset=None):
            raise RuntimeError("out of memory")

    monkeypatch.setattr(vlmeval.vlm, "Broken", Broken, raising=False)
    made = run(*configured("Broken"))
    assert made.code == 1
    assert "Broken failed 3 times in a row (RuntimeError: out of memory)" in made.line
