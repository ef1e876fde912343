"""Evidence for a gate: the differences of a challenger's scores from a reference's, on prompts that
both have scores for, and with failures counted as the lowest score.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Literal, TypeAlias

import numpy as np
import scipy

from vieval_plugin.images import decode, digest
from vieval_plugin.judges.contests import candidates_of
from vieval_plugin.judges.protocol import (
    FAILED_CALLS,
    OUTPUTS,
    Image,
    Sample,
    Status,
    Verdict,
    outputs,
    worst,
)
from vieval_plugin.judges.refusals import ECHO, letters
from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.meta_evaluation.generator_means import clusters_of, generators_of
from vieval_plugin.meta_evaluation.measures import PromptScore
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.meta_evaluation.win_rates import (
    EVEN,
    ContestOutcome,
    outcomes_between,
)
from vieval_plugin.records import YOUR_IMAGES, Record, Run
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.comparison import Bools
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.decisions import LARGE_FALL, ONE_SIDED_LEVEL
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.non_inferiority import MeanOfDifferences
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import none_to_nan

#: Statuses worth judging again: the call failed or was never made, rather than the generator having
#: failed or the judge having been unreadable.
_RETRYABLE = (*FAILED_CALLS, Status.MISSING)
#: Ways to spoil images: each gets the image of another prompt, or each is degraded.
Spoiling: TypeAlias = Literal["exchanged", "degraded"]
_ROUNDING = 1e-9
_ImagesByPrompt: TypeAlias = Mapping[str, Sequence[Observation]]


@dataclass(frozen=True)
class PromptFall:
    """A prompt on which a generator's score is lower than that of a reference, or on which it
    alone has none.
    """

    #: The prompt's uid, after its part and a slash.
    prompt: str
    reference: str
    #: Mean score of the generator's images; NaN where it has none.
    score: float
    #: Mean score of the reference's images; NaN of a contest.
    reference_score: float
    #: Status of the generator's image where it has no score.
    status: str = ""

    @property
    def difference(self) -> float:
        """The generator's score less the reference's; minus infinity where it has none."""
        if self.status:
            return -math.inf
        return self.score - self.reference_score


@dataclass(frozen=True)
class ControlResult:
    """Verdicts on spoilt images beside those on the build's own."""

    #: The way in which they were spoilt.
    spoiling: Spoiling
    #: Number of prompts with both verdicts, or of prompts that could be spoilt where those were too
    #: few.
    n: int
    #: Change of the score, or share of contests that the build's own images won; None where nothing
    #: was judged.
    estimate: Estimate | None = None
    #: True where the judge saw a fall by more than the margin.
    seen: bool = False
    #: True where images were compared in contests.
    contests: bool = False


@dataclass(frozen=True)
class GateEvidence:
    """A generator, the challenger, less another, the reference, on the prompts or contests that
    a gate decides on.
    """

    #: Label of the challenger.
    challenger: str
    #: Label of the reference.
    reference: str
    #: Mean of differences where both have a score.
    scored: MeanOfDifferences
    #: The same with all failures as the lowest score.
    penalised: MeanOfDifferences
    #: Number of the reference's prompts, or of contests.
    items: int
    #: Prompts of both on which each failed more often than the other.
    more_failures: tuple[int, int]
    #: Prompts of each that could be judged again.
    unjudged: tuple[int, int]
    #: Verdicts on the reference whose reply could not be read, of how many.
    unread: tuple[int, int]
    #: Prompts on which both have a score of the judge.
    compared: int
    #: Prompts on which the score rose by more than `LARGE_FALL`; 0 of contests.
    rises: int
    #: Highest less lowest of the prompts' means of both; NaN without any.
    spread: float
    #: Prompts or contests with a difference below, above and of 0.
    signs: tuple[int, int, int]
    #: Prompts on which the challenger alone has no score, and those on which its score fell, the
    #: largest fall first.
    falls: tuple[PromptFall, ...] = ()

    @property
    def lacks_scores(self) -> bool:
        """True where the challenger alone has no score on some prompts, also if never judged."""
        return any(fall.status for fall in self.falls)

    @property
    def fell(self) -> int:
        """Prompts on which the score fell by more than `LARGE_FALL`; none of contests."""
        limit = -LARGE_FALL - _ROUNDING
        return sum(-math.inf < fall.difference < limit for fall in self.falls)


