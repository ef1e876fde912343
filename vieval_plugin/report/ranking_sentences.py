"""Sentences about a ranking of generators: the answer first, then what limits it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.comparison import LEAST_FOR_A_TEST, SystemPair
from vieval_plugin.meta_evaluation.corrected_ranking import CORRECTED, LEAST_RATED, CorrectedRanking
from vieval_plugin.meta_evaluation.generator_ranking import MEAN, GeneratorRanking, RankedGenerator
from vieval_plugin.meta_evaluation.tables import p_sentence, p_text
from vieval_plugin.meta_evaluation.win_rates import EVEN, WIN_RATE, PositionBias
from vieval_plugin.records import YOUR_IMAGES
from vieval_plugin.report.headlines.sentences import few_sentence
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.wording import enumeration

_MOST_NAMED = 4


def answer(ranking: GeneratorRanking, bias: PositionBias | None = None) -> str:
    """The best generator of a ranking in one sentence.

    Args:
        ranking: with one generator or more.
        bias: the judge's position bias, where win rates decide.
    """
    ranked = [standing.system.label for standing in ranking.comparison.ranked]
    if contradiction := contradiction_sentence(ranking, bias):
        return contradiction
    if len(ranked) < 2 or not ranking.comparison.pairs:
        return _without_ranks(ranking)
    return _of_two(ranking, ranked) if len(ranked) == 2 else _of_several(ranking, ranked)


def contradiction_sentence(ranking: GeneratorRanking, bias: PositionBias | None) -> str:
    """Sentence that a judge of contests decides nothing, as it contradicts itself; empty where it does not."""
    if ranking.statistic != WIN_RATE or bias is None or not bias.contradictory:
        return ""
    return (
        f"{ranking.judge.judge} decides nothing: it contradicts itself in {bias.contradicted} of {bias.contests} contests; "
        "take a judge that scores each image."
    )


def limits(ranking: GeneratorRanking) -> list[str]:
    """Sentences on what limits an answer: generators without a rank, failures, too few prompts, warnings of the tests."""
    comparison = ranking.comparison
    text = [f"Not ranked: {g.generator} ({g.reason})." for g in ranking.generators if g.reason and comparison.ranked]
    if failed := [f"{g.generator}: {_failures(g)}" for g in ranking.generators if _failures(g)]:
        text.append(f"Failed verdicts: {'; '.join(failed)}.")
    if len(comparison.ranked) > 2:
        doubtful = (pair.better_first() for pair in comparison.pairs if pair.doubtful)
        text += [f"{pair.second}: {_only_without_failures(ranking, pair)}." for pair in doubtful]
    if comparison.pairs and max(pair.n for pair in comparison.pairs) < LEAST_FOR_A_TEST:
        text.append(few_sentence(comparison.compared.unit))
    return [*text, *(f"{line}." for line in comparison.warnings())]


def bias_sentence(bias: PositionBias | None) -> str:
    """The position bias of a judge in one sentence; empty where there is none to be seen."""
    if bias is None or not bias.biased:
        return ""
    position = "first" if bias.first_shown.value > EVEN else "second"
    share = bias.first_shown if position == "first" else _opposite(bias.first_shown)
    return (
        f"Position bias: the judge prefers the image shown {position} in {_percent(share)} of its answers, and contradicts "
        f"itself in {bias.contradicted} of {bias.contests} contests; both orders were asked, and such contests are ties."
    )


def corrected_answer(corrected: CorrectedRanking) -> str:
    """Answer by corrected means, in one sentence: the best generator, or that the ratings are too few to decide."""
    pairs = corrected.ranking.comparison.pairs
    if not pairs or not corrected.decides_nothing:
        return answer(corrected.ranking)
    if len(pairs) > 1:
        first = corrected.estimates[0]
        mean = _interval(first.corrected.mean)
        so_far = f"{first.generator} has the highest corrected {corrected.ranking.aspect}, {mean}"
    else:
        pair = pairs[0].better_first()
        so_far = f"{pair.first} against {pair.second}, {_result(corrected.ranking, pair)}, {_p(pair.result.p)}"
    return f"Too few ratings to decide: {_few_ratings(corrected)}; so far {so_far}."


def corrected_sentences(corrected: CorrectedRanking) -> list[str]:
    """Sentences beside corrected means: the ratings' own difference, the order turned over, and what is wrong with ratings."""
    text = []
    pairs = corrected.ranking.comparison.pairs
    if len(pairs) == 1:
        [alone], turned = corrected.by_ratings, _turned(corrected, pairs[0])
        text.append(f"By the ratings alone the difference is {_interval(alone.negated if turned else alone)}.")
    order, judged = corrected.order, corrected.judge_order
    if order != judged and any(pair.significant for pair in pairs):
        raw = {estimate.generator: estimate.raw for estimate in corrected.estimates}
        means = ", ".join(f"{generator} {raw[generator].value:.3f}" for generator in judged)
        text.append(f"The ratings turned the judge's order over: by the judge alone it is {means}.")
    if corrected.short_of_ratings and not (pairs and corrected.decides_nothing):
        text.append(f"Few ratings: {_few_ratings(corrected)}.")
    if selected := corrected.selected:
        scores = named_or_counted([f"{e.selection.value:+.3f} of {e.generator}" for e in selected])
        text.append(
            f"Labels not at random: the judge's mean of the rated images differs from that of the others ({scores}), so the "
            "corrected means may be wrong; rate images drawn by chance, as vieval label draws them."
        )
    return text


