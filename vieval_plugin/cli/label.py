"""Make a page where annotators rate your images.

They rate images, or vote on pairs, without seeing the generators' names. The page saves a CSV file;
pass it to vieval rank --human, together with the plan next to the page.

Examples:
    # label 100 images of a table
    vieval label images.csv --out label.html
    # label 50 scored images
    vieval label verdicts.jsonl --n 50 --out label.html
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import Count, OutputPath, argument, flag
from vieval_plugin.cli.options import ColumnOptions, PartialOptions, human_flag

if TYPE_CHECKING:
    from vieval_plugin.judges.contests import Judged
    from vieval_plugin.labelling.sources import ToLabel
    from vieval_plugin.meta_evaluation.ratings import HumanRatings


class LabellingOptions(ColumnOptions, PartialOptions):
    """Options of `vieval label`."""

    samples: list[str] = argument(
        "samples in a format that vieval score reads, a .jsonl file of contests, "
        "verdicts, or BENCHMARK/PART; a folder of shards may be followed by rows, each "
        "as its uid or FILE:ROW"
    )
    out: OutputPath = flag("HTML page to write, as one file that includes the images")
    n: Count = flag("number of images or pairs (default: %(default)s)", 100)
    human: list[Path] = human_flag(
        "; images that they rate are left out. To label the remaining images of an "
        "earlier page, also pass its plan (PAGE.plan.json)"
    )
    until_decided: bool = flag(
        "ask for labels only up to the plan's next look, and stop once the result is "
        "decided (the leader is not shown)"
    )
    kind: str | None = flag("task type of samples without one, such as tig")
    prompts: Path | None = flag("prompts of images in folders: a table or a .txt file")


def run(options: LabellingOptions) -> int:
    from vieval_plugin import config
    from vieval_plugin.benchmarks.loading.ratings import read_ratings
    from vieval_plugin.judges.contests import Contest
    from vieval_plugin.labelling.sources import (
        choose_readable,
        read_planned,
        read_to_label,
    )
    from vieval_plugin.media.files import write_whole
    from vieval_plugin.meta_evaluation.label_plan import look_at, make_plan, plan_text
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural

    columns = parse_columns(options.columns)
    samples = read_to_label(
        options.samples, options.kind, options.partial, columns, options.prompts
    )
    plan_path = options.out.with_suffix(".plan.json")
    _require_writable(options, plan_path, samples)
    ratings = read_ratings(options.human) if options.human else None
    plan = ratings.plan if ratings else None
    if options.until_decided and ratings and plan and _are_decisive(options, ratings):
        say(
            "The labels are decisive, so no more are needed.",
            f"next: {_rank_command(options, ())}",
        )
        return 0
    seed = config.current().statistics.seed
    reasons: dict[int, str] = {}
    if plan:
        selection = read_planned(samples, plan.images)
    else:
        selection, reasons = choose_readable(samples, options.n, seed)
    are_contests = isinstance(selection[0].judged, Contest)
    is_new = plan is None and not are_contests
    images = [sample.judged for sample in selection]
    plan = plan or make_plan(images, seed)
    rated = ratings.where if ratings else {}
    planned_images = (
        look_at(plan, rated).next_images if options.until_decided else plan.images
    )
    unrated = frozenset(planned_images).difference(rated)
    to_ask = [sample for sample in selection if sample.judged.id in unrated]
    if not to_ask:
        raise VievalError(
            f"the selected images ({len(selection)}) are already rated; to rate more, "
            "add images, or pass a larger --n and omit the plan from --human"
        )
    readable = [
        sample.judged for number, sample in enumerate(samples) if number not in reasons
    ]
    size = _write_page(options.out, to_ask, plan.seed, images, readable)
    if is_new:
        write_whole(plan_path, [plan_text(plan)])
        say(
            f"wrote {plan_path}, the order of {plural(len(plan.units), plan.unit)}, for "
            "`vieval rank --human`"
        )
    if reasons:
        first = min(reasons)
        say(
            f"left out {len(reasons)} of {len(samples)} samples, because the image is "
            f"missing or unreadable (first: {samples[first].where}: {reasons[first]})"
        )
    _say_advice(options, images, readable, size, are_contests)
    return 0


def _require_writable(
    options: LabellingOptions, plan_path: Path, samples: Sequence[ToLabel]
) -> None:
    """Raise VievalError if the page or its plan would replace what is read."""
    from vieval_plugin.images import files_of
    from vieval_plugin.judges.contests import candidates_of
    from vieval_plugin.media.files import require_writable

    outputs = [output for sample in samples for output in candidates_of(sample.judged)]
    reads = [
        *map(Path, options.samples),
        *options.human,
        *filter(None, [options.prompts]),
        *files_of(outputs),
    ]
    for path in (options.out, plan_path):
        require_writable(path, reads=reads)


def _write_page(
    path: Path,
    to_ask: Sequence[ToLabel],
    seed: int,
    images: Sequence[Judged],
    readable: Sequence[Judged],
) -> int:
    """Write the page on some of those that were chosen from all readable ones; its size."""
    from vieval_plugin.labelling.choice import strata
    from vieval_plugin.labelling.page import label_page
    from vieval_plugin.media.files import write_whole
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import range_text

    page = label_page(to_ask, seed)
    write_whole(path, page)
    size = f"{len(page) / 2**20:.1f} MB"
    counts = strata(images).values()
    drawn = f"sampled from {len(counts)} of {len(strata(readable))} strata"
    say(
        f"wrote {path} ({size}): {len(to_ask)} of {len(readable)} to label",
        f"{drawn} (kind and generator), {range_text(counts)} from each, seed {seed}",
    )
    return len(page)


def _say_advice(
    options: LabellingOptions,
    images: Sequence[Judged],
    readable: Sequence[Judged],
    size: int,
    are_contests: bool,
) -> None:
    """Print what the labels can show, and the next step."""
    from vieval_plugin.labelling.page import LARGE
    from vieval_plugin.meta_evaluation.label_plan import size_advice
    from vieval_plugin.text.escaping import say

    if are_contests:
        say(
            "votes on pairs cannot correct a judge's means (vieval rank --human); to "
            "correct them, label its verdicts on single images"
        )
    advice = size_advice(images, readable)
    if advice:
        say(advice)
    if size > LARGE:
        say(f"the page has {size >> 20} MB and opens slowly; use a smaller --n")
    if not are_contests:
        say(
            f"next: fill in the page, download the answers, and run {_rank_command(options)}"
        )


def _rank_command(
    options: LabellingOptions, further: Sequence[str] = ("labels-*.csv",)
) -> str:
    """The command that ranks by the labels and `further` ones, with their plan, and what writes
    its verdicts where none were given.
    """
    from vieval_plugin.readers.places import is_shards
    from vieval_plugin.results.own_verdicts import is_own

    paths = list(map(Path, options.samples))
    verdicts = shlex.join(options.samples)
    origin = ""
    if is_shards(paths[0]):
        verdicts = options.samples[0]
    elif not all(map(is_own, paths)):
        verdicts = "verdicts.jsonl"
        origin = (
            ", where verdicts.jsonl is the output of `vieval score` on these samples"
        )
    labels = list(options.human)
    if not any(file.suffix == ".json" for file in labels):
        labels.insert(0, options.out.with_suffix(".plan.json"))
    quoted = [shlex.quote(str(file)) for file in labels]
    files = dict.fromkeys([*quoted, *further])  # a shell expands the last ones
    return f"`vieval rank {verdicts} --human {' '.join(files)}`{origin}"


def _are_decisive(options: LabellingOptions, ratings: HumanRatings) -> bool:
    """Return whether the labels of a plan show by any judge's verdicts which generator is best."""
    from vieval_plugin import config
    from vieval_plugin.readers.places import is_shards
    from vieval_plugin.report.sections import sections_of
    from vieval_plugin.results.own_verdicts import is_own
    from vieval_plugin.results.runs import load_results
    from vieval_plugin.text.errors import VievalError

    path = Path(options.samples[0])
    if not (is_own(path) or is_shards(path)):
        raise VievalError(
            f"--until-decided requires verdicts, got {path}; pass the output of "
            "vieval score"
        )
    results = load_results([path], partial=options.partial)
    report = sections_of(
        results, "generators", config.current().statistics.options(), ratings
    )
    return any(
        ranking.decided
        for section in report.sections
        for ranking in section.corrections.values()
    )