def gate_evidence(
    run: Run,
    ranking: Leaderboard,
    challenger: str,
    reference: str,
    options: StatisticsOptions,
) -> GateEvidence:
    """The evidence on two generators of a ranking, whatever the options say that a failed verdict
    is.

    Args:
        run: the verdicts that the ranking is of.
        ranking: by means, by corrected means or by win rates.
        challenger, reference: labels of the two.
        options: those of contests.
    """
    if ranking.measure.counts_contests:
        return _contest_evidence(run, ranking.aspect, challenger, reference, options)
    generators = {
        generator.image_model: generator
        for generator in generators_of(run, StatisticsOptions())
    }
    images = {}
    for name in (challenger, reference):
        side = generators[name]
        side_images: Sequence[Observation] = side.all
        if ranking.breakdown:
            side_images = side.having_value(ranking.breakdown, ranking.value)
        # the images of each prompt, without those that the judge does not apply to,
        # which no statistic sees
        images[name] = grouped(
            (image.group, image)
            for image in side_images
            if image.status is not Status.NOT_APPLICABLE
        )
    corrected = None
    if ranking.measure.uses_ratings:
        corrected = ranking.comparison.pair_of(challenger, reference)
    if corrected and corrected.first != challenger:
        corrected = corrected.turned
    return _image_evidence(ranking, images, corrected)


_ImageKey: TypeAlias = tuple[str, str, int]
#: The SHA-256 of the files of each of a generator's pictures, by part, uid and number; empty texts
#: where it is not known.
Files: TypeAlias = Mapping[_ImageKey, tuple[str, ...]]


def files_by_generator(records: Iterable[Record]) -> Mapping[str, Files]:
    """The files of each generator's pictures as they were judged, or as they are where they are
    yet to be judged.
    """
    files: dict[str, dict[_ImageKey, tuple[str, ...]]] = defaultdict(dict)
    for record in records:
        candidates = candidates_of(record.sample) if record.sample else ()
        digests_by_image = {sample.id: _digests_of(sample) for sample in candidates}
        if not candidates:
            row_digest = ""
            if record.row:
                row_digest = record.row.digest
            digests_by_image[record.id] = (row_digest,)
        for identity, digests in digests_by_image.items():
            generator_files = files[identity.image_model or YOUR_IMAGES]
            generator_files[identity.part, identity.uid, identity.draw] = digests
    return files


def are_same_files(first: Files, second: Files) -> bool:
    """Return whether both are pictures of the same prompts, and all are the very same files."""
    return bool(first) and first == second and all(map(all, first.values()))


def _digests_of(sample: Sample) -> tuple[str, ...]:
    """The SHA-256 of each output of a sample as it was judged; an empty text for one that is not
    known.
    """
    if not set(OUTPUTS) & set(sample.images):
        return ("",)
    return tuple(known_digest(image) for _, image in outputs(sample))


def shows_an_image(record: Record) -> bool:
    """True where an output of the samples of a record can be read, or no sample is known."""
    if record.sample is None:
        return True
    samples = candidates_of(record.sample)
    images = [image for sample in samples for _, image in outputs(sample)]
    return not samples or any(map(_can_be_read, images))


def _can_be_read(image: Image) -> bool:
    try:
        decode(image)
    except VievalError:
        return False
    return True


def known_digest(image: Image) -> str:
    """The SHA-256 of an image as it was judged; empty if it is unknown."""
    if len(image.sha256) == 64:
        return image.sha256
    if image.sha256:  # it stands for one that is not known
        return ""
    try:
        return digest(image)
    except VievalError:
        return ""


