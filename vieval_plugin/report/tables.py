"""Tables to read: leaderboards with their pairs, corrected means, strengths, what verdicts cost
and how they came out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vieval_plugin.images import name_of
from vieval_plugin.judges.protocol import Image, Sample, Status
from vieval_plugin.meta_evaluation.candidates import candidates_by_prompt
from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.contest_ranking import ContestRanking, by_strength
from vieval_plugin.meta_evaluation.corrected_ranking import (
    CorrectedRanking,
    GeneratorEstimates,
)
from vieval_plugin.meta_evaluation.costs import Cost, cost_of
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.findings import (
    ALL,
    Leaderboard,
    Number,
    benchmark_title,
)
from vieval_plugin.meta_evaluation.generator_means import mean_over_prompts
from vieval_plugin.meta_evaluation.measures import mean_of
from vieval_plugin.meta_evaluation.tables import Table, interval_text, p_text
from vieval_plugin.meta_evaluation.tables import number as number_text
from vieval_plugin.records import OWN, YOUR_IMAGES, Record, Run
from vieval_plugin.report.words import reason_words, share_of_level
from vieval_plugin.results.training_records import (
    local_training_records,
    trained_on,
    was_trained_on,
)
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.tables import equation, text_table
from vieval_plugin.text.wording import decimals, rounded

if TYPE_CHECKING:
    from vieval_plugin.results.shard_sample import FolderTotals, ScoreTotals

NOT_ABOVE_CONSTANT = "not shown to beat a constant answer"
PLACE_DEPENDS = "place depends on failures"
_MARK_NOTES = {
    PLACE_DEPENDS: "the first place leaves out failed verdicts (`drop`); the second counts them "
    "as the lowest score (`worst`)",
    NOT_ABOVE_CONSTANT: (
        "its interval and the permutation test (p at most .05) do not both show that it is better "
        "than the best constant answer; with few samples, intervals can be too short"
    ),
}
_UNKNOWN = "not known"
#: Metrics of likeness with their decimals.
LIKENESS = {"ssim": 3, "psnr": 1}
_PERCENTILES = (5, 50)


def leaderboard_table(
    board: Leaderboard,
    beside: Mapping[str, Mapping[str, Estimate]] | None = None,
    name: str = "leaderboard",
) -> Table:
    """A leaderboard as a table, references last.

    Args:
        board: of judges or generators.
        beside: means of other aspects, by aspect and system.
        name: the stem of its CSV.
    """
    wins = board.measure.counts_contests
    columns = _leaderboard_columns(board, beside)
    entrant = board.entrants.removesuffix("s")
    measured = board.measured if wins else board.aspect
    header = ("rank", entrant, f"{measured} [95%]", *columns)
    rows = []
    for number in board.numbers:
        system = number.system
        cells = [by_system.get(system, "") for by_system in columns.values()]
        value = estimate_text(number.estimate)
        rank = rank_text(number.ranks)
        rows.append((rank, system, value, *cells))
    for reference in board.references:
        count = str(reference.estimate.n or "")
        cells = [count if column == "n" else "" for column in columns]
        value = estimate_text(reference.estimate)
        rows.append(("", reference.system, value, *cells))
    title = _title(board)
    reference_count = len(board.references)
    return Table(
        name,
        title,
        header,
        tuple(rows),
        reference_count,
    )


def _leaderboard_columns(
    board: Leaderboard, beside: Mapping[str, Mapping[str, Estimate]] | None
) -> dict[str, dict[str, str]]:
    columns: dict[str, dict[str, str]] = {}
    counts = {number.system: number.estimate.n for number in board.numbers}
    for aspect, means in (beside or {}).items():
        columns[aspect] = {
            system: _mean_beside(mean, counts.get(system, mean.n))
            for system, mean in means.items()
        }
    kinds = kinds_by_system(board)
    if len({*kinds.values()}) > 1:
        columns["task types"] = kinds
    columns["n"] = {n.system: _count_text(board, n) for n in board.numbers}
    if board.ranks_generators and not board.measure.counts_contests:
        columns["images"] = {
            n.system: str(sum(n.statuses.values())) for n in board.numbers
        }
    columns["failed"] = {n.system: failed_text(board, n) for n in board.numbers}
    marks = {n.system: "; ".join(marks_of(board, n.system)) for n in board.numbers}
    if any(marks.values()):
        columns["marks"] = marks
    reasons = {n.system: reason_words(n.unranked) for n in board.numbers}
    if any(reasons.values()):
        columns["not ranked because"] = reasons
    return {name: cells for name, cells in columns.items() if cells}


def _mean_beside(mean: Estimate, n: int) -> str:
    """The mean of another aspect, with its own n where the row has another.

    >>> _mean_beside(Estimate(0.5, n=12), 12), _mean_beside(Estimate(0.5, n=12), 10)
    ('0.500', '0.500 (n 12)')
    """
    text = number_text(mean, 3)
    if mean.defined and mean.n != n:
        text += f" (n {mean.n})"
    return text


def _count_text(board: Leaderboard, number: Number) -> str:
    if board.ranks_generators:
        return f"{number.estimate.n} of {number.total}"
    return number.estimate.sample_count


def table_lines(table: Table, elsewhere: str) -> list[str]:
    """Lines of a table for a terminal under its title, references by the first words of their
    names; see `text_table`.
    """
    system_count = len(table.rows) - table.references
    systems = table.rows[:system_count]
    shortened = []
    for rank, label, *cells in table.rows[system_count:]:
        name = label.split(": ")[0]
        shortened.append((rank, name, *cells))
    interval_columns = [name for name in table.header if name.endswith("[95%]")]
    ranked_by = interval_columns[:1]
    return [
        table.title,
        "",
        *text_table(
            [table.header, *systems, *shortened], elsewhere, table.references, ranked_by
        ),
        "",
    ]


def drop_shared_columns(table: Table) -> tuple[Table, str]:
    """A table less the columns that say the same of all systems, and what they say in words.

    >>> table = Table("t", "", ("rank", "judge", "O", "n"), (("1", "a", "0.5", "9"), ("2", "b", "0.4", "9")))
    >>> drop_shared_columns(table)[1]
    'in all rows: n = 9'
    """
    system_count = len(table.rows) - table.references
    systems = table.rows[:system_count]
    if system_count < 2:
        return table, ""
    shared = set()
    texts = []
    for column in range(3, len(table.header)):
        value, *others = {row[column] for row in systems}
        if others:
            continue
        shared.add(column)
        if value:
            texts.append(equation(table.header[column], value))

    def remaining(cells: Sequence[str]) -> tuple[str, ...]:
        return tuple(cell for n, cell in enumerate(cells) if n not in shared)

    rows = tuple(map(remaining, table.rows))
    shared_text = ""
    if texts:
        shared_text = f"in all rows: {', '.join(texts)}"
    return replace(table, header=remaining(table.header), rows=rows), shared_text


def _title(board: Leaderboard) -> str:
    breakdown = ""
    if board.breakdown:
        breakdown = f", {board.breakdown} {board.value}"
    where = f"{benchmark_title(board.benchmark)}{breakdown}"
    comparison = board.comparison
    if comparison.all_pairs:
        method = comparison.family
    else:
        method = comparison.reason and f"no ranking: {comparison.reason}"
    heading = f"{where}: {board.title}"
    parts = (heading, method, *comparison.warnings())
    return "; ".join(filter(None, parts))


def failed_text(board: Leaderboard, number: Number) -> str:
    """The verdicts of a system without a score, by status, and those that a replay lacks."""
    if board.ranks_generators:
        return number.failures or "0"
    return failures_of(board.costs[number.system])


def failures_of(cost: Cost) -> str:
    """Verdicts without a score by status, and those that a replay lacks."""
    texts = []
    if cost.failed:
        count = f"{cost.failed} of {cost.verdicts}"
        texts.append(f"{count}: {cost.failures_text}")
    if cost.missing_text:
        texts.append(cost.missing_text)
    return "; ".join(texts) or "0"


def marks_of(board: Leaderboard, system: str) -> tuple[str, ...]:
    """Marks of a system that every table shows; `mark_notes` says what they mean."""
    positions = board.positions.get(system)
    marks = []
    if positions and positions[0] != positions[1]:
        dropped, worst = (position or "not ranked" for position in positions)
        ranks_text = f"{dropped} without them, {worst} with them"
        marks.append(f"{PLACE_DEPENDS}: {ranks_text}")
    if system in board.not_above_constant:
        marks.append(NOT_ABOVE_CONSTANT)
    same_answer = board.same_answers.get(system)
    if same_answer:
        marks.append(same_answer)
    return tuple(marks)


def mark_notes(boards: Sequence[Leaderboard]) -> list[str]:
    """Explanations of the marks of all systems, one line each."""
    marks = [
        mark
        for board in boards
        for number in board.numbers
        for mark in marks_of(board, number.system)
    ]
    return [
        f"{name}: {text}"
        for name, text in _MARK_NOTES.items()
        if any(mark.startswith(name) for mark in marks)
    ]


def kinds_by_system(board: Leaderboard) -> dict[str, str]:
    """Task types, or parts, of which each system has a number, where the leaderboard is broken
    down by them.
    """
    by_kind = next(iter(board.breakdowns.values()), {})
    if not by_kind:
        return {}
    texts = {}
    for number in board.numbers:
        kinds = []
        for kind, by_system in by_kind.items():
            estimate = by_system.get(number.system)
            if estimate and estimate.defined:
                kinds.append(kind)
        text = " ".join(kinds)
        if len(kinds) == len(by_kind) > 1:
            text = f"all {len(kinds)}"
        texts[number.system] = text
    return texts


def rank_text(ranks: tuple[int, int] | None) -> str:
    """The range of ranks: `1`, `2-4`, or nothing for a system without.

    >>> rank_text((1, 1)), rank_text((2, 4)), rank_text(None)
    ('1', '2-4', '')
    """
    if ranks is None:
        return ""
    first, last = ranks
    if first == last:
        return str(first)
    return f"{first}-{last}"


def estimate_text(estimate: Estimate) -> str:
    """An estimate with its interval, and what it rests on where that is not everything."""
    text = interval_text(estimate, 3)
    coverage = str(estimate.coverage)
    if estimate.defined and coverage:
        text += f" on {coverage}"
    return text


def pairs_table(board: Leaderboard, name: str = "pairs") -> Table:
    """The pairs of a leaderboard, the better one first; `name` is the stem of its CSV."""
    comparison = board.comparison
    pairs = comparison.all_pairs
    rows = []
    for pair in map(comparison.ordered, pairs):
        names = f"{pair.first} - {pair.second}"
        difference = _difference_text(pair)
        p = p_text(pair.result.p)
        adjusted = p_text(pair.adjusted)
        rows.append([names, str(pair.n), difference, p, adjusted])
    compared = comparison.compared
    names = "first - second"
    if not compared.order and any(pair.significant for pair in pairs):
        names = "better - worse"
    measured = "difference"
    if board.measure.counts_contests:
        measured = f"{board.measured} minus one half"
    share = share_of_level(compared.level)
    header = [names, board.unit, f"{measured} [{share}]", "p", "p (Holm)"]
    if any(pair.doubtful for pair in pairs):
        header.append("reason")
        for row, pair in zip(rows, pairs, strict=True):
            row.append(comparison.ordered(pair).reason)
    common = f"common {board.unit}"
    if board.value:
        common += f", {board.value}"
    subject = f"{board.title}: differences on {common}"
    title = f"{subject}; {comparison.family}"
    return Table(name, title, tuple(header), tuple(map(tuple, rows)))


def _difference_text(pair: SystemPair) -> str:
    difference = pair.result.difference
    if difference.defined and math.isnan(difference.low):
        return f"{rounded(difference.value, 3)} [no interval]"
    return interval_text(difference, 3)


def corrected_tables(corrected: CorrectedRanking, fewest_pairs: int = 1) -> list[Table]:
    """Generators by their corrected means, and their corrected differences where there are
    `fewest_pairs` or more.
    """
    comparison = corrected.ranking.comparison
    means = _means_table(corrected)
    pairs = comparison.all_pairs
    if len(pairs) < fewest_pairs:
        return [means]
    table = pairs_table(corrected.ranking)
    rows = []
    for row, pair in zip(table.rows, pairs, strict=True):
        difference = corrected.ratings_difference(comparison.ordered(pair))
        rows.append((*row, interval_text(difference, 3)))
    share = share_of_level(comparison.compared.level)
    header = (*table.header, f"people's labels alone [{share}]")
    return [means, replace(table, header=header, rows=tuple(rows))]


def corrected_rows(corrected: CorrectedRanking) -> Table:
    """The corrected means of generators over the judge's own."""
    estimates = corrected.estimates
    corrected_means = (interval_text(e.corrected.mean, 2) for e in estimates)
    judge_means = (interval_text(e.raw, 2) for e in estimates)
    rows = (("corrected", *corrected_means), ("judge alone", *judge_means))
    header = ("", *(e.generator for e in estimates))
    return Table(
        "corrected_rows",
        _title(corrected.ranking),
        header,
        rows,
    )


