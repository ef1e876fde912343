"""Test metrics of networks beside the libraries' own, on random weights."""

import itertools
import json
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import PIL.Image
import pytest

from tests import tiny_scorers
from tests.backends import metric_asks
from tests.backends.metric_asks import METRICS, ask, file_of, measure, picture, scorers
from tests.backends.value_heads import near, values
from tests.refusals import refusal, refuses
from tests.tables import table
from tests.work import until
from vieval_plugin.backends import weights
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.metrics.batcher import Batcher
from vieval_plugin.backends.metrics.encoders import TRUNCATED
from vieval_plugin.backends.metrics.network_metrics import NetworkInstrument, metrics
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Failure, Measure, Measurement, Status

pytestmark = metric_asks.NETWORKS


@pytest.fixture
def models(scorer_weights):
    return scorer_weights


@pytest.fixture
def batches(monkeypatch):
    """What networks compute, batch by batch."""
    noted, compute = [], NetworkInstrument.compute
    noting = lambda one, rows: noted.append(rows) or compute(one, rows)
    monkeypatch.setattr(NetworkInstrument, "compute", noting)
    return noted


READ = {"return_tensors": "pt", "padding": True, "truncation": True, "max_length": 16}


def directly(metric, model, one):
    """The value as the library's own documentation has it computed."""
    import torch
    from transformers import AutoImageProcessor, CLIPModel, CLIPProcessor, ViTModel

    cosine = torch.nn.functional.cosine_similarity
    images = [decode(image) for image in one.images.values()]
    with torch.inference_mode():
        if metric == "lpips":
            image, reference = images
            lanczos = PIL.Image.Resampling.LANCZOS
            shown = (np.array(image), np.array(reference.resize(image.size, lanczos)))
            tensors = (torch.from_numpy(one).permute(2, 0, 1)[None] for one in shown)
            return float(_library_lpips(model)(*(one / 255 for one in tensors)))
        if metric == "dino":
            processor = AutoImageProcessor.from_pretrained(model)
            network = ViTModel.from_pretrained(model).eval()
            found = network(**processor(images, return_tensors="pt"))
            return float(cosine(*found.last_hidden_state[:, 0], dim=0))
        processor = CLIPProcessor.from_pretrained(model)
        texts = list(one.texts.values()) or ["none"]
        inputs = processor(text=texts, images=images, **READ)
        # both are of length 1
        found = CLIPModel.from_pretrained(model).eval()(**inputs)
        if metric == "clip_i":
            return float(cosine(*found.image_embeds, dim=0))
        if metric == "clip_score":
            return float(cosine(found.image_embeds, found.text_embeds))
        # the output's come first
        changes = (
            ends[0] - ends[1] for ends in (found.image_embeds, found.text_embeds)
        )
        return float(cosine(*changes, dim=0))


def test_an_edit_that_changes_nothing_has_no_direction(models):
    one = ask("clip_direction", 1)
    same = replace(one, images=dict.fromkeys(one.images, one.images["image"]))
    assert values(measure(scorers(models), [same])) == [0]


def _library_lpips(file):
    """Torchmetrics' public function, which would download a trunk, on the trunk of a file."""
    import torch
    from torchmetrics.functional.image import lpips
    from torchvision.models import alexnet

    def value(image, reference):
        with pytest.MonkeyPatch.context() as patch:
            trunk = alexnet().eval()
            trunk.load_state_dict(torch.load(file, weights_only=True), strict=False)
            features = lambda net, pretrained: trunk.features
            patch.setattr(lpips, "_get_tv_model_features", features)
            compute = lpips.learned_perceptual_image_patch_similarity
            return compute(image, reference, "alex", normalize=True)

    return value


SIZES = ((64, 64), (300, 70), (64, 64), (90, 500), (200, 200))


@pytest.mark.parametrize("metric", METRICS)
def test_each_is_what_the_library_computes(models, metric):
    shown = [picture(number, size) for number, size in enumerate(SIZES)]
    asks = [ask(metric, number, image) for number, image in enumerate(shown)]
    found = measure(scorers(models), asks)
    wanted = [directly(metric, models[metric], one) for one in asks]
    assert values(found) == near(wanted)
    assert len({round(value, 4) for value in wanted}) == 5  # the images do matter
    assert all(reply.by.startswith(f"{models[metric]}@sha256:") for reply in found)


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
    asks = [ask(metric, 3, one) for one in (image, file_of(decode(image)))]
    found, same = measure(scorers(models), asks)
    assert found.value == same.value
    assert found.value == near(directly(metric, models[metric], asks[1]))


