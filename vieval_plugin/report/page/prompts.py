"""Prompts on a page of generators: all of them beside the chart, and those where the first one
loses or all fail.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from markupsafe import Markup

from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.records import OWN, YOUR_IMAGES
from vieval_plugin.report.answer import judge_words
from vieval_plugin.report.page.charts import histogram
from vieval_plugin.report.page.disagreement import GalleryItem
from vieval_plugin.report.page.tiles import points_of
from vieval_plugin.report.sections import Section
from vieval_plugin.report.words import ASPECTS
from vieval_plugin.text.wording import plural

#: Prompts that stand beside the chart: half where the first generator is furthest ahead, half where
#: it is furthest behind.
MOST_PROMPTS = 60
_CARDS, _CARDS_ALONE = 3, 4
#: Score below which an image fails: half of the scale.
_HALF = 0.5


@dataclass(frozen=True)
class Prompt:
    """A prompt with the scores, or the points in contests, of each generator by one judge."""

    #: Its card.
    id: SampleId
    #: Its uid, after its part and a slash.
    name: str
    #: Mean score by generator.
    scores: Mapping[str, float]

    @property
    def spread(self) -> float:
        """Highest less lowest score."""
        return max(self.scores.values()) - min(self.scores.values())

    def lead(self, generator: str) -> float:
        """Lead of a generator over the best other one; NaN where that is not known."""
        rivals = [score for other, score in self.scores.items() if other != generator]
        return (
            self.scores[generator] - max(rivals)
            if generator in self.scores and rivals
            else math.nan
        )

    def best_rival(self, generator: str) -> str:
        """The best generator but this one."""
        return max(
            (other for other in self.scores if other != generator),
            key=lambda other: self.scores[other],
        )


#: Prompts that are worth a look, by the reason, each with the generators whose pictures show it;
#: none for all.
PromptGroups: TypeAlias = Mapping[str, Sequence[tuple[SampleId, Sequence[str]]]]


@dataclass(frozen=True)
class PromptRows:
    """What a page shows of a leaderboard of generators."""

    #: The leaderboard's title.
    title: str
    #: Its generators, the first one those it is about.
    generators: tuple[str, ...]
    #: Prompts by how far the first generator is ahead.
    columns: tuple[Prompt, ...]
    #: Number of all prompts.
    total: int
    #: Prompts in the order in which they are shown one by one, the largest spread first.
    across: tuple[SampleId, ...]
    groups: PromptGroups
    #: Distribution of each aspect, of one generator alone.
    distributions: tuple[Markup, ...]
    #: Words on how far the first generator is ahead, by card.
    leads: Mapping[SampleId, str]

    @property
    def ids(self) -> set[SampleId]:
        """The cards that it leads to."""
        shown = {prompt for prompts in self.groups.values() for prompt, _ in prompts}
        return shown | {prompt.id for prompt in self.columns} | {*self.across}


def prompt_rows(
    section: Section,
    board: Leaderboard,
    items: Sequence[GalleryItem],
    challenger: str = "",
    falls: Sequence[str] = (),
) -> PromptRows:
    """What a page shows of a leaderboard of generators.

    Args:
        section: that it is of.
        board: of generators.
        items: the section's, one a prompt.
        challenger: the generator that a gate decides on, which comes first then.
        falls: names of the prompts on which that one fell most, which come first.
    """
    generators = [system.label for system in board.comparison.systems]
    generators.sort(key=lambda label: label != challenger)
    prompts = _prompts(section, board, items)
    first, alone = generators[0], len(generators) == 1
    decided = not board.measure.counts_contests or any(p.spread for p in prompts)

    def advantage(prompt: Prompt) -> float:
        return prompt.scores.get(first, math.nan) if alone else prompt.lead(first)

    ordered = sorted(
        (p for p in prompts if not math.isnan(advantage(p))),
        key=advantage,
        reverse=True,
    )
    ends = _shown_ends(ordered)
    across = _by_spread(falls, prompts, advantage)
    groups = _ends(ordered) if alone else _groups(board, ordered, first)
    return PromptRows(
        _title(section, board),
        tuple(generators),
        tuple(ends if decided and not alone else ()),
        len(prompts),
        tuple(prompt.id for prompt in across[:MOST_PROMPTS] if decided and not alone),
        {title: shown for title, shown in groups.items() if shown and decided},
        _distributions(section, board) if alone else (),
        {
            prompt.id: _lead_text(board, first, prompt)
            for prompt in ordered
            if decided and not alone
        },
    )


def _shown_ends(ordered: list[Prompt]) -> list[Prompt]:
    return (
        ordered
        if len(ordered) <= MOST_PROMPTS
        else [*ordered[: MOST_PROMPTS // 2], *ordered[-MOST_PROMPTS // 2 :]]
    )


def _by_spread(
    falls: Sequence[str], prompts: list[Prompt], advantage: Callable[[Prompt], float]
) -> list[Prompt]:
    by_fall = {name: place for place, name in enumerate(falls)}
    return sorted(
        prompts,
        key=lambda p: (
            by_fall.get(p.name, len(falls)),
            -p.spread,
            not advantage(p) > 0,
        ),
    )


def _lead_text(board: Leaderboard, first: str, prompt: Prompt) -> str:
    lead = prompt.lead(first)
    if not lead:
        return "a tie"
    return (
        ""
        if board.measure.counts_contests
        else f"{first} {abs(lead):.2f} {'ahead' if lead > 0 else 'behind'}"
    )


def _title(section: Section, board: Leaderboard) -> str:
    measured = board.measure.noun
    if not board.measure.counts_contests:
        in_words = ASPECTS.get(board.aspect, "")
        measured += f" {board.aspect}{f' ({in_words})' * bool(in_words)}"
    where = f" on {board.breakdown} {board.value}" if board.breakdown else ""
    benchmark = "" if section.benchmark.name == OWN else f"{section.title}: "
    return f"{benchmark}{measured}{where}, by {judge_words(board)}"


def _prompts(
    section: Section, board: Leaderboard, items: Sequence[GalleryItem]
) -> list[Prompt]:
    [label] = [run.label for run in section.runs if run.name == board.judge]
    prompts = []
    for item in items:
        values: dict[str, list[float]] = defaultdict(list)
        for record in (
            j.record
            for j in item.judgements
            if j.label == label and board.value in ("", j.record.id.part)
        ):
            if board.measure.counts_contests:
                for candidate, points in zip(
                    record.candidates, points_of(record), strict=False
                ):
                    values[candidate.image_model].append(points)
            elif board.aspect in record.verdict.scores and not record.candidates:
                values[record.id.image_model or YOUR_IMAGES].append(
                    record.verdict.scores[board.aspect]
                )
        if values:
            means = {
                model: math.fsum(scores) / len(scores)
                for model, scores in values.items()
            }
            prompts.append(
                Prompt(
                    item.id, f"{item.id.part}/{item.record.group or item.id.uid}", means
                )
            )
    return prompts


def _groups(board: Leaderboard, ordered: Sequence[Prompt], first: str) -> PromptGroups:
    """Prompts where the first generator is furthest behind, and those on which none reaches half
    of the scale.
    """
    behind = [prompt for prompt in ordered[::-1] if prompt.lead(first) < 0]
    ending = "" if first == YOUR_IMAGES else "s"
    lower = f"lose{ending}" if board.measure.counts_contests else f"score{ending} lower"
    titles = {_count_title(f"{first} {lower}", "largest gaps", behind, ordered): behind}
    if not board.measure.counts_contests:
        by_best = sorted(ordered, key=lambda prompt: max(prompt.scores.values()))
        failed = [p for p in by_best if max(p.scores.values()) < _HALF]
        who = "Both generators" if len(board.numbers) == 2 else "All generators"
        titles[_count_title(f"{who} fail", "lowest scores", failed, ordered)] = failed
    by_judge = "By the judge alone, " if board.measure.uses_ratings else ""
    return {
        f"{by_judge}{title}": [
            (p.id, (first, p.best_rival(first))) for p in prompts[:_CARDS]
        ]
        for title, prompts in titles.items()
    }


def _ends(ordered: Sequence[Prompt]) -> PromptGroups:
    """Prompts of one generator alone: those with its lowest scores, then those with its highest."""
    lowest = ordered[::-1][: min(_CARDS_ALONE, (len(ordered) + 1) // 2)]
    highest = ordered[: min(_CARDS_ALONE, len(ordered) - len(lowest))]
    groups = {"The lowest scores": lowest, "The highest scores": highest}
    return {
        title: [(prompt.id, ()) for prompt in prompts]
        for title, prompts in groups.items()
    }


def _count_title(
    what: str, extremes: str, prompts: Sequence[Prompt], ordered: Sequence[Prompt]
) -> str:
    shown = f"; the {_CARDS} {extremes}" if len(prompts) > _CARDS else ""
    return f"{what} on {len(prompts)} of {plural(len(ordered), 'prompt')}{shown}"


def _distributions(section: Section, board: Leaderboard) -> tuple[Markup, ...]:
    """Histograms of all scores of the judge by aspect."""
    [run] = [run for run in section.runs if run.name == board.judge]
    values: dict[str, list[float]] = defaultdict(list)
    for judged in run.records.values():
        for record in (records[0] for records in judged):
            for aspect, score in record.verdict.scores.items():
                values[aspect].append(score)
    return tuple(
        histogram(scores, f"{aspect}, {ASPECTS.get(aspect, aspect)}")
        for aspect, scores in values.items()
    )