def _means_table(corrected: CorrectedRanking) -> Table:
    board = corrected.ranking
    ranks = {number.system: rank_text(number.ranks) for number in board.numbers}
    header = (
        "rank",
        "generator",
        "corrected [95%]",
        "judge alone [95%]",
        "people's labels alone [95%]",
        "labels",
        "weight of the judge",
        "kinds without labels",
    )
    rows = [
        (
            ranks[mean.generator],
            mean.generator,
            *_mean_texts(mean),
            f"{mean.rated} of {mean.images}",
            decimals(mean.corrected.weight, ".2f"),
            ", ".join(mean.unrated_kinds),
        )
        for mean in corrected.estimates
    ]
    return Table(
        "corrected",
        _title(board),
        header,
        tuple(rows),
    )


def _mean_texts(estimates: GeneratorEstimates) -> tuple[str, str, str]:
    """The corrected mean, the judge's and that of the labels."""
    return (
        interval_text(estimates.corrected.mean, 3),
        interval_text(estimates.raw, 3),
        interval_text(estimates.human.mean, 3),
    )


def contest_table(ranking: ContestRanking) -> Table:
    """Image models by the strength that people's, or a judge's, votes on contests give."""
    board = ranking.board
    votes = ranking.strengths
    rows = []
    for number in by_strength(board.numbers):
        rank = rank_text(number.ranks)
        strength = interval_text(number.estimate, digits=3)
        share = votes.shares.get(number.system, math.nan)
        wins = decimals(share, ".1%")
        pairs = str(number.total)
        rows.append((rank, number.system, strength, wins, pairs))
    source = ""
    if board.aspect != "votes":
        source = f" (votes from {board.aspect})"
    tie = ""
    if not math.isnan(votes.tie):
        tie = f", ties {votes.tie:.2f}"
    why = ""
    if board.comparison.reason:
        why = f"; no ranking: {board.comparison.reason}"
    subject = f"{board.benchmark}/{board.part}, contests by {board.judge}{source}"
    pair_count = f"{votes.answered_pairs} of {votes.pairs_asked} pairs answered"
    title = f"{subject}: Bradley-Terry with ties (Davidson){tie}; {pair_count}{why}"
    header = ("rank", "image model", "log strength [95%]", "expected wins", "pairs")
    return Table("contests", title, header, tuple(rows))


