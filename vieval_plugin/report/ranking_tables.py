"""Rankings of generators as tables: to read, and in long form for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.contest_ranking import ContestRanking
from vieval_plugin.meta_evaluation.generator_ranking import ALL, CorrectedGenerator, GeneratorRanking, RankedGenerator
from vieval_plugin.meta_evaluation.tables import Table, p_text, with_interval

DEFAULT = "O"
"""The aspect that stands first, because it is about the whole image; of a judge without it, the first that it rates."""
_WIDEST = 8
_MOST_ROWS = 20
_SAMPLES = ("benchmark", "judge", "aspect", "statistic", "heading", "word")
_CONTESTS = ("benchmark", "part", "voter", "votes_from")


def ranking_tables(rankings: Sequence[GeneratorRanking]) -> list[Table]:
    """For each judge: its ranking by each aspect, pairs, and the default aspect under the words of each heading.

    Where no two generators have prompts in common, as where parts have generators of their own, each part is ranked alone.
    """
    made: list[Table] = []
    for run in dict.fromkeys((one.benchmark, one.judge) for one in rankings):
        of_run = [one for one in rankings if (one.benchmark, one.judge) == run]
        default = _default(of_run)
        over_all = sorted(
            (one for one in of_run if one.word == ALL and not one.heading), key=lambda one: one.aspect != default
        )
        apart = any(not one.comparison.all_pairs and len(one.generators) > 1 for one in over_all)
        parts = [one for one in of_run if one.heading == "part" and one.aspect == default]
        for one in parts if apart and parts else over_all:
            made += [_ranking(one), *([_pairs(one)] if one.comparison.all_pairs else [])]
        broken_down = [
            one for one in of_run if one.heading and one.aspect == default and not (apart and one.heading == "part")
        ]
        made += _broken_down(broken_down)
    return made


def corrected_tables(corrected: Sequence[CorrectedGenerator]) -> list[Table]:
    """For each judge and aspect: the judge's mean, that of people's ratings alone, and the corrected one."""
    made = []
    for key in dict.fromkeys((one.benchmark, one.judge, one.aspect) for one in corrected):
        of_key = [one for one in corrected if (one.benchmark, one.judge, one.aspect) == key]
        benchmark, judge, aspect = key
        rows = [
            (
                one.generator,
                with_interval(one.raw.value, one.raw.low, one.raw.high),
                _mean(one.people),
                _mean(one.corrected),
                f"{one.rated} of {one.images}",
                "" if math.isnan(one.corrected.weight) else f"{one.corrected.weight:.2f}",
                ", ".join(one.unrated_kinds),
            )
            for one in sorted(of_key, key=lambda one: -one.corrected.mean if not math.isnan(one.corrected.mean) else 1)
        ]
        header = ("generator", "judge alone [95%]", "people's labels alone [95%]", "corrected [95%]")
        title = f"{benchmark}, {judge}: {aspect}, what people would say"
        made.append(
            Table("corrected", title, (*header, "labels", "weight of the judge", "kinds without labels"), tuple(rows))
        )
    return made


def contest_tables(rankings: Sequence[ContestRanking]) -> list[Table]:
    """For each part, and people or a judge: image models by their strength."""
    made = []
    for one in rankings:
        models = sorted(one.models, key=lambda model: -model.strength if not math.isnan(model.strength) else 0)
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
        votes = "" if one.subject == "votes" else f" (votes from {one.subject})"
        tie = "" if math.isnan(one.tie) else f", ties {one.tie:.2f}"
        why = f"; no ranking: {one.why}" if one.why else ""
        title = f"{one.benchmark}/{one.part}, contests by {one.voter}{votes}: Bradley-Terry with ties (Davidson){tie}; {one.answered} of {one.pairs_asked} pairs answered{why}"
        header = ("rank", "image model", "log strength [95%]", "expected wins", "pairs")
        made.append(Table("contests", title, header, tuple(rows)))
    return made


def long_tables(
    rankings: Sequence[GeneratorRanking], corrected: Sequence[CorrectedGenerator], contests: Sequence[ContestRanking]
) -> list[Table]:
    """All numbers in long form: a table of generators, of their pairs, of corrected means, of contests, of their pairs."""
    interval = ("mean", "ci_low", "ci_high")
    own = ("n", "prompts", "images", "failed")
    generators = [(*_about(one), *_long(one, generator)) for one in rankings for generator in one.generators]
    pairs = [
        (*_about(one), pair.first, pair.second, str(pair.n), *map(_cell, (*pair.result, pair.adjusted)))
        for one in rankings
        for pair in map(SystemPair.better_first, one.comparison.all_pairs)
    ]
    means = [
        (
            *(one.benchmark, one.judge, one.aspect, one.generator),
            *map(_cell, (one.raw.value, one.raw.low, one.raw.high, *one.people[:3], *one.corrected)),
            *(str(one.rated), str(one.images), ", ".join(one.unrated_kinds)),
        )
        for one in corrected
    ]
    models = [
        (
            *_contest(one),
            *(_whole(model.ranks and model.ranks[0]), _whole(model.ranks and model.ranks[1]), model.image_model),
            *map(_cell, (model.strength, model.low, model.high, model.share)),
            *(str(model.contests), one.why),
        )
        for one in contests
        for model in one.models
    ]
    contest_pairs = [
        (
            *_contest(one),
            pair.first,
            pair.second,
            *map(_cell, (pair.difference, pair.low, pair.high, pair.p, pair.adjusted)),
        )
        for one in contests
        for pair in one.pairs
    ]
    of_pair = ("better", "worse", "n", "mean_better", "mean_worse", "difference", "ci_low", "ci_high", "p", "p_holm")
    three = [f"{who}_{what}" for who in ("judge", "labels", "corrected") for what in interval]
    return [
        Table(
            "generators",
            "",
            (*_SAMPLES, "rank", "last_rank", "generator", *interval, *own, "why_not"),
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
    aspects = [one.aspect for one in rankings]
    return DEFAULT if DEFAULT in aspects else aspects[0]


def _ranking(one: GeneratorRanking) -> Table:
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
        for generator in one.generators
    ]
    where = one.benchmark if one.word == ALL else f"{one.benchmark}, {one.heading} {one.word}"
    method = f"no ranking: {one.comparison.reason}" if one.comparison.reason else one.comparison.family
    warned = "".join(f"; {line}" for line in one.comparison.warnings())
    header = ("rank", "generator", "mean [95%]", "n", "images", "failed", "not ranked because")
    title = f"{where}, {one.judge}: {one.aspect}, {one.statistic}; {method}{warned}"
    return Table("ranking", title, header, tuple(rows))


def _pairs(one: GeneratorRanking) -> Table:
    rows = [
        (
            f"{pair.first} - {pair.second}",
            str(pair.n),
            with_interval(pair.result.difference, pair.result.low, pair.result.high),
            p_text(pair.result.p),
            p_text(pair.adjusted),
        )
        for pair in map(SystemPair.better_first, one.comparison.all_pairs)
    ]
    title = f"{one.judge}: {one.aspect}, {one.statistic}, differences on the prompts that both have" + (
        "" if one.word == ALL else f" of {one.word}"
    )
    return Table("pairs", title, ("better - worse", "n", "difference [95%]", "p", "p (Holm)"), tuple(rows))


def _broken_down(rankings: Sequence[GeneratorRanking]) -> list[Table]:
    """A row a word, a column a generator, of what is a plain mean; too many of either are in the files alone."""
    made = []
    for key in dict.fromkeys((one.heading, one.statistic) for one in rankings):
        held = [one for one in rankings if (one.heading, one.statistic) == key]
        names = list(dict.fromkeys(generator.generator for one in held for generator in one.generators))
        if len(names) > _WIDEST:
            continue
        rows = []
        for one in held[:_MOST_ROWS]:
            cells = {generator.generator: _short(generator) for generator in one.generators}
            prompts = max(generator.prompts for generator in one.generators)
            rows.append((one.word, str(prompts), *(cells.get(name, "") for name in names)))
        more = f"; {_MOST_ROWS} of {len(held)}, all with --out" if len(held) > _MOST_ROWS else ""
        title = f"{held[0].benchmark}, {held[0].judge}: {held[0].aspect} by {key[0]}, {key[1]} (rank){more}"
        made.append(Table(f"by_{key[0]}", title, (key[0], "prompts", *names), tuple(rows)))
    return made


def _short(generator: RankedGenerator) -> str:
    """The mean, with the rank where there is one."""
    mean = "" if math.isnan(generator.mean.value) else f"{generator.mean.value:.3f}"
    return f"{mean} ({_ranks(generator.ranks)})" if generator.ranks else mean


def _long(one: GeneratorRanking, generator: RankedGenerator) -> tuple[str, ...]:
    mean, (best, worst) = generator.mean, generator.ranks or (None, None)
    return (
        *(_whole(best), _whole(worst), generator.generator),
        *map(_cell, (mean.value, mean.low, mean.high)),
        *(str(generator.scored), str(generator.prompts), str(generator.images)),
        *(_failed(generator), generator.reason or one.comparison.reason),
    )


def _about(one: GeneratorRanking) -> tuple[str, ...]:
    return one.benchmark, one.judge, one.aspect, one.statistic, one.heading, one.word


def _contest(one: ContestRanking) -> tuple[str, ...]:
    return one.benchmark, one.part, one.voter, one.subject


def _failed(generator: RankedGenerator) -> str:
    failed = [f"{status} {n}" for status, n in generator.statuses if not status.usable]
    return ", ".join(failed)


def _ranks(ranks: tuple[int, int] | None) -> str:
    if ranks is None:
        return ""
    best, worst = ranks
    return str(best) if best == worst else f"{best}-{worst}"


def _mean(found: tuple[float, float, float, float]) -> str:
    return with_interval(*found[:3], "fewer than two prompts rated")


def _whole(value: int | None) -> str:
    return "" if value is None else str(value)


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