def _turned(corrected: CorrectedRanking, pair: SystemPair) -> bool:
    """True where the answer names the second of a pair first: the better one, or the first of the input."""
    if pair.significant or pair.doubtful or corrected.decides_nothing:
        return pair.result.difference.value < 0
    labels = [system.label for system in corrected.ranking.comparison.compared.systems]
    return labels.index(pair.second) < labels.index(pair.first)


def _few_ratings(corrected: CorrectedRanking) -> str:
    first, *further = corrected.short_of_ratings
    counts = [f"{first.rated_prompts} {'prompts' if first.rated_prompts > 1 else 'prompt'} of {first.generator}"]
    counts += [f"{e.rated_prompts} of {e.generator}" for e in further]
    if len(counts) > _MOST_NAMED:
        counts[_MOST_NAMED - 1 :] = [f"few of {len(counts) - _MOST_NAMED + 1} others"]
    return f"{named_or_counted(counts)}, where {LEAST_RATED} of each are needed, or all"


def why_not(ranking: GeneratorRanking, generators: Sequence[str]) -> str:
    """Reasons why generators of a ranking cannot be compared."""
    reasons = [f"{g.generator}: {g.reason}" for g in ranking.generators if g.generator in generators and g.reason]
    return "; ".join(reasons) or f"they have no {ranking.comparison.compared.unit} in common"


def _of_two(ranking: GeneratorRanking, labels: Sequence[str]) -> str:
    pair = ranking.comparison.pair_of(*labels)
    if pair is None:
        return _without_ranks(ranking)
    unit = ranking.comparison.compared.unit
    if pair.significant:
        return f"{pair.first} is better than {pair.second}: {_result(ranking, pair)}, {_p(pair.adjusted)}."
    if pair.doubtful:
        return f"{pair.first} and {pair.second} cannot be told apart: {_only_without_failures(ranking, pair)}."
    labels_in_order = [system.label for system in ranking.comparison.compared.systems]
    if labels_in_order.index(pair.second) < labels_in_order.index(pair.first):
        pair = pair.turned
    if pair.n == 1:
        return f"{pair.first} and {pair.second} cannot be told apart by one {unit[:-1]}: {_result(ranking, pair, 1)}."
    first = f"{pair.first} " if ranking.statistic == WIN_RATE else ""
    return f"{pair.first} and {pair.second} cannot be told apart: {first}{_result(ranking, pair)}, {_p(pair.adjusted)}."


def _of_several(ranking: GeneratorRanking, labels: Sequence[str]) -> str:
    comparison = ranking.comparison
    first, *lower = labels
    means = {generator.generator: generator.mean for generator in ranking.generators}
    measured = _measured(ranking)
    worse = [label for label in lower if comparison.beats(first, label)]
    equal = [label for label in lower if label not in worse]
    nearest = comparison.pair_of(first, lower[0])
    if not equal and nearest:
        return (
            f"{first} is best of {len(labels)} generators: {measured} {_value(ranking, means[first])}; the nearest is "
            f"{lower[0]} ({_result(ranking, nearest)}, {_p(nearest.adjusted)}; {comparison.family})."
        )
    if not any(pair.significant for pair in comparison.pairs):
        smallest = min((pair.adjusted for pair in comparison.pairs if not math.isnan(pair.adjusted)), default=math.nan)
        p = _p(smallest) if math.isnan(smallest) else f"the smallest p is {p_text(smallest)}"
        return (
            f"The {len(labels)} generators cannot be told apart: {measured} from {_value(ranking, means[labels[-1]])} "
            f"({labels[-1]}) to {_value(ranking, means[first])} ({first}); {p} "
            f"({comparison.family})."
        )
    better = [
        f"{winner} is better than {named_or_counted([label for label in labels if comparison.beats(winner, label)])}"
        for winner in labels
        if any(comparison.beats(winner, label) for label in labels)
    ]
    return (
        f"{first} has the highest {measured}, {_value(ranking, means[first])}, but cannot be told apart from "
        f"{named_or_counted(equal)}; {'; '.join(better[:_MOST_NAMED])} ({comparison.family})."
    )