def best_of_table(records: Sequence[Record]) -> Table:
    """The best image of each prompt and generator, by its file where that is known."""
    rows = []
    for best, *further in candidates_by_prompt(records).values():
        sample = best.record.sample
        file = ""
        if isinstance(sample, Sample) and "output" in sample.images:
            file = name_of(sample.images["output"])
        identity = best.record.id
        score = f"{best.score:.4f}"
        image_count = str(1 + len(further))
        cells = (identity.uid, identity.image_model, str(identity.draw))
        rows.append((*cells, score, image_count, file))
    header = ("prompt", "generator", "image", "score", "of", "file")
    return Table("best_of", "", header, tuple(rows))


def cost_table(runs: Sequence[Run], seconds: Mapping[tuple[str, str], str]) -> Table:
    """Cost of the verdicts of each judge.

    Args:
        runs: of one benchmark.
        seconds: of a benchmark and a judge, in words.
    """
    rows = []
    for run in runs:
        cost = cost_of(run.all_records)
        tokens = _UNKNOWN if cost.tokens is None else str(cost.tokens)
        if cost.recorded:
            duration = "replay"
        else:
            duration = seconds.get((run.benchmark, run.label), _UNKNOWN)
        verdicts = str(cost.verdicts)
        failures = failures_of(cost)
        answers = str(cost.answers)
        rows.append((run.label, verdicts, failures, answers, tokens, duration))
    header = ("judge", "verdicts", "failed", "answers", "tokens", "seconds")
    return Table("cost", "Cost of the verdicts", header, tuple(rows))


