"""The steps of a part of `vieval_small`: the same for the same seed, however often they were interrupted.

What a step sees follows from the seed and its number alone, and the state after it is kept on disk every so many steps.
One thread does all arithmetic, since sums in another order have other last digits.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from bench.vieval_small.losses import FACTS, loss_of, placed
from bench.vieval_small.network import PARTS
from bench.vieval_small.pieces import CONTENT, CROP, LOOKS, QUALITY, Piece, path
from vieval_plugin.backends.metrics.networks.vieval_small import LENGTH, mirrored, numbered
from vieval_plugin.benchmarks.vieval_demo.drawing import HUES

KEPT = 50
"""Steps after which the state is written to disk."""
RARE = 9
"""How often a word may come and be unknown all the same, as are the names of strange places."""
SEEN = 128
"""Pixels of a side of what a step sees of a crop that quality is learnt from: many small steps learn more than few large ones."""


@dataclass(frozen=True)
class Plan:
    """How a part is trained: steps of each cycle of the learning rate, samples of each kind in a step, the highest
    learning rate, and the seed."""

    cycles: tuple[int, ...]
    batch: int = 24
    rate: float = 2e-3
    seed: int = 0

    @property
    def steps(self) -> int:
        return sum(self.cycles)

    @property
    def often(self) -> int:
        """Steps between two points of the learning curve, of which there are about twenty."""
        return KEPT * max(1, round(self.steps / KEPT / 20))

    def rate_of(self, step: int) -> float:
        """Up over the first twentieth of a cycle, then down to nothing along a cosine."""
        cycle = 0
        while step >= self.cycles[cycle]:
            step, cycle = step - self.cycles[cycle], cycle + 1
        done = step / self.cycles[cycle]
        height = min(1.0, done / 0.05 + 0.02) * 0.5 * (1 + np.cos(np.pi * done))
        return float(self.rate * height)


@dataclass(frozen=True)
class Drawings:
    """Pieces of one kind as one: arrays by name, words as numbers."""

    arrays: Mapping[str, Any]
    words: Any
    mirrored: Any

    def __len__(self) -> int:
        return len(self.words)


def build(part: str, vocabulary: int) -> nn.Module:
    """A part with random weights of the current seed."""
    return PARTS[part][0](vocabulary, defects_of(part), FACTS[part])


def defects_of(part: str) -> int:
    """How many kinds of defects a part tells apart."""
    return len(QUALITY) if part == "quality" else len(CONTENT)


def loaded(folder: Path, part: str, numbers: Sequence[int]) -> dict[str, list[Piece]]:
    """The pieces of a part's kinds: what it needs of them."""
    names = ("full", "pq", "spoilt", "words") if part == "quality" else _CONSISTENCY
    found: dict[str, list[Piece]] = {}
    for kind in PARTS[part][1]:
        for number in numbers:
            with np.load(path(folder, kind, number)) as held:
                found.setdefault(kind, []).append({name: held[name] for name in names})
    return found


_CONSISTENCY = ("condition", "words", "asked", "output", "sc", "shown", "things", "wrong")


def vocabulary(pieces: Mapping[str, Sequence[Piece]]) -> dict[str, int]:
    """The words that are not `RARE` in the drawings with their numbers, from 2 on: 0 is none and 1 an unknown word."""
    told = (word for several in pieces.values() for one in several for text in one["words"] for word in text.split())
    words = sorted(word for word, times in Counter(told).items() if times > RARE)
    return {word: number for number, word in enumerate(words, start=2)}


def joined(several: Sequence[Piece], known: Mapping[str, int]) -> Drawings:
    """Pieces of one kind as one."""
    arrays = {name: np.concatenate([one[name] for one in several]) for name in several[0]}
    texts = [text.split() for text in arrays.pop("words")]
    both = texts, [mirrored(text) for text in texts]
    as_numbers = [np.array([numbered(text, known) for text in one]).reshape(-1, LENGTH) for one in both]
    return Drawings(arrays, *as_numbers)


