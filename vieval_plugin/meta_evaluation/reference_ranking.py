"""Image models ranked by a judge's mean scores, beside an order that is given from outside, such
as an arena's.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.meta_evaluation.findings import Number
from vieval_plugin.meta_evaluation.observations import apply_failure_policy, observe
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.records import Record, Run
from vieval_plugin.stats.bootstrap import cluster_counts, interval
from vieval_plugin.stats.correlation import Floats, correlation, undefined
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import (
    footrule,
    ranks,
    resampled_means,
    resampled_rankings,
)
from vieval_plugin.text.errors import VievalError

ORDER = "order"
_MOST_BYTES = 1 << 20
_STATISTICS: Mapping[str, Callable[[ArrayLike, ArrayLike], float]] = {
    "footrule": footrule,
    "rho": correlation,
    "tau": partial(correlation, coefficient="kendall"),
}


def ranking_against(
    order: Sequence[str],
    parts: Sequence[str],
    runs: Sequence[Run],
    options: StatisticsOptions,
) -> Iterator[Number]:
    """Footrule, rho and tau of each part, judge and aspect of which two or more image models are in
    an order.

    The intervals are those of a bootstrap over what image models were given (instructions), which
    all of them share. An image model without a score is left out, and so is one that is not in the
    order.

    Args:
        order: image models, the best first.
        parts: all parts of a benchmark, in order.
        runs: one a judge, labels all different.
        options: what failed verdicts are, how many draws, the seed.

    Returns:
        `footrule` >= 0, `rho` and `tau` in [-1, 1], n being the image models; the judge's rank of
        each of these.
    """
    if len(order) < 2:
        return
    for part in parts:
        for run in runs:
            if part in run.records:
                for aspect in run.aspects:
                    yield from _aspect_numbers(run, part, aspect, options, order)


def _aspect_numbers(
    run: Run,
    part: str,
    aspect: str,
    options: StatisticsOptions,
    order: Sequence[str],
) -> Iterator[Number]:
    """Footrule, rho and tau of one aspect, and the rank of each image model."""
    scores = _scores(run.records[part], run.aspects, aspect, options)
    scored_models = {model for model, *_ in scores}
    models = [model for model in order if model in scored_models]
    if len(models) < 2:
        return
    reference = -np.arange(len(models), dtype=float)
    table, groups = _table(scores, models)
    means = np.array([float(np.nanmean(row)) for row in table])
    resampled = _resampled_statistics(
        table, groups, reference, f"{run.benchmark}/{part}", options
    )
    reason = undefined(means, reference)
    reason = reason.replace("values of the first variable", "scores of the judge")
    for (name, statistic), resamples in zip(
        _STATISTICS.items(), resampled, strict=True
    ):
        value = statistic(means, reference)
        low, high = interval(resamples)
        estimate = Estimate(
            value=value,
            low=low,
            high=high,
            resamples=resamples,
            n=len(models),
            reasons=(reason,),
        )
        yield Number(
            run.label,
            estimate,
            part,
            aspect,
            f"{name}_of_order",
            key=Key(
                table=ORDER,
                task=part,
                image_model="",
                judge=run.label,
                statistic=name,
                aspect=aspect,
            ),
        )
    for model, rank in zip(models, ranks(means), strict=True):
        yield Number(
            run.label,
            Estimate(rank),
            part,
            aspect,
            "rank_of_order",
            breakdown="image_model",
            value=model,
        )


def _resampled_statistics(
    table: Floats,
    groups: Sequence[str],
    reference: Floats,
    name: str,
    options: StatisticsOptions,
) -> tuple[Floats, Floats, Floats]:
    """Each of `_STATISTICS` in each resample of the items; `name` joins the seed."""
    seed = [options.seed, zlib.crc32(name.encode())]
    counts = cluster_counts(groups, options.draws, seed)
    return resampled_rankings(resampled_means(table, counts), reference)


def _scores(
    judged: Sequence[Sequence[Record]],
    aspects: Sequence[str],
    aspect: str,
    options: StatisticsOptions,
) -> list[tuple[str, str, str, float]]:
    """Image model, group, uid and score of each output that has one, in a fixed order; of
    contests, of each candidate once.
    """
    samples = [observe(records) for records in judged if not records[0].candidates]
    score_by_output = {}
    for observation in apply_failure_policy(samples, aspects, options):
        if aspect in observation.scores:
            output = (observation.image_model, observation.group, observation.uid)
            score_by_output[output] = observation.scores[aspect]
    for record, *_ in judged:
        choice = record.verdict.choice
        candidate_scores = choice.scores if choice else ()
        for candidate, scores in zip(record.candidates, candidate_scores, strict=False):
            if aspect in scores:
                output = (candidate.image_model, record.group, candidate.uid)
                score_by_output[output] = scores[aspect]
    return [(*key, score) for key, score in sorted(score_by_output.items())]


def _table(
    scores: Sequence[tuple[str, str, str, float]], models: Sequence[str]
) -> tuple[Floats, list[str]]:
    """Scores of shape (models, items), NaN where a model has none, and the group of each item."""
    items = sorted({(group, uid) for _, group, uid, _ in scores})
    table = np.full((len(models), len(items)), np.nan)
    row = {name: index for index, name in enumerate(models)}
    column = {name: index for index, name in enumerate(items)}
    for model, group, uid, score in scores:
        if model in row:
            table[row[model], column[group, uid]] = score
    return table, [group for group, _ in items]


def read_order(path: Path) -> tuple[str, ...]:
    """Image models, the best first, from a file with one a line; empty lines do not count.

    Raises:
        VievalError: the file cannot be read, names one twice, or fewer than two.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(f"cannot read {path}: {error}") from None
    if len(text) > _MOST_BYTES:
        raise VievalError(
            f"{path}: too large for a list of image models (limit {_MOST_BYTES} bytes)"
        )
    names = tuple(filter(None, map(str.strip, text.splitlines())))
    counts = Counter(names)
    repeated = [name for name, times in counts.items() if times > 1]
    if repeated:
        raise VievalError(
            f"{path}: lists {repeated[0]!r} twice; list each image model once"
        )
    if len(names) < 2:
        raise VievalError(
            f"{path}: must list at least two image models, one per line, best first"
        )
    return names