def statuses_table(runs: Sequence[Run]) -> Table:
    """Verdicts, and the answers behind them, by status."""
    rows = []
    for run in runs:
        verdicts = [record.verdict for record in run.all_records]
        steps = chain.from_iterable(verdict.trace for verdict in verdicts)
        samples = Counter(verdict.status for verdict in verdicts)
        answers = Counter(step.status for step in steps)
        for name, counts in (("samples", samples), ("answers", answers)):
            numbers = (str(counts[status]) for status in Status)
            rows.append((run.label, name, *numbers))
    header = ("judge", "of", *map(str, Status))
    return Table(
        "statuses",
        "Statuses of verdicts and of the answers behind them",
        header,
        tuple(rows),
    )


def remarks_tables(runs: Sequence[Run]) -> list[Table]:
    """A row for each judge and kind of remark on its verdicts, the most frequent first;
    no table without remarks.

    Args:
        runs: one a judge, all of one benchmark.
    """
    rows = []
    for run in runs:
        findings = [record.verdict.findings for record in run.all_records]
        samples = Counter(chain(*map(set, findings)))
        total = f"of {len(findings)}"
        counts = Counter(chain(*findings)).most_common()
        for name, n in counts:
            share = f"{samples[name]} {total}"
            rows.append((run.label, name, str(n), share))
    header = ("judge", "finding", "times", "samples")
    if rows:
        return [Table("findings", "Findings on the verdicts", header, tuple(rows))]
    return []