def _image_evidence(
    ranking: Leaderboard,
    images_by_prompt: Mapping[str, _ImagesByPrompt],
    corrected: SystemPair | None,
) -> GateEvidence:
    """The evidence of scores; a prompt of which the challenger has no verdict at all is one that
    could be judged.
    """
    aspect = ranking.aspect
    score_images = ranking.measure.score_images
    (challenger, challenger_images), (reference, reference_images) = (
        images_by_prompt.items()
    )
    prompts = list(reference_images)
    mine = [challenger_images.get(prompt, ()) for prompt in prompts]
    theirs = [reference_images[prompt] for prompt in prompts]
    sides = [[_scores(images, aspect) for images in side] for side in (mine, theirs)]
    lowest = _lowest(sides)
    fall = 1 - lowest
    means, scored = _prompt_means(sides, lowest, score_images)
    # a prompt that the challenger was not asked for is not a failure
    common_sides = [list(compress(side, mine)) for side in sides]
    usable = np.asarray(~np.isnan(scored).any(axis=0))
    differences = (scored[0] - scored[1])[usable]
    penalised = means[0] - means[1]
    if corrected:
        by_both, by_all = _corrected(corrected, penalised, usable, fall)
    else:
        by_both, by_all = _plain(differences, penalised, usable, reference_images, fall)
    rises = differences > LARGE_FALL + _ROUNDING
    return GateEvidence(
        challenger=challenger,
        reference=reference,
        scored=by_both,
        penalised=by_all,
        items=len(prompts),
        more_failures=_more_failures(common_sides),
        unjudged=(_unjudged(mine, aspect), _unjudged(theirs, aspect)),
        unread=_unread(reference_images, aspect),
        compared=len(differences),
        rises=int(rises.sum()),
        spread=_spread(scored),
        signs=_signs(differences),
        falls=_falls(reference, challenger_images, prompts, scored),
    )


def _lowest(sides: Sequence[Sequence[Floats]]) -> float:
    """The lowest of the scale: 0, or -1 for a metric with any score below 0."""
    if any((scores < 0).any() for scores in chain(*sides)):
        return -1.0
    return 0.0


def _plain(
    differences: Floats,
    penalised: Floats,
    usable: Bools,
    images_by_prompt: _ImagesByPrompt,
    fall: float,
) -> tuple[MeanOfDifferences, MeanOfDifferences]:
    """The mean of the usable prompts' differences, and of all penalised ones."""
    clusters = clusters_of(chain.from_iterable(images_by_prompt.values()))
    units = [clusters[prompt] for prompt in images_by_prompt]
    usable_units = list(compress(units, usable))
    by_both = MeanOfDifferences.from_differences(differences, usable_units, fall)
    by_all = MeanOfDifferences.from_differences(penalised, units, fall)
    return by_both, by_all


def _prompt_means(
    sides: Sequence[Sequence[Floats]], lowest: float, score_images: PromptScore
) -> tuple[Floats, Floats]:
    """The scores of prompts with failures as the lowest score, and those of the images with a
    score alone, NaN where none has.
    """
    penalised = [
        [np.nan_to_num(scores, nan=lowest) for scores in side] for side in sides
    ]
    known = [[scores[~np.isnan(scores)] for scores in side] for side in sides]
    return _prompt_scores(penalised, score_images), _prompt_scores(known, score_images)


def _falls(
    reference: str,
    challenger_images: _ImagesByPrompt,
    prompts: list[str],
    scored: Floats,
) -> tuple[PromptFall, ...]:
    falls = []
    for prompt, score, reference_score in zip(prompts, *scored.tolist(), strict=True):
        if math.isnan(reference_score):
            continue
        failure = ""
        if math.isnan(score):
            # the status of images of which none has a score
            statuses = [
                image.status for image in challenger_images.get(prompt, ())
            ] or [Status.MISSING]
            failure = str(worst(statuses))
        elif score - reference_score >= -_ROUNDING:
            continue
        falls.append(
            PromptFall(
                prompt=prompt,
                reference=reference,
                score=score,
                reference_score=reference_score,
                status=failure,
            )
        )
    falls.sort(key=lambda fall: fall.difference)
    return tuple(falls)


