"""Rankings of generators as tables: to read, and in long form for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.contest_ranking import ContestRanking
from vieval_plugin.meta_evaluation.corrected_means import CorrectedGenerator
from vieval_plugin.meta_evaluation.generator_ranking import ALL, GeneratorRanking, RankedGenerator
from vieval_plugin.meta_evaluation.tables import Table, p_text, with_interval

DEFAULT = "O"
"""The aspect that stands first, because it is about the whole image; of a judge without it, the first that it rates."""
_WIDEST = 8
_MOST_ROWS = 20
_SAMPLES = ("benchmark", "judge", "aspect", "statistic", "heading", "word")
_CONTESTS = ("benchmark", "part", "voter", "votes_from")


def ranking_tables(rankings: Sequence[GeneratorRanking]) -> list[Table]:
    """For each judge: its ranking by each aspect, pairs, and the default aspect under the words of each heading.

    Where no two generators have prompts in common, as where parts have generators of their own, each part is ranked
    alone.
    """
    tables: list[Table] = []
    for run in dict.fromkeys((ranking.benchmark, ranking.judge) for ranking in rankings):
        of_run = [ranking for ranking in rankings if (ranking.benchmark, ranking.judge) == run]
        default = _default(of_run)
        over_all = sorted(
            (ranking for ranking in of_run if ranking.word == ALL and not ranking.heading),
            key=lambda ranking: ranking.aspect != default,
        )
        by_part = any(not ranking.comparison.all_pairs and len(ranking.generators) > 1 for ranking in over_all)
        parts = [ranking for ranking in of_run if ranking.heading == "part" and ranking.aspect == default]
        for ranking in parts if by_part and parts else over_all:
            tables += [_ranking(ranking), *([_pairs(ranking)] if ranking.comparison.all_pairs else [])]
        broken_down = [
            ranking
            for ranking in of_run
            if ranking.heading and ranking.aspect == default and not (by_part and ranking.heading == "part")
        ]
        tables += _broken_down(broken_down)
    return tables


def corrected_tables(corrected: Sequence[CorrectedGenerator]) -> list[Table]:
    """For each judge and aspect: the judge's mean, that of people's ratings alone, and the corrected one."""
    tables = []
    for key in dict.fromkeys((generator.benchmark, generator.judge, generator.aspect) for generator in corrected):
        of_key = [
            generator for generator in corrected if (generator.benchmark, generator.judge, generator.aspect) == key
        ]
        benchmark, judge, aspect = key
        rows = [
            (
                generator.generator,
                with_interval(generator.raw.value, generator.raw.low, generator.raw.high),
                _mean(generator.people),
                _mean(generator.corrected),
                f"{generator.rated} of {generator.images}",
                "" if math.isnan(generator.corrected.weight) else f"{generator.corrected.weight:.2f}",
                ", ".join(generator.unrated_kinds),
            )
            for generator in sorted(
                of_key,
                key=lambda generator: -generator.corrected.mean if not math.isnan(generator.corrected.mean) else 1,
            )
        ]
        header = ("generator", "judge alone [95%]", "people's labels alone [95%]", "corrected [95%]")
        title = f"{benchmark}, {judge}: {aspect}, what people would say"
        tables.append(
            Table("corrected", title, (*header, "labels", "weight of the judge", "kinds without labels"), tuple(rows))
        )
    return tables


def contest_tables(rankings: Sequence[ContestRanking]) -> list[Table]:
    """For each part, and people or a judge: image models by their strength."""
    tables = []
    for ranking in rankings:
        models = sorted(ranking.models, key=lambda model: -model.strength if not math.isnan(model.strength) else 0)
        rows = [
            (
                _ranks(model.ranks),
                model.image_model,
                with_interval(model.strength, model.low, model.high, digits=3),
                "" if math.isnan(model.share) else f"{model.share:.1%}",
                str(model.contests),
            )
            for model in models
        ]
        votes = "" if ranking.subject == "votes" else f" (votes from {ranking.subject})"
        tie = "" if math.isnan(ranking.tie) else f", ties {ranking.tie:.2f}"
        why = f"; no ranking: {ranking.why}" if ranking.why else ""
        title = f"{ranking.benchmark}/{ranking.part}, contests by {ranking.voter}{votes}: Bradley-Terry with ties (Davidson){tie}; {ranking.answered} of {ranking.pairs_asked} pairs answered{why}"
        header = ("rank", "image model", "log strength [95%]", "expected wins", "pairs")
        tables.append(Table("contests", title, header, tuple(rows)))
    return tables


def long_tables(
    rankings: Sequence[GeneratorRanking], corrected: Sequence[CorrectedGenerator], contests: Sequence[ContestRanking]
) -> list[Table]:
    """Tables in long form: of generators, of their pairs, of corrected means, of contests, of their pairs."""
    interval = ("mean", "ci_low", "ci_high")
    counts = ("n", "prompts", "images", "failed")
    generators = [
        (*_ranking_key(ranking), *_long(ranking, generator)) for ranking in rankings for generator in ranking.generators
    ]
    pairs = [
        (*_ranking_key(ranking), pair.first, pair.second, str(pair.n), *map(_cell, (*pair.result, pair.adjusted)))
        for ranking in rankings
        for pair in map(SystemPair.better_first, ranking.comparison.all_pairs)
    ]
    means = [
        (
            *(estimate.benchmark, estimate.judge, estimate.aspect, estimate.generator),
            *map(
                _cell,
                (estimate.raw.value, estimate.raw.low, estimate.raw.high, *estimate.people[:3], *estimate.corrected),
            ),
            *(str(estimate.rated), str(estimate.images), ", ".join(estimate.unrated_kinds)),
        )
        for estimate in corrected
    ]
    models = [
        (
            *_contest_key(contest),
            *(
                _integer_text(model.ranks and model.ranks[0]),
                _integer_text(model.ranks and model.ranks[1]),
                model.image_model,
            ),
            *map(_cell, (model.strength, model.low, model.high, model.share)),
            *(str(model.contests), contest.why),
        )
        for contest in contests
        for model in contest.models
    ]
    contest_pairs = [
        (
            *_contest_key(contest),
            pair.first,
            pair.second,
            *map(_cell, (pair.difference, pair.low, pair.high, pair.p, pair.adjusted)),
        )
        for contest in contests
        for pair in contest.pairs
    ]
    of_pair = ("better", "worse", "n", "mean_better", "mean_worse", "difference", "ci_low", "ci_high", "p", "p_holm")
    three = [f"{source}_{what}" for source in ("judge", "labels", "corrected") for what in interval]
    return [
        Table(
            "generators",
            "",
            (*_SAMPLES, "rank", "last_rank", "generator", *interval, *counts, "why_not"),
            tuple(generators),
        ),
        Table("generator_pairs", "", (*_SAMPLES, *of_pair), tuple(pairs)),
        Table(
            "corrected",
            "",
            (*_SAMPLES[:3], "generator", *three, "weight", "labels", "images", "kinds_without_labels"),
            tuple(means),
        ),
        Table(
            "contests",
            "",
            (
                *_CONTESTS,
                "rank",
                "last_rank",
                "image_model",
                "log_strength",
                "ci_low",
                "ci_high",
                "expected_wins",
                "pairs",
                "why_not",
            ),
            tuple(models),
        ),
        Table(
            "contest_pairs",
            "",
            (*_CONTESTS, "first", "second", "difference", "ci_low", "ci_high", "p", "p_holm"),
            tuple(contest_pairs),
        ),
    ]


def _default(rankings: Sequence[GeneratorRanking]) -> str:
    aspects = [ranking.aspect for ranking in rankings]
    return DEFAULT if DEFAULT in aspects else aspects[0]


def _ranking(ranking: GeneratorRanking) -> Table:
    rows = [
        (
            _ranks(generator.ranks),
            generator.generator,
            with_interval(generator.mean.value, generator.mean.low, generator.mean.high, generator.mean.reason),
            f"{generator.scored} of {generator.prompts}",
            str(generator.images),
            _failed(generator),
            generator.reason,
        )
        for generator in ranking.generators
    ]
    where = ranking.benchmark if ranking.word == ALL else f"{ranking.benchmark}, {ranking.heading} {ranking.word}"
    method = f"no ranking: {ranking.comparison.reason}" if ranking.comparison.reason else ranking.comparison.family
    warned = "".join(f"; {line}" for line in ranking.comparison.warnings())
    header = ("rank", "generator", "mean [95%]", "n", "images", "failed", "not ranked because")
    title = f"{where}, {ranking.judge}: {ranking.aspect}, {ranking.statistic}; {method}{warned}"
    return Table("ranking", title, header, tuple(rows))


def _pairs(ranking: GeneratorRanking) -> Table:
    rows = [
        (
            f"{pair.first} - {pair.second}",
            str(pair.n),
            with_interval(pair.result.difference, pair.result.low, pair.result.high),
            p_text(pair.result.p),
            p_text(pair.adjusted),
        )
        for pair in map(SystemPair.better_first, ranking.comparison.all_pairs)
    ]
    title = f"{ranking.judge}: {ranking.aspect}, {ranking.statistic}, differences on the prompts that both have" + (
        "" if ranking.word == ALL else f" of {ranking.word}"
    )
    return Table("pairs", title, ("better - worse", "n", "difference [95%]", "p", "p (Holm)"), tuple(rows))


def _broken_down(rankings: Sequence[GeneratorRanking]) -> list[Table]:
    """A row a word, a column a generator, of what is a plain mean; too many of either are in the files alone."""
    tables = []
    for key in dict.fromkeys((ranking.heading, ranking.statistic) for ranking in rankings):
        breakdown = [ranking for ranking in rankings if (ranking.heading, ranking.statistic) == key]
        names = list(dict.fromkeys(generator.generator for ranking in breakdown for generator in ranking.generators))
        if len(names) > _WIDEST:
            continue
        rows = []
        for ranking in breakdown[:_MOST_ROWS]:
            cells = {generator.generator: _short(generator) for generator in ranking.generators}
            prompts = max(generator.prompts for generator in ranking.generators)
            rows.append((ranking.word, str(prompts), *(cells.get(name, "") for name in names)))
        more = f"; {_MOST_ROWS} of {len(breakdown)}, all with --out" if len(breakdown) > _MOST_ROWS else ""
        title = (
            f"{breakdown[0].benchmark}, {breakdown[0].judge}: {breakdown[0].aspect} by {key[0]}, {key[1]} (rank){more}"
        )
        tables.append(Table(f"by_{key[0]}", title, (key[0], "prompts", *names), tuple(rows)))
    return tables


def _short(generator: RankedGenerator) -> str:
    """The mean, with the rank where there is one."""
    mean = "" if math.isnan(generator.mean.value) else f"{generator.mean.value:.3f}"
    return f"{mean} ({_ranks(generator.ranks)})" if generator.ranks else mean


def _long(ranking: GeneratorRanking, generator: RankedGenerator) -> tuple[str, ...]:
    mean, (best, worst) = generator.mean, generator.ranks or (None, None)
    return (
        *(_integer_text(best), _integer_text(worst), generator.generator),
        *map(_cell, (mean.value, mean.low, mean.high)),
        *(str(generator.scored), str(generator.prompts), str(generator.images)),
        *(_failed(generator), generator.reason or ranking.comparison.reason),
    )


def _ranking_key(ranking: GeneratorRanking) -> tuple[str, ...]:
    return ranking.benchmark, ranking.judge, ranking.aspect, ranking.statistic, ranking.heading, ranking.word


def _contest_key(ranking: ContestRanking) -> tuple[str, ...]:
    return ranking.benchmark, ranking.part, ranking.voter, ranking.subject


def _failed(generator: RankedGenerator) -> str:
    failed = [f"{status} {n}" for status, n in generator.statuses if not status.usable]
    return ", ".join(failed)


def _ranks(ranks: tuple[int, int] | None) -> str:
    if ranks is None:
        return ""
    best, worst = ranks
    return str(best) if best == worst else f"{best}-{worst}"


def _mean(estimate: tuple[float, float, float, float]) -> str:
    return with_interval(*estimate[:3], "fewer than two prompts rated")


def _integer_text(value: int | None) -> str:
    return "" if value is None else str(value)


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