def train(
    part: str, pieces: Mapping[str, Sequence[Piece]], held_back: Mapping[str, Sequence[Piece]], plan: Plan, folder: Path
) -> Path:
    """All steps of a part that are not done yet.

    Args:
        part: one of `PARTS`.
        pieces: what is trained on, by kind, and `held_back` what the learning curve is of.
        folder: where the state after the last steps is found and kept.

    Returns:
        The file with the weights, the words and the learning curve.
    """
    torch.set_num_threads(1)
    known = vocabulary(pieces)
    drawings = {kind: joined(several, known) for kind, several in pieces.items()}
    checked = {kind: joined(several, known) for kind, several in held_back.items()}
    torch.manual_seed(plan.seed)
    network = build(part, len(known) + 2).to(memory_format=torch.channels_last)
    optimiser = torch.optim.AdamW(network.parameters(), plan.rate, weight_decay=0.02)
    kept, curve, first = folder / f"{part}.pt", [], 0
    if kept.exists():
        state = torch.load(kept, weights_only=True)
        network.load_state_dict(state["network"])
        optimiser.load_state_dict(state["optimiser"])
        curve, first = json.loads(state["curve"]), state["step"]
    bar = tqdm(range(first, plan.steps), initial=first, total=plan.steps, desc=part, unit=" steps", mininterval=10)
    for step in bar:
        loss = _step(part, network, optimiser, drawings, plan, step)
        if (step + 1) % KEPT == 0 or step + 1 == plan.steps:
            if (step + 1) % plan.often == 0 or step + 1 == plan.steps:
                curve.append({"step": step + 1, "loss": round(loss, 4), **agreement(part, network, checked)})
                bar.set_postfix(curve[-1])
            state = {"network": network.state_dict(), "optimiser": optimiser.state_dict(), "step": step + 1}
            written = kept.with_suffix(".part")
            torch.save({**state, "curve": json.dumps(curve), "words": json.dumps(list(known))}, written)
            written.replace(kept)
    return kept


def _step(
    part: str, network: nn.Module, optimiser: Any, drawings: Mapping[str, Drawings], plan: Plan, step: int
) -> float:
    rng = np.random.RandomState([plan.seed, zlib.crc32(part.encode()) % 2**16, step])
    for group in optimiser.param_groups:
        group["lr"] = plan.rate_of(step)
    network.train()
    optimiser.zero_grad()
    given, truth = _batch(part, drawings, plan.batch, rng)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        told = network(given)
    losses = [
        loss_of(part, {name: numbers.float() for name, numbers in told[kind].items()}, truth[kind]) for kind in given
    ]
    loss = torch.stack(losses).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(network.parameters(), 4.0)
    optimiser.step()
    return loss.item()


def _batch(
    part: str, drawings: Mapping[str, Drawings], size: int, rng: np.random.RandomState
) -> tuple[dict[str, dict[str, Tensor]], dict[str, dict[str, Tensor]]]:
    """So many samples of each kind of a part, and their truth."""
    if part == "quality":
        pictures, score = _of_quality(drawings, size, rng)
        return {"": pictures}, {"": score}
    found = {kind: samples_of(kind, held, rng.permutation(len(held))[:size], rng) for kind, held in drawings.items()}
    return {kind: one for kind, (one, _) in found.items()}, {kind: truth for kind, (_, truth) in found.items()}


