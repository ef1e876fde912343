"""Rankings of generators as tables: to read, and in long form for programs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TypeVar

from vieval_plugin.images import name_of
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.meta_evaluation.candidates import Candidate
from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.contest_ranking import ContestRanking
from vieval_plugin.meta_evaluation.corrected_ranking import CORRECTED, CorrectedRanking
from vieval_plugin.meta_evaluation.generator_ranking import ALL, MEAN, GeneratorRanking, RankedGenerator
from vieval_plugin.meta_evaluation.tables import Table, number, p_text, with_interval
from vieval_plugin.meta_evaluation.win_rates import WIN_RATE
from vieval_plugin.records import OWN, YOUR_IMAGES, JudgeName
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.wording import decimals

DEFAULT = "O"
"""The aspect that stands first, because it is about the whole image; of a judge without it, the first that it rates."""
_WIDEST = 8
_MOST_ROWS = 20
_SAMPLES = ("benchmark", "judge", "model", "setting", "aspect", "statistic", "heading", "word")
_CONTESTS = ("benchmark", "part", "voter", "votes_from")
_CORRECTED_HEADER = (
    *("rank", "generator", "corrected [95%]", "judge alone [95%]", "people's labels alone [95%]"),
    *("labels", "weight of the judge", "kinds without labels"),
)
_INTERVAL = ("ci_low", "ci_high")
_MEANS = tuple(f"{source}_{what}" for source in ("judge", "labels", "corrected") for what in ("mean", *_INTERVAL))
_PAIRS = (
    *(*_SAMPLES, "better", "worse", "n", "mean_better", "mean_worse"),
    *("difference", *_INTERVAL, "p", "p_holm"),
)
_CSV_TABLE_HEADERS: Mapping[str, tuple[str, ...]] = {
    "generators": (
        *(*_SAMPLES, "rank", "last_rank", "generator", "mean", *_INTERVAL),
        *("n", "prompts", "images", "failed", "why_not"),
    ),
    "generator_pairs": _PAIRS,
    "corrected": (
        *(*_SAMPLES[:5], "rank", "last_rank", "generator", *_MEANS),
        *("weight", "labels", "images", "kinds_without_labels"),
    ),
    "corrected_pairs": (*_PAIRS, *(f"labels_{name}" for name in ("difference", *_INTERVAL))),
    "contests": (
        *(*_CONTESTS, "rank", "last_rank", "image_model", "log_strength", *_INTERVAL),
        *("expected_wins", "pairs", "why_not"),
    ),
    "contest_pairs": (*_CONTESTS, "better", "worse", "n", "difference", *_INTERVAL, "p", "p_holm"),
}
_GroupedT = TypeVar("_GroupedT")


def main_rankings(rankings: Sequence[GeneratorRanking]) -> list[GeneratorRanking]:
    """Rankings that answer which generator is best: each judge's by its default aspect over all prompts, and by contests.

    Where no two generators have prompts in common, as where parts have generators of their own, each part is ranked
    alone.
    """
    main: list[GeneratorRanking] = []
    for of_judge in _grouped(rankings, "benchmark", "judge").values():
        contests = [ranking for ranking in of_judge if ranking.statistic == WIN_RATE]
        if len({ranking.aspect for ranking in contests}) > 1:
            contests = [ranking for ranking in contests if ranking.aspect == default_aspect(contests)]
        scored = [ranking for ranking in of_judge if ranking.statistic == MEAN]
        default = default_aspect(scored) if scored else ""
        over_all = [ranking for ranking in scored if not ranking.breakdown and ranking.aspect == default]
        parts = [ranking for ranking in scored if ranking.breakdown == "part" and ranking.aspect == default]
        by_part = any(not ranking.comparison.all_pairs and len(ranking.generators) > 1 for ranking in over_all)
        main += [*(parts if by_part and parts else over_all), *contests]
    return main


def without_pairs(ranking: GeneratorRanking, reason: str) -> GeneratorRanking:
    """A ranking without ranks and differences, for this reason; the ranking itself where the reason is empty."""
    if not reason:
        return ranking
    standings = tuple(replace(standing, ranks=None) for standing in ranking.comparison.standings)
    comparison = replace(ranking.comparison, standings=standings, pairs=(), other_pairs=(), reason=reason.rstrip("."))
    generators = tuple(replace(generator, ranks=None) for generator in ranking.generators)
    return replace(ranking, generators=generators, comparison=comparison)


def without_model_pairs(contests: ContestRanking, reason: str) -> ContestRanking:
    """A ranking by contests as `without_pairs` makes it."""
    if not reason:
        return contests
    models = tuple(replace(model, ranks=None) for model in contests.models)
    return replace(contests, models=models, pairs=(), why=reason.rstrip("."))


def main_tables(ranking: GeneratorRanking, rankings: Sequence[GeneratorRanking]) -> list[Table]:
    """A table of a main ranking with the means of the judge's other aspects, and one of pairs of more than two generators.

    Args:
        ranking: one of `main_rankings`.
        rankings: all that there are.
    """
    key = (ranking.benchmark, ranking.judge, ranking.statistic, ranking.breakdown, ranking.breakdown_value)
    by_aspect = [
        candidate
        for candidate in rankings
        if candidate.aspect != ranking.aspect
        and ranking.statistic == MEAN
        and (candidate.benchmark, candidate.judge, candidate.statistic, candidate.breakdown, candidate.breakdown_value)
        == key
    ]
    means = {candidate.aspect: {g.generator: g.mean for g in candidate.generators} for candidate in by_aspect}
    table = _ranking(ranking, {aspect: by_model for aspect, by_model in means.items() if by_model})
    return [table, *([_pairs(ranking)] if len(ranking.comparison.all_pairs) > 1 else [])]


def ranking_tables(
    rankings: Sequence[GeneratorRanking], corrected: Collection[tuple[str, JudgeName]] = ()
) -> list[Table]:
    """For each judge: its ranking by each aspect, pairs, and the default aspect by the values of each breakdown.

    Args:
        rankings: of judges, without corrections.
        corrected: the benchmarks and judges with corrected tables beside these, whose titles tell the two apart.
    """
    main = set(map(id, main_rankings(rankings)))
    tables: list[Table] = []
    for of_judge in _grouped(rankings, "benchmark", "judge").values():
        is_corrected = (of_judge[0].benchmark, of_judge[0].judge) in corrected
        alone = "; by the judge alone, not corrected" if is_corrected else ""
        tables += [replace(table, title=table.title + alone) for table in _judge_tables(of_judge, main)]
    return tables


def _judge_tables(of_judge: Sequence[GeneratorRanking], main: Collection[int]) -> list[Table]:
    """Tables of one judge's rankings, of which `main` has the ids of those that come first."""
    tables: list[Table] = []
    unbroken = [ranking for ranking in of_judge if id(ranking) in main or not ranking.breakdown]
    for ranking in sorted(unbroken, key=lambda ranking: id(ranking) not in main):
        tables += [_ranking(ranking, {}), *([_pairs(ranking)] if ranking.comparison.all_pairs else [])]
    default = default_aspect(of_judge)
    return [*tables, *_broken_down([r for r in of_judge if r.breakdown and r.aspect == default and id(r) not in main])]


