"""Images a second through a scorer beside a bare transformers loop on the same images, texts and network, in the same run.

    python bench/scorer.py [--images 1000] [--side 512] [--batch 16] [--rounds 3]

The network is a CLIP in the shape of ViT-B/32 with random weights, and its tokenizer is the tests'
own: nothing is downloaded. Both begin with loaded weights and files on disk. The bare loop opens a
batch of files, prepares them, runs the model and takes cosines; the scorer also hashes images,
keeps replies in a store and makes verdicts. They take turns, and the fastest round of each counts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import common
import numpy as np
import PIL.Image

from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.config import Scorer
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.run.answerers import opened_store
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.router import refuse_questions
from vieval_plugin.run.runner import judge_in_batches

JUDGE = "clip_score"


def build(folder: Path) -> Path:
    """CLIP in the shape of ViT-B/32, which is the default shape of its configuration, with
    random weights.
    """
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor

    sys.path.append(str(common.SERVER.parent))
    import tiny_scorers

    tokenizer = tiny_scorers.clip_tokenizer()
    CLIPProcessor(CLIPImageProcessor(), tokenizer).save_pretrained(folder)
    torch.manual_seed(0)
    tokens = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    CLIPModel(CLIPConfig(text_config=tokens)).save_pretrained(folder)
    return folder


def bare(
    model: Any, processor: Any, samples: Sequence[Sample], batch: int
) -> list[float]:
    """The baseline: what a script of a few lines does."""
    import torch

    values: list[float] = []
    for start in range(0, len(samples), batch):
        images = []
        texts = []
        for sample in samples[start : start + batch]:
            picture = PIL.Image.open(str(sample.images["output"].source))
            images.append(picture.convert("RGB"))
            texts.append(sample.texts["prompt"])
        with torch.inference_mode():
            inputs = processor(
                text=texts,
                images=images,
                padding=True,
                truncation=True,
                return_tensors="pt",
            )
            found = model(**inputs)
            cosines = (found.image_embeds * found.text_embeds).sum(-1)
            values += cosines.tolist()
    return values


def scored(
    scorers: Scorers, samples: Sequence[Sample], store: Path
) -> tuple[list[float], Progress]:
    """The same values as a run has them."""
    options = common.options(store)
    progress = Progress()
    prepared = prepare(JUDGE, None, options)
    jobs = [Job(sample, prepared) for sample in samples]
    with opened_store(options) as kept:
        outcomes = judge_in_batches(
            jobs, refuse_questions, progress, kept, scorers=scorers
        )
    return [outcome.verdict.trace[0].scores[0] for outcome in outcomes], progress


def main() -> None:
    from transformers import CLIPModel, CLIPProcessor

    parser = common.script_parser(__doc__, images=1000, side=512, batch=16, rounds=3)
    given = parser.parse_args()
    bare_seconds = []
    scorer_seconds = []
    store_seconds = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        weights = str(build(folder / "clip"))
        files = common.photographs(folder, given.images, given.side)
        samples = list(common.samples(files))
        model = CLIPModel.from_pretrained(weights).eval()
        processor = CLIPProcessor.from_pretrained(weights)
        scorers = Scorers({JUDGE: Scorer(weights, batch_size=given.batch)})
        # what is paid once: weights, and the first pass through each
        bare(model, processor, samples[: given.batch], given.batch)
        scored(scorers, samples[: given.batch], folder / "warm.sqlite")
        for number in range(given.rounds):
            store = folder / f"{number}.sqlite"
            begun = time.perf_counter()
            expected = bare(model, processor, samples, given.batch)
            bare_seconds.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            values, _ = scored(scorers, samples, store)
            scorer_seconds.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            stored_values, progress = scored(scorers, samples, store)
            store_seconds.append(time.perf_counter() - begun)
            assert progress.usage.cached == len(samples)
            assert stored_values == values
    print(
        f"{given.images} images of {given.side} x {given.side}, batches of "
        f"{given.batch}, fastest of {given.rounds}"
    )
    seconds = {
        "bare transformers loop": min(bare_seconds),
        "scorer": min(scorer_seconds),
        "scorer, from the store": min(store_seconds),
    }
    for way, best in seconds.items():
        print(
            f"{way:24} {best:8.2f} s {len(samples) / best:8.1f} images/s   "
            f"{best / min(bare_seconds):.2f} x the bare loop"
        )
    apart = np.abs(np.subtract(expected, values)).max()
    print(f"largest difference of a value: {apart:.1e}")


if __name__ == "__main__":
    main()
