"""Training of ADIEE: recipe, steps, checkpoints, and measurements on held-out edits.

A step depends only on its number and the seed, so that an interrupted training resumes
without a difference.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from tqdm import tqdm

from vieval_plugin.backends.weights import library
from vieval_plugin.judges.adiee.question import Images
from vieval_plugin.prompts import packs
from vieval_plugin.text.errors import VievalError, system_reason
from vieval_plugin.training.adiee.conversations import Batch, Conversations
from vieval_plugin.training.adiee.held_out import HeldOutAgreement, agreement, values
from vieval_plugin.training.adiee.labels import Edits
from vieval_plugin.training.adiee.network import Trained, load
from vieval_plugin.training.tuning import Tuning, enough_memory, require_same_options

Answer: TypeAlias = Literal["token", "number"]
#: What the score's L1 counts against the text's cross-entropy; the paper's.
SCORE_WEIGHT = 10.0


@dataclass(frozen=True)
class Recipe:
    """Recipe for training a scorer of edits."""

    #: Options of any training.
    tuning: Tuning
    #: With `number`, the model has neither token nor head and learns to answer 0 to 10, as in
    #: the paper's ablation.
    answer: Answer = "token"
    #: Source and output as two images, or joined into one.
    images: Images = "two"

    #: Prompt pack of questions and answers.
    pack: ClassVar[str] = "adiee/v1"

    def options(self) -> dict[str, Any]:
        """Options of the recipe, by name."""
        return {
            **asdict(self.tuning),
            "answer": self.answer,
            "images": self.images,
            "pack": self.pack,
        }


def learning_rate(tuning: Tuning, step: int) -> float:
    """Learning rate at a step, counted from 0: it rises over the first 3% of the steps,
    then falls linearly.

    >>> [round(learning_rate(Tuning("", steps=100, learning_rate=1.0), step), 2) for step in (0, 2, 50, 99)]
    [0.33, 1.0, 0.51, 0.01]
    """
    rising = max(1, math.ceil(0.03 * tuning.steps))
    rise = (step + 1) / rising
    fall = (tuning.steps - step) / (tuning.steps - rising + 1)
    return tuning.learning_rate * min(rise, fall)


def order(
    count: int,
    begin: int,
    end: int,
    seed: int,
) -> list[int]:
    """Return positions `begin` to `end` of an endless sequence of numbers below
    `count`, in which each number occurs once per epoch.

    >>> sorted(order(3, 3, 6, seed=1))
    [0, 1, 2]
    """
    numbers = []
    for position in range(begin, end):
        epoch, index = divmod(position, count)
        numbers.append(_shuffled(count, f"epoch/{seed}/{epoch}")[index])
    return numbers


@lru_cache(maxsize=1)  # an epoch comes but once
def _shuffled(count: int, name: str) -> list[int]:
    return random.Random(name).sample(range(count), count)


CHECKPOINT = "checkpoint.pt"
_EVALUATION_COUNT = 20  # evaluations and checkpoints per training
_MEASURED = 200  # held-out edits at most, on the way
_LONGEST_STEP = 1.0  # of the gradient


@dataclass(frozen=True)
class Curve:
    """An evaluation during training."""

    #: Number of steps so far.
    step: int
    #: Loss of the text, averaged since the last evaluation.
    text: float
    #: Loss of the score, averaged likewise.
    score: float
    #: Agreement with held-out labels, None without any.
    held_out: HeldOutAgreement | None


@dataclass
class _State:
    """State of a training, as stored in a checkpoint."""

    #: The model.
    trained: Trained
    #: The model as accelerate runs it.
    module: Any
    #: The optimizer as accelerate runs it.
    optimizer: Any
    #: Processes and devices.
    accelerator: Any
    #: Evaluations so far.
    curves: list[Curve]
    #: Number of steps so far.
    step: int = 0


def train(
    recipe: Recipe,
    learnt: Edits,
    held_out: Edits,
    folder: Path,
) -> tuple[Trained, Conversations, list[Curve]]:
    """Train, resuming from the checkpoint in `folder` if there is one; return the
    trained model and its curves.

    Args:
        recipe: training recipe; a checkpoint with another recipe is an error.
        learnt: edits to train on.
        held_out: edits to measure on, from other scenes.
        folder: of the checkpoints.

    Raises:
        VievalError: the base cannot be trained, a checkpoint belongs to another training, or
            memory runs out.
    """
    torch = library("torch")
    accelerate = library("accelerate")
    tuning = recipe.tuning
    on_gpu = torch.cuda.is_available()
    accelerator = accelerate.Accelerator(mixed_precision="bf16" if on_gpu else "no")
    torch.manual_seed(tuning.seed)
    half = on_gpu and tuning.tune == "lora"  # what is frozen needs no more
    wording = packs.load(recipe.pack)
    with_token = recipe.answer == "token"
    dtype = "bfloat16" if half else "float32"
    trained = load(tuning.base, tuning.tune, with_token, dtype)
    conversations = Conversations(
        trained.processor,
        wording,
        recipe.images,
        with_token,
    )
    weights = [weight for weight in trained.module.parameters() if weight.requires_grad]
    for weight in weights:
        weight.data = weight.data.float()
    optimizer = torch.optim.AdamW(
        weights,
        lr=tuning.learning_rate,
        weight_decay=0.01,
    )
    module, optimizer = accelerator.prepare(trained.module, optimizer)
    state = _State(trained, module, optimizer, accelerator, [])
    _resume(state, recipe, folder / CHECKPOINT)
    measured = held_out[:_MEASURED]
    with enough_memory(tuning, "edits"):
        _run(state, recipe, conversations, learnt, measured, folder)
    return trained, conversations, state.curves


def _run(
    state: _State,
    recipe: Recipe,
    conversations: Conversations,
    learnt: Edits,
    held_out: Edits,
    folder: Path,
) -> None:
    tuning = recipe.tuning
    interval = max(1, tuning.steps // _EVALUATION_COUNT)
    first = state.step
    per_step = tuning.batch_size * tuning.accumulate * state.accelerator.num_processes
    losses = []
    prepare = partial(_batches, state.accelerator, recipe, conversations, learnt)
    bar = tqdm(
        total=tuning.steps * per_step,
        initial=first * per_step,
        desc="Training",
        unit="edit",
        disable=None,
    )
    # the next step's images are read while this one is made
    with bar, ThreadPoolExecutor(1, thread_name_prefix="prepare") as pool:
        next_batches = pool.submit(prepare, first)
        while state.step < tuning.steps:
            batches = next_batches.result()
            if state.step + 1 < tuning.steps:
                next_batches = pool.submit(prepare, state.step + 1)
            losses.append(_step(state, tuning, batches))
            state.step += 1
            bar.update(per_step)
            if state.step % interval and state.step < tuning.steps:
                continue
            text, score = (
                sum(column) / len(losses) for column in zip(*losses, strict=True)
            )
            losses = []
            if state.accelerator.is_main_process:
                agreement_now = None
                if state.trained.head is not None and held_out:
                    numbers = values(
                        state.trained,
                        conversations,
                        held_out,
                        conversations.questions[0],
                        tuning.batch_size,
                    )
                    agreement_now = agreement(numbers, held_out)
                state.curves.append(Curve(state.step, text, score, agreement_now))
                correlation = f"{agreement_now.spearman:.3f}" if agreement_now else "-"
                bar.set_postfix_str(
                    f"text {text:.3f} score {score:.3f} held-out rho {correlation}"
                )
                _write_checkpoint(state, recipe, folder / CHECKPOINT)
            state.accelerator.wait_for_everyone()


def _batches(
    accelerator: Any,
    recipe: Recipe,
    conversations: Conversations,
    learnt: Edits,
    step: int,
) -> list[tuple[int, Batch]]:
    """Build the batches of this process at a step, each with the seed of its dropout."""
    parts = []
    tuning = recipe.tuning
    for part in range(tuning.accumulate):
        number = step * tuning.accumulate + part
        turn = number * accelerator.num_processes + accelerator.process_index
        begin = turn * tuning.batch_size
        end = begin + tuning.batch_size
        edits = [learnt[n] for n in order(len(learnt), begin, end, tuning.seed)]
        rng = random.Random(f"{tuning.seed}/{turn}")
        dropout_seed = rng.getrandbits(32)
        forms = [conversations.random_form(rng) for _ in edits]
        parts.append((dropout_seed, conversations.batch(edits, forms)))
    return parts


def _step(
    state: _State, tuning: Tuning, batches: Sequence[tuple[int, Batch]]
) -> tuple[float, float]:
    """Take an optimisation step; return the text's cross-entropy and the score's L1."""
    torch = library("torch")
    accelerator = state.accelerator
    state.module.train()
    for group in state.optimizer.param_groups:
        group["lr"] = learning_rate(tuning, state.step)
    texts = scores = 0.0
    for part, (seed, prepared) in enumerate(batches, start=1):
        batch = prepared.to(accelerator.device)
        torch.manual_seed(seed)
        is_last = part == len(batches)
        with contextlib.nullcontext() if is_last else accelerator.no_sync(state.module):
            value, text = state.module(batch.inputs, batch.at, batch.targets)
            score = torch.zeros(())
            if value is not None:
                score = (value - batch.labels).abs().mean()
            accelerator.backward((text + SCORE_WEIGHT * score) / tuning.accumulate)
        texts += text.item() / tuning.accumulate
        scores += score.item() / tuning.accumulate
    accelerator.clip_grad_norm_(state.module.parameters(), _LONGEST_STEP)
    state.optimizer.step()
    state.optimizer.zero_grad()
    return texts, scores


def _write_checkpoint(state: _State, recipe: Recipe, file: Path) -> None:
    """Write a checkpoint; the previous one is kept until this one is complete."""
    parameters = state.trained.module.named_parameters()
    weights = {name: weight.data for name, weight in parameters if weight.requires_grad}
    checkpoint = {
        "recipe": recipe.options(),
        "step": state.step,
        "weights": weights,
        "optimizer": state.optimizer.state_dict(),
        "curves": [asdict(curve) for curve in state.curves],
    }
    unfinished = file.with_suffix(".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        library("torch").save(checkpoint, unfinished)
        os.replace(unfinished, file)
    except (OSError, RuntimeError) as error:
        unfinished.unlink(missing_ok=True)
        raise VievalError(
            f"cannot write {file}: {system_reason(error)}; free disk space or choose another "
            "--out"
        ) from None


def _resume(state: _State, recipe: Recipe, file: Path) -> None:
    if not file.is_file():
        return
    try:
        checkpoint = library("torch").load(
            file,
            map_location="cpu",
            weights_only=True,
        )
        earlier = dict(checkpoint["recipe"])
    except Exception as error:
        raise VievalError(
            f"{file}: cannot resume from this checkpoint ({system_reason(error)}); remove it"
        ) from None
    require_same_options(file, earlier, recipe.options())
    parameters = dict(state.trained.module.named_parameters())
    with library("torch").no_grad():
        for name, weight in checkpoint["weights"].items():
            parameters[name].copy_(weight)
    state.optimizer.load_state_dict(checkpoint["optimizer"])
    state.step = checkpoint["step"]
    for curve in checkpoint["curves"]:
        held_out = curve["held_out"] and HeldOutAgreement(**curve["held_out"])
        state.curves.append(Curve(**{**curve, "held_out": held_out}))