def corrected_tables(corrected: CorrectedRanking, fewest_pairs: int = 1) -> list[Table]:
    """Generators by their corrected means, and their corrected differences where there are `fewest_pairs` or more."""
    pairs = corrected.ranking.comparison.pairs
    return [_corrected_means(corrected), *([_corrected_pairs(corrected)] if len(pairs) >= fewest_pairs else [])]


def _corrected_pairs(corrected: CorrectedRanking) -> Table:
    table = _pairs(corrected.ranking)
    rows = tuple(
        (*row, with_interval(alone, 3)) for row, alone in zip(table.rows, _label_differences(corrected), strict=True)
    )
    return replace(table, header=(*table.header, "people's labels alone [95%]"), rows=rows)


def _label_differences(corrected: CorrectedRanking) -> list[Estimate]:
    """The differences by people's ratings alone, of each pair as its row has it: the better by the corrected one first."""
    pairs = zip(corrected.ranking.comparison.all_pairs, corrected.by_ratings, strict=True)
    return [alone.negated if pair.result.difference.value < 0 else alone for pair, alone in pairs]


def _corrected_means(corrected: CorrectedRanking) -> Table:
    """Generators by their corrected means, beside the judge's mean and that of people's ratings alone."""
    ranking = corrected.ranking
    ranks = {standing.system.label: standing.rank_text for standing in ranking.comparison.standings}
    rows = [
        (
            *(ranks[mean.generator], mean.generator),
            with_interval(mean.corrected.mean, 3),
            with_interval(mean.raw, 3),
            with_interval(mean.human.mean, 3),
            f"{mean.rated} of {mean.images}",
            decimals(mean.corrected.weight, ".2f"),
            ", ".join(mean.unrated_kinds),
        )
        for mean in corrected.estimates
    ]
    title = f"{_title(ranking)}, {ranking.judge}: {ranking.aspect}, corrected by people's labels; {ranking.comparison.family}"
    return Table("corrected", title, _CORRECTED_HEADER, tuple(rows))


