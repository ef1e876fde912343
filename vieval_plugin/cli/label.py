"""Make a page on which annotators rate your images.

They rate images, or vote on pairs, without seeing which generator made them. The page saves a CSV
file, which vieval rank --human reads with the plan that stands beside the page.

Examples:
    # 100 images of a table
    vieval label images.csv --out label.html
    # 50 images that were scored
    vieval label verdicts.jsonl --n 50 --out label.html
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import Count, OutputPath, argument, flag
from vieval_plugin.cli.options import ColumnOptions, PartialOptions, human_flag

if TYPE_CHECKING:
    from vieval_plugin.judges.contests import Judged
    from vieval_plugin.meta_evaluation.ratings import HumanRatings


class LabellingOptions(ColumnOptions, PartialOptions):
    """Options of `vieval label`."""

    samples: list[str] = argument(
        "samples as vieval score takes them, a .jsonl file of contests, verdicts, or "
        "BENCHMARK/PART; behind a folder of "
        "shards you may name rows, each by its uid or as FILE:ROW"
    )
    out: OutputPath = flag("the page to write, one HTML file with its images")
    n: Count = flag("number of images or pairs (default: %(default)s)", 100)
    human: list[Path] = human_flag(
        ": what is rated already is left out; with the plan of an earlier page its other "
        "images are asked for"
    )
    until_decided: bool = flag(
        "ask for the labels up to the next look of the plan alone, and stop once they "
        "decide, without saying who leads"
    )
    kind: str | None = flag("the task type of samples that name none, such as tig")
    prompts: Path | None = flag(
        "the prompts of images in folders: a table, or a .txt file"
    )


def run(options: LabellingOptions) -> int:
    from vieval_plugin import config
    from vieval_plugin.benchmarks.loading.ratings import read_ratings
    from vieval_plugin.images import files_of
    from vieval_plugin.judges.contests import Contest, candidates_of
    from vieval_plugin.labelling.choice import strata
    from vieval_plugin.labelling.page import LARGE, label_page
    from vieval_plugin.labelling.sources import (
        choose_readable,
        read_planned,
        read_to_label,
    )
    from vieval_plugin.media.files import require_writable, write_whole
    from vieval_plugin.meta_evaluation.label_plan import look_at, make_plan, plan_text
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural, range_text

    columns = parse_columns(options.columns)
    samples = read_to_label(
        options.samples, options.kind, options.partial, columns, options.prompts
    )
    prompts = [options.prompts] if options.prompts else []
    outputs = [output for sample in samples for output in candidates_of(sample.judged)]
    plan_path = options.out.with_suffix(".plan.json")
    for path in (options.out, plan_path):
        require_writable(
            path,
            reads=[
                *map(Path, options.samples),
                *options.human,
                *prompts,
                *files_of(outputs),
            ],
        )
    ratings = read_ratings(options.human) if options.human else None
    plan = ratings.plan if ratings else None
    if options.until_decided and ratings and plan and _are_decisive(options, ratings):
        say(
            "The labels decide, so no further label is needed.",
            f"next: {_rank_command(options, ())}",
        )
        return 0
    reasons: dict[int, str] = {}
    if plan:
        selection = read_planned(samples, plan.images)
    else:
        selection, reasons = choose_readable(
            samples, options.n, config.current().statistics.seed
        )
    are_contests = isinstance(selection[0].judged, Contest)
    is_new = plan is None and not are_contests
    plan = plan or make_plan(
        [sample.judged for sample in selection], config.current().statistics.seed
    )
    rated = ratings.where if ratings else {}
    wanted = frozenset(
        look_at(plan, rated).next_images if options.until_decided else plan.images
    )
    to_ask = [
        sample
        for sample in selection
        if sample.judged.id in wanted and sample.judged.id not in rated
    ]
    if not to_ask:
        raise VievalError(
            f"--n {options.n} must choose an image without a rating, and all {len(selection)} are "
            "rated; raise --n without the plan, or name more images"
        )
    labelled = [
        sample for number, sample in enumerate(samples) if number not in reasons
    ]
    page = label_page(to_ask, plan.seed)
    write_whole(options.out, page)
    counts = strata([sample.judged for sample in selection]).values()
    total = len(strata([sample.judged for sample in labelled]))
    say(
        (
            f"wrote {options.out} ({len(page) / 2**20:.1f} MB): {len(to_ask)} of {len(labelled)} "
            "to label"
        ),
        (
            f"drawn from {len(counts)} of {total} strata (kind and generator), "
            f"{range_text(counts)} from each, seed {plan.seed}"
        ),
    )
    if is_new:
        write_whole(plan_path, [plan_text(plan)])
        say(
            f"wrote {plan_path}: the order of {plural(len(plan.units), plan.unit)}, which "
            "`vieval rank --human` takes too"
        )
    if reasons:
        first = min(reasons)
        say(
            f"{len(reasons)} of {len(samples)} left out for an image that is missing or cannot be "
            f"read; the first: {samples[first].where}: {reasons[first]}"
        )
    if are_contests:
        say(
            "votes on pairs do not correct a judge's means (vieval rank --human): for that, "
            "label its verdicts on single images"
        )
    say(
        *filter(
            None, [_enough([s.judged for s in selection], [s.judged for s in labelled])]
        )
    )
    if len(page) > LARGE:
        say(
            f"the page has {len(page) >> 20} MB and opens slowly; a smaller --n makes a smaller one"
        )
    if not are_contests:
        say(
            f"next: answer the page, download the file of answers, and {_rank_command(options)}"
        )
    return 0


def _rank_command(
    options: LabellingOptions, further: Sequence[str] = ("labels-*.csv",)
) -> str:
    """The command that ranks by the labels and `further` ones, with their plan, and what writes
    its verdicts where none were given.
    """
    from vieval_plugin.readers.places import is_shards
    from vieval_plugin.results.own_verdicts import is_own

    paths = list(map(Path, options.samples))
    verdicts, origin = shlex.join(options.samples), ""
    if is_shards(paths[0]):
        verdicts = options.samples[0]
    elif not all(map(is_own, paths)):
        verdicts = "verdicts.jsonl"
        origin = ", where verdicts.jsonl is what `vieval score` writes of these samples"
    plans = (
        []
        if any(file.suffix == ".json" for file in options.human)
        else [options.out.with_suffix(".plan.json")]
    )
    files = dict.fromkeys(map(str, [*plans, *options.human, *further]))
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
            f"--until-decided requires verdicts, got {path}; pass what vieval score wrote"
        )
    results = load_results([path], partial=options.partial)
    report = sections_of(
        results, "generators", config.current().statistics.options(), ratings
    )
    rankings = [
        ranking
        for section in report.sections
        for ranking in section.corrections.values()
    ]
    return any(ranking.decided for ranking in rankings)


def _enough(selection: Sequence[Judged], available: Sequence[Judged]) -> str:
    """Line on how many prompts of each generator are labelled, where that is few; empty of
    contests and one generator.
    """
    from vieval_plugin.judges.protocol import Sample
    from vieval_plugin.stats.decisions import (
        ADVISED_MARGIN,
        LEAST_FOR_A_TEST,
        LEAST_RATED,
        TYPICAL_SPREAD,
    )
    from vieval_plugin.stats.non_inferiority import (
        prompts_for_margin,
        smallest_difference,
    )
    from vieval_plugin.text.wording import range_text

    prompts, groups = defaultdict(set), defaultdict(set)
    for sample in (sample for sample in selection if isinstance(sample, Sample)):
        prompts[sample.id.image_model].add((sample.id.part, sample.id.uid))
        groups[sample.id.image_model].add((sample.id.part, sample.group))
    fewest = min(map(len, groups.values()), default=0)
    needed = prompts_for_margin(TYPICAL_SPREAD)
    if len(prompts) < 2 or fewest >= needed:
        return ""
    images = Counter(
        sample.id.image_model for sample in available if isinstance(sample, Sample)
    )
    in_each = max(len(prompts[model]) / len(groups[model]) for model in prompts)
    enough = sum(min(round(needed * in_each), number) for number in images.values())
    numbers = [*map(len, prompts.values())]
    counts = f"{range_text(numbers)} prompt{'s' * (max(numbers) > 1)}"
    if groups != prompts:
        counts += f" in {range_text([*map(len, groups.values())])} groups, which count as one each,"
    advice = f" (--n {enough})" if len(selection) < enough else ""
    least = f"a test needs {LEAST_FOR_A_TEST} and a decision {LEAST_RATED}"
    if fewest >= LEAST_RATED:
        least = (
            f"differences from {smallest_difference(TYPICAL_SPREAD, fewest):.2f} on are "
            "found four times in five"
        )
    return (
        f"{counts} of each generator: {least}; to show that one is not worse by {ADVISED_MARGIN:g} "
        f"takes about {needed:.0f} of each, if ratings spread as on ImagenHub{advice}"
    )
