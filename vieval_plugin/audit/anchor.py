"""Anchors: samples with repeated verdicts of a judge, for testing later whether the
judge has drifted.

An anchor is a verdict file as written by `vieval score`, with several runs on the same
samples. All commands that read results can read it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from vieval_plugin import config
from vieval_plugin.audit.audit import PREFERENCE, aspect_scores
from vieval_plugin.config import Backbone, Config
from vieval_plugin.images import (
    digest,
    format_of,
    images_of,
    is_there,
    name_of,
    read_bytes,
)
from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.judges.protocol import (
    FAILED_CALLS,
    Image,
    Sample,
    SampleId,
    Status,
    Verdict,
)
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.tables import p_sentence, p_text
from vieval_plugin.records import Provenance, Record
from vieval_plugin.results.baseline import REPEAT, unsent_fields
from vieval_plugin.results.lookup import Lookup, open_results, require_as_judged
from vieval_plugin.run import loop
from vieval_plugin.run.backbones import JUDGE, require_model
from vieval_plugin.run.evaluate import outcomes_of, provenance_of
from vieval_plugin.run.prepare import PreparedJudge, prepare, setting_of
from vieval_plugin.run.progress import Progress
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.decisions import DRIFT_LEVEL
from vieval_plugin.stats.drift import DriftTest, drift_tests
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.tables import text_table
from vieval_plugin.text.wording import plural

REPEATS = 3
#: Seed of the samples of an anchor, and of the tests for drift.
SEED = 0
#: Smallest number of samples that allows a conclusion.
LEAST_ITEMS = 20

#: Statuses that do not depend on the judge.
_NO_ANSWER = (*FAILED_CALLS, Status.MISSING, Status.NO_IMAGE)


@dataclass(frozen=True)
class Anchor:
    """Samples of an anchor, with the verdicts of each repeat and their judge."""

    judged: tuple[Judged, ...]
    repeats: tuple[tuple[Verdict, ...], ...]
    provenance: Provenance


@dataclass(frozen=True)
class DriftReport:
    """Result of a drift check: `tests` on `n` of `total` samples, and one row of means
    per kind and aspect.

    A row of `means` has the kind, the aspect, the number of samples, and the means of
    the new answers and of the repeats.
    """

    tests: tuple[DriftTest, ...]
    n: int
    total: int
    means: tuple[tuple[str, str, int, float, float], ...]

    @property
    def decision(self) -> str:
        """`drift`, `no_drift`, or `undecided` if too few samples have answers."""
        if self.n < LEAST_ITEMS or self.n * 2 < self.total:
            return "undecided"
        is_drift = any(test.adjusted <= DRIFT_LEVEL for test in self.tests)
        return "drift" if is_drift else "no_drift"


def source_of(lookup: Lookup) -> Provenance:
    """Return the judge of results without the label of its run; VievalError if there
    are several.
    """
    sources = {
        replace(record.provenance, label="", config_hash="")
        for record in lookup.records
    }
    if len(sources) > 1:
        names = ", ".join(
            sorted(
                {
                    " ".join((source.judge, *source.settings, source.backbone)).strip()
                    for source in sources
                }
            )
        )
        raise VievalError(
            "an anchor requires verdicts from one judge with one set of options, got "
            f"{len(sources)} ({names})"
        )
    return next(record.provenance for record in lookup.records)


def anchor_samples(lookup: Lookup, n: int, seed: int) -> list[Judged]:
    """Choose at most n samples of results at random, as evenly as possible over parts,
    kinds and image models.

    Raises:
        VievalError: fewer than `LEAST_ITEMS` can be judged again.
    """
    strata = grouped(
        (
            (record.id.benchmark, record.id.part, record.kind, record.id.image_model),
            record,
        )
        for record in lookup.records
        if record.verdict.status not in (*_NO_ANSWER, Status.NOT_APPLICABLE)
    )
    rng = np.random.default_rng(seed)
    queues = [
        [records[index] for index in rng.permutation(len(records))]
        for _, records in sorted(strata.items())
    ]
    longest = max(map(len, queues), default=0)
    in_turn = [
        queue[index]
        for index in range(longest)
        for queue in queues
        if index < len(queue)
    ]
    chosen = in_turn[:n]
    if len(chosen) >= LEAST_ITEMS:
        return _samples(lookup, chosen)
    next_step = "judge more images"
    if len(in_turn) >= LEAST_ITEMS:
        next_step = f"use --n {LEAST_ITEMS} or more"
    raise VievalError(
        f"an anchor requires at least {LEAST_ITEMS} samples with an answer, "
        f"got {len(chosen)}; {next_step}"
    )


def copy_images(judged: Sequence[Judged], folder: Path) -> list[Judged]:
    """Copy the images of samples to a folder, each under its SHA-256."""

    def copy_of(image: Image) -> Image:
        data = read_bytes(image)
        suffix = (format_of(data) or "image").lower()
        path = folder / f"{digest(image)}.{suffix}"
        if not path.exists():
            write_whole(path, [data])
        return replace(image, source=path, origin="")

    def sample_copy(sample: Sample) -> Sample:
        return replace(
            sample,
            images={role: copy_of(image) for role, image in sample.images.items()},
        )

    def item_copy(item: Judged) -> Judged:
        if isinstance(item, Contest):
            return replace(item, candidates=tuple(map(sample_copy, item.candidates)))
        return sample_copy(item)

    return list(map(item_copy, judged))


def runs_of_anchor(
    provenance: Provenance, repeats: Sequence[Sequence[Verdict]]
) -> list[tuple[Sequence[Verdict], Provenance]]:
    """Build the runs of an anchor file from its repeats, with the repeat's number as
    label.
    """
    return [
        (verdicts, replace(provenance, label=f"{REPEAT}{number}"))
        for number, verdicts in enumerate(repeats, start=1)
    ]


def read_anchor(lookup: Lookup, name: str) -> Anchor:
    """Read the anchor of a file; `name` begins the VievalError raised if it is not an
    anchor or its images have changed.
    """
    source = source_of(lookup)
    by_id = grouped(
        (record.id, record)
        for record in lookup.records
        if record.provenance.label.startswith(REPEAT)
    )
    counts = {len(records) for records in by_id.values()}
    if len(counts) != 1 or counts == {1}:
        raise VievalError(
            f"{name}: not an anchor; create one with `vieval anchor make RESULTS --out "
            "anchor.jsonl`"
        )
    judged = _samples(lookup, [records[0] for records in by_id.values()])
    return Anchor(
        tuple(judged),
        tuple(
            tuple(record.verdict for record in records) for records in by_id.values()
        ),
        source,
    )


def require_same_judge(anchor: Anchor, prepared: PreparedJudge) -> None:
    """Raise VievalError if the judge would ask different questions today, which is not
    a drift of the model.
    """
    then = anchor.provenance
    now = prepared.provenance
    if (then.settings, then.pack_hash) != (now.settings, now.pack_hash):
        raise VievalError(
            f"the anchor was made with {then.pack} ({then.pack_hash}) as "
            f"{then.setting or 'the default setting'}, but the judge now uses "
            f"{now.pack} ({now.pack_hash}); restore that pack, or make a new anchor"
        )


def drift_report(anchor: Anchor, fresh: Sequence[Verdict], seed: int) -> DriftReport:
    """Test new verdicts on an anchor's samples against its repeats.

    Args:
        anchor: the repeats.
        fresh: one verdict a sample, in the anchor's order.
        seed: of the permutations.

    Raises:
        VievalError: the model refuses other sampling fields than for the anchor.
    """
    then = unsent_fields(chain.from_iterable(anchor.repeats))
    now = unsent_fields(fresh)
    if then != now:
        raise VievalError(
            "the model must accept the same sampling fields as when the anchor was "
            f"made ({then or 'all sent'}), got {now or 'all sent'}; make a new anchor"
        )
    rows = [
        (judged, (*repeats, verdict))
        for judged, repeats, verdict in zip(
            anchor.judged, anchor.repeats, fresh, strict=True
        )
        if not any(answer.status in _NO_ANSWER for answer in (*repeats, verdict))
    ]
    if not rows:
        return DriftReport(
            tests=(),
            n=0,
            total=len(fresh),
            means=(),
        )
    scores = np.array(
        [[score_of(verdict) for verdict in verdicts] for _, verdicts in rows]
    )
    usable = [[verdict.status.usable for verdict in verdicts] for _, verdicts in rows]
    numbers: dict[object, int] = {}  # of each different answer
    codes = [
        [numbers.setdefault(answer_of(verdict), len(numbers)) for verdict in verdicts]
        for _, verdicts in rows
    ]
    tests = drift_tests(codes, scores, usable, seed)
    means = tuple(_means(rows))
    return DriftReport(
        tests=tests,
        n=len(rows),
        total=len(fresh),
        means=means,
    )


def lines(report: DriftReport, anchor: Anchor, model: str) -> list[str]:
    """Report lines for a terminal, the answer first."""
    judge = " ".join((anchor.provenance.judge, *anchor.provenance.settings))
    if model:
        judge = f"{judge} by {model}"
    if report.decision == "undecided":
        return [
            f"Inconclusive: only {report.n} of {report.total} samples have answers "
            f"from {judge}. A decision needs at least {LEAST_ITEMS} samples, "
            "and at least half of them."
        ]
    notes = []
    if model != anchor.provenance.backbone:
        notes.append(f"The anchor was made with {anchor.provenance.backbone}.")
    left_out = report.total - report.n
    if left_out:
        notes.append(
            f"Left out {left_out} of {report.total} samples, "
            "which had no image or no answer from the server."
        )
    power = (
        f"With {report.n} samples, a difference below the one in the last column "
        "is missed more than one time in five."
    )
    answer = _answer_line(report, judge)
    return [answer, *notes, "", *_tests_table(report), "", power, *_means_table(report)]


def _answer_line(report: DriftReport, judge: str) -> str:
    drifted = []
    for test in report.tests:
        if test.adjusted <= DRIFT_LEVEL:
            drifted.append(
                f"{test.name} {test.latest:.3f} instead of {test.repeats:.3f}, "
                f"{p_sentence(test.adjusted)}"
            )
    if drifted:
        return (
            f"Drift: {judge} no longer answers like the judge of the anchor "
            f"({'; '.join(drifted)})."
        )
    answers = report.tests[0]
    return (
        f"No drift found: {judge} differs from the anchor's repeats "
        f"in {answers.latest:.1%} of the answers. "
        f"The repeats differ from each other in {answers.repeats:.1%}."
    )


def _tests_table(report: DriftReport) -> list[str]:
    table = [("", "new", "repeats", "n", "p", "p (Holm)", "detectable")]
    for test in report.tests:
        if test.n:
            row = (
                test.name,
                f"{test.latest:.3f}",
                f"{test.repeats:.3f}",
                str(test.n),
                p_text(test.p),
                p_text(test.adjusted),
                f"{test.smallest:.3f}",
            )
            table.append(row)
    return text_table(table)


def _means_table(report: DriftReport) -> list[str]:
    """The means by kind and aspect, after an empty line; nothing without any."""
    if not report.means:
        return []
    table = [("kind", "aspect", "n", "new", "repeats")]
    for kind, aspect, n, now, then in report.means:
        table.append((kind, aspect, str(n), f"{now:.3f}", f"{then:.3f}"))
    return ["", *text_table(table)]


def _samples(lookup: Lookup, records: Sequence[Record]) -> list[Judged]:
    """Load the samples of records; VievalError if an image is missing or a sample has
    changed since it was judged.
    """
    samples = [lookup.sample(record) for record in records]
    images = chain.from_iterable(map(images_of, samples))
    lost_images = [image for image in images if not is_there(image)]
    if lost_images:
        first = name_of(lost_images[0])
        raise VievalError(
            f"missing {plural(len(lost_images), 'image')} (first: {first}); "
            "restore them (vieval anchor make --copy-images keeps copies)"
        )
    for record, sample in zip(records, samples, strict=True):
        require_as_judged(record, sample)
    return samples


def score_of(verdict: Verdict) -> float:
    """Reduce a verdict to one number: the mean of its aspects, or the preference for
    the first candidate.
    """
    if verdict.choice is not None:
        return aspect_scores([verdict], PREFERENCE)[0]
    if verdict.scores:
        return math.fsum(verdict.scores.values()) / len(verdict.scores)
    return math.nan


def answer_of(verdict: Verdict) -> object:
    """Answer of a verdict without its reasons, for comparing two verdicts."""
    if not verdict.status.usable:
        return str(verdict.status)
    choice = verdict.choice
    by_order: Mapping[str, object] = {}
    if choice:
        by_order = {**choice.votes, **choice.preferences}
    scores = tuple(sorted(verdict.scores.items()))
    return scores, tuple(sorted(by_order.items(), key=str))


def _means(
    rows: Sequence[tuple[Judged, tuple[Verdict, ...]]],
) -> Iterator[tuple[str, str, int, float, float]]:
    by_kind = grouped(
        ((judged.kind, aspect), aspect_scores(verdicts, aspect))
        for judged, verdicts in rows
        for aspect in verdicts[-1].scores or [PREFERENCE] * bool(verdicts[-1].choice)
    )
    for (kind, aspect), scores in sorted(by_kind.items()):
        table = np.array(scores)
        answers = table[~np.isnan(table).any(axis=1)]
        if len(answers):
            now = float(answers[:, -1].mean())
            then = float(answers[:, :-1].mean())
            yield kind, aspect, len(answers), now, then


def check_anchor(
    path: Path,
    in_force: Config,
    named_backbone: Callable[[Config], Backbone | None],
    tell: Callable[[Progress], None],
    bar: bool = False,
) -> tuple[dict[SampleId, Verdict], str, list[str]]:
    """Judge an anchor's samples again, and test the verdicts for drift.

    Args:
        path: the file that `vieval anchor make` wrote.
        in_force: options of today.
        named_backbone: as for `judge_today`.
        tell: called with the progress of the calls.
        bar: whether to show a progress bar.

    Returns:
        Today's verdicts, the decision, and lines on it, the answer first.

    Raises:
        VievalError: the file is not an anchor, or its judge would ask different questions today.
    """
    anchor = read_anchor(open_results([path]), str(path))
    judge, current = judge_today(anchor.provenance, in_force, named_backbone)
    require_same_judge(anchor, judge)
    [verdicts] = judged_again(
        anchor.judged,
        judge,
        current,
        1,
        tell,
        bar,
    )
    report = drift_report(anchor, verdicts, SEED)
    today = {
        judged.id: verdict
        for judged, verdict in zip(anchor.judged, verdicts, strict=True)
    }
    model = provenance_of(judge, current, None).backbone
    return today, report.decision, lines(report, anchor, model)


def judged_again(
    judged: Sequence[Judged],
    judge: PreparedJudge,
    current: Config,
    times: int,
    tell: Callable[[Progress], None],
    bar: bool,
) -> list[list[Verdict]]:
    """Ask a judge `times` times; `tell` is called with the progress, even after an
    error.
    """
    progress = Progress()
    try:
        runs = [
            loop.run(outcomes_of(judged, judge, current, None, progress, bar))
            for _ in range(times)
        ]
        return [[outcome.verdict for outcome in outcomes] for outcomes in runs]
    finally:
        tell(progress)


def judge_today(
    source: Provenance,
    in_force: Config,
    named_backbone: Callable[[Config], Backbone | None],
    stored: bool = False,
) -> tuple[PreparedJudge, Config]:
    """Prepare the judge of results with its original options, without the store unless
    `stored`, and today's backbones.

    Today's backbones come from arguments, otherwise from the options in force,
    otherwise from the environment, and override the recorded ones.

    Args:
        source: of the results.
        in_force: options of today.
        named_backbone: function that returns the backbone in arguments.
        stored: use answers in the store.

    Raises:
        VievalError: the judge is unknown, or its model is not set.
    """
    recorded = config.from_document(source.options)
    backbone = named_backbone(in_force) or named_backbone(recorded)
    backbones = dict(recorded.backbones)
    current_backbones = dict(in_force.backbones)
    if backbone:
        current_backbones[JUDGE] = backbone
    for name, today in current_backbones.items():
        changes = {
            "api_key_env": today.api_key_env,
            **today.model_dump(exclude_unset=True),
        }
        backbones[name] = backbones.get(name, today).model_copy(update=changes)
    store = config.StoreOptions(use=False)
    if stored:
        store = in_force.store
    current = recorded.model_copy(
        update={
            "store": store,
            "calibration": in_force.calibration,
            "backbones": backbones,
        }
    )
    judge = prepare(source.judge, setting_of(source), current)
    if judge.asks_a_model:
        require_model(source.judge, current, None)
    return judge, current
