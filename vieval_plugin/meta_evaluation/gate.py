"""Evidence of a gate: a new generator less an old one by one judge, where both have scores and with failures as the lowest."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy import stats

from vieval_plugin.errors import VievalError
from vieval_plugin.images import digest
from vieval_plugin.judges.contests import candidates_of
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, outputs
from vieval_plugin.meta_evaluation.corrected_ranking import CORRECTED
from vieval_plugin.meta_evaluation.generator_means import generators_of, named_with_part
from vieval_plugin.meta_evaluation.generator_ranking import GeneratorRanking
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.win_rates import EVEN, WIN_RATE, outcomes_between
from vieval_plugin.records import Run
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.non_inferiority import LEVEL, MeanOfDifferences
from vieval_plugin.stats.options import StatisticsOptions

NOT_ASKED = (Status.API_ERROR, Status.TOOL_ERROR, Status.MISSING)
"""Statuses of what can be judged again: no failure of the generator, nor of what the judge said of it."""
LARGE_FALL = 0.3
_ROUNDING = 1e-9


@dataclass(frozen=True)
class GateEvidence:
    """A new generator less an old one on the prompts, or contests, that a gate decides on.

    `scored` is the mean of differences where both have a score, `filled` that with all failures as the lowest score.
    `items` is how many prompts the old one has, `more_failures` on how many of these the new one and the old one failed
    more often than the other, `unjudged` how many of the new one and of the old one could be judged again. `fell` counts
    prompts on which the score fell by more than `LARGE_FALL`. `same_files`: all pictures of both are the same files.
    """

    scored: MeanOfDifferences
    filled: MeanOfDifferences
    items: int
    more_failures: tuple[int, int]
    unjudged: tuple[int, int]
    fell: int = 0
    same_files: bool = False


def gate_evidence(run: Run, ranking: GeneratorRanking, new: str, old: str, options: StatisticsOptions) -> GateEvidence:
    """The evidence on two generators of a ranking, whatever the options say that a failed verdict is.

    Args:
        run: the verdicts that the ranking is of.
        ranking: by means, by corrected means or by win rates.
        new, old: labels of the two.
        options: those of contests.
    """
    same = same_files(_pictures(run), new, old)
    if ranking.statistic == WIN_RATE:
        return _of_contests(run, ranking.aspect, new, old, options, same)
    generators = {g.image_model: named_with_part(g) for g in generators_of(run, StatisticsOptions())}
    sides = [
        _by_prompt(generator.with_word(ranking.heading, ranking.word) if ranking.heading else generator.all)
        for generator in (generators[new], generators[old])
    ]
    return _of_images(ranking, sides[0], sides[1], new, old, same)


def same_files(pictures: Iterable[tuple[SampleId, tuple[str, ...]]], new: str, old: str) -> bool:
    """True where two generators made the same prompts' pictures, and all are the very same files.

    Args:
        pictures: of samples of any generators, the SHA-256 of their files; empty texts where that is not known.
        new, old: the generators.
    """
    files: dict[str, dict[tuple[str, str, int], tuple[str, ...]]] = defaultdict(dict)
    for identity, digests in pictures:
        files[identity.image_model][identity.part, identity.uid, identity.draw] = digests
    return bool(files[new]) and files[new] == files[old] and all(map(all, files[new].values()))


def digests_of(sample: Sample) -> tuple[str, ...]:
    """The SHA-256 of each output of a sample as it was judged; an empty text for one that is not known."""
    return tuple(image.sha256 or _digest(image) for _, image in outputs(sample)) if sample.images else ("",)


def _digest(image: Image) -> str:
    try:
        return digest(image)
    except VievalError:
        return ""


def _pictures(run: Run) -> Iterator[tuple[SampleId, tuple[str, ...]]]:
    for record in (record for judged in chain(*run.records.values()) for record in judged):
        if record.row:
            yield record.id, (record.row.digest,)
        elif record.sample is None:
            yield record.id, ("",)
        else:
            yield from ((sample.id, digests_of(sample)) for sample in candidates_of(record.sample))


def _by_prompt(images: Sequence[Observation]) -> dict[str, list[Observation]]:
    """The images of each prompt, without those that the judge does not apply to, which no statistic sees."""
    by_prompt: dict[str, list[Observation]] = defaultdict(list)
    for image in images:
        if image.status is not Status.NOT_APPLICABLE:
            by_prompt[image.group].append(image)
    return by_prompt


def _of_images(
    ranking: GeneratorRanking,
    new_images: Mapping[str, Sequence[Observation]],
    old_images: Mapping[str, Sequence[Observation]],
    new: str,
    old: str,
    same: bool,
) -> GateEvidence:
    """The evidence of scores; a prompt of which the new generator has no verdict at all is one that could be judged."""
    prompts = list(old_images)
    new_scores, old_scores = (
        [_scores(side.get(p, ()), ranking.aspect) for p in prompts] for side in (new_images, old_images)
    )
    known = [score for scores in (*new_scores, *old_scores) for score in scores if not math.isnan(score)]
    lowest = -1.0 if min(known, default=0.0) < 0 else 0.0
    pairs = list(zip(new_scores, old_scores, strict=True))
    filled = np.array([np.mean(np.nan_to_num(n, nan=lowest)) - np.mean(np.nan_to_num(o, nan=lowest)) for n, o in pairs])
    both = np.array([not (np.isnan(n).all() or np.isnan(o).all()) for n, o in pairs], dtype=bool)
    scored = np.array([np.nanmean(n) - np.nanmean(o) for (n, o), has in zip(pairs, both, strict=True) if has])
    failed = np.array([np.isnan(n).mean() - np.isnan(o).mean() for n, o in pairs])
    unjudged = tuple(
        sum(any(image.status in NOT_ASKED for image in side.get(p, ())) or p not in side for p in prompts)
        for side in (new_images, old_images)
    )
    means = [MeanOfDifferences.of(d, range(len(d)), 1 - lowest) for d in (scored, filled)]
    if ranking.statistic == CORRECTED:
        means = _corrected(ranking, new, old, filled, both, 1 - lowest)
    return GateEvidence(
        means[0],
        means[1],
        len(prompts),
        (int((failed > 0).sum()), int((failed < 0).sum())),
        (unjudged[0], unjudged[1]),
        int((scored < -LARGE_FALL - _ROUNDING).sum()),
        same,
    )


def _scores(images: Sequence[Observation], aspect: str) -> Floats:
    """The scores of a prompt's images, NaN of those that failed; one NaN without images."""
    rated = [image for image in images if aspect in image.scores or not image.status.usable]
    return np.array([image.scores.get(aspect, math.nan) for image in rated] or [math.nan])


