"""The weights that are shipped: they judge drawings, read their conditions, and are refused where damaged."""

import asyncio
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest
from scipy.stats import spearmanr

from tests.extras import needs
from tests.pictures import encoded, noise
from vieval_plugin.backends.weights import Origin
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.config import Config
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status
from vieval_plugin.run.evaluate import outcomes_of
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.text.errors import VievalError

pytestmark = needs("skimage")


def verdicts(samples):
    options = Config()
    judging = outcomes_of(samples, prepare("vieval_small", None, options), options, None, Progress(), bar=False)
    return [outcome.verdict for outcome in asyncio.run(judging)]


@cache
def judged(part):
    samples = benchmark_registry.benchmark("vieval_demo").load(Path(), part)
    return samples, verdicts(samples)


def mean(found, aspect):
    return float(np.mean([verdict.scores[aspect] for verdict in found]))


@pytest.mark.parametrize("part", ["mie", "cig"])
def test_its_scores_agree_with_the_known_defects(part):
    samples, found = judged(part)
    for aspect, least in (("SC", 0.92), ("PQ", 0.92)):
        scores = [verdict.scores[aspect] for verdict in found]
        assert spearmanr(scores, [sample.ratings[aspect][0] for sample in samples]).statistic > least


def test_another_source_lowers_consistency_and_leaves_quality():
    samples, found = judged("mie")
    sources = [sample.images["source"] for sample in samples]
    other = [
        replace(sample, images={**sample.images, "source": source})
        for sample, source in zip(samples, sources[24:] + sources[:24], strict=True)
    ]
    again = verdicts(other)
    assert mean(again, "SC") < mean(found, "SC") - 0.1
    assert mean(again, "PQ") == pytest.approx(mean(found, "PQ"), abs=1e-4)


_OTHER = {"left": "right", "right": "left"}


def mirrored(image):
    with PIL.Image.open(io.BytesIO(image.source)) as opened:
        return Image(encoded(PIL.ImageOps.mirror(opened)))


def test_a_mirrored_sample_has_the_same_scores():
    samples, found = judged("tie")
    other = [
        replace(
            sample,
            images={role: mirrored(image) for role, image in sample.images.items()},
            texts={
                name: re.sub("left|right", lambda side: _OTHER[side[0]], text) for name, text in sample.texts.items()
            },
        )
        for sample in samples[:12]
    ]
    for one, two in zip(found, verdicts(other), strict=False):
        assert two.scores == pytest.approx(one.scores, abs=1e-3)


@pytest.mark.parametrize(
    ("mode", "size"), [("RGB", (1, 1)), ("L", (300, 40)), ("P", (64, 64)), ("1", (8, 500)), ("RGBA", (700, 300))]
)
def test_other_sizes_and_modes_have_scores_and_a_warning(mode, size, capsys):
    images = {"output": Image(encoded(noise(0, size).convert(mode))), "source": Image(encoded(noise()))}
    [verdict] = verdicts([Sample(SampleId("own", "tie", "mine", "1"), images, {"instruction": "add a hat"})])
    assert verdict.status is Status.OK
    assert all(0 <= score <= 1 for score in verdict.scores.values())
    assert capsys.readouterr().err.count("trained on synthetic drawings only") == 1


def test_drawings_of_the_demo_bring_no_warning(capsys):
    verdicts(benchmark_registry.benchmark("vieval_demo").load(Path(), "cig")[:1])
    assert "synthetic drawings only" not in capsys.readouterr().err


def trained_scores(networks):
    """Scores of a part for a view, by networks as they are trained, in PyTorch."""
    import torch

    def score(part, kind, view):
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in view.items()}
        tensors = {name: array if name == "words" else array.permute(0, 3, 1, 2) for name, array in tensors.items()}
        with torch.inference_mode():
            return networks[part]({kind: tensors})[kind]["score"].sigmoid().numpy()

    return score


def difference(network, kind, score, limit=None):
    """The largest difference between scores in NumPy and by `score`, over the demo's samples of a kind, SC and PQ."""
    from vieval_plugin.backends.metrics import vieval_small_network as in_numpy
    from vieval_plugin.backends.metrics.networks import vieval_small
    from vieval_plugin.images import decode

    views = []

    def recorded(compute, part):
        def of_view(layer, facts, kind, view):
            views.append((part, kind, view, compute(layer, facts, kind, view)))
            return views[-1][-1]

        return of_view

    parts = {part: (recorded(compute, part), kinds) for part, (compute, kinds) in in_numpy.PARTS.items()}
    samples = benchmark_registry.benchmark("vieval_demo").load(Path(), kind)[:limit]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vieval_small, "PARTS", parts)
        for show, values, texts in (
            (vieval_small.show_consistency, vieval_small.vieval_small_sc, {"kind": kind}),
            (vieval_small.show_quality, vieval_small.vieval_small_pq, {}),
        ):
            for first in range(0, len(samples), 16):
                rows = [
                    show(
                        network,
                        {role: decode(image) for role, image in sample.images.items()},
                        {**sample.texts, **texts},
                    )
                    for sample in samples[first : first + 16]
                ]
                values(network, {role: [row.tensors[role] for row in rows] for role in rows[0].tensors})
    assert sum(len(scores) for *_, scores in views) == 4 * len(samples)  # SC and PQ, each plain and mirrored
    return max(float(np.abs(scores - score(part, kind, view)).max()) for part, kind, view, scores in views)


@needs("torch")
@pytest.mark.parametrize(
    "kind",
    ["tie", "cig", *(pytest.param(kind, marks=pytest.mark.extras) for kind in ("tig", "mie", "sdig", "sdie", "mcic"))],
)
def test_scores_in_numpy_are_those_of_the_network_that_was_trained(kind):
    import torch
    from safetensors import safe_open

    from bench.vieval_small.network import PARTS
    from vieval_plugin.backends.metrics.networks.vieval_small import WEIGHTS, load

    with safe_open(WEIGHTS, "pt") as opened:
        description = json.loads(opened.metadata()["parts"])
    loaded, networks = load(Origin("")), {}
    for part, (network, _) in PARTS.items():
        told = description[part]
        networks[part] = network(len(told["words"]) + 2, told["defects"], told["facts"]).eval()
        networks[part].load_state_dict(
            {name: torch.from_numpy(np.asarray(array)) for name, array in loaded.parts[part].layer.items()}
        )
    assert difference(loaded, kind, trained_scores(networks)) < 1e-4


def test_it_judges_where_neither_pytorch_nor_transformers_can_be_imported(tmp_path):
    program = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torchvision", "transformers"):
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
from vieval_plugin.cli import main
options = "--benchmark vieval_demo --judge vieval_small --limit 2 --out".split()
sys.exit(main(["score", *options, {str(tmp_path / "v.jsonl")!r}]))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert len(rows) == 2


@pytest.mark.parametrize("kept", [0, 900, 100_000])
def test_a_damaged_file_of_weights_is_refused_in_one_line(kept, tmp_path):
    from vieval_plugin.backends.metrics.networks.vieval_small import WEIGHTS, load

    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(WEIGHTS.read_bytes()[:kept])
    with pytest.raises(VievalError, match=r"^.*damaged\.safetensors [^\n]*$"):
        load(Origin(str(damaged)))


def test_weights_of_something_else_are_refused(tmp_path):
    from safetensors.numpy import save_file

    from vieval_plugin.backends.metrics.networks.vieval_small import load

    save_file({"x": np.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(VievalError, match="is no file of vieval_small's weights"):
        load(Origin(str(tmp_path / "other.safetensors")))
