"""Described dual encoders beside transformers' own computation, on a tiny CLIP."""

import pytest

from tests.backends.value_heads import measure, picture
from tests.extras import needs
from tests.refusals import refusal
from tests.shipped_scorers import clip_logit
from vieval_plugin.backends.metrics.encoders import TRUNCATED
from vieval_plugin.judges.protocol import Measure

pytestmark = needs("torch", "transformers", "torchvision")

TEXTS = ("a red toy on the table", "photo of a dog", "a cat")


def describe(folder, base, images="[output]", **network):
    folder.mkdir(exist_ok=True)
    keys = "".join(
        f"  {key}: {value}\n" for key, value in {"base": base, **network}.items()
    )
    (folder / "pick.yaml").write_text(
        f"name: pick\nquestions: {{SC: {{images: {images}, text: '{{{{ prompt }}}}'}}}}\n"
        f"sigmoid: [0, 1]\nnetwork:\n  form: dual_encoder\n{keys}"
    )
    return folder / "pick.yaml"


def asks(texts=TEXTS):
    return [
        Measure(
            "dual_encoder", {"image_0": picture(n)}, ("m",), {"text": text}, "scorer"
        )
        for n, text in enumerate(texts)
    ]


def test_the_learnt_scale_and_one_of_the_description(scorer_weights, tmp_path):
    model = scorer_weights["clip_score"]
    wanted = [clip_logit(model, one) for one in asks()]
    learnt = measure(describe(tmp_path, model, scale="learnt"), asks())
    assert [reply.value for reply in learnt] == pytest.approx(wanted, abs=1e-5)
    from transformers import CLIPModel

    scale = float(CLIPModel.from_pretrained(model).logit_scale.exp())
    plain = measure(describe(tmp_path / "plain", model), asks())
    assert [reply.value for reply in plain] == pytest.approx(
        [value / scale for value in wanted], abs=1e-5
    )
    assert all(reply.by.startswith(f"pick on {model}@sha256:") for reply in plain)


def test_a_processor_from_elsewhere_and_a_long_text(scorer_weights, tmp_path):
    import shutil

    model = scorer_weights["clip_score"]
    (tmp_path / "bare").mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(model / name, tmp_path / "bare" / name)
    asked = asks([" ".join(["a red toy on the table"] * 10)])
    [found] = measure(
        describe(tmp_path, "bare", processor=model, scale="learnt"), asked
    )
    assert found.value == pytest.approx(clip_logit(model, asked[0]), abs=1e-5)
    assert found.notes == (TRUNCATED,)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"scala": 2}, "unknown key network.scala; did you mean scale?"),
        ({"scale": "much"}, "network.scale"),
        ({"images": "[source, output]"}, "`images` must list exactly one image"),
        ({"base": "/nowhere"}, "weights folder not found"),
        ({"base": "dino"}, "must have the architecture clip (CLIPModel), got vit"),
        ({"processor": "/nowhere"}, "weights folder not found"),
    ],
)
def test_what_cannot_be_is_one_line(scorer_weights, tmp_path, changed, line):
    base = {"dino": scorer_weights["dino"]}.get(
        changed.get("base"), changed.get("base", scorer_weights["clip_score"])
    )
    path = describe(
        tmp_path,
        base,
        **{key: value for key, value in changed.items() if key != "base"},
    )
    assert line in refusal(measure, path, asks())
