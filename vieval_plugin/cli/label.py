"""`vieval label`: a page on which people rate images or vote on pairs of them, blind."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_columns, add_partial

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


GROUP = "look at results"


def add(commands: Commands) -> None:
    parser = commands.add_parser("label", help="a page on which people rate images or vote on pairs of them, blind")
    parser.add_argument(
        "samples",
        nargs="+",
        help="samples as score takes them; or alone, JSONL of contests; what score wrote; or BENCHMARK/PART of one that is "
        "there; a folder of shards may have rows behind it, each a uid or FILE:ROW",
    )
    parser.add_argument("--out", type=Path, required=True, help="the page, an HTML file with everything in it")
    parser.add_argument("--n", type=int, default=100, help="how many are to be labelled (default: 100)")
    parser.add_argument("--seed", type=int, help="of the choice and its order (default: statistics.seed)")
    parser.add_argument("--kind", help="the kind of samples whose line names none, and of contests, such as tig")
    parser.add_argument("--prompts", type=Path, help="what images in folders were made of: a table, or a .txt")
    add_columns(parser)
    add_partial(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin import config
    from vieval_plugin.images import files_of
    from vieval_plugin.judges.contests import candidates_of
    from vieval_plugin.labelling.choice import choose, strata
    from vieval_plugin.labelling.page import LARGE, label_page
    from vieval_plugin.labelling.sources import read_to_label, with_images
    from vieval_plugin.media.files import require_writable, write_whole
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.text.escaping import say

    columns = parse_columns(options.columns)
    labelled = read_to_label(options.samples, options.kind, options.partial, columns, options.prompts)
    prompts = [options.prompts] if options.prompts else []
    outputs = [output for sample in labelled for output in candidates_of(sample.judged)]
    require_writable(options.out, reads=[*map(Path, options.samples), *prompts, *files_of(outputs)])
    seed = config.current().statistics.options().seed if options.seed is None else options.seed
    selection = [labelled[number] for number in choose([sample.judged for sample in labelled], options.n, seed)]
    page = label_page(list(map(with_images, selection)), seed)
    write_whole(options.out, page)
    counts = strata([sample.judged for sample in selection]).values()
    total = len(strata([sample.judged for sample in labelled]))
    say(
        f"wrote {options.out} ({len(page) / 2**20:.1f} MB): {len(selection)} of {len(labelled)} to label",
        f"drawn from {len(counts)} of {total} groups (kind and generator), {min(counts)} to {max(counts)} from each, "
        f"seed {seed}",
    )
    if len(page) > LARGE:
        say(f"the page has {len(page) >> 20} MB and opens slowly; a smaller --n makes a smaller one")
    return 0
