"""The metrics of networks beside the libraries' own computations, on real architectures with
random weights.
"""

import pickle
import random
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import PIL.Image
import pytest

from tests import tiny_scorers
from tests.extras import needs
from tests.pictures import encoded
from tests.refusals import refusal
from vieval_plugin.backends import weights
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.metrics.batcher import Batcher
from vieval_plugin.backends.metrics.encoders import TRUNCATED
from vieval_plugin.backends.metrics.network_metrics import (
    NetworkInstrument,
    Scorers,
    metrics,
)
from vieval_plugin.config import Scorer
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Failure, Image, Measure, Measurement, Status
from vieval_plugin.text.errors import VievalError

pytestmark = [
    needs("torch", "transformers", "torchvision", "torchmetrics"),
    pytest.mark.usefixtures("no_downloads"),
]

METRICS = ("clip_score", "clip_i", "clip_direction", "dino", "lpips")
TEXTS = (
    "a red toy on the table",
    "photo of a dog",
    "a cat",
    "xyz 12, on the red table!",
)


@pytest.fixture
def models(scorer_weights):
    return scorer_weights


@pytest.fixture
def batches(monkeypatch):
    """What networks compute, batch by batch."""
    noted, compute = [], NetworkInstrument.compute
    monkeypatch.setattr(
        NetworkInstrument,
        "compute",
        lambda one, rows: noted.append(rows) or compute(one, rows),
    )
    return noted


def scorers(models, **options):
    return Scorers(
        {name: Scorer(str(model), **options) for name, model in models.items()}
    )


def measure(found, asks, store=None, usage=None):
    measuring = Batcher(usage or Usage(), store, find=found.find)
    try:
        return measuring.measure(asks)
    finally:
        measuring.close()


def picture(seed, size=(80, 72)):
    """An image file in memory: large shapes under grain."""
    rng = np.random.default_rng(seed)
    coarse = PIL.Image.fromarray(
        rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
    ).resize(size)
    pixels = np.asarray(coarse, int) + rng.integers(-20, 20, (size[1], size[0], 3))
    return file_of(PIL.Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)))


def file_of(image, kind="PNG", **options):
    return Image(encoded(image, kind, **options))


def ask(metric, number, image=None):
    """An ask of a metric about drawn images, or about a given one."""
    images = {"image": image or picture(number)}
    if metric != "clip_score":
        role = "source" if metric == "clip_direction" else "reference"
        images[role] = picture(1000 + number, (72, 80))
    text, other = (TEXTS[n % len(TEXTS)] for n in (number, number + 1))
    texts = {"text": text} if metric == "clip_score" else {}
    if metric == "clip_direction":
        texts = {"output_text": text, "source_text": other}
    return Measure(metric, images, (metric,), texts, metric)


def directly(metric, model, one):
    """The value as the library's own documentation has it computed."""
    import torch
    from transformers import AutoImageProcessor, CLIPModel, CLIPProcessor, ViTModel

    images = [decode(image) for image in one.images.values()]
    with torch.inference_mode():
        if metric == "clip_score":
            inputs = CLIPProcessor.from_pretrained(model)(
                text=[one.texts["text"]],
                images=images,
                return_tensors="pt",
                padding=True,
                truncation=True,
                max_length=16,
            )
            network = CLIPModel.from_pretrained(model).eval()
            return float(network(**inputs).logits_per_image / network.logit_scale.exp())
        if metric == "lpips":
            image, reference = (
                torch.from_numpy(np.array(i)).permute(2, 0, 1)[None] / 255
                for i in (
                    images[0],
                    images[1].resize(images[0].size, PIL.Image.Resampling.LANCZOS),
                )
            )
            return float(_library_lpips(model)(image, reference))
        pixels = AutoImageProcessor.from_pretrained(model)(images, return_tensors="pt")
        if metric == "clip_direction":
            return _direction(model, images, list(one.texts.values()))
        if metric == "clip_i":
            found = (
                CLIPModel.from_pretrained(model)
                .eval()
                .get_image_features(**pixels)
                .pooler_output
            )
        else:
            found = (
                ViTModel.from_pretrained(model).eval()(**pixels).last_hidden_state[:, 0]
            )
        return float(torch.nn.functional.cosine_similarity(*found, dim=0))


