"""Options common to all trainings: the tuned weights, the steps, and the split of the
data; and their record.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from vieval_plugin.backends.weights import is_out_of_memory, library
from vieval_plugin.media.files import write_whole
from vieval_plugin.results.training_records import TRAINING_RECORD
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.versions import versions_of

Tune: TypeAlias = Literal["lora", "full"]
Example = TypeVar("Example")


@dataclass(frozen=True)
class Tuning:
    """Options for training a base."""

    #: The model that is trained.
    base: str
    #: Adapters or every weight.
    tune: Tune = "lora"
    #: Steps of optimisation.
    steps: int = 1000
    #: Examples that each process sees at once.
    batch_size: int = 8
    #: Batches of a step in each process.
    accumulate: int = 1
    #: The highest learning rate.
    learning_rate: float = 1e-4
    #: Share of groups of examples that is kept for measuring.
    held_out: float = 0.05
    #: Seed of the split, the order and dropout.
    seed: int = 0


def split(
    examples: Sequence[Example], group: Callable[[Example], str], tuning: Tuning
) -> tuple[list[Example], list[Example]]:
    """Split examples into those to train on and those held out, by whole groups; the
    split depends only on the seed and the group's name.

    Raises:
        VievalError: no examples are left to train on.
    """
    parts: tuple[list[Example], list[Example]] = ([], [])
    for example in examples:
        name = f"held out/{tuning.seed}/{group(example)}"
        digest = hashlib.sha256(name.encode()).digest()
        # the first bits of a digest are as good as a number drawn from [0, 1)
        share = int.from_bytes(digest[:8], "big") / 2**64
        parts[share < tuning.held_out].append(example)
    if not parts[0]:
        raise VievalError(
            f"--held-out {tuning.held_out:g} leaves no examples to train on; use a "
            "smaller share"
        )
    return parts


def require_same_options(
    path: Path, earlier: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Raise VievalError for a checkpoint of a training with other options."""
    for name, value in options.items():
        if earlier.get(name) != value:
            raise VievalError(
                f"{path}: trained with {name} {earlier.get(name)}, got {value}; use the "
                "same value, or choose another --out"
            )


def load_base(base: str, dtype: str = "float32") -> tuple[Any, Any]:
    """Load an image-text model of transformers and its processor for training.

    Raises:
        VievalError: it cannot be loaded, or has no chat template and cannot be prompted.
    """
    transformers = library("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        processor = transformers.AutoProcessor.from_pretrained(
            base, trust_remote_code=False
        )
        network = transformers.AutoModelForImageTextToText.from_pretrained(
            base, dtype=dtype, trust_remote_code=False
        )
    except Exception as error:  # of files that others wrote
        raise VievalError(
            f"--base {base} cannot be loaded as an image-text model: {line_of(error)}"
        ) from None
    has_tokenizer = getattr(processor, "tokenizer", None) is not None
    if not has_tokenizer or not getattr(processor, "chat_template", None):
        raise VievalError(
            f"--base {base} has no tokenizer with a chat template, so it cannot be "
            "prompted; choose another"
        )
    return network, processor


@contextlib.contextmanager
def enough_memory(tuning: Tuning, examples: str) -> Iterator[None]:
    """Turn exhausted memory into a VievalError with a remedy; `examples` names the
    examples in it.
    """
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        if tuning.batch_size > 1:
            remedy = (
                f"use --batch-size {tuning.batch_size // 2} --accumulate "
                f"{2 * tuning.accumulate}, which trains the same model"
            )
        elif tuning.tune == "full":
            remedy = "use --tune lora"
        else:
            remedy = "use a smaller base, or a device with more memory"
        batch = f"{tuning.batch_size} {examples} per batch"
        if tuning.batch_size == 1:
            batch = "a batch size of 1"
        raise VievalError(f"out of memory with {batch}; {remedy}") from None


_PACKAGES = ("torch", "transformers", "peft", "accelerate", "trl")


def write_training_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the training record into a model's folder, so that a report can tell what
    the model was trained on.

    Adds the versions of the training packages. VievalError if it cannot be written.
    """
    document = {**record, "versions": versions_of(*_PACKAGES)}
    text = json.dumps(document, indent=1, ensure_ascii=False)
    write_whole(folder / TRAINING_RECORD, [text])