def contest_tables(rankings: Sequence[ContestRanking]) -> list[Table]:
    """For each part, and people or a judge: image models by their strength."""
    tables = []
    for ranking in rankings:
        models = sorted(ranking.models, key=lambda model: -model.strength.value if model.strength.defined else 0)
        rows = [
            (
                _ranks(model.ranks),
                model.image_model,
                with_interval(model.strength, digits=3),
                decimals(model.share, ".1%"),
                str(model.contests),
            )
            for model in models
        ]
        votes = "" if ranking.subject == "votes" else f" (votes from {ranking.subject})"
        tie = "" if math.isnan(ranking.tie) else f", ties {ranking.tie:.2f}"
        why = f"; no ranking: {ranking.why}" if ranking.why else ""
        title = f"{ranking.benchmark}/{ranking.part}, contests by {ranking.voter}{votes}: Bradley-Terry with ties (Davidson){tie}; {ranking.answered_pairs} of {ranking.pairs_asked} pairs answered{why}"
        header = ("rank", "image model", "log strength [95%]", "expected wins", "pairs")
        tables.append(Table("contests", title, header, tuple(rows)))
    return tables


def best_of_table(candidates: Mapping[tuple[str, ...], Sequence[Candidate]]) -> Table:
    """The best image of each prompt, by its file where that is known.

    Args:
        candidates: of each prompt, best first.
    """
    rows = []
    for images in candidates.values():
        best = images[0]
        output = best.record.sample.images.get("output") if isinstance(best.record.sample, Sample) else None
        file = name_of(output) if output else ""
        identity = best.record.id
        rows.append(
            (identity.uid, identity.image_model, str(identity.draw), f"{best.score:.4f}", str(len(images)), file)
        )
    return Table("best_of", "", ("prompt", "generator", "image", "score", "of", "file"), tuple(rows))