def test_an_image_that_the_network_cannot_take_fails_alone(models):
    small = ask("lpips", 1, picture(1, (8, 8)))
    found = measure(scorers(models), [ask("lpips", 0), small, ask("lpips", 2)])
    assert [type(reply) for reply in found] == [Measurement, Failure, Measurement]
    assert "cannot compute lpips: " in found[1].reason


def about(text):
    """An ask of CLIP's score of a text."""
    shown = {"image": picture(1)}
    return Measure("clip_score", shown, ("m",), {"text": text}, "clip_score")


def test_a_long_text_is_truncated_and_noted(models, tmp_path):
    store = Store(tmp_path / "s")
    one = about(" ".join(["a red toy on the table"] * 10))
    wanted = directly("clip_score", models["clip_score"], one)
    for _ in range(2):  # also where the value comes from the store
        [found, short] = measure(scorers(models), [one, ask("clip_score", 1)], store)
        assert found.value == near(wanted)
        assert (found.notes, short.notes) == ((TRUNCATED,), ())


def test_texts_that_are_read_at_the_same_time_are_cut_each_for_itself(models):
    """A tokenizer remembers whether it cuts; several threads use one."""
    texts = [f"a cat {n} " * (40 if n % 2 else 1) for n in range(400)]
    found = measure(scorers(models), list(map(about, texts)))
    assert [one.notes for one in found] == [(), (TRUNCATED,)] * 200


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


def test_one_load_serves_all_metrics_of_the_same_weights(models, monkeypatch):
    from transformers import CLIPModel

    loads, load = [], CLIPModel.from_pretrained
    noting = lambda *a, **k: loads.append(a) or load(*a, **k)
    monkeypatch.setattr(CLIPModel, "from_pretrained", noting)
    found, both = scorers(models), ("clip_score", "clip_i")
    asks = [ask(*one) for one in itertools.product(both, range(40))]
    for _ in range(2):  # as the waves of a run
        measure(found, asks)
    assert len(loads) == 1


def test_what_is_asked_for_twice_is_measured_once_in_shared_batches(
    models, tmp_path, batches
):
    asks = [ask("clip_i", n % 12) for n in range(30)]
    found = measure(scorers(models), asks, Store(tmp_path / "s"))
    assert sum(map(len, batches)) == 12
    assert max(map(len, batches)) > 1
    assert found[:12] == found[12:24]


CPU_MEMORY = "DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes"


@pytest.mark.parametrize("error", ["CUDA out of memory", CPU_MEMORY])
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
    wanted = values(measure(scorers(models), asks))
    monkeypatch.setitem(metrics(), "clip_i", replace(metric, values=at_most_three))
    assert values(measure(scorers(models), asks)) == near(wanted)
    # how many wait when a batch is taken is a matter of pace
    failed = [place for place, size in enumerate(sizes) if size > 3]
    assert failed
    for place in failed:
        assert max(sizes[place + 1 :]) <= sizes[place] // 2


def test_out_of_memory_with_one_says_what_to_do(models, monkeypatch):
    def never(network, batch):
        raise MemoryError("not enough memory")

    metric = replace(metrics()["clip_i"], values=never)
    monkeypatch.setitem(metrics(), "clip_i", metric)
    [found] = measure(scorers(models), [ask("clip_i", 1)])
    assert found.status is Status.TOOL_ERROR
    assert "set device to cpu" in found.reason


# Weights that will not do: one line each, before anything is measured.


def refused(metric, model, **options):
    return refusal(measure, scorers({metric: model}, **options), [ask(metric, 0)])


class Hostile:
    def __reduce__(self):
        return (print, ("this must never be said",))


@pytest.mark.parametrize(*table("absent_weights.jsonl"))
def test_weights_that_are_not_there(models, metric, model, options, line):
    assert line in refused(metric, models.get(model, model), **options)