def _corrected(
    ranking: GeneratorRanking, new: str, old: str, filled: Floats, both: Bools, fall: float
) -> list[MeanOfDifferences]:
    """The corrected difference, and that with each prompt on which a side failed at the judge's filled difference.

    People rate no picture that is not there: what they correct is the mean of the prompts that both have, and how many
    these are of all adds an error of its own.
    """
    pair = ranking.comparison.pair_of(new, old)
    difference, n = Estimate(math.nan), 0
    if pair is not None:
        difference, n = (pair.result if pair.first == new else pair.result.turned).difference, pair.n
    error = (difference.high - difference.low) / 2 / float(stats.t.ppf(1 - LEVEL, max(n - 1, 1)))
    mixed = np.where(both, difference.value, filled)
    spread = float(mixed.std(ddof=1)) / math.sqrt(len(mixed)) if len(mixed) > 1 else math.nan
    mixed_error = math.hypot(spread, float(both.mean()) * error)
    return [
        MeanOfDifferences(difference.value, error, n, fall),
        MeanOfDifferences(float(mixed.mean()), mixed_error, n, fall),
    ]


def _of_contests(run: Run, subject: str, new: str, old: str, options: StatisticsOptions, same: bool) -> GateEvidence:
    """The evidence of win rates, less one half: a contest that could not be judged counts as lost by the new one."""
    outcomes = outcomes_between(run, subject, new, old, options)
    answered = [outcome for outcome in outcomes if outcome.failed is None]
    failed = [outcome.failed for outcome in outcomes if outcome.failed is not None]
    unjudged = sum(outcome.failed is not None and outcome.status in NOT_ASKED for outcome in outcomes)
    scored, filled = (
        MeanOfDifferences.of([o.points - EVEN for o in counted], [o.group for o in counted], EVEN)
        for counted in (answered, outcomes)
    )
    alone = failed.count((True, False)), failed.count((False, True))
    return GateEvidence(scored, filled, len(outcomes), alone, (unjudged, unjudged), same_files=same)