def long_tables(
    rankings: Sequence[GeneratorRanking], corrected: Sequence[CorrectedRanking], contests: Sequence[ContestRanking]
) -> list[Table]:
    """Tables in long form: of generators, corrected means and contests, each with its pairs."""
    rows = {
        "generators": [
            (*_ranking_key(ranking), *_long(ranking, generator))
            for ranking in rankings
            for generator in ranking.generators
        ],
        "generator_pairs": [row for ranking in rankings for row in _pair_rows(ranking)],
        "corrected": [row for member in corrected for row in _corrected_rows(member)],
        "corrected_pairs": [
            (*row, *map(_cell, _value_and_ends(alone)))
            for member in corrected
            for row, alone in zip(_pair_rows(member.ranking), _label_differences(member), strict=True)
        ],
        "contests": [
            (
                *(*_contest_ranking_key(contest), *_rank_ends(model.ranks), model.image_model),
                *map(_cell, (*_value_and_ends(model.strength), model.share)),
                *(str(model.contests), contest.why),
            )
            for contest in contests
            for model in contest.models
        ],
        "contest_pairs": [
            (
                *(*_contest_ranking_key(contest), pair.first, pair.second, str(pair.n)),
                *map(_cell, (*pair.result.numbers[2:], pair.adjusted)),
            )
            for contest in contests
            for pair in map(SystemPair.better_first, contest.pairs)
        ],
    }
    return [Table(name, "", header, tuple(rows[name])) for name, header in _CSV_TABLE_HEADERS.items()]


def _pair_rows(ranking: GeneratorRanking) -> list[tuple[str, ...]]:
    return [
        (
            *(*_ranking_key(ranking), pair.first, pair.second, str(pair.n)),
            *map(_cell, (*pair.result.numbers, pair.adjusted)),
        )
        for pair in map(SystemPair.better_first, ranking.comparison.all_pairs)
    ]


def _corrected_rows(corrected: CorrectedRanking) -> list[tuple[str, ...]]:
    ranking = corrected.ranking
    return [
        (
            *(*_ranking_key(ranking)[:5],),
            *(*_rank_ends(standing.ranks), mean.generator),
            *map(_cell, (end for e in (mean.raw, mean.human.mean, mean.corrected.mean) for end in _value_and_ends(e))),
            *(_cell(mean.corrected.weight), str(mean.rated), str(mean.images), ", ".join(mean.unrated_kinds)),
        )
        for mean, standing in zip(corrected.estimates, ranking.comparison.standings, strict=True)
    ]


def _grouped(members: Sequence[_GroupedT], *fields: str) -> dict[tuple[str, ...], list[_GroupedT]]:
    groups: dict[tuple[str, ...], list[_GroupedT]] = defaultdict(list)
    for member in members:
        groups[attrgetter(*fields)(member)].append(member)
    return groups


def default_aspect(rankings: Sequence[GeneratorRanking]) -> str:
    """The aspect that stands first: O, or else the first that the judge rates."""
    aspects = [ranking.aspect for ranking in rankings]
    return DEFAULT if DEFAULT in aspects else aspects[0]


def _ranking(ranking: GeneratorRanking, means_by_aspect: Mapping[str, Mapping[str, Estimate]]) -> Table:
    """Generators in order; `beside` are means of other aspects by generator."""
    why = any(generator.reason for generator in ranking.generators)
    rows = [
        (
            *(_ranks(generator.ranks), generator.generator, with_interval(generator.mean, 3)),
            *(number(means.get(generator.generator), 3) for means in means_by_aspect.values()),
            *(f"{generator.scored} of {generator.prompts}", str(generator.images), _failed(generator)),
            *([generator.reason] if why else []),
        )
        for generator in ranking.generators
    ]
    where = (
        _title(ranking)
        if ranking.breakdown_value == ALL
        else f"{_title(ranking)}, {ranking.breakdown} {ranking.breakdown_value}"
    )
    method = f"no ranking: {ranking.comparison.reason}" if ranking.comparison.reason else ranking.comparison.family
    warned = "".join(f"; {line}" for line in ranking.comparison.warnings())
    title = f"{where}, {ranking.judge}: {ranking.aspect}, {ranking.statistic}; {method}{warned}"
    measured = WIN_RATE if ranking.statistic == WIN_RATE else ranking.aspect
    header = ("rank", "generator", f"{measured} [95%]", *means_by_aspect, "n", "images", "failed")
    return Table("ranking", title, (*header, "not ranked because") if why else header, tuple(rows))


def _title(ranking: GeneratorRanking) -> str:
    """The benchmark as a title begins with it."""
    return YOUR_IMAGES.capitalize() if ranking.benchmark == OWN else ranking.benchmark


