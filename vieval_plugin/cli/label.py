"""`vieval label`: a page on which people rate images or vote on pairs of them, blind."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_columns, add_command, add_human, add_partial, number_between

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands
    from vieval_plugin.judges.contests import Judged


_MARGIN = 0.05  # of the gate that labels are counted for


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "label",
        "make a page on which annotators rate your images",
        "They rate images, or vote on pairs, without seeing which generator made them. The page saves a CSV file, which "
        "vieval rank --human reads.",
        ("100 images of a table", "vieval label images.csv --out label.html"),
        ("50 images that were scored", "vieval label verdicts.jsonl --n 50 --out label.html"),
    )
    parser.add_argument(
        "samples",
        nargs="+",
        help="samples as vieval score takes them, a .jsonl file of contests, verdicts, or BENCHMARK/PART; behind a folder of "
        "shards you may name rows, each by its uid or as FILE:ROW",
    )
    parser.add_argument("--out", type=Path, required=True, help="the page to write, one HTML file with its images")
    parser.add_argument(
        "--n", type=number_between(1), default=100, help="number of images or pairs (default: %(default)s)"
    )
    add_human(parser, ": of these N, what is rated already is left out")
    parser.add_argument("--kind", help="the task type of samples that name none, such as tig")
    parser.add_argument("--prompts", type=Path, help="the prompts of images in folders: a table, or a .txt file")
    add_columns(parser)
    add_partial(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin import config
    from vieval_plugin.benchmarks.loading.ratings import read_ratings
    from vieval_plugin.images import files_of
    from vieval_plugin.judges.contests import Contest, candidates_of
    from vieval_plugin.labelling.choice import strata
    from vieval_plugin.labelling.page import LARGE, label_page
    from vieval_plugin.labelling.sources import choose_readable, read_to_label
    from vieval_plugin.media.files import require_writable, write_whole
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.results.own_verdicts import is_own
    from vieval_plugin.results.shard_verdicts import is_shards
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    columns = parse_columns(options.columns)
    samples = read_to_label(options.samples, options.kind, options.partial, columns, options.prompts)
    prompts = [options.prompts] if options.prompts else []
    outputs = [output for sample in samples for output in candidates_of(sample.judged)]
    require_writable(options.out, reads=[*map(Path, options.samples), *options.human, *prompts, *files_of(outputs)])
    rated = read_ratings(options.human).where if options.human else {}
    seed = config.current().statistics.seed
    selection, reasons = choose_readable(samples, options.n, seed)
    to_ask = [sample for sample in selection if sample.judged.id not in rated]
    if not to_ask:
        raise VievalError(
            f"all {len(selection)} that --n {options.n} chooses are rated already; raise --n, or name more images"
        )
    labelled = [sample for number, sample in enumerate(samples) if number not in reasons]
    page = label_page(to_ask, seed)
    write_whole(options.out, page)
    counts = strata([sample.judged for sample in selection]).values()
    total = len(strata([sample.judged for sample in labelled]))
    say(
        f"wrote {options.out} ({len(page) / 2**20:.1f} MB): {len(to_ask)} of {len(labelled)} to label",
        f"drawn from {len(counts)} of {total} groups (kind and generator), {min(counts)} to {max(counts)} from each, "
        f"seed {seed}",
    )
    if reasons:
        first = min(reasons)
        say(
            f"{len(reasons)} of {len(samples)} left out for an image that is missing or cannot be read; the first: "
            f"{samples[first].where}: {reasons[first]}"
        )
    if isinstance(selection[0].judged, Contest):
        say(
            "votes on pairs do not correct a judge's means (vieval rank --human): for that, label its verdicts on single images"
        )
    say(*filter(None, [_enough([s.judged for s in selection], [s.judged for s in labelled])]))
    if len(page) > LARGE:
        say(f"the page has {len(page) >> 20} MB and opens slowly; a smaller --n makes a smaller one")
    if not isinstance(selection[0].judged, Contest):
        path = Path(options.samples[0])
        verdicts = path if is_own(path) or is_shards(path) else "VERDICTS"
        answers = " ".join([*map(str, options.human), "labels-*.csv"])
        say(f"next: answer the page, download the file of answers, and `vieval rank {verdicts} --human {answers}`")
    return 0


def _enough(selection: Sequence[Judged], available: Sequence[Judged]) -> str:
    """Line on how many prompts of each generator are labelled, where that is few; empty of contests and one generator.

    The number that it names is the least by which each generator has enough labels, or all of its images.
    """
    from vieval_plugin.judges.protocol import Sample
    from vieval_plugin.meta_evaluation.comparison import LEAST_FOR_A_TEST
    from vieval_plugin.meta_evaluation.corrected_ranking import LEAST_RATED
    from vieval_plugin.stats.non_inferiority import fewest_items
    from vieval_plugin.text.wording import plural

    prompts = defaultdict(set)
    for sample in (sample for sample in selection if isinstance(sample, Sample)):
        prompts[sample.id.image_model].add((sample.id.part, sample.id.uid))
    fewest = min(map(len, prompts.values()), default=0)
    if len(prompts) < 2 or fewest >= LEAST_RATED:
        return ""
    images = Counter(sample.id.image_model for sample in available if isinstance(sample, Sample))
    needed = sum(min(LEAST_RATED, number) for number in images.values())
    largest = max(map(len, prompts.values()))
    counts = plural(fewest, "prompt") if largest == fewest else f"{fewest} to {plural(largest, 'prompt')}"
    return (
        f"{counts} of each generator; a test needs {LEAST_FOR_A_TEST}, a decision {LEAST_RATED}, a gate of "
        f"{_MARGIN} {fewest_items(_MARGIN):.0f} of each, or all where there are fewer{f' (--n {needed})' if len(selection) < needed else ''}"
    )
