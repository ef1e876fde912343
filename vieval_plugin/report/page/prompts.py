"""Prompts on a page of generators: all of them beside the chart, and those where the first one
loses or all fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.meta_evaluation.measures import mean_of
from vieval_plugin.records import OWN, YOUR_IMAGES
from vieval_plugin.report.answer import measured_quantity
from vieval_plugin.report.leaderboard_finding import judge_words
from vieval_plugin.report.page.charts import DifferenceAxis, Histogram, histogram
from vieval_plugin.report.page.disagreement import GalleryItem
from vieval_plugin.report.page.tiles import points_of
from vieval_plugin.report.sections import Section
from vieval_plugin.report.words import ASPECTS, sentence_number
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.wording import plural, possessive, rounded

#: Prompts that stand beside the chart: half where the first generator is furthest ahead, half where
#: it is furthest behind.
MOST_PROMPTS = 60
_CARDS = 3
_CARDS_ALONE = 4
#: Score below which an image is among the worst: half of the scale.
_HALF = 0.5


@dataclass(frozen=True)
class Prompt:
    """A prompt with the scores, or the points in contests, of each generator by one judge."""

    #: Id of the card that shows it.
    id: SampleId
    #: Its uid, after its part and a slash.
    name: str
    #: Mean score by generator.
    scores: Mapping[str, float]

    @property
    def spread(self) -> float:
        """Highest less lowest score."""
        scores = self.scores.values()
        return max(scores) - min(scores)

    def lead(self, generator: str) -> float:
        """Lead of a generator over the best other one; NaN where that is not known."""
        rivals = [score for rival, score in self.scores.items() if rival != generator]
        if generator not in self.scores or not rivals:
            return math.nan
        return self.scores[generator] - max(rivals)

    def best_rival(self, generator: str) -> str:
        """The best generator but this one."""
        rivals = (rival for rival in self.scores if rival != generator)
        return max(rivals, key=lambda rival: self.scores[rival])


@dataclass(frozen=True)
class Bars:
    """Differences of two generators, one bar a prompt, beside their mean."""

    first: str
    second: str
    #: Prompts on which the first is ahead, and on which it is behind.
    higher: int
    lower: int
    #: The mean difference, the first less the second.
    mean: Estimate
    scale: DifferenceAxis

    @property
    def words(self) -> str:
        """Text alternative of the chart."""
        mean = sentence_number(self.mean)
        return f"{self.first} minus {self.second}: mean {mean}"


#: Prompts that are worth a look, by the reason, each with the generators whose pictures show it;
#: none for all.
PromptGroups: TypeAlias = Mapping[str, Sequence[tuple[SampleId, Sequence[str]]]]


@dataclass(frozen=True)
class PromptRows:
    """Content of a page about a leaderboard of generators."""

    #: The leaderboard's title.
    title: str
    #: Its generators; leads are those of the first.
    generators: tuple[str, ...]
    #: Prompts by how far the first generator is ahead.
    columns: tuple[Prompt, ...]
    #: Prompt that is shown first; None without one.
    shown: SampleId | None
    #: Number of its prompts, and of those with scores to compare.
    total: int
    compared: int
    #: Bars of two generators; None of more.
    bars: Bars | None
    groups: PromptGroups
    #: Distribution of each aspect, of one generator alone.
    distributions: tuple[Histogram, ...]
    #: Words on how far the first generator is ahead, by card.
    leads: Mapping[SampleId, str]

    @property
    def ids(self) -> set[SampleId]:
        """The cards that it leads to."""
        ids = {prompt.id for prompt in self.columns}
        for prompts in self.groups.values():
            ids.update(prompt for prompt, _ in prompts)
        if self.shown is not None:
            ids.add(self.shown)
        return ids

    def words(self, prompt: Prompt) -> str:
        """A prompt with its scores, in words."""
        scores = [
            f"{generator} {rounded(prompt.scores[generator], 2)}"
            for generator in self.generators
            if generator in prompt.scores
        ]
        return f"{prompt.name}: {', '.join(scores)}"


def _best_first(
    prompts: Sequence[Prompt],
    first: str,
    alone: bool,
) -> list[Prompt]:
    """The prompts by the lead of the first generator, or by its score where it is alone."""

    def advantage(prompt: Prompt) -> float:
        if alone:
            return prompt.scores.get(first, math.nan)
        return prompt.lead(first)

    scored = (prompt for prompt in prompts if not math.isnan(advantage(prompt)))
    return sorted(scored, key=advantage, reverse=True)


def prompt_rows(
    section: Section,
    board: Leaderboard,
    items: Sequence[GalleryItem],
    challenger: str = "",
    falls: Sequence[str] = (),
) -> PromptRows:
    """Collect the content of a page about a leaderboard of generators.

    Args:
        section: that it is of.
        board: of generators.
        items: the section's, one a prompt.
        challenger: the generator that a gate decides on, which comes first then.
        falls: names of the prompts on which that one fell most, which come first.
    """
    generators = _title_order(board, challenger)
    prompts = _prompts(section, board, items)
    first = generators[0]
    alone = len(generators) == 1
    counts_contests = board.measure.counts_contests
    differ = any(prompt.spread for prompt in prompts)
    has_differences = differ or (alone and not counts_contests)

    ordered = _best_first(prompts, first, alone)
    by_name = {prompt.name: prompt for prompt in prompts}
    fallen = [by_name[name] for name in falls if name in by_name]
    groups = _ends(ordered) if alone else _groups(board, ordered, first, fallen)
    compared = ordered if has_differences and not alone else []
    bars = _bars(board, compared, generators) if len(generators) == 2 else None
    leads = {prompt.id: _lead_text(board, first, prompt) for prompt in compared}
    distributions = _distributions(section, board) if alone else ()
    columns = tuple(_shown_ends(compared))
    shown_groups = {}
    if has_differences:
        shown_groups = {title: prompts for title, prompts in groups.items() if prompts}
    return PromptRows(
        title=_rows_title(section, board),
        generators=tuple(generators),
        columns=columns,
        shown=_first_shown(board, compared, fallen),
        total=len(prompts),
        compared=len(compared),
        bars=bars,
        groups=shown_groups,
        distributions=distributions,
        leads=leads,
    )


def _rows_title(section: Section, board: Leaderboard) -> str:
    """Describe the rows: benchmark, measure, part and judge."""
    title = board.measure.noun
    if section.benchmark.name != OWN:
        title = f"{section.title}: {title}"
    if not board.measure.counts_contests:
        title += f" {board.aspect}"
        if board.aspect in ASPECTS and not measured_quantity(board):
            title += f" ({ASPECTS[board.aspect]})"
    if board.breakdown:
        title += f" on {board.breakdown} {board.value}"
    return f"{title}, by {judge_words(board)}"


def _title_order(board: Leaderboard, challenger: str) -> list[str]:
    """The generators as the title has them: the challenger of a gate first, and two that cannot
    be told apart as they came in.
    """
    comparison = board.comparison
    pairs = comparison.all_pairs
    told_apart = any(pair.significant or pair.doubtful for pair in pairs)
    as_given = len(pairs) == 1 and not told_apart and not board.measure.uses_ratings
    systems = comparison.compared.systems if as_given else comparison.systems
    labels = (system.label for system in systems)
    return sorted(labels, key=lambda label: label != challenger)


def _shown_ends(ordered: list[Prompt]) -> list[Prompt]:
    if len(ordered) <= MOST_PROMPTS:
        return ordered
    half = MOST_PROMPTS // 2
    return [*ordered[:half], *ordered[-half:]]


def _first_shown(
    board: Leaderboard,
    ordered: Sequence[Prompt],
    fallen: Sequence[Prompt],
) -> SampleId | None:
    """The prompt that shows what the title says: the largest fall of a gate, else the largest
    lead, or the one in the middle where no generator is significantly better.
    """
    if not ordered:
        return None
    pairs = board.comparison.pairs
    told_apart = any(pair.significant or pair.doubtful for pair in pairs)
    typical = ordered[0 if told_apart else len(ordered) // 2]
    return next(iter(fallen), typical).id


def _bars(
    board: Leaderboard,
    ordered: Sequence[Prompt],
    generators: Sequence[str],
) -> Bars | None:
    first, second = generators
    if not ordered:
        return None
    pair = board.comparison.pair_of(first, second)
    leads = [prompt.lead(first) for prompt in ordered]
    mean = Estimate(math.fsum(leads) / len(leads))
    factor = 1
    words = {}
    if board.measure.counts_contests:
        factor = 2  # of won less lost
        words = {
            1.0: "won",
            0.0: "tie",
            -1.0: "lost",
        }
    if pair:
        if pair.first != first:
            pair = pair.turned
        difference = pair.result.difference
        mean = Estimate(
            factor * difference.value, factor * difference.low, factor * difference.high
        )
    ends = (0.0, *leads, mean.low, mean.high)
    finite_ends = [end for end in ends if not math.isnan(end)]
    scale = DifferenceAxis(min(finite_ends), max(finite_ends), words)
    higher = sum(lead > 0 for lead in leads)
    lower = sum(lead < 0 for lead in leads)
    return Bars(
        first,
        second,
        higher,
        lower,
        mean,
        scale,
    )


def _lead_text(board: Leaderboard, first: str, prompt: Prompt) -> str:
    lead = prompt.lead(first)
    if not lead:
        return "a tie"
    if board.measure.counts_contests:
        return ""
    side = "ahead of" if lead > 0 else "behind"
    rival = prompt.best_rival(first)
    distance = rounded(abs(lead), 2)
    return f"{first} {distance} {side} {rival}"


def _prompts(
    section: Section,
    board: Leaderboard,
    items: Sequence[GalleryItem],
) -> list[Prompt]:
    label = section.run_of(board).label
    prompts = []
    for item in items:
        scores: list[tuple[str, float]] = []
        for judgement in item.judgements:
            record = judgement.record
            if judgement.label != label or board.value not in ("", record.id.part):
                continue
            if board.measure.counts_contests:
                models = (candidate.image_model for candidate in record.candidates)
                scores += zip(models, points_of(record), strict=False)
            elif board.aspect in record.verdict.scores and not record.candidates:
                model = record.id.image_model or YOUR_IMAGES
                scores.append((model, record.verdict.scores[board.aspect]))
        if scores:
            group = item.record.group or item.id.uid
            name = f"{item.id.part}/{group}"
            by_model = grouped(scores)
            means = {model: mean_of(values) for model, values in by_model.items()}
            prompts.append(Prompt(item.id, name, means))
    return prompts


def _groups(
    board: Leaderboard,
    ordered: Sequence[Prompt],
    first: str,
    fallen: Sequence[Prompt],
) -> PromptGroups:
    """Prompts where the first generator is furthest behind, of a gate those on which it fell, and
    those on which none reaches half of the scale.
    """
    reverse_order = ordered[::-1]
    prompts_behind = [prompt for prompt in reverse_order if prompt.lead(first) < 0]
    ending = "" if first == YOUR_IMAGES else "s"
    lower = f"lose{ending}" if board.measure.counts_contests else f"score{ending} lower"
    title = _count_title(
        f"{first} {lower}",
        "largest gaps",
        prompts_behind,
        ordered,
    )
    if fallen:
        title = f"{possessive(first)} largest falls"
        prompts_behind = list(fallen)
    titles = {title: prompts_behind}
    if not board.measure.counts_contests:
        by_best = sorted(ordered, key=_best_score)
        failed = [prompt for prompt in by_best if _best_score(prompt) < _HALF]
        generators = "Both generators" if len(board.numbers) == 2 else "All generators"
        if board.measure.uses_ratings:
            generators = generators.lower()
        what = f"{generators} score below {_HALF:g}"
        title = _count_title(what, "lowest scores", failed, ordered)
        titles[title] = failed
    groups = {}
    for title, prompts in titles.items():
        if board.measure.uses_ratings:
            title = f"By the judge alone, {title}"
        members = []
        for prompt in prompts[:_CARDS]:
            generators_shown = (first, prompt.best_rival(first))
            members.append((prompt.id, generators_shown))
        groups[title] = members
    return groups


def _best_score(prompt: Prompt) -> float:
    return max(prompt.scores.values())


def _ends(ordered: Sequence[Prompt]) -> PromptGroups:
    """Prompts of one generator alone: those with its lowest scores, then those with its highest."""
    half = (len(ordered) + 1) // 2
    reverse_order = ordered[::-1]
    lowest = reverse_order[: min(_CARDS_ALONE, half)]
    remaining = len(ordered) - len(lowest)
    highest = ordered[: min(_CARDS_ALONE, remaining)]
    groups = {"The lowest scores": lowest, "The highest scores": highest}
    return {
        title: [(prompt.id, ()) for prompt in prompts]
        for title, prompts in groups.items()
    }


def _count_title(
    what: str,
    extremes: str,
    prompts: Sequence[Prompt],
    ordered: Sequence[Prompt],
) -> str:
    count = len(prompts)
    extent = ""
    if count > _CARDS:
        extent = f"; the {_CARDS} {extremes}"
    total = plural(len(ordered), "prompt")
    return f"{what} on {count} of {total}{extent}"


def _distributions(section: Section, board: Leaderboard) -> tuple[Histogram, ...]:
    """Histograms of all scores of the judge by aspect."""
    values = grouped(
        score
        for record, *_ in section.run_of(board).records_by_sample
        for score in record.verdict.scores.items()
    )
    return tuple(
        histogram(scores, f"{aspect}, {ASPECTS.get(aspect, aspect)}")
        for aspect, scores in values.items()
    )
