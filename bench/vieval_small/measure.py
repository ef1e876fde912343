"""What `vieval_small` reaches: agreement on both drawn sets, what changed inputs do, the best of four, and what it costs.

    python -m bench.vieval_small.measure

Prints tables in Markdown; `docs/guides/small_judges.md` has their figures.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from bench.vieval_small import unseen
from bench.vieval_small.synthetic.samples import several
from bench.vieval_small.synthetic.worlds import HELD_OUT
from bench.vieval_small.world import TRAINED
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.benchmarks.vieval_demo import TASKS
from vieval_plugin.benchmarks.vieval_demo.outputs import png
from vieval_plugin.config import Config
from vieval_plugin.judges.protocol import Sample, SampleId, Verdict
from vieval_plugin.run.evaluate import judge_samples
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.progress import Progress

SEED = 15_000
"""Of the candidates, which no training saw."""
PROMPTS = 40
"""Of each kind that four candidates are drawn for."""


def judged(samples: Sequence[Sample]) -> list[Verdict]:
    options = Config()
    judge = prepare("vieval_small", None, options)
    return asyncio.run(judge_samples(samples, judge, options, None, Progress(), bar=False))


def scores(samples: Sequence[Sample]) -> dict[str, np.ndarray]:
    verdicts = judged(samples)
    return {aspect: np.array([one.scores.get(aspect, np.nan) for one in verdicts]) for aspect in ("SC", "PQ", "O")}


def agreement() -> None:
    for name, load in (("unseen", unseen.load), ("vieval_demo", lambda part: vieval_demo.load(Path(), part))):
        found: dict[str, list[float]] = {"SC": [], "PQ": []}
        begun, spent, number = time.perf_counter(), time.process_time(), 0
        for part in TASKS:
            samples = load(part)
            verdicts, number = judged(samples), number + len(samples)
            for aspect, values in found.items():
                given = [sample.ratings[aspect][0] for sample in samples]
                values.append(float(spearmanr([v.scores[aspect] for v in verdicts], given).statistic))
        print(f"\n{name}, {number} samples, drawn and judged in {time.perf_counter() - begun:.1f} s", end=" ")
        print(f"({time.process_time() - spent:.1f} s of processor)\n")
        print(f"| | {' | '.join(TASKS)} | mean |\n|{'---|' * (len(TASKS) + 2)}")
        for aspect, values in found.items():
            print(f"| {aspect} | {' | '.join(f'{value:.3f}' for value in values)} | {np.mean(values):.3f} |")


def unseen_defects() -> None:
    """Agreement of PQ with the strength of each defect of the unseen set, and what PSNR reaches given the clean picture."""
    by_defect: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    of_psnr: list[float] = []
    for part in TASKS:
        samples = unseen.load(part)
        number = len(samples) // unseen.INSTRUCTIONS
        drawn = several(HELD_OUT, part, unseen.seed_of(part), unseen.INSTRUCTIONS, number)
        outputs = [output for _, several_outputs in drawn for output in several_outputs]
        for output, score in zip(outputs, scores(samples)["PQ"], strict=True):
            by_defect[output.quality].append((score, -output.quality_strength))
        pictures = [(np.asarray(one.picture, float), np.asarray(one.drawn.picture, float)) for one in outputs]
        errors = [-float(np.mean((picture - clean) ** 2)) for picture, clean in pictures]
        of_psnr.append(float(spearmanr(errors, [sample.ratings["PQ"][0] for sample in samples]).statistic))
    print("\n| defect never trained on | PQ |\n|---|---|")
    for defect, pairs in by_defect.items():
        print(f"| {defect} | {spearmanr(*zip(*pairs, strict=True)).statistic:.3f} |")
    print(f"\nPSNR to the clean picture, mean over kinds: {np.mean(of_psnr):.3f}")


def changed() -> None:
    """Mean scores of demo samples as they are and with an input that is another's, or gone."""
    print("\n| kind | changed | SC | SC then | PQ moves by at most |\n|---|---|---|---|---|")
    for part in TASKS:
        samples = vieval_demo.load(Path(), part)
        before = scores(samples)
        far = samples[15:] + samples[:15]  # five instructions on, where things and animals are others
        text = {"tig": "prompt", "mie": "instruction", "tie": "instruction", "sdie": "subject"}.get(part, "prompt")
        ways = {"no prompt": [replace(one, texts={**one.texts, text: ""}) for one in samples]}
        pairs = list(zip(samples, far, strict=True))
        ways["prompt of another"] = [replace(a, texts={**a.texts, text: b.texts[text]}) for a, b in pairs]
        for role in set(samples[0].images) - {"output", "concepts", "mask"}:
            ways[f"{role} of another"] = [replace(a, images={**a.images, role: b.images[role]}) for a, b in pairs]
        for way, some in ways.items():
            after = scores(some)
            if np.isnan(after["SC"]).all():
                print(f"| {part} | {way} | {before['SC'].mean():.3f} | not judged | |")
                continue
            moved = float(np.abs(after["PQ"] - before["PQ"]).max())
            print(f"| {part} | {way} | {before['SC'].mean():.3f} | {after['SC'].mean():.3f} | {moved:.4f} |")


def best_of_four() -> None:
    """What is gained by the truth where the best of four candidates is chosen by it, against one at random."""
    gains: list[float] = []
    for part in TASKS:
        samples, truths = [], []
        for number, (asked, outputs) in enumerate(several(TRAINED, part, SEED, PROMPTS, 4)):
            given = {role: png(picture) for role, picture in asked.conditions.items()}
            for n, one in enumerate(outputs):
                identity = SampleId("vieval_demo", part, f"candidate {n}", str(number))
                samples.append(Sample(identity, {**given, "output": png(one.picture)}, asked.texts, kind=part))
                truths.append(math.sqrt((1 - one.content_strength) * (1 - one.quality_strength)))
        truth = np.reshape(truths, (-1, 4))
        best = np.reshape(scores(samples)["O"], (-1, 4)).argmax(1)
        gains += list(truth[np.arange(len(truth)), best] - truth.mean(1))
    drawn = np.random.default_rng(0).choice(gains, (10_000, len(gains))).mean(1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    print(
        f"\nbest of four, {len(gains)} prompts, seed {SEED}: O higher by {np.mean(gains):.3f} [{low:.3f}, {high:.3f}]"
    )


def loading() -> None:
    from vieval_plugin.backends.metrics.networks.vieval_small import load
    from vieval_plugin.backends.weights import Origin

    begun = time.perf_counter()
    load(Origin(""))
    print(f"loading: {time.perf_counter() - begun:.2f} s")


if __name__ == "__main__":
    loading()
    agreement()
    unseen_defects()
    changed()
    best_of_four()