def test_weights_of_another_architecture(tmp_path, models):
    from safetensors.torch import load_file, save_file

    clip = load_file(models["clip_i"] / "model.safetensors")
    save_file(clip, tmp_path / "clip.safetensors")
    other = "has the wrong architecture; use the weights of torchvision's AlexNet"
    assert other in refused("lpips", tmp_path / "clip.safetensors")
    cut = tiny_scorers.build_clip(tmp_path / "cut")
    lost = clip.pop("visual_projection.weight")
    save_file(clip, cut / "model.safetensors", {"format": "pt"})
    assert "lacks visual_projection.weight" in refused("clip_score", cut)
    clip |= {"visual_projection.weight": lost, "more.weight": lost.clone()}
    save_file(clip, cut / "model.safetensors", {"format": "pt"})
    unknown = "contains the unknown weight more.weight"
    assert unknown in refused("clip_score", cut)


def test_a_pickle_that_holds_more_than_tensors_is_not_opened(tmp_path, capfd):
    import torch

    held, more = {"features.0.weight": Hostile()}, "contains more than tensors"
    (tmp_path / "bare.pth").write_bytes(pickle.dumps(held))
    torch.save(held, tmp_path / "archive.pth")
    for name in ("bare.pth", "archive.pth"):
        assert more in refused("lpips", tmp_path / name)
    torch.save({"features.0.weight": "a text"}, tmp_path / "texts.pth")
    plain = "must be a state dict that maps names to tensors only"
    assert plain in refused("lpips", tmp_path / "texts.pth")
    folder = tiny_scorers.build_clip(tmp_path / "clip", safe=False)
    torch.save({"logit_scale": Hostile()}, folder / "pytorch_model.bin")
    assert more in refused("clip_score", folder)
    assert "this must never be said" not in "".join(capfd.readouterr())


NO_WEIGHTS = {"empty": b"", "text": b"not weights", "empty dict": b"\x80\x02}q\x00."}


@pytest.mark.parametrize("data", NO_WEIGHTS.values(), ids=NO_WEIGHTS)
def test_files_that_are_no_weights(tmp_path, data):
    for name in ("weights.pth", "weights.safetensors"):
        (tmp_path / name).write_bytes(data)
        assert str(tmp_path / name) in refused("lpips", tmp_path / name)
    folder = tiny_scorers.build_dino(tmp_path / "dino")
    (folder / "model.safetensors").write_bytes(data)
    assert str(folder) in refused("dino", folder)


def test_code_beside_weights_is_not_run(tmp_path):
    folder = tiny_scorers.build_clip(tmp_path / "clip")
    config = json.loads((folder / "config.json").read_text())
    mine = {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"}
    config |= {"model_type": "mine", "auto_map": mine}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert str(folder) in refused("clip_score", folder)
    assert not (tmp_path / "ran").exists()


def test_a_metric_that_is_none_and_a_run_without_scorers(models):
    unknown = Measure("no_such", {"image": picture(1)}, ("m",), {}, "no_such")
    known = "unknown metric 'no_such'; known metrics: blip, clip_score, clip_i"
    refuses(known, measure, scorers(models), [unknown])
    alone = Batcher(Usage())
    refuses("use --model vieval_scorer", alone.measure, [ask("clip_i", 1)])


def test_the_name_of_weights_from_the_hub_has_its_commit():
    network = SimpleNamespace(config=SimpleNamespace(_commit_hash="3d74acf"))
    name = weights.weights_name(weights.Origin("openai/clip"), network, "abc")
    assert name == "openai/clip@3d74acf"


def test_a_run_that_ends_early_has_stored_its_batches(models, tmp_path, monkeypatch):
    store = Store(tmp_path / "s")
    compute = NetworkInstrument.compute
    sizes = []

    def waiting(one, rows):
        # the results of two batches may be written while the next is computed
        least = sum(sizes[:-2])
        until(lambda: len(list(store.export())) >= least)
        sizes.append(len(rows))
        return compute(one, rows)

    monkeypatch.setattr(NetworkInstrument, "compute", waiting)
    asks = [ask("clip_i", n) for n in range(24)]
    found = measure(scorers(models, batch_size=4), asks[:16], store)
    usage = Usage()
    assert measure(scorers(models, batch_size=4), asks, store, usage)[:16] == found
    assert usage.cached == 16