def _more_failures(sides: Sequence[Sequence[Floats]]) -> tuple[int, int]:
    """The number of prompts on which each side failed more often than the other.

    With several images a prompt, as many count as the side with fewer has: otherwise the side
    with more images would seem to fail more often.
    """
    more = 0
    fewer = 0
    for mine, theirs in zip(*sides, strict=True):
        image_count = min(len(mine), len(theirs))
        my_failures = np.isnan(mine[:image_count]).sum()
        their_failures = np.isnan(theirs[:image_count]).sum()
        more += int(my_failures > their_failures)
        fewer += int(my_failures < their_failures)
    return more, fewer


def _signs(differences: Floats) -> tuple[int, int, int]:
    """The numbers of differences below, above and of 0."""
    lower = int((differences < -_ROUNDING).sum())
    higher = int((differences > _ROUNDING).sum())
    return lower, higher, len(differences) - lower - higher


def _prompt_scores(
    sides: Sequence[Sequence[Floats]], score_images: PromptScore
) -> Floats:
    """The scores of prompts, shape (sides, prompts); NaN of those with too few images."""
    rows = []
    for side in sides:
        row = []
        for images in side:
            score = None
            if images.size:
                score = score_images(images.tolist())
            row.append(none_to_nan(score))
        rows.append(row)
    return np.array(rows, dtype=float)


def _unjudged(images_by_prompt: Iterable[Sequence[Observation]], aspect: str) -> int:
    """Number of prompts that could be judged again."""
    return sum(_could_be_judged_again(images, aspect) for images in images_by_prompt)


def _could_be_judged_again(images: Sequence[Observation], aspect: str) -> bool:
    """True where the prompt has no rated image, or an image whose call or tool failed."""
    failed = (
        image.status in _RETRYABLE and aspect not in image.scores for image in images
    )
    return not _rated(images, aspect) or any(failed)


def _unread(images_by_prompt: _ImagesByPrompt, aspect: str) -> tuple[int, int]:
    """Number of verdicts without a score whose reply could not be read, and of all."""
    images = [*chain(*images_by_prompt.values())]
    failures = [
        image
        for image in images
        if image.status is Status.PARSE_FAILURE and aspect not in image.scores
    ]
    return len(failures), len(images)


def _spread(means: Floats) -> float:
    """Highest less lowest of means, NaN without any."""
    defined_means = means[~np.isnan(means)]
    if defined_means.size:
        return float(np.ptp(defined_means))
    return math.nan


def _scores(images: Sequence[Observation], aspect: str) -> Floats:
    """The scores of a prompt's images, NaN of those that failed; one NaN without images."""
    rated = _rated(images, aspect)
    scores = [image.scores.get(aspect, math.nan) for image in rated]
    return np.array(scores or [math.nan])


def _rated(images: Sequence[Observation], aspect: str) -> list[Observation]:
    """Images with a score, and those that should have one."""
    return [
        image for image in images if aspect in image.scores or not image.status.usable
    ]


def _corrected(
    pair: SystemPair, penalised: Floats, usable: Bools, fall: float
) -> tuple[MeanOfDifferences, MeanOfDifferences]:
    """The corrected difference, and that with the judge's penalised difference on each prompt on
    which a side failed.

    People do not rate missing images, so ratings correct only the mean over the prompts that both
    sides have; the share of such prompts is itself estimated and adds its own error.
    """
    difference = pair.result.difference
    n = pair.n
    # the end that the scale cut off says nothing of the error
    half = max(difference.high - difference.value, difference.value - difference.low)
    degrees = max(n - 1, 1)
    t_quantile = scipy.stats.t.ppf(1 - ONE_SIDED_LEVEL, degrees)
    error = half / float(t_quantile)
    mixed = np.where(usable, difference.value, penalised)
    standard_error = float(mixed.std(ddof=1)) / math.sqrt(len(mixed))
    mixed_error = math.hypot(standard_error, float(usable.mean()) * error)
    by_both = MeanOfDifferences(
        value=difference.value,
        error=error,
        n=n,
        fall=fall,
    )
    by_all = MeanOfDifferences(
        value=float(mixed.mean()),
        error=mixed_error,
        n=n,
        fall=fall,
    )
    return by_both, by_all