def trained_on_tables(
    runs: Sequence[Run], training_records: Sequence[Path]
) -> list[Table]:
    """A row for each judge that knew some of its samples from its training; no table where none
    did.

    Args:
        runs: one a judge, all of one benchmark.
        training_records: of models that answered; those in folders that the runs' options name are
            found by themselves.

    Raises:
        VievalError: a training record that cannot be read.
    """
    listed_uids = [trained_on(record) for record in training_records]
    rows = []
    for run in runs:
        records = run.all_records
        sources = {
            record.provenance.config_hash: record.provenance for record in records
        }
        paths = list[Path]()
        for source in sources.values():
            paths += local_training_records(source)
        run_uids = map(trained_on, dict.fromkeys(paths))
        uids = frozenset().union(*listed_uids, *run_uids)
        trained = sum(was_trained_on(record, uids) for record in records)
        if trained:
            total = str(len(records))
            rows.append((run.label, str(trained), total))
    header = ("judge", "samples it was trained on", "of")
    if rows:
        return [
            Table(
                "trained_on",
                "Judges trained on samples that they judge: numbers do not apply to other samples",
                header,
                tuple(rows),
            )
        ]
    return []


def status_counts(folders: Sequence[FolderTotals]) -> list[dict[str, str | int]]:
    """Number of all verdicts of folders of shards by status, one row per image model."""
    models = [model for folder in folders for model in folder.by_model.values()]
    all_statuses = chain.from_iterable(model.statuses for model in models)
    statuses = dict.fromkeys(all_statuses)
    return [
        {
            "folder": str(folder.path),
            "image model": name or YOUR_IMAGES,
            "verdicts": totals.statuses.total(),
            **{str(status): totals.statuses[status] for status in statuses},
        }
        for folder in folders
        for name, totals in folder.by_model.items()
    ]


