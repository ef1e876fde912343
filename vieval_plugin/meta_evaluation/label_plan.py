"""Plans of labels: which images people rate, in which order, and after how many prompts the labels
may decide.

The units of a plan are its prompts, or groups of them where samples name groups: a look never falls
inside a unit.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, groupby, takewhile

from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.stats.decisions import (
    ADVISED_MARGIN,
    LEAST_FOR_A_TEST,
    LEAST_FOR_LOOKS,
    LEAST_RATED,
    LOOK_LEVELS,
    SIGNIFICANCE_LEVEL,
    TYPICAL_SPREAD,
)
from vieval_plugin.stats.non_inferiority import (
    prompts_for_margin,
    smallest_difference,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import range_text


@dataclass(frozen=True)
class LabelPlan:
    """The images that `vieval label` asks for, in a fixed order, prompt by prompt."""

    #: Seed of the order.
    seed: int
    #: The images in order; those of one unit follow each other.
    images: tuple[SampleId, ...]
    #: The group of each image; empty where prompts are the units.
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.groups and len(self.groups) != len(self.images):
            raise VievalError(
                f"each of {len(self.images)} images must have a group, "
                f"got {len(self.groups)}"
            )

    @property
    def unit(self) -> str:
        """`prompt` or `group`."""
        if self.groups:
            return "group"
        return "prompt"

    @property
    def units(self) -> list[list[SampleId]]:
        """The images of each unit, in order."""
        names = self.groups or [image.uid for image in self.images]
        keys = {}
        for image, name in zip(self.images, names, strict=True):
            keys[image] = (image.benchmark, image.part, name)
        by_unit = groupby(self.images, key=keys.__getitem__)
        return [list(images) for _, images in by_unit]

    @property
    def looks(self) -> tuple[int, ...]:
        """The number of units at each look."""
        total = len(self.units)
        if total < LEAST_FOR_LOOKS:
            return (total,)
        quarters = len(LOOK_LEVELS)
        looks = []
        for quarter in range(1, quarters + 1):
            rounded_up = -(-total * quarter // quarters)
            looks.append(rounded_up)
        return tuple(looks)


@dataclass(frozen=True)
class Look:
    """The state of a plan's labels.

    Source: O'Brien and Fleming 1979, A multiple testing procedure for clinical trials; levels of
    PROTOCOLS 16.
    """

    plan: LabelPlan
    #: Units in order of which all images are rated, before the first that lacks one.
    rated: int
    #: Rated images of the plan.
    images_rated: int
    #: Rated images that are not in the plan.
    outside: int
    #: True where the rated images are the first of the plan, or all, and no others.
    is_first: bool

    @property
    def finished(self) -> int:
        """Number of looks whose units are all rated."""
        return sum(units <= self.rated for units in self.plan.looks)

    @property
    def decides(self) -> bool:
        """True from the first look on."""
        return self.finished > 0

    @property
    def level(self) -> float:
        """Level at which adjusted p decides; that of the first look before it."""
        if len(self.plan.looks) == 1:
            return SIGNIFICANCE_LEVEL
        return LOOK_LEVELS[max(self.finished - 1, 0)]

    @property
    def units(self) -> int:
        """Units that count: those of the last finished look, or before the first those that are
        rated.
        """
        if self.finished:
            return self.plan.looks[self.finished - 1]
        return self.rated

    @property
    def images(self) -> list[SampleId]:
        """The images that count."""
        return list(chain.from_iterable(self.plan.units[: self.units]))

    @property
    def next_images(self) -> list[SampleId]:
        """The images up to the next look; none after the last."""
        if self.finished == len(self.plan.looks):
            return []
        units = self.plan.looks[self.finished]
        return list(chain.from_iterable(self.plan.units[:units]))


def make_plan(chosen: Sequence[Judged], seed: int) -> LabelPlan:
    """Return the plan of what was chosen in its order; its groups are the units where any holds
    several prompts.
    """
    images = tuple(sample.id for sample in chosen)
    groups = tuple(sample.group for sample in chosen)
    uids = tuple(image.uid for image in images)
    if groups == uids:
        return LabelPlan(seed, images)
    return LabelPlan(seed, images, groups)


def plan_text(plan: LabelPlan) -> str:
    """Return a plan as its file has it, in JSON."""
    return json.dumps(asdict(plan), indent=1) + "\n"


def look_at(plan: LabelPlan, rated: Collection[SampleId]) -> Look:
    """Return the state of a plan whose images are rated as far as `rated` has them.

    >>> images = [SampleId("own", "tig", name, str(n)) for n in range(4) for name in ("mine", "theirs")]
    >>> look = look_at(LabelPlan(0, tuple(images)), images[:5])
    >>> look.rated, look.decides, look.level
    (2, False, 0.05)
    """
    is_rated = frozenset(rated)
    planned = frozenset(plan.images)
    finished = list(takewhile(is_rated.issuperset, plan.units))
    first_images = plan.images[: len(is_rated)]
    images_rated = len(is_rated & planned)
    outside = len(is_rated - planned)
    is_first = is_rated == {*first_images}
    return Look(
        plan=plan,
        rated=len(finished),
        images_rated=images_rated,
        outside=outside,
        is_first=is_first,
    )


def size_advice(chosen: Sequence[Judged], available: Sequence[Judged]) -> str:
    """Line on how many prompts of each generator are labelled, where that is few; empty of
    contests and one generator.
    """
    prompts = defaultdict(set)
    groups = defaultdict(set)
    for sample in _samples(chosen):
        identity = sample.id
        prompts[identity.image_model].add((identity.part, identity.uid))
        groups[identity.image_model].add((identity.part, sample.group))
    fewest = min(map(len, groups.values()), default=0)
    needed = prompts_for_margin(TYPICAL_SPREAD)
    if len(prompts) < 2 or fewest >= needed:
        return ""
    in_each = max(len(prompts[model]) / len(groups[model]) for model in prompts)
    enough = _image_count(available, round(needed * in_each))
    counts = _labelled_text(prompts, groups)
    unit = "prompts"
    if groups != prompts:
        unit = "groups"
    advice = ""
    if len(chosen) < enough:
        advice = f". To come as close as your images allow, use --n {enough}"
    sentence = (
        f"a test requires {LEAST_FOR_A_TEST}, and a decision requires {LEAST_RATED} "
        "or all images"
    )
    if fewest >= LEAST_RATED:
        difference = smallest_difference(TYPICAL_SPREAD, fewest)
        sentence = f"a difference of {difference:.2f} is found four times in five"
    return (
        f"{counts} of each generator: {sentence}. "
        f"Showing that one generator is not worse by {ADVISED_MARGIN:g} or more "
        f"requires about {needed:.0f} {unit} of each, "
        f"if ratings vary as much as on ImagenHub{advice}"
    )


def _image_count(available: Sequence[Judged], most: int) -> int:
    """Number of images of all generators, of each at most so many."""
    by_model = Counter(sample.id.image_model for sample in _samples(available))
    return sum(min(most, number) for number in by_model.values())


def _labelled_text(
    prompts: Mapping[str, Collection[object]], groups: Mapping[str, Collection[object]]
) -> str:
    """Numbers of labelled prompts per generator, and of groups where they differ."""
    numbers = [*map(len, prompts.values())]
    plural = "s" * (max(numbers) > 1)
    text = f"{range_text(numbers)} prompt{plural}"
    if groups != prompts:
        group_counts = [*map(len, groups.values())]
        text += f" in {range_text(group_counts)} groups (each counts as one)"
    return text


def _samples(judged: Sequence[Judged]) -> list[Sample]:
    return [sample for sample in judged if isinstance(sample, Sample)]