def _pairs(ranking: GeneratorRanking) -> Table:
    rows = [
        (
            f"{pair.first} - {pair.second}",
            str(pair.n),
            with_interval(pair.result.difference, 3),
            p_text(pair.result.p),
            p_text(pair.adjusted),
        )
        for pair in map(SystemPair.better_first, ranking.comparison.all_pairs)
    ]
    measured = "corrected by people's labels" if ranking.statistic == CORRECTED else ranking.statistic
    title = f"{ranking.judge}: {ranking.aspect}, {measured}, differences on the prompts that both have" + (
        "" if ranking.breakdown_value == ALL else f" of {ranking.breakdown_value}"
    )
    significant = any(pair.significant for pair in ranking.comparison.all_pairs)
    names = "better - worse" if significant else "first - second"
    difference = "win rate minus one half [95%]" if ranking.statistic == WIN_RATE else "difference [95%]"
    return Table("pairs", title, (names, ranking.comparison.compared.unit, difference, "p", "p (Holm)"), tuple(rows))


def _broken_down(rankings: Sequence[GeneratorRanking]) -> list[Table]:
    """A row a value, a column a generator, of what is a plain mean; too many of either are in the files alone."""
    tables = []
    for (breakdown, statistic), members in _grouped(rankings, "breakdown", "statistic").items():
        names = list(dict.fromkeys(generator.generator for ranking in members for generator in ranking.generators))
        if len(names) > _WIDEST:
            continue
        rows = []
        for ranking in members[:_MOST_ROWS]:
            cells = {generator.generator: _short(generator) for generator in ranking.generators}
            prompts = max(generator.prompts for generator in ranking.generators)
            rows.append((ranking.breakdown_value, str(prompts), *(cells.get(name, "") for name in names)))
        more = f"; {_MOST_ROWS} of {len(members)}, all in the CSV" if len(members) > _MOST_ROWS else ""
        first = members[0]
        title = f"{_title(first)}, {first.judge}: {first.aspect} by {breakdown}, {statistic} (rank){more}"
        tables.append(Table(f"by_{breakdown}", title, (breakdown, "prompts", *names), tuple(rows)))
    return tables


def _short(generator: RankedGenerator) -> str:
    """The mean, with the rank where there is one."""
    mean = decimals(generator.mean.value, ".3f")
    return f"{mean} ({_ranks(generator.ranks)})" if generator.ranks else mean


def _long(ranking: GeneratorRanking, generator: RankedGenerator) -> tuple[str, ...]:
    return (
        *(*_rank_ends(generator.ranks), generator.generator),
        *map(_cell, _value_and_ends(generator.mean)),
        *(str(generator.scored), str(generator.prompts), str(generator.images)),
        *(_failed(generator), generator.reason or ranking.comparison.reason),
    )


def _ranking_key(ranking: GeneratorRanking) -> tuple[str, ...]:
    judge = ranking.judge
    model = " ".join(filter(None, [judge.model, judge.details]))
    key = ranking.benchmark, judge.judge, model, judge.setting
    return *key, ranking.aspect, ranking.statistic, ranking.breakdown, ranking.breakdown_value


def _contest_ranking_key(ranking: ContestRanking) -> tuple[str, ...]:
    return ranking.benchmark, ranking.part, ranking.voter, ranking.subject


def _failed(generator: RankedGenerator) -> str:
    failed = [f"{status} {n}" for status, n in generator.statuses if not status.usable]
    return ", ".join(failed) or "0"


def _ranks(ranks: tuple[int, int] | None) -> str:
    if ranks is None:
        return ""
    best, worst = ranks
    return str(best) if best == worst else f"{best}-{worst}"


def _value_and_ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def _rank_ends(ranks: tuple[int, int] | None) -> tuple[str, str]:
    return (str(ranks[0]), str(ranks[1])) if ranks else ("", "")


def _cell(value: float) -> str:
    return decimals(value, ".6g")
