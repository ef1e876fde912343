"""Described dual encoders beside transformers' own computation, on a tiny CLIP."""

import shutil

import pytest

from tests.backends.value_heads import measure, picture
from tests.extras import needs
from tests.refusals import refusal
from tests.shipped_scorers import clip_logit
from tests.tables import table
from vieval_plugin.backends.metrics.encoders import TRUNCATED
from vieval_plugin.judges.protocol import Measure

pytestmark = needs("torch", "transformers", "torchvision")

TEXTS = ("a red toy on the table", "photo of a dog", "a cat")


def describe(folder, base, images="[output]", **network):
    folder.mkdir(exist_ok=True)
    network = {"form": "dual_encoder", "base": base, **network}
    keys = "".join(f"  {key}: {value}\n" for key, value in network.items())
    asked = f"questions: {{SC: {{images: {images}, text: '{{{{ prompt }}}}'}}}}"
    text = f"name: pick\n{asked}\nsigmoid: [0, 1]\nnetwork:\n{keys}"
    (folder / "pick.yaml").write_text(text)
    return folder / "pick.yaml"


def asks(texts=TEXTS):
    about = [({"image_0": picture(n)}, {"text": text}) for n, text in enumerate(texts)]
    return [Measure("dual_encoder", i, ("m",), text, "scorer") for i, text in about]


def test_the_learnt_scale_and_one_of_the_description(scorer_weights, tmp_path):
    from transformers import CLIPModel

    model = scorer_weights["clip_score"]
    wanted = [clip_logit(model, one) for one in asks()]
    learnt = measure(describe(tmp_path, model, scale="learnt"), asks())
    assert [reply.value for reply in learnt] == pytest.approx(wanted, abs=1e-5)
    scale = float(CLIPModel.from_pretrained(model).logit_scale.exp())
    plain = measure(describe(tmp_path / "plain", model), asks())
    unscaled = [value / scale for value in wanted]
    assert [reply.value for reply in plain] == pytest.approx(unscaled, abs=1e-5)
    assert all(reply.by.startswith(f"pick on {model}@sha256:") for reply in plain)


def test_a_processor_from_elsewhere_and_a_long_text(scorer_weights, tmp_path):
    model = scorer_weights["clip_score"]
    (tmp_path / "bare").mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(model / name, tmp_path / "bare" / name)
    asked = asks([" ".join(["a red toy on the table"] * 10)])
    path = describe(tmp_path, "bare", processor=model, scale="learnt")
    [found] = measure(path, asked)
    assert found.value == pytest.approx(clip_logit(model, asked[0]), abs=1e-5)
    assert found.notes == (TRUNCATED,)


@pytest.mark.parametrize(*table("wrong_dual_encoders.jsonl"))
def test_what_cannot_be_is_one_line(scorer_weights, tmp_path, changed, line):
    about = {"base": "clip_score", **changed}
    about["base"] = scorer_weights.get(about["base"], about["base"])
    path = describe(tmp_path, **about)
    assert line in refusal(measure, path, asks())
