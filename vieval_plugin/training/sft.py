"""Supervised fine-tuning of a backbone on a judge's conversations, with TRL and peft."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vieval_plugin.backends.weights import library
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.media.files import write_whole
from vieval_plugin.text.errors import VievalError, line_of, unwritable
from vieval_plugin.text.yaml_json import read_json
from vieval_plugin.training.chat_format import LearntTurn
from vieval_plugin.training.tuning import (
    Tuning,
    enough_memory,
    load_base,
    require_same_options,
    write_training_record,
)

_CHECKPOINTS = "checkpoints"
_OPTIONS = "options.json"
_UNWRITABLE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
)
_EVALUATION_COUNT = 10  # so many times in a training it is measured and kept
# of the language model alone, whatever its image tower calls its layers
_TUNED = r"^(?!.*(?:visual|vision)).*_proj$"


@dataclass(frozen=True)
class Losses:
    """Cross-entropy of the turns."""

    #: Of learnt turns in the first tenth of the steps.
    first: float
    #: Of learnt turns in the last tenth.
    last: float
    #: Of held-out turns before the training, None without held-out turns or after resuming.
    held_out_before: float | None
    #: Of held-out turns after it.
    held_out_after: float | None


def _save(
    trainer: Any,
    processor: Any,
    tuning: Tuning,
    folder: Path,
) -> None:
    tuned = trainer.accelerator.unwrap_model(trainer.model)
    if tuning.tune == "lora":
        tuned = tuned.merge_and_unload()
    tuned.save_pretrained(folder)
    processor.save_pretrained(folder)


def tune(
    learnt: Sequence[LearntTurn],
    held_out: Sequence[LearntTurn],
    tuning: Tuning,
    folder: Path,
) -> Losses:
    """Tune a backbone and write it with its training record; an interrupted tuning
    resumes from its last checkpoint.

    Args:
        learnt: turns to train on.
        held_out: turns to measure on.
        tuning: options of the tuning.
        folder: for the model, with adapters merged into it.

    Raises:
        VievalError: the base cannot be loaded, prompted or tuned, the folder has checkpoints of a
            tuning with other options, or memory or disk space runs out.
    """
    transformers = library("transformers")
    trl = library("trl")
    network, processor = load_base(tuning.base)
    checkpoint = _resume_or_begin(folder / _CHECKPOINTS, tuning)
    peft_config = library("peft").LoraConfig(
        r=8,
        lora_alpha=16,
        lora_dropout=0.05,
        target_modules=_TUNED,
    )
    try:
        adapters = peft_config if tuning.tune == "lora" else None
        trainer = trl.SFTTrainer(
            network,
            args=_settings(tuning, folder),
            train_dataset=_dataset(learnt),
            eval_dataset=_dataset(held_out) if held_out else None,
            processing_class=processor,
            peft_config=adapters,
        )
    except (
        ValueError
    ) as error:  # such as of a base that has none of the layers that adapters go to
        raise VievalError(
            f"--base {tuning.base} cannot be tuned with these options: {line_of(error)}"
        ) from None
    trainer.remove_callback(transformers.PrinterCallback)
    with enough_memory(tuning, "turns"), _enough_room(folder):
        held_out_loss_before = (
            trainer.evaluate()["eval_loss"] if held_out and checkpoint is None else None
        )
        trainer.train(resume_from_checkpoint=checkpoint)
        held_out_loss_after = trainer.evaluate()["eval_loss"] if held_out else None
        curve = [
            (entry["step"], entry["loss"])
            for entry in trainer.state.log_history
            if "loss" in entry
        ]
        losses = Losses(
            curve[0][1],
            curve[-1][1],
            held_out_loss_before,
            held_out_loss_after,
        )
        _save(trainer, processor, tuning, folder)
    record = _training_record(tuning, learnt, held_out, curve, losses)
    write_training_record(folder, record)
    shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)
    return losses


def _training_record(
    tuning: Tuning,
    learnt: Sequence[LearntTurn],
    held_out: Sequence[LearntTurn],
    curve: Sequence[tuple[Any, Any]],
    losses: Losses,
) -> dict[str, Any]:
    benchmarks = benchmark_registry.benchmarks()
    sources = dict.fromkeys(turn.sample.split("/")[0] for turn in learnt)
    data = []
    for name in sources:
        licence = "the user's own"
        if name in benchmarks:
            licence = benchmarks[name].licence
        data.append({"source": name, "licence": licence})
    return {
        "recipe": asdict(tuning),
        "data": data,
        "turns": {"learnt": len(learnt), "held_out": len(held_out)},
        "uids": list(dict.fromkeys(turn.sample for turn in learnt)),
        "held_out_uids": list(dict.fromkeys(turn.sample for turn in held_out)),
        "curves": curve,
        "losses": asdict(losses),
    }


def _settings(tuning: Tuning, folder: Path) -> Any:
    """Settings of the trainer: steps, evaluations and checkpoints of a tuning."""
    on_gpu = library("torch").cuda.is_available()
    interval = max(1, tuning.steps // _EVALUATION_COUNT)
    return library("trl").SFTConfig(
        output_dir=str(folder / _CHECKPOINTS),
        max_steps=tuning.steps,
        per_device_train_batch_size=tuning.batch_size,
        per_device_eval_batch_size=tuning.batch_size,
        gradient_accumulation_steps=tuning.accumulate,
        gradient_checkpointing=on_gpu,
        learning_rate=tuning.learning_rate,
        warmup_steps=max(1, tuning.steps // 33),
        logging_steps=interval,
        save_steps=interval,
        save_total_limit=1,
        bf16=on_gpu,
        use_cpu=not on_gpu,
        # never cut: an example that was cut short lacks image tokens or its answer
        max_length=None,
        report_to="none",
        seed=tuning.seed,
        data_seed=tuning.seed,
        disable_tqdm=False,
    )


def _resume_or_begin(checkpoints: Path, tuning: Tuning) -> str | None:
    """Return the checkpoint to resume from; None after clearing the folder and writing
    this tuning's options.

    Raises:
        VievalError: the checkpoint was made with other options.
    """
    file = checkpoints / _OPTIONS
    options = asdict(tuning)
    last = None
    if file.is_file():
        trainer_utils = library("transformers").trainer_utils
        last = trainer_utils.get_last_checkpoint(str(checkpoints))
    if last is None:
        shutil.rmtree(checkpoints, ignore_errors=True)
        write_whole(file, [json.dumps(options)])
        return None
    try:
        earlier = dict(read_json(file.read_bytes()))
    except (ValueError, TypeError, OSError) as error:
        raise VievalError(
            f"cannot read {file}: {line_of(error)}; remove {checkpoints}"
        ) from None
    require_same_options(checkpoints, earlier, options)
    return str(last)


@contextlib.contextmanager
def _enough_room(folder: Path) -> Iterator[None]:
    """Turn a full disk into a VievalError with a remedy."""
    try:
        yield
    except Exception as error:
        # what writes weights raises errors of its own when a disk is full
        is_unwritable = getattr(error, "errno", None) in _UNWRITABLE
        if is_unwritable or os.strerror(errno.ENOSPC) in str(error):
            raise unwritable(folder, error, "choose another --out") from None
        raise


def _dataset(turns: Sequence[LearntTurn]) -> Any:
    datasets = library("datasets")
    rows = [
        {
            "prompt": turn.prompt,
            "completion": turn.completion,
            "images": turn.images,
        }
        for turn in turns
    ]
    image_list = datasets.List(datasets.Image())
    return datasets.Dataset.from_list(rows).cast_column("images", image_list)
