"""Rankings of generators as tables: to read, and in long form for programs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TypeVar

from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.contest_ranking import ContestRanking
from vieval_plugin.meta_evaluation.generator_ranking import ALL, GeneratorEstimates, GeneratorRanking, RankedGenerator
from vieval_plugin.meta_evaluation.tables import Table, p_text, with_interval
from vieval_plugin.stats.estimate import Estimate

DEFAULT = "O"
"""The aspect that stands first, because it is about the whole image; of a judge without it, the first that it rates."""
_WIDEST = 8
_MOST_ROWS = 20
_SAMPLES = ("benchmark", "judge", "aspect", "statistic", "heading", "word")
_CONTESTS = ("benchmark", "part", "voter", "votes_from")
_CORRECTED_HEADER = (
    *("generator", "judge alone [95%]", "people's labels alone [95%]", "corrected [95%]"),
    *("labels", "weight of the judge", "kinds without labels"),
)
_INTERVAL = ("ci_low", "ci_high")
_MEANS = tuple(f"{source}_{what}" for source in ("judge", "labels", "corrected") for what in ("mean", *_INTERVAL))
_LONG_HEADERS: Mapping[str, tuple[str, ...]] = {
    "generators": (
        *(*_SAMPLES, "rank", "last_rank", "generator", "mean", *_INTERVAL),
        *("n", "prompts", "images", "failed", "why_not"),
    ),
    "generator_pairs": (
        *(*_SAMPLES, "better", "worse", "n", "mean_better", "mean_worse"),
        *("difference", *_INTERVAL, "p", "p_holm"),
    ),
    "corrected": (*_SAMPLES[:3], "generator", *_MEANS, "weight", "labels", "images", "kinds_without_labels"),
    "contests": (
        *(*_CONTESTS, "rank", "last_rank", "image_model", "log_strength", *_INTERVAL),
        *("expected_wins", "pairs", "why_not"),
    ),
    "contest_pairs": (*_CONTESTS, "first", "second", "difference", *_INTERVAL, "p", "p_holm"),
}
_Member = TypeVar("_Member")


def ranking_tables(rankings: Sequence[GeneratorRanking]) -> list[Table]:
    """For each judge: its ranking by each aspect, pairs, and the default aspect under the words of each heading.

    Where no two generators have prompts in common, as where parts have generators of their own, each part is ranked
    alone.
    """
    tables: list[Table] = []
    for of_judge in _grouped(rankings, "benchmark", "judge").values():
        default = _default(of_judge)
        over_all = [ranking for ranking in of_judge if ranking.word == ALL and not ranking.heading]
        over_all.sort(key=lambda ranking: ranking.aspect != default)
        by_part = any(not ranking.comparison.all_pairs and len(ranking.generators) > 1 for ranking in over_all)
        broken_down = [ranking for ranking in of_judge if ranking.heading and ranking.aspect == default]
        parts = [ranking for ranking in broken_down if ranking.heading == "part"]
        for ranking in parts if by_part and parts else over_all:
            tables += [_ranking(ranking), *([_pairs(ranking)] if ranking.comparison.all_pairs else [])]
        tables += _broken_down([ranking for ranking in broken_down if not (by_part and ranking.heading == "part")])
    return tables


def corrected_tables(corrected: Sequence[GeneratorEstimates]) -> list[Table]:
    """For each judge and aspect: the judge's mean, that of people's ratings alone, and the corrected one."""
    tables = []
    for (benchmark, judge, aspect), means in _grouped(corrected, "benchmark", "judge", "aspect").items():
        means.sort(key=lambda mean: -mean.corrected.mean.value if mean.corrected.mean.defined else 1)
        rows = [
            (
                mean.generator,
                with_interval(mean.raw),
                with_interval(mean.people.mean),
                with_interval(mean.corrected.mean),
                f"{mean.rated} of {mean.images}",
                "" if math.isnan(mean.corrected.weight) else f"{mean.corrected.weight:.2f}",
                ", ".join(mean.unrated_kinds),
            )
            for mean in means
        ]
        title = f"{benchmark}, {judge}: {aspect}, what people would say"
        tables.append(Table("corrected", title, _CORRECTED_HEADER, tuple(rows)))
    return tables


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
    rankings: Sequence[GeneratorRanking], corrected: Sequence[GeneratorEstimates], contests: Sequence[ContestRanking]
) -> list[Table]:
    """Tables in long form: of generators, of their pairs, of corrected means, of contests, of their pairs."""
    rows = {
        "generators": [
            (*_ranking_key(ranking), *_long(ranking, generator))
            for ranking in rankings
            for generator in ranking.generators
        ],
        "generator_pairs": [
            (
                *_ranking_key(ranking),
                pair.first,
                pair.second,
                str(pair.n),
                *map(_cell, (*pair.result.numbers, pair.adjusted)),
            )
            for ranking in rankings
            for pair in map(SystemPair.better_first, ranking.comparison.all_pairs)
        ],
        "corrected": [
            (
                *(mean.benchmark, mean.judge, mean.aspect, mean.generator),
                *map(
                    _cell,
                    (
                        *_value_and_ends(mean.raw),
                        *_value_and_ends(mean.people.mean),
                        *_value_and_ends(mean.corrected.mean),
                    ),
                ),
                _cell(mean.corrected.weight),
                *(str(mean.rated), str(mean.images), ", ".join(mean.unrated_kinds)),
            )
            for mean in corrected
        ],
        "contests": [
            (
                *(*_contest_key(contest), *_rank_ends(model.ranks), model.image_model),
                *map(_cell, (*_value_and_ends(model.strength), model.share)),
                *(str(model.contests), contest.why),
            )
            for contest in contests
            for model in contest.models
        ],
        "contest_pairs": [
            (
                *(*_contest_key(contest), pair.first, pair.second),
                *map(_cell, (*_value_and_ends(pair.difference), pair.p, pair.adjusted)),
            )
            for contest in contests
            for pair in contest.pairs
        ],
    }
    return [Table(name, "", header, tuple(rows[name])) for name, header in _LONG_HEADERS.items()]


def _grouped(members: Sequence[_Member], *fields: str) -> dict[tuple[str, ...], list[_Member]]:
    groups: dict[tuple[str, ...], list[_Member]] = defaultdict(list)
    for member in members:
        groups[attrgetter(*fields)(member)].append(member)
    return groups


def _default(rankings: Sequence[GeneratorRanking]) -> str:
    aspects = [ranking.aspect for ranking in rankings]
    return DEFAULT if DEFAULT in aspects else aspects[0]


def _ranking(ranking: GeneratorRanking) -> Table:
    rows = [
        (
            _ranks(generator.ranks),
            generator.generator,
            with_interval(generator.mean),
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
            with_interval(pair.result.difference),
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
    for (heading, statistic), breakdown in _grouped(rankings, "heading", "statistic").items():
        names = list(dict.fromkeys(generator.generator for ranking in breakdown for generator in ranking.generators))
        if len(names) > _WIDEST:
            continue
        rows = []
        for ranking in breakdown[:_MOST_ROWS]:
            cells = {generator.generator: _short(generator) for generator in ranking.generators}
            prompts = max(generator.prompts for generator in ranking.generators)
            rows.append((ranking.word, str(prompts), *(cells.get(name, "") for name in names)))
        more = f"; {_MOST_ROWS} of {len(breakdown)}, all with --out" if len(breakdown) > _MOST_ROWS else ""
        first = breakdown[0]
        title = f"{first.benchmark}, {first.judge}: {first.aspect} by {heading}, {statistic} (rank){more}"
        tables.append(Table(f"by_{heading}", title, (heading, "prompts", *names), tuple(rows)))
    return tables


def _short(generator: RankedGenerator) -> str:
    """The mean, with the rank where there is one."""
    mean = "" if math.isnan(generator.mean.value) else f"{generator.mean.value:.3f}"
    return f"{mean} ({_ranks(generator.ranks)})" if generator.ranks else mean


def _long(ranking: GeneratorRanking, generator: RankedGenerator) -> tuple[str, ...]:
    return (
        *(*_rank_ends(generator.ranks), generator.generator),
        *map(_cell, _value_and_ends(generator.mean)),
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


def _value_and_ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def _rank_ends(ranks: tuple[int, int] | None) -> tuple[str, str]:
    return (str(ranks[0]), str(ranks[1])) if ranks else ("", "")


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