def _only_without_failures(ranking: GeneratorRanking, pair: SystemPair) -> str:
    """A difference that is significant only while the better one's failures are left out."""
    failed = next(_failures(generator) for generator in ranking.generators if generator.generator == pair.first)
    return (
        f"{pair.first} is ahead only while its failures ({failed}) are left out ({_result(ranking, pair)}, "
        f"{_p(pair.adjusted)}), and not with these as the lowest score"
    )


def _without_ranks(ranking: GeneratorRanking) -> str:
    measured, rated = _measured(ranking), [g for g in ranking.generators if g.mean.defined]
    if not rated:
        reasons = "; ".join(f"{g.generator}: {g.reason or 'no score'}" for g in ranking.generators)
        return f"No generator has {_a(measured)} here ({reasons})."
    numbers = ", ".join(f"{g.generator} {_value(ranking, g.mean)}" for g in rated)
    if len(ranking.generators) == 1:
        subject = (
            f"{YOUR_IMAGES.capitalize()} have" if rated[0].generator == YOUR_IMAGES else f"{rated[0].generator} has"
        )
        mean = f"a mean {measured} of {_value(ranking, rated[0].mean)}"
        return f"{subject} {mean}; to compare generators, rank the images of a second one with these."
    if len(rated) == 1:
        reasons = "; ".join(f"{g.generator}: {g.reason or 'no score'}" for g in ranking.generators if g is not rated[0])
        return f"Only {rated[0].generator} has {_a(measured)}: {_value(ranking, rated[0].mean)} ({reasons})."
    why = ranking.comparison.reason or why_not(ranking, [g.generator for g in ranking.generators])
    return f"The generators cannot be compared ({why}): {measured} {numbers}."


def _a(measured: str) -> str:
    return f"{'an' if measured[0].upper() in 'AEIO' or measured == 'SC' else 'a'} {measured}"


def _result(ranking: GeneratorRanking, pair: SystemPair, n: int = 0) -> str:
    """The result of a pair in words."""
    if ranking.statistic == WIN_RATE:
        value, low, high = _ends(pair.result.difference)
        share = Estimate(EVEN + value, EVEN + low, EVEN + high)
        if n == 1:
            winner = pair.better_first().first
            return "a tie" if share.value == EVEN else f"{winner} won it"
        return f"wins {_percent(share)} of {pair.n} {ranking.comparison.compared.unit} (ties count half)"
    if ranking.statistic == CORRECTED:
        return (
            f"corrected difference of {ranking.aspect} {_interval(pair.result.difference)} {_on_items(ranking, pair)}"
        )
    values = f"{_measured(ranking)} {pair.result.first:.3f} against {pair.result.second:.3f}"
    if n == 1:
        return values
    return f"{values}, difference {_interval(pair.result.difference)} {_on_items(ranking, pair)}"


def _on_items(ranking: GeneratorRanking, pair: SystemPair) -> str:
    """The items that a difference was measured on, with the reason where the table has more of a generator."""
    unit = ranking.comparison.compared.unit
    counts = {g.scored for g in ranking.generators if g.generator in (pair.first, pair.second)}
    if ranking.statistic != MEAN or counts == {pair.n}:
        return f"on {pair.n} {unit}"
    return f"on the {pair.n} {unit} that both have a score of"


def _measured(ranking: GeneratorRanking) -> str:
    return WIN_RATE if ranking.statistic == WIN_RATE else ranking.aspect


def _value(ranking: GeneratorRanking, estimate: Estimate) -> str:
    return _percent(estimate) if ranking.statistic == WIN_RATE else _interval(estimate)


def _interval(estimate: Estimate) -> str:
    value, low, high = _ends(estimate)
    return f"{value:.3f} [{low:.3f}, {high:.3f}]" if estimate.has_interval else f"{value:.3f}"


def _percent(share: Estimate) -> str:
    value, low, high = (100 * end for end in _ends(share))
    return f"{value:.0f}% [{low:.0f}, {high:.0f}]" if share.has_interval else f"{value:.0f}%"


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def _opposite(share: Estimate) -> Estimate:
    return Estimate(1 - share.value, 1 - share.high, 1 - share.low)


def _p(p: float) -> str:
    return f"no test of fewer than {LEAST_FOR_A_TEST}" if math.isnan(p) else p_sentence(p)


def _failures(generator: RankedGenerator) -> str:
    failed = [f"{status} {n}" for status, n in generator.statuses if not Status(status).usable]
    return f"{', '.join(failed)} of {generator.images}" if failed else ""


def named_or_counted(names: Sequence[str]) -> str:
    """Names as a sentence has them; of more than a few how many there are."""
    return f"{len(names)} others" if len(names) > _MOST_NAMED else enumeration(names)
