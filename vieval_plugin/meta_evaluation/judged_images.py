"""The images of a generator that one judge saw, as statistics of generators need them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vieval_plugin.meta_evaluation.observations import Observation, fill, observe
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

Words = Callable[[str, Observation], Iterable[str]]
"""Breakdown values of an image, from its part and what is seen of it."""

HEADINGS: Mapping[str, Words] = {
    "part": lambda part, image: [part],
    "kind": lambda part, image: [image.kind],
    "category": lambda part, image: filter(None, [image.category]),
    "tag": lambda part, image: image.tags,
}
"""The breakdowns of generators' means."""


@dataclass(frozen=True)
class GeneratorImages:
    """The images of one generator that one judge saw, failures filled, all parts together, each with its part."""

    judge: str
    image_model: str
    aspects: tuple[str, ...]
    images: tuple[tuple[str, Observation], ...]

    @property
    def all(self) -> list[Observation]:
        """The images without their parts."""
        return [image for _, image in self.images]

    def with_word(self, heading: str, word: str) -> list[Observation]:
        """The images that stand under a word of one of `HEADINGS`."""
        return [image for part, image in self.images if word in HEADINGS[heading](part, image)]


def generators_of(run: Run, options: StatisticsOptions) -> list[GeneratorImages]:
    """The generators of a run in the order in which they come; contests, which several are in, are left out.

    Args:
        run: one judge's.
        options: what a failed verdict is.
    """
    images_by_model: dict[str, list[tuple[str, Observation]]] = {}
    scores: dict[str, None] = dict.fromkeys(run.aspects)
    for part, samples in run.records.items():
        for record in (record for records in samples for record in records if record.votes is None):
            images_by_model.setdefault(record.id.image_model, []).append((part, observe([record])))
            scores |= dict.fromkeys(record.verdict.scores)
    generators = []
    for model, images in images_by_model.items():
        ordered = sorted(
            images,
            key=lambda part_and_image: (
                part_and_image[0],
                part_and_image[1].group,
                part_and_image[1].uid,
                part_and_image[1].draw,
            ),
        )
        scored_images = fill([image for _, image in ordered], tuple(scores), options)
        places = [part for part, _ in ordered]
        generators.append(
            GeneratorImages(run.label, model, tuple(scores), tuple(zip(places, scored_images, strict=True)))
        )
    return generators


def named_with_part(side: GeneratorImages) -> GeneratorImages:
    """The same, groups named with their part: two parts may have a prompt of one uid."""
    return replace(
        side, images=tuple((part, replace(image, group=f"{part}/{image.group}")) for part, image in side.images)
    )


def words_under(judged: Sequence[GeneratorImages], heading: str) -> list[str]:
    """The words of one of `HEADINGS` that an image of any generator stands under, in the order in which they come."""
    return list(
        dict.fromkeys(word for side in judged for part, image in side.images for word in HEADINGS[heading](part, image))
    )
