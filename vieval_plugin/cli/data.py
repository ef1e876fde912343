"""`vieval data`: training data without annotators."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_columns, add_command, number_between, output_path

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands
    from vieval_plugin.training.adiee.dataset import Terms
    from vieval_plugin.training.adiee.labels import LabelledEdit


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "data",
        "make training data for judges without annotators",
        "",
        ("synthetic editing sequences", "vieval data drawn --out turns"),
        ("labelled edits of them", "vieval data adiee turns --out data"),
    )
    actions = parser.add_subparsers(required=True, metavar="DATA")
    _add_adiee(actions)
    _add_drawn(actions)


def _add_adiee(actions: Commands) -> None:
    parser = add_command(
        actions,
        "adiee",
        "label edits for ADIEE's scorer",
        "Labels come from editing sequences, or from outputs of editors by CLIP-D.",
        ("from sequences", "vieval data adiee turns --out data"),
        (
            "from outputs",
            (
                "vieval data adiee --outputs edits.jsonl --licence CC-BY-4.0 --truth gold --weak "
                "old --strong new --out data"
            ),
        ),
    )
    parser.add_argument(
        "folders", nargs="*", type=Path, help="folders of editing sequences"
    )
    parser.add_argument(
        "--out",
        type=output_path,
        required=True,
        help="folder for the edits, which `vieval train adiee` reads",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of what is sampled (default: %(default)s)",
    )
    parser.add_argument(
        "--most",
        type=number_between(1),
        default=4,
        help="most edits from one sequence (default: %(default)s)",
    )
    outputs = parser.add_argument_group("labels by CLIP-D, from outputs of editors")
    outputs.add_argument(
        "--outputs",
        type=Path,
        help="samples of edits, as vieval score takes them, with captions of source and output",
    )
    add_columns(outputs)
    outputs.add_argument(
        "--licence", help="the licence under which the outputs may train a model"
    )
    outputs.add_argument(
        "--clip",
        default="openai/clip-vit-base-patch32",
        help="the CLIP to use (default: %(default)s)",
    )
    outputs.add_argument(
        "--truth", default="", help="the image model whose outputs are right"
    )
    outputs.add_argument(
        "--weak", nargs="*", default=[], help="image models whose outputs fail"
    )
    outputs.add_argument(
        "--strong",
        nargs="*",
        default=[],
        help="image models whose outputs may be right",
    )
    parser.set_defaults(run=_label)


def _label(options: argparse.Namespace) -> int:
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say
    from vieval_plugin.training.adiee import dataset, labels

    if not options.folders and not options.outputs:
        raise VievalError(
            "nothing to label: give folders of turns, or --outputs with a samples file"
        )
    require_writable(options.out / dataset.EXAMPLES)
    edits, origins = _sequence_labels(options)
    if options.outputs:
        more, origin = _output_labels(options)
        edits, origins = [*edits, *more], [*origins, origin]
    dataset.write(options.out, edits, origins, options.seed)
    say(*(f"label {label}: {n}" for label, n in labels.spread(edits).items()))
    say(f"seed {options.seed}", f"wrote {len(edits)} labelled edits to {options.out}")
    return 0


def _sequence_labels(
    options: argparse.Namespace,
) -> tuple[list[LabelledEdit], list[Terms]]:
    from vieval_plugin.benchmarks.sequences import read_sequences
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.training.adiee.dataset import Terms
    from vieval_plugin.training.adiee.labels import sequence_labels

    batches = [read_sequences(folder) for folder in options.folders]
    times = Counter(sequence.uid for batch in batches for sequence in batch.sequences)
    if repeated := [uid for uid, n in times.items() if n > 1]:
        raise VievalError(
            f"sequence {repeated[0]} comes {times[repeated[0]]} times; give each folder once, "
            "each sequence a uid"
        )
    edits = [
        edit
        for batch in batches
        for sequence in batch.sequences
        for edit in sequence_labels(sequence, options.most, options.seed)
    ]
    return edits, [
        Terms(batch.source, batch.licence, batch.trainable) for batch in batches
    ]


def _output_labels(options: argparse.Namespace) -> tuple[list[LabelledEdit], Terms]:
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
            "--outputs: say with --licence on which terms they may train a model; it goes into "
            "the training record"
        )
    rows = list(read_samples(options.outputs, "tie", parse_columns(options.columns)))
    if bad := [(row.sample.id, row.verdict) for row in rows if row.verdict]:
        raise VievalError(f"{options.outputs}: {failures(bad)[0]}")
    editors = Editors(options.truth, frozenset(options.weak), frozenset(options.strong))
    pairs = pairs_of(
        [row.sample for row in rows if isinstance(row.sample, Sample)], editors
    )
    edits = output_labels(pairs, editors, load_clip(weights.Origin(options.clip)))
    return edits, Terms(str(options.outputs), options.licence, True)


def _add_drawn(actions: Commands) -> None:
    parser = add_command(
        actions,
        "drawn",
        "draw synthetic editing sequences",
        "",
        ("a thousand sequences", "vieval data drawn --out turns"),
        ("a hundred others", "vieval data drawn --out turns --count 100 --seed 1"),
    )
    parser.add_argument(
        "--out", type=output_path, required=True, help="folder for the sequences"
    )
    parser.add_argument(
        "--count",
        type=number_between(1),
        default=1000,
        help="number of sequences (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of the drawings (default: %(default)s)",
    )
    parser.set_defaults(run=_draw)


def _draw(options: argparse.Namespace) -> int:
    from vieval_plugin.benchmarks.sequences import FILE
    from vieval_plugin.benchmarks.vieval_demo.sequences import write_drawn
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.text.escaping import say

    require_writable(options.out / FILE)
    write_drawn(options.out, options.count, options.seed)
    say(f"seed {options.seed}", f"wrote {options.count} sequences to {options.out}")
    return 0
