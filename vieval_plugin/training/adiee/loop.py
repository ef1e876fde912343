"""The training itself: steps, checkpoints, what held-out edits say on the way."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from vieval_plugin.backends.weights import library
from vieval_plugin.errors import VievalError
from vieval_plugin.prompts import packs
from vieval_plugin.training.adiee.conversations import Batch, Conversations
from vieval_plugin.training.adiee.held_out import HeldOutAgreement, agreement, values
from vieval_plugin.training.adiee.labels import LabelledEdit
from vieval_plugin.training.adiee.network import Trained, load
from vieval_plugin.training.adiee.recipe import SCORE_WEIGHT, Recipe, order, rate
from vieval_plugin.training.tuning import Tuning, enough_memory

CHECKPOINT = "checkpoint.pt"
_LOOKS = 20  # so many times in a training it is measured and kept
_MEASURED = 200  # held-out edits at most, on the way
_LONGEST_STEP = 1.0  # of the gradient


@dataclass(frozen=True)
class Curve:
    """What was measured after a step: losses averaged since the last, and the agreement with held-out labels."""

    step: int
    text: float
    score: float
    held_out: HeldOutAgreement | None


@dataclass
class _State:
    """What goes on from step to step, and what a checkpoint keeps."""

    trained: Trained
    module: Any
    optimizer: Any
    accelerator: Any
    curves: list[Curve]
    step: int = 0


def train(
    recipe: Recipe, learnt: Sequence[LabelledEdit], held_out: Sequence[LabelledEdit], out: Path
) -> tuple[Trained, Conversations, list[Curve]]:
    """Train, from the checkpoint in the folder `out` where there is one; the trained model and its curves.

    Args:
        recipe: how; a checkpoint made otherwise is an error.
        learnt: edits to learn from.
        held_out: edits that it is measured on, none of whose scenes are among the others.
        out: where checkpoints go.

    Raises:
        VievalError: the base cannot be trained, a checkpoint is of another training, or memory runs out.
    """
    torch, accelerate, tuning = library("torch"), library("accelerate"), recipe.tuning
    on_gpu = torch.cuda.is_available()
    accelerator = accelerate.Accelerator(mixed_precision="bf16" if on_gpu else "no")
    torch.manual_seed(tuning.seed)
    half = on_gpu and tuning.tune == "lora"  # what is frozen needs no more
    wording = packs.load(recipe.pack)
    if wording.judge != "adiee":
        raise VievalError(f"--pack {recipe.pack} is for {wording.judge}; give one for adiee (vieval prompts list)")
    trained = load(tuning.base, tuning.tune, recipe.answer == "token", "bfloat16" if half else "float32")
    conversations = Conversations(trained.processor, wording, recipe.images, recipe.answer == "token")
    weights = [weight for weight in trained.module.parameters() if weight.requires_grad]
    for weight in weights:
        weight.data = weight.data.float()
    optimizer = torch.optim.AdamW(weights, lr=tuning.learning_rate, weight_decay=0.01)
    module, optimizer = accelerator.prepare(trained.module, optimizer)
    state = _State(trained, module, optimizer, accelerator, [])
    _resume(state, recipe, out / CHECKPOINT)
    with enough_memory(tuning, "edits"):
        _run(state, recipe, conversations, learnt, held_out[:_MEASURED], out)
    return trained, conversations, state.curves


def _run(
    state: _State,
    recipe: Recipe,
    conversations: Conversations,
    learnt: Sequence[LabelledEdit],
    held_out: Sequence[LabelledEdit],
    out: Path,
) -> None:
    tuning = recipe.tuning
    every, first = max(1, tuning.steps // _LOOKS), state.step
    seen = tuning.batch_size * tuning.accumulate * state.accelerator.num_processes
    main = state.accelerator.is_main_process
    losses: list[tuple[float, float]] = []
    prepare = partial(_batches, state.accelerator, recipe, conversations, learnt)
    bar = tqdm(total=tuning.steps * seen, initial=first * seen, desc="Training", unit="edit", disable=None)
    # the next step's images are read while this one is made
    with bar, ThreadPoolExecutor(1, thread_name_prefix="prepare") as pool:
        ready = pool.submit(prepare, first)
        while state.step < tuning.steps:
            batches = ready.result()
            if state.step + 1 < tuning.steps:
                ready = pool.submit(prepare, state.step + 1)
            losses.append(_step(state, tuning, batches))
            state.step += 1
            bar.update(seen)
            if state.step % every and state.step < tuning.steps:
                continue
            text, score = (sum(column) / len(losses) for column in zip(*losses, strict=True))
            losses = []
            if main:
                found = _measured(state.trained, conversations, held_out, tuning.batch_size)
                state.curves.append(Curve(state.step, text, score, found))
                told = f"{found.spearman:.3f}" if found else "-"
                bar.set_postfix_str(f"text {text:.3f} score {score:.3f} held-out rho {told}")
                _keep(state, recipe, out / CHECKPOINT)
            state.accelerator.wait_for_everyone()


def _batches(
    accelerator: Any, recipe: Recipe, conversations: Conversations, learnt: Sequence[LabelledEdit], step: int
) -> list[tuple[int, Batch]]:
    """What this process sees at a step, each batch with the seed of its dropout."""
    found, tuning = [], recipe.tuning
    for part in range(tuning.accumulate):
        turn = (step * tuning.accumulate + part) * accelerator.num_processes + accelerator.process_index
        begin = turn * tuning.batch_size
        edits = [learnt[n] for n in order(len(learnt), begin, begin + tuning.batch_size, tuning.seed)]
        rng = random.Random(f"{tuning.seed}/{turn}")
        found.append((rng.getrandbits(32), conversations.batch(edits, [conversations.drawn(rng) for _ in edits])))
    return found


def _step(state: _State, tuning: Tuning, batches: Sequence[tuple[int, Batch]]) -> tuple[float, float]:
    """One optimisation step; the text's cross-entropy and the score's L1."""
    torch, accelerator = library("torch"), state.accelerator
    state.module.train()
    for group in state.optimizer.param_groups:
        group["lr"] = rate(tuning, state.step)
    texts = scores = 0.0
    for part, (seed, prepared) in enumerate(batches, start=1):
        batch = prepared.to(accelerator.device)
        torch.manual_seed(seed)
        with contextlib.nullcontext() if part == len(batches) else accelerator.no_sync(state.module):
            value, text = state.module(batch.inputs, batch.at, batch.wanted)
            score = (value - batch.labels).abs().mean() if value is not None else torch.zeros(())
            accelerator.backward((text + SCORE_WEIGHT * score) / tuning.accumulate)
        texts, scores = texts + text.item() / tuning.accumulate, scores + score.item() / tuning.accumulate
    accelerator.clip_grad_norm_(state.module.parameters(), _LONGEST_STEP)
    state.optimizer.step()
    state.optimizer.zero_grad()
    return texts, scores


def _measured(
    trained: Trained, conversations: Conversations, edits: Sequence[LabelledEdit], batch_size: int
) -> HeldOutAgreement | None:
    if trained.head is None or not edits:
        return None
    return agreement(values(trained, conversations, edits, conversations.questions[0], batch_size), edits)


def _keep(state: _State, recipe: Recipe, file: Path) -> None:
    """Write a checkpoint; the one before stays until this one is whole."""
    torch = library("torch")
    module = state.trained.module
    kept = {
        "recipe": recipe.options(),
        "step": state.step,
        "weights": {name: weight.data for name, weight in module.named_parameters() if weight.requires_grad},
        "optimizer": state.optimizer.state_dict(),
        "curves": [asdict(curve) for curve in state.curves],
    }
    unfinished = file.with_suffix(".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(kept, unfinished)
        os.replace(unfinished, file)
    except (OSError, RuntimeError) as error:
        unfinished.unlink(missing_ok=True)
        raise VievalError(f"{file}: cannot be written ({error}); make room or choose another --out") from None


def _resume(state: _State, recipe: Recipe, file: Path) -> None:
    if not file.is_file():
        return
    try:
        kept = library("torch").load(file, map_location="cpu", weights_only=True)
        other = [name for name, value in recipe.options().items() if kept["recipe"].get(name) != value]
    except Exception as error:
        raise VievalError(f"{file}: no checkpoint that can be gone on from ({error}); remove it") from None
    if other:
        raise VievalError(
            f"{file} is of a training with another {other[0]} ({kept['recipe'].get(other[0])}); give that, or another --out"
        )
    own = dict(state.trained.module.named_parameters())
    with library("torch").no_grad():
        for name, weight in kept["weights"].items():
            own[name].copy_(weight)
    state.optimizer.load_state_dict(kept["optimizer"])
    state.step = kept["step"]
    state.curves = [
        Curve(one["step"], one["text"], one["score"], HeldOutAgreement(**one["held_out"]) if one["held_out"] else None)
        for one in kept["curves"]
    ]