def _of_quality(
    drawings: Mapping[str, Drawings], size: int, rng: np.random.RandomState
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    kinds = list(drawings)
    chosen = [(kinds[rng.randint(len(kinds))], rng.random_sample()) for _ in range(size)]
    rows = [
        (drawings[kind].arrays, int(share * len(drawings[kind])), rng.randint(drawings[kind].arrays["full"].shape[1]))
        for kind, share in chosen
    ]
    top, left = rng.randint(0, CROP - SEEN + 1, 2)
    within = slice(top, top + SEEN), slice(left, left + SEEN)
    pictures = np.stack([arrays["full"][row][crop][within] for arrays, row, crop in rows])
    if rng.random_sample() < 0.5:
        pictures = pictures[:, :, ::-1]
    if rng.random_sample() < 0.5:
        pictures = pictures[:, ::-1]
    pictures = pictures[..., rng.permutation(3)]
    score = torch.tensor([arrays["pq"][row][crop] for arrays, row, crop in rows]).float()
    wrong = _wrong([int(arrays["spoilt"][row][crop]) for arrays, row, crop in rows], 1 - score, len(QUALITY))
    return {"full": _shown(pictures)}, {"score": score, "wrong": wrong, "own": torch.ones(size)}


def samples_of(
    kind: str, held: Drawings, cases: Any, rng: np.random.RandomState
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Samples of a kind, one an instruction, a sixth of them with words or conditions that are another's or gone."""
    size, arrays = len(cases), held.arrays
    which = rng.randint(arrays["output"].shape[1], size=size)
    output, condition = arrays["output"][cases, which], arrays["condition"][cases]
    words, things = held.words[cases], arrays["things"][cases, which]
    if rng.random_sample() < 0.5:
        output, condition, words = output[:, :, ::-1], condition[:, :, ::-1], held.mirrored[cases]
        things = np.concatenate([1 - things[..., :1], things[..., 1:]], -1)
    score = arrays["sc"][cases, which].astype(np.float32)
    turn, own, following = rng.random_sample(size), np.ones(size, np.float32), np.roll(np.arange(size), 1)
    reads, looks = kind != "cig", condition.shape[-1] > 0
    other_words, no_words = reads & (turn < 0.07), reads & (turn > 0.07) & (turn < 0.1)
    other_condition = looks & (turn > 0.1) & (turn < 0.16)
    other_words &= (words != words[following]).any(1)
    words, condition = words.copy(), condition.copy()
    words[other_words], condition[other_condition] = (
        words[following][other_words],
        condition[following][other_condition],
    )
    words[no_words] = 0
    words[(rng.random_sample(words.shape) < 0.02) & (words > 0)] = 1
    strange = other_words | no_words | other_condition
    score[strange], own[strange] = 0, 0
    hued = kind in ("tig", "mie", "tie")
    facts = slice(0, len(HUES)) if hued else slice(len(HUES), len(HUES) + LOOKS * (1 + (kind == "mcic")))
    asked, shown = arrays["asked"][cases][:, facts], arrays["shown"][cases, which][:, facts]
    if kind == "cig":  # where nothing names or shows colours to keep, any colours will do
        output = output[..., rng.permutation(3)]
    given = {"output": _shown(output), "condition": _shown(condition), "words": torch.from_numpy(words)}
    strength = torch.from_numpy(1 - arrays["sc"][cases, which]).float()
    truth = {
        "score": torch.from_numpy(score),
        "wrong": _wrong(arrays["wrong"][cases, which], strength, len(CONTENT)),
        "asked": torch.from_numpy(asked),
        "shown": torch.from_numpy(shown),
        "own": torch.from_numpy(own),
    }
    if hued:
        truth["places"] = torch.from_numpy(placed(things))
    return given, truth


def _wrong(which: Any, strength: Tensor, kinds: int) -> Tensor:
    return F.one_hot(torch.as_tensor(which).long(), kinds) * strength[:, None]


def _shown(pictures: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(pictures)).permute(0, 3, 1, 2).float().div(255)


def agreement(part: str, network: nn.Module, drawings: Mapping[str, Drawings]) -> dict[str, float]:
    """Spearman's correlation of a part's scores with the truth, by kind."""
    network.eval()
    found = {}
    for kind, held in drawings.items():
        name = "" if part == "quality" else kind
        scores = []
        for first in range(0, len(held), 12):
            rows = slice(first, first + 12)
            with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
                scores.append(network({name: _checked(part, held, rows)})[name]["score"].float().numpy())
        truths = held.arrays["pq" if part == "quality" else "sc"].ravel()
        found[kind] = round(float(spearmanr(np.concatenate(scores), truths).statistic), 3)
    return found


def _checked(part: str, held: Drawings, rows: slice) -> dict[str, Tensor]:
    arrays = held.arrays
    if part == "quality":
        return {"full": _shown(arrays["full"][rows].reshape(-1, *arrays["full"].shape[2:]))}
    each, output = arrays["output"].shape[1], arrays["output"][rows]
    return {
        "output": _shown(output.reshape(-1, *output.shape[2:])),
        "condition": _shown(np.repeat(arrays["condition"][rows], each, 0)),
        "words": torch.from_numpy(np.repeat(held.words[rows], each, 0)),
    }