def _mean_lead(outcomes: Sequence[ContestOutcome]) -> MeanOfDifferences:
    leads = [outcome.points - EVEN for outcome in outcomes]
    groups = [outcome.group for outcome in outcomes]
    return MeanOfDifferences.from_differences(leads, groups, EVEN)


def _contest_evidence(
    run: Run, subject: str, challenger: str, reference: str, options: StatisticsOptions
) -> GateEvidence:
    """The evidence of win rates, less one half: a contest that could not be judged counts as
    lost by the challenger.
    """
    outcomes = outcomes_between(run, subject, challenger, reference, options)
    unjudged = _inapplicable_contests(run, {challenger, reference})
    decided = []
    falls = []
    their_failures = 0
    for outcome in outcomes:
        if outcome.failed is None:
            decided.append(outcome)
        elif outcome.status in _RETRYABLE:
            unjudged += 1
        if outcome.failed == (False, True):
            their_failures += 1
        if outcome.failed == (True, False):
            status = str(outcome.status)
            fall = PromptFall(
                prompt=outcome.group,
                reference=reference,
                score=math.nan,
                reference_score=math.nan,
                status=status,
            )
            falls.append(fall)
    by_both = _mean_lead(decided)
    by_all = _mean_lead(outcomes)
    parse_failures = sum(outcome.status is Status.PARSE_FAILURE for outcome in outcomes)
    points = np.array([outcome.points for outcome in decided])
    differences = np.array([outcome.points - EVEN for outcome in decided])
    return GateEvidence(
        challenger=challenger,
        reference=reference,
        scored=by_both,
        penalised=by_all,
        items=len(outcomes),
        more_failures=(len(falls), their_failures),
        unjudged=(unjudged, unjudged),
        unread=(parse_failures, len(outcomes)),
        compared=len(decided),
        rises=0,
        spread=_spread(points),
        signs=_signs(differences),
        falls=tuple(falls),
    )


def _inapplicable_contests(run: Run, image_models: set[str]) -> int:
    """Number of contests with these image models that the judge does not apply to."""
    contests = 0
    for records in run.records_by_sample:
        if records[0].votes:
            observation = observe(records)
            contest = observation.contest
            if contest and observation.status is Status.NOT_APPLICABLE:
                contests += image_models <= set(contest.image_models)
    return contests


def fillers(records: Sequence[Record]) -> list[Record]:
    """The records whose scores are likely filled in.

    Args:
        records: those among which a reasoning may recur, such as those of two generators.

    Returns:
        Records with a reasoning that repeats the request, or with zeros alone beside a reasoning
        that stands beside zeros in another record too. A generator of black pictures can earn
        these: they are fillers only where both generators have them.
    """
    reasonings = [_zero_reasonings(record.verdict) for record in records]
    counts = Counter(chain.from_iterable(reasonings))
    filler_records = []
    for record, record_reasonings in zip(records, reasonings, strict=True):
        repeats = any(counts[reasoning] > 1 for reasoning in record_reasonings)
        if repeats or ECHO in record.verdict.findings:
            filler_records.append(record)
    return filler_records


def _zero_reasonings(verdict: Verdict) -> set[str]:
    """The reasonings of the answers whose scores are all 0."""
    zeros = [
        step
        for step in verdict.trace
        if step.status.usable and step.scores and not any(step.scores)
    ]
    return {letters(step.reason) for step in zeros if step.reason}
