"""The images of a generator that one judge saw, as statistics of generators need them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vieval_plugin.meta_evaluation.observations import Observation, fill, observe
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

Words = Callable[[str, Observation], Iterable[str]]
"""From an image's part and what is seen of it, the words that it stands under."""

HEADINGS: Mapping[str, Words] = {
    "part": lambda part, one: [part],
    "kind": lambda part, one: [one.kind],
    "category": lambda part, one: filter(None, [one.category]),
    "tag": lambda part, one: one.tags,
}
"""What means of generators are broken down by."""


@dataclass(frozen=True)
class GeneratorImages:
    """The images of one generator that one judge saw, failures filled, all parts together, each with its part."""

    judge: str
    image_model: str
    aspects: tuple[str, ...]
    images: tuple[tuple[str, Observation], ...]

    @property
    def all(self) -> list[Observation]:
        """All of them, without their parts."""
        return [one for _, one in self.images]

    def under(self, heading: str, word: str) -> list[Observation]:
        """Those that stand under a word of one of `HEADINGS`."""
        return [one for part, one in self.images if word in HEADINGS[heading](part, one)]


def generators_of(run: Run, options: StatisticsOptions) -> list[GeneratorImages]:
    """The generators of a run in the order in which they come; contests, which several are in, are left out.

    Args:
        run: one judge's.
        options: what a failed verdict is.
    """
    held: dict[str, list[tuple[str, Observation]]] = {}
    scores: dict[str, None] = dict.fromkeys(run.aspects)
    for part, samples in run.records.items():
        for record in (one for together in samples for one in together if one.votes is None):
            held.setdefault(record.id.image_model, []).append((part, observe([record])))
            scores |= dict.fromkeys(record.verdict.scores)
    found = []
    for model, images in held.items():
        ordered = sorted(images, key=lambda one: (one[0], one[1].group, one[1].uid, one[1].draw))
        filled = fill([one for _, one in ordered], tuple(scores), options)
        places = [part for part, _ in ordered]
        found.append(GeneratorImages(run.label, model, tuple(scores), tuple(zip(places, filled, strict=True))))
    return found


def named_with_part(side: GeneratorImages) -> GeneratorImages:
    """The same, groups named with their part: two parts may have a prompt of one uid."""
    return replace(side, images=tuple((part, replace(one, group=f"{part}/{one.group}")) for part, one in side.images))


def words_under(judged: Sequence[GeneratorImages], heading: str) -> list[str]:
    """All words of one of `HEADINGS` that an image of any generator stands under, in the order in which they come."""
    return list(
        dict.fromkeys(word for side in judged for part, one in side.images for word in HEADINGS[heading](part, one))
    )