def _direction(model, images, texts):
    """The cosine of the changes of vectors of length 1, those of the output first."""
    import torch
    from transformers import CLIPModel, CLIPProcessor

    inputs = CLIPProcessor.from_pretrained(model)(
        text=texts,
        images=images,
        return_tensors="pt",
        padding=True,
        truncation=True,
        max_length=16,
    )
    found = CLIPModel.from_pretrained(model).eval()(**inputs)
    change, expected = (
        vectors[0] / vectors[0].norm() - vectors[1] / vectors[1].norm()
        for vectors in (found.image_embeds, found.text_embeds)
    )
    return float(torch.nn.functional.cosine_similarity(change, expected, dim=0))


def test_an_edit_that_changes_nothing_has_no_direction(models):
    one = ask("clip_direction", 1)
    same = replace(one, images=dict.fromkeys(one.images, one.images["image"]))
    [found] = measure(scorers(models), [same])
    assert found.value == 0


def _library_lpips(file):
    """Torchmetrics' public function, which would download a trunk, on the trunk of a file."""
    import torch
    from torchmetrics.functional.image import lpips
    from torchvision.models import alexnet

    def value(image, reference):
        with pytest.MonkeyPatch.context() as patch:
            trunk = alexnet().eval()
            trunk.load_state_dict(torch.load(file, weights_only=True), strict=False)
            patch.setattr(
                lpips, "_get_tv_model_features", lambda net, pretrained: trunk.features
            )
            return lpips.learned_perceptual_image_patch_similarity(
                image, reference, "alex", normalize=True
            )

    return value


@pytest.mark.parametrize("metric", METRICS)
def test_each_is_what_the_library_computes(models, metric):
    asks = [ask(metric, number) for number in range(4)]
    found = measure(scorers(models), asks)
    wanted = [directly(metric, models[metric], one) for one in asks]
    assert [reply.value for reply in found] == pytest.approx(wanted, abs=1e-5)
    assert len({round(value, 4) for value in wanted}) == 4  # the images do matter
    assert all(reply.by.startswith(f"{models[metric]}@sha256:") for reply in found)


@pytest.mark.parametrize("metric", METRICS)
def test_neither_the_batch_nor_its_order_matters(models, metric):
    asks = [ask(metric, number) for number in range(20)]
    together = {
        id(one): r.value
        for one, r in zip(
            asks, measure(scorers(models, batch_size=16), asks), strict=True
        )
    }
    shuffled = random.Random(0).sample(asks, len(asks))
    for other, options in ((asks, {"batch_size": 1}), (shuffled, {"batch_size": 16})):
        again = measure(scorers(models, **options), other)
        assert [r.value for r in again] == pytest.approx(
            [together[id(one)] for one in other], abs=1e-5
        )


def odd_images():
    rgb = decode(picture(5))
    grey = rgb.convert("L")
    alpha = rgb.convert("RGBA")
    alpha.putalpha(PIL.Image.linear_gradient("L").resize(rgb.size))
    sixteen = PIL.Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    palette = rgb.quantize(64)
    return {"grey": grey, "palette": palette, "16-bit": sixteen, "transparent": alpha}


@pytest.mark.parametrize("kind", odd_images())
@pytest.mark.parametrize("metric", METRICS)
def test_odd_images_count_as_a_viewer_shows_them(models, metric, kind):
    image = file_of(odd_images()[kind])
    plain = file_of(decode(image))
    [found, same] = measure(
        scorers(models), [ask(metric, 3, image), ask(metric, 3, plain)]
    )
    assert isinstance(found, Measurement)
    assert found.value == same.value
    assert found.value == pytest.approx(
        directly(metric, models[metric], ask(metric, 3, plain)), abs=1e-5
    )