def score_totals(
    folders: Sequence[FolderTotals],
) -> list[dict[str, str | int | float | None]]:
    """Means over all verdicts that have a score, and how many are in each tenth, one
    row per image model and score.
    """
    return [
        {
            "folder": str(folder.path),
            "image model": name or YOUR_IMAGES,
            "score": aspect,
            "n": score.scored,
            "mean": score.sum / score.scored if score.scored else None,
            **dict(zip(_edges(score), map(int, score.histogram), strict=True)),
        }
        for folder in folders
        for name, totals in folder.by_model.items()
        for aspect, score in totals.scores.items()
    ]


def _edges(score: ScoreTotals) -> list[str]:
    """The edges of a histogram's bins, the first of which is below 0."""
    bins = len(score.histogram) - 1
    edges = ["< 0"]
    for n in range(bins):
        low = n / bins
        high = (n + 1) / bins
        edges.append(f"{low:g}-{high:g}")
    return edges


def totals_tables(folders: Sequence[FolderTotals]) -> list[Table]:
    """Means and histograms of scores, and counts of statuses, by image model; none where there
    is no folder.
    """
    means = (
        "All scores: means over verdicts with a score, and counts in each tenth of "
        "the scale"
    )
    verdicts_table = _total_table(
        "all_verdicts",
        "All verdicts by status, including failed ones",
        status_counts(folders),
    )
    scores_table = _total_table("all_scores", means, score_totals(folders))
    return [table for table in (verdicts_table, scores_table) if table.rows]


def _total_table(
    name: str,
    title: str,
    rows: Sequence[Mapping[str, str | float | None]],
) -> Table:
    header = dict.fromkeys(chain.from_iterable(rows))
    texts = (tuple(map(_total_text, row.values())) for row in rows)
    return Table(name, title, tuple(header), tuple(texts))


def _total_text(cell: str | float | None) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4f}"
    return str(cell)


@dataclass(frozen=True)
class ReferencePair:
    """An image beside its reference."""

    prompt: str
    generator: str
    #: Likeness by metric.
    values: Mapping[str, float]
    #: The reference, the image and their difference, by what they are called.
    images: Mapping[str, Image]

    @property
    def title(self) -> str:
        """The prompt with the values."""
        words = []
        for metric, digits in LIKENESS.items():
            value = self.values[metric]
            words.append(f"{metric} {value:.{digits}f}")
        values = ", ".join(words)
        return f"{self.prompt} ({values})"


def likeness_table(pairs: Sequence[ReferencePair], options: StatisticsOptions) -> Table:
    """The likeness of each generator's images to their references."""
    rows = []
    by_generator = grouped((pair.generator, pair) for pair in pairs)
    for generator, generator_pairs in by_generator.items():
        for metric, digits in LIKENESS.items():
            scores = grouped(
                (pair.prompt, pair.values[metric]) for pair in generator_pairs
            )
            means = {prompt: mean_of(values) for prompt, values in scores.items()}
            bootstrap = Bootstrap.for_part(f"{OWN}/{ALL}", options)
            prompts = {prompt: prompt for prompt in means}
            mean = bootstrap.estimate(mean_over_prompts(means, prompts))
            percentiles = np.percentile([*means.values()], _PERCENTILES)
            numbers = (mean.value, mean.low, mean.high, *percentiles)
            texts = (f"{number:.{digits}f}" for number in numbers)
            value, low, high, *shares = texts
            interval = f"{value} [{low}, {high}]"
            count = str(len(means))
            rows.append((generator, metric, interval, *shares, count))
    header = (
        "generator",
        "metric",
        "mean [95%]",
        "5th percentile",
        "median",
        "prompts",
    )
    title = "Similarity to the reference images (ssim from 0 to 1, psnr in dB)"
    return Table("likeness", title, header, tuple(rows))
