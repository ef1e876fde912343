"""The weights that are shipped: they judge drawings, read their conditions, and are refused where damaged."""

import asyncio
import io
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest
from scipy.stats import spearmanr

from tests.extras import needs
from tests.pictures import encoded
from vieval_plugin.backends.weights import Origin
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.config import Config
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status
from vieval_plugin.run.evaluate import judge_samples
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.progress import Progress

pytestmark = [needs("torch"), needs("skimage")]


def verdicts(samples):
    options = Config()
    return asyncio.run(
        judge_samples(samples, prepare("vieval_small", None, options), options, None, Progress(), bar=False)
    )


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
    file = io.BytesIO()
    with PIL.Image.open(io.BytesIO(image.source)) as opened:
        PIL.ImageOps.mirror(opened).save(file, "PNG")
    return Image(file.getvalue())


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


def picture(mode, size):
    rng = np.random.RandomState(0)
    return Image(encoded(PIL.Image.fromarray(rng.randint(0, 256, (*size[::-1], 3), dtype=np.uint8)).convert(mode)))


@pytest.mark.parametrize(
    ("mode", "size"), [("RGB", (1, 1)), ("L", (300, 40)), ("P", (64, 64)), ("1", (8, 500)), ("RGBA", (700, 300))]
)
def test_other_sizes_and_modes_have_scores_and_a_warning(mode, size, capsys):
    images = {"output": picture(mode, size), "source": picture("RGB", (50, 60))}
    [verdict] = verdicts([Sample(SampleId("own", "tie", "mine", "1"), images, {"instruction": "add a hat"})])
    assert verdict.status is Status.OK
    assert all(0 <= score <= 1 for score in verdict.scores.values())
    assert capsys.readouterr().err.count("trained on drawings only") == 1


def test_drawings_of_the_demo_bring_no_warning(capsys):
    verdicts(benchmark_registry.benchmark("vieval_demo").load(Path(), "cig")[:1])
    assert "drawings only" not in capsys.readouterr().err


@pytest.mark.parametrize("kept", [0, 900, 100_000])
def test_a_damaged_file_of_weights_is_refused_in_one_line(kept, tmp_path):
    from vieval_plugin.backends.metrics.networks.vieval_small import WEIGHTS, load

    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(WEIGHTS.read_bytes()[:kept])
    with pytest.raises(VievalError, match=r"^.*damaged\.safetensors [^\n]*$"):
        load(Origin(str(damaged)))


def test_weights_of_something_else_are_refused(tmp_path):
    import torch
    from safetensors.torch import save_file

    from vieval_plugin.backends.metrics.networks.vieval_small import load

    save_file({"x": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(VievalError, match="is no file of vieval_small's weights"):
        load(Origin(str(tmp_path / "other.safetensors")))