def test_images_of_all_sizes_go_through_together(models):
    sizes = [(64, 64), (300, 70), (64, 64), (90, 500), (200, 200)]
    for metric in METRICS:
        asks = [ask(metric, 3, picture(n, size)) for n, size in enumerate(sizes)]
        wanted = [directly(metric, models[metric], one) for one in asks]
        assert [r.value for r in measure(scorers(models), asks)] == pytest.approx(
            wanted, abs=1e-5
        )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "broken", [b"no image", None, b""], ids=["other bytes", "cut off", "empty"]
)
def test_an_image_that_cannot_be_decoded_has_no_number(
    models, metric, broken, tmp_path
):
    data = picture(1).source
    bad = Image(data[: len(data) // 2] if broken is None else broken)
    with_bad = measure(
        scorers(models),
        [ask(metric, 0), ask(metric, 1, bad), ask(metric, 2)],
        Store(tmp_path / "s"),
    )
    assert isinstance(with_bad[1], Failure)
    assert with_bad[1].status is Status.TOOL_ERROR
    assert [type(reply) for reply in with_bad] == [Measurement, Failure, Measurement]


def test_an_image_that_the_network_cannot_take_fails_alone(models):
    found = measure(
        scorers(models),
        [ask("lpips", 0), ask("lpips", 1, picture(1, (8, 8))), ask("lpips", 2)],
    )
    assert [type(reply) for reply in found] == [Measurement, Failure, Measurement]
    assert "lpips cannot be computed: " in found[1].reason


def test_a_long_text_is_truncated_and_noted(models, tmp_path):
    store, long = Store(tmp_path / "s"), " ".join(["a red toy on the table"] * 10)
    one = Measure(
        "clip_score", {"image": picture(1)}, ("m",), {"text": long}, "clip_score"
    )
    for _ in range(2):  # also where the value comes from the store
        [found, short] = measure(scorers(models), [one, ask("clip_score", 1)], store)
        assert found.value == pytest.approx(
            directly("clip_score", models["clip_score"], one), abs=1e-5
        )
        assert (found.notes, short.notes) == ((TRUNCATED,), ())


def test_texts_that_are_read_at_the_same_time_are_cut_each_for_itself(models):
    """A tokenizer remembers whether it cuts; several threads use one."""
    texts = [f"a cat {number} " * (40 if number % 2 else 1) for number in range(400)]
    asks = [
        Measure(
            "clip_score", {"image": picture(1)}, ("m",), {"text": text}, "clip_score"
        )
        for text in texts
    ]
    found = measure(scorers(models), asks)
    assert [one.notes for one in found] == [
        (TRUNCATED,) if number % 2 else () for number in range(400)
    ]


def test_a_second_run_comes_from_the_store(models, tmp_path, monkeypatch):
    asks, store = (
        [ask(metric, number) for metric in METRICS for number in range(3)],
        Store(tmp_path / "s"),
    )
    first = measure(scorers(models), asks, store)
    monkeypatch.setattr(NetworkInstrument, "compute", None)
    usage = Usage()
    assert measure(scorers(models), asks, store, usage) == first
    assert usage.cached == len(asks)


def test_the_key_has_the_weights_and_the_pixels_and_not_their_files(models, tmp_path):
    store = Store(tmp_path / "s")
    jpeg = file_of(decode(picture(1)), "JPEG")
    measure(scorers(models), [ask("clip_score", 0, jpeg)], store)

    def cached(models, image=jpeg, metric="clip_score"):
        usage = Usage()
        measure(scorers(models), [ask(metric, 0, image)], store, usage)
        return usage.cached

    pickled = tiny_scorers.build_clip(tmp_path / "elsewhere", safe=False)
    assert cached({"clip_score": pickled}) == 1
    assert cached(models, file_of(decode(jpeg), "BMP")) == 1
    other = tiny_scorers.build_clip(tmp_path / "other", seed=1)
    assert cached({"clip_score": other}) == 0


def test_one_load_serves_all_asks_and_all_metrics_of_the_same_weights(
    models, monkeypatch
):
    import transformers

    loads = []
    load = transformers.CLIPModel.from_pretrained
    monkeypatch.setattr(
        transformers.CLIPModel,
        "from_pretrained",
        lambda *a, **k: loads.append(a) or load(*a, **k),
    )
    found = scorers(models)
    for _ in range(2):  # as the waves of a run
        measure(
            found,
            [ask(metric, n) for metric in ("clip_score", "clip_i") for n in range(40)],
        )
    assert len(loads) == 1


def test_what_is_asked_for_twice_is_measured_once(models, tmp_path, batches):
    found = measure(
        scorers(models),
        [ask("clip_i", n % 3) for n in range(30)],
        Store(tmp_path / "s"),
    )
    assert sum(map(len, batches)) == 3
    assert found[:3] == found[3:6]


@pytest.mark.parametrize(
    "error",
    [
        "CUDA out of memory",
        "DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes",
    ],
)
def test_out_of_memory_halves_the_batch_for_good(models, monkeypatch, error):
    import torch

    kind = torch.OutOfMemoryError if "CUDA" in error else RuntimeError
    metric, sizes = metrics()["clip_i"], []

    def at_most_three(network, batch):
        sizes.append(len(batch["image"]))
        if sizes[-1] > 3:
            raise kind(error)
        return metric.values(network, batch)

    asks = [ask("clip_i", n) for n in range(48)]
    wanted = [reply.value for reply in measure(scorers(models), asks)]
    monkeypatch.setitem(metrics(), "clip_i", replace(metric, values=at_most_three))
    found = measure(scorers(models), asks)
    assert [reply.value for reply in found] == pytest.approx(wanted, abs=1e-5)
    # how many wait when a batch is taken is a matter of pace
    failed = [place for place, size in enumerate(sizes) if size > 3]
    assert failed
    assert all(
        later <= sizes[place] // 2 for place in failed for later in sizes[place + 1 :]
    )


def test_out_of_memory_with_one_says_what_to_do(models, monkeypatch):
    metric = metrics()["clip_i"]

    def never(network, batch):
        raise MemoryError("not enough memory")

    monkeypatch.setitem(metrics(), "clip_i", replace(metric, values=never))
    [found] = measure(scorers(models), [ask("clip_i", 1)])
    assert found.status is Status.TOOL_ERROR
    assert "set device to cpu" in found.reason


# Weights that will not do: one line each, before anything is measured.


def refused(metric, model, **options):
    return refusal(measure, scorers({metric: model}, **options), [ask(metric, 0)])


class Hostile:
    def __reduce__(self):
        return (print, ("this must never be said",))


def test_weights_that_are_not_there(tmp_path, models):
    assert (
        refused("clip_score", tmp_path / "nothing")
        == f"{tmp_path}/nothing: weights folder not found"
    )
    line = refused("clip_score", "openai/no-such-model")
    assert (
        "openai/no-such-model are not on this machine and cannot be downloaded from the Hugging Face Hub"
        in line
    )
    assert "name=FOLDER in --model_args, --scorer FOLDER" in line
    assert "in revision v2 " in refused("dino", "facebook/no-such-model", revision="v2")
    assert "is a file; pass its folder" in refused("clip_score", models["lpips"])
    assert "weights file not found" in refused("lpips", tmp_path / "nothing.pth")
    assert "requires the weights of torchvision's AlexNet" in refused("lpips", "")
    assert "is a file; remove revision" in refused(
        "lpips", models["lpips"], revision="v2"
    )


def test_weights_of_another_architecture(tmp_path, models):
    assert "must have the architecture clip (CLIPModel), got vit" in refused(
        "clip_score", models["dino"]
    )
    assert "must have the architecture vit (ViTModel), got clip" in refused(
        "dino", models["clip_i"]
    )
    from safetensors.torch import load_file, save_file

    save_file(
        load_file(models["clip_i"] / "model.safetensors"), tmp_path / "clip.safetensors"
    )
    assert (
        "has the wrong architecture; use the weights of torchvision's AlexNet"
        in refused("lpips", tmp_path / "clip.safetensors")
    )
    cut = tiny_scorers.build_clip(tmp_path / "cut")
    held = load_file(cut / "model.safetensors")
    del held["visual_projection.weight"]
    save_file(held, cut / "model.safetensors", {"format": "pt"})
    assert "lacks visual_projection.weight" in refused("clip_score", cut)


def test_a_pickle_that_holds_more_than_tensors_is_not_opened(tmp_path, capfd):
    import torch

    (tmp_path / "bare.pth").write_bytes(pickle.dumps({"features.0.weight": Hostile()}))
    torch.save({"features.0.weight": Hostile()}, tmp_path / "archive.pth")
    for name in ("bare.pth", "archive.pth"):
        assert "contains more than tensors" in refused("lpips", tmp_path / name)
    torch.save({"features.0.weight": "a text"}, tmp_path / "texts.pth")
    assert "must be a state dict that maps names to tensors only" in refused(
        "lpips", tmp_path / "texts.pth"
    )
    folder = tiny_scorers.build_clip(tmp_path / "clip", safe=False)
    torch.save({"logit_scale": Hostile()}, folder / "pytorch_model.bin")
    assert "contains more than tensors" in refused("clip_score", folder)
    assert "this must never be said" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "data",
    [b"", b"not weights", b"\x80\x02}q\x00."],
    ids=["empty", "text", "empty dict"],
)
def test_files_that_are_no_weights(tmp_path, data):
    for name in ("weights.pth", "weights.safetensors"):
        (tmp_path / name).write_bytes(data)
        assert str(tmp_path / name) in refused("lpips", tmp_path / name)
    folder = tiny_scorers.build_dino(tmp_path / "dino")
    (folder / "model.safetensors").write_bytes(data)
    assert str(folder) in refused("dino", folder)


def test_code_beside_weights_is_not_run(tmp_path):
    import json

    folder = tiny_scorers.build_clip(tmp_path / "clip")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "mine",
        "auto_map": {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert str(folder) in refused("clip_score", folder)
    assert not (tmp_path / "ran").exists()


def test_a_metric_that_is_none_and_a_run_without_scorers(models):
    unknown = Measure("no_such", {"image": picture(1)}, ("m",), {}, "no_such")
    with pytest.raises(
        VievalError,
        match="unknown metric 'no_such'; known metrics: blip, clip_score, clip_i",
    ):
        measure(scorers(models), [unknown])
    with pytest.raises(VievalError, match="use --model vieval_scorer"):
        Batcher(Usage()).measure([ask("clip_i", 1)])


def test_a_device_that_is_not_there(models):
    assert "cannot use the device 'nonsense'" in refused(
        "dino", models["dino"], device="nonsense"
    )


def test_the_name_of_weights_from_the_hub_has_its_commit():
    class Network:
        class config:
            _commit_hash = "3d74acf"

    assert (
        weights.weights_name(weights.Origin("openai/clip"), Network(), "abc")
        == "openai/clip@3d74acf"
    )


KILLED = """
import os, signal, sys
from pathlib import Path
from vieval_plugin.backends.metrics.batcher import Batcher
from vieval_plugin.backends.metrics.network_metrics import Scorers, NetworkInstrument
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.config import Scorer
from vieval_plugin.judges.protocol import Image, Measure
model, folder = sys.argv[1], Path(sys.argv[2])
batches, compute = [], NetworkInstrument.compute
def three_batches(self, rows):
    batches.append(len(rows))
    if len(batches) > 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return compute(self, rows)
NetworkInstrument.compute = three_batches
images = [{role: Image(folder / f"{n}_{role}.png") for role in ("image", "reference")} for n in range(24)]
asks = [Measure("clip_i", one, ("m",), {}, "clip_i") for one in images]
find = Scorers({"clip_i": Scorer(model, batch_size=4)}).find
Batcher(Usage(), Store(folder / "store"), find=find).measure(asks)
"""


def test_after_a_kill_nothing_is_measured_twice(models, tmp_path, batches):
    asks = [ask("clip_i", n) for n in range(24)]
    for number, one in enumerate(asks):
        for role, image in one.images.items():
            (tmp_path / f"{number}_{role}.png").write_bytes(image.source)
    ended = subprocess.run([sys.executable, "-c", KILLED, models["clip_i"], tmp_path])
    assert ended.returncode == -signal.SIGKILL
    store, usage = Store(tmp_path / "store"), Usage()
    kept = len(list(store.export()))
    assert 3 <= kept <= 12
    found = measure(scorers(models, batch_size=4), asks, store, usage)
    assert (usage.cached, sum(map(len, batches))) == (kept, 24 - kept)
    whole = measure(scorers(models, batch_size=4), asks)
    assert [f"{r.value:.6f}" for r in found] == [f"{r.value:.6f}" for r in whole]


def test_asks_that_come_together_share_a_batch(models, batches):
    measure(scorers(models), [ask("clip_i", number) for number in range(12)])
    assert sum(map(len, batches)) == 12
    assert max(map(len, batches)) > 1
