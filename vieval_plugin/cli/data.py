"""Make training data for judges, without annotators.

Examples:
    # draw synthetic editing sequences
    vieval data drawn --out turns
    # label their edits
    vieval data adiee turns --out data
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import (
    Count,
    Options,
    OutputPath,
    Seed,
    argument,
    flag,
)
from vieval_plugin.cli.options import ColumnOptions

if TYPE_CHECKING:
    from vieval_plugin.training.adiee.dataset import Terms
    from vieval_plugin.training.adiee.labels import LabelledEdit


class OutputOptions(ColumnOptions, group=("label the outputs of editors with CLIP-D",)):
    """Outputs of editors that are labelled by CLIP-D."""

    outputs: Path | None = flag(
        "edits in a format that vieval score reads, with captions of source and output",
    )
    licence: str | None = flag("licence that permits training on the outputs")
    clip: str = flag(
        "CLIP model to use (default: %(default)s)", "openai/clip-vit-base-patch32"
    )
    truth: str = flag("image model whose outputs are correct", "")
    weak: list[str] = flag("image models whose outputs fail", nargs="*")
    strong: list[str] = flag("image models whose outputs may be correct", nargs="*")


class LabelledEditOptions(OutputOptions):
    """Options of `vieval data adiee`."""

    folders: list[Path] = argument("folders of editing sequences", nargs="*")
    out: OutputPath = flag("folder for the edits (input of `vieval train adiee`)")
    seed: Seed = flag("random seed (default: %(default)s)", 0)
    most: Count = flag(
        "maximum number of edits per sequence (default: %(default)s)",
        4,
    )


class DrawingOptions(Options):
    """Options of `vieval data drawn`."""

    out: OutputPath = flag("folder for the sequences")
    count: Count = flag("number of sequences (default: %(default)s)", 1000)
    seed: Seed = flag("random seed (default: %(default)s)", 0)


def label(options: LabelledEditOptions) -> int:
    """Label edits for ADIEE's scorer.

    Labels come from editing sequences, or from CLIP-D on outputs of editors.

    Examples:
        # label edits from sequences
        vieval data adiee turns --out data
        # label edits from outputs
        vieval data adiee --outputs edits.jsonl --licence CC-BY-4.0 --truth gold --weak old --strong new --out data
    """
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural
    from vieval_plugin.training.adiee import dataset, labels

    if not options.folders and not options.outputs:
        raise VievalError(
            "no edits to label; pass folders of editing sequences, or --outputs FILE"
        )
    require_writable(options.out / dataset.EXAMPLES)
    edits, origins = _sequence_labels(options)
    if options.outputs:
        more, origin = _output_labels(options.outputs, options)
        edits = [*edits, *more]
        origins = [*origins, origin]
    dataset.write(
        options.out,
        edits,
        origins,
        options.seed,
    )
    say(*(f"label {label}: {n}" for label, n in labels.spread(edits).items()))
    say(
        f"seed {options.seed}",
        f"wrote {plural(len(edits), 'labelled edit')} to {options.out}",
    )
    return 0


def _sequence_labels(
    options: LabelledEditOptions,
) -> tuple[list[LabelledEdit], list[Terms]]:
    from vieval_plugin.benchmarks.sequences import read_sequences
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.training.adiee.dataset import Terms
    from vieval_plugin.training.adiee.labels import sequence_labels

    batches = [read_sequences(folder) for folder in options.folders]
    times = Counter(sequence.uid for batch in batches for sequence in batch.sequences)
    repeated = [uid for uid, n in times.items() if n > 1]
    if repeated:
        raise VievalError(
            f"sequence {repeated[0]} occurs {times[repeated[0]]} times; pass each "
            "folder once, and use a unique uid for each sequence"
        )
    edits = []
    for batch in batches:
        for sequence in batch.sequences:
            edits += sequence_labels(sequence, options.most, options.seed)
    return edits, [
        Terms(batch.source, batch.licence, batch.trainable) for batch in batches
    ]


def _output_labels(
    outputs: Path, options: OutputOptions
) -> tuple[list[LabelledEdit], Terms]:
    from vieval_plugin.backends import weights
    from vieval_plugin.backends.metrics.networks.clip import load as load_clip
    from vieval_plugin.judges.protocol import Sample
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.readers.samples import read_samples
    from vieval_plugin.run.summary import failures
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.training.adiee.dataset import Terms
    from vieval_plugin.training.adiee.labels import Editors, output_labels, pairs_of

    if not options.licence:
        raise VievalError(
            "--outputs requires --licence, the licence that permits training on them, "
            "for the training record"
        )
    rows = list(read_samples(outputs, "tie", parse_columns(options.columns)))
    bad = [(row.sample.id, row.verdict) for row in rows if row.verdict]
    if bad:
        raise VievalError(f"{outputs}: {failures(bad)[0]}")
    editors = Editors(
        options.truth,
        frozenset(options.weak),
        frozenset(options.strong),
    )
    pairs = pairs_of(
        [row.sample for row in rows if isinstance(row.sample, Sample)], editors
    )
    edits = output_labels(pairs, editors, load_clip(weights.Origin(options.clip)))
    return edits, Terms(str(outputs), options.licence, True)


def draw(options: DrawingOptions) -> int:
    """Draw synthetic editing sequences.

    Examples:
        # draw a thousand sequences
        vieval data drawn --out turns
        # draw a hundred more
        vieval data drawn --out turns --count 100 --seed 1
    """
    from vieval_plugin.benchmarks.sequences import FILE
    from vieval_plugin.benchmarks.vieval_demo.sequences import write_drawn
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural

    require_writable(options.out / FILE)
    write_drawn(options.out, options.count, options.seed)
    say(
        f"seed {options.seed}",
        f"wrote {plural(options.count, 'sequence')} to {options.out}",
    )
    return 0


ACTIONS = {"adiee": label, "drawn": draw}
