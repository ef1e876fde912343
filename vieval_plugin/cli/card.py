"""Measure how good a judge your model is.

The model judges a sample of each prepared benchmark. The card shows how far it agrees with
annotators and with itself, its place among published judges, and which changed images deceive it.

Examples:
    # count the calls first
    vieval card --plan --model NAME --base-url http://127.0.0.1:8000/v1
    # make a card of a model
    vieval card --model NAME --base-url http://127.0.0.1:8000/v1
    # make a card from existing verdicts
    vieval card out/my-run
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import Count, OutputPath, argument, flag, number_between, tell
from vieval_plugin.cli.options import (
    BackboneOptions,
    BatchedOptions,
    JudgeOptions,
    PublishedOptions,
    SeedOptions,
    batch_of,
    judge_flag,
    named_backbone,
    options_in_force,
    remove_batches,
)

if TYPE_CHECKING:
    from vieval_plugin.card.card import Card
    from vieval_plugin.card.placing import PlacedJudge
    from vieval_plugin.config import Backbone, Config
    from vieval_plugin.run.prepare import PreparedJudge
    from vieval_plugin.stats.options import StatisticsOptions

JUDGES = ("viescore", "pairwise")
#: What a model is judged by and on, unless told otherwise.
BENCHMARKS = ("imagenhub", "genai_bench_tiger", "mmrb2", "editreward_bench_tiger")


class CardOptions(
    PublishedOptions, SeedOptions, JudgeOptions, BackboneOptions, BatchedOptions
):
    """Options of `vieval card`."""

    results: list[Path] = argument(
        "existing verdicts from lmms-eval, VLMEvalKit or vieval score, instead of new ones",
        nargs="*",
    )
    benchmark: list[str] = flag(
        "benchmark to judge; may be repeated (default: those of "
        f"{', '.join(BENCHMARKS)} that are prepared)"
    )
    samples: Count | None = flag(
        "samples per benchmark (default: 600, or 400 for contests)", metavar="N"
    )
    repeats: int = flag(
        "samples to judge three times (default: %(default)s)",
        50,
        type=number_between(0),
        metavar="N",
    )
    audit: int = flag(
        "samples to judge with changed images (default: %(default)s)",
        20,
        type=number_between(0),
        metavar="N",
    )
    budget: int | None = flag(
        "stop before the first call if more than CALLS are needed (questions asked again "
        "do not count)",
        type=number_between(0),
        metavar="CALLS",
    )
    plan: bool = flag("print the number of calls, and exit")
    out: OutputPath | None = flag(
        "folder for the card and its verdicts (default: card-MODEL)"
    )
    judge: list[str] = judge_flag(" and ".join(JUDGES))


def run(options: CardOptions) -> int:
    from dataclasses import replace

    from vieval_plugin.card.from_results import card_from_results, results_of_model
    from vieval_plugin.card.sentences import limits
    from vieval_plugin.card.writing import write_card
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.results.host_samples import CARD_JSON
    from vieval_plugin.results.published.files import NAME
    from vieval_plugin.text.escaping import say

    current = options_in_force(options)
    seed = current.statistics.seed if options.seed is None else options.seed
    statistics = replace(current.statistics.options(), seed=seed)
    published = options.published or current.data_folder() / NAME
    if options.published:
        _require_published(options.published)
    if options.results:
        results = results_of_model(options.results, options.model)
        folder = options.out or _folder_of(results.model)
        require_writable(folder / CARD_JSON, reads=results.files)
        card, judges = card_from_results(results, published, folder, statistics, tell)
        failed = False
    else:
        judged = _judged(options, current, published, statistics)
        if judged is None:
            return 0
        card, judges, folder, failed = judged
    write_card(card, judges, folder)
    notes = [f"note: {line}" for line in card.left_out]
    say(*card.answers, *limits(judges, card), *notes, answer=True)
    say(
        f"wrote {folder / 'card.html'} (open it in a browser), card.md and card.json (seed {seed})"
    )
    return int(failed)


def _require_published(folder: Path) -> None:
    from vieval_plugin.results.published.files import (
        NAME,
        descriptions,
        published_files,
    )
    from vieval_plugin.results.published.judges import present
    from vieval_plugin.text.errors import VievalError, docs_url

    if not folder.is_dir():
        raise VievalError(
            f"--published {folder}: no such folder; run `vieval prepare {NAME}` to "
            "download published verdicts"
        )
    if not any(present(benchmark, folder) for benchmark in descriptions()):
        examples = {
            file.place.partition("/")[0]: file.place for file in published_files()
        }.values()
        raise VievalError(
            f"--published {folder} must contain all of a judge's verdicts on a part, such as "
            f"{' or '.join(examples)}; run `vieval prepare {NAME}` to download them, or omit "
            "--published for a card without a place; see "
            f"{docs_url('guides/comparing.md#a-card-of-your-model')}"
        )


def _folder_of(model: str) -> Path:
    return Path(f"card-{re.sub(r'[^A-Za-z0-9_.-]+', '-', model.rpartition('/')[2])}")


def _judged(
    options: CardOptions,
    current: Config,
    published: Path,
    statistics: StatisticsOptions,
) -> tuple[Card, list[PlacedJudge], Path, bool] | None:
    """The card of a model that is asked, its judges, its folder, and whether calls failed; None
    where only a plan is wanted.
    """
    from dataclasses import replace
    from functools import partial

    from vieval_plugin.card.from_model import (
        CardRequest,
        card_jobs,
        make_card,
        plan_card,
    )
    from vieval_plugin.card.judging import Judging
    from vieval_plugin.card.plan import require_budget
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.results.host_samples import CARD_JSON
    from vieval_plugin.run.evaluate import provenance_of
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.run.session import ask_in_batches
    from vieval_plugin.text.escaping import say

    backbone = named_backbone(options, current)
    judges = _prepared(options, current, backbone)
    model = provenance_of(judges[0], current, backbone).backbone
    folder = options.out or _folder_of(model)
    judging = Judging(current, backbone, Progress())
    request = CardRequest(
        model,
        tuple(dict.fromkeys(options.benchmark or BENCHMARKS)),
        judges,
        options.samples,
        options.repeats,
        options.audit,
        published,
        folder,
        statistics,
    )
    plan = asyncio.run(plan_card(request, judging))
    notes = [f"note: {line}" for line in plan.unprepared]
    # the answer comes first on standard output: the plan, or else the card
    stream = sys.stdout if options.plan else sys.stderr
    seed = f"(seed {statistics.seed})"
    say(f"card of {model} {seed}", *plan.lines, *notes, file=stream)
    require_budget(plan.calls, options.budget)
    if options.plan:
        return None
    require_writable(folder / CARD_JSON)
    batch = batch_of(options, folder / "batches")
    if batch:
        asking = [judge for judge in judges if judge.asks_a_model]
        asyncio.run(
            ask_in_batches(
                partial(card_jobs, request, plan), asking, current, backbone, batch
            )
        )
        judging = replace(judging, batch=batch)
    try:
        card, placed = make_card(request, plan, judging, tell)
    finally:
        tell(judging.progress)
    failed = bool(judging.progress.failed_calls)
    if not failed:
        remove_batches(options, batch)
    return card, placed, folder, failed


def _prepared(
    options: CardOptions, current: Config, backbone: Backbone | None
) -> list[PreparedJudge]:
    """The judges; where there are several, a setting is for those that have it."""
    from vieval_plugin.judges import registry as judge_registry
    from vieval_plugin.run.backbones import require_model
    from vieval_plugin.run.prepare import prepare

    names = list(dict.fromkeys(options.judge or JUDGES))
    judges = []
    for name in names:
        spec = judge_registry.judge(name, current.judge_files)
        has_setting = len(names) == 1 or options.setting in spec.settings
        setting = options.setting if has_setting else None
        judge = prepare(name, setting, current, backbone)
        if judge.asks_a_model:
            require_model(name, current, backbone)
        judges.append(judge)
    return judges
